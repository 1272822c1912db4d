"""Household: find things in a house, change them, and put them where they belong.

The six kinds of tasks of ALFWorld (Shridhar et al. 2021, arXiv:2010.03768) in a house of five rooms
with fourteen places (surfaces, and containers that open) and sixteen things. Only what lies open in
the present room is seen. The player knows the plan of the house and remembers where it saw what. It
carries one thing at a time.

=========  =========================================================================================
task       goal
=========  =========================================================================================
place      a thing of some kind lies in a given place
examine    a thing is examined under the lamp, which stands on the desk in the study
clean      a thing is cleaned at the sink, then put in a given place
heat       likewise, heated in the microwave
cool       likewise, cooled in the fridge
two        two things of one kind lie in a given place
=========  =========================================================================================

=============  =====================================================================================
action         ``Discrete(59)``: look (which does nothing); go to a room (next to this one); open,
               close a container; take a thing; put what is held in a place; heat, cool, clean it;
               slice a thing (with the knife in hand); examine what is held under the lamp. The mask
               holds the admissible ones
observation    ``Box(0, 1, (395,))``: the goal; room, plan, rooms seen; containers open; places
               looked into; where each thing was last seen (place, hand, nowhere); which things are
               hot, cold, clean, sliced
reward         progress less 0.01 a step. Progress is 1 at the goal and less before; undone progress
               is taken back
termination    the goal is reached
success        the goal is reached
difficulty     1: only ``place``; 2: all six kinds; 3: food is to be sliced, too
context        plan, places of things, goal. The sum of the things' places is even for train, odd
               for test
=============  =====================================================================================

**TextNav.** In the same house, a thing is to be found: the goal is to hold one of the kind that is
asked for. The commands are look, go, open, close, take and put; there is one difficulty. This is
not the quest of LMRL-Gym's Text-Nav (Abdulhai et al. 2023, arXiv:2311.18232), on purpose: there
stale food is carried from the living room into the fridge, which is then closed, in every episode,
and eating it loses. Here thing and places are drawn, so that finding is the task, and nothing is
eaten; to carry a thing into a place is the task ``place`` of Household.

**Reference player.** Written by hand: it explores, and goes straight for what it has seen
(``players.py``). It is no search over states, which would have to know where things are. The tests
compare it with such a search.

**Deliberate differences from ALFWorld.** Rooms are connected, and a room's places are all within
reach. Heating, cooling and cleaning take one command at the appliance, as there. Progress pays; in
ALFWorld only the goal does. A thing counts in any order: what is put in place first and heated
later has to be taken there, and put back.
"""

from __future__ import annotations

from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.component import Component
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown

from .house import (
    ALLOWED_THINGS,
    CAN_SLICE,
    CLEAN,
    CONTAINERS,
    COOL,
    EXAMINE,
    FIND,
    FIRST_ACTION,
    GOALS,
    HAND,
    HEAT,
    IN_ROOM,
    KINDS,
    KNIFE,
    NAMES,
    NOWHERE,
    NUM_KINDS,
    NUM_PLACES,
    NUM_ROOMS,
    NUM_THINGS,
    OF_KIND,
    OPENABLE,
    PLACES,
    PUT,
    ROOM_OF,
    ROOMS,
    SIZES,
    SLICEABLE,
    STATION_PLACES,
    SURFACES,
    TARGET_COUNTS,
    TARGET_KINDS,
    TASKS,
    TENTHS,
    THINGS,
    TWO,
    Params,
    State,
    bit,
    has,
    members,
    pack,
    progress,
    reachable_places,
)

PAPER = (250, 250, 247)
INK = (40, 40, 46)
WALL = (150, 150, 155)
GOOD = (86, 160, 90)
SHUT = (200, 190, 170)


@cache
def thing_name(item: int, *treatments: int) -> str:
    """Return the name of a thing; ``treatments`` say whether it is hot, cold, clean, sliced."""
    states = ("hot", "cold", "clean", "sliced")
    return " ".join(
        [*(state for state, now in zip(states, treatments, strict=True) if now), THINGS[item]]
    )


