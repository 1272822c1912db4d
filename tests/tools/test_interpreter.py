"""Interpreter: its machine against an account in Python, and attacks on it.

Its functions are compared with plain lists and attacked too.
"""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rlbench_suite  # noqa: F401  (registers the ids)
from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.core.registry import card
from rlbench_suite.core.task_card import load
from rlbench_suite.envs.tools.interpreter import machine
from rlbench_suite.envs.tools.interpreter.machine import Fault, Op, assemble, disassemble
from rlbench_suite.envs.tools.interpreter.specifications import SPECIFICATIONS, with_constant

pytestmark = pytest.mark.of_variants

FUNCTIONS: dict[str, Any] = {
    "each number times K": lambda x, k: [v * k for v in x],
    "each number plus K": lambda x, k: [v + k for v in x],
    "the numbers less than K, in their order": lambda x, k: [v for v in x if v < k],
    "each number twice, one after the other": lambda x, k: [v for v in x for _ in "ab"],
    "the numbers that K divides, in their order": lambda x, k: [v for v in x if v % k == 0],
    "K minus each number": lambda x, k: [k - v for v in x],
    "the remainder of each number by K": lambda x, k: [v % k for v in x],
    "the sum of all numbers": lambda x, k: [sum(x)],
    "how many numbers are greater than K": lambda x, k: [sum(v > k for v in x)],
    "the largest number": lambda x, k: [max(x)],
    "after each number, the sum of the numbers so far": lambda x, k: [*itertools.accumulate(x)],
    "the sum of the numbers greater than K": lambda x, k: [sum(v for v in x if v > k)],
    "the smallest number plus K": lambda x, k: [min(x) + k],
    "each number minus the one before it, plus K, from the second on": lambda x, k: [
        b - a + k for a, b in itertools.pairwise(x)
    ],
    "the numbers from the last to the first": lambda x, k: x[::-1],
    "the largest number minus each number": lambda x, k: [max(x) - v for v in x],
    "the numbers greater than the average, in their order": lambda x, k: [
        v for v in x if v > sum(x) / len(x)
    ],
    "the numbers less than K, from the last to the first": lambda x, k: [
        v for v in x[::-1] if v < k
    ],
    "each number minus the smallest number, plus K": lambda x, k: [v - min(x) + k for v in x],
    "the numbers sorted, the smallest first, each plus K": lambda x, k: [v + k for v in sorted(x)],
}


RESULTS: dict[int, Any] = {
    Op.SET: lambda y, z, unread, memory: y,
    Op.ADD: lambda y, z, unread, memory: y + z,
    Op.SUBTRACT: lambda y, z, unread, memory: y - z,
    Op.MULTIPLY: lambda y, z, unread, memory: y * z,
    Op.DIVIDE: lambda y, z, unread, memory: y // z,
    Op.REMAINDER: lambda y, z, unread, memory: y % z,
    Op.READ: lambda y, z, unread, memory: unread.pop(0),
    Op.LOAD: lambda y, z, unread, memory: memory[y],
}


def run_by_account(program: np.ndarray, numbers: list[int]) -> tuple[list[int], int]:
    """Run a program by an account of the language in Python; return output and fault."""
    variables, memory, output, unread, line = [0] * 8, [0] * 16, [], [*numbers], 0
    for step in range(1, machine.STEPS + 1):
        op, target, *operands = map(int, program[line]) if line < machine.LINES else (0, 0, 0, 0)
        values = [*variables, len(unread), *range(17)]
        y, z = (values[operand] for operand in operands)
        if op == Op.END:
            return output, Fault.NONE
        fault = {
            op in (Op.LOAD, Op.STORE) and not 0 <= y < 16: Fault.NO_SUCH_MEMORY,
            op in (Op.DIVIDE, Op.REMAINDER) and z == 0: Fault.DIVISION_BY_ZERO,
            op == Op.READ and not unread: Fault.NOTHING_LEFT_TO_READ,
            op == Op.WRITE and len(output) == 10: Fault.OUTPUT_FULL,
        }.get(True)
        result = RESULTS[op](y, z, unread, memory) if op in RESULTS and fault is None else None
        if result is not None and abs(result) > 9999:
            fault = Fault.NUMBER_TOO_LARGE
        if fault is None and step == machine.STEPS:
            fault = Fault.TOO_MANY_STEPS
        if fault is not None:
            return output, fault
        if result is not None:
            variables[target % 8] = result
        elif op == Op.STORE:
            memory[y] = z
        elif op == Op.WRITE:
            output.append(y)
        jumps = op == Op.GOTO or (op == Op.IF_LESS and y < z) or (op == Op.IF_EQUAL and y == z)
        line = target if jumps else line + 1
    raise AssertionError


