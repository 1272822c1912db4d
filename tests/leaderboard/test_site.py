"""Rankings and pages: only what was verified is shown, and nothing of it runs."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from forgery import DRIFT, WALK, Forgery, run_agents
from full_disk import full
from PIL import Image
from scipy.stats import trim_mean

from rlbench_suite.core import registry
from rlbench_suite.evaluation.runs.computer import Computer
from rlbench_suite.foundation.atomic_files import CannotWrite
from rlbench_suite.leaderboard import site as sites
from rlbench_suite.leaderboard.log import read_log
from rlbench_suite.leaderboard.pack import pack
from rlbench_suite.leaderboard.schema import Entry
from rlbench_suite.leaderboard.site import Site, build
from rlbench_suite.leaderboard.submit import submit
from rlbench_suite.leaderboard.verify import verify

pytestmark = pytest.mark.usefixtures("here", "own_cache")

HOSTILE = '<script>document.title="owned"</script><img src=x onerror=alert(1)>&"\''
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


# -- who has a claim -------------------------------------------------------------------------------


def test_who_arrives_first_has_the_claim_whatever_the_dates_say(
    packed: Callable[..., Path], theft: Path, tmp_path: Path
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    shutil.copy(theft, folder)  # past submit
    built = build(folder, tmp_path / "site")
    assert {e.title: e.copy_of for e in built.entries} == {"toy-v1": None, "thief-v1": "toy-v1"}
    (board,) = [board for board in built.boards if board.suite == "toys"]
    assert [place.standing.title for place in board.ranking] == ["toy-v1"]
    assert "as toy-v1, which arrived earlier, at every step of 50" in board.unranked["thief-v1"]
    submit(packed("random"), folder)  # from now on the log has the thief too, behind its victim
    assert [a.archive for a in read_log(folder)] == ["toy-v1.zip", "thief-v1.zip", "random-v1.zip"]
    built = build(folder, tmp_path / "site")
    assert [e.copy_of for e in built.entries] == [None, "toy-v1", None]


def test_a_name_is_kept_by_its_authors(packed: Callable[..., Path], tmp_path: Path):
    folder = submit(packed(authors=("Ada Lovelace",)), tmp_path / "subs")[0].parent
    refusal = pytest.raises(
        ValueError, match=r"toy-v1 in .* is by Ada Lovelace; a later version must name them too"
    )
    with refusal:
        submit(packed("random", name="toy", version=2, authors=("Mallory",)), folder)
    with refusal:
        submit(
            packed("random", name="toy", version=2, authors=("Mallory",)),
            folder,
            confirm_authors=True,
        )
    shutil.copy(packed("random", name="toy", version=2, authors=("Mallory",)), folder)
    built = build(folder, tmp_path / "site")
    (board,) = [board for board in built.boards if board.suite == "toys"]
    assert [place.standing.title for place in board.ranking] == ["toy-v1"]
    reason = (
        "has the name of toy-v1, and the board's maintainer has not confirmed that its authors "
        "sent it"
    )
    assert board.unranked == {"toy-v2": reason}


def test_typing_an_owners_name_takes_nothing_over(
    packed: Callable[..., Path], theft: Path, tmp_path: Path
):
    """An entry of others keeps its rank against three tricks.

    They are the largest version, the authors' names, and a copy past ``submit``.
    """
    authors = ("Ada Lovelace",)
    folder = submit(packed(authors=authors), tmp_path / "subs")[0].parent
    forged = packed("random", name="Toy", version=10**6, authors=authors)
    with pytest.raises(
        ValueError, match="the maintainer of the board adds it, with submit --confirm-authors"
    ):
        submit(forged, folder)
    shutil.copyfile(forged, folder / "Toy-v1000000.zip")
    (board,) = [board for board in build(folder, tmp_path / "site").boards if board.suite == "toys"]
    assert [place.standing.title for place in board.ranking] == ["toy-v1"]
    assert "has the name of toy-v1" in board.unranked["Toy-v1000000"]
    newer = Forgery(theft)
    newer.claims["entry"] |= {"name": "toy", "version": 2, "authors": authors}
    # The owner is not locked out.
    submit(newer.write(tmp_path / "toy-v2.zip"), folder, confirm_authors=True)
    assert [arrival.confirmed for arrival in read_log(folder)] == [False, False, True]
    built = build(folder, tmp_path / "site")
    unranked = {entry.title: entry.unranked for entry in built.entries}
    assert unranked.pop("Toy-v1000000", "").startswith("has the name of toy-v1")
    assert unranked == {"toy-v1": "superseded by toy-v2", "toy-v2": None}


def test_typing_an_authors_name_does_not_make_a_copied_task_ones_own(
    packed: Callable[..., Path], shelf: Path, tmp_path: Path
):
    """An entry under another name that names the victim's authors is still another entry."""
    folder = submit(packed(authors=("Ada Lovelace",)), tmp_path / "subs")[0].parent
    if not (shelf / "six").exists():
        run_agents(shelf / "six", "random", "toys", 6)
    pack(
        shelf / "six",
        Entry(name="own", agent="random", authors=("Ada Lovelace",)),
        tmp_path / "own.zip",
    )
    mixed, victim = Forgery(tmp_path / "own.zip"), Forgery(packed())
    for kind in ("episodes", "actions"):
        mixed.put(kind, [*victim.groups(kind, WALK), mixed.groups(kind, WALK)[5]], WALK)
    mixed.task(WALK)["cells"][:5] = victim.task(WALK)["cells"][:5]
    mixed.settle()
    shutil.copy(mixed.write(tmp_path / "own-v1.zip"), folder)
    (copy,) = [
        entry for entry in build(folder, tmp_path / "site").entries if entry.title == "own-v1"
    ]
    assert copy.copied[WALK][0] == "toy-v1"


