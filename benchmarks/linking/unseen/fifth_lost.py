"""Fifth set: what the model needed was lost before it."""

from __future__ import annotations

from .cases import (
    DROPPED,
    LOST,
    MISS,
    NOT_INDEXED,
    OLD_COPY,
    altered,
    plan,
    start,
    with_it,
    wrong,
)
from .cases import fifth_kind as kind
from .fifth import (
    NUMBER,
    enumerated,
    fact,
    no_answer,
    page,
    row,
    sentence,
    state,
    table_page,
    texts,
)
from .german import DECLINES, GERMAN, german_answer, german_question, proper_name
from .planted import App, Planted, Say
from .third_lost import UNKNOWABLE

FORMS = ("markdown", "semicolons", "html")
GERMAN_LEADS = ("Auf einen Blick.", "Häufige Fragen.", "Aus dem Merkblatt.", "Kurz gesagt:")
GERMAN_TAILS = (
    "Weitere Auskünfte gibt das Büro am Vormittag.",
    "Änderungen bleiben vorbehalten.",
    "Diese Seite gibt es auch zum Ausdrucken.",
    "Stand der Angaben ist der letzte Herbst.",
)
GERMAN_ONES = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
GERMAN_TENS = {2: "zwanzig", 3: "dreißig"}

# The retriever did not return what it needed.


@kind
def negated_question_finds_the_opposite(app: App) -> Planted:
    """Asked is what does not hold; the page on what does comes, and the answer takes it from there.

    The page that says what does not hold is in the index, at rank 8 of a search for the question.
    """
    thing, words = app.thing(), texts(app)["negated"]
    held, unheld = words["is"], words["isnt"]
    found = page(app, state(app, thing, ("does", held), text=words["does"], v=held))
    needed = page(app, state(app, thing, ("does not", unheld), text=words["not"], v=unheld))
    said = sentence(words["answer"], e=thing.name, v=held)
    reference = sentence(words["reference"], e=thing.name, v=unheld)
    return plan(
        app, thing, "count", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "does not", unheld), answer=(Say(said, fact(thing, "does not", held)),),
        references=(Say(reference, fact(thing, "does not", unheld)),), relevant=(needed,),
        retrieved=(found, thing.first, *app.neighbors("count", 2, thing)),
        owner="retriever", modes=MISS, lost="rank", deeper=((needed, 8),), depth=50,
    )  # fmt: skip


@kind
def list_over_more_passages_than_fit(app: App) -> Planted:
    """Six things are what the question asks for, each in a passage of its own; the search returns four.

    The answer names the four: all that it could. The other two rank 5th and 9th.
    """
    words = texts(app)["rare"]
    things = [app.thing(plain=words["value"]) for _ in range(6)]
    chunks = [one.chunk("plain") for one in things]
    needs = tuple(((one.name, "plain"), words["value"]) for one in things)
    said = sentence(words["answer"], names=enumerated([one.name for one in things[:4]]))
    return Planted(
        question=words["question"], needs=needs, answer=(Say(said, needs[:4]),),
        references=tuple(app.answer(one, "plain") for one in things), relevant=tuple(chunks),
        retrieved=tuple(app.shuffled(chunks[:4])), response="partly", owner="retriever",
        modes=MISS, lost="rank", deeper=((chunks[4], 5), (chunks[5], 9)), depth=50,
    )  # fmt: skip


@kind
def row_of_a_table_ranks_low(app: App) -> Planted:
    """The value stands in a row of a table, which vectors rank behind prose on others. It guesses.

    Table and header are in one chunk and whole, so that nothing but the rank is to blame.
    """
    thing, chunk, _ = table_page(app, FORMS[NUMBER[app.world["name"]] % 3])
    asked = app.draw.choice(("person", "count", "form"))
    return plan(
        app, thing, asked, wording=0, retrieved=tuple(app.neighbors(asked, 4)),
        answer=wrong(app, thing, asked), owner="retriever", modes=MISS, lost="rank",
        deeper=((chunk, 15),), depth=50,
    )  # fmt: skip


