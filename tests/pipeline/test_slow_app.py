"""An app that hangs: the way out is named while the run waits."""

import logging
import threading

import pytest

from misslink import evaluate
from misslink.pipeline import traces


@pytest.mark.parametrize(("timeout", "named"), [(None, 1), (60.0, 0)])
def test_a_hung_app_is_told_of_once_unless_it_has_a_timeout(monkeypatch, caplog, timeout, named):
    told = threading.Event()

    class Listener(logging.Handler):
        def emit(self, record):
            if "--app-timeout" in record.getMessage():
                told.set()

    def app(question):
        if timeout is None:
            assert told.wait(30)
        return {"answer": "At seven.", "passages": ["The ferry leaves at seven."]}

    monkeypatch.setattr(traces, "_SLOW_CASE_S", 0.0)
    logger = logging.getLogger(traces.__name__)
    listener = Listener()
    logger.addHandler(listener)
    try:
        gold = [{"id": str(n), "question": f"When does ferry {n} leave?"} for n in range(3)]
        run = evaluate(app, goldset=gold, judge="none", app_timeout=timeout, cache=None)
    finally:
        logger.removeHandler(listener)
    assert [trace.answer for trace in run.traces] == ["At seven."] * 3
    assert sum("--app-timeout" in record.getMessage() for record in caplog.records) == named
