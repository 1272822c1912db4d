"""Play a task's tiers as a curriculum.

The next tier begins when enough episodes of the present one are solved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, SupportsFloat

import gymnasium

from rlbench_suite.core.registry import card as find_card
from rlbench_suite.foundation.unknown_names import unknown

ORDER = ("easy", "medium", "hard")


class Curriculum(gymnasium.Env[Any, Any]):
    """An environment that begins at the easiest tier and moves on to harder ones.

    It never goes back.

    The next tier begins when the success rate of the last ``window`` episodes reaches
    ``threshold``, as SATURN raises its difficulty (Liu et al. 2025, arXiv:2505.16368).
    ``info["tier"]`` names the tier of an episode. Tiers must have equal spaces, as all have with
    ``view="text"``.

    Args:
        task_id: id of a task with tiers.
        tiers: their names, the easiest first; all by default.
        threshold: success rate to reach, in (0, 1].
        window: number of episodes over which it is taken, at least 1.
        keywords: keywords of ``gymnasium.make`` except ``difficulty``.

    Raises:
        ValueError: a wrong argument, or tiers with different spaces.
    """

    def __init__(
        self,
        task_id: str,
        *,
        tiers: Sequence[str] | None = None,
        threshold: float = 0.75,
        window: int = 100,
        **keywords: Any,
    ) -> None:
        card = find_card(task_id)
        names = (
            [name for name in ORDER if name in card.difficulties] if tiers is None else list(tiers)
        )
        for name in names:
            if name not in card.difficulties:
                raise ValueError(unknown(f"tier of {card.id}", name, card.difficulties))
        if not names or not 0 < threshold <= 1 or window < 1:
            raise ValueError(
                f"{card.id}: a curriculum needs a tier, a threshold in (0, 1] and a window of at "
                f"least 1 episode, got {names}, {threshold} and {window}."
            )
        envs = [gymnasium.make(card.id, difficulty=name, **keywords) for name in names]
        for name, env in zip(names, envs, strict=True):
            if (env.observation_space, env.action_space) != (
                envs[0].observation_space,
                envs[0].action_space,
            ):
                raise ValueError(
                    f"{card.id}: {name} has other spaces than {names[0]}; use view='text' or fewer "
                    "tiers."
                )
        self.tiers = names
        self.threshold = threshold
        self.number = 0
        """Index of the current tier. Assign to it to continue an earlier run."""
        self.recent: deque[bool] = deque(maxlen=window)
        """Success of each of the last episodes of this tier."""
        self._envs = envs
        self.observation_space = envs[0].observation_space
        self.action_space = envs[0].action_space
        self.metadata = envs[0].metadata
        self.render_mode = envs[0].render_mode

    @property
    def tier(self) -> str:
        """Name of the current tier."""
        return self.tiers[self.number]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, of the next tier if this one is mastered."""
        super().reset(seed=seed)
        full = len(self.recent) == self.recent.maxlen
        if (
            full
            and self.number + 1 < len(self.tiers)
            and sum(self.recent) >= self.threshold * len(self.recent)
        ):
            self.number += 1
            self.recent.clear()
        observation, info = self._envs[self.number].reset(seed=seed, options=options)
        return observation, info | {"tier": self.tier}

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step the running episode."""
        observation, reward, terminated, truncated, info = self._envs[self.number].step(action)
        if terminated or truncated:
            self.recent.append(bool(info["success"]))
        return observation, reward, terminated, truncated, info | {"tier": self.tier}

    def render(self) -> Any:
        """Render the current tier's env."""
        return self._envs[self.number].render()

    def close(self) -> None:
        """Close every tier's env."""
        for env in self._envs:
            env.close()
