"""Runs in an object store: a real S3 server on loopback, over HTTP."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlbench_suite.evaluation.runs import object_store
from rlbench_suite.evaluation.runs.open_run import OpenRun
from rlbench_suite.evaluation.runs.run import read_runs
from rlbench_suite.evaluation.runs.runner import in_process, plan
from rlbench_suite.foundation.atomic_files import CannotWrite

pytest.importorskip("s3fs")
URL = "s3://bucket/runs/toys"
SUITE = "ToyWalk-v0,ToyDrift-v0"
PROGRAM = str(Path(sys.executable).with_name("rlsuite-eval"))


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it would log each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture(autouse=True)
def bucket(server: str, toys: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the file system of an empty bucket."""
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    system = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    if system.exists("bucket"):
        system.rm("bucket", recursive=True)
    system.mkdir("bucket")
    return system


def play(out: str, *, until: int = 100) -> None:
    """Run cells in this process, and stop after some."""
    with (
        object_store.open_store(out) as place,
        OpenRun.open(place.path, plan("toy", SUITE, 2, "smoke")) as run,
        run.sitting(),
    ):
        finished = 0
        for event in place.keeping(in_process(run), run.cell_path):
            finished += event.kind == "finished"
            if finished == until:
                return
        run.merge()


def test_a_run_in_a_bucket_has_the_files_and_bytes_of_a_local_one(bucket: Any, tmp_path: Path):
    play(URL)
    play((tmp_path / "local").as_uri())
    remote = {name.removeprefix("bucket/runs/toys/") for name in bucket.find("bucket/runs/toys")}
    local = {
        path.relative_to(tmp_path / "local").as_posix() for path in (tmp_path / "local").rglob("*")
    }
    assert remote == {
        name for name in local if (tmp_path / "local" / name).is_file() and name != ".lock"
    }
    assert (
        bucket.cat(f"{URL}/episodes.parquet")
        == (tmp_path / "local" / "episodes.parquet").read_bytes()
    )


def test_an_interrupted_run_goes_on_where_it_was(bucket: Any, tmp_path: Path):
    play(URL, until=3)
    before = {name: bucket.info(name)["LastModified"] for name in bucket.find(f"{URL}/cells")}
    assert len(before) == 3 * 5
    # The last file of a cell: its upload was cut off.
    bucket.rm_file(f"{URL}/cells/toy/ToyWalk-v0/0/result.json")
    time.sleep(1.1)  # times of objects are in whole seconds
    play(URL)
    now = {name: bucket.info(name)["LastModified"] for name in bucket.find(f"{URL}/cells")}
    assert len(now) == 4 * 5
    again = {
        name.split("/")[-3:-1][0] + name.split("/")[-2]
        for name in now
        if now[name] != before.get(name)
    }
    assert again == {"ToyWalk-v00", "ToyDrift-v01"}
    play(str(tmp_path / "local"))
    assert (
        bucket.cat(f"{URL}/episodes.parquet")
        == (tmp_path / "local" / "episodes.parquet").read_bytes()
    )


