"""The task card: all that is known about a task before it is built.

A card is plain data. Reading every card of the suite imports neither JAX nor a task's own file, so
listing, registering and validating names is free.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import operator
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from rlbench_suite.contexts.numerals import read_integer
from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.scale import (
    ANCHORS,
    MAX_CHANCE_SUCCESS,
    MAX_FAILURE_SHARE,
    ZERO_PLAYERS,
    Scale,
    Score,
    Zero,
)
from rlbench_suite.foundation.unknown_names import MAX_QUOTE, one_of, unexpected, unknown

if TYPE_CHECKING:
    from rlbench_suite.contexts.context import Context

SPLITS = ("train", "test")
DTYPES = ("float32", "float64")
SCORES_FILE = "reference_scores.json"
ONE_SHOT_FILE = "one_shot_scores.json"
KEYWORDS = (
    "split", "difficulty", "context", "view", "dtype", "render_mode", "weights", "objectives",
)  # fmt: skip
"""Keywords that ``gymnasium.make`` takes for every id, besides the settings of its card."""

_BUILT: dict[tuple[Any, ...], Any] = {}
"""Built tasks, the last used one last.

Equal descriptions share one immutable object, so that its compiled programs are found again.
"""
_BUILDING = RLock()
MAX_BUILT_TASKS = 128
"""Number of built tasks that are remembered.