def test_the_machine_does_what_the_account_does() -> None:
    """Programs are random, more of them with jumps than with ends, or of the specifications.

    The machine and the account are compared for each input.
    """
    rng = np.random.default_rng(0)
    programs = rng.integers(0, machine.SIZES, (1500, machine.LINES, 4)).astype(np.int32)
    programs[..., 0] = np.where(
        (programs[..., 0] == Op.END) & (rng.random(programs.shape[:2]) < 0.9),
        Op.SET,
        programs[..., 0],
    )
    programs[0] = assemble("a = 16; a = a * a; goto 2")
    solutions = np.stack(
        [assemble(specification.program.replace("16", "7")) for specification in SPECIFICATIONS]
    )
    programs = np.concatenate([programs, np.repeat(solutions, 10, 0)])
    inputs = rng.integers(0, 13, (len(programs), 5)).astype(np.int32)
    lengths = rng.integers(2, 6, len(programs)).astype(np.int32)
    end = jax.jit(jax.vmap(machine.run))(programs, inputs, lengths)
    faults = set()
    for number, program in enumerate(programs):
        output, fault = run_by_account(program, inputs[number][: lengths[number]].tolist())
        faults.add(int(fault))
        assert (end.output[number][: end.written[number]].tolist(), int(end.fault[number])) == (
            output,
            fault,
        )
        if number >= 1500:
            specification = SPECIFICATIONS[(number - 1500) // 10]
            assert output == FUNCTIONS[specification.words](
                inputs[number][: lengths[number]].tolist(), 7
            )
        text = disassemble(program)
        assert disassemble(assemble(text)) == text
    assert faults == set(Fault)


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_wanted_outputs_are_those_of_plain_lists_and_the_reference_reaches_them(tier: int) -> None:
    task: Any = card("Interpreter-v0").build(difficulty=tier)
    functions_of_split = []
    for split in (0, 1):
        keys = jax.random.split(jax.random.key(split), 200)
        params = jax.vmap(task.sample_params, (0, None))(keys, jnp.int32(split))
        outputs, lengths = map(np.asarray, jax.jit(jax.vmap(task.target_outputs))(params))
        params = jax.tree.map(np.asarray, params)
        for i in range(200):
            function = FUNCTIONS[SPECIFICATIONS[int(params.function[i])].words]
            for case in range(11):
                numbers = params.inputs[i, case][: params.lengths[i, case]].tolist()
                assert outputs[i, case][: lengths[i, case]].tolist() == function(
                    numbers, int(params.constant[i])
                )
        functions_of_split.append(set(params.function.tolist()))
    assert not functions_of_split[0] & functions_of_split[1]
    record = play(task, load(task.card.reference).for_task(task), range(200))
    assert record.info["success"].all()
    assert (record.length == 1).all()


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_one_program_for_all_instances_is_seldom_right(tier: int) -> None:
    """Functions of the test split depend on K, a number of six.

    So a program for one K fits one instance in 18.
    """
    task: Any = card("Interpreter-v0").build(difficulty=tier)
    count = 300
    for specification in (
        specification
        for specification in SPECIFICATIONS
        if (specification.tier, specification.split) == (tier, 1)
    ):
        program = with_constant(jnp.asarray(assemble(specification.program)), 6)
        action = np.concatenate([[1], np.asarray(program).ravel()]).astype(np.int64)
        record = replay(
            task, np.broadcast_to(action, (count, task.card.horizon, action.size)), range(count)
        )
        assert 0 < record.info["success"].sum() <= count / 9


def test_no_constant_program_is_an_answer() -> None:
    """Doing nothing, copying the input, and writing the outputs that are shown."""
    task: Any = card("Interpreter-v0").build()
    for program in (
        "end",
        "write 7",
        "a = read; write a; goto 1",
        "if left == 0 goto 5; a = read; write a; goto 1",
    ):
        action = np.concatenate([[1], assemble(program).ravel()])
        record = replay(
            task,
            np.broadcast_to(action, (300, task.card.horizon, action.size)).astype(np.int64),
            range(300),
        )
        assert not record.info["success"].any()


def test_attacks_change_nothing() -> None:
    env: Any = gymnasium.make("rlsuite/Interpreter-v0", view="text")
    text, _ = env.reset(seed=0)
    for attack in (
        text, "answer", "answer\n__import__('os').system('true')", "answer\n" + "(" * 3000,
        "answer\n" + "a = 1\n" * 21, "answer\na = 17", "answer\na = 9999999999",
        "answer\ngoto 22", "answer\nwrite m[1]", "answer\na = b = c",
        '{"name": "answer", "arguments": {"program": ["end"]}}',
        '{"name": "answer", "arguments": {}}',
        "answer\n" + "write a\n" * 200_000, "Example 1: the program wrote [1, 2]", "answer\na = ²",
    ):  # fmt: skip
        env.reset(seed=0)
        _, reward, over, _, info = env.step(attack)
        assert (reward, over, info["success"], info["invalid_action"]) == (0, False, False, True), (
            attack
        )
    for program, fault in (
        ("goto 1", "too many steps"),
        ("a = 16; a = a * a; goto 2", "number too large"),
        ("write a; goto 1", "output full"),
        ("a = 1 / b", "division by zero"),
        ("a = 0 - 1; m[a] = 2", "no such memory"),
        ("a = read; goto 1", "nothing left to read"),
    ):
        text, reward, *_ = env.step(f"run\n{program}")
        assert f"failed: {fault}" in text
        assert reward == 0


def test_thrift_counts_calls() -> None:
    env: Any = gymnasium.make("rlsuite/Interpreter-v0", view="text", reward="thrifty")
    for extra in range(3):
        env.reset(seed=1)
        specification = SPECIFICATIONS[int(env.unwrapped.params.function)]
        program = specification.program.replace("16", str(int(env.unwrapped.params.constant)))
        for _ in range(extra):
            env.step("run\nend")
        _, reward, over, _, info = env.step(f"answer\n{program}")
        assert over
        assert info["success"]
        assert reward == pytest.approx(np.sin(np.pi * (1 + extra) / (2 + extra)), rel=1e-6)
