"""Every id keeps the contract, and a task that breaks it is told where, in a sentence."""

from __future__ import annotations

import subprocess
import sys
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit
from toy_tasks import (
    Bandit,
    Chain,
    Clock,
    Cue,
    Digits,
    Picture,
    Target,
    Toy,
    TwoAgents,
    TwoObjectives,
    Weather,
)
from trajectories import differences, trajectory
from typer.testing import CliRunner

import rlbench_suite
from rlbench_suite.adapters.batch import BatchPrograms
from rlbench_suite.adapters.rollout import play
from rlbench_suite.adapters.task_env import TaskEnv
from rlbench_suite.adapters.text import TextEnv
from rlbench_suite.checking.checks import check_task, findings
from rlbench_suite.cli.suite import app
from rlbench_suite.core.constraint import Constraint
from rlbench_suite.core.contract import ContractError
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.policy import View
from rlbench_suite.core.task_card import TaskCard


@pytest.mark.every_id
def test_every_id_keeps_the_contract(card: TaskCard, room_for_many: None) -> None:
    check_task(card.build())


@pytest.mark.parametrize(
    "make",
    [
        Chain,
        Cue,
        Digits,
        Picture,
        Target,
        TwoAgents,
        Weather,
        lambda: Bandit(True),
        lambda: TwoObjectives((0.5, 0.5)),
    ],
)
def test_toys_keep_the_contract(make: Callable[[], Toy]) -> None:
    task = make()
    faults = {
        finding.check: finding.faults
        for finding in findings(remove_reference(task))
        if finding.faults
    }
    # Toys pay what they like, and have two contexts or none.
    assert not faults.keys() - {"train and test apart"}


def remove_reference(task: Toy) -> Toy:
    """Return the toy, whose card now names no reference player."""
    object.__setattr__(task.card, "reference", "")
    return task


# -- broken on purpose -----------------------------------------------------------------------------


