"""Cosines, ranks and shared words of missed passages."""

import asyncio
import json
import uuid
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from misslink.capture import Watcher
from misslink.embedding import Embedder
from misslink.linking.miss_measurement import EmbeddingSimilarity, measure_misses
from misslink.linking.miss_types import MIN_PAIRS
from misslink.linking.missed_passages import PassagePool
from misslink.retrieval import LabelledNeed, match_needs, match_unmet_needs, satisfies
from misslink.types import Case, Passage, RetrieverCall, Trace


class PlantedEmbeddings(Embeddings):
    """Every question has an axis of its own, and a passage the cosines it was given to them."""

    def __init__(self, questions, passages):
        self.axis = {text: at for at, text in enumerate(questions)}
        self.given = {}
        for at, (text, cosines) in enumerate(passages):
            vector = np.zeros(len(questions) + len(passages))
            for question, cosine in cosines.items():
                vector[self.axis[question]] = cosine
            vector[len(questions) + at] = np.sqrt(1 - (vector**2).sum())
            self.given.setdefault(text, vector)
        self.length = len(questions) + len(passages)
        self.batches = []

    def embed_query(self, text):
        vector = np.zeros(self.length)
        vector[self.axis[text]] = 1
        return vector.tolist()

    def embed_documents(self, texts):
        self.batches.append(list(texts))
        return [self.given[text].tolist() for text in texts]


class World:
    """Cases and passages put down one by one, then indexed and asked for real."""

    def __init__(self):
        self.cases, self.passages = [], {}

    def case(self, name, question, **gold):
        self.cases.append(Case(id=name, question=question, **gold))

    def passage(self, name, text, **cosines):
        """`cosines` by case id; 0 to all other questions."""
        self.passages[name] = (text, cosines)

    async def asked(self, k, depth):
        """Return the traces of a retriever over a real Chroma, asked deeper, and the embedder."""
        from langchain_chroma import Chroma

        question = {case.id: case.question for case in self.cases}
        embeddings = PlantedEmbeddings(
            list(question.values()),
            [
                (text, {question[name]: cosine for name, cosine in cosines.items()})
                for text, cosines in self.passages.values()
            ],
        )
        store = Chroma(
            collection_name=f"planted-{uuid.uuid4().hex}",
            embedding_function=embeddings,
            collection_metadata={"hnsw:space": "cosine"},
        )
        store.add_texts([text for text, _ in self.passages.values()], ids=list(self.passages))
        watcher = Watcher(store.as_retriever(search_kwargs={"k": k}), depth=depth)
        traces = []
        for case in self.cases:
            trace = await watcher.watch(case)
            if wanted := match_unmet_needs(case, trace, k):
                trace = await watcher.deepen(case, trace, wanted)
            traces.append(trace)
        embeddings.batches.clear()
        return traces, Embedder(embeddings)


K = 3
EVIDENCE = "The winter timetable begins on the first Sunday of November at noon."


def fill(world, count=30):
    """Known pairs with cosines from 0.3 to 0.9, each with half of its question's words."""
    for at in range(count):
        world.case(f"f{at}", f"alpha{at} beta{at} gamma{at} delta{at}", relevant=[f"known{at}"])
        text = f"alpha{at} beta{at} with granite quarry scheme number{at}"
        world.passage(f"known{at}", text, **{f"f{at}": 0.3 + 0.6 * at / (count - 1)})


def rivals(world, case, *cosines):
    for at, cosine in enumerate(cosines):
        text = f"{case} rival {at}: nothing about it but unlike{case}{at} text{at} here{at}"
        world.passage(f"{case}-r{at}", text, **{case: cosine})


def decoys(world, case, question):
    """Passages that a search by words puts first and that mean something else."""
    for at in range(4):
        world.passage(f"{case}-d{at}", f"{question} decoy{case}{at}")


FAR = tuple(0.95 - at / 200 for at in range(11))  # further down than a larger k reaches


