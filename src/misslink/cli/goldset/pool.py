"""misslink goldset pool: draw what people are to grade, from several retrievers and at random."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON, CONCURRENCY, LEDGER
from misslink.cli.output import interruptible, own_stdout, print_json, progress_bars, say
from misslink.cli.terms import CAPS, MODEL, PACE, PRICES, Given, asks_judge
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.files.goldset import GoldSet
    from misslink.goldset.pooling.drawing import Nearness
    from misslink.goldset.pooling.folder import Pool
    from misslink.goldset.pooling.rankings import Ranked
    from misslink.judging.terms import Terms
    from misslink.types import Passage

__all__ = ["pool"]


@asks_judge(*MODEL, *PACE, *PRICES, *CAPS)
def pool(
    goldset: Path = typer.Option(..., "--goldset", help="The questions, JSON Lines."),
    corpus: str = typer.Option(
        ...,
        "--corpus",
        help="What is searched: JSON Lines, CSV, a folder of .txt and .md, or chroma:FOLDER.",
    ),
    out: Path = typer.Option(..., "--out", help="Folder of the pool."),
    run: list[str] = typer.Option(
        [], "--run", help="A retriever's run, as of  misslink retrieval; several times."
    ),
    retriever: list[str] = typer.Option(
        [], "--retriever", help="A live retriever, module:attribute; several times."
    ),
    depth: int = typer.Option(10, "--depth", min=1, help="How many of each retriever's best."),
    random: int = typer.Option(
        5, "--random", min=0, help="Others of each question, drawn from all alike."
    ),
    stratified: int = typer.Option(
        10, "--stratified", min=0, help="Others of each question, drawn from bands of rank."
    ),
    embedding: str | None = typer.Option(
        None,
        "--embedding",
        help="The bands go by its nearness: minilm, PROVIDER:MODEL.",
        show_default="BM25",
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the draw and the order."),
    rejudge: bool = typer.Option(
        False, "--rejudge", help="Ask about what the gold set has a grade for, too."
    ),
    id_key: str | None = typer.Option(
        None, "--id-key", help="Metadata key that holds a passage's id, of a live retriever."
    ),
    prelabel: str | None = typer.Option(
        None, "--prelabel", help="A judge that grades all, too; shown to nobody who labels."
    ),
    ledger: Path | None = LEDGER,
    concurrency: int = CONCURRENCY,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Draw a pool to be graded: the best of several retrievers, and a sample of what they leave.

    misslink annotate POOL  opens it, blind to who brought what; misslink goldset pooled POOL  puts
    the grades into the gold set and estimates each retriever's recall.
    """
    from misslink.files.corpus import read_corpus
    from misslink.files.goldset import read_goldset
    from misslink.goldset.pooling import make_pool, write_pool
    from misslink.goldset.pooling.folder import check_folder
    from misslink.goldset.pooling.rankings import names_of
    from misslink.judging.terms import Terms

    terms = Terms(**given)
    if not run and not retriever:
        raise InputError("nothing brings passages; give --run FILE or --retriever module:attribute")
    if prelabel is not None:
        _check_judge(prelabel)
    names = names_of([*run, *retriever])
    check_folder(out)
    gold, passages = read_goldset(goldset), read_corpus(corpus)
    with interruptible("the same command goes on"), own_stdout():
        ranked = _ranked(gold, run, retriever, names, depth, id_key, concurrency)
        drawn = make_pool(
            gold,
            passages,
            ranked,
            _nearness(embedding, gold, passages),
            depth=depth,
            random=random,
            stratified=stratified,
            seed=seed,
            rejudge=rejudge,
            inputs=_inputs(goldset, corpus, ranked),
        )
        written = write_pool(drawn, out)
        asked = None
        if prelabel is not None:
            asked = _prelabelled(drawn, out, prelabel, ledger, concurrency, terms)
    document = {**_document(drawn, out), "written": written, "prelabels": asked}
    if as_json:
        print_json(document)
    else:
        _print(document)


def _check_judge(spec: str) -> None:
    if spec.partition(":")[0] in {"embedded", "none"}:
        raise InputError(
            f"the judge {spec} cannot grade passages; name a model, such as --prelabel openai:MODEL"
        )