def start_run(agent: str) -> subprocess.Popen[str]:
    """Start a run at the URL in a process of its own."""
    options = f"--agent {agent} --suite {SUITE} --seeds 2 --workers 1 --out {URL}"
    command = [PROGRAM, *options.split()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_killed_program_loses_nothing_it_had_finished(
    bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOY_PAUSE", "0.3")
    program = start_run("toy")
    deadline = time.monotonic() + 300
    while not [name for name in bucket.find(f"{URL}/cells") if name.endswith("result.json")]:
        assert program.poll() is None, program.communicate()[0]
        assert time.monotonic() < deadline, "no cell was finished"
        time.sleep(0.1)
    with pytest.raises(OSError, match="another program is at work in it"):
        play(URL)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    assert bucket.find(f"{URL}/.lease")
    done = {name for name in bucket.find(f"{URL}/cells") if name.endswith("result.json")}
    content = {name: bucket.cat(name) for name in done}
    monkeypatch.setenv("TOY_PAUSE", "0")
    play(URL)
    assert {name: bucket.cat(name) for name in done} == content  # not run again
    assert not bucket.find(f"{URL}/.lease")
    play(str(tmp_path / "local"))
    assert (
        bucket.cat(f"{URL}/episodes.parquet")
        == (tmp_path / "local" / "episodes.parquet").read_bytes()
    )


def test_a_wider_run_says_with_which_settings_before_it_stores_a_cell(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
):
    """Kill a run that has got a second agent.

    Its cells must not be taken for those of other hyperparameters.
    """
    play(URL)
    monkeypatch.setenv("TOY_RATE", "0.25")
    program = start_run("toy-host")
    deadline = time.monotonic() + 300
    while not bucket.find(f"{URL}/cells/toy-host"):
        assert program.poll() is None, program.communicate()[0]
        assert time.monotonic() < deadline, "no cell was finished"
        time.sleep(0.02)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate()
    assert (
        json.loads(bucket.cat(f"{URL}/manifest.json"))["hyperparameters"]["toy-host"][
            "rlsuite/ToyWalk-v0"
        ]["rate"]
        == 0.25
    )


def test_a_lease_of_another_machine_is_kept_until_it_expires(bucket: Any):
    lease = {"host": "elsewhere", "process": 1, "time": time.time()}
    bucket.pipe_file(f"{URL}/.lease/000000007", json.dumps(lease).encode())
    with pytest.raises(
        OSError, match=r"Cannot use s3://bucket/runs/toys: another program .*process 1 on elsewhere"
    ):
        play(URL)
    ahead = lease | {"time": time.time() + 3600}
    bucket.pipe_file(f"{URL}/.lease/000000007", json.dumps(ahead).encode())
    with pytest.raises(
        OSError, match=r"process 1 on elsewhere, whose clock is 3\d\d\d s ahead of the clock here"
    ):
        play(URL)
    lease["time"] -= object_store.EXPIRY + 1
    bucket.pipe_file(f"{URL}/.lease/000000007", json.dumps(lease).encode())
    play(URL, until=1)
    assert not bucket.find(f"{URL}/.lease")


def test_a_program_that_lost_its_lease_writes_nothing(bucket: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_store, "_RENEWAL", 0.1)

    def overtake() -> None:
        with object_store.open_store(URL) as place:
            bucket.pipe_file(f"{URL}/.lease/000000002", b"{}")
            time.sleep(1)
            (place.path / "manifest.json").write_text("{}")

    with pytest.raises(CannotWrite, match="out of touch"):
        overtake()
    assert bucket.find(URL) == [
        "bucket/runs/toys/.lease/000000001",
        "bucket/runs/toys/.lease/000000002",
    ]


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_a_clock_that_is_set_costs_no_lease(
    bucket: Any, monkeypatch: pytest.MonkeyPatch, jump: float
):
    true = time.time
    with object_store.open_store(URL) as place:
        monkeypatch.setattr(time, "time", lambda: true() + jump)
        (place.path / "manifest.json").write_text("{}")
    assert bucket.cat(f"{URL}/manifest.json") == b"{}"


def test_time_without_contact_counts_whatever_the_clock_says(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
):
    true = object_store._uptime
    monkeypatch.setattr(time, "time", lambda: 0.0)

    def sleep() -> None:
        with object_store.open_store(URL) as place:
            monkeypatch.setattr(object_store, "_uptime", lambda: true() + object_store.EXPIRY + 1)
            (place.path / "manifest.json").write_text("{}")

    with pytest.raises(CannotWrite, match="out of touch"):
        sleep()


def test_two_programs_that_take_a_lease_at_once_cannot_both_have_it(bucket: Any):
    objects = object_store._Objects(URL)
    assert objects.create("x", b"first")
    assert not objects.create("x", b"second")
    assert objects.read("x") == b"first"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://nowhere/run", "Cannot use s3://nowhere/run: .*bucket does not exist"),
        ("s5://bucket/run", "Unknown kind of URL 's5://'. Did you mean 's3://'?"),
    ],
)
def test_what_is_not_there_is_refused_in_one_sentence(url: str, words: str):
    with pytest.raises((OSError, ValueError), match=words) as refused:
        play(url)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "package", "extra"), [("s3://b/x", "s3fs", True), ("gs://b/x", "gcsfs", False)]
)
def test_a_store_without_its_package_names_it(
    url: str, package: str, extra: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(
        sys.modules["fsspec.registry"]._registry, url.partition(":")[0], raising=False
    )
    with pytest.raises(ImportError, match=f"nstall {package}") as caught:
        object_store._Objects(url)
    assert ("rlbench-suite[cloud]" in str(caught.value)) == extra


def test_wrong_credentials_are_refused_in_one_sentence(server: str):
    import requests

    requests.post(f"{server}/moto-api/reset-auth", data=b"0", timeout=10)
    try:
        with pytest.raises(OSError, match="Cannot use s3://bucket/runs/toys: ") as refused:
            play(URL)
    finally:
        requests.post(f"{server}/moto-api/reset-auth", data=b"inf", timeout=10)
    assert len(str(refused.value).splitlines()) == 1
    assert "Key" in str(refused.value)


def test_what_is_damaged_is_named_by_its_url(bucket: Any):
    play(URL, until=1)
    bucket.pipe_file(f"{URL}/cells/toy/ToyWalk-v0/0/result.json", b"{}")
    with pytest.raises(ValueError, match=f"{URL}/cells/toy/ToyWalk-v0/0/result.json is damaged"):
        play(URL)


def test_commands_on_results_read_a_run_at_its_url_as_they_read_a_local_one(
    bucket: Any, tmp_path: Path
):
    play(URL)
    local = tmp_path / "toys"
    play(str(local))

    def output_of(*arguments: str) -> str:
        return subprocess.run(
            [PROGRAM, *arguments], capture_output=True, text=True, check=True, timeout=600
        ).stdout

    for command in (
        ("export", "--format", "csv"),
        ("query", "SELECT run, task, seed, score FROM cells"),
    ):
        assert output_of(*command, URL) == output_of(*command, str(local))


def test_a_run_that_is_not_there_is_named_by_its_url(bucket: Any):
    with (
        pytest.raises(ValueError, match=f"^{URL} does not exist.$"),
        object_store.fetch_runs([URL]) as folders,
    ):
        read_runs(folders)


def test_an_object_whose_name_leads_elsewhere_is_refused(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
):
    """Object stores take any name."""
    monkeypatch.setattr(object_store, "_Objects", Traversing)
    with (
        pytest.raises(OSError, match=r"has an object that no run has: '\.\./\.\./evil.json'"),
        object_store.fetch_runs([URL]),
    ):
        pass


class Traversing(object_store._Objects):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.system = Listing(self.root)


class Listing:
    def __init__(self, root: str) -> None:
        self.root = root

    def find(self, _: str) -> list[str]:
        return [f"{self.root}/manifest.json", f"{self.root}/../../evil.json"]