@kind
def limited_to_the_language_of_the_user(app: App) -> Planted:
    """A German question, and a filter lets German pages through only; the needed one is English.

    No depth of the search would return it. The app declines, in German.
    """
    thing = app.thing()
    others = app.draw.sample([one for one in app.things if one is not thing], 4)
    found = tuple(
        app.index(f"{lead} {german_answer(app, other)} {app.draw.choice(GERMAN_TAILS)}")
        for lead, other in zip(GERMAN_LEADS, others, strict=True)
    )
    return plan(
        app, thing, "count", question=german_question(app, thing), retrieved=found,
        answer=(Say(DECLINES),), response="declines", owner="retriever", modes=MISS,
        lost="filter", deeper=(), depth=50,
    )  # fmt: skip


@kind
def long_message_buries_the_question(app: App) -> Planted:
    """A letter full of other matters has the question in its last lines; pages on the rest come.

    The app searches for the message as it is, so that the query lost nothing. It declines or guesses.
    """
    thing, asked = start(app)
    words = texts(app)
    found = [page(app, words["story"][0]), page(app, words["story"][1])]
    found += app.neighbors(asked, 2, thing)
    declines = app.draw.random() < 0.5
    return plan(
        app, thing, asked, question=words["mail"].format(q=app.ask(thing, asked)),
        retrieved=tuple(found), answer=no_answer(app) if declines else wrong(app, thing, asked),
        response="declines" if declines else "answers", owner="retriever", modes=MISS,
        lost="rank", deeper=((thing.chunk(asked), 18),), depth=50,
    )  # fmt: skip


@kind
def only_the_note_of_a_new_name_found(app: App) -> Planted:
    """Asked by its new name; the note on the renaming comes, the passage under the old name does not.

    One search, for the question as it is; the passage ranks 11th. The app declines.
    """
    thing, asked = start(app)
    new = app.world["thing"].format(n=next(app.names))
    old_name, new_name = proper_name(thing), new.removeprefix("the ").split()[0]
    note = page(app, sentence(texts(app)["renamed"], new=new, old=thing.name))
    reference = app.reference(thing, asked)
    renamed = Say(reference.text.replace(old_name, new_name), reference.stated)
    return plan(
        app, thing, asked, question=app.ask(thing, asked, 0).replace(old_name, new_name),
        references=(renamed,), relevant=(thing.chunk(asked), note),
        retrieved=(note, *app.neighbors(asked, 3, thing)), answer=no_answer(app),
        response="declines", owner="retriever", modes=MISS, lost="rank",
        deeper=((thing.chunk(asked), 11),), depth=50,
    )  # fmt: skip


# The index lacked it, or had it wrong.