def test_a_new_version_may_keep_most_of_an_old_one(
    packed: Callable[..., Path], theft: Path, tmp_path: Path
):
    folder = submit(packed(authors=("Ada",)), tmp_path / "subs")[0].parent
    more = Forgery(theft)
    more.claims["entry"] |= {"name": "toy", "version": 2, "authors": ["Ada", "Grace"]}
    submit(more.write(tmp_path / "more.zip"), folder, confirm_authors=True)
    built = build(folder, tmp_path / "site")
    assert {e.title: e.unranked for e in built.entries} == {
        "toy-v1": "superseded by toy-v2",
        "toy-v2": None,
    }


def test_an_archive_that_was_changed_after_it_arrived_is_refused(
    packed: Callable[..., Path], tmp_path: Path
):
    place, _ = submit(packed(), tmp_path / "subs")
    shutil.copy(packed(description="better"), place)
    assert (
        "It is not the file that arrived"
        in build(place.parent, tmp_path / "site").refused["toy-v1.zip"][0]
    )
    submit(packed("random"), place.parent)  # which must not log the changed file
    assert (
        "It is not the file that arrived"
        in build(place.parent, tmp_path / "site").refused["toy-v1.zip"][0]
    )


# -- build -----------------------------------------------------------------------------------------


@pytest.fixture
def submissions(packed: Callable[..., Path], shelf: Path, tmp_path: Path) -> Path:
    """Two entries with the whole suite, an older version, a partial one, a copy and a lie."""
    folder = tmp_path / "submissions"
    links = ("https://a.org/?x=1&y=2",)
    submit(
        packed("toy", authors=("Ada Lovelace", HOSTILE), description=HOSTILE, links=links), folder
    )
    submit(packed("random", name="dice", version=2), folder)
    older = Forgery(packed("random", name="dice"))
    older.claims["tasks"] = [older.task(WALK)]
    older.claims["created"] = "2020-01-01T00:00:00Z"
    for kind in ("episodes", "actions"):
        del older.members[older.member(kind, DRIFT)]
    older.settle()
    older.write(folder / "dice-v1.zip")
    if not (shelf / "other").exists():
        run_agents(shelf / "other", "toy-host", WALK, 5)
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
    assert {entry.title for entry in site.entries} == {
        "toy-v1",
        "twin-v1",
        "dice-v1",
        "dice-v2",
        "part-v1",
    }
    (board,) = [board for board in site.boards if board.suite == "toys"]
    assert [(place.rank, place.standing.title) for place in board.ranking] == [
        (1, "toy-v1"),
        (2, "dice-v2"),
    ]
    for place in board.ranking:
        cells = [cell.score for cell in place.standing.verdict.cells]
        assert place.summary.iqm.point == pytest.approx(trim_mean(cells, 0.25), rel=1e-12)
        assert place.summary.iqm.low <= place.summary.iqm.point <= place.summary.iqm.high
    assert board.unranked == {
        "dice-v1": "superseded by dice-v2",
        "part-v1": "covers 1 of 2 tasks; ToyDrift-v0 missing",
        "twin-v1": (
            "takes the same actions as toy-v1, which arrived earlier, at every step of 500 of 500 "
            "episodes"
        ),
    }
    results = json.loads((folder / "results.json").read_text())
    (stored_board,) = [b for b in results["boards"] if b["suite"] == "toys"]
    assert [row["entry"] for row in stored_board["ranking"]] == ["toy-v1", "dice-v2"]
    assert stored_board["ranking"][0]["iqm"][0] == board.ranking[0].summary.iqm.point