class KeepsContract(Toy):
    """A walk on five places with a context each, which keeps the contract.

    What breaks it below is one thing at a time.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(horizon=20, **more)
        remove_reference(self)
        self.observation_space = self.box(0.0, 1.0, (2,))
        self.reward_space = self.box(0.0, 1.0)

    def sample_params(self, key, split):
        share = (self.uniform(key, 1)[0] + split) / 2  # each split has a half
        return Clock(share.astype(jnp.float32))

    def transition(self, state, action, key, params):
        return Clock(jnp.clip(state.place + jnp.where(action == 1, 1, -1), 0, 4))

    def observation(self, state, key, params):
        return self.stack(state.place / 4, params.place)

    def reward(self, state, action, next_state, key, params):
        return (next_state.place == 4).astype(self.dtype)

    def terminal(self, state, key, params):
        return state.place == 4

    def info(self, state, params):
        return {"success": state.place == 4}


class FloatingState(KeepsContract):
    def transition(self, state, action, key, params):
        return Clock(state.place + 0.5)


class ShrinkingState(KeepsContract):
    def transition(self, state, action, key, params):
        return (state.place,)


class WideObservation(KeepsContract):
    def observation(self, state, key, params):
        return jnp.zeros(3)


class WholeReward(KeepsContract):
    def reward(self, state, action, next_state, key, params):
        return next_state.place


class NumberTerminal(KeepsContract):
    def terminal(self, state, key, params):
        return state.place // 4


class NoSuccess(KeepsContract):
    def info(self, state, params):
        return {}


class Forgetful(KeepsContract):
    measures = {"place": "where it stands"}  # noqa: RUF012


class Chatty(KeepsContract):
    def info(self, state, params):
        return super().info(state, params) | {"place": state.place}


class ShortMask(KeepsContract):
    def action_mask(self, state, params):
        return jnp.ones(3, bool)


class NoRewardSpace(KeepsContract):
    def __init__(self) -> None:
        super().__init__()
        del self.reward_space


class VectorReward(KeepsContract):
    def __init__(self) -> None:
        super().__init__()
        self.reward_space = self.box(0.0, 1.0, (2,))


class Limited(KeepsContract):
    """Its card has a limit of its cost."""

    def __init__(self) -> None:
        super().__init__(
            constraint=Constraint(counts="a toy's cost", limit=1.0, reason="it is a toy")
        )


class WrongCost(Limited):
    def cost(self, state, action, next_state, params):
        return next_state.place


class WrongPrivileged(KeepsContract):
    def __init__(self) -> None:
        super().__init__()
        self.privileged_space = self.box(0.0, 1.0, (1,))

    def privileged(self, state, params):
        return params.place


SENTENCES = {
    FloatingState: "FloatingState.transition returns place as float32 (), initial gave int32 ().",
    ShrinkingState: "ShrinkingState.transition returns no place, but initial gave int32 ().",
    WideObservation: (
        "WideObservation.observation returns float32 (3,), its space says float32 (2,)."
    ),
    WholeReward: "WholeReward.reward returns int32 (), its space says float32 ().",
    NumberTerminal: "NumberTerminal.terminal returns int32 (), a flag is bool ().",
    NoSuccess: "NoSuccess.info gives no 'success'.",
    Forgetful: "Forgetful.info gives no 'place', which measures declares.",
    Chatty: "Chatty.info gives 'place', which measures does not declare.",
    ShortMask: "ShortMask.action_mask returns bool (3,), its action space asks for bool (2,).",
    NoRewardSpace: "NoRewardSpace sets no reward_space in its __init__.",
    WrongCost: "WrongCost.cost returns int32 (), a cost is float32 ().",
    WrongPrivileged: "WrongPrivileged.privileged returns float32 (), its space says float32 (1,).",
}


@pytest.mark.parametrize("broken", SENTENCES)
def test_a_wrong_shape_is_refused_at_the_first_use_in_a_sentence(
    broken: type[KeepsContract],
) -> None:
    uses: list[Callable[[Any], Any]] = [
        lambda task: TaskEnv(task).reset(seed=0),
        lambda task: BatchPrograms(task).begin(
            np.zeros((2, 2), np.uint32), ContextSource(np.int32(0), np.int32(-1))
        ),
        lambda task: play(task, Still(), [0, 1]),
        check_task,
    ]
    for use in uses:
        with pytest.raises(ContractError) as caught:
            use(broken())
        assert SENTENCES[broken] in str(caught.value)


def test_a_reward_space_has_what_the_card_says() -> None:
    with pytest.raises(
        ContractError, match=r"VectorReward.reward_space is .*: the card says a scalar reward"
    ):
        TaskEnv(VectorReward())


class Still(NamedTuple):
    def initial(self, params: Any) -> Any:
        return ()

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[Any, Any]:
        return jnp.int32(0), memory


class Hesitant(Still):
    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[Any, Any]:
        return jnp.float32(0.5), memory


class Growing(Still):
    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[Any, Any]:
        return jnp.int32(0), jnp.int32(1)


def test_a_player_gives_actions_of_the_space_and_keeps_its_memory() -> None:
    play(KeepsContract(), Still(), [0])
    with pytest.raises(
        ContractError, match=r"Hesitant.act returns float32 \(\), the action space says int32 \(\)"
    ):
        play(KeepsContract(), Hesitant(), [0])
    with pytest.raises(ContractError, match=r"Growing.act returns"):
        play(KeepsContract(), Growing(), [0])


class NothingAllowed(KeepsContract):
    def action_mask(self, state, params):
        return jnp.array([True, True]) & (state.place != 2)


class Fickle(KeepsContract):
    """Its reward is a counter of Python's that the program asks at each step."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def reward(self, state, action, next_state, key, params):
        def ask(_: Any) -> np.ndarray:
            self.calls += 1
            return np.float32(self.calls % 7 / 7)

        return jax.pure_callback(
            ask, jax.ShapeDtypeStruct((), jnp.float32), state.place, vmap_method="sequential"
        )


class OneSplit(KeepsContract):
    def sample_params(self, key, split):
        return Clock(jnp.floor(64 * self.uniform(key, 1)[0]) / 64)


class OneContext(KeepsContract):
    def sample_params(self, key, split):
        return Clock((split / 2).astype(jnp.float32))


class Undefined(KeepsContract):
    def observation(self, state, key, params):
        return self.stack(
            0 * jnp.log(state.place.astype(jnp.float32)) + state.place / 4, params.place
        )


class Outside(KeepsContract):
    def observation(self, state, key, params):
        return self.stack(state.place / 2, params.place)


class Generous(KeepsContract):
    def reward(self, state, action, next_state, key, params):
        return next_state.place.astype(self.dtype)


class TracedTwice(KeepsContract):
    """It counts how often it is traced, which nobody may see."""

    def __init__(self) -> None:
        super().__init__()
        self.traced = 0

    def observation(self, state, key, params):
        self.traced += 1
        return self.stack(state.place / 4, 1 / self.traced)