def _ranked(
    gold: GoldSet,
    runs: list[str],
    retrievers: list[str],
    names: list[str],
    depth: int,
    id_key: str | None,
    concurrency: int,
) -> list[Ranked]:
    import asyncio

    from misslink.capture import load_app
    from misslink.goldset.pooling.rankings import asked_retriever, of_file

    cases = {case.id for case in gold.cases}
    of_runs = zip(runs, names[: len(runs)], strict=True)
    found = [of_file(path, name, cases, depth) for path, name in of_runs]
    apps = [load_app(spec) for spec in retrievers]
    if apps:
        with progress_bars() as progress:
            found += [
                asyncio.run(
                    asked_retriever(
                        app,
                        name,
                        gold.cases,
                        depth,
                        id_key=id_key,
                        concurrency=concurrency,
                        done=lambda count, total: progress("app", count, total),
                    )
                )
                for app, name in zip(apps, names[len(runs) :], strict=True)
            ]
    return found


def _nearness(spec: str | None, gold: GoldSet, passages: tuple[Passage, ...]) -> Nearness:
    from misslink.goldset.pooling.nearness import ByMeaning, ByWords

    texts = [passage.text for passage in passages]
    if spec is None:
        return ByWords(texts)
    from misslink.embedding import open_embedder

    embedder = open_embedder(spec)
    try:
        questions = list(dict.fromkeys(case.question for case in gold.cases))
        return ByMeaning.of(embedder, questions, texts)
    finally:
        embedder.close()


def _inputs(goldset: Path, corpus: str, ranked: list[Ranked]) -> dict[str, str]:
    from misslink.manifest import shown_path

    kind, colon, place = corpus.partition(":")
    shown = f"{kind}:{shown_path(place)}" if colon and kind == "chroma" else shown_path(corpus)
    of_runs = {f"retriever {one.name}": shown_path(one.source) for one in ranked}
    return {"goldset": shown_path(goldset), "corpus": shown, **of_runs}


def _prelabelled(
    drawn: Pool, out: Path, spec: str, ledger: Path | None, concurrency: int, terms: Terms
) -> dict[str, Any]:
    import asyncio

    from misslink.goldset.pooling.prelabels import prelabelled, write_prelabels
    from misslink.judging.opening import ready_judge
    from misslink.prompting import Prompts

    async def ask() -> dict[str, Any]:
        opened = ready_judge(spec, ledger=ledger, concurrency=concurrency, terms=terms)
        async with opened as judge:
            with progress_bars() as progress:
                given = await prelabelled(
                    drawn,
                    judge,
                    prompts=Prompts.of(terms.prompts),
                    done=lambda count, total: progress("judge", count, total),
                )
            write_prelabels(out, given)
            failed = sum(one.grade is None for one in given)
            return {
                "judge": judge.name,
                "labelled": len(given) - failed,
                "failed": failed,
                "usage": judge.usage(),
            }

    return asyncio.run(ask())


def _document(drawn: Pool, out: Path) -> dict[str, Any]:
    pooled = sum(item.stratum == 1 for item in drawn.items)
    return {
        "pool": str(out),
        "questions": len(drawn.goldset.cases),
        "corpus": drawn.corpus,
        "items": len(drawn.items),
        "pooled": pooled,
        "outside": len(drawn.items) - pooled,
        "known": sum(strata[0].size for strata in drawn.strata.values()),
        "depth": drawn.depth,
        "random": drawn.random,
        "stratified": drawn.stratified,
        "seed": drawn.seed,
        "bands_by": drawn.bands_by,
        "retrievers": {name: len(of) for name, of in drawn.rankings.items()},
        "strata": {
            case: [{"name": one.name, "size": one.size, "drawn": one.drawn} for one in strata]
            for case, strata in drawn.strata.items()
        },
    }


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    state = "drawn" if document["written"] else "as it was drawn before"
    say(console, f"Pool {state} in {document['pool']}: {document['items']} passages to grade.")
    say(
        console,
        f"{document['pooled']} are among the best {document['depth']} of a retriever, "
        f"{document['outside']} were drawn from what none brings; "
        f"{document['known']} have a grade already.",
    )
    for name, cases in document["retrievers"].items():
        if cases < document["questions"]:
            say(console, f"{name} has no ranking for {document['questions'] - cases} questions.")
    asked = document["prelabels"]
    if asked is not None:
        say(console, f"{asked['judge']} graded {asked['labelled']}, and {asked['failed']} not.")
    say(console, f"Next:  misslink annotate {shlex.quote(document['pool'])}")