def planted():
    world = World()
    fill(world)
    # Three of the eight or nine words shared: more than a quarter, less than half.
    world.case(
        "cut", "harbour office opening wednesday closing saturday ticket", relevant=["p-cut"]
    )
    world.passage("p-cut", "harbour office ticket lists", cut=0.4)
    rivals(world, "cut", 0.8, 0.7, 0.6, 0.5)
    decoys(world, "cut", "harbour office opening wednesday closing saturday ticket")
    world.case("rank", "lighthouse keeper salary pension contract union vote", relevant=["p-rank"])
    world.passage("p-rank", "lighthouse keeper salary lists", rank=0.8)
    rivals(world, "rank", *FAR)
    decoys(world, "rank", "lighthouse keeper salary pension contract union vote")
    world.case("crowd", "buoy paint colour northern channel depth marker", relevant=["p-crowd"])
    for at in range(3):
        text = f"the same long notice about a wholly other matter of mooring fees copy{at}"
        world.passage(
            f"copy{at}", f"{'word '.join(map(str, range(40)))} {text}", crowd=0.9 - at / 50
        )
    world.passage("p-crowd", "buoy paint colour lists", crowd=0.45)
    world.case("domain", "bilge pump thermostat", relevant=["p-domain"])
    world.passage("p-domain", "bilge pump lists of the harbour office", domain=0.05)
    rivals(world, "domain", *FAR)
    decoys(world, "domain", "bilge pump thermostat")
    world.case("words", "granite quarry scheme owners subsidy paid", relevant=["p-words"])
    world.passage("p-words", "the scheme for stone diggers was long and generous", words=0.5)
    rivals(world, "words", *FAR)
    world.case("blind", "error code zx81 valve", relevant=["p-blind"])
    world.passage("p-blind", "code zx81 valve list", blind=0.4)
    rivals(world, "blind", *FAR)
    world.case("none", "who repairs clocks", relevant=["p-none"])
    world.case("halves", "when does winter start", evidence=[EVIDENCE])
    world.passage("half1", f"Timetables. {EVIDENCE[:30]}", halves=0.6)
    world.passage("half2", f"{EVIDENCE[30:]} Summer is later.", halves=0.2)
    rivals(world, "halves", 0.8, 0.7)
    return world


def corpus_of(world):
    return [
        Passage(id=name, text=text, rank=at)
        for at, (name, (text, _)) in enumerate(world.passages.items(), 1)
    ]


@pytest.fixture(scope="module")
def world():
    return planted()


@pytest.fixture(scope="module")
def asked(world):
    return asyncio.run(world.asked(K, depth=100))


@pytest.fixture(scope="module")
def measured(world, asked):
    traces, embedder = asked
    return asyncio.run(
        measure_misses(world.cases, traces, K, embedder=embedder, corpus=corpus_of(world))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "miss_type", "told"),
    [
        ("cut", "below_cutoff", "rank 5, and the first 3"),
        ("rank", "ranked_low", "'rank-r0' (rank 1, score 0.05, cosine 0.95)"),
        ("crowd", "duplicate_crowding", "it would have rank 2 instead of 4"),
        ("domain", "domain_mismatch", "0.05, is lower than in 100% of the run's"),
        ("words", "vocabulary_mismatch", "it has only 17% of the question's content words"),
        ("blind", "keyword_match", "BM25 puts it at rank 1 of"),
        ("none", "not_indexed", "does not hold it"),
        ("halves", "split_evidence", "cuts the evidence over 'half1' and 'half2'"),
    ],
)
def test_a_planted_subtype_is_found_with_its_numbers(measured, case, miss_type, told):
    (lost,) = measured.missed[case]
    assert lost.kind == miss_type, lost
    assert told in lost.reason
    assert miss_type not in lost.also


def test_nothing_is_missed_where_all_was_found(measured):
    assert all(measured.missed[f"f{at}"] == () for at in range(30))


def test_what_a_rank_alone_would_say_is_kept_as_another_reason(measured):
    assert "ranked_low" in measured.missed["words"][0].also
    assert "ranked_low" in measured.missed["domain"][0].also


