"""Built datasets: Minari loads them, they replay to the bit, and damage is found."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import jax
import minari
import numpy as np
import pytest
from folders import visible
from killing import die, run_until_killed

from rlbench_suite.adapters.rollout import play, replay
from rlbench_suite.datasets import access, building, recipe, storage
from rlbench_suite.datasets.catalogue import Entry
from rlbench_suite.foundation.atomic_files import CannotWrite


@pytest.fixture
def copy(shelf: Path, root: Path, entry: Entry) -> Path:
    """The shelf's dataset in a folder of the test's own, to be damaged; gives its data folder."""
    shutil.copytree(shelf / entry.id, root / entry.id)
    return root / entry.id / "data"


def test_minari_loads_it_and_recovers_its_environments(copy: Path, entry: Entry) -> None:
    dataset = minari.load_dataset(entry.id)
    assert (dataset.total_episodes, dataset.total_steps) == (
        entry.episodes,
        entry.fingerprint.steps,
    )
    for evaluation, split in ((False, "train"), (True, "test")):
        env = dataset.recover_environment(eval_env=evaluation)
        assert env.spec.id == entry.task
        assert env.spec.kwargs["split"] == split
        assert env.observation_space == dataset.observation_space
        assert env.action_space == dataset.action_space
    assert list(minari.list_local_datasets()) == [entry.id]


def test_minaris_normalised_score_is_the_suites(copy: Path, entry: Entry) -> None:
    dataset = minari.load_dataset(entry.id)
    returns = np.array([3.0, 100.0, 480.0])
    expected = [entry.card.normalise(value) for value in returns]
    np.testing.assert_allclose(minari.get_normalized_score(dataset, returns), expected, rtol=1e-12)


def test_recorded_steps_are_those_of_a_plain_gymnasium_loop(copy: Path, entry: Entry) -> None:
    """Observations, rewards, flags and infos are compared by hand and bit for bit.

    ``verify`` does the same for all episodes.
    """
    dataset = minari.load_dataset(entry.id)
    env = dataset.recover_environment()
    ends = 0
    for episode, about in zip(
        dataset.iterate_episodes(range(5)),
        dataset.storage.get_episode_metadata(range(5)),
        strict=True,
    ):
        observation, info = env.reset(seed=about["seed"])
        for t in range(len(episode)):
            np.testing.assert_array_equal(observation, episode.observations[t], strict=True)
            assert all(
                info[name] == episode.infos[name][t] for name in ("success", "distance", "speed")
            )
            observation, reward, terminated, truncated, info = env.step(episode.actions[t])
            assert np.float32(reward) == episode.rewards[t]
            assert (terminated, truncated) == (episode.terminations[t], episode.truncations[t])
            ends += terminated or truncated
        assert terminated or truncated
        np.testing.assert_array_equal(observation, episode.observations[-1])
        assert (
            len(episode.observations) == len(episode.rewards) + 1 == len(episode.infos["distance"])
        )
    assert ends == 5  # and none of them before its episode's last step


def test_the_kernels_replay_gives_the_recorded_returns(copy: Path, entry: Entry) -> None:
    task, dataset = entry.card.build(), minari.load_dataset(entry.id)
    actions = np.zeros((8, task.card.horizon, 4), np.float32)
    totals = []
    for row, episode in zip(actions, dataset.iterate_episodes(range(8)), strict=True):
        row[: len(episode)] = episode.actions
        # One after another, in float32, as an episode sums.
        totals.append(np.add.accumulate(episode.rewards)[-1])
    np.testing.assert_array_equal(
        replay(task, actions, entry.seeds[:8], split="train").total, totals
    )


def test_random_data_are_uniform_actions(copy: Path, entry: Entry) -> None:
    from scipy import stats

    actions = np.concatenate(
        [episode.actions for episode in minari.load_dataset(entry.id).iterate_episodes()]
    )
    for component in actions.T:
        assert stats.kstest((component + 1) / 2, "uniform").pvalue > 1e-3


def test_verify_finds_it_right(call: Callable[..., tuple], copy: Path, entry: Entry) -> None:
    code, out, err = call("verify", "hover/random")
    assert (code, err) == (0, "")
    assert f"{entry.fingerprint.steps:,} steps replayed to the bit" in " ".join(out.split())
    # The tested versions are those of the catalogue, see constraints.txt.
    assert "the catalogue" in out


def test_a_second_build_gives_the_same_content(copy: Path, entry: Entry) -> None:
    before = storage.content_sha256(storage.open_storage(copy))
    with pytest.raises(FileExistsError, match="is there already"):
        access.build(entry)
    access.build(entry, force=True)
    assert (
        storage.content_sha256(storage.open_storage(copy))
        == before
        == storage.made_by(copy)["sha256"]
    )


@pytest.mark.parametrize("folder", sorted({entry.folder for entry in access.catalogue().values()}))
def test_the_catalogue_knows_what_a_build_makes(
    folder: str,
    shelf: Path,
    root: Path,
    call: Callable[..., tuple],
    entry: Entry,
    recwarn: pytest.WarningsRecorder,
) -> None:
    """One dataset of every task is built and compared.

    A change of the task must not leave its hashes behind.
    """
    smallest = access.find(f"{folder}/random")
    if smallest == entry:
        shutil.copytree(shelf / entry.id, root / entry.id)
    else:
        access.build(smallest)
    assert [str(warning.message) for warning in recwarn if warning.category is UserWarning] == []
    comparison = access.compare_with_catalogue(smallest)
    assert (comparison.differs, comparison.words.split(" (")[0]) == (
        False,
        "Its content is that of the catalogue",
    )


def test_content_does_not_depend_on_what_a_calibration_measures(copy: Path, entry: Entry) -> None:
    """Scores in ``info`` use measured anchors.

    The card's limit decides whether a constraint is violated.
    """
    infos = minari.load_dataset(entry.id)[0].infos
    assert {"success", "distance", "speed"} <= infos.keys()
    assert not {"score", "violates"} & infos.keys()
    constrained = access.find("pmsm-current/random").card.build()
    steps = recipe.trajectories(
        constrained, np.zeros((2, constrained.card.horizon, 2), np.float32), [0, 1]
    )
    assert {"score", "violates", "cost"} <= steps.info.keys()
    lane = jax.tree.map(lambda leaf: leaf[0], steps)
    assert not {"score", "violates"} & recipe._cut(0, 3, np.zeros((3, 2)), lane).infos.keys()


def test_a_build_says_that_it_differs_from_the_catalogue(
    call: Callable[..., tuple], copy: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = replace(entry.fingerprint, sha256=dict.fromkeys(entry.fingerprint.sha256, "0" * 64))
    monkeypatch.setattr(Entry, "fingerprint", stale)
    code, out, err = call("build", entry.id, "--force")
    assert code == 0
    assert "is installed" in out
    assert (
        "warning: rlsuite/hover/random-v0 was built from its recipe, but its content is not "
        "that of the cat"
    ) in err
    with pytest.warns(UserWarning, match="its content is not that of the catalogue"):
        access.build(entry, force=True)


@pytest.mark.parametrize("changed", [True, False])
def test_a_new_fingerprint_leaves_no_hash_that_is_out_of_date(
    copy: Path, entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: bool
) -> None:
    here, fingerprint = recipe.arithmetic(), entry.fingerprint
    before = {here: "0" * 64 if changed else fingerprint.sha256[here], "vax": "1" * 64}
    monkeypatch.setattr(Entry, "fingerprint", replace(fingerprint, sha256=before))
    monkeypatch.setattr(building, "FINGERPRINTS", tmp_path / "fingerprints.json")
    assert access.fingerprint(entry).sha256 == {here: fingerprint.sha256[here]} | (
        {} if changed else {"vax": "1" * 64}
    )


def damage_value(data: Path) -> None:
    with h5py.File(data / "main_data.hdf5", "a") as file:
        file["episode_7/rewards"][3] += 1e-3


def damage_action(data: Path) -> None:
    with h5py.File(data / "main_data.hdf5", "a") as file:
        file["episode_7/actions"][0, 0] *= -1


def damage_seed(data: Path) -> None:
    with h5py.File(data / "main_data.hdf5", "a") as file:
        file["episode_0"].attrs["seed"] = 5


def cut_file(data: Path) -> None:
    path = data / "main_data.hdf5"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def drop_array(data: Path) -> None:
    with h5py.File(data / "main_data.hdf5", "a") as file:
        del file["episode_3/truncations"]


def metadata_with(name: str, value: Any) -> Callable[[Path], None]:
    def change(data: Path) -> None:
        path = data / "metadata.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))

    return change


def no_metadata(data: Path) -> None:
    (data / "metadata.json").write_text("{")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_value, "does not hold what its recipe makes"),
        (damage_action, "does not hold what its recipe makes"),
        (damage_seed, "does not hold what its recipe makes"),
        (cut_file, "cannot be read"),
        (drop_array, "cannot be read"),
        (metadata_with("ref_max_score", 1.0), "ref_max_score is 1.0"),
        (metadata_with("env_spec", '{"entry_point": "os:system"}'), "env_spec is"),
        (metadata_with("total_episodes", 3), "total_episodes is 3"),
        (metadata_with("surprise", 1), "'surprise', which no recipe writes"),
        (no_metadata, "metadata cannot be read"),
    ],
)
def test_damage_is_found(
    call: Callable[..., tuple], copy: Path, entry: Entry, damage: Callable[[Path], None], words: str
) -> None:
    damage(copy)
    code, _, err = call("verify", entry.id)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
    with pytest.raises(ValueError, match="rlsuite"):  # agents do not learn from it either
        access.load(entry)


def test_replay_alone_finds_a_wrong_step(copy: Path, entry: Entry) -> None:
    """Were hash and catalogue forged, the environment would still tell."""
    from rlbench_suite.datasets.verification import replay_episodes

    damage_value(copy)
    with pytest.raises(ValueError, match=r"episode 7 .* does not replay: a value differs by 0.001"):
        replay_episodes(entry, copy, 0.0, lambda *_: None)
    assert replay_episodes(entry, copy, 0.01, lambda *_: None)[1] == pytest.approx(1e-3, rel=1e-3)


def test_content_not_of_the_catalogue_is_compared_with_the_recipe(
    copy: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a machine whose arithmetic the catalogue has never seen."""
    unknown = replace(entry.fingerprint, sha256={"vax": "0" * 64})
    monkeypatch.setattr(Entry, "fingerprint", unknown)
    assert "followed once more here" in access.verify(entry).origin
    damage_value(copy)
    with pytest.raises(ValueError, match="does not hold what its recipe makes"):
        access.verify(entry)


