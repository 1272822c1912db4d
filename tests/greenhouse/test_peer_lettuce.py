"""Lettuce with ``peer_compat=True`` against whole seasons of lettuce-greenhouse-gym 0.1.3.

The peer's licence is Apache-2.0.

The weather is a formula, so that anybody may repeat the peer's seasons; they were played once with
its own environment, its default settings, and open-loop actions.
"""

from typing import Any

import gymnasium
import numpy as np
import pytest

from rlbench_suite.core.registry import card

STEPS = 82 * 48
DAY = np.arange(STEPS) / 48
HOUR = np.arange(STEPS) % 48 / 2


def weather() -> dict[str, np.ndarray]:
    """A formula of days and nights, as a record of 82 days."""
    noon = (350 + 100 * np.sin(2 * np.pi * DAY / 40)) * np.sin(np.pi * (HOUR - 6) / 12)
    return {
        "time": 1800.0 * np.arange(STEPS),
        "radiation": np.where((HOUR > 6) & (HOUR < 18), np.maximum(0, noon), 0),
        "temperature": 6
        + 4 * np.sin(2 * np.pi * (HOUR - 9) / 24)
        + 2 * np.sin(2 * np.pi * DAY / 9),
        "humidity": 80 + 10 * np.cos(2 * np.pi * (HOUR - 4) / 24),
        "co2": np.full(STEPS, 410.0),
    }


ACTIONS = {
    "hold": lambda k: np.zeros(3),
    "up": lambda k: np.ones(3),
    "sine": lambda k: np.sin(k * np.array([1.1, 0.7, 0.3])),
}
SEASONS = [
    ("hold", "0.75e-5", -76.52408011607294, [0.01500764, 1.1619437e-4, 13.64967087, 0.01040362559]),
    (
        "hold",
        "0.75e-4",
        -62.94648840461029,
        [0.0738878895, 4.2886433e-4, 13.64967087, 0.0101370778],
    ),
    ("up", "0.75e-5", -19.880922432046017, [0.3291611932, 9.6252242e-4, 14.08971477, 0.0070222915]),
    ("sine", "0.75e-5", -57.058018668393, [0.2134167393, 9.3258708e-4, 23.26255356, 0.0159841003]),
    (
        "sine",
        "0.75e-4",
        -56.675126264396496,
        [0.2154481600, 9.2482578e-4, 23.26255356, 0.0158253317],
    ),
]
"""Actions, leakage, the peer's return in EUR/m2, and its last state."""


@pytest.mark.parametrize(("actions", "leakage", "published", "last"), SEASONS)
def test_whole_seasons_of_the_peer(
    actions: str, leakage: str, published: float, last: list[float]
) -> None:
    env: Any = gymnasium.make(
        "rlsuite/Lettuce-v0",
        peer_compat=True,
        leakage=leakage,
        context={"weather": weather()},
        dtype="float64",
    )
    observation, _ = env.reset(seed=0)
    np.testing.assert_allclose(observation[[0, 4, 5, 6, 7]], [0.0035, 0, 0, 50, 0], atol=1e-12)
    total, over, steps = 0.0, False, 0
    while not over:
        _, reward, over, _, _ = env.step(ACTIONS[actions](steps))
        total, steps = total + reward, steps + 1
    assert steps == 1920
    assert total == pytest.approx(published, abs=1e-6)
    np.testing.assert_allclose(np.array(env.unwrapped.episode.state.climate), last, rtol=1e-7)


def test_both_leakages_are_choices() -> None:
    for leakage in ("0.75e-4", "0.75e-5"):
        assert card("Lettuce-v0", leakage=leakage).build(difficulty="easy").usual.leakage == float(
            leakage
        )
    assert card("Lettuce-v0", peer_compat=True).id == "rlsuite/LettucePeer-v0"