def test_numbers_agree_with_scikit_learn_over_the_whole_corpus(world, asked, measured):
    from sklearn.metrics.pairwise import cosine_similarity

    embeddings = asked[1].model
    names = list(world.passages)
    given = np.array(embeddings.embed_documents([text for text, _ in world.passages.values()]))
    for case in world.cases:
        for lost in measured.missed[case.id]:
            if lost.passage_id not in names:
                assert not {"cosine", "dense_rank", "bm25_rank"} & set(lost.measured)
                continue
            row = cosine_similarity([embeddings.embed_query(case.question)], given)[0]
            own = row[names.index(lost.passage_id)]
            assert lost.measured["cosine"] == pytest.approx(own, abs=1e-6)
            assert lost.measured["dense_rank"] == 1 + (row > own + 1e-6).sum()
            assert lost.measured["pool"] == len(names)
            last = max(rival.rank for rival in lost.above)
            kth = row[names.index(lost.above[last - 1].passage_id)]
            assert lost.measured["cosine_kth"] == pytest.approx(kth, abs=1e-6)
            assert [one.cosine for one in lost.above] == pytest.approx(
                [row[names.index(one.passage_id)] for one in lost.above], abs=1e-6
            )


def test_a_copy_in_the_context_names_the_one_it_repeats(measured):
    (lost,) = measured.missed["crowd"]
    assert [rival.duplicate_of for rival in lost.above] == [None, "copy0", "copy0"]
    assert lost.measured["duplicates_in_context"] == 2


def test_distance_is_counted_from_the_cut_off(measured):
    assert measured.missed["cut"][0].distance == 2
    assert measured.missed["none"][0].distance is None


def test_pairs_and_names_are_kept_for_the_checklist(world, asked, measured):
    pairs = measured.pairs
    assert (
        len(pairs.known) == 30 + 6
    )  # the planted ones, without the one not indexed and the halves
    assert len(pairs.shared_missed) == 6
    assert dict(pairs.known)["domain"] == pytest.approx(0.05, abs=1e-6)
    assert np.median([cosine for _, cosine in pairs.random]) == pytest.approx(0, abs=1e-6)
    assert (measured.embedding, measured.corpus) == (asked[1].name, len(world.passages))
    assert (measured.whole, measured.split) == (0, 1)


def test_texts_are_embedded_once_and_in_one_batch(world):
    async def run():
        traces, embedder = await world.asked(K, depth=100)
        await measure_misses(world.cases, traces, K, embedder=embedder, corpus=corpus_of(world))
        return embedder.model.batches

    (batch,) = asyncio.run(run())
    assert len(batch) == len(set(batch)) == len(world.passages)


def test_without_an_embedder_and_a_corpus_words_and_ranks_still_tell(world, asked):
    found = asyncio.run(measure_misses(world.cases, asked[0], K, embedder=None, corpus=None))
    (lost,) = found.missed["cut"]
    seen = {p.id for trace in asked[0] for p in (*trace.retrieved, *trace.deeper)}
    assert lost.measured["pool"] == len(seen) < len(world.passages)
    assert not {"cosine", "cosine_kth", "cosine_percentile", "dense_rank"} & set(lost.measured)
    assert {"shared_stems", "shared_stems_percentile", "bm25_rank"} <= set(lost.measured)
    assert (found.embedding, found.corpus, found.pairs.known) == (None, None, ())
    (lost,) = found.missed["none"]  # not within the depth is not the same as not in the index
    assert lost.miss_type is None
    assert "not among the retriever's first 100" in lost.reason


def test_another_corpus_than_the_apps_cannot_say_what_is_not_indexed(world, asked):
    other = [Passage(id=f"other{at}", text=f"text {at}", rank=at) for at in range(1, 9)]
    found = asyncio.run(measure_misses(world.cases, asked[0], K, embedder=None, corpus=other))
    assert found.missed["none"][0].miss_type is None