def test_nothing_is_left_of_a_build_that_fails(
    root: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: Any) -> Any:
        yield from make(entry)
        raise KeyboardInterrupt

    original_episodes = recipe.episodes
    make = lambda entry: (  # noqa: E731
        episode for episode, _ in zip(original_episodes(entry), range(3), strict=False)
    )
    monkeypatch.setattr("rlbench_suite.datasets.building.episodes", break_off)
    with pytest.raises(KeyboardInterrupt):
        access.build(entry)
    assert visible(root) == []


@pytest.mark.filterwarnings("ignore")  # of JAX about forks: the copies do not compute
@pytest.mark.parametrize(
    "place", ["in an episode", "before the notes", "before the move", "after the move"]
)
def test_a_build_that_is_killed_leaves_no_dataset_or_a_whole_one(
    place: str, root: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, here = list(recipe.episodes(entry)), recipe.arithmetic()
    monkeypatch.setattr("rlbench_suite.datasets.building.episodes", lambda _: iter(recorded))
    monkeypatch.setattr("rlbench_suite.datasets.building.arithmetic", lambda: here)

    def build() -> None:
        with pytest.MonkeyPatch.context() as patch:
            if place == "in an episode":
                moving = iter(recorded)
                patch.setattr(
                    "rlbench_suite.datasets.building.episodes",
                    lambda _: (
                        episode if number < 100 else die() for number, episode in enumerate(moving)
                    ),
                )
            elif place == "before the notes":
                patch.setattr(storage, "note", die)
            elif place == "before the move":
                patch.setattr(storage, "install", die)
            else:
                patch.setattr("rlbench_suite.datasets.building.compare_with_catalogue", die)
            access.build(entry)

    run_until_killed(build)
    if place != "after the move":
        assert not storage.is_installed(entry)
        assert minari.list_local_datasets() == {}
        access.build(entry)
    data = root / entry.id / "data"
    assert storage.content_sha256(storage.open_storage(data)) == storage.made_by(data)["sha256"]
    assert not list(root.glob(".rlsuite-*")), "what the killed program left was cleared away"


def test_a_dataset_that_cannot_be_replaced_stays(
    copy: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, before = Path.rename, contents(copy)

    def refuse(self: Path, target: Path) -> Path:
        if self.name == "made":
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with storage.staging() as aside:
        (aside / "made").mkdir()
        with pytest.raises(OSError, match=r"there already|Input/output error"):
            storage.install(entry, aside / "made", force=True)
    assert contents(copy) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_disk_that_fills_while_a_dataset_is_built_is_named(
    root: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDF5 itself would end the process."""
    usage, looks = shutil.disk_usage, iter(range(10**6))
    monkeypatch.setattr(
        shutil, "disk_usage", lambda path: usage(path)._replace(free=10**9 - next(looks) * 10**8)
    )
    with pytest.raises(
        CannotWrite, match=f"Cannot write {entry.id}: the disk of .* is nearly full"
    ):
        access.build(entry)
    assert next(looks) == 11
    assert visible(root) == []


def test_an_interrupted_build_says_so(
    call: Callable[..., tuple], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("rlbench_suite.datasets.building.episodes", interrupt)
    code, out, _ = call("build", "hover/random")
    assert code == 130
    assert "no part of rlsuite/hover/random-v0 was kept" in out
    assert visible(root) == []


def test_a_folder_that_cannot_be_written_is_named(
    call: Callable[..., tuple], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(blocked / "datasets"))
    code, _, err = call("build", "hover/random")
    assert code == 2
    assert "Cannot write Minari's folder of datasets" in err
    assert "MINARI_DATASETS_PATH" in err


def test_what_was_left_by_a_killed_program_is_cleared_away(root: Path) -> None:
    old = root / ".rlsuite-old"
    old.mkdir(parents=True)
    with storage.staging() as running:
        assert not old.exists()
        with storage.staging() as aside:
            assert aside.is_dir()
            assert running.is_dir()  # its program is at work
    assert not aside.exists()
    assert not running.exists()


def test_a_weak_hand_goes_part_of_the_way_and_at_times_astray() -> None:
    """The wrapper against its definition, on a player whose action is known."""
    from rlbench_suite.baselines.scripted import Constant

    task = access.find("pmsm-current/medium").card.build()
    full = np.array([0.8, -0.4], np.float32)
    hand = recipe.Weakened(
        Constant(full), task.action_space, np.zeros(2, np.float32), np.float32(0.5), np.float32(0.2)
    )
    record = play(task, hand, range(400), split="train", limit=5)
    actions = np.concatenate(
        [row[:length] for row, length in zip(record.actions, record.length, strict=True)]
    )
    straight = np.isclose(actions, [0.4, -0.2]).all(1)
    assert abs(straight.mean() - 0.8) < 0.03  # three standard deviations of some 2,000 draws
    assert np.abs(actions[~straight]).max() > 0.9
    assert abs(actions[~straight].mean()) < 0.15


def test_one_of_two_players_plays_a_whole_episode() -> None:
    from rlbench_suite.baselines.scripted import Constant

    task = access.find("pmsm-current/medium").card.build()
    still, nudge = np.zeros(2, np.float32), np.full(2, 0.01, np.float32)
    player = recipe.Mixed((Constant(still), Constant(nudge)), np.float32(0.25))
    actions = play(task, player, range(1_000), split="train", limit=4).actions
    assert (actions == actions[:, :1]).all()
    assert abs((actions[:, 0, 0] != 0).mean() - 0.25) < 0.042  # three standard deviations


def test_only_boxes_can_be_weakened() -> None:
    odd = replace(access.find("hover/medium"), task="rlsuite/SAT-v0")
    with pytest.raises(ValueError, match="bounded Box"):
        recipe.player(odd, odd.card.build())


def test_reference_scores_are_the_cards(entry: Entry) -> None:
    metadata, scale = storage.metadata(entry), entry.card.scale()
    assert (metadata["ref_min_score"], metadata["ref_max_score"]) == (
        scale.zero.mean,
        scale.reference.mean,
    )