class LenientParser(KeepsContract):
    def parse(self, text, state, params):
        return np.int32(1)


class CrashingParser(KeepsContract):
    def parse(self, text, state, params):
        return np.int32(text[0] == "r")


class DigitParser(KeepsContract):
    """It reads any digit, and there are two actions."""

    def parse(self, text, state, params):
        if len(text) == 1 and text in "0123456789":
            return np.int32(text)
        raise ValueError("expected a digit")


class PythonsParser(KeepsContract):
    def parse(self, text, state, params):
        if int(text) in (0, 1, 10):
            return np.int32(int(text) % 2)
        raise ValueError("expected 0, 1 or 10")


class Speechless(KeepsContract):
    def describe(self, state, params):
        return "café"


class Moody(KeepsContract):
    descriptions = 0

    def describe(self, state, params):
        self.descriptions += 1
        return f"place {int(state.place)}, said {self.descriptions} times"


class WidePicture(KeepsContract):
    def draw(self, state, params):
        return np.zeros((8, 16, 3), np.uint8)


class LateNaN(KeepsContract):
    """It walks about without end, and its reward is undefined from step 100 on."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = self.box(0.0, 1000.0, (2,))

    def transition(self, state, action, key, params):
        return Clock(state.place + 1)

    def reward(self, state, action, next_state, key, params):
        return jnp.where(state.place < 100, 0.0, jnp.nan).astype(self.dtype)

    def terminal(self, state, key, params):
        return jnp.bool_(False)


class NoopOutside(KeepsContract):
    def noop_action(self):
        return np.int32(7)


class Unexplained(KeepsContract):
    def why_over(self, state, params, info):
        return ""


class Lopsided(TwoAgents):
    """Two agents, and an observation for one."""

    def __init__(self) -> None:
        super().__init__()
        remove_reference(self)
        self.observation_space = self.box(0.0, 1.0, (1, 1))

    def observation(self, state, key, params):
        return jnp.zeros((1, 1))


BROKEN = {
    NothingAllowed: "action masks: .*forbids every action",
    Fickle: "same seed, same bits: .*the reward differs",
    OneSplit: "train and test apart: .*are in the test split too",
    OneContext: "train and test apart: .*contexts are sampled",
    Undefined: "random play inside the spaces: .*the observation holds NaN",
    Outside: "random play inside the spaces: .*the observation is outside its space",
    Generous: "random play inside the spaces: .*the reward is 2.0, outside",
    TracedTwice: "single equals batch: .*depends on more than its arguments",
    LenientParser: "text view: parse reads '' as the action",
    CrashingParser: "text view: IndexError",
    DigitParser: r"text view: parse reads '7' as .*, which is not in Discrete\(2\)",
    PythonsParser: "text view: parse reads '1_0' as the action",
    Speechless: "text view: describe gives no text of printable ASCII characters",
    Moody: "text view: describe gives other words for the same state",
    WidePicture: r"picture: draw gives uint8 \(8, 16, 3\), not uint8 \(8, 8, 3\)",
    LateNaN: "random play inside the spaces: .*the reward is nan",
    NoopOutside: "shapes and dtypes: noop_action",
    Unexplained: "random play inside the spaces: .*why_over gives no reason",
    Lopsided: "pettingzoo's parallel_api_test: .*does not have one row for each of 2 agents",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_battery_names_what_is_broken(broken: type[Toy]) -> None:
    with pytest.raises(
        ContractError, match=f"(?s)^rlsuite/Toy-v0 breaks its contract.*{BROKEN[broken]}"
    ):
        check_task(broken())


class OneEpisode(KeepsContract):
    """It draws from a key of its own, so that every seed gives the same episodes."""

    def sample_params(self, key, split):
        return super().sample_params(jax.random.key(0), split)


class AnyDigit(KeepsContract):
    """It takes the first digit of any reply for the action that pays."""

    def parse(self, text, state, params):
        digits = [letter for letter in text if letter.isdecimal()]
        if not digits:
            raise ValueError("expected a digit")
        return np.int32(digits[0] != "0")


class LostCost(Limited):
    """It computes a cost and returns none."""

    def cost(self, state, action, next_state, params):
        next_state.place.astype(self.dtype)


class TwoDraws(KeepsContract):
    """It begins at one of five places by the first of two draws."""

    order = 1

    def initial(self, key, params):
        first, _ = self.uniform(key, 2)[:: self.order]
        return Clock(jnp.floor(5 * first).astype(jnp.int32))


class TwoDrawsReversed(TwoDraws):
    order = -1


FAULTS = {
    "dtype": (WholeReward, "reward returns int32"),
    "mask": (NothingAllowed, "action_mask forbids every action"),
    "seed reuse": (OneEpisode, "contexts are sampled; 100 episodes have 1"),
    "split overlap": (OneSplit, "of the train split are in the test split too"),
    "NaN": (Undefined, "the observation holds NaN"),
    "wrong space": (Outside, "the observation is outside its space"),
    "order of draws": (TwoDrawsReversed, "train returns: Not equal"),
    "batch difference": (TracedTwice, "single equals batch"),
    "junk pays": (AnyDigit, "parse reads '1_0' as the action"),
    "cost ignored": (LostCost, "LostCost.cost returns"),
}
"""Ten kinds of fault, a task that has each, and what the tests that run for every id say of it."""


def faults_of(task: Toy) -> str:
    """Run what finds faults in every id: the contract, and a golden trajectory."""
    golden, results = (
        trajectory(lambda split, which=which: TimeLimit(TaskEnv(which, split), 20))
        for which in (TwoDraws(), task)
    )
    try:
        check_task(task)
    except ContractError as error:
        return str(error)
    return "; ".join(differences(results, golden))


@pytest.mark.parametrize("fault", FAULTS)
def test_each_of_ten_kinds_of_fault_is_found(fault: str) -> None:
    broken, sentence = FAULTS[fault]
    try:
        faults = faults_of(broken())
    except ContractError as error:  # the first reset refuses it
        faults = str(error)
    assert sentence in faults


def test_no_fault_is_found_where_there_is_none() -> None:
    assert not faults_of(TwoDraws())


class FromFive(KeepsContract):
    """Its two actions are 5 and 6, and the way back is closed at the start."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(2, start=5)

    def noop_action(self):
        return np.int64(5)

    def action_mask(self, state, params):
        return jnp.stack([state.place > 0, jnp.bool_(True)])

    def transition(self, state, action, key, params):
        return super().transition(state, action - 5, key, params)


