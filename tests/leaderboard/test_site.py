"""Submissions, rankings and pages: only what was verified is shown, and nothing of it runs."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from forgery import DRIFT, WALK, Forgery, run_agents
from PIL import Image
from scipy.stats import trim_mean

from rlbench_suite.evaluation.machine import Machine
from rlbench_suite.leaderboard import site as sites
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry
from rlbench_suite.leaderboard.site import Site, build
from rlbench_suite.leaderboard.submit import submit

HOSTILE = '<script>document.title="owned"</script><img src=x onerror=alert(1)>&"\''
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# -- submit ------------------------------------------------------------------------------------------------------------


def test_what_is_submitted_lies_there_unchanged(honest: Path, tmp_path: Path):
    place, verdict = submit(honest, tmp_path / "subs")
    assert verdict.accepted
    assert place == tmp_path / "subs" / "toy-v1.zip"
    assert place.read_bytes() == honest.read_bytes()
    assert os.listdir(tmp_path / "subs") == ["toy-v1.zip"]


def test_what_is_rejected_leaves_nothing_behind(honest: Path, tmp_path: Path):
    forged = Forgery(honest)
    forged.claims["iqm"] = 9.0
    _, verdict = submit(forged.write(tmp_path / "forged.zip"), tmp_path / "subs")
    assert not verdict.accepted
    assert not (tmp_path / "subs").exists()


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"name": "toy"}, "toy-v1 is already in"),
        ({"name": "TOY"}, "TOY-v1 is already in"),
        ({"name": "mine"}, "The same actions, step for step, are already in .* as toy-v1"),
        ({"name": "toy", "version": 2}, "The same actions"),
    ],
)
def test_nothing_is_submitted_twice(known: dict, words: str, packed: Callable[..., Path], tmp_path: Path):
    submit(packed(), tmp_path / "subs")
    before = (tmp_path / "subs" / "toy-v1.zip").read_bytes()
    with pytest.raises(ValueError, match=words):
        submit(packed(**known), tmp_path / "subs")
    assert os.listdir(tmp_path / "subs") == ["toy-v1.zip"]
    assert (tmp_path / "subs" / "toy-v1.zip").read_bytes() == before


def test_a_part_of_anothers_run_is_a_copy_too(honest: Path, toy_run: Path, tmp_path: Path):
    submit(honest, tmp_path / "subs")
    pack(toy_run, Entry(name="part", agent="toy"), tmp_path / "part.zip", suite=WALK)
    with pytest.raises(ValueError, match="The same actions"):
        submit(tmp_path / "part.zip", tmp_path / "subs")


def git(where: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    command = ["git", *identity, "-C", str(where), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    git(path, "init", "--quiet")
    for name, value in {"user.name": "Ada", "user.email": "ada@example.org", "commit.gpgsign": "false"}.items():
        git(path, "config", name, value)
    (path / "README").write_text("ours")
    git(path, "add", "README")
    git(path, "commit", "--quiet", "-m", "begin")
    (path / "README").write_text("half a thought")
    git(path, "add", "README")
    return path


def test_in_a_checkout_the_archive_alone_is_committed(honest: Path, checkout: Path):
    place, _ = submit(honest, checkout)
    assert place == checkout / "submissions" / "toy-v1.zip"
    assert git(checkout, "log", "--format=%an %s", "-1").strip() == "Ada Submission toy-v1"
    assert git(checkout, "show", "--name-only", "--format=").split() == ["submissions/toy-v1.zip"]
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]  # still staged, not committed


def test_a_folder_of_a_checkout_is_taken_as_it_is(honest: Path, checkout: Path):
    assert submit(honest, checkout / "results" / "2026")[0] == checkout / "results" / "2026" / "toy-v1.zip"
    assert git(checkout, "show", "--name-only", "--format=").split() == ["results/2026/toy-v1.zip"]


def test_where_git_refuses_the_checkout_stays_as_it_was(honest: Path, checkout: Path):
    hook = checkout / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(OSError, match=r"git commit failed in .*: not today"):
        submit(honest, checkout)
    assert git(checkout, "status", "--porcelain").split("\n")[:-1] == ["M  README"]
    assert not (checkout / "submissions" / "toy-v1.zip").exists()


# -- build -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def submissions(packed: Callable[..., Path], toy_run: Path, shelf: Path, tmp_path: Path) -> Path:
    """Two entries with the whole suite, an older version, a partial one, a copy, and one that lies."""
    folder = tmp_path / "submissions"
    links = ("https://a.org/?x=1&y=2",)
    submit(packed("toy", authors=("Ada Lovelace", HOSTILE), description=HOSTILE, links=links), folder)
    submit(packed("random", name="dice", version=2), folder)
    older = Forgery(packed("random", name="dice"))
    older.claims["tasks"] = [older.task(WALK)]
    older.claims["created"] = "2020-01-01T00:00:00Z"
    for kind in ("episodes", "actions"):
        del older.members[older.member(kind, DRIFT)]
    older.settle()
    older.write(folder / "dice-v1.zip")
    if not (shelf / "other").exists():
        run_agents(shelf / "other", "toy-host", WALK, 1)
    pack(shelf / "other", Entry(name="part", agent="toy-host"), folder / "part-v1.zip")
    shutil.copy(packed("toy", name="twin"), folder)
    liar = Forgery(packed("random", name="liar"))
    liar.change("episodes", "return_0", 0, 6.0)
    liar.settle()
    liar.write(folder / "liar-v1.zip")
    (folder / "<img src=x>.zip").write_text("no zip")
    shutil.copy(packed("random", name="misnamed"), folder / "other-name.zip")
    return folder


@pytest.fixture
def built(submissions: Path, tmp_path: Path) -> tuple[Site, Path]:
    return build(submissions, tmp_path / "site"), tmp_path / "site"


def test_rankings_are_of_replayed_scores_on_whole_suites(built: tuple[Site, Path]):
    site, folder = built
    assert {entry.title for entry in site.entries} == {"toy-v1", "twin-v1", "dice-v1", "dice-v2", "part-v1"}
    (board,) = [board for board in site.boards if board.suite == "toys"]
    assert [(place.rank, place.standing.title) for place in board.places] == [(1, "toy-v1"), (2, "dice-v2")]
    for place in board.places:
        cells = [cell.score for cell in place.standing.verdict.cells]
        assert place.summary.iqm.point == pytest.approx(trim_mean(cells, 0.25), rel=1e-12)
        assert place.summary.iqm.low <= place.summary.iqm.point <= place.summary.iqm.high
    assert board.unranked == {
        "dice-v1": "superseded by dice-v2",
        "part-v1": "covers 1 of 2 tasks; ToyDrift-v0 missing",
        "twin-v1": "takes the same actions, step for step, as toy-v1",
    }
    results = json.loads((folder / "results.json").read_text())
    (same,) = [b for b in results["boards"] if b["suite"] == "toys"]
    assert [row["entry"] for row in same["ranking"]] == ["toy-v1", "dice-v2"]
    assert same["ranking"][0]["iqm"][0] == board.places[0].summary.iqm.point


def test_what_does_not_stand_up_is_named_and_in_no_ranking(built: tuple[Site, Path]):
    site, folder = built
    assert set(site.refused) == {"liar-v1.zip", "<img src=x>.zip", "other-name.zip"}
    assert "the return is claimed to be 6.0" in site.refused["liar-v1.zip"][0]
    assert site.refused["other-name.zip"] == (
        "It is the archive of misnamed-v1, so its name has to be misnamed-v1.zip.",
    )
    index = (folder / "index.html").read_text()
    assert "liar-v1.zip" in index
    assert "&lt;img src=x&gt;.zip" in index
    assert not (folder / "archives" / "liar-v1.zip").exists()
    assert not (folder / "entries" / "liar-v1.html").exists()


class Elements(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_pages_stand_by_themselves_and_run_nothing(built: tuple[Site, Path], submissions: Path):
    _, folder = built
    pages = sorted(folder.rglob("*.html"))
    assert len(pages) == 1 + 5 + len(list((folder / "boards").iterdir()))
    outside = set()
    for path in pages:
        page = Elements(path.read_text())
        assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object", "embed", "form", "base"}
        assert "url(" not in path.read_text()
        assert "@import" not in path.read_text()
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcdoc", "style")]
            if href := attributes.get("href"):
                if re.match(r"https?:", href):
                    assert tag == "a"
                    outside.add(href)
                elif href != "data:,":
                    assert (path.parent / href).resolve().is_file(), href
                    assert folder.resolve() in (path.parent / href).resolve().parents
    assert outside == {"https://a.org/?x=1&y=2"}
    entry = Elements((folder / "entries" / "toy-v1.html").read_text())
    assert entry.text.count(HOSTILE) == 2  # as text: the author and the description
    for archive in (folder / "archives").iterdir():
        assert archive.read_bytes() == (submissions / archive.name).read_bytes()


def test_building_again_removes_what_is_gone_and_touches_nothing_else(submissions: Path, tmp_path: Path):
    site = tmp_path / "site"
    (site / ".git").mkdir(parents=True)
    build(submissions, site)
    (site / "CNAME").write_text("example.org")
    assert (site / "entries" / "part-v1.html").exists()
    (submissions / "part-v1.zip").unlink()
    build(submissions, site)
    assert not (site / "entries" / "part-v1.html").exists()
    assert not (site / "archives" / "part-v1.zip").exists()
    assert (site / "CNAME").read_text() == "example.org"
    assert (site / ".git").is_dir()
    assert not list(site.rglob(".*.tmp"))


def test_a_directory_that_is_no_site_is_left_alone(submissions: Path, tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "index.html").write_text("mine")
    with pytest.raises(ValueError, match="is no leaderboard site"):
        build(submissions, tmp_path / "thesis")
    assert (tmp_path / "thesis" / "index.html").read_text() == "mine"
    with pytest.raises(OSError, match="There is no directory"):
        build(tmp_path / "nowhere", tmp_path / "new")


def test_no_submission_is_a_page_too(tmp_path: Path):
    (tmp_path / "none").mkdir()
    assert build(tmp_path / "none", tmp_path / "site") == Site([], [], {})
    assert "No entry covers a whole suite yet" in (tmp_path / "site" / "index.html").read_text()


def test_an_archive_is_judged_once_until_it_or_the_judge_changes(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    here = Machine.this()
    revision = {"git_revision": "a" * 40}
    monkeypatch.setattr(sites.Machine, "this", lambda: here.model_copy(update=revision))
    judged: list[Path] = []

    def counting(path: Path, **known: object) -> object:
        judged.append(path)
        return verify(path)

    verify = sites.verify
    monkeypatch.setattr(sites, "verify", counting)
    folder = submit(honest, tmp_path / "subs")[0].parent
    first = build(folder, tmp_path / "site")
    again = build(folder, tmp_path / "site")
    assert len(judged) == 1
    assert again.entries[0].verdict == first.entries[0].verdict
    build(folder, tmp_path / "site", fresh=True)
    assert len(judged) == 2
    revision["git_revision"] = "b" * 40
    build(folder, tmp_path / "site")
    assert len(judged) == 3
    revision["git_revision"] = "b" * 40 + "-dirty"  # a judge that is being edited keeps no verdicts
    build(folder, tmp_path / "site")
    build(folder, tmp_path / "site")
    assert len(judged) == 5


# -- a real browser ----------------------------------------------------------------------------------------------------


def chromium(profile: Path, *arguments: str) -> str:
    quiet = ("disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update",
             "disable-sync", "hide-scrollbars", "no-sandbox", "headless")  # fmt: skip
    command = [str(CHROMIUM), *(f"--{flag}" for flag in quiet), f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
def test_pages_in_a_browser(built: tuple[Site, Path], tmp_path: Path):
    _, folder = built
    dom = chromium(tmp_path / "profile", "--dump-dom", (folder / "entries" / "toy-v1.html").as_uri())
    assert "<title>toy-v1</title>" in dom  # the script in the author's name did not run
    assert "<script" not in dom
    assert "<img" not in dom
    assert "to the bit" in dom
    shot = tmp_path / "board.png"
    address = (folder / "boards" / "toys-smoke.html").as_uri()
    chromium(tmp_path / "profile", "--window-size=1240,1400", f"--screenshot={shot}", address)
    with Image.open(shot) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or []}
    assert (0x1F, 0x6F, 0xEB) in colours or (0x6E, 0xA8, 0xFE) in colours  # the first series, light or dark
    assert len(colours) > 50
