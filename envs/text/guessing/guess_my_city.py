"""Guess My City: find a hidden city by questions that are answered yes or no.

LMRL-Gym (Abdulhai et al. 2023, arXiv:2311.18232) has this game with about 100 cities; a language
model answers. There one question that names every city wins at once in some versions, since any
mention of the city counts. Here it is :mod:`.twenty_questions` on other tables, so that a question
names one property or one city, and every answer is a bit.

==========================  ========================================================================
difficulty                  table
==========================  ========================================================================
``real`` 100                100 cities and 28 facts about them (``cities.txt``, which names its
                            sources), from continents and hemispheres to the Commonwealth. The text
                            view does not show the table: a text player has to know the cities. The
                            structured view shows how many of the cities still possible each fact
                            holds of
``medium`` 32 (8-32)        fictional: so many cities with invented names and facts, drawn for every
                            episode and shown, as in Twenty Questions
``easy`` 16                 the same with 16 cities
==========================  ========================================================================

Actions, observations, rewards, splits, fictional tables and optimal play are those of
:mod:`.twenty_questions`. A real city is found within eight turns for ``success``.
"""

from __future__ import annotations

from typing import ClassVar

from .knowledge import Fiction
from .twenty_questions import TwentyQuestions

CITIES = Fiction(
    first=(
        "Al", "Bel", "Cor", "Dun", "Esk", "Fal", "Gor", "Hal", "Ist", "Jor", "Kal", "Lor", "Mar",
        "Nor", "Os", "Pel", "Ras", "Sel", "Tor", "Var",
    ),
    second=(
        "aven", "berg", "dal", "enna", "ford", "gard", "haven", "ino", "mouth", "opol", "stead",
        "ton", "vik", "wick",
    ),
    properties=(
        "is a capital", "is on an island", "is on a lake", "is on a river", "is in a desert",
        "is in the mountains", "is near a volcano", "is north of the forest",
        "is older than the kingdom", "is ruled by a queen", "is known for its glass",
        "is known for its horses", "is reached by rail", "has a cathedral", "has a castle",
        "has a harbor", "has a lighthouse", "has a university", "has a wall", "has canals",
        "has cable cars", "has silver mines", "has two bridges", "has white houses",
    ),
)  # fmt: skip
"""Words of fictional cities; each property is a statement as in :mod:`.knowledge`."""


class GuessMyCity(TwentyQuestions):
    """The task; see the module's docstring."""

    game: ClassVar[str] = "Guess my city"
    noun: ClassVar[tuple[str, str]] = ("city", "cities")
    file: ClassVar[str] = "cities.txt"
    real_things: ClassVar[int] = 100
    fiction: ClassVar[Fiction] = CITIES
    examples: ClassVar[tuple[str, str]] = (
        "'Is it in ...?', 'Does it have ...?'",
        "'Is it ...?', 'I guess ...'",
    )