def test_evidence_that_no_chunk_carries_is_not_indexed_but_a_deep_one_is():
    corpus = [Passage(id=f"p{at}", text=f"chunk number {at}", rank=at) for at in range(1, 9)]
    corpus.append(Passage(id="deep", text=f"Before. {EVIDENCE} After.", rank=9))
    cases = [
        Case(id="deep", question="winter timetable", evidence=[EVIDENCE]),
        Case(id="gone", question="winter timetable", evidence=["Nobody ever wrote this sentence."]),
    ]
    traces = [Trace(case_id=case.id, retrieved=corpus[:2], depth=5) for case in cases]
    found = asyncio.run(measure_misses(cases, traces, 2, embedder=None, corpus=corpus))
    (deep,), (gone,) = found.missed["deep"], found.missed["gone"]
    assert (deep.passage_id, deep.text, deep.true_rank) == ("deep", corpus[-1].text, None)
    assert deep.status == "not_retrieved"
    assert deep.measured["bm25_rank"] == 1
    assert (gone.status, gone.miss_type) == ("not_indexed", None)


def test_evidence_cut_in_two_is_found_in_the_corpus_where_no_half_was_retrieved():
    corpus = [Passage(id=f"p{at}", text=f"chunk number {at}", rank=at) for at in range(1, 5)]
    corpus.append(Passage(id="one", text=f"Before. {EVIDENCE[:35]}", rank=5))
    corpus.append(Passage(id="two", text=f"{EVIDENCE[35:]} After.", rank=6))
    case = Case(id="c", question="winter timetable", evidence=[EVIDENCE])
    trace = Trace(case_id="c", retrieved=corpus[:2], depth=2)
    (lost,) = asyncio.run(measure_misses([case], [trace], 2, embedder=None, corpus=corpus)).missed[
        "c"
    ]
    assert lost.miss_type == "split_evidence"
    assert "'one' and 'two'" in lost.reason


def test_a_passage_that_did_not_reach_the_prompt_was_dropped():
    retrieved = [
        Passage(id=name, text=f"text of {name}", rank=at) for at, name in enumerate("abcde", 1)
    ]
    cases = [Case(id=name, question="which", relevant=[name]) for name in "bd"]
    traces = [
        Trace(case_id="b", retrieved=retrieved, prompted=["a"]),
        Trace(case_id="d", retrieved=retrieved, prompted=["a", "e"]),
    ]
    found = asyncio.run(measure_misses(cases, traces, 2, embedder=None, corpus=None))
    assert found.missed["b"][0].status == "dropped_from_prompt"
    assert found.missed["d"][0].status == "dropped_from_prompt"
    assert "while 'e' from behind it did" in found.missed["d"][0].reason
    unseen = [trace.model_copy(update={"prompted": None}) for trace in traces]
    found = asyncio.run(measure_misses(cases, unseen, 2, embedder=None, corpus=None))
    assert found.missed["b"] == ()
    assert found.missed["d"][0].miss_type == "below_cutoff"


def test_a_copy_of_the_missed_passage_in_the_context_is_told():
    text = "The ferry to Holm leaves at seven in the morning from the northern pier every day."
    retrieved = [Passage(id="copy", text=text, rank=1), Passage(id="gold", text=text + "!", rank=2)]
    case = Case(id="c", question="when does the ferry leave", relevant=["gold"])
    trace = Trace(case_id="c", retrieved=retrieved)
    (lost,) = asyncio.run(measure_misses([case], [trace], 1, embedder=None, corpus=None)).missed[
        "c"
    ]
    assert lost.reason.endswith("'copy', which was in the prompt, says nearly the same")


def test_few_known_pairs_say_nothing_of_the_domain():
    world = World()
    fill(world, MIN_PAIRS - 1)
    world.case("domain", "bilge pump thermostat", relevant=["p-domain"])
    world.passage("p-domain", "bilge pump lists of the harbour office", domain=0.05)
    rivals(world, "domain", *FAR)
    decoys(world, "domain", "bilge pump thermostat")

    async def miss_type():
        traces, embedder = await world.asked(K, depth=100)
        corpus = corpus_of(world)
        found = await measure_misses(world.cases, traces, K, embedder=embedder, corpus=corpus)
        return found.missed["domain"][0].miss_type

    assert asyncio.run(miss_type()) != "domain_mismatch"
    world.case("f-more", "alpha-more beta-more", relevant=["known-more"])
    world.passage("known-more", "alpha-more and others", **{"f-more": 0.8})
    assert asyncio.run(miss_type()) == "domain_mismatch"


