"""Programs called at their machine code give what they give through JAX, to the bit; the unknown is left to JAX."""

from __future__ import annotations

import gc
import platform
import threading
from contextlib import nullcontext
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

from rlbench_suite.adapters import executable, machine_code, single
from rlbench_suite.adapters.executable import UnknownExecutable, read
from rlbench_suite.adapters.machine_code import PLATFORM, MachineCode, crowded
from rlbench_suite.adapters.program import Direct, Dispatched, Program
from rlbench_suite.adapters.single import Programs, programs
from rlbench_suite.card import TaskCard
from rlbench_suite.registry import card

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != PLATFORM or jaxlib.__version__ not in executable.VERSIONS,
    reason="on this platform, or with this jaxlib, programs are called through JAX",
)
THROUGH_JAX = {
    **dict.fromkeys(["rlsuite/FlockFormation-v0", "rlsuite/ListFunctions-v0", "rlsuite/OfficeApps-v0"], "sorts"),
    "rlsuite/Slant-v0": "copies into another layout",
    "rlsuite/QuadcopterSwarm128-v0": "multiplies matrices by a library",
}
"""Whose programs do what is not known here."""


@pytest.fixture(autouse=True)
def _room() -> None:
    """A process that has run many other tests lets go of their programs first."""
    if crowded():
        single._kept.clear()
        jax.clear_caches()
        gc.collect()


def program(function: Any, example: np.ndarray, **options: Any) -> Program:
    return Program(function, example, nullcontext, **options)


def loops(x: jax.Array) -> jax.Array:
    """A loop in a loop, which stops when the numbers say so."""

    def halve(carry: Any) -> Any:
        n, y = carry
        return n + 1, jax.lax.fori_loop(0, n, lambda i, z: jnp.sin(z) * 0.9 + i, y) / 2

    n, y = jax.lax.while_loop(lambda carry: (carry[1] > 1e-3).any() & (carry[0] < 40), halve, (jnp.int32(0), x))
    return y + n


def tables(x: jax.Array) -> jax.Array:
    """Constants of every dtype, too many numbers to be written into the code."""
    index = x.astype(np.int32) % 300
    values = np.random.default_rng(0).integers(-(2**31), 2**31, 300)
    dtypes = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float32)
    arrays = [*(values.astype(dtype) for dtype in dtypes), (values / 2**31).astype(np.float16)]
    return sum(jnp.asarray(array)[index].astype(np.float32) for array in arrays) + x


def moved(x: jax.Array) -> jax.Array:
    """Copies, products of matrices of fixed size, and reductions."""
    square = jnp.outer(x, x[::-1])
    return (jax.lax.optimization_barrier(square.T).cumsum(0) @ jnp.ones(len(x))) / jnp.linalg.norm(x)


@pytest.mark.parametrize("function", [loops, tables, moved])
def test_it_gives_what_jax_gives(function: Any) -> None:
    rng = np.random.default_rng(1)
    called = program(function, np.zeros(64, np.float32))
    assert called.machine_code is not None
    place = called.open()
    assert isinstance(place, Direct)
    for _ in range(200):
        place.argument[:] = rng.normal(size=64) * 10.0 ** rng.integers(-3, 4)
        place.run()
        want = np.asarray(called.compiled(place.argument.copy()))
        np.testing.assert_array_equal(place.result.view(np.uint32), want.view(np.uint32))


def test_large_integers_of_constants_and_float64() -> None:
    values = np.random.default_rng(2).integers(-(2**62), 2**62, 200)

    def function(x: jax.Array) -> jax.Array:
        return jnp.asarray(values)[x.astype(np.int64)].astype(np.float64) + jnp.asarray(values / 3)[x.astype(np.int64)]

    called = Program(function, np.zeros(5), lambda: jax.enable_x64(True))
    assert called.machine_code is not None
    index = np.array([0, 7, 30, 199, 100])
    np.testing.assert_array_equal(called(index.astype(float)), values[index].astype(float) + values[index] / 3)


def test_arithmetic_is_in_xlas_state_and_the_callers_is_left_alone() -> None:
    """What is too small for full precision is zero within a program and stays what it is without."""
    called = program(lambda x: x * x[::-1], np.array([1e-30, 1e-15], np.float32))
    assert called.machine_code is not None
    np.testing.assert_array_equal(called(np.array([1e-25, 1e-17], np.float32)), 0)
    np.testing.assert_array_equal(called(np.array([1e-41, 1e20], np.float32)), 0)
    assert np.float32(1e-25) * np.float32(1e-17) > 0


def test_feedback_goes_over_the_first_words_of_the_argument() -> None:
    called = program(lambda x: x[:2] + x[2], np.array([0, 0, 1], np.float32), feedback=2)
    places = called.open(), Dispatched(called)
    for place in places:
        place.argument[:] = 1, 2, 3
        for _ in range(4):
            place.run()
        np.testing.assert_array_equal(place.argument, [13, 14, 3])
        np.testing.assert_array_equal(place.result, [13, 14])


