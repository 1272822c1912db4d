"""The APIs against a second implementation in plain Python; their documentation; calls in JSON."""

from __future__ import annotations

import json

import gymnasium
import jax
import numpy as np
import pytest
from office import Office
from plays import TIERS, at, play

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.core.registry import card
from rlbench_suite.envs.tools.office.apps.apis import COLUMN_APIS
from rlbench_suite.envs.tools.office.apps.column_api import Error, api
from rlbench_suite.envs.tools.office.apps.kinds import KINDS, ActionPart
from rlbench_suite.envs.tools.office.calls import parse_call
from rlbench_suite.envs.tools.office.documentation import as_tool, call_text, reference_text
from rlbench_suite.envs.tools.office.templates.column_template import sight_of


@pytest.mark.parametrize("tier", TIERS)
def test_random_calls_do_what_a_second_implementation_does(tier: str) -> None:
    """World and error after every call, over thousands of calls of every API."""
    record = play(tier, 2, seed=5, noise=1.0)
    successes, failed = np.zeros(len(COLUMN_APIS), int), set()
    for i in range(len(record.actions)):
        office = Office.of(at(record.params.start, i))
        for t in range(record.actions.shape[1]):
            action, after = record.actions[i, t], at(record.states, i, t)
            called_api = COLUMN_APIS[action[ActionPart.API]]
            arguments = {
                name: int(action[kind.action_part]) for name, kind in called_api.arguments.items()
            }
            if not record.legal[i, t]:
                continue
            error = "invalid_argument"
            if all(
                1 <= value <= called_api.arguments[name].size for name, value in arguments.items()
            ):
                error = office.call(called_api.name, **arguments) or "none"
            assert Error(int(after.error)).name.lower() == error, (called_api.name, arguments)
            assert office.sheet() == Office.of(after.world).sheet(), (called_api.name, arguments)
            successes[action[ActionPart.API]] += error == "none"
            failed.add((called_api.name, error))
    assert (successes[4:] > 0).all(), [
        called_api.name for called_api, n in zip(COLUMN_APIS, successes, strict=True) if not n
    ]
    for called_api in COLUMN_APIS:
        for _, error in (pair for pair in failed if pair[0] == called_api.name):
            allowed = (
                {e.name.lower() for e in called_api.errors}
                | {"none"}
                | ({"invalid_argument"} if called_api.arguments else set())
            )
            assert error in allowed


def test_documentation_names_every_api_argument_and_error() -> None:
    text = reference_text(COLUMN_APIS)
    assert len(COLUMN_APIS) == len({documented.name for documented in COLUMN_APIS}) == 33
    for documented in COLUMN_APIS:
        line = next(line for line in text.splitlines() if line.startswith(f"  {documented.name}("))
        assert documented.summary in line
        for name in [*documented.arguments, *(error.name.lower() for error in documented.errors)]:
            assert name in line
        schema = as_tool(documented).schema()
        assert set(schema["function"]["parameters"]["required"]) == set(documented.arguments)
        json.dumps(schema)
    for kind in KINDS:
        assert f"  {kind.name}: {kind.meaning}" in text


