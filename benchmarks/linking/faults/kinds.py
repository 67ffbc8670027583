"""The kinds of failure that are planted in a world of facts, and who has to fix each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from langchain_core.documents import Document

from faults.facts import CASES, Fact, World
from misslink.types import Case

CONTEXT = 5  # passages in the prompt
FAR_RANK = 12  # of a missed passage; more than two times the context
DECLINES = "I don't know."
EVADES = "What exactly do you want to do?"  # a question needs no claim


@dataclass(frozen=True)
class Staged:
    """One case: what its app retrieves and answers, and what is true of it.

    ``context`` are the passages that the prompt would get, ``withheld`` the ids among them that are
    kept from it, ``far`` those that stand from `FAR_RANK` on, ``added`` those that only this index
    holds and ``unindexed`` the ids that it lacks. ``asked`` are the true facts, ``claims`` the
    answer's claims and ``reference_claims`` the reference's.
    """

    case: Case
    asked: tuple[Fact, ...]
    context: tuple[Document, ...] = ()
    far: tuple[Document, ...] = ()
    added: tuple[Document, ...] = ()
    withheld: frozenset[str] = frozenset()
    unindexed: frozenset[str] = frozenset()
    claims: tuple[str, ...] = ()
    reference_claims: tuple[str, ...] = ()
    states_reference: bool = False
    response: str = "answers"
    words: str | None = None  # of an answer that claims nothing

    @property
    def answer(self) -> str:
        """What the model says."""
        return " ".join(self.claims) if self.words is None else self.words

    def arranged(self, found: Sequence[Document]) -> list[Document]:
        """The search results as this case gets them."""
        placed = {str(document.id) for document in (*self.context, *self.far)}
        about = {fact.subject for fact in self.asked}
        others = [
            document
            for document in found
            if document.id not in placed and document.metadata.get("subject") not in about
        ]
        fill = FAR_RANK - 1 - len(self.context)
        return [*self.context, *others[:fill], *self.far, *others[fill:]]


class Scene:
    """One subject of a world, and the pieces that a kind puts together.

    Parameters
    ----------
    world : World
    subject : str
    parts : int
        How many facts the question asks for.
    """

    def __init__(self, world: World, subject: str, case_id: str) -> None:
        self.world, self.subject, self.case_id = world, subject, case_id
        attributes = list(world.domain.attributes)
        world.rng.shuffle(attributes)
        self.facts = tuple(world.fact(subject, name) for name in attributes)
        others = list(world.subjects[CASES:])
        world.rng.shuffle(others)
        self.others = others

    def document(self, fact: Fact, name: str = "", frame: int = 0) -> Document:
        """The passage of a fact; a `name` makes another passage that says the same."""
        return Document(
            id=f"{fact.subject}-{fact.attribute}{name}".lower(),
            page_content=self.world.passage(fact, frame=frame),
            metadata={"subject": fact.subject},
        )

    def noise(self, count: int) -> list[Document]:
        """Passages about other subjects, each about the first attribute asked."""
        attribute = self.facts[0].attribute
        return [self.document(self.world.fact(other, attribute)) for other in self.others[:count]]

    def staged(
        self,
        parts: int,
        there: Sequence[Document] = (),
        *,
        claims: Sequence[Fact] = (),
        gold: Sequence[Document] | None = None,
        reference: Sequence[Fact] | None = None,
        answerable: bool | None = None,
        by_evidence: bool = False,
        **more: object,
    ) -> Staged:
        """A case that asks for the first `parts` facts, with `there` first in its context."""
        asked = self.facts[:parts]
        if gold is None:
            gold = [self.document(fact) for fact in asked]
        stated = [self.world.claim(fact) for fact in (asked if reference is None else reference)]
        labels: dict[str, object] = {"relevant": {str(one.id): 1 for one in gold}}
        if by_evidence:
            labels = {"evidence": {self.world.claim(fact): 1 for fact in asked}}
        case = Case(
            id=self.case_id,
            question=self.world.question(asked),
            references=(" ".join(stated),) if stated else (),
            answerable=answerable,
            **labels,
        )
        if stated:
            self.world.asserted[" ".join(stated)] = tuple(asked if reference is None else reference)
        return Staged(
            case=case,
            asked=tuple(asked),
            context=(*there, *self.noise(CONTEXT - len(there))),
            claims=tuple(self.world.claim(fact) for fact in claims),
            reference_claims=tuple(stated),
            **more,  # type: ignore[arg-type]
        )

    def wrong(self, number: int) -> Fact:
        """The fact asked for as part `number`, with another value."""
        return self.world.wrong(self.facts[number])

    def invented(self) -> Fact:
        """A fact that nobody asked for and that no passage of the context states."""
        return self.world.wrong(self.facts[-1])


@dataclass(frozen=True)
class Kind:
    """A kind of failure, the mode that must be named, and the note of a passed case."""

    name: str
    failure: str
    stage: Callable[[Scene], Staged] = field(repr=False)
    note: str | None = None


def _missed(s: Scene, **more: object) -> Staged:
    staged = s.staged(1, **more)  # type: ignore[arg-type]
    return replace(staged, far=(s.document(s.facts[0]),))


def _partial(s: Scene, **more: object) -> Staged:
    """Two parts asked; the passage of the second is far down."""
    staged = s.staged(2, [s.document(s.facts[0])], **more)  # type: ignore[arg-type]
    return replace(staged, far=(s.document(s.facts[1]),))


def _hit(s: Scene, **more: object) -> Staged:
    return s.staged(1, [s.document(s.facts[0])], **more)  # type: ignore[arg-type]


def _hit_of_two(s: Scene, **more: object) -> Staged:
    return s.staged(2, [s.document(fact) for fact in s.facts[:2]], **more)  # type: ignore[arg-type]


def _redundant(s: Scene, **more: object) -> Staged:
    """Three passages say the same, all labelled; two reach the prompt."""
    first, second, third = (
        s.document(s.facts[0], name, frame) for name, frame in (("", 0), ("-b", 1), ("-c", 0))
    )
    gold = [first, second, third]
    staged = s.staged(1, [first, second], gold=gold, **more)  # type: ignore[arg-type]
    return replace(staged, far=(third,), added=(second, third))


def _unindexed(s: Scene, **more: object) -> Staged:
    staged = s.staged(1, by_evidence=True, **more)  # type: ignore[arg-type]
    return replace(staged, unindexed=frozenset({str(s.document(s.facts[0]).id)}))


def _dropped(s: Scene, **more: object) -> Staged:
    staged = _hit(s, **more)
    return replace(staged, withheld=frozenset({str(s.document(s.facts[0]).id)}))


def _unanswerable(s: Scene, **more: object) -> Staged:
    """No passage holds the answer, and the gold set says so."""
    staged = s.staged(1, gold=[], reference=[], answerable=False, **more)  # type: ignore[arg-type]
    return replace(staged, unindexed=frozenset({str(s.document(s.facts[0]).id)}))


def _stale(
    s: Scene, there: Sequence[Document], far: Sequence[Document] = (), **more: object
) -> Staged:
    copy = s.document(s.wrong(0), "-old")
    staged = s.staged(1, [copy, *there], claims=[s.wrong(0)], **more)  # type: ignore[arg-type]
    return replace(staged, far=tuple(far), added=(copy,))


def _other(s: Scene) -> Fact:
    """What the first passage of noise says."""
    return s.world.fact(s.others[0], s.facts[0].attribute)


def _unlisted(s: Scene) -> Staged:
    copy = s.document(s.facts[0], "-copy", 1)
    staged = s.staged(1, [copy], claims=s.facts[:1])
    return replace(staged, far=(s.document(s.facts[0]),), added=(copy,))


def _unlabelled(s: Scene, there: Sequence[Document] = (), **more: object) -> Staged:
    return s.staged(1, there, gold=[], answerable=True, **more)  # type: ignore[arg-type]


def _declined(staged: Staged) -> Staged:
    return replace(staged, words=DECLINES, response="declines")


KINDS = (
    # By evidence, like those that are not indexed: of none that matches nothing could be said.
    Kind("right", "passed", lambda s: _hit(s, claims=s.facts[:1], by_evidence=True)),
    Kind("right_two_parts", "passed", lambda s: _hit_of_two(s, claims=s.facts[:2])),
    Kind("declines_rightly", "passed", lambda s: _declined(_unanswerable(s))),
    Kind("redundant_right", "passed", lambda s: _redundant(s, claims=s.facts[:1])),
    Kind("miss_invents", "retrieval_miss", lambda s: _missed(s, claims=[s.wrong(0)])),
    Kind("miss_declines", "retrieval_miss", lambda s: _declined(_missed(s))),
    Kind("miss_from_noise", "retrieval_miss", lambda s: _missed(s, claims=[_other(s)])),
    Kind(
        "miss_right_unsupported", "retrieval_miss",
        lambda s: _missed(s, claims=s.facts[:1]),
    ),
    Kind(
        "miss_right_without_claims", "passed",
        lambda s: replace(_missed(s), words="Yes.", states_reference=True),
        note="answered_from_memory",
    ),
    Kind("miss_unlisted_copy", "passed", _unlisted, note="missing_label"),
    Kind("unindexed_invents", "not_indexed", lambda s: _unindexed(s, claims=[s.wrong(0)])),
    Kind("unindexed_declines", "not_indexed", lambda s: _declined(_unindexed(s))),
    Kind(
        "dropped_invents", "dropped_from_prompt",
        lambda s: _dropped(s, claims=[s.wrong(0)]),
    ),
    Kind("dropped_declines", "dropped_from_prompt", lambda s: _declined(_dropped(s))),
    Kind(
        "partial_invents_the_missed", "retrieval_miss",
        lambda s: _partial(s, claims=[s.facts[0], s.wrong(1)]),
    ),
    Kind(
        "partial_omits_the_missed", "retrieval_miss",
        lambda s: _partial(s, claims=s.facts[:1]),
    ),
    Kind(
        "partial_unlisted", "retrieval_miss",
        lambda s: _partial(
            s, claims=[s.facts[0], s.wrong(1)], gold=[s.document(s.facts[0])]
        ),
    ),
    Kind("partial_declines", "retrieval_miss", lambda s: _declined(_partial(s))),
    Kind(
        "partial_contradicts_the_present", "contradicts_context",
        lambda s: _partial(s, claims=[s.wrong(0)]),
    ),
    Kind(
        "redundant_contradicts", "contradicts_context",
        lambda s: _redundant(s, claims=[s.wrong(0)]),
    ),
    Kind("redundant_declines", "over_refused", lambda s: _declined(_redundant(s))),
    Kind(
        "hit_contradicts", "contradicts_context",
        lambda s: _hit(s, claims=[s.wrong(0)]),
    ),
    Kind(
        "hit_contradicts_without_reference", "contradicts_context",
        lambda s: _hit(s, claims=[s.wrong(0)], reference=[]),
    ),
    Kind("hit_invents", "ignored_context", lambda s: _hit(s, claims=[s.invented()])),
    Kind(
        "hit_adds_an_invention", "fabricated",
        lambda s: _hit(s, claims=[s.facts[0], s.invented()]),
    ),
    Kind("hit_declines", "over_refused", lambda s: _declined(_hit(s))),
    Kind(
        "hit_blank", "over_refused",
        lambda s: replace(_hit(s), words="", response="declines"),
    ),
    Kind(
        "hit_evades", "ignored_context",
        lambda s: replace(_hit(s), words=EVADES, response="evades"),
    ),
    Kind("hit_distracted", "distracted", lambda s: _hit(s, claims=[_other(s)])),
    Kind("hit_incomplete", "incomplete", lambda s: _hit_of_two(s, claims=s.facts[:1])),
    Kind(
        "wrong_reference", "gold_suspect",
        lambda s: _hit(s, claims=s.facts[:1], reference=[s.wrong(0)]),
    ),
    Kind(
        "unlabelled_wrong_reference", "gold_suspect",
        lambda s: _unlabelled(
            s, [s.document(s.facts[0])], claims=s.facts[:1], reference=[s.wrong(0)]
        ),
    ),
    Kind(
        "wrong_unanswerable", "gold_suspect",
        lambda s: s.staged(
            1, [s.document(s.facts[0])], gold=[], reference=[], answerable=False,
            claims=s.facts[:1],
        ),
    ),
    Kind(
        "stale_copy_beside", "conflicting_sources",
        lambda s: _stale(s, [s.document(s.facts[0])]),
    ),
    Kind(
        "stale_copy_instead", "conflicting_sources",
        lambda s: _stale(s, [], [s.document(s.facts[0])]),
    ),
    Kind(
        "stale_copy_unlabelled", "conflicting_sources",
        lambda s: _stale(s, [s.document(s.facts[0])], gold=[], answerable=True),
    ),
    Kind(
        "unanswerable_invents", "should_have_abstained",
        lambda s: _unanswerable(s, claims=[s.wrong(0)]),
    ),
    Kind(
        "unanswerable_from_noise", "should_have_abstained",
        lambda s: _unanswerable(s, claims=[_other(s)]),
    ),
    Kind(
        "unlabelled_right", "passed",
        lambda s: _unlabelled(s, [s.document(s.facts[0])], claims=s.facts[:1]),
    ),
    Kind(
        "unlabelled_contradicts", "contradicts_context",
        lambda s: _unlabelled(s, [s.document(s.facts[0])], claims=[s.wrong(0)]),
    ),
    Kind(
        "unlabelled_declines", "over_refused",
        lambda s: _declined(_unlabelled(s, [s.document(s.facts[0])])),
    ),
    Kind(
        "unlabelled_miss", "retrieval_miss",
        lambda s: _unlabelled(s, claims=[s.wrong(0)]),
    ),
    Kind(
        "unlabelled_unindexed", "not_indexed",
        lambda s: replace(
            _unlabelled(s, claims=[s.wrong(0)]),
            unindexed=frozenset({str(s.document(s.facts[0]).id)}),
        ),
    ),
)  # fmt: skip
