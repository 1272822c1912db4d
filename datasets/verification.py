"""Check that an installed dataset holds its recipe's content, and that its actions replay it."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import storage
from .building import Show, count_episodes
from .catalogue import Entry
from .recipe import arithmetic, episodes


class Verdict(NamedTuple):
    """Result of a check."""

    sha256: str
    """Hash of the content."""
    origin: str
    """Source that confirms this content, in words."""
    steps: int
    """Number of replayed steps."""
    difference: float
    """Largest difference of an observation or reward in the replay; 0 means equal bits."""


def verify(entry: Entry, *, show: Show) -> Verdict:
    """See :func:`rlbench_suite.datasets.access.verify`."""
    if not storage.is_installed(entry):
        raise FileNotFoundError(
            f"{entry.id} is not installed in {storage.root()}; get it with: rlsuite-data build "
            f"{entry.id}"
        )
    data = storage.folder(entry) / "data"
    storage.check_metadata(entry, data)
    show("hashing", 0, 1)
    content_hash = storage.content_sha256(storage.open_storage(data))
    made_in, origin = confirm_content(entry, content_hash, data, show)
    steps, difference = replay_episodes(
        entry, data, 0.0 if made_in == arithmetic() else entry.replay_tolerance, show
    )
    return Verdict(content_hash, origin, steps, difference)


def known_arithmetic(entry: Entry, content_hash: str) -> str | None:
    """Return the arithmetic for which the catalogue lists this content, or None."""
    hashes = entry.fingerprint.sha256 if entry.fingerprint else {}
    return next((name for name, sha256 in hashes.items() if sha256 == content_hash), None)


def confirm_content(entry: Entry, content_hash: str, data: Path, show: Show) -> tuple[str, str]:
    """Return the arithmetic of a content, and what confirms it.

    What confirms it is the catalogue, or else building the recipe here.

    Raises:
        ValueError: neither confirms it.
    """
    if (listed_arithmetic := known_arithmetic(entry, content_hash)) is not None:
        return listed_arithmetic, f"the catalogue ({listed_arithmetic})"
    here, fingerprint = arithmetic(), entry.fingerprint
    is_listed = (
        fingerprint and here in fingerprint.sha256 and fingerprint.jaxlib == version("jaxlib")
    )
    notes = storage.made_by(data)
    if (
        not is_listed and notes.get("arithmetic") == here
    ):  # the catalogue lacks this arithmetic: build again
        with storage.staging() as aside:
            storage.write(entry, count_episodes(entry, episodes(entry), show), aside / "data")
            again = storage.content_sha256(storage.open_storage(aside / "data"))
        if again == content_hash:
            return here, f"its recipe, followed once more here ({here}, jaxlib {version('jaxlib')})"
    raise ValueError(
        f"{entry.id} does not hold what its recipe makes: the SHA-256 of its content is "
        f"{content_hash}. Make it anew: rlsuite-data build --force {entry.id}"
    )


def replay_episodes(entry: Entry, data: Path, tolerance: float, show: Show) -> tuple[int, float]:
    """Play every recorded action in the environment that Minari recovers.

    Return the steps and the largest difference.

    Raises:
        ValueError: a step differs by more than the tolerance.
    """
    import minari

    env = minari.MinariDataset(data).recover_environment(disable_env_checker=True)
    steps = 0
    largest = 0.0
    for index, (seed, episode) in enumerate(storage.read_episodes(storage.open_storage(data))):
        if seed != entry.seeds[index]:
            raise ValueError(
                f"{entry.id}: episode {index} has the seed {seed}, not {entry.seeds[index]}."
            )
        observations, paid, flags = _play_episode(env, seed, episode["actions"])
        pairs = [*zip(observations, _leaves(episode["observations"]), strict=True)]
        pairs.append((np.asarray(paid, episode["rewards"].dtype), episode["rewards"]))
        for again, recorded in pairs:
            if again.shape != recorded.shape:
                raise ValueError(
                    f"{entry.id}: episode {index} has {len(recorded)} values, its replay "
                    f"{len(again)}."
                )
            difference = 0.0
            if not np.array_equal(again, recorded):
                difference = float(np.abs(again.astype(np.float64) - recorded).max())
            largest = max(largest, difference)
            if not difference <= tolerance:
                raise ValueError(
                    f"{entry.id}: episode {index} (seed {seed}) does not replay: a value differs "
                    f"by {difference:.3g}; {tolerance:g} is allowed."
                )
        recorded_flags = np.stack([episode["terminations"], episode["truncations"]], 1)
        if tolerance == 0 and not np.array_equal(flags, recorded_flags):
            raise ValueError(
                f"{entry.id}: episode {index} (seed {seed}) does not end as recorded when replayed."
            )
        steps += len(paid)
        show("replaying", index + 1, entry.episodes)
    return steps, largest


def _play_episode(
    env: Any, seed: int, actions: np.ndarray
) -> tuple[list[np.ndarray], list[Any], np.ndarray]:
    """Play one episode.

    Return the observations' arrays, each ``(T + 1, ...)``, rewards, and ``(T, 2)`` flags.
    """
    observation, _ = env.reset(seed=seed)
    observations, paid, flags = [_leaves(observation)], [], []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        observations.append(_leaves(observation))
        paid.append(reward)
        flags.append((terminated, truncated))
    return [np.stack(leaf) for leaf in zip(*observations, strict=True)], paid, np.array(flags)


def _leaves(observation: Any) -> list[np.ndarray]:
    """Return the arrays of an observation: one, or those of a dict in the order of their names."""
    return (
        [observation[name] for name in sorted(observation)]
        if isinstance(observation, dict)
        else [observation]
    )
