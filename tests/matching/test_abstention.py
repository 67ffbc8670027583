# ruff: noqa: RUF001 - other scripts have letters like the Latin ones
"""Which answers only decline, and which sentences state something to check."""

import pytest

from misslink.matching.abstention import (
    claim_spans,
    declines,
    states_absence,
    strip_source_mentions,
)


@pytest.mark.parametrize(
    "answer",
    [
        "I don't know.",
        "I do not know the answer to that.",
        "I\u2019m not sure.",
        "I am sorry, but I cannot answer this question.",
        "Unable to answer based on given passages.",
        "The passages do not mention when the tower was built.",
        "The provided context doesn't contain enough information to answer the question.",
        "There is no information about bread in the documents.",
        "Sorry! I don't know. Please provide more context.",
        "Based on the passages, it is not possible to say. Let me know if you have more details.",
        (
            "The text doesn't say how to find X. It is possible that the text may be referring to "
            "another error, but it does not provide enough information to answer your question."
        ),
        "The context does not mention it. It may be that the question refers to another module.",
        "The passage may be about another version, so it does not answer the question.",
        "The passages do not say. You may need to consult the documentation.",
        "The exact date when the king died is not known from the passages.",
        "Where she lived is not mentioned in the passages.",
        "If you mean the old tower, the passages do not say.",
        "The text about the tower does not mention its height.",
        "No information found.",
        "N/A",
        "Unknown.",
        "Ich wei\u00df es nicht.",
        "Das geht aus den Dokumenten nicht hervor.",
        "Je ne sais pas.",
        "Les documents ne le pr\u00e9cisent pas.",
        "El documento no lo menciona.",
        "\u8d44\u6599\u4e2d\u6ca1\u6709\u63d0\u5230\u3002",
        "\u8cc7\u6599\u306b\u306f\u8a18\u8f09\u304c\u3042\u308a\u307e\u305b\u3093\u3002",
        "\u6587\u66f8\u306b\u306f\u8a18\u8f09\u3055\u308c\u3066\u3044\u307e\u305b\u3093\u3002",
        "No lo s\u00e9.",
        "N\u00e3o sei.",
        "Non lo so.",
        "\u042f \u043d\u0435 \u0437\u043d\u0430\u044e.",
        "\u6211\u4e0d\u77e5\u9053\u3002",
        "\u308f\u304b\u308a\u307e\u305b\u3093\u3002",
        "I don't know. [1]",
        "Empty Response",
        "No relevant documents were found.",
        "The documents do not mention it [2].",
        "لا أعرف.",
        "لا تذكر الوثائق ذلك.",
        "لا توجد معلومات عن ذلك في المستندات.",
        "لا أستطيع الإجابة عن هذا السؤال.",
        "Ich kann diese Frage nicht beantworten.",
        "Das weiß ich nicht [1].",
        "Im Kontext wird das nicht erwähnt. [1]",
        "En tiedä.",
        "Asiakirjoissa ei mainita sitä.",
        "En osaa vastata tähän kysymykseen.",
        "Tästä ei löydy tietoa asiakirjoista.",
        "दस्तावेज़ों में इसका उल्लेख नहीं है।",
        "मैं इस प्रश्न का उत्तर नहीं दे सकता।",
        "इसके बारे में कोई जानकारी नहीं है।",
        "A dokumentumok ezt nem említik.",
        "Erre a kérdésre nem tudok válaszolni.",
        "Nincs erről információ a dokumentumokban.",
        "Saya tidak tahu.",
        "Dokumen tidak menyebutkan hal itu.",
        "Saya tidak dapat menjawab pertanyaan ini.",
        "Tidak ada informasi tentang itu dalam dokumen.",
        "この質問には答えられません。",
        "お答えできません。",
        "該当する情報が見つかりませんでした。",
        "모르겠습니다.",
        "문서에 언급되어 있지 않습니다.",
        "이 질문에 답할 수 없습니다.",
        "관련 정보를 찾을 수 없습니다.",
        "Dokumenty o tym nie wspominają.",
        "Nie mogę odpowiedzieć na to pytanie.",
        "Brak informacji na ten temat w dokumentach.",
        "В документах об этом не говорится.",
        "Я не могу ответить на этот вопрос.",
        "В тексте нет информации об этом.",
        "Belgelerde bundan bahsedilmiyor.",
        "Bu soruyu yanıtlayamıyorum.",
        "Bu konuda bilgi bulunamadı.",
        "Tôi không biết.",
        "Tài liệu không đề cập đến điều đó.",
        "Tôi không thể trả lời câu hỏi này.",
        "Không có thông tin về điều này trong tài liệu.",
        "我无法回答这个问题。",
        "没有找到相关信息。",
        "我不知道【1】。",
        "Je ne peux pas répondre à cette question.",
        "Il n'y a pas d'information à ce sujet dans les documents.",
        "No puedo responder a esta pregunta.",
        "No se encontró información sobre esto.",
        "No hay información en los documentos. [1]",
        "I documenti non lo menzionano.",
        "Non ci sono informazioni su questo nei documenti.",
        "Os documentos não mencionam isso.",
        "Não há informações sobre isso nos documentos.",
        "De documenten vermelden dit niet.",
        "Ik kan deze vraag niet beantwoorden.",
        "Er is geen informatie over in de documenten.",
    ],
)
def test_an_answer_that_only_says_it_cannot_answer_declines(answer):
    assert declines(answer)
    assert states_absence(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        "Paris.",
        "330",
        "I don't know much, but Paris is the capital of France.",
        "I don't know. The tower is 330 metres tall.",
        "The tower is 330 metres tall. The passages do not mention its weight.",
        "A tuple cannot be changed after it was made.",
        "It raises an error when the text is missing.",
        "str.find returns -1 when a text is missing.",
        "str.find returns -1 when the text is not found.",
        "It returns None if the document is not found.",
        "When the document is not available, the office sends a copy.",
        "The function raises KeyError when your key does not include it.",
        "The context manager does not include the file name.",
        "The free credit report does not include your score.",
        "Refunds are not given without a document.",
        "The pump stops without information from the sensor.",
        "No data is lost.",
        "The function does not give a value back.",
        "Python does not include a switch statement.",
        "Nobody lives there.",
        "The text doesn't specify it. It is possible that strings are compared by length.",
        "The text may refer to a tuple, but lists are mutable and it does not mention sets.",
        "The question may refer to another module.",
        "You should consult the index first.",
        "No, it is not included.",
        "It is not included.",
        "It is not available.",
        "The price is not included in the ticket.",
        "The response is empty.",
        "No documents are needed at the border.",
        "No documents were found in the bag of the thief.",
        "The tower was not found until 1905.",
        "Es ist nicht im Preis enthalten.",
        "Nein, das Frühstück ist nicht im Preis enthalten.",
        "Non, le petit-déjeuner n'est pas inclus.",
        "Il n'y a pas d'ascenseur.",
        "No, el desayuno no está incluido.",
        "No hay ascensor.",
        "No, la colazione non è inclusa.",
        "Não, o café da manhã não está incluído.",
        "Nee, het ontbijt is niet inbegrepen.",
        "Nie, śniadanie nie jest wliczone w cenę.",
        "Нет, завтрак не включён в стоимость.",
        "Ei, aamiainen ei sisälly hintaan.",
        "Nem, a reggeli nincs benne az árban.",
        "Hayır, kahvaltı fiyata dahil değil.",
        "いいえ、朝食は料金に含まれていません。",
        "不，早餐不包括在内。",
        "아니요, 조식은 포함되어 있지 않습니다.",
        "Không, bữa sáng không được bao gồm.",
        "Ông ấy không biết bơi.",
        "Tidak, sarapan tidak termasuk.",
        "Dia tidak tahu cara berenang.",
        "لا، الإفطار غير مشمول.",
        "नहीं, नाश्ता शामिल नहीं है।",
    ],
)
def test_an_answer_that_states_something_does_not_decline(answer):
    assert not declines(answer)