def test_the_order_of_the_cases_changes_nothing(world, asked, measured):
    traces, embedder = asked
    backwards = asyncio.run(
        measure_misses(
            world.cases[::-1], traces[::-1], K, embedder=embedder, corpus=corpus_of(world)
        )
    )
    assert {k: v for k, v in backwards.missed.items() if v} == {
        k: v for k, v in measured.missed.items() if v
    }


def test_everything_measured_is_json_without_nan(measured):
    for lost in (one for missed in measured.missed.values() for one in missed):
        json.loads(json.dumps(lost.model_dump(), allow_nan=False))


def test_nothing_given_nothing_measured():
    found = asyncio.run(measure_misses([], [], K, embedder=None, corpus=None))
    assert (found.missed, found.corpus) == ({}, None)
    found = asyncio.run(measure_misses([], [], K, embedder=None, corpus=[]))
    assert found.corpus == 0


def test_a_search_without_labels_fuses_words_and_meaning():
    corpus = [
        Passage(id="soup", text="The cafe sells soup and coffee.", rank=1),
        Passage(id="boat", text="Vessels sail at dawn.", rank=2),
        Passage(id="ferry", text="A ferry is a boat.", rank=3),
    ]
    case = Case(id="c", question="When does the ferry leave?")
    trace = Trace(case_id="c", retrieved=corpus[:1], prompted=["soup"], answer="At noon.")
    alone = asyncio.run(measure_misses([case], [trace], 1, embedder=None, corpus=corpus))
    queries = [case.question, "It leaves at noon."]
    (by_words,) = alone.search(queries, trace, 1)
    assert (by_words.passage_id, by_words.bm25_rank, by_words.miss_type) == (
        "ferry",
        1,
        "keyword_match",
    )
    # Nothing is won by keyword search where the app's own is one.
    call = RetrieverCall(query=case.question, passages=("soup",), retriever="BM25Retriever")
    (own,) = alone.search(queries, trace.model_copy(update={"calls": (call,)}), 1)
    assert (own.passage_id, own.miss_type) == ("ferry", None)
    fused = replace(alone, nearest={case.question: [1, 2, 0]})
    both = {miss.passage_id: miss for miss in fused.search(queries, trace, 1)}
    assert list(both) == ["ferry", "boat"]  # both searches find it, one alone
    assert both["boat"].measured == {
        "dense_rank": 1,
        "bm25_rank": 3,  # of three: no word of the question is in it
        "shared_stems": 0,
        "pool": 3,
    }
    assert both["boat"].miss_type == "vocabulary_mismatch"


def test_texts_without_a_word_break_nothing():
    hostile = ["???", "\u202e?\u0000", "\U0001f600", "a" * 50_000, "\n\n"]
    retrieved = [Passage(id=f"p{at}", text=text, rank=at) for at, text in enumerate(hostile, 1)]
    cases = [Case(id=str(at), question=text.strip() or "x", relevant=["p4", "p5", "zz"])
             for at, text in enumerate(hostile)]  # fmt: skip
    traces = [Trace(case_id=case.id, retrieved=retrieved) for case in cases]
    found = asyncio.run(measure_misses(cases, traces, 1, embedder=None, corpus=retrieved))
    assert all(len(missed) == 3 for missed in found.missed.values())


@pytest.fixture
def meaning():
    draw = np.random.default_rng(7)

    def unit(rows):
        made = draw.standard_normal((rows, 12)).astype(np.float32)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    given = unit(30)
    given[3] = 0  # a blank text is near nothing
    return EmbeddingSimilarity(
        {f"q{n}": vector for n, vector in enumerate(unit(20))},
        {f"p{n}": vector for n, vector in enumerate(given)},
    )


