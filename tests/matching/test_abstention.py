"""Which answers only decline, and which sentences state something to check."""

import pytest

from misslink.matching.abstention import (
    claim_spans,
    declines,
    states_absence,
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
        "\u0644\u0627 \u0623\u0639\u0631\u0641.",
        "\u0644\u0627 \u062a\u0630\u0643\u0631 \u0627\u0644\u0648\u062b\u0627\u0626\u0642 \u0630\u0644\u0643.",
        "\u0644\u0627 \u062a\u0648\u062c\u062f \u0645\u0639\u0644\u0648\u0645\u0627\u062a \u0639\u0646 \u0630\u0644\u0643 \u0641\u064a \u0627\u0644\u0645\u0633\u062a\u0646\u062f\u0627\u062a.",
        "\u0644\u0627 \u0623\u0633\u062a\u0637\u064a\u0639 \u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0639\u0646 \u0647\u0630\u0627 \u0627\u0644\u0633\u0624\u0627\u0644.",
        "Ich kann diese Frage nicht beantworten.",
        "Das weiß ich nicht [1].",
        "Im Kontext wird das nicht erwähnt. [1]",
        "En tiedä.",
        "Asiakirjoissa ei mainita sitä.",
        "En osaa vastata tähän kysymykseen.",
        "Tästä ei löydy tietoa asiakirjoista.",
        "\u0926\u0938\u094d\u0924\u093e\u0935\u0947\u091c\u093c\u094b\u0902 \u092e\u0947\u0902 \u0907\u0938\u0915\u093e \u0909\u0932\u094d\u0932\u0947\u0916 \u0928\u0939\u0940\u0902 \u0939\u0948\u0964",
        "\u092e\u0948\u0902 \u0907\u0938 \u092a\u094d\u0930\u0936\u094d\u0928 \u0915\u093e \u0909\u0924\u094d\u0924\u0930 \u0928\u0939\u0940\u0902 \u0926\u0947 \u0938\u0915\u0924\u093e\u0964",
        "\u0907\u0938\u0915\u0947 \u092c\u093e\u0930\u0947 \u092e\u0947\u0902 \u0915\u094b\u0908 \u091c\u093e\u0928\u0915\u093e\u0930\u0940 \u0928\u0939\u0940\u0902 \u0939\u0948\u0964",
        "A dokumentumok ezt nem említik.",
        "Erre a kérdésre nem tudok válaszolni.",
        "Nincs erről információ a dokumentumokban.",
        "Saya tidak tahu.",
        "Dokumen tidak menyebutkan hal itu.",
        "Saya tidak dapat menjawab pertanyaan ini.",
        "Tidak ada informasi tentang itu dalam dokumen.",
        "\u3053\u306e\u8cea\u554f\u306b\u306f\u7b54\u3048\u3089\u308c\u307e\u305b\u3093\u3002",
        "\u304a\u7b54\u3048\u3067\u304d\u307e\u305b\u3093\u3002",
        "\u8a72\u5f53\u3059\u308b\u60c5\u5831\u304c\u898b\u3064\u304b\u308a\u307e\u305b\u3093\u3067\u3057\u305f\u3002",
        "\ubaa8\ub974\uaca0\uc2b5\ub2c8\ub2e4.",
        "\ubb38\uc11c\uc5d0 \uc5b8\uae09\ub418\uc5b4 \uc788\uc9c0 \uc54a\uc2b5\ub2c8\ub2e4.",
        "\uc774 \uc9c8\ubb38\uc5d0 \ub2f5\ud560 \uc218 \uc5c6\uc2b5\ub2c8\ub2e4.",
        "\uad00\ub828 \uc815\ubcf4\ub97c \ucc3e\uc744 \uc218 \uc5c6\uc2b5\ub2c8\ub2e4.",
        "Dokumenty o tym nie wspominają.",
        "Nie mogę odpowiedzieć na to pytanie.",
        "Brak informacji na ten temat w dokumentach.",
        "\u0412 \u0434\u043e\u043a\u0443\u043c\u0435\u043d\u0442\u0430\u0445 \u043e\u0431 \u044d\u0442\u043e\u043c \u043d\u0435 \u0433\u043e\u0432\u043e\u0440\u0438\u0442\u0441\u044f.",
        "\u042f \u043d\u0435 \u043c\u043e\u0433\u0443 \u043e\u0442\u0432\u0435\u0442\u0438\u0442\u044c \u043d\u0430 \u044d\u0442\u043e\u0442 \u0432\u043e\u043f\u0440\u043e\u0441.",
        "\u0412 \u0442\u0435\u043a\u0441\u0442\u0435 \u043d\u0435\u0442 \u0438\u043d\u0444\u043e\u0440\u043c\u0430\u0446\u0438\u0438 \u043e\u0431 \u044d\u0442\u043e\u043c.",
        "Belgelerde bundan bahsedilmiyor.",
        "Bu soruyu yan\u0131tlayam\u0131yorum.",
        "Bu konuda bilgi bulunamad\u0131.",
        "Tôi không biết.",
        "Tài liệu không đề cập đến điều đó.",
        "Tôi không thể trả lời câu hỏi này.",
        "Không có thông tin về điều này trong tài liệu.",
        "\u6211\u65e0\u6cd5\u56de\u7b54\u8fd9\u4e2a\u95ee\u9898\u3002",
        "\u6ca1\u6709\u627e\u5230\u76f8\u5173\u4fe1\u606f\u3002",
        "\u6211\u4e0d\u77e5\u9053\u30101\u3011\u3002",
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
        "Dazu steht leider nichts in den Unterlagen.",
        "Darüber sagen die Texte nichts.",
        "Les sources n'en disent rien.",
        "Los documentos no dicen nada al respecto.",
        "I testi non dicono niente su questo.",
        "Os textos não dizem nada a esse respeito.",
        "Daar staat niets over in de documenten.",
        "Det står inget om det i dokumenten.",
        "W dokumentach nic o tym nie ma.",
        "The files say nothing about that.",
        "The records are silent on that point.",
        "None of the passages says who that is.",
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
        "In den Unterlagen steht nicht Müller, sondern Meier als Leiter.",
        "Das Dokument sagt, dass Hunde nicht erlaubt sind.",
        "Le document dit que les chiens ne sont pas admis.",
        "Les documents ne sont pas obligatoires.",
        "Die Unterlagen sind nicht öffentlich.",
        "The files are not encrypted.",
        "Nein, das Frühstück ist nicht im Preis enthalten.",
        "Non, le petit-déjeuner n'est pas inclus.",
        "Il n'y a pas d'ascenseur.",
        "No, el desayuno no está incluido.",
        "No hay ascensor.",
        "No, la colazione non è inclusa.",
        "Não, o café da manhã não está incluído.",
        "Nee, het ontbijt is niet inbegrepen.",
        "Nie, śniadanie nie jest wliczone w cenę.",
        "\u041d\u0435\u0442, \u0437\u0430\u0432\u0442\u0440\u0430\u043a \u043d\u0435 \u0432\u043a\u043b\u044e\u0447\u0451\u043d \u0432 \u0441\u0442\u043e\u0438\u043c\u043e\u0441\u0442\u044c.",
        "Ei, aamiainen ei sisälly hintaan.",
        "Nem, a reggeli nincs benne az árban.",
        "Hay\u0131r, kahvalt\u0131 fiyata dahil de\u011fil.",
        "\u3044\u3044\u3048\u3001\u671d\u98df\u306f\u6599\u91d1\u306b\u542b\u307e\u308c\u3066\u3044\u307e\u305b\u3093\u3002",
        "\u4e0d\uff0c\u65e9\u9910\u4e0d\u5305\u62ec\u5728\u5185\u3002",
        "\uc544\ub2c8\uc694, \uc870\uc2dd\uc740 \ud3ec\ud568\ub418\uc5b4 \uc788\uc9c0 \uc54a\uc2b5\ub2c8\ub2e4.",
        "Không, bữa sáng không được bao gồm.",
        "Ông ấy không biết bơi.",
        "Tidak, sarapan tidak termasuk.",
        "Dia tidak tahu cara berenang.",
        "\u0644\u0627\u060c \u0627\u0644\u0625\u0641\u0637\u0627\u0631 \u063a\u064a\u0631 \u0645\u0634\u0645\u0648\u0644.",
        "\u0928\u0939\u0940\u0902, \u0928\u093e\u0936\u094d\u0924\u093e \u0936\u093e\u092e\u093f\u0932 \u0928\u0939\u0940\u0902 \u0939\u0948\u0964",
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


def test_a_list_marker_alone_is_no_claim():
    assert claim_spans("1.") == ()