@lru_cache(maxsize=64)
def doors(distances: bytes) -> str:
    """Return the doors in words, from the bytes of :attr:`.house.Params.distances`."""
    steps = np.frombuffer(distances, np.int32).reshape(NUM_ROOMS, NUM_ROOMS).tolist()
    return "; ".join(
        f"{ROOMS[a]} - {ROOMS[b]}"
        for a in range(NUM_ROOMS)
        for b in range(a + 1, NUM_ROOMS)
        if steps[a][b] == 1
    )


class Household(Task[Params, State]):
    """The task; see the module's head for its rules.

    Attributes:
        tier: 1 to 3; see the table.
        commands: number of actions.
    """

    measures: ClassVar[dict[str, str]] = {
        "progress": "tenths of the goal",
        "looked": "places looked into",
        "seen": "things whose place is known",
    }
    picture_shape = (340, 460, 3)

    tasks: tuple[int, ...] = tuple(range(FIND))
    """Indices of the tasks that are set."""
    verbs: tuple[str, ...] = tuple(SIZES)
    """Verbs of the grammar, in the order of the actions."""

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        self.tier = self._tier(difficulty)
        if self.tier == 1:
            self.tasks = (PUT,)
        entries = sum(int(np.prod(component.shape)) for component in self.observation_components())
        self.observation_space = self.box(0.0, 1.0, (entries,))
        self.commands = sum(SIZES[verb] for verb in self.verbs)
        self.action_space = spaces.Discrete(self.commands)
        self.reward_space = self.box(-1.01, 1.0, ())

    def _tier(self, difficulty: float | None) -> int:
        number = 2.0 if difficulty is None else difficulty
        if number not in (1, 2, 3):
            raise ValueError(
                f"A difficulty of {self.card.id} is 1 (put things in places), 2 (all kinds of "
                f"tasks) or 3 (food is to be sliced, too); got {difficulty!r}."
            )
        return int(number)

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a plan, the places of things, and a goal."""
        bits = self.bits(key, NUM_THINGS + NUM_ROOMS + 4)
        places = (bits[:NUM_THINGS] % NUM_PLACES).astype(jnp.int32)
        kind_draw, goal_draw, task_draw = (
            bits[NUM_THINGS + NUM_ROOMS],
            bits[NUM_THINGS + NUM_ROOMS + 1],
            bits[NUM_THINGS + NUM_ROOMS + 2],
        )
        task = jnp.asarray(self.tasks, jnp.int32)[(task_draw % len(self.tasks)).astype(jnp.int32)]
        many = jnp.asarray(TARGET_COUNTS)[task].astype(jnp.uint32)
        kind = jnp.asarray(TARGET_KINDS)[task, (kind_draw % many).astype(jnp.int32)]
        goal = jnp.asarray(GOALS)[(goal_draw % len(GOALS)).astype(jnp.int32)]
        food = np.isin(np.arange(NUM_KINDS), [KINDS.index(name) for name in SLICEABLE])
        sliced = (self.tier == 3) & jnp.asarray(food)[kind] & (task != TWO)
        # What is asked for lies elsewhere, at first.
        places = jnp.where(
            members(jnp.asarray(OF_KIND)[kind], NUM_THINGS) & (places == goal),
            (places + 3) % NUM_PLACES,
            places,
        )
        odd = (places.sum() + split) % 2
        # There are 14 places, an even number.
        places = places.at[KNIFE].set(places[KNIFE] ^ odd.astype(jnp.int32))
        apart = np.where(np.eye(NUM_ROOMS, dtype=bool), 0, NUM_ROOMS).astype(np.int32)
        distances = jnp.asarray(apart)
        for room in range(1, NUM_ROOMS):  # every room opens to an earlier one
            to = (bits[NUM_THINGS + room] % room).astype(jnp.int32)
            edge = (np.arange(NUM_ROOMS) == room)[:, None] & (np.arange(NUM_ROOMS) == to)
            distances = jnp.where(edge | edge.T, 1, distances)
        for middle in range(NUM_ROOMS):  # Floyd and Warshall
            distances = jnp.minimum(
                distances, distances[:, middle : middle + 1] + distances[middle : middle + 1]
            )
        return Params(distances, places, task, kind, goal, sliced)

    def initial(self, key: jax.Array, params: Params) -> State:
        """Start in a room, with empty hands; all containers are closed."""
        room = (jax.random.key_data(key)[0] % NUM_ROOMS).astype(
            jnp.int32
        )  # a key is random bits enough
        nowhere = jnp.full(NUM_THINGS, NOWHERE, jnp.int32)
        nothing = jnp.uint32(0)
        sets = (nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing)
        state = State(room, params.places, nowhere, *sets, jnp.int32(0))
        return self._look(state)

    def _look(self, state: State) -> State:
        """Return the state in which all that is in sight has been seen."""
        open_ = reachable_places(state)
        visible = (state.places == HAND) | has(open_, state.places)
        return state._replace(
            last_seen=jnp.where(visible, state.places, state.last_seen),
            looked=state.looked | open_,
            visited=state.visited | bit(state.room),
        )

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Carry out a command that is admissible."""

        def number(verb: str) -> tuple[jax.Array, jax.Array]:
            """Return whether the action is of the verb, and its object's number."""
            is_verb = (action >= FIRST_ACTION[verb]) & (action < FIRST_ACTION[verb] + SIZES[verb])
            return is_verb, jnp.clip(action - FIRST_ACTION[verb], 0, SIZES[verb] - 1).astype(
                jnp.int32
            )

        goes, room = number("go")
        opens, container = number("open")
        closes, shut = number("close")
        takes, item = number("take")
        puts, place = number("put")
        slices, piece = number("slice")
        in_hand = state.places == HAND
        hand = pack(in_hand)
        places = jnp.where(
            takes & (np.arange(NUM_THINGS) == item),
            HAND,
            jnp.where(puts & in_hand, place, state.places),
        )
        heats, cools, cleans = (action == FIRST_ACTION[verb] for verb in ("heat", "cool", "clean"))
        opened = state.opened | jnp.where(opens, bit(jnp.asarray(OPENABLE)[container]), 0)
        after = state._replace(
            room=jnp.where(goes, room, state.room),
            places=places.astype(jnp.int32),
            opened=opened & ~jnp.where(closes, bit(jnp.asarray(OPENABLE)[shut]), 0),
            hot=jnp.where(heats, state.hot | hand, jnp.where(cools, state.hot & ~hand, state.hot)),
            cold=jnp.where(
                cools, state.cold | hand, jnp.where(heats, state.cold & ~hand, state.cold)
            ),
            clean=jnp.where(cleans, state.clean | hand, state.clean),
            sliced=jnp.where(
                slices, state.sliced | bit(jnp.asarray(CAN_SLICE)[piece]), state.sliced
            ),
            examined=jnp.where(
                action == FIRST_ACTION["examine"], state.examined | hand, state.examined
            ),
        )
        after = self._look(after)
        return after._replace(progress=progress(after, params))

    def action_mask(self, state: State, params: Params) -> jax.Array:
        """Mark the admissible commands, bool ``(59,)``."""
        here = jnp.asarray(IN_ROOM)[state.room]
        reach = reachable_places(state)
        hand = pack(state.places == HAND)
        empty = hand == 0
        visible = has(reach, state.places)
        openable = has(here, OPENABLE)
        is_open = has(state.opened, OPENABLE)
        station = has(here, STATION_PLACES)
        cuts = has(hand, np.int32(KNIFE)) & visible & ~members(state.sliced, NUM_THINGS)
        at_stations = (
            station[2] & (hand & ALLOWED_THINGS[HEAT] != 0),
            station[3] & (hand & ALLOWED_THINGS[COOL] != 0),
            station[1] & (hand & ALLOWED_THINGS[CLEAN] != 0),
        )
        blocks = [
            jnp.ones(1, bool),
            params.distances[state.room] == 1,
            openable & ~is_open,
            openable & is_open,
            visible & empty,
            members(reach, NUM_PLACES) & ~empty,
            jnp.stack(at_stations),
            cuts[CAN_SLICE],
            (station[0] & ~empty)[None],
        ]
        return jnp.concatenate(blocks)[: self.commands]

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return goal, house and what was seen; see the module's docstring."""
        upper = np.triu_indices(NUM_ROOMS, 1)
        blocks = (
            params.task == np.arange(len(TASKS)),
            params.kind == np.arange(NUM_KINDS),
            (params.goal == np.arange(NUM_PLACES)) & (params.task != EXAMINE),
            params.sliced[None],
            state.room == np.arange(NUM_ROOMS),
            params.distances[upper] == 1,
            members(state.visited, NUM_ROOMS),
            has(state.opened, OPENABLE),
            members(state.looked, NUM_PLACES),
            (state.last_seen[:, None] == np.arange(NUM_PLACES + 2)).reshape(-1),
            members(state.hot, NUM_THINGS),
            members(state.cold, NUM_THINGS),
            members(state.clean, NUM_THINGS),
            members(state.sliced, NUM_THINGS),
        )
        return jnp.concatenate(blocks).astype(self.dtype)

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        return (
            Component(
                "task", "kind of task: place, examine, clean, heat, cool, two", shape=(len(TASKS),)
            ),
            Component("kind", "kind of the thing that is asked for", shape=(NUM_KINDS,)),
            Component("goal", "place to put it in", shape=(NUM_PLACES,)),
            Component("to_slice", "whether it is to be sliced"),
            Component("room", "the room that the player is in", shape=(NUM_ROOMS,)),
            Component(
                "plan",
                "whether two rooms are connected, pair by pair",
                shape=(NUM_ROOMS * (NUM_ROOMS - 1) // 2,),
            ),
            Component("visited", "whether each room was seen", shape=(NUM_ROOMS,)),
            Component("open", "whether each container is open", shape=(len(OPENABLE),)),
            Component(
                "looked", "whether the contents of each place were seen", shape=(NUM_PLACES,)
            ),
            Component(
                "places",
                "[thing, place]: where it was last seen; then the hand, and nowhere",
                shape=(NUM_THINGS, NUM_PLACES + 2),
            ),
            Component("hot", "whether each thing is hot", shape=(NUM_THINGS,)),
            Component("cold", "whether each thing is cold", shape=(NUM_THINGS,)),
            Component("clean", "whether each thing was cleaned", shape=(NUM_THINGS,)),
            Component("sliced", "whether each thing is sliced", shape=(NUM_THINGS,)),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the verbs with their objects."""
        meanings = {
            "look": "do nothing",
            "go": "go to the room of this number",
            "open": "open the container of this number",
            "close": "close the container of this number",
            "take": "take the thing of this number",
            "put": "put what is held in the place of this number",
            "heat": "heat what is held",
            "cool": "cool what is held",
            "clean": "clean what is held",
            "slice": "slice the sliceable thing of this number",
            "examine": "examine what is held under the lamp",
        }
        return tuple(Component(verb, meanings[verb], shape=(SIZES[verb],)) for verb in self.verbs)

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return the progress of the step less 0.01."""
        gained = next_state.progress - state.progress
        return (100 // TENTHS * gained - 1).astype(self.dtype) / 100

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the goal is reached."""
        return state.progress == TENTHS

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, progress, and what was seen."""
        return {
            "success": state.progress == TENTHS,
            "progress": state.progress,
            "looked": jax.lax.population_count(state.looked).astype(jnp.int32),
            "seen": (state.last_seen != NOWHERE).sum(dtype=jnp.int32),
        }

    # -- host side: no more than was seen ----------------------------------------------------------

    def _contents(self, state: State) -> list[list[int]]:
        """Return the things that were last seen in each place, then in the hand."""
        contents: list[list[int]] = [[] for _ in range(NUM_PLACES + 2)]
        for item, place in enumerate(np.asarray(state.last_seen).tolist()):
            contents[place].append(item)
        return contents

    def _list_names(self, state: State, *places: Any) -> list[str]:
        """Return for each place the names of its things, with what was done to them."""
        sets = np.array([state.hot, state.cold, state.clean, state.sliced], np.uint32)
        treatments = (sets >> np.arange(len(THINGS), dtype=np.uint32)[:, None] & 1).tolist()
        names = [thing_name(item, *treatments[item]) for item in range(len(THINGS))]
        return [", ".join(names[item] for item in things) or "nothing" for things in places]

    def goal(self, params: Params) -> str:
        """Return the goal in words."""
        kind = KINDS[int(params.kind)]
        task = int(params.task)
        phrase = f"{'sliced ' if bool(params.sliced) else ''}{kind}"
        where = f"{'in' if int(params.goal) in OPENABLE else 'on'} the {NAMES[int(params.goal)]}"
        if task == TWO:
            return f"put two {phrase}s {where}"
        phrase = {CLEAN: "clean ", HEAT: "hot ", COOL: "cold "}.get(task, "") + phrase
        phrase = f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"
        if task == FIND:
            return f"find {phrase} and take it"
        return (
            f"examine {phrase} under the lamp on the desk"
            if task == EXAMINE
            else f"put {phrase} {where}"
        )

    def describe(self, state: State, params: Params) -> str:
        """Tell the goal, the plan, what was seen elsewhere, and what is in sight."""
        room = int(state.room)
        looked = int(state.looked)
        opened = int(state.opened)
        reach = int(IN_ROOM[room]) & (int(SURFACES) | opened)
        here = []
        elsewhere = []
        listed = self._list_names(state, *self._contents(state))
        for place, name in enumerate(NAMES):
            word = "In" if name in CONTAINERS else "On"
            if PLACES[name] == room:
                contents = f"{word} the {name}: {listed[place]}."
                closed = f"The {name} is closed" + (
                    f", with {listed[place]}." if looked >> place & 1 else "."
                )
                here.append(contents if reach >> place & 1 else closed)
            elif looked >> place & 1:
                where = ROOMS[PLACES[name]] + (", open" if opened >> place & 1 else "")
                elsewhere.append(f"{word.lower()} the {name} ({where}): {listed[place]}")
        unseen = [name for number, name in enumerate(ROOMS) if not int(state.visited) >> number & 1]
        return "\n\n".join([
            f"Your task: {self.goal(params)}.",
            f"Doors: {doors(np.asarray(params.distances).tobytes())}.",
            (
                f"Seen elsewhere: {'; '.join(elsewhere) or 'nothing'}. Rooms not seen yet: "
                f"{', '.join(unseen) or 'none'}."
            ),
            f"You are in the {ROOMS[room]}. {' '.join(here)} You hold {listed[HAND]}.",
        ])  # fmt: skip

    def rules(self) -> str:
        """Return the rules."""
        how = (
            " You heat, cool and clean what you hold, in the kitchen with its microwave, fridge "
            "and sink. To slice food, hold the knife, with the food in sight. The lamp stands on "
            "the desk in the study."
        )
        how = how if "heat" in self.verbs else ""
        return (
            "You are in a house. Only what lies open in your room is seen; containers have to be "
            "opened. You carry one "
            f"thing at a time.{how}\nProgress earns up to 1 in all, and every reply costs 0.01. "
            "After "
            f"{self.card.horizon} replies it is over.\nRooms: {', '.join(ROOMS)}. Places: "
            f"{', '.join(NAMES)}. Things: "
            f"{', '.join(THINGS)}."
        )

    def how_to_act(self) -> str:
        """Tell a text player the grammar."""
        what = {
            "look": "look", "go": "go to ROOM", "open": "open PLACE", "close": "close PLACE",
            "take": "take THING", "put": "put it in PLACE", "slice": "slice THING",
        }  # fmt: skip
        return (
            "Answer with one command: "
            f"{', '.join(what.get(verb, f'{verb} it') for verb in self.verbs)}."
        )

    def _objects(self, verb: str) -> tuple[str, ...]:
        """Return the objects of a verb in the order of its actions."""
        return {
            "go": ROOMS,
            "open": tuple(NAMES[place] for place in OPENABLE),
            "close": tuple(NAMES[place] for place in OPENABLE),
            "take": THINGS,
            "put": tuple(f"it {name}" for name in NAMES),
            "slice": tuple(THINGS[item] for item in CAN_SLICE),
            "look": ("",),
        }.get(verb, ("it",))

    @cached_property
    def _commands(self) -> list[str]:
        """Return the command of each action."""
        return [f"{verb} {name}".strip() for verb in self.verbs for name in self._objects(verb)]

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the command of an action."""
        return self._commands[int(action)]

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a command.

        The words "to", "the", "in" and "on" do not count. What is held is "it", or is named.

        Raises:
            ValueError: the text is no command; the message names the nearest one.
        """
        words = " ".join(
            word for word in text.lower().split() if word not in ("to", "the", "in", "on")
        )
        for item in np.flatnonzero(np.asarray(state.places) == HAND):
            verb, _, remainder = words.partition(" ")
            if verb in ("put", "heat", "cool", "clean", "examine") and f"{remainder} ".startswith(
                f"{THINGS[item]} "
            ):
                words = f"{verb} it{remainder.removeprefix(THINGS[item])}"
        if words not in self._commands:
            raise ValueError(unknown("command", text, self._commands))
        return np.array(self._commands.index(words), self.action_space.dtype)

    def why_illegal(self, action: np.ndarray, state: State, params: Params) -> str:
        """Say what the command lacks; no more than was seen."""
        verb = max(
            (verb for verb in SIZES if FIRST_ACTION[verb] <= int(action)),
            key=lambda verb: FIRST_ACTION[verb],
        )
        name = self._objects(verb)[int(action) - FIRST_ACTION[verb]].removeprefix("it ")
        room = int(state.room)
        hand = np.flatnonzero(np.asarray(state.places) == HAND)
        holding = f"you hold {self._list_names(state, hand)[0]}"
        reasons = [(False, "")]
        if verb == "go":
            reasons = [
                (name == ROOMS[room], "you are there"),
                (True, f"no door leads from here to the {name}"),
            ]
        elif verb in ("open", "close", "put"):
            place = NAMES.index(name)
            now = "open" if int(state.opened) >> place & 1 else "closed"
            reasons = [
                (
                    ROOM_OF[place] != room,
                    f"the {name} is in another room, the {ROOMS[ROOM_OF[place]]}",
                ),
                (verb != "put", f"the {name} is {now} already"),
                (len(hand) == 0, "your hands are empty"),
                (True, f"the {name} is closed"),
            ]
        elif verb in ("take", "slice"):
            cut = verb == "slice" and int(state.sliced) >> THINGS.index(name) & 1 == 1
            reasons = [
                (verb == "take" and len(hand) > 0, holding),
                (
                    verb == "slice" and KNIFE not in hand,
                    f"the knife is not in your hand; {holding}",
                ),
                (cut, f"{name} is sliced already"),
                (True, f"no {name} is in sight"),
            ]
        else:
            station = {"heat": "microwave", "cool": "fridge", "clean": "sink"}.get(verb, "desk")
            away = ROOM_OF[NAMES.index(station)] != room
            reasons = [
                (away, f"the {'lamp' if verb == 'examine' else station} is in another room"),
                (True, f"{holding}, which the {station} does not {verb}"),
            ]
        return next(reason for holds, reason in reasons if holds)

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say that the goal is reached."""
        return f"the task is done: {self.goal(params)}"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the rooms as boxes with their places, and things as they were last seen."""
        from PIL import Image, ImageDraw

        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        pen = ImageDraw.Draw(picture)
        across = width // 3
        down = (height - 24) // 2
        kind_members = int(OF_KIND[int(params.kind)])
        for room, name in enumerate(ROOMS):
            left = 4 + room % 3 * across
            top = 4 + room // 3 * down
            present = room == int(state.room)
            pen.rectangle(
                (left, top, left + across - 8, top + down - 8),
                outline=GOOD if present else WALL,
                width=2,
            )
            doors = ", ".join(
                ROOMS[neighbour]
                for neighbour in range(NUM_ROOMS)
                if int(params.distances[room, neighbour]) == 1
            )
            pen.text((left + 5, top + 3), f"{name} (to {doors})", fill=INK, font_size=8)
            for row, place in enumerate(np.flatnonzero(room == ROOM_OF)):
                y = top + 18 + row * (down - 28) // 5
                shut = place in OPENABLE and not int(state.opened) >> int(place) & 1
                pen.rectangle(
                    (left + 4, y, left + across - 14, y + (down - 28) // 5 - 3),
                    fill=SHUT if shut else PAPER,
                )
                pen.text((left + 6, y), NAMES[place], fill=INK, font_size=9)
                things = np.flatnonzero(np.asarray(state.last_seen) == place)
                relevant = any(kind_members >> int(item) & 1 for item in things)
                pen.text(
                    (left + 6, y + 10),
                    ", ".join(THINGS[t] for t in things),
                    fill=GOOD if relevant else INK,
                    font_size=8,
                )
        hand = np.flatnonzero(np.asarray(state.places) == HAND)
        caption = f"{self.goal(params)}; in hand: {self._list_names(state, hand)[0]}"
        pen.text((6, height - 18), caption, fill=INK, font_size=11)
        return np.asarray(picture)


class TextNav(Household):
    """The task of finding a thing in the same house.

    Its commands are look, go, open, close, take and put.
    """

    tasks = (FIND,)
    verbs = ("look", "go", "open", "close", "take", "put")

    def _tier(self, difficulty: float | None) -> int:
        return 0