def test_a_refusal_after_an_answer_is_seen_but_is_no_pure_decline():
    answer = "The tower is tall. Unable to answer the rest based on given passages."
    assert states_absence(answer)
    assert not declines(answer)
    assert [answer[a:b] for a, b in claim_spans(answer)] == ["The tower is tall."]


@pytest.mark.parametrize(
    "idle",
    [
        "Sure!",
        "Hello!",
        "Based on the provided passages, here is the answer:",
        "What is a caldera?",
        "(Passage 1)",
        "Passage 3 provides the necessary information to answer the question.",
        "I hope this helps!",
        "Let me know if you have any further questions.",
        "Yes.",
        "---",
    ],
)
def test_a_sentence_that_states_nothing_is_no_claim(idle):
    assert claim_spans(idle) == ()
    followed = f"{idle}\n\nCalderas are large."
    assert [followed[a:b] for a, b in claim_spans(followed)] == ["Calderas are large."]


@pytest.mark.parametrize(
    "sentence",
    [
        "A normal level is low, but the exact value is not specified in the passages.",
        "Elastic energy is stored by stretching a body (not mentioned in the passages).",
        "42",
    ],
)
def test_a_sentence_that_states_something_beside_an_absence_is_a_claim(sentence):
    assert claim_spans(sentence) == ((0, len(sentence)),)


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        ("According to passage 2, the tower is tall.", "the tower is tall."),
        ("* A ball rolling", "A ball rolling"),
    ],
)
def test_marks_are_no_part_of_a_claim(answer, claim):
    assert [answer[a:b].lstrip(", ") for a, b in claim_spans(answer)] == [claim]


def test_list_markers_and_references_to_passages_are_no_content():
    assert strip_source_mentions("2. According to passages 1 and 2, it rains.").split() == [
        ",",
        "it",
        "rains.",
    ]


def test_a_list_marker_alone_is_no_claim():
    assert claim_spans("1.") == ()
