"""Test what ``import rlbench_suite`` costs.

It registers every id, loads nothing heavy and costs next to nothing over Gymnasium.
"""

import json
import subprocess
import sys

HEAVY = (
    "jax",
    "jaxlib",
    "equinox",
    "optax",
    "torch",
    "stable_baselines3",
    "pygame",
    "matplotlib",
    "pyarrow",
    "scipy",
)

PROBE = """
import json, sys, time
start = time.perf_counter()
import gymnasium
middle = time.perf_counter()
import rlbench_suite
end = time.perf_counter()
ids = [name for name in gymnasium.registry if name.startswith("rlsuite/")]
print(json.dumps({"gymnasium": middle - start, "ours": end - middle, \
"modules": list(sys.modules), "ids": ids}))
"""


def probe() -> dict:
    """Return what a fresh interpreter prints, and the seconds that each import takes in it."""
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_registers_every_id() -> None:
    import rlbench_suite.core.registry

    ids = probe()["ids"]
    assert ids
    assert ids == list(rlbench_suite.core.registry.cards())


def test_import_loads_nothing_heavy() -> None:
    assert not set(HEAVY) & set(probe()["modules"])


def test_reading_every_card_and_its_scores_needs_no_jax() -> None:
    code = (
        "import sys, rlbench_suite.core.registry as registry\n"
        "for card in registry.resolve_suite('all'): card.scores()\n"
        "sys.exit('jax' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_costs_at_most_0_15_s_over_gymnasium() -> None:
    # One of ten fresh interpreters is enough: the noise of a busy machine only ever adds.
    assert any(probe()["ours"] <= 0.15 for _ in range(10))
