"""Claims of the pages about the registry, the commands and each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from threading import Semaphore

import pytest

from rlbench_suite.adapters.text import SCALE
from rlbench_suite.cli.run_commands.query import query
from rlbench_suite.core import registry
from rlbench_suite.evaluation.analysis.query import TABLES
from rlbench_suite.language.openenv import Connection, Offer

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOP_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP_PAGES, *sorted(DOCS.rglob("*.md")), ROOT / "leaderboard" / "SCHEMA.md"]
FOLDERS = (
    "rlbench_suite",
    "envs",
    "baselines",
    "datasets",
    "leaderboard",
    "benchmarks",
    "examples",
    "docs",
)
SUFFIXES = (".py", ".html", ".yaml")
PACKAGE = [
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*") if path.suffix in SUFFIXES
]

OLD_ZERO = re.compile(
    r"random play 0\b|\b0 (?:is )?(?:for )?(?:the )?random\b(?! play was)|(?<!When )random play is "
    r"0\b|random play (?:scores|earns|gets) 0\b|return - random|reference - random|0: random|Its "
    r"normalised score is 0\.|own random and reference players"
)
"""Phrases of the time when 0 was random play. Sentences in the past tense may say so."""

ID = re.compile(r"\b([A-Z]\w*-v\d+)\b")


def words(path: Path) -> str:
    """Return the text of a file with single spaces."""
    return " ".join(path.read_text().split())


def section(page: str, heading: str) -> str:
    """Return the text below a heading of a page, up to the next heading."""
    text = (DOCS / page).read_text()
    return re.search(
        rf"^#+ {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )[1]


def table_rows(text: str) -> list[list[str]]:
    """Return the cells of each line of the tables of a text, header included."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith("| ---")
    ]


def known_names() -> set[str]:
    """Return the names of all listed ids."""
    return {card.name for card in registry.cards().values()}


@pytest.mark.parametrize(
    "phrase",
    [
        "Score: 1.00 (random play 0, reference player 1)",
        "0 random, 1 reference",
        "Scores are 0 for random play",
        "(return - random) / (reference - random)",
        "normalised so that random play is 0",
        "0 is random play",
    ],
)
def test_the_old_zero_is_recognised(phrase: str) -> None:
    assert OLD_ZERO.search(phrase)


def test_no_text_has_the_old_zero() -> None:
    assert not OLD_ZERO.search(
        "0 is the better of random play and doing nothing. When random play was 0, ..."
    )
    stale = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*PAGES, *PACKAGE]
        for match in OLD_ZERO.finditer(words(path))
    ]
    assert not stale


def test_transcripts_end_with_the_scale_of_the_text_view() -> None:
    ends = [
        end
        for page in PAGES
        for end in re.findall(r"^The episode is over: .*Score: .*$", page.read_text(), re.M)
    ]
    assert len(ends) > 2
    assert [end for end in ends if f"({SCALE})" not in end] == []


def test_the_count_of_tasks_on_which_ppo_beats_zero_is_that_of_the_table() -> None:
    text = section("audits/ppo.md", "PPO on words, tools and memories")
    scores = {
        row[0].strip("`"): row[5] for row in table_rows(text) if ID.fullmatch(row[0].strip("`"))
    }
    scored = {task: score for task, score in scores.items() if score != "not measured"}
    lows = {task: re.search(r"\[(-?[\d.]+),", score) for task, score in scored.items()}
    above = {task for task, low in lows.items() if low and float(low[1]) > 0}
    assert (
        f"PPO's interval lies above 0 on {len(above)} of the {len(scored)} ids with a score."
        in " ".join(text.split())
    )
    explained = {
        name for line in re.findall(r"^\* (.*?):", text, re.MULTILINE) for name in ID.findall(line)
    }
    assert explained == scores.keys() - above


def test_every_id_is_audited_or_listed_as_not_audited() -> None:
    results, unaudited = (DOCS / "audits" / "yardsticks.md").read_text().split("## Not audited yet")
    audit, look_ahead = results.split("## One step of look-ahead")
    audited = re.findall(r"^\| (\w+-v\d+) \|", audit, re.MULTILINE)
    listed = ID.findall(unaudited.replace("that of `Tomato-v0`", ""))
    assert sorted([*audited, *listed]) == sorted(known_names())
    assert set(re.findall(r"^\| (\w+-v\d+) \|", look_ahead, re.MULTILINE)) <= known_names()