def test_places_are_apart_and_outlive_what_made_them() -> None:
    places = [program(lambda x: jnp.sin(x).cumsum(), np.zeros(4, np.float32)).open() for _ in range(2)]
    alone = np.zeros((2, 4), np.float32)
    for i, place in enumerate(places):
        place.argument[:] = i + 1
        place.run()
        alone[i] = place.result

    def work(run: Any) -> None:
        for _ in range(20_000):
            run()

    threads = [threading.Thread(target=work, args=[place.run]) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal([place.result for place in places], alone)
    run = program(jnp.cos, np.zeros(300_000, np.float32)).open().run
    gc.collect()
    run()  # in memory that nothing else refers to


def test_what_is_not_known_is_left_to_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    sorting = program(jnp.sort, np.array([3, 1, 2], np.float32))
    assert sorting.machine_code is None
    np.testing.assert_array_equal(sorting(np.array([5, 4, 6], np.float32)), [4, 5, 6])
    monkeypatch.setattr(executable, "VERSIONS", ())
    assert program(jnp.sin, np.zeros(2, np.float32)).machine_code is None


def test_a_process_that_has_mapped_too_much_keeps_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux ends the mapping of memory at some 65,000 pieces, and LLVM ends the process then."""
    kept = [programs(card(task_id).build()) for task_id in ("rlsuite/SAT-v0", "rlsuite/Sudoku4-v0")]
    assert programs(kept[0].task) is kept[0]
    monkeypatch.setattr(single, "crowded", lambda: True)
    assert programs(kept[0].task) is kept[0]
    programs(card("rlsuite/Twiddle-v0").build())
    assert programs(kept[0].task) is not kept[0]
    monkeypatch.setattr(machine_code, "crowded", lambda: True)
    assert program(jnp.tan, np.zeros(2, np.float32)).machine_code is None


def test_what_differs_from_jax_is_left_to_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the code did something else than what it was read to do."""
    monkeypatch.setattr(MachineCode, "at", lambda self, memory: lambda: None)
    assert program(jnp.cos, np.zeros(2, np.float32)).machine_code is None


def test_damaged_programs_are_not_read() -> None:
    """Or are read as programs whose work lies within their buffers; none of them is run here."""
    serialized = program(loops, np.zeros(64, np.float32)).compiled.runtime_executable().serialize()
    whole = read(serialized)
    assert {type(item).__name__ for item in whole.work} >= {"Loop", "Kernel"}
    for length in range(0, len(serialized), len(serialized) // 50):
        with pytest.raises(UnknownExecutable):
            read(serialized[:length])
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(serialized)
        for at in rng.integers(len(damaged), size=20):
            damaged[at] = rng.integers(256)
        try:
            read(bytes(damaged))
        except UnknownExecutable:
            refused += 1
    assert refused > 30


@pytest.mark.every_id
def test_tasks_are_called_at_their_machine_code(card: TaskCard) -> None:
    """And an episode goes on as it does through JAX, to the last bit of everything that is kept of it."""
    if card.host:
        pytest.skip("a simulator of the host, no program")
    found: Programs = programs(card.build())
    codes = [found.begin.machine_code, found.advance.machine_code]
    if card.id in THROUGH_JAX:
        assert None in codes
        return
    assert None not in codes
    direct, dispatched = found.advance.open(), Dispatched(found.advance)
    direct.argument[:] = found.advance.example
    numbers = found.layout.float if found.action.dtype.kind == "f" else found.layout.signed
    found.task.action_space.seed(3)
    for _ in range(25):
        action = found.task.action_space.sample()
        for place in (direct, dispatched):
            place.argument[found.action.words].view(numbers)[:] = np.ravel(action)
            place.run()
        np.testing.assert_array_equal(direct.argument, dispatched.argument)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_env_without_machine_code_is_the_same(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def played() -> list[Any]:
        env = gymnasium.make("rlsuite/PMSMCurrent-v0", dtype=dtype).unwrapped
        seen: list[Any] = []
        for seed in (4, None, None, 5):
            env.action_space.seed(6)
            seen.append(env.reset(seed=seed))
            seen += [env.step(env.action_space.sample()) for _ in range(20)]
        direct = [p.machine_code is not None for p in (env._programs.begin, env._programs.advance)]
        return [direct, seen]

    single._kept.clear()
    direct = played()
    monkeypatch.setattr(executable, "VERSIONS", ())
    single._kept.clear()
    dispatched = played()
    single._kept.clear()
    assert direct[0] == [True, True]
    assert dispatched[0] == [False, False]
    jax.tree.map(np.testing.assert_array_equal, direct[1], dispatched[1])