The number is bounded because a difficulty may be any number, and each makes a task of its own.
"""


@dataclass(frozen=True, kw_only=True)
class JointGame:
    """The game behind a task against opponents, in which all sides are agents.

    Args:
        entry_point: its class, ``module:Class``, a :class:`rlbench_suite.core.game.Game`.
        agents: number of agents of all sides.
        horizon: largest number of its steps, which are the moves of both sides in turn.
    """

    entry_point: str
    agents: int
    horizon: int


@dataclass(frozen=True, kw_only=True)
class TaskCard:
    """Description of a task: identity, limits, parts, and the scores of known players.

    Attributes:
        id: Gymnasium id, ``rlsuite/Name-vN``. The version changes whenever a trajectory changes.
        family: folder of the family under ``envs/``.
        summary: one line.
        source: paper or book that the task is taken from.
        entry_point: ``module:Class`` of the :class:`~rlbench_suite.core.task.Task`, or
            ``module:function`` of one that makes it.
        reference: ``module:Class`` of the family's own player, a
            :class:`~rlbench_suite.core.policy.Policy` with a class method ``for_task(task)`` that
            makes it; empty for a task without one.
        constant: ``module:Class`` of a player that repeats one action, the best that was found on
            the training split, made as ``reference`` is; empty where random play or doing nothing
            is the better zero of the scale.
        yardsticks: other known players that are measured beside it, such as ``memoryless`` or
            ``heuristic``, by name; each is named as ``reference`` is.
        puzzle: ``module:Class`` of its one-shot form, a
            :class:`~rlbench_suite.puzzle.puzzle.Puzzle`; empty where it has none.
        solvable: ``module:Class`` of the one-shot form that poses only instances with a solution;
            empty where every instance has one, or where ``puzzle`` asks for a proof if there is
            none. The setting ``answers="solvable"`` chooses it.
        horizon: time limit in steps.
        settings: every keyword by which the task may vary, with its value: plain data that the task
            reads. Another value gives another task, by two rules. A setting in ``choices`` may be
            changed by itself. Any other setting leads to another card of the family, which must
            have the same ones.
        choices: settings that may be changed by themselves, with the values they may take, the
            default first; the card fills the defaults into ``settings``. Another value gives an id
            of its own, ``rlsuite/Name-v0?setting=value``. This id is in no list and no suite, and
            has measured scores only if it was calibrated.
        fields_by_choice: fields of the card that depend on a choice, such as ``objectives``: by
            ``setting=value``, for every value of that setting.
        meaningless: values that other cards of the family have and this one has not, as
            ``setting=value``, with the reason that the error gives.
        context: constants of the user's own in place of the shipped ones; None for a shipped task.
        listed: True if lists and suites have the card. Otherwise it is found only by its id or its
            settings.
        variant: True if its family's suite has it but the suite ``all`` does not. Such a task
            differs from an id of ``all`` only by its settings or simulator, is one of the many
            puzzles, or is a published problem that blind play solves.
        difficulties: tier name to the number that defines it; empty where the task has one
            difficulty only.
        contexts: True if episodes differ by a sampled context (parameters), so that train and test
            splits exist.
        objectives: names of the reward's components; empty for a scalar reward.
        weights: weights of the linear scalarisation that scores a vector reward; same length as
            ``objectives``.
        hypervolume_reference: point below every return, from which hypervolume is measured.
        agents: number of agents; more than one makes it a PettingZoo task too.
        agent_range: fewest and most agents that the task can have instead; None where their number
            is fixed. Another number gives an id of its own, ``rlsuite/Name-v0?agents=n``, in no
            list and no suite and without measured scores.
        game: the game of all sides, which makes the task a PettingZoo task too; None for a task
            without opponents.
        without_preferences: the card of the plain task, if this one is :meth:`with_preferences`;
            None otherwise.
        without_objectives: the plain card of one :meth:`with_objectives`; None otherwise.
        host: True if a simulator of the host computes it (:mod:`rlbench_suite.core.host`) instead
            of pure functions.
        requires: module that computes it and that may be missing. Tests and pages then leave the
            task out.
        trained_on: id of the task on which agents train before they are judged on this one; empty
            where that is the task itself. Observation and action spaces are equal. A report says
            how much of a score the transfer loses.
        partially_observed: True if an agent needs a memory, because one observation does not show
            all that matters.
        optimum: best achievable expected return where it is known in closed form or by enumeration;
            None for a card with other choices.
        optima: the same by difficulty, where it differs; a difficulty that is not listed has none
            that is known.
        replay_tolerance: allowed difference of a return that a processor with other rounding
            replays, about four times what ``benchmarks/audits/across_processors.py`` finds.
        constraint: limit of the task's ``cost``; None for a task without one.
        chance: why a player without skill succeeds in more than 5 % of episodes at some
            difficulty; empty where none does.
        hard_for_reference: why the reference fails in more than 20 % of episodes at some
            difficulty; empty where it does not.
        open_loop: why play that is fixed before an episode begins scores above 0.25; empty where it
            does not.
        generalization: what the test split asks of an agent that has met the train split alone, and
            what the reference knows that such an agent cannot; empty where both splits draw from
            interleaved bands of one distribution.
        tags: free words for filtering.
    """

    id: str
    family: str
    summary: str
    source: str
    entry_point: str
    reference: str
    horizon: int
    constant: str = ""
    yardsticks: Mapping[str, str] = field(default_factory=dict)
    puzzle: str = ""
    solvable: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fields_by_choice: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    meaningless: Mapping[str, str] = field(default_factory=dict)
    context: Context | None = None
    listed: bool = True
    variant: bool = False
    difficulties: Mapping[str, float] = field(default_factory=dict)
    contexts: bool = True
    objectives: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    hypervolume_reference: tuple[float, ...] = ()
    agents: int = 1
    agent_range: tuple[int, int] | None = None
    game: JointGame | None = None
    without_preferences: TaskCard | None = None
    without_objectives: TaskCard | None = None
    host: bool = False
    requires: str = ""
    trained_on: str = ""
    partially_observed: bool = False
    optimum: float | None = None
    optima: Mapping[str, float] = field(default_factory=dict)
    replay_tolerance: float = 0.0
    constraint: Constraint | None = None
    chance: str = ""
    hard_for_reference: str = ""
    open_loop: str = ""
    generalization: str = ""
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.solvable:
            object.__setattr__(self, "choices", {**self.choices, "answers": ("any", "solvable")})
        defaults = {
            name: allowed[0] for name, allowed in self.choices.items() if name not in self.settings
        }
        object.__setattr__(self, "settings", {**self.settings, **defaults})
        if self.optima:
            object.__setattr__(self, "optimum", self.optima.get(str(self.default_difficulty)))

    @property
    def name(self) -> str:
        """The id without its namespace: ``SAT-v0``, ``SAT-v0?difficulty=hard``."""
        return self.id.split("/", 1)[1]

    @property
    def measuring_command(self) -> str:
        """The command that measures the players of this card, as one types it in a shell."""
        return f"rlsuite dev calibrate {shlex.quote(self.id)}"

    @property
    def file_name(self) -> str:
        """The name in characters that every file system takes: ``SAT-v0,difficulty=hard``."""
        return file_name_of(self.id)

    @property
    def registered_id(self) -> str:
        """The id that Gymnasium knows.

        It is this one without chosen settings and without a difficulty.
        """
        return self.id.partition("?")[0]

    @property
    def installed(self) -> bool:
        """True if the module that computes it is installed. Nothing is imported to find out."""
        return not self.requires or importlib.util.find_spec(self.requires) is not None

    @property
    def cost_tolerance(self) -> float:
        """Allowed difference of an episode's cost that a processor with other rounding replays.

        A cost may be a sum over thousands of steps, far larger than a return. So a thousandth of
        the limit is allowed.
        """
        return max(self.replay_tolerance, 1e-3 * self.constraint.limit if self.constraint else 0.0)

    @cached_property
    def fixed(self) -> dict[str, Any]:
        """Settings that distinguish this card from others of its family: all except ``choices``."""
        return {name: value for name, value in self.settings.items() if name not in self.choices}

    def with_settings(self, **choices: Any) -> TaskCard:
        """Return the card with these choices, or this card if they are the ones it has.

        Raises:
            ValueError: no such setting may be chosen, or the value is not allowed.
        """
        settings = dict(self.settings)
        for name, value in choices.items():
            if name not in self.choices:
                raise unexpected(self.id, name, [*KEYWORDS, *self.settings])
            if reason := self.meaningless.get(f"{name}={value}"):
                raise ValueError(
                    f"{unknown(f'{name} of {self.id}', value, self.choices[name])} {reason}"
                )
            settings[name] = one_of(f"{name} of {self.id}", value, self.choices[name])
        if settings == self.settings:
            return self
        changed = (name for name, allowed in self.choices.items() if settings[name] != allowed[0])
        query = "&".join(f"{name}={settings[name]}" for name in changed)
        plain_id = self.id.partition("?")[0]
        task_id = f"{plain_id}?{query}" if query else plain_id
        fields: dict[str, Any] = {"optimum": None, "optima": {}}
        for name, value in settings.items():
            fields |= self.fields_by_choice.get(f"{name}={value}", {})
        return replace(self, id=task_id, settings=settings, **fields)

    @property
    def measured_id(self) -> str:
        """The id under which files of measured scores have the task.

        It is this one without a difficulty. A card with several objectives has the returns of the
        plain task, whose file it reads.
        """
        if self.without_objectives is not None:
            return self.without_objectives.measured_id
        return re.sub(r"[?&]difficulty=[^&]*$", "", self.id)

    def with_difficulty(self, tier: object) -> TaskCard:
        """Return the card with this tier as its default, or this card if it is.

        The id then names the tier.

        Raises:
            ValueError: no such tier, or the task has one difficulty only.
        """
        if tier not in self.difficulties:
            if self.difficulties:
                raise ValueError(unknown(f"difficulty for {self.id}", tier, self.difficulties))
            self.check_difficulty(str(tier))
        if tier == self.default_difficulty:
            return self
        name = str(tier)
        return replace(
            self,
            id=self._id_with(f"difficulty={name}"),
            difficulties={name: self.difficulties[name], **self.difficulties},
        )

    def with_agents(self, number: object) -> TaskCard:
        """Return the card with this number of agents, or this card if it has it.

        Raises:
            ValueError: the number is out of range, or that of this task is fixed.
        """
        if self.agent_range is None:
            raise unexpected(self.id, "agents", [*KEYWORDS, *self.settings])
        smallest, largest = self.agent_range
        try:
            count = read_integer(number) if isinstance(number, str) else operator.index(number)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            count = 0
        if isinstance(number, bool) or not smallest <= count <= largest:
            raise ValueError(
                f"{self.id} has {smallest} to {largest} agents, {self.agents} by default; got "
                f"agents={str(number)[:MAX_QUOTE]}."
            )
        if count == self.agents:
            return self
        return replace(
            self, id=self._id_with(f"agents={count}"), agents=count, optimum=None, optima={}
        )

    def _id_with(self, setting: str) -> str:
        """Return the id with one more setting, ``name=value``."""
        return f"{self.id}{'&' if '?' in self.id else '?'}{setting}"

    def with_context(self, context: Context) -> TaskCard:
        """Return the card with these constants. The id then names them."""
        return replace(
            self,
            id=self._id_with(f"context={context.label}"),
            context=context,
            optimum=None,
            optima={},
        )

    def joint(self) -> TaskCard:
        """Return the card of the game in which all sides are agents; this card without a game.

        Nobody has measured scores there, since what one side wins another loses.
        """
        if self.game is None:
            return self
        return replace(
            self,
            id=self._id_with("sides=all"),
            entry_point=self.game.entry_point,
            agents=self.game.agents,
            horizon=self.game.horizon,
            game=None,
            reference="",
            constant="",
            yardsticks={},
            difficulties={},
            optimum=None,
            optima={},
        )

    def with_preferences(self) -> TaskCard:
        """Return the card of the task whose weights are sampled in each episode and observed.

        See :mod:`rlbench_suite.core.preferences`. It is this card if it is one of that kind. Nobody
        has measured scores there, since every preference has a best return of its own.

        Raises:
            ValueError: the task has one objective, or a simulator of the host computes it.
        """
        if self.without_preferences is not None:
            return self
        if not self.objectives:
            raise ValueError(f"{self.id} has one objective, so that there is nothing to prefer.")
        if self.host:
            raise ValueError(f"{self.id} runs on the host; its weights are those of its card.")
        return replace(
            self,
            id=self._id_with("preferences=sampled"),
            entry_point="rlbench_suite.core.preferences:SampledPreferences",
            without_preferences=self,
            contexts=True,
            weights=(1.0,) * len(self.objectives),
            hypervolume_reference=(),
            reference="",
            constant="",
            yardsticks={},
            puzzle="",
            solvable="",
            trained_on="",
            optimum=None,
            optima={},
        )

    def with_objectives(self) -> TaskCard:
        """Return the card of the task whose reward is shown as several objectives.

        See :mod:`rlbench_suite.core.objectives`. It is this card if it is one of that kind. Its
        players and measured scores are those of this card.

        Raises:
            ValueError: the task has several objectives, is a game, or runs on the host.
        """
        if self.without_objectives is not None:
            return self
        if self.objectives:
            names = ", ".join(self.objectives)
            raise ValueError(f"{self.id} has objectives of its own: {names}. Leave this out.")
        if self.host or self.game is not None:
            raise ValueError(f"{self.id} {'runs on the host' if self.host else 'is a game'}.")
        names = self.build().price_names
        return replace(
            self,
            id=self._id_with("objectives=several"),
            entry_point="rlbench_suite.core.objectives:SeveralObjectives",
            without_objectives=self,
            objectives=("reward", *names),
            weights=(1.0, *(0.0 for _ in names)),
            puzzle="",
            solvable="",
        )

    @property
    def measured_players(self) -> tuple[str, ...]:
        """Names of the players that ``rlsuite dev calibrate`` measures."""
        anchors = [player for player in ANCHORS if player != "constant" or self.constant]
        return (*anchors, *self.yardsticks)

    @property
    def default_difficulty(self) -> str | None:
        """The first tier listed, or None where the task has one difficulty only."""
        return next(iter(self.difficulties), None)

    @property
    def one_shot_difficulties(self) -> Sequence[float]:
        """Numbers that ``difficulty`` may be in the one-shot form; empty without one.

        Imports the puzzle's file.
        """
        tiers: Sequence[float] = load(self.puzzle).tiers if self.puzzle else ()
        return tiers

    def check_difficulty(self, difficulty: str | float | None) -> float | None:
        """Return the number behind a tier name; None for a task with one difficulty.

        Raises:
            ValueError: no such tier, or the task has one difficulty only.
        """
        if difficulty is None:
            difficulty = self.default_difficulty
        if difficulty is None:
            return None
        if not self.difficulties:
            raise ValueError(
                f"{self.id} has one difficulty only; leave difficulty out (given: {difficulty!r})."
            )
        if isinstance(difficulty, str):
            if difficulty not in self.difficulties:
                raise ValueError(
                    unknown(f"difficulty for {self.id}", difficulty, self.difficulties)
                )
            return self.difficulties[difficulty]
        if (
            isinstance(difficulty, bool)
            or not isinstance(difficulty, Real)
            or not abs(difficulty) < math.inf
        ):
            raise ValueError(
                f"A difficulty of {self.id} is one of {', '.join(self.difficulties)}, or a finite "
                f"number; got {str(difficulty)[:MAX_QUOTE]}."
            )
        return difficulty

    def build(self, *, difficulty: str | float | None = None, dtype: str = "float32") -> Any:
        """Return the ``Task`` or ``HostTask``, importing its file and JAX.

        Equal arguments give the same object. The last :data:`MAX_BUILT_TASKS` tasks are remembered.

        Raises:
            ValueError: unknown difficulty or dtype.
        """
        if dtype not in DTYPES:
            raise ValueError(unknown("dtype", dtype, DTYPES))
        key = (self.id, self.entry_point, number := self.check_difficulty(difficulty), dtype)
        with _BUILDING:
            task = _BUILT.pop(key, None)
            if task is None:
                task = load(self.entry_point)(self, difficulty=number, dtype=dtype)
            _BUILT[key] = task  # the last of all
            while len(_BUILT) > MAX_BUILT_TASKS:
                del _BUILT[next(iter(_BUILT))]
        return task

    def scores_path(self, file: str) -> Path:
        """Return the path of a file of measured scores.

        The file lies in the package of the task or beside its context.
        """
        if self.without_objectives is not None:
            return self.without_objectives.scores_path(file)
        if self.context:
            return self.context.scores_path
        # Does not import the task's own file.
        spec = importlib.util.find_spec(self.entry_point.split(":")[0])
        return Path(spec.origin if spec and spec.origin else "").parent / file

    def _tier(self, difficulty: str | float | None) -> str:
        """Return the name of a difficulty in files of scores."""
        if difficulty is None:
            difficulty = self.default_difficulty or "default"
        return next(
            (name for name, number in self.difficulties.items() if number == difficulty),
            str(difficulty),
        )

    def _scores(self, file: str) -> dict[str, dict[str, Score]]:
        path = self.scores_path(file)
        measured = json.loads(path.read_text()).get(self.measured_id, {}) if path.exists() else {}
        return {
            tier: {player: Score(**s) for player, s in players.items()}
            for tier, players in measured.items()
        }

    @cached_property
    def _measured(self) -> dict[str, dict[str, Score]]:
        return self._scores(SCORES_FILE)

    @cached_property
    def _one_shot(self) -> dict[str, dict[str, Score]]:
        return self._scores(ONE_SHOT_FILE)

    def scores(self, difficulty: str | float | None = None) -> dict[str, Score]:
        """Return measured returns by player, from ``rlsuite dev calibrate``.

        Players are ``random``, ``noop``, ``constant``, ``reference`` and the yardsticks.

        Empty for a difficulty that was never calibrated.
        """
        return self._measured.get(self._tier(difficulty), {})

    def one_shot_scores(self, difficulty: str | float | None = None) -> dict[str, Score]:
        """Return measured scores of one-shot answers by player.

        :mod:`rlbench_suite.evaluation.analysis.one_shot` measures them.

        The entry ``difficulty`` is the mean difficulty of instances. ``rlsuite dev calibrate``
        writes them; they are empty if there is no one-shot form.
        """
        return self._one_shot.get(self._tier(difficulty), {})

    def scale(self, difficulty: str | float | None = None) -> Scale:
        """Return the scale of scores.

        0 is the best player without skill (random play, doing nothing or a constant action), 1 is
        the reference.

        Raises:
            ValueError: this difficulty was never calibrated, or the reference is no better than the
                zero.
        """
        scale = Scale.of(self.scores(difficulty))
        if scale is None:
            raise ValueError(
                f"{self.id} has no measured scores at this difficulty; run: "
                f"{self.measuring_command}"
            )
        if scale.span <= 0:
            raise ValueError(
                f"{self.id}: the reference returns {scale.reference.mean} and {scale.zero_name} "
                f"{scale.zero.mean}; "
                "it cannot be normalised."
            )
        return scale

    def zero_player(self) -> str:
        """Return which player scores 0, in words, by difficulty where it differs.

        The text is empty if nothing was measured.
        """
        scales = {tier: Scale.of(self.scores(tier)) for tier in self.difficulties or (None,)}
        names = {tier: scale.zero_name for tier, scale in scales.items() if scale}
        if len(set(names.values())) <= 1:
            return next(iter(names.values()), "")
        return ", ".join(f"{name} ({tier})" for tier, name in names.items())

    def zeros(self) -> dict[str, Zero]:
        """Return the zero of the scale by difficulty, where it was measured.

        The only difficulty of a task is called ``default``.
        """
        scales = {
            tier or "default": Scale.of(self.scores(tier)) for tier in self.difficulties or (None,)
        }
        return {
            tier: Zero(scale.zero_player, scale.zero.mean, scale.zero.success)
            for tier, scale in scales.items()
            if scale
        }

    def zero_in_words(self) -> str:
        """Return which player scores 0, its return and its success, by difficulty.

        The text is empty if nothing was measured.
        """
        return "; ".join(
            (
                f"{ZERO_PLAYERS[zero.player]}{f' ({tier})' if self.difficulties else ''}, return "
                f"{zero.mean_return:.4g}"
            )
            + ("" if zero.success is None else f", success {zero.success:.3g}")
            for tier, zero in self.zeros().items()
        )

    def successes_by_chance(self) -> dict[str, dict[str, float]]:
        """Return how often players without skill succeed, by player and difficulty.

        Only rates above 5 % are given.
        """
        rates: dict[str, dict[str, float]] = {}
        for tier in self.difficulties or (None,):
            for player, score in self.scores(tier).items():
                if player in ZERO_PLAYERS and (score.success or 0.0) > MAX_CHANCE_SUCCESS:
                    rates.setdefault(player, {})[tier or "default"] = score.success or 0.0
        return rates

    def chance_in_words(self) -> str:
        """Return which players without skill succeed, how often, and why.

        The text names the difficulty too; it is empty if no such player succeeds.
        """
        rates = [
            f"{ZERO_PLAYERS[player]} {self._rates_in_words(by_tier)}"
            for player, by_tier in self.successes_by_chance().items()
        ]
        return ": ".join(filter(None, ["; ".join(rates), self.chance]))

    def failures_in_words(self) -> str:
        """Return how often the reference fails at which difficulty, and why.

        Only shares above 20 % are named; the text is empty without one.
        """
        rates: dict[str, float] = {}
        for tier in self.difficulties or (None,):
            reference = self.scores(tier).get("reference")
            if (
                reference
                and reference.success is not None
                and 1 - reference.success > MAX_FAILURE_SHARE
            ):
                rates[tier or "default"] = 1 - reference.success
        return ": ".join(filter(None, [self._rates_in_words(rates), self.hard_for_reference]))

    def _rates_in_words(self, by_tier: Mapping[str, float]) -> str:
        """Return rates in per cent, each with its difficulty if the task has several."""
        return ", ".join(
            f"{100 * rate:.0f} %{f' ({tier})' if self.difficulties else ''}"
            for tier, rate in by_tier.items()
        )

    def normalise(self, episode_return: float, difficulty: str | float | None = None) -> float:
        """Return the score of a return on :meth:`scale`. Errors as there."""
        return float(self.scale(difficulty).score(episode_return))

    def violates(self, *mean_costs: float) -> bool:
        """Return whether seeds of these mean costs break the task's constraint.

        Without a constraint they do not.
        """
        return self.constraint is not None and self.constraint.broken_by_seeds(*mean_costs)

    def constrained_score(self, score: float, mean_cost: float) -> float:
        """Return the constrained score, or the score itself without a constraint.

        See :meth:`Constraint.constrained_score`.
        """
        return self.constraint.constrained_score(score, mean_cost) if self.constraint else score


def id_without_agents(task_id: str) -> str:
    """Return an id without a number of agents: that of the task on which a policy may be judged."""
    name, _, query = task_id.partition("?")
    pairs = [pair for pair in query.split("&") if pair and not pair.startswith("agents=")]
    return "?".join([name, "&".join(pairs)]) if pairs else name


def file_name_of(task_id: str) -> str:
    """Return an id without its namespace, in characters that every file system takes."""
    return task_id.split("/", 1)[1].replace("?", ",").replace("&", ",")


def load(entry_point: str) -> Any:
    """Return the object named ``module:name``.

    Raises:
        ImportError: there is no such module.
        ValueError: the module has no such name.
    """
    module, name = entry_point.split(":")
    imported = importlib.import_module(module)
    if not hasattr(imported, name):
        raise ValueError(
            f"{module} has no {name!r}, which a card or an entry point names as {entry_point!r}."
        )
    return getattr(imported, name)