def test_every_call_makes_the_round_trip_through_json() -> None:
    rng = np.random.default_rng(0)
    for number, called_api in enumerate(COLUMN_APIS):
        for _ in range(20):
            action = np.zeros(5, int)
            action[0] = number
            for kind in called_api.arguments.values():
                action[kind.action_part] = rng.integers(1, kind.size + 1)
            np.testing.assert_array_equal(
                parse_call(COLUMN_APIS, call_text(COLUMN_APIS, action)), action
            )
    with pytest.raises(ValueError, match="gives no contact"):
        call_text(
            COLUMN_APIS,
            np.array(
                [
                    next(
                        i
                        for i, called_api in enumerate(COLUMN_APIS)
                        if called_api.name == "contacts.get"
                    ),
                    0,
                    0,
                    0,
                    0,
                ]
            ),
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contacts.list", "expected one call"),
        ("[1]", "expected one call"),
        ("[" * 900, "expected one call"),
        ('{"api": "contact.list"}', "Did you mean 'contacts.list'"),
        ('{"api": ["contacts.list"]}', "unknown API"),
        ('{"api": "contacts.list", "args": {}, "then": 1}', "expected one call"),
        ('{"api": "contacts.list", "args": []}', "JSON object"),
        ('{"api": "contacts.list", "api": "contacts.list"}', "twice"),
        ('{"api": "contacts.list", "args": {"name": "Ana"}}', "no argument"),
        ('{"api": "contacts.get", "args": {"contcat": 1}}', "Did you mean 'contact'"),
        ('{"api": "contacts.get"}', "needs the argument 'contact'"),
        ('{"api": "contacts.get", "args": {"contact": "x"}}', "whole number from 1 to 12"),
        ('{"api": "contacts.get", "args": {"contact": 1.5}}', "whole number from 1 to 12"),
        ('{"api": "contacts.get", "args": {"contact": true}}', "whole number from 1 to 12"),
        ('{"api": "contacts.get", "args": {"contact": 0}}', "whole number from 1 to 12"),
        ('{"api": "contacts.get", "args": {"contact": 13}}', "whole number from 1 to 12"),
        ('{"api": "contacts.get", "args": {"contact": NaN}}', "no JSON value"),
        ('{"api": "calendar.find", "args": {"title": "Reviews"}}', "Did you mean 'review'"),
        (
            '{"api": "calendar.move", "args": {"event": 1, "time": "Mon 9:0"}}',
            "Did you mean 'Mon 09:00'",
        ),
        ('{"api": "assistant.finish"} {"api": "assistant.finish"}', "expected one call"),
        (
            '{"api": "payments.send", "args": {"contact": 1, "amount": ' + "9" * 900 + "}}",
            "whole number from 1 to 31",
        ),
    ],
)
def test_wrong_calls_are_refused_with_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_call(COLUMN_APIS, text)


def test_two_arguments_of_one_part_are_refused() -> None:
    by_name = {kind.name: kind for kind in KINDS}
    with pytest.raises(ValueError, match="at most one argument"):
        api("x.y", name=by_name["name"], city=by_name["city"])


def test_json_and_structured_actions_play_the_same_episode() -> None:
    tier = "hard"
    plain = gymnasium.make("rlsuite/OfficeApps-v0", difficulty=tier)
    text = gymnasium.make("rlsuite/OfficeApps-v0", difficulty=tier, view="text")
    task = card("OfficeApps-v0").build(difficulty=tier)
    oracle_call = jax.jit(lambda state, params: task.oracle_call(sight_of(state, params.ask)))
    rng, total, refused = np.random.default_rng(2), 0.0, 0
    for seed in range(12):
        plain.reset(seed=seed)
        reply, _ = text.reset(seed=seed)
        assert reply.startswith("User: ")
        assert "calendar.create(" in reply
        for _ in range(20):
            state, params = plain.unwrapped.episode.state, plain.unwrapped.params
            action = np.asarray(oracle_call(state, params))
            if rng.random() < 0.2:  # another call, its other parts empty as JSON gives them
                action = np.array(
                    [
                        rng.integers(4, len(COLUMN_APIS)),
                        *(rng.integers(1, n) for n in (13, 11, 5, 25)),
                    ]
                )
                action = parse_call(COLUMN_APIS, call_text(COLUMN_APIS, action))
            _, reward, terminated, truncated, info = plain.step(action)
            reply, *text_step, their_info = text.step(call_text(COLUMN_APIS, action))
            assert text_step == [reward, terminated, truncated]
            assert their_info["success"] == info["success"]
            assert reward == (terminated and info["success"])
            assert ("Not allowed" in reply) == bool(info["invalid_action"])
            total, refused = total + reward, refused + bool(info["invalid_action"])
            if terminated or truncated:
                break
        assert (
            plain.unwrapped.task.describe(plain.unwrapped.episode.state, plain.unwrapped.params)
            in reply
        )
    assert total > 3
    assert refused


def test_ids_must_have_been_shown() -> None:
    env = gymnasium.make("rlsuite/OfficeApps-v0", difficulty="hard", view="text")
    env.reset(seed=0)
    _, _, _, _, info = env.step('{"api": "contacts.delete", "args": {"contact": 3}}')
    assert info["invalid_action"]
    assert "id 3 of contact has not been shown" in info["invalid_reason"]