def test_masks_of_actions_that_do_not_begin_at_zero() -> None:
    env = TaskEnv(FromFive())
    env.reset(seed=0)
    *_, info = env.step(5)
    assert info["invalid_action"]
    *_, info = env.step(6)
    assert not info["invalid_action"]
    assert env.episode.state.place == 1


def test_a_reply_that_is_parsed_to_no_action_is_played_as_the_noop_action() -> None:
    env = TextEnv(DigitParser())
    env.reset(seed=0)
    observation, *_, info = env.step("7")
    assert info["invalid_action"]
    assert "no-op action was played" in observation


def test_the_battery_passes_what_is_not_broken_and_reports_all_faults_together() -> None:
    check_task(KeepsContract())
    check_task(FromFive())

    class GenerousAndLenient(Generous, LenientParser):
        pass

    with pytest.raises(ContractError) as caught:
        check_task(GenerousAndLenient())
    assert "the reward is" in str(caught.value)
    assert "parse reads" in str(caught.value)


def test_a_registered_task_of_a_third_party_is_checked_by_its_id(toys: Path) -> None:
    for task_id in ("ToyWalk-v0", "ToyDrift-v0"):
        result = CliRunner().invoke(app, ["dev", "check", task_id])
        assert "same seed, same bits" in result.output
    result = CliRunner().invoke(app, ["dev", "check", "ToyWalk-v0", "--difficulty", "stormy"])
    assert result.exit_code == 0, result.output


def test_the_command_fails_with_a_broken_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskCard, "build", lambda card, **_: Generous())
    result = CliRunner().invoke(app, ["dev", "check", "TMaze-v0"])
    assert result.exit_code == 1
    assert "broken" in result.output


def test_the_command_names_what_a_task_that_cannot_be_built_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unfinished(KeepsContract):
        @abstractmethod
        def missing_part(self) -> None: ...

    monkeypatch.setattr(TaskCard, "build", lambda card, **_: Unfinished())
    result = CliRunner().invoke(app, ["dev", "check", "TMaze-v0"])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "missing_part" in result.output


def test_the_check_is_exported_without_loading_jax() -> None:
    code = (
        "import sys, rlbench_suite\nassert 'jax' not in sys.modules\n"
        "rlbench_suite.check_task, rlbench_suite.ContractError\nassert 'jax' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nothing"):
        rlbench_suite.nothing  # noqa: B018