def test_successes_of_references_in_the_audit_are_those_of_the_cards() -> None:
    audit = (
        (DOCS / "audits" / "yardsticks.md").read_text().partition("## One step of look-ahead")[0]
    )
    apart = []
    for task, *cells in table_rows(audit):
        if ID.fullmatch(task) and " / " in cells[4]:
            success = float(cells[4].split(" / ")[0])
            stored = registry.card(task).scores()["reference"].success
            tolerance = 4 * (stored * (1 - stored) / 256) ** 0.5 + 0.01
            if abs(success - stored) > tolerance:
                apart.append(f"{task}: {success}, measured {stored}")
    assert not apart


def test_the_table_of_limits_has_every_constraint() -> None:
    limits: dict[str, float] = {}
    for tasks, _, limit in table_rows(section("audits/constraints.md", "Limits"))[1:]:
        number = re.match(r"[\d.]+", limit)
        limits |= {task: float(number[0]) for task in ID.findall(tasks) if number}
    constrained = {card.name: card for card in registry.cards().values() if card.constraint}
    drives = {name for name, card in constrained.items() if card.family == "motor"}
    assert {
        name: constrained[name].constraint.limit / constrained[name].horizon for name in drives
    } == pytest.approx(dict.fromkeys(drives, 0.02))
    assert limits == {
        name: card.constraint.limit for name, card in constrained.items() if name not in drives
    }


def test_hot_windings_are_named_in_the_table_of_limits() -> None:
    rows = table_rows(section("audits/constraints.md", "Limits"))
    listed_tasks = {
        task for tasks, cost, _ in rows if "winding" in cost for task in ID.findall(tasks)
    }
    assert listed_tasks == {
        c.name
        for c in registry.cards().values()
        if c.constraint and "winding" in c.constraint.counts
    }


def test_ceilings_of_memory_tasks_are_on_the_present_scale() -> None:
    rows = table_rows(section("audits/ppo.md", "Memories of PPO compared"))[1:]
    ceilings = {ID.search(row[0])[1]: row[1] for row in rows}
    assert len(ceilings) == len(registry.resolve_suite("memory"))
    for name, ceiling in ceilings.items():
        card = registry.card(name)
        memoryless_return = card.build().memoryless_ceiling
        assert bool(ceiling) == (memoryless_return is not None), name
        assert memoryless_return is None or card.normalise(memoryless_return) == pytest.approx(
            float(ceiling), abs=0.0051
        ), name


OWN_TASK_PAGES = ("CONTRIBUTING.md", "your_task.md")
"""Pages whose example is a task that does not exist yet."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in OWN_TASK_PAGES], ids=lambda page: page.stem
)
def test_commands_name_ids_that_exist(page: Path) -> None:
    scripts = re.findall(r"^ *```bash\n(.*?)```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert {name for script in scripts for name in ID.findall(script)} <= known_names()


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_of_a_clone(page: Path) -> None:
    dead = []
    for link in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    ):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_every_extra_is_listed() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    rows = table_rows((DOCS / "index.md").read_text())
    listed = {name for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    assert extras.keys() <= listed


def test_the_tasks_of_the_suite_all_are_counted() -> None:
    count = len(registry.suites()["all"])
    assert (
        f"The suite `all` has **{count} tasks**. The other ids, of {len(registry.cards())} in all,"
        in words(ROOT / "README.md")
    )
    for page in ("index.md", "concepts.md"):
        assert f"The suite `all` has {count} tasks" in words(DOCS / page)


def test_pages_other_than_the_first_install_extras_by_name() -> None:
    """The start page explains both forms of installation.

    A page that needs a clone, as that on the tests of peers does, may use `-e`.
    """
    clones = {"README.md", "CONTRIBUTING.md", "index.md", "other_libraries.md"}
    assert [
        page.name
        for page in PAGES
        if "pip install -e" in page.read_text() and page.name not in clones
    ] == []


def test_the_help_of_query_and_its_page_name_all_tables() -> None:
    page = section("comparing.md", "Ask SQL")
    for table in TABLES:
        assert f"`{table}`" in query.__doc__
        assert f"`{table}`" in page


def test_all_conditions_of_drives_are_listed() -> None:
    conditions = {
        card.settings.get("conditions")
        for card in registry.cards().values()
        if card.family == "motor"
    }
    text = section("families/drives.md", "Harder than gym-electric-motor")
    assert {
        condition for condition in conditions - {None, "ideal"} if f'"{condition}"' not in text
    } == set()


def test_frames_on_the_page_of_bridges_are_answered() -> None:
    page = (DOCS / "language_models" / "bridges.md").read_text()
    frames = re.findall(r'^\{"type".*$', page, re.MULTILINE)
    connection = Connection(Offer("Wordle-v0"), [], Semaphore(1))
    answers = [connection.answer(frame) for frame in frames]
    assert [answer["type"] for answer in answers] == ["observation", "observation"]
    assert "C R A N E" in answers[1]["data"]["observation"]["text"]