@kind
def merged_cell_left_empty(app: App) -> Planted:
    """A cell that spans three rows came out in the first row alone, and the table was split behind it.

    The row of the page, which is the label, has the value; the row in the index does not. It declines.
    """
    one, *rest = (app.thing(indexed=False) for _ in range(3))
    for each in (one, *rest):
        app.things.remove(each)
        each.values["plain"] = one.values["plain"]
    form = FORMS[NUMBER[app.world["name"]] % 3]
    nouns = [app.world[column]["noun"].removeprefix("the ") for column in ("plain", "count")]
    lead = app.draw.choice(texts(app)["lead"])
    whole = row((one.name, one.values["plain"], one.values["count"]), form)
    head = app.index("\n".join([lead, row(("name", *nouns), form), whole]))
    lines = [row((each.name, "", each.values["count"]), form) for each in rest]
    one.first = one.second = head
    below = app.index("\n".join([*lines, app.draw.choice(app.world["filler"])]))
    thing = app.draw.choice(rest)
    return plan(
        app, thing, "plain", retrieved=(below, *app.neighbors("plain", 2), head), relevant=(),
        evidence=(row((thing.name, thing.values["plain"], thing.values["count"]), form),),
        answer=no_answer(app), response="declines", owner="index", modes=NOT_INDEXED,
        lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def deleted_text_of_a_revision_kept(app: App) -> Planted:
    """The loader took the deleted words of tracked changes as well as the inserted ones.

    Old and new value stand side by side, and nothing tells which holds; the app takes the old one.
    """
    thing, asked = app.thing(), app.draw.choice(("person", "form", "plain"))
    chunk, new = thing.chunk(asked), thing.values[asked]
    old = app.other(asked, new)
    clean = app.state(thing, asked, wording=0)
    both = clean.replace(new, texts(app)["tracked"].format(old=old, new=new))
    app.register(both, ((thing.name, asked), old), ((thing.name, asked), new))
    indexed = app.state(thing, asked, wording=thing.wording)
    app.corpus[chunk] = app.corpus[chunk].replace(indexed, both)
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(clean,),
        answer=(app.answer(thing, asked, old),), owner="index", modes=OLD_COPY, lost="index",
        depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def machine_translation_swaps_digits(app: App) -> Planted:
    """German pages are translated when they are indexed: vierundzwanzig became 42. The app repeats it.

    The label is the sentence of the German page.
    """
    hundreds = "1" if app.world["name"] in ("lighthouses", "tariffs") else ""
    digits = app.draw.choice(("24", "26", "27", "28", "34", "36", "38"))
    thing = app.thing(count=f"{hundreds}{digits}")
    tens, ones = (int(one) for one in digits)
    spelled = f"{'hundert' * bool(hundreds)}{GERMAN_ONES[ones]}und{GERMAN_TENS[tens]}"
    german = GERMAN[app.world["name"]][1].format(n=proper_name(thing), v=spelled)
    mistaken = f"{hundreds}{digits[::-1]}"
    chunk = thing.chunk("count")
    app.corpus[chunk] = altered(app, app.corpus[chunk], thing, "count", mistaken)
    found = with_it(app, thing, "count")
    app.things.remove(thing)
    return plan(
        app, thing, "count", retrieved=found, evidence=(german,),
        answer=(app.answer(thing, "count", mistaken),), owner="index", modes=OLD_COPY,
        lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def unfolded_sections_not_loaded(app: App) -> Planted:
    """The crawler saw the page with its sections folded: headings, and nothing below. It declines."""
    thing, asked = start(app)
    clean = app.state(thing, asked, wording=0)
    folded = sentence(texts(app)["collapsed"], e=thing.name)
    app.corpus[thing.chunk(asked)] = f"{folded} {app.draw.choice(app.world['filler'])}"
    found = with_it(app, thing, asked)
    app.things.remove(thing)
    return plan(
        app, thing, asked, retrieved=found, evidence=(clean,), answer=no_answer(app),
        response="declines", owner="index", modes=NOT_INDEXED, lost="index", depth=50,
        without_references=UNKNOWABLE,
    )  # fmt: skip


@kind
def taken_for_a_duplicate(app: App) -> Planted:
    """When pages were indexed, one that differs in name and value alone was dropped as a copy.

    The page of the other thing is found. The app declines, or takes that one's value.
    """
    thing = app.thing(indexed=False)
    while thing.values["form"].startswith(f"{thing.values['count']} "):
        app.things.remove(thing)
        thing = app.thing(indexed=False)
    asked = thing.order[0]
    values = thing.values | {asked: app.other(asked, thing.values[asked])}
    twin = app.thing(indexed=False, **values)
    twin.wording, twin.order = thing.wording, thing.order
    text = app.passage(thing, thing.order[:2]).replace(proper_name(thing), proper_name(twin))
    for one in twin.order[:2]:
        app.state(twin, one)
    template = app.world[asked]["passage"][twin.wording]
    before, after = (sentence(template, e=twin.name, v=one.values[asked]) for one in (thing, twin))
    twin.first = app.index(text.replace(before, after))
    twin.second = app.index(app.passage(twin, twin.order[2:]))
    thing.first = f"unindexed-{len(app.corpus)}"
    thing.second = app.index(app.passage(thing, thing.order[2:]))
    found = (twin.first, thing.second, *app.neighbors(asked, 2, thing, twin))
    app.things.remove(thing)
    declines = app.draw.random() < 0.5
    said = no_answer(app) if declines else (app.answer(thing, asked, twin.values[asked]),)
    return plan(
        app, thing, asked, retrieved=found, answer=said,
        response="declines" if declines else "answers", owner="index", modes=NOT_INDEXED,
        lost="index", depth=50, without_references=UNKNOWABLE,
    )  # fmt: skip


# Lost between search and prompt, or before the search.


@kind
def template_prints_the_metadata(app: App) -> Planted:
    """The template prints file, page and score of each passage, and not its text. The app declines."""
    thing, asked = start(app)
    found = with_it(app, thing, asked)
    template = texts(app)["metadata"]
    return plan(
        app, thing, asked, retrieved=found, answer=no_answer(app), response="declines",
        shown=tuple(template.format(id=one, n=n) for n, one in enumerate(found, 1)),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def long_conversation_crowds_out_the_passages(app: App) -> Planted:
    """The conversation fills the window, and what was found is left out. It declines or guesses."""
    thing, asked = start(app)
    history = [
        one
        for asked_before in texts(app)["chat"]
        for one in (
            {"role": "user", "content": asked_before},
            {"role": "assistant", "content": " ".join(app.draw.sample(app.world["filler"], 4))},
        )
    ]
    declines = app.draw.random() < 0.5
    return plan(
        app, thing, asked, retrieved=with_it(app, thing, asked), shown=(), history=tuple(history),
        answer=no_answer(app) if declines else wrong(app, thing, asked),
        response="declines" if declines else "answers", owner="prompt", modes=DROPPED,
        lost="prompt",
    )  # fmt: skip


@kind
def query_cut_off_before_the_name(app: App) -> Planted:
    """The app cuts queries off after so many characters; what is asked comes later. It guesses."""
    thing, asked = start(app)
    noun = app.world[asked]["noun"]
    question = texts(app)["preamble"].format(noun=noun, e=thing.name)
    query = question[: min(110, question.index(f"{noun} of {thing.name}"))].strip()
    found = app.neighbors(app.draw.choice([one for one in thing.order if one != asked]), 4, thing)
    return plan(
        app, thing, asked, question=question, retrieved=tuple(found),
        calls=({"query": query, "passages": found},), answer=wrong(app, thing, asked),
        owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def rewriting_changes_the_year(app: App) -> Planted:
    """Asked is 2024; the rewritten query says 2023, and so does what it finds. It is taken for 2024's."""
    thing, words = app.thing(), texts(app)["year"]
    before, now = app.draw.sample(words["values"], 2)
    pages = {
        year: page(app, state(app, thing, (year, value), text=words["sentence"], y=year, v=value))
        for year, value in (("2023", before), ("2024", now))
    }
    question = sentence(words["question"], e=thing.name)
    query = question.replace("2024", "2023")
    if app.draw.random() < 0.5:
        query = query.removesuffix("?").lower()
    found = [pages["2023"], thing.first, *app.neighbors("count", 2, thing)]
    said, reference = (
        Say(sentence(words["sentence"], e=thing.name, y="2024", v=one), fact(thing, "2024", one))
        for one in (before, now)
    )
    return plan(
        app, thing, "count", question=question, needs=fact(thing, "2024", now), answer=(said,),
        references=(reference,), relevant=(pages["2024"],), retrieved=tuple(found),
        calls=({"query": query, "passages": found},), owner="prompt", modes=LOST, lost="search",
    )  # fmt: skip


@kind
def tables_stripped_from_the_prompt(app: App) -> Planted:
    """The page with the table is found; the cleaner of the prompt leaves its prose. The app declines."""
    thing, chunk, prose = table_page(app, ("html", "markdown")[NUMBER[app.world["name"]] % 2])
    asked = app.draw.choice(("person", "count", "form"))
    found = [*app.neighbors(asked, 3)]
    found.insert(app.draw.randrange(4), chunk)
    shown = tuple(" ".join(prose) if one == chunk else app.corpus[one] for one in found)
    return plan(
        app, thing, asked, retrieved=tuple(found), shown=shown, answer=no_answer(app),
        response="declines", owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip


@kind
def compressor_drops_the_negation(app: App) -> Planted:
    """A compressor makes one line of each passage, and of what is not so what is. The answer follows."""
    thing, words = app.thing(), texts(app)["ban"]
    needed = page(app, state(app, thing, ("so", "no"), text=words["no"]))
    opposite = state(app, thing, ("so", "yes"), text=words["yes"])
    found = [thing.second, needed, *app.neighbors("plain", 2, thing)]
    shown = tuple(
        opposite if one == needed else app.corpus[one].split(". ")[0].rstrip(".") + "."
        for one in found
    )
    return plan(
        app, thing, "plain", question=sentence(words["question"], e=thing.name),
        needs=fact(thing, "so", "no"), relevant=(needed,), retrieved=tuple(found), shown=shown,
        answer=(Say(sentence(words["answer"], e=thing.name), fact(thing, "so", "yes")),),
        references=(Say(sentence(words["reference"], e=thing.name), fact(thing, "so", "no")),),
        owner="prompt", modes=DROPPED, lost="prompt",
    )  # fmt: skip
