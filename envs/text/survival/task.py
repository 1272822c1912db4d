"""Survive in an open world, and work through its tree of 22 achievements.

A world of 32 x 32 cells after Crafter (Hafner 2021, arXiv:2109.06780): grass, sand, water, lava,
trees, and mountains with caves and veins of coal, iron and diamond. Hands gather wood; pickaxes and
swords of wood and stone are made at a table, those of iron at a furnace too; each opens the next.
Health depends on food, drink and energy. At night one sees less, and more zombies come.

=============  =====================================================================================
action         ``Discrete(17)``: noop; move left, right, up, down; do; sleep; place stone, table,
               furnace, sapling; make a pickaxe or a sword of wood, stone or iron. A move turns
               first: into what is solid it only turns. ``do`` acts on the cell ahead. All actions
               are legal; one that is not possible changes nothing, and time passes
observation    ``Box(0, 1, (1260,))``: the nine by seven cells about the player, and the one ahead,
               each with one flag for each material and each kind of creature, none in the dark;
               needs, items, tools, light, sleep, direction, achievements
reward         1 for each achievement when it is first reached, and a tenth of the change of health
termination    health is 0, or all 22 achievements are reached
success        all 22 achievements are reached
difficulty     number of kinds of rules that are permuted (after Mars, Tang et al. 2024,
               arXiv:2410.08126). 0: none. 1: the item in each material, and the pickaxe it needs.
               2: also who is eaten, who chases and who shoots, whether water quenches thirst or
               feeds, whether saplings are in grass or sand. 3: also what table and furnace are made
               of. Permuted rules are not told; an agent finds them out within the episode
context        the world and its rules. The number of trees is even for train, odd for test; the
               solvable permutations take turns
=============  =====================================================================================

**Deliberate differences from Crafter.** 1,000 steps instead of 10,000, and a plant is ripe after
200 steps; the world has a quarter of the cells. In every world each kind of thing can be reached on
foot. Creatures come and go near the player, at most two cows, three zombies, two skeletons.
Skeletons do not flee, and arrows break nothing. An item that is full is not gathered, a tool is
made once. A furnace takes four stones beside a table. Darkness hides what is far instead of adding
noise. The episode ends when the tree is complete.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from rlbench_suite.core.arrays import UInt32Array
from rlbench_suite.core.component import Component, singles
from rlbench_suite.core.task import Task
from rlbench_suite.core.task_card import TaskCard
from rlbench_suite.foundation.unknown_names import unknown
from rlbench_suite.numerics.batch_last import few_in_one_kernel
from rlbench_suite.numerics.bit_exact import computed_once
from rlbench_suite.numerics.bitset import flags_and_numbers

from ...shared.alternating_bands import split_bits
from .actions import RIPE, act, live
from .creatures import come_and_go, move
from .rules import (
    ACHIEVEMENTS,
    ACTIONS,
    ALL,
    DIRECTIONS,
    ITEMS,
    LAVA,
    MATERIALS,
    MAX_AMOUNT,
    STEPS,
    TOOLS,
    Rules,
    draw_rules,
    number_of,
)
from .state import BRIGHT, KINDS, NOWHERE, State, first_state, light, sight
from .view import COLUMNS, LOOKS, ROWS, view_words
from .world import START, WORDS, draw_world

MARKS = "#.,_~!T^cidtf"
"""Marks of the materials in words."""
LOOK_MARKS = "CZS*pP"
"""Marks of creatures, arrows and plants."""
HERE = "@"
"""Mark of the player."""
DARK = "?"
"""Mark of a cell that is not seen."""
TILE = 36
BAR = 64
COLOURS = np.array([
    (0, 0, 0), (120, 178, 88), (228, 212, 150), (176, 162, 146), (70, 130, 200), (226, 100, 30),
    (40, 96, 48), (128, 128, 132), (60, 60, 64), (206, 150, 110), (190, 240, 250), (150, 100, 50),
    (90, 40, 40),
], np.uint8)  # fmt: skip
LOOK_COLOURS = (
    (240, 240, 240),
    (60, 120, 60),
    (220, 220, 190),
    (30, 30, 30),
    (60, 160, 60),
    (230, 60, 120),
)
PLAYER = (250, 200, 40)
INK = (30, 30, 34)
PAPER = (250, 250, 247)
UNSEEN = (20, 20, 26)


class Params(NamedTuple):
    """The context."""

    world: UInt32Array
    """Materials at first, uint32 ``(32, 4)``; see ``world.py``."""
    rules: Rules
    """Rules, hidden where they are permuted."""


class Survival(Task[Params, State]):
    """The task; see the module's docstring.

    Attributes:
        permuted: number of kinds of rules that are permuted, from 0 to 3.
    """

    measures: ClassVar[dict[str, str]] = {
        "achievements": "achievements reached",
        "unlocked": "the same as a set: bit i for the i-th of the page",
        "health": "health from 0 to 9",
        "light": "light from 0 to 8",
    }
    picture_shape = (ROWS * TILE + BAR, COLUMNS * TILE, 3)

    def __init__(self, card: TaskCard, *, difficulty: float | None, dtype: str) -> None:
        super().__init__(card, difficulty=difficulty, dtype=dtype)
        number = 0.0 if difficulty is None else difficulty
        if number not in (0, 1, 2, 3):
            raise ValueError(
                f"A difficulty of {card.id} is the number of kinds of rules that are permuted, a "
                f"whole number from 0 to 3; got {difficulty!r}."
            )
        self.permuted = int(number)
        entries = sum(component.size for component in self.observation_components())
        self.observation_space = self.box(0.0, 1.0, (entries,))
        self.action_space = spaces.Discrete(len(ACTIONS))
        # Several achievements in a step: one by the action, and waking up.
        self.reward_space = self.box(-0.9, 2.9, ())

    def sample_params(self, key: jax.Array, split: jax.Array) -> Params:
        """Draw a world and its rules."""
        bits = split_bits(self.bits(key, 32 * WORDS + 10), split)
        world = draw_world(bits[10:].reshape(WORDS, 32), bits[2:10], split, self.permuted > 0)
        return Params(world, draw_rules(bits[:2], split, self.permuted))

    def initial(self, key: jax.Array, params: Params) -> State:
        """Begin in the middle, rested and fed, with nothing."""
        return first_state(params.world, START)

    def transition(self, state: State, action: jax.Array, key: jax.Array, params: Params) -> State:
        """Let the player act, then its needs, then creatures; being hurt wakes a sleeper."""
        words = self.bits(key, 3)
        luck = (words[2] >> 25 & 7).astype(jnp.int32)

        @few_in_one_kernel
        def later(state: State, words: jax.Array, health: jax.Array) -> State:
            after = come_and_go(move(live(state), words[:2]), words[2])
            return after._replace(
                world=None, sleeping=jnp.where(after.health < health, 0, after.sleeping)
            )

        after = act(state._replace(time=state.time + 1), action, luck, params.rules)
        return later(after, words, state.health)._replace(world=after.world)

    def observation(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return what is seen and known; see the module's docstring."""
        player_bits = state.tools | jnp.uint32(1) << 6 + state.facing.astype(jnp.uint32)
        player_bits |= state.sleeping.astype(jnp.uint32) << 10 | state.unlocked << 11
        words = computed_once(jnp.concatenate)(
            [
                few_in_one_kernel(view_words)(state, params.rules),
                player_bits[None],
                state.unlocked[None] >> 21,
            ]
        )
        needs = state.health, state.food, state.drink, state.energy
        items = (number_of(state.items, item).astype(jnp.int32) for item in range(len(ITEMS)))
        numbers = jnp.stack([*needs, *items]).astype(self.dtype) / jnp.asarray(
            MAX_AMOUNT, self.dtype
        )
        bright = light(state.time).astype(self.dtype) / jnp.asarray(BRIGHT, self.dtype)
        return flags_and_numbers(
            words, len(MATERIALS + LOOKS) * 64 + 33, jnp.append(numbers, bright)
        )

    def observation_components(self) -> tuple[Component, ...]:
        """List the entries of :meth:`observation`, in order."""
        kinds = ", ".join((*MATERIALS, *LOOKS))
        return (
            Component(
                "view",
                f"[kind, cell]: {kinds}; row by row, then the cell ahead",
                shape=(len(MATERIALS) + 6, 64),
            ),
            Component(
                "tools", f"whether one has each tool: {', '.join(TOOLS)}", shape=(len(TOOLS),)
            ),
            Component("facing", "direction: left, right, up, down", shape=(4,)),
            Component("sleeping", "whether one sleeps"),
            Component(
                "unlocked",
                "achievements reached: " + ", ".join(ACHIEVEMENTS),
                shape=(len(ACHIEVEMENTS),),
            ),
            Component("needs", "health, food, drink, energy", f"{MAX_AMOUNT}", (4,)),
            Component("items", f"numbers of {', '.join(ITEMS)}", f"{MAX_AMOUNT}", (len(ITEMS),)),
            Component("light", "1 by day, 0 at midnight"),
        )

    def action_components(self) -> tuple[Component, ...]:
        """List the actions."""
        meanings = {
            "noop": "do nothing",
            **{
                f"move {direction}": f"turn, and go one cell {direction} if it is free"
                for direction in DIRECTIONS
            },
            "do": "gather, drink, hit or eat what is ahead",
            "sleep": "sleep until energy is full, or until hurt",
            **{
                f"place {what}": f"place a {what} ahead"
                for what in ("stone", "table", "furnace", "sapling")
            },
            **{f"make {tool}": f"make a tool, the {tool}, beside a table" for tool in TOOLS},
        }
        return singles({action.replace(" ", "_"): meanings[action] for action in ACTIONS})

    def reward(
        self, state: State, action: jax.Array, next_state: State, key: jax.Array, params: Params
    ) -> jax.Array:
        """Return new achievements and a tenth of the change of health."""
        new = jax.lax.population_count(next_state.unlocked & ~state.unlocked).astype(jnp.int32)
        tenths = (10 * new + next_state.health - state.health).astype(self.dtype)
        return tenths / jnp.asarray(10, self.dtype)

    def terminal(self, state: State, key: jax.Array, params: Params) -> jax.Array:
        """Return whether the player is dead or has reached everything."""
        return (state.health <= 0) | (state.unlocked == ALL)

    def info(self, state: State, params: Params) -> dict[str, jax.Array]:
        """Return ``success``, everything reached, and the measures."""
        return {
            "success": state.unlocked == ALL,
            "achievements": jax.lax.population_count(state.unlocked).astype(jnp.int32),
            "unlocked": state.unlocked.astype(jnp.int32),
            "health": state.health,
            "light": light(state.time),
        }

    # -- host side: no more than the observation shows ---------------------------------------------

    def _view(self, state: State, params: Params) -> tuple[np.ndarray, np.ndarray]:
        """Return the material of each cell of the view, and the look of what is in it.

        Looks are numbered as in ``LOOKS``; -1 stands for none.
        """
        row = int(state.cell) >> 5
        column = int(state.cell) & 31
        max_distance = int(sight(state))
        down, right = np.ogrid[-(ROWS // 2) : ROWS // 2 + 1, -(COLUMNS // 2) : COLUMNS // 2 + 1]
        r = row + down
        c = column + right
        # (row, 1, bit): words of the 32 columns.
        planes = state.world[r[:, 0] & 31].astype(int)[:, None]
        materials = ((planes >> (c[0] & 31)[:, None] & 1) << np.arange(4)).sum(-1)
        materials *= (r >> 5 == 0) & (c >> 5 == 0)  # outside the world as material 0
        materials[np.maximum(abs(down), abs(right)) > max_distance] = -1
        looks = np.full((ROWS, COLUMNS), -1)
        kinds = [*(int(params.rules.looks) >> 2 * int(kind) & 3 for kind in KINDS), 3, 3]
        kinds += [5 if age >= RIPE else 4 for age in state.ages]
        for look, cell in zip(kinds, state.occupied_cells, strict=True):
            i = (int(cell) >> 5) - row + ROWS // 2
            j = (int(cell) & 31) - column + COLUMNS // 2
            if int(cell) != NOWHERE and 0 <= i < ROWS and 0 <= j < COLUMNS and materials[i, j] >= 0:
                looks[i, j] = look
        return materials, looks

    def describe(self, state: State, params: Params) -> str:
        """Describe what is seen and known."""
        materials, looks = self._view(state, params)
        marks = [[(MARKS + DARK)[kind] for kind in row] for row in materials.tolist()]
        for i, j in np.argwhere(looks >= 0):
            marks[i][j] = LOOK_MARKS[looks[i, j]]
        marks[ROWS // 2][COLUMNS // 2] = HERE
        down, right = divmod(STEPS[int(state.facing)] + 33, 32)
        at = ROWS // 2 + down - 1, COLUMNS // 2 + right - 1
        kind = int(materials[at])
        look = int(looks[at])
        facing = "what you cannot see"
        if kind >= 0:
            facing = MATERIALS[kind]
        if look >= 0:
            facing = LOOKS[look]
        numbers = {item: number_of(int(state.items), i) for i, item in enumerate(ITEMS)}
        items = [f"{number} {item}" for item, number in numbers.items() if number]
        tools = [tool for i, tool in enumerate(TOOLS) if int(state.tools) >> i & 1]
        missing = [name for i, name in enumerate(ACHIEVEMENTS) if not int(state.unlocked) >> i & 1]
        asleep = " You are asleep." if int(state.sleeping) else ""
        return "\n".join([
            f"Still to do: {', '.join(missing) or 'nothing'}.",
            "",
            *("".join(row) for row in marks),
            f"Health {state.health}, food {state.food}, drink {state.drink}, energy "
            f"{state.energy}. Light {int(light(state.time))} of {BRIGHT}.{asleep}",
            f"You have: {', '.join((*items, *tools)) or 'nothing'}. To your "
            f"{DIRECTIONS[int(state.facing)]}, which you face: {facing}.",
        ])  # fmt: skip

    def rules(self) -> str:
        """Return the rules."""
        marks = ", ".join(
            f"{mark} {name}"
            for mark, name in zip(MARKS + LOOK_MARKS, (*MATERIALS, *LOOKS), strict=True)
        )
        kinds = (
            "which item a material holds and which pickaxe it needs",
            (
                "who is eaten, who chases and who shoots; whether water quenches thirst or feeds; "
                "where saplings are"
            ),
            "what a table and a furnace are made of",
        )[: self.permuted]
        if kinds:
            differ = (
                " In this world these rules may differ, and you have to find out how: "
                f"{'; '.join(kinds)}."
            )
        else:
            differ = ""
        return (
            "Survive, and reach all achievements; each earns 1 the first time. Health lost costs "
            "0.1 a point. Food, "
            "drink and energy fall with time; at 0 they cost health. You see nine by seven cells, "
            "fewer at night. A "
            "move turns you, and takes you there if the way is free (grass, sand, path). Lava "
            "kills. 'do' acts on the "
            "cell you face: it gathers, drinks, hits, eats. Trees give wood to bare hands; stone "
            "and coal need a wood "
            "pickaxe, iron a stone one, diamond an iron one. Grass gives a sapling one time in "
            "eight. A table takes "
            "2 wood; a furnace 4 stone, beside a table. Tools are made beside a table: of 1 wood, "
            "or 1 wood and 1 "
            "stone; of iron beside a furnace too, of 1 wood, 1 coal and 1 iron. A sapling grows on "
            "grass and is ripe "
            f"after {RIPE} steps, unless a creature comes beside it. Sleep until energy is full to "
            f"wake up.{differ} A "
            f"day has 300 steps; there are {self.card.horizon}. A reply that is no action is "
            "played as noop.\nMarks: "
            f"{marks}, {HERE} you, {DARK} not seen."
        )

    def how_to_act(self) -> str:
        """Tell a text player the actions."""
        return f"Answer with one of: {', '.join(ACTIONS)}."

    def parse(self, text: str, state: State, params: Params) -> np.ndarray:
        """Return the action of a name.

        Raises:
            ValueError: the text names no action; the message names the nearest one.
        """
        name = " ".join(text.lower().replace("_", " ").split())
        if name not in ACTIONS:
            raise ValueError(unknown("action", text, ACTIONS))
        return np.array(ACTIONS.index(name), self.action_space.dtype)

    def spell(self, action: np.ndarray, state: State, params: Params) -> str:
        """Return the name of an action."""
        return ACTIONS[int(action)]

    def why_over(self, state: State, params: Params, info: dict[str, Any]) -> str:
        """Say whether the player died or finished."""
        return "all achievements are reached" if int(state.unlocked) == ALL else "you died"

    def draw(self, state: State, params: Params) -> np.ndarray:
        """Draw the view, and below it needs, items and tools."""
        from PIL import Image, ImageDraw

        materials, looks = self._view(state, params)
        colours = np.where(
            materials[..., None] >= 0, COLOURS[np.maximum(materials, 0)], np.array(UNSEEN, np.uint8)
        )
        height, width, _ = self.picture_shape
        picture = Image.new("RGB", (width, height), PAPER)
        picture.paste(
            Image.fromarray(colours.astype(np.uint8).repeat(TILE, 0).repeat(TILE, 1)), (0, 0)
        )
        pen = ImageDraw.Draw(picture)
        for i in range(ROWS):
            for j in range(COLUMNS):
                x, y = j * TILE, i * TILE
                look = int(looks[i, j])
                if look >= 0:
                    pen.ellipse(
                        (x + 6, y + 6, x + TILE - 7, y + TILE - 7),
                        fill=LOOK_COLOURS[look],
                        outline=INK,
                    )
                mark = ""
                if materials[i, j] > LAVA:
                    mark = MARKS[int(materials[i, j])]
                if look >= 0:
                    mark = LOOK_MARKS[look]
                pen.text((x + 14, y + 11), mark, fill=INK if look >= 0 else PAPER, font_size=12)
        x, y = COLUMNS // 2 * TILE + TILE // 2, ROWS // 2 * TILE + TILE // 2
        pen.ellipse((x - 12, y - 12, x + 12, y + 12), fill=PLAYER, outline=INK)
        right, down = ((-1, 0), (1, 0), (0, -1), (0, 1))[int(state.facing)]
        pen.ellipse(
            (x + 9 * right - 3, y + 9 * down - 3, x + 9 * right + 3, y + 9 * down + 3), fill=INK
        )
        lines = self.describe(state, params).splitlines()
        for line, text in enumerate((lines[-2], lines[-1].split(". To your")[0])):
            pen.text((5, ROWS * TILE + 4 + 28 * line), text[:70], fill=INK, font_size=10)
        return np.asarray(picture)
