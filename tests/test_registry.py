"""Ids as people write them: without namespace, without version, misspelt."""

import gc
import math
import re
import shlex
import weakref

import gymnasium
import pettingzoo
import pytest

from rlbench_suite.adapters.entry_points import make
from rlbench_suite.core import registry
from rlbench_suite.core import task_card as card_module
from rlbench_suite.foundation.unknown_names import unknown


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version of an id beside the first one."""
    from dataclasses import replace

    table = dict(registry.all_cards())
    for version in (2, 10):
        card = replace(table["rlsuite/Vicsek-v0"], id=f"rlsuite/Vicsek-v{version}")
        table[card.id] = card
    monkeypatch.setattr(registry, "all_cards", lambda: table)


@pytest.mark.parametrize("name", ["Vicsek", "rlsuite/Vicsek"])
def test_an_id_without_version_is_the_latest(later: None, name: str) -> None:
    for look_up in (lambda: registry.card(name), lambda: registry.resolve_suite(name)[0]):
        with pytest.warns(UserWarning, match="rlsuite/Vicsek-v10"):
            assert look_up().id == "rlsuite/Vicsek-v10"


def test_unlisted_cards_and_queries_are_found_without_version() -> None:
    with pytest.warns(UserWarning, match="latest version"):
        assert registry.card("PMSMCurrent?supply=rc").id == "rlsuite/PMSMCurrent-v0?supply=rc"
    with pytest.warns(UserWarning, match="latest version"):
        assert registry.card("PMSMCurrentGem").id == "rlsuite/PMSMCurrentGem-v0"


def test_fixed_settings_tell_the_cards_of_a_family_apart() -> None:
    ids_by_settings: dict[tuple[str, str], list[str]] = {}
    for card in registry.all_cards().values():
        if card.fixed:
            ids_by_settings.setdefault((card.family, repr(sorted(card.fixed.items()))), []).append(
                card.id
            )
    assert [ids for ids in ids_by_settings.values() if len(ids) > 1] == []


def test_every_allowed_value_of_every_setting_is_found() -> None:
    for task_id, card in registry.all_cards().items():
        assert registry.card(task_id) is card
        for name, allowed in registry.allowed_settings(card).items():
            assert allowed[0] == card.settings[name]
            for value in allowed:
                variation = registry.card(task_id, **{name: value})
                assert variation.settings == {**variation.settings, **card.fixed, name: value}
                assert registry.card(f"{task_id}?{name}={value}") == variation
                assert registry.card(variation.id) == variation


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("noise=0.01&noise=0.02", "names noise 2 times ('0.01', '0.02'): give each setting once."),
        (
            "delay=1&noise=0.01&delay=1&delay=0",
            "names delay 3 times ('1', '1', '0'): give each setting once.",
        ),
        (
            "context=a.yaml&context=b.yaml",
            "names context 2 times ('a.yaml', 'b.yaml'): give each setting once.",
        ),
    ],
)
def test_an_id_names_each_setting_once(query: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"rlsuite/PMSMSpeed-v0 {sentence}")):
        registry.card(f"PMSMSpeed-v0?{query}")


def test_a_keyword_overrides_the_setting_of_an_id() -> None:
    assert (
        registry.card("PMSMSpeed-v0?delay=1&noise=0.01", noise="0.03").id
        == "rlsuite/PMSMSpeed-v0?delay=1&noise=0.03"
    )


def test_a_setting_that_is_chosen_stays_when_another_leads_to_another_card() -> None:
    card = registry.card("PMSMTorque-v0?supply=rc", machine="PermExDc", converter="2qc")
    assert card.id == "rlsuite/PermExDcTorque-v0?converter=2qc&supply=rc"
    assert registry.card(card.id, converter="4qc", supply="ideal").id == "rlsuite/PermExDcTorque-v0"


def test_every_door_takes_an_id_without_version() -> None:
    with pytest.warns(UserWarning, match="latest version"):
        assert gymnasium.make("rlsuite/Vicsek").unwrapped.card.id == "rlsuite/Vicsek-v0"
    with pytest.warns(UserWarning, match="latest version"):
        assert gymnasium.make_vec("rlsuite/Vicsek", num_envs=2).card.id == "rlsuite/Vicsek-v0"
    with pytest.warns(UserWarning, match="latest version"):
        assert make("Vicsek").card.id == "rlsuite/Vicsek-v0"
    for kind in ("parallel", "aec"):
        assert pettingzoo.make(kind, "rlsuite/Vicsek").unwrapped.card.id == "rlsuite/Vicsek-v0"


def test_a_version_that_is_not_there_names_those_that_are(later: None) -> None:
    for ask in (registry.card, registry.resolve_suite):
        with pytest.raises(
            ValueError, match=r"^rlsuite/Vicsek has no version v3. Known: v0, v2, v10.$"
        ):
            ask("Vicsek-v3")


def test_of_many_names_an_error_lists_the_five_nearest_and_of_few_all() -> None:
    with pytest.raises(ValueError, match="Did you mean 'rlsuite/Sudoku-v0'") as error:
        registry.card("Sudko-v0")
    assert str(error.value).count("rlsuite/") == 1 + 5
    assert f"Nearest of {len(registry.cards())}: rlsuite/Sudoku-v0, " in str(error.value)
    assert unknown("split", "tset", ("train", "test")).endswith(
        "Did you mean 'test'? Known: test, train."
    )
    with pytest.raises(ValueError, match="Did you mean 'ppo'") as error:
        registry.agent("pop")
    assert ": ppo, psro, noop, " in str(error.value)


def test_the_optimum_of_a_card_is_that_of_its_difficulty() -> None:
    assert registry.card("RepeatPrevious-v0?difficulty=hard").optimum == 72
    # The same at all.
    assert registry.card("SAT-v0?difficulty=hard").optimum == registry.card("SAT-v0").optimum
    assert registry.card("CarDealer-v0?difficulty=hard").optimum is None  # not known
    assert registry.card("KeyValue-v0?rewriting=0.125").optimum is None
    checked = 0
    for card in registry.cards().values():
        for tier in card.optima:
            task = card.with_difficulty(tier).build()
            if optimum := getattr(task, "optimum", None):
                assert card.with_difficulty(tier).optimum == pytest.approx(optimum, rel=1e-12), (
                    task.card.id
                )
                checked += 1
    assert checked > 30


def test_the_command_that_measures_a_card_goes_through_a_shell() -> None:
    command = registry.card("OfficeApps-v0?reward=dense&difficulty=hard").measuring_command
    assert shlex.split(command) == [
        "rlsuite",
        "dev",
        "calibrate",
        "rlsuite/OfficeApps-v0?reward=dense&difficulty=hard",
    ]
    assert registry.card("SAT-v0").measuring_command == "rlsuite dev calibrate rlsuite/SAT-v0"


def test_tasks_of_ever_new_difficulties_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_module, "_BUILT", {})
    monkeypatch.setattr(card_module, "MAX_BUILT_TASKS", 3)
    vicsek = registry.card("Vicsek-v0")
    usual = vicsek.build()
    built = []
    for number in range(20):
        built.append(weakref.ref(vicsek.build(difficulty=0.1 + 0.01 * number)))
        assert vicsek.build() is usual, "the one in use is remembered"
    gc.collect()
    assert sum(task() is not None for task in built) == 2


@pytest.mark.parametrize("difficulty", [math.nan, math.inf, -math.inf, True, [1], 1j, b"easy"])
def test_a_difficulty_is_a_name_or_a_finite_number(difficulty: object) -> None:
    for task_id in ("Vicsek-v0", "TreasureMaps-v0", "Sudoku4-v0"):
        with pytest.raises(
            ValueError,
            match=f"A difficulty of rlsuite/{task_id} is one of .* or a finite number; got",
        ):
            registry.card(task_id).build(difficulty=difficulty)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["x" * 10**6, [0] * 10**6, {"a": "b" * 10**6}])
def test_an_error_repeats_no_long_value(value: object) -> None:
    assert len(unknown("split", value, ["train", "test"])) < 200
