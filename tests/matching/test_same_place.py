"""The same fact in other words passes, and another fact in the same words does not."""

import pytest

from misslink.matching.quotes import verify_quote

# What a passage says; what says the same; what says something else.
FACTS = {
    "clock times": [
        ("The last bus leaves at 22:45.", "The last bus leaves at 10:45 pm.", "The last bus leaves at 10:45 am."),
        ("The last bus leaves at 9.15 p.m.", "The last bus leaves at 21:15.", "The last bus leaves at 19:15."),
        ("The shop opens at 9 a.m.", "The shop opens at 09:00.", "The shop opens at 21:00."),
        ("It opens at half past six.", "It opens at 06:30.", "It opens at 06:40."),
        ("It opens at 8:00 and closes at 16:30.", "It opens at 8 am and closes at 4:30 pm.", "It opens at 8 am and closes at 6:30 pm."),
    ],
    "opposites under a denial": [
        ("The hall is closed on Mondays.", "No, the hall is not open on Mondays.", "The hall is not closed on Mondays."),
        ("The hall is not open on Mondays.", "The hall is closed on Mondays.", "The hall is not closed on Mondays."),
        ("Dogs are not allowed in the park.", "Dogs are prohibited in the park.", "Dogs are not forbidden in the park."),
        ("The rule is unclear.", "The rule is not clear.", "The rule is not unclear."),
        ("The inn is north of the lake.", "The inn is not south of the lake.", "The inn is south of the lake."),
        ("The hall is never heated.", "The hall is not heated.", "The hall is always heated."),
        ("The hall is not always open.", "The hall is not always open.", "The hall is never open."),
    ],
    "what is absent": [
        ("Children under 6 travel free of charge.", "No, there is no charge for children under 6.", "There is a charge for children under 6."),
        ("The cake is free of nuts.", "There are no nuts in the cake.", "There are nuts in the cake."),
        ("Children under 6 do not travel free of charge.", "There is a charge for children under 6.", "There is no charge for children under 6."),
        ("The town is free of extremes of heat.", "The town is free from extremes of heat.", "The town has extremes of heat."),
        ("Feel free from Monday to ask at the desk.", "You can ask at the desk from Monday.", "You can not ask at the desk from Monday."),
    ],
    "shares": [
        ("Members pay half the price.", "Members pay 50% of the price.", "Members pay 45% of the price."),
        ("A third of the seats are reserved.", "About 33% of the seats are reserved.", "30% of the seats are reserved."),
        ("Three quarters of the members voted.", "75% of the members voted.", "25% of the members voted."),
        ("The tour of the third floor takes half an hour.", "The tour takes half an hour.", "The tour covers 33% of the floor."),
    ],
    "parts and halves of units": [
        ("The warranty lasts 30 months.", "The warranty lasts two and a half years.", "The warranty lasts two years."),
        ("A full ride takes 105 minutes.", "A full ride takes an hour and 45 minutes.", "A full ride takes an hour and 35 minutes."),
        ("A full ride takes 90 minutes.", "A full ride takes an hour and a half.", "A full ride takes an hour."),
        ("Boil it for 150 seconds.", "Boil it for two and a half minutes.", "Boil it for one and a half minutes."),
    ],
    "numbers that say that they are rounded": [
        ("The firm has 1,250 employees.", "About 1,300 people work there.", "1,300 people work there."),
        ("The firm has 1,250 employees.", "Over 1,200 people work there.", "Over 1,300 people work there."),
        ("The town has 48,312 inhabitants.", "The town has nearly 50,000 inhabitants.", "The town has about 60,000 inhabitants."),
        ("The tower is 213 m tall.", "The tower is around 200 m tall.", "The tower is nearly 200 m tall."),
        ("The firm has 1,250,000 users.", "The firm has about 1.3 million users.", "The firm has about 1.4 million users."),
        ("The firm has 640 users.", "The firm has roughly 600 users.", "The firm has roughly 1,000 users."),
    ],
    "weekdays and weekends": [
        ("Deliveries are made on weekdays.", "They deliver from Monday to Friday, not on Saturday or Sunday.", "They deliver from Monday to Saturday."),
        ("The market is held on weekends.", "The market is held on Saturday and Sunday.", "The market is held on Friday."),
        ("The office is closed on weekends.", "The office is not open on Saturday.", "The office is open on Saturday."),
        ("The office is open on weekdays.", "The office is open on Tuesdays.", "The office is open on weekends."),
    ],
    "one and more": [
        ("It is valid for one ticket.", "It is valid for one ticket.", "It is valid for two tickets."),
        ("The class meets for a week.", "The class meets for one week.", "The class meets for two weeks."),
        ("The loan lasts two weeks.", "The loan lasts 14 days.", "The loan lasts one week."),
        ("Keep the ticket for one day.", "Keep the ticket for a day.", "Keep the ticket for three days."),
        ("It has a pool indoors and a pool outdoors.", "It has two pools, indoors and outdoors.", "It has no pool indoors."),
        ("He scored a goal in each half.", "He scored two goals.", "He scored a goal in no half."),
        ("The film won three awards.", "The film won an award.", "The film won one award."),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", FACTS)
def test_only_the_same_fact_passes(kind):
    for passage, same, other in FACTS[kind]:
        assert verify_quote(passage, passage, same) is not None, same
        assert verify_quote(passage, passage, other) is None, other
