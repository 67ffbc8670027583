"""Answers that say what a reference says, in other words, and answers that do not."""

import asyncio

import pytest

from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.registry import judged_metrics
from misslink.types import Case, Passage, Trace

OPENS = "When does the hall open?"
LONG = "How long is the trail?"
COSTS = "What does a ticket cost?"
BREAKFAST = "Is breakfast included?"
DOGS = "Are dogs allowed on the beach?"
WROTE = "Who wrote the report?"
SAME = (  # question, reference, answer
    (OPENS, "June 9, 2023", "It opens on 9 June 2023."),
    (OPENS, "9 June 2023", "The hall opens on 2023-06-09."),
    (OPENS, "June 9", "It opens on 9 June 2023."),
    (OPENS, "2023", "It opens on 9 June 2023."),
    (OPENS, "On Monday", "It opens on Mondays."),
    (OPENS, "half past eight in the evening", "At 20:30."),
    (OPENS, "9:15 pm", "It opens at 21:15."),
    (OPENS, "The hall opens at noon.", "It opens at 12:00."),
    (LONG, "12 km", "It is 12,000 metres long."),
    (LONG, "12", "The trail is twelve kilometres long."),
    (LONG, "7.5 miles", "The trail is about 12 km long."),
    ("How long does the tour take?", "75 minutes", "The tour takes an hour and a quarter, that is 1 h 15 min."),
    ("How heavy is it?", "2,5 kg", "It weighs 2500 grams."),
    ("How warm does it get?", "30 °C", "It gets as warm as 86 °F."),
    (COSTS, "$1.5 million", "It costs 1,500,000 dollars."),
    (COSTS, "12,50 €", "A ticket costs €12.50."),
    (COSTS, "60 cents", "It costs €0.60."),
    ("How many people came?", "25,000", "About 25.000 people came."),
    ("How many people came?", "25000 people", "25 thousand came."),
    ("What share was lost?", "a loss of 40 percent", "The loss was 40%."),
    ("Which place did she take?", "second", "She took 2nd place."),
    ("How much flour is needed?", "1/2 kg", "You need half a kilogram of flour, or 0.5 kg."),
    (BREAKFAST, "Yes.", "Breakfast is included."),
    (BREAKFAST, "Yes", "It is."),
    (BREAKFAST, "No", "It is not."),
    (BREAKFAST, "No, breakfast is not included.", "No."),
    (DOGS, "Yes, but only on a leash.", "Yes, dogs are allowed on a leash only."),
    (DOGS, "No.", "Dogs are not allowed on the beach."),
    (WROTE, "Okoro", "The report was written by Adaeze Okoro."),
    (WROTE, "Adaeze Okoro", "It was Okoro, Adaeze."),
    (WROTE, "Adaeze Okoro", "A. Okoro wrote it."),
    ("Which colors are there?", "black and white", "It comes in white or black."),
    ("Where was it found?", "in caves", "It was found in a cave near the coast."),
    ("What does the club sell?", "books, maps, and stamps", "- stamps\n- maps\n- books"),
    ("Who bought whom?", "Arden bought Tolmer", "Tolmer was bought by Arden for 4 million euros."),
    ("What is the fee?", "5 euros", "Until 2019 the fee was 3 euros. Now it is 5 euros."),
    # German
    ("Wann öffnet die Halle?", "am 3. März 2024", "Sie öffnet am 03.03.2024."),
    ("Wann öffnet die Halle?", "um halb neun", "Die Halle öffnet um 8:30 Uhr."),
    ("Wie lange dauert die Fahrt?", "anderthalb Stunden", "Die Fahrt dauert 90 Minuten."),
    ("Wie viele Menschen leben dort?", "12.500", "Dort leben 12500 Menschen."),
    ("Ist das Frühstück inbegriffen?", "Ja", "Ja, das Frühstück ist inbegriffen."),
    ("Ist das Frühstück inbegriffen?", "Nein.", "Das Frühstück ist nicht inbegriffen."),
    ("Wo liegt das Dorf?", "in den Bergen", "Das Dorf liegt in den Bergen."),
    # Chinese, Japanese, Korean, Thai
    ("会议什么时候开始\uff1f", "2024年5月3日", "会议于2024年5月3日开始。"),
    ("谁是作者\uff1f", "王小明", "作者是王小明。"),
    ("门票多少钱\uff1f", "50元", "门票每人50元。"),
    ("早餐包括在内吗\uff1f", "是的", "是的\uff0c早餐包括在内。"),
    ("本社はどこですか\uff1f", "横浜", "本社は横浜にあります。"),
    ("開館は何時ですか\uff1f", "午前9時", "9:00に開館します。"),
    ("본사는 어디에 있습니까?", "부산", "본사는 부산에 있습니다."),
    ("몇 명이 왔습니까?", "300명", "모두 300명이 왔습니다."),
    ("เมืองหลวงคือเมืองอะไร", "กรุงเทพมหานคร", "เมืองหลวงคือกรุงเทพมหานคร"),
    # languages with endings
    ("Missä konsertti pidetään?", "Tampere", "Konsertti pidetään Tampereella."),
    ("Где находится музей?", "Казань", "Музей находится в Казани."),
    ("Где находится музей?", "Москва", "Музей находится в Москве."),
    ("Gdzie jest muzeum?", "Kraków", "Muzeum jest w Krakowie."),
    ("Hol van a múzeum?", "Szeged", "A múzeum Szegeden van."),
    ("Müze nerede?", "İzmir", "Müze İzmir'de bulunuyor."),
    ("¿Está incluido el desayuno?", "Sí", "Sí, el desayuno está incluido."),
    ("¿Dónde está el museo?", "en Sevilla", "El museo se encuentra en Sevilla."),
    ("Où se trouve le musée ?", "à Lyon", "Le musée se trouve à Lyon."),
    ("أين يقع المتحف؟", "القاهرة", "يقع المتحف في القاهرة."),
)  # fmt: skip
OTHER = (
    (OPENS, "June 9, 2023", "It opens on 9 July 2023."),
    (OPENS, "9 June 2023", "The hall opens on 2023-06-10."),
    (OPENS, "9 June 2023", "It opens on 9 June 2032."),
    (OPENS, "June 9", "It opens in June."),
    (OPENS, "2023", "It opens on 9 June 2024."),
    (OPENS, "On Monday", "It opens on Tuesdays."),
    (OPENS, "half past eight in the evening", "At 21:30."),
    (OPENS, "9:15 pm", "It opens at 9:15 am."),
    (OPENS, "The hall opens at noon.", "It opens at midnight."),
    (LONG, "12 km", "It is 1,200 metres long."),
    (LONG, "12 km", "It is 12 miles long."),
    (LONG, "7.5 miles", "The trail is about 7.5 km long."),
    ("How long does the tour take?", "75 minutes", "The tour takes 1 h 20 min."),
    ("How heavy is it?", "2,5 kg", "It weighs 25 kg."),
    ("How cold does it get?", "-30 °C", "It gets as cold as 30 °C."),
    ("What was the result?", "a loss of \u2212200 euros", "The result was 200 euros."),
    (COSTS, "$1.5 million", "It costs 1.5 billion dollars."),
    (COSTS, "12,50 €", "A ticket costs €15.20."),
    (COSTS, "9 euros", "A ticket costs 9 dollars."),
    ("How many people came?", "25,000", "About 2,500 people came."),
    ("How many people came?", "25", "There were 52 people."),
    ("What share was lost?", "40 percent", "The loss was 14%."),
    ("Which place did she take?", "second", "She took 3rd place."),
    ("How much flour is needed?", "1/2 kg", "You need 2 kg of flour."),
    (BREAKFAST, "Yes.", "Breakfast is not included."),
    (BREAKFAST, "No", "It is."),
    (BREAKFAST, "No, breakfast is not included.", "Yes."),
    (BREAKFAST, "Yes, breakfast is included.", "Breakfast is extra."),
    (DOGS, "Yes, but only on a leash.", "No, dogs are not allowed."),
    (DOGS, "No.", "Dogs are allowed on the beach."),
    (WROTE, "Adaeze Okoro", "The report was written by Adaeze Okafor."),
    (WROTE, "Johanna Berg", "The report was written by Johan Berg."),
    (WROTE, "A. Okoro", "B. Okoro wrote it."),
    (WROTE, "Okoro", "It was not Okoro."),
    ("Which colors are there?", "black and white", "It comes in white or brown."),
    ("Where was it found?", "in caves", "It was found in a field near the coast."),
    ("What does the club sell?", "books, maps, and stamps", "- stamps\n- cards\n- books"),
    ("Is the shop open on Sundays?", "Yes, it is open on Sundays.", "It is closed on Sundays."),
    ("Is entry free?", "Yes", "Entry costs 5 euros."),
    ("Who bought whom?", "Arden bought Tolmer", "Tolmer bought Arden for 4 million euros."),
    # German
    ("Wann öffnet die Halle?", "am 3. März 2024", "Sie öffnet am 03.05.2024."),
    ("Wann öffnet die Halle?", "um halb neun", "Die Halle öffnet um 9:30 Uhr."),
    ("Wie lange dauert die Fahrt?", "anderthalb Stunden", "Die Fahrt dauert 80 Minuten."),
    ("Wie viele Menschen leben dort?", "12.500", "Dort leben 1250 Menschen."),
    ("Ist das Frühstück inbegriffen?", "Ja", "Nein, das Frühstück kostet extra."),
    ("Ist das Frühstück inbegriffen?", "Nein.", "Das Frühstück ist inbegriffen."),
    ("Wo liegt das Dorf?", "in den Bergen", "Das Dorf liegt an der Küste."),
    # Chinese, Japanese, Korean, Thai
    ("会议什么时候开始\uff1f", "2024年5月3日", "会议于2024年3月5日开始。"),
    ("谁是作者\uff1f", "王小明", "作者是王小红。"),
    ("门票多少钱\uff1f", "50元", "门票每人15元。"),
    ("早餐包括在内吗\uff1f", "是的", "不\uff0c早餐不包括在内。"),
    ("本社はどこですか\uff1f", "横浜", "本社は横須賀にあります。"),
    ("開館は何時ですか\uff1f", "午前9時", "21:00に開館します。"),
    ("본사는 어디에 있습니까?", "부산", "본사는 부천에 있습니다."),
    ("เมืองหลวงคือเมืองอะไร", "กรุงเทพมหานคร", "เมืองหลวงคือเชียงใหม่"),
    # languages with endings
    ("Missä konsertti pidetään?", "Tampere", "Konsertti pidetään Turussa."),
    ("Где находится музей?", "Казань", "Музей находится в Рязани."),
    ("Gdzie jest muzeum?", "Kraków", "Muzeum jest w Kaliszu."),
    ("Müze nerede?", "İzmir", "Müze İzmit'te bulunuyor."),
    ("¿Está incluido el desayuno?", "Sí", "No, el desayuno no está incluido."),
    ("¿En qué país nació?", "Austria", "Nació en Australia."),
)  # fmt: skip


def is_correct(question, reference, answer, references=()):
    case = Case(id="1", question=question, references=[reference, *references])
    passage = Passage(id="p", text=answer, rank=1)
    trace = Trace(case_id="1", retrieved=[passage], answer=answer)
    metric = judged_metrics.get("correctness")
    (verdict,) = asyncio.run(judge_case(Subject(case, trace, 5), [metric], open_heuristic()))
    return verdict.label


@pytest.mark.parametrize(("question", "reference", "answer"), SAME)
def test_an_answer_that_says_the_same_is_correct(question, reference, answer):
    assert is_correct(question, reference, answer)


@pytest.mark.parametrize(("question", "reference", "answer"), OTHER)
def test_an_answer_that_says_something_else_is_not_correct(question, reference, answer):
    assert not is_correct(question, reference, answer)