def test_success_rates_have_bounds_over_seeds(built: tuple[Site, Path]):
    """On pages and in results.json.

    Equal seeds have bounds, too, which are no knowledge of a rate of 0 % or 100 %.
    """
    site, folder = built
    entry = next(entry for entry in site.entries if entry.title == "toy-v1")
    results = json.loads((folder / "results.json").read_text())
    (exported,) = [each["success"] for each in results["entries"] if each["title"] == "toy-v1"]
    board = (folder / "boards" / "toys-smoke.html").read_text()
    page = (folder / "entries" / "toy-v1.html").read_text()
    for task, rate in entry.success.items():
        rates = [cell.success_rate for cell in entry.verdict.cells if cell.task == task]
        assert rate.point == pytest.approx(np.mean(rates))
        assert 0 <= rate.low <= rate.point <= rate.high <= 1
        assert rate.low < rate.high
        assert exported[task] == [rate.point, rate.low, rate.high]
        ends = f"<small>[{rate.low:.0%}, {rate.high:.0%}]</small>"
        assert f"{rate.point:.0%}<br>{ends}" in page
        assert f"success {rate.point:.0%} {ends}" in board


def test_an_entry_that_violates_a_constraint_ranks_below_one_that_keeps_it(
    packed: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    submit(packed("random"), folder)
    limit = registry.card("ToyDrift-v0").constraint
    assert limit
    for max_cost, order in ((10.0, ["toy-v1", "random-v1"]), (6.0, ["random-v1", "toy-v1"])):
        monkeypatch.setitem(vars(limit), "limit", max_cost)
        (board,) = [
            board for board in build(folder, tmp_path / "site").boards if board.suite == "toys"
        ]
        assert [(place.rank, place.standing.title) for place in board.ranking] == [
            *enumerate(order, 1)
        ]
        toy = next(place for place in board.ranking if place.standing.title == "toy-v1")
        cells = [cell for cell in toy.standing.verdict.cells if cell.task == DRIFT]
        assert [card.id for card in toy.violated] == [DRIFT] * (max_cost == 6.0)
        scores = [0 if cell.mean_cost > max_cost else cell.score for cell in cells]
        assert toy.standing.constrained[DRIFT] == scores
        assert toy.constrained.point == pytest.approx(
            trim_mean([*toy.standing.verdict.scores[WALK], *scores], 0.25)
        )
        page = (tmp_path / "site" / "boards" / f"{board.name}.html").read_text()
        assert page.count(">violates ToyDrift-v0</span>") == (max_cost == 6.0)
        entry = " ".join((tmp_path / "site" / "entries" / "toy-v1.html").read_text().split())
        assert ("It violates the constraint of ToyDrift-v0" in entry) == (max_cost == 6.0)
        (row,) = [
            row
            for each in json.loads((tmp_path / "site" / "results.json").read_text())["boards"]
            for row in each["ranking"]
            if (each["suite"], row["entry"]) == ("toys", "toy-v1")
        ]
        assert (row["violated"], row["constrained_iqm"][0]) == (
            [DRIFT] * (max_cost == 6.0),
            toy.constrained.point,
        )


def test_what_does_not_stand_up_is_named_and_in_no_ranking(built: tuple[Site, Path]):
    site, folder = built
    assert set(site.refused) == {"liar-v1.zip", "<img src=x>.zip", "other-name.zip"}
    assert "the return is claimed to be 6.0" in site.refused["liar-v1.zip"][0]
    assert site.refused["other-name.zip"] == (
        "It is the archive of misnamed-v1, so its name must be misnamed-v1.zip.",
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
        assert not {tag for tag, _ in page.tags} & {
            "script",
            "img",
            "iframe",
            "object",
            "embed",
            "form",
            "base",
        }
        assert "url(" not in path.read_text()
        assert "@import" not in path.read_text()
        for tag, attributes in page.tags:
            assert not [
                name
                for name in attributes
                if name.startswith("on") or name in ("src", "srcdoc", "style")
            ]
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


def test_building_again_removes_what_is_gone_and_touches_nothing_else(
    submissions: Path, tmp_path: Path
):
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
    assert not list(site.rglob(".rlsuite-*"))


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_build_that_fails_leaves_a_site_or_nothing(
    packed: Callable[..., Path], after: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The first build breaks off while files are written aside, or while they are moved in."""
    folder, site = submit(packed(), tmp_path / "subs")[0].parent, tmp_path / "site"
    build(folder, tmp_path / "other")  # its verdict is kept, or this is a checkout being edited
    calls, move = [], Path.replace

    def breaks_off(path: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) > after:
            full()
        return move(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", breaks_off)
        if after == 0:
            patch.setattr(Path, "write_text", full)
        with pytest.raises(CannotWrite, match=r"Cannot write the site .*: No space left on device"):
            build(folder, site)
    if after == 0:
        assert list(site.iterdir()) == []
    assert not list(site.glob(".*"))
    assert len(build(folder, site).entries) == 1
    assert (site / "index.html").exists()


def test_what_a_killed_build_left_is_cleared_away(packed: Callable[..., Path], tmp_path: Path):
    folder, site = submit(packed(), tmp_path / "subs")[0].parent, tmp_path / "site"
    for left in (folder, site, tmp_path / "cache" / "rlbench_suite"):
        (left / ".rlsuite-killed").mkdir(parents=True)
        (left / ".rlsuite-killed" / "archive.zip").write_text("half")
    submit(packed("random"), folder)
    build(folder, site)
    assert not list(tmp_path.rglob(".rlsuite-*"))


def test_a_rank_needs_five_seeds(honest: Path, packed: Callable[..., Path], tmp_path: Path):
    folder = submit(honest, tmp_path / "subs")[0].parent
    reason = "has 2 seeds a task; a rank needs 5"
    assert build(folder, tmp_path / "site").boards == []
    assert reason in (tmp_path / "site" / "index.html").read_text()
    submit(packed("random"), folder)
    (board,) = [board for board in build(folder, tmp_path / "site").boards if board.suite == "toys"]
    assert [place.standing.title for place in board.ranking] == ["random-v1"]
    assert board.unranked == {"toy-v1": reason}
    for page in ("index.html", "boards/toys-smoke.html", "entries/toy-v1.html"):
        assert reason in (tmp_path / "site" / page).read_text()


def test_training_is_shown_in_every_table_and_unequal_training_is_a_warning(
    packed: Callable[..., Path], tmp_path: Path
):
    folder = submit(packed(), tmp_path / "subs")[0].parent
    submit(packed("random"), folder)
    site = build(folder, tmp_path / "site")
    (board,) = [board for board in site.boards if board.suite == "toys"]
    assert board.unequal == {}  # who does not train has no budget
    longer = Forgery(packed("random", name="longer"))
    for claim in longer.claims["tasks"]:
        for cell in claim["cells"]:
            cell |= {
                "training_steps": 3000 if claim["task"] == WALK else 1000,
                "train_seconds": 123.4,
            }
    longer.write(folder / "longer-v1.zip")
    (folder / "random-v1.zip").unlink()  # it has the same actions
    site = build(folder, tmp_path / "site")
    (board,) = [board for board in site.boards if board.suite == "toys"]
    assert board.unequal == {WALK: (1000, 3000)}
    text = {
        name: Elements((tmp_path / "site" / name).read_text()).text
        for name in ("index.html", "boards/toys-smoke.html", "entries/longer-v1.html")
    }
    for page in text.values():
        assert page.count("training steps a seed") == page.count("training time a seed") >= 1
        assert "2k" in page  # the mean of two tasks
        assert "123.4 s" in page
        assert "times as long" not in page
    assert "claim different numbers of training steps" in text["index.html"]
    assert 'class="badge no"' not in (tmp_path / "site" / "index.html").read_text()
    assert "3k steps, 123.4 s" in text["boards/toys-smoke.html"]
    results = json.loads((tmp_path / "site" / "results.json").read_text())
    trained = {entry["title"]: entry["training"][WALK] for entry in results["entries"]}
    assert trained == {
        "toy-v1": {"steps": 1000, "seconds": 2.0},
        "longer-v1": {"steps": 3000, "seconds": 123.4},
    }


def test_the_first_page_says_what_replay_does_not_prove(tmp_path: Path):
    (tmp_path / "none").mkdir()
    build(tmp_path / "none", tmp_path / "site")
    text = Elements((tmp_path / "site" / "index.html").read_text()).text
    section = text.split("What replay does not prove")[1]
    for words in (
        "trained at all",
        "steps, seconds",
        "search\nfor good actions on the evaluation seeds",
        "who made",
    ):
        assert words in section


def test_a_directory_that_is_no_site_is_left_alone(submissions: Path, tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "index.html").write_text("mine")
    with pytest.raises(ValueError, match="is not a leaderboard site"):
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
    here = Computer.this()
    revision = {"git_revision": "a" * 40}
    monkeypatch.setattr(sites.Computer, "this", lambda: here.model_copy(update=revision))
    judged: list[Path] = []

    def counting(path: Path, **keywords: object) -> object:
        judged.append(path)
        return verify(path)

    monkeypatch.setattr(sites, "judge", counting)
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


# -- a real browser --------------------------------------------------------------------------------


def chromium(profile: Path, *arguments: str) -> str:
    quiet = ("disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
             "disable-component-update", "disable-sync", "hide-scrollbars", "no-sandbox",
             "headless")  # fmt: skip
    command = [
        str(CHROMIUM),
        *(f"--{flag}" for flag in quiet),
        f"--user-data-dir={profile}",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
def test_pages_in_a_browser(built: tuple[Site, Path], tmp_path: Path):
    _, folder = built
    dom = chromium(
        tmp_path / "profile", "--dump-dom", (folder / "entries" / "toy-v1.html").as_uri()
    )
    assert "<title>toy-v1</title>" in dom  # the script in the author's name did not run
    assert "<script" not in dom
    assert "<img" not in dom
    assert "to the bit" in dom
    shot = tmp_path / "board.png"
    address = (folder / "boards" / "toys-smoke.html").as_uri()
    chromium(tmp_path / "profile", "--window-size=1240,1400", f"--screenshot={shot}", address)
    with Image.open(shot) as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or []}
    # The first series, light or dark.
    assert (0x1F, 0x6F, 0xEB) in colours or (0x6E, 0xA8, 0xFE) in colours
    assert len(colours) > 50


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")
def test_no_table_is_wider_than_a_page_of_1280_pixels(built: tuple[Site, Path], tmp_path: Path):
    _, folder = built
    script = """<script>document.title = "wide=" + [...document.querySelectorAll(".scroll")].filter(
        table => table.scrollWidth > table.clientWidth + 1).length + " tables=" +
        document.querySelectorAll(".scroll").length;</script>"""
    page = (folder / "boards" / "toys-smoke.html").read_text()
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    # A long name and the remarks that widen a row, as real entries have them.
    page = page.replace("toy-v1<", "recurrent-ppo-with-attention-v12<").replace(
        "</body>", f"{script}</body>"
    )
    (tmp_path / "board.html").write_text(page)
    address = (tmp_path / "board.html").as_uri()
    dom = chromium(
        tmp_path / "profile",
        "--window-size=1280,1600",
        "--virtual-time-budget=3000",
        "--dump-dom",
        address,
    )
    title = re.search(r"<title>(.*?)</title>", dom)
    assert title
    assert re.fullmatch(r"wide=0 tables=[1-9]\d*", title[1])