def test_a_cosine_is_the_product_of_its_two_vectors(meaning):
    for q, p in (("q0", "p0"), ("q19", "p29"), ("q7", "p3")):
        product = meaning.questions[q].astype(float) @ meaning.passages[p].astype(float)
        assert meaning.cosine(q, p) == pytest.approx(product, abs=1e-6)


def test_what_was_not_embedded_has_no_cosine_and_no_rank(meaning):
    assert meaning.cosine("q20", "p0") is meaning.cosine("q0", "p30") is None
    assert meaning.ranks([("q20", "p0"), ("q0", "p30")], {"p0": 0}) == {}


def test_a_rank_by_cosine_counts_the_nearer_ones_alone(meaning):
    places = {f"p{n}": n for n in range(30)}
    ranks = meaning.ranks([(f"q{q}", f"p{p}") for q in range(20) for p in range(30)], places)
    for q in range(20):
        nearest = sorted(range(30), key=lambda p: -meaning.cosine(f"q{q}", f"p{p}"))
        assert [ranks[f"q{q}", f"p{p}"] for p in nearest] == list(range(1, 31))


SYLLABLES = ["the ", "cat ", "sat ", "on ", "a ", "mat, ", "ten ", "often. ", "Caf\u00e9 ", "1.5 "]


def corpus_and_needs(seed):
    """A text cut into chunks, and pieces of it: some within a chunk, some over a boundary."""
    generator = np.random.default_rng(seed)
    text = "".join(generator.choice(SYLLABLES, 400))
    cuts = [0, *sorted(generator.choice(len(text), 12, replace=False)), len(text)]
    chunks = [text[at:end] for at, end in pairwise(cuts)]
    passages = [Passage(id=f"p{at}", text=c, rank=at) for at, c in enumerate(chunks, 1)]
    starts = generator.integers(0, len(text) - 90, 40)
    pieces = [text[at : at + generator.integers(8, 90)] for at in starts]
    return passages, [
        LabelledNeed(f"evidence-{at}", 1, piece) for at, piece in enumerate(pieces, 1)
    ]


def test_one_search_over_all_texts_finds_what_each_passage_holds():
    whole = split = nowhere = 0
    for seed in range(20):
        passages, needs = corpus_and_needs(seed)
        pool = PassagePool([], passages)
        for need in needs:
            found = pool.locate(need)
            alone = [one for one in passages if satisfies(need, one)]
            together = match_needs([need], passages)
            if alone:
                assert found.passages == (alone[0],)
                whole += 1
            elif together:
                assert found.split
                assert found.passages == together[0].passages
                split += 1
            else:
                assert found is None
                nowhere += 1
    assert min(whole, split, nowhere) > 20


def test_without_a_listed_corpus_a_passage_is_known_by_its_id_and_nothing_is_lacking():
    seen = Passage(id="a", text="text", rank=1)
    pool = PassagePool([Trace(case_id="c", retrieved=[seen])], None)
    assert pool.passages == (seen,)
    assert pool.locate(LabelledNeed("a", 1)).passages == (seen,)
    assert pool.locate(LabelledNeed("a", 1, evidence="text")) is None
    assert not pool.lacks(LabelledNeed("z", 1))


def test_a_passage_listed_without_a_text_is_not_lacking():
    pool = PassagePool([], [Passage(id="bare", rank=1), Passage(id="full", text="text", rank=2)])
    assert not pool.lacks(LabelledNeed("bare", 1))
    assert pool.lacks(LabelledNeed("other", 1))
    assert list(pool.position) == ["full"]


def test_a_corpus_that_knows_the_texts_by_other_ids_can_lack_an_evidence_but_no_id():
    trace = Trace(case_id="c", retrieved=[Passage(id="app-1", text="The Text.", rank=1)])
    pool = PassagePool([trace], [Passage(id="file-1", text="the text.", rank=1)])
    assert pool.lacks(LabelledNeed("evidence-1", 1, "Something else entirely."))
    assert not pool.lacks(LabelledNeed("app-2", 1))
