"""Pages of verified entries: static, each in one file, nothing from the network and no script.

All text of an archive passes through ``escape``; addresses were checked to be http or https by the schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import rlbench_suite
from rlbench_suite.evaluation import chart
from rlbench_suite.evaluation.statistics import Estimate, iqm
from rlbench_suite.registry import cards

from .boards import LEAST_SEEDS, Board, Standing, Training
from .verify import Verdict

MOST_COLUMNS = 12
_COLOURED = chart.COLOURS - 1
"""Entries with a colour of their own; the last colour, grey, is for the rest."""


def index_page(boards: Sequence[Board], entries: Sequence[Standing], refused: Mapping[str, Sequence[str]]) -> str:
    """The first page: the widest ranking, all rankings, all entries, and what was refused."""
    main = max(boards, key=lambda board: (len(board.places) > 1, len(board.tasks)), default=None)
    cells = [cell for entry in entries for cell in entry.verdict.cells]
    figures = {
        "entries": f"{len(entries):,}",
        "tasks": f"{len({cell.task for cell in cells}):,}",
        "runs": f"{len(cells):,}",
        "episodes replayed": f"{sum(cell.episodes for cell in cells):,}",
    }
    if main:
        heading = f'<h2><a href="boards/{main.name}.html">{escape(_named(main))}</a></h2>'
        top = f'{heading}<p class="soft">{_what(main)}</p>{_ranking(main, "")}{_remarks(_unequal(main))}'
    else:
        top = f'<p class="remark">No entry covers a whole suite yet with {LEAST_SEEDS} seeds a task.</p>'
    return _page(
        "Leaderboard",
        "index.html",
        tiles="".join(_tile(name, figure) for name, figure in figures.items()),
        main=top,
        boards="".join(_board_row(board) for board in boards),
        entries="".join(_entry_row(entry) for entry in sorted(entries, key=lambda e: e.title.lower())),
        refused=_refused(refused),
        least_seeds=str(LEAST_SEEDS),
    )


def board_page(board: Board) -> str:
    """A suite at a budget."""
    shown = board.places[:_COLOURED]
    profiles = [
        chart.Line(
            place.standing.title,
            place.summary.profile.taus,
            place.summary.profile.fraction,
            i,
            place.summary.profile.low,
            place.summary.profile.high,
        )
        for i, place in enumerate(shown)
    ]
    legend = [
        f'<span class="key"><i class="c{i}"></i>{escape(place.standing.title)}</span>' for i, place in enumerate(shown)
    ]
    if len(board.places) > _COLOURED:
        legend.append(f'<span class="soft">the first {_COLOURED} of {len(board.places)}</span>')
    columns = [place.standing.title for place in board.places[:MOST_COLUMNS]]
    unranked = "".join(
        f"<tr><th>{_entry_link(entry.title, '../')}</th>{_training_cells(_over_tasks(entry, board))}"
        f"<td>{entry.seeds}</td><td class='left wide'>{escape(board.unranked[entry.title])}</td></tr>"
        for entry in board.others
    )
    return _page(
        _named(board),
        "board.html",
        name=escape(_named(board)),
        what=_what(board),
        ranking=_ranking(board, "../"),
        remarks=_remarks([*_unequal(board), *_board_remarks(board)]),
        legend="".join(legend),
        profile=chart.lines(
            "Performance profile", profiles, x_label="score τ", y_label="fraction of runs above τ", width=1064
        ),
        columns="".join(f"<th>{_entry_link(title, '../')}</th>" for title in columns),
        tasks="".join(_task_row(board, card.id, columns) for card in board.tasks),
        unranked=f"<h2>Not ranked</h2><div class='scroll'><table><thead><tr><th>entry</th>{_TRAINING}<th>seeds</th>"
        f"<th class='left'>because it</th></tr></thead><tbody>{unranked}</tbody></table></div>"
        if unranked
        else "",
    )


def entry_page(entry: Standing, boards: Sequence[Board]) -> str:
    """One entry: what it scored, how it was checked, what it claims."""
    verdict, submission = entry.verdict, entry.submission
    said = submission.entry
    rows = [_entry_task(entry, task) for task in verdict.scores]
    beaten = sum(verdict_ == "yes" for _, verdict_ in rows)
    overall = iqm(verdict.scores)
    seeds = len(submission.tasks[0].cells)
    tiles = [
        _tile("IQM over its tasks", f"{overall.point:.2f}", _interval(overall) or "one seed, no interval"),
        _tile("beats random", f"{beaten} of {len(rows)}", "tasks, by the whole interval"),
        _tile("replayed", f"{sum(c.episodes for c in verdict.cells):,}", f"episodes, {seeds} seeds a task"),
    ]
    ranks = "".join(
        f'<tr><th><a href="../boards/{board.name}.html">{escape(board.suite)}</a></th>'
        f"<td>{len(board.tasks)}</td><td><b>{place.rank}</b> of {len(board.places)}</td>"
        f"<td>{place.summary.iqm.point:.3f} <small>{_interval(place.summary.iqm)}</small></td>"
        f"{_training_cells(_over_tasks(entry, board))}</tr>"
        for board in boards
        for place in board.places
        if place.standing.title == entry.title
    )
    checked = {
        "Result": f'<span class="badge yes">{_manner(verdict)}</span>',
        "Replayed on": escape(f"{verdict.judge.cpu}, {verdict.judge.instruction_set}"),
        "With": escape(f"rlbench-suite {verdict.version}, jaxlib {verdict.judge.packages.get('jaxlib', '?')}"),
        "When": f"{verdict.judged:%Y-%m-%d %H:%M} UTC, in {verdict.seconds:.1f} s",
        "Archive": f'<a href="../archives/{entry.title}.zip">{entry.title}.zip</a>, {_size(verdict.size)}',
        "SHA-256": f"<code>{verdict.sha256}</code>",
    }
    devices = sorted({cell.device for claim in submission.tasks for cell in claim.cells})
    claims: dict[str, Any] = {"Agent": said.agent, "Run ended": f"{submission.created:%Y-%m-%d %H:%M} UTC"}
    for i, machine in enumerate(submission.machines, start=1):
        number = f" {i}" if len(submission.machines) > 1 else ""
        claims[f"Processor{number}"] = f"{machine.cpu}, {machine.cores} cores"
        claims[f"Instructions{number}"] = machine.instruction_set
        claims[f"Platform{number}"] = f"{machine.platform}, Python {machine.python}"
        claims[f"Packages{number}"] = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
        claims[f"Revision{number}"] = machine.revision or "not a checkout"
    claims["Ran on"] = ", ".join(devices)
    claims["Made with"] = (
        f"rlbench-suite {submission.version}, protocol {submission.protocol}, {submission.budget} budget"
    )
    links = "".join(
        f'<a rel="nofollow noopener noreferrer" href="{escape(link)}">{escape(link)}</a>' for link in said.links
    )
    return _page(
        entry.title,
        "entry.html",
        name=escape(entry.title),
        byline=escape(", ".join(said.authors) or "no authors named")
        + f" · {submission.day} · {submission.budget} budget",
        description=f'<p class="description">{escape(said.description)}</p>' if said.description else "",
        links=f'<p class="links">{links}</p>' if links else "",
        tiles="".join(tiles),
        remarks=_remarks(_entry_remarks(entry, boards)),
        ranks=f'<h2>Rankings</h2><div class="scroll"><table><thead><tr><th>suite</th><th>tasks</th><th>rank</th>'
        f"<th>IQM</th>{_TRAINING}</tr></thead><tbody>{ranks}</tbody></table></div>"
        if ranks
        else "",
        verification=_facts(checked),
        tasks="".join(row for row, _ in rows),
        claims=_facts({name: escape(str(value)) for name, value in claims.items()}),
        hyperparameters="".join(_hyperparameters(entry)),
    )


# -- rankings ----------------------------------------------------------------------------------------------------------


def _ranking(board: Board, root: str) -> str:
    values = [v for p in board.places for v in (p.summary.iqm.point, p.summary.iqm.low, p.summary.iqm.high)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = max(min(0.0, *finite), _LEAST), min(max(1.0, *finite), _MOST)
    head = (
        f"<tr><th></th><th class='left'>entry</th><th>IQM</th><th>{_axis(low, high)}</th><th>mean</th><th>median</th>"
        f"<th>optimality gap</th><th>beats next</th><th>seeds</th>{_TRAINING}<th class='left'>replayed</th></tr>"
    )
    rows = []
    for i, place in enumerate(board.places):
        summary, standing = place.summary, place.standing
        seeds = sorted(set(summary.seeds.values()))
        over = f"{place.over_next.point:.2f} <small>{_interval(place.over_next)}</small>" if place.over_next else "–"
        authors = ", ".join(standing.submission.entry.authors) or standing.submission.entry.agent
        longer = board.longer(standing)
        warning = f'<span class="badge no">trained {longer:.3g} times as long</span>' if longer > 1 else ""
        rows.append(
            f'<tr class="{"first" if place.rank == 1 else ""}"><td class="rank">{place.rank}</td>'
            f'<td class="left">{_entry_link(standing.title, root)}<small>{escape(_cut(authors, 40))}</small>'
            f"{warning}</td>"
            f"<td><b>{summary.iqm.point:.3f}</b> <small>{_interval(summary.iqm)}</small></td>"
            f"<td>{_bar(summary.iqm, low, high, min(i, _COLOURED))}</td>"
            f"<td>{summary.mean.point:.3f}</td><td>{summary.median.point:.3f}</td>"
            f"<td>{summary.optimality_gap.point:.3f}</td><td>{over}</td>"
            f"<td>{' to '.join(map(str, (seeds[0], seeds[-1]) if len(seeds) > 1 else seeds))}</td>"
            f"{_training_cells(_over_tasks(standing, board))}"
            f'<td class="left"><span class="badge yes">{_manner(standing.verdict)}</span></td></tr>'
        )
    return f'<div class="scroll ranking"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


_WIDTH, _MARGIN = 240, 12
_LEAST, _MOST = -0.5, 3.0
"""Ends of the widest scale; what lies beyond is drawn at the edge: one odd entry must not squeeze the others."""


def _place_on(low: float, high: float, value: float) -> float:
    return _MARGIN + (min(max(value, low), high) - low) / (high - low) * (_WIDTH - 2 * _MARGIN)


def _axis(low: float, high: float) -> str:
    """Where 0 and 1 are, above the bars."""
    parts = []
    for value, text in ((0, "random 0"), (1, "reference 1")):
        x = _place_on(low, high, value)
        look = "start" if x < 60 else "end" if x > _WIDTH - 60 else "middle"  # words stay inside the picture
        parts.append(f'<text class="{look} small" x="{x:.1f}" y="15">{text}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} 20" aria-hidden="true">{"".join(parts)}</svg>'


def _bar(estimate: Estimate, low: float, high: float, colour: int) -> str:
    """A point with its interval, on the scale of the ranking."""
    grid = "".join(
        f'<line class="grid anchor" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="30"/>'
        for x in (_place_on(low, high, 0), _place_on(low, high, 1))
    )
    said = f"IQM {estimate.point:.3f}"
    whisker = ""
    if math.isfinite(estimate.low):
        said += f", 95 % interval {estimate.low:.3f} to {estimate.high:.3f}"
        ends = (_place_on(low, high, end) for end in (estimate.low, estimate.high))
        whisker = '<line class="whisker c{}" x1="{:.1f}" x2="{:.1f}" y1="15" y2="15"/>'.format(colour, *ends)
    x = _place_on(low, high, estimate.point)
    return (
        f'<svg viewBox="0 0 {_WIDTH} 30" role="img" aria-label="{said}">{grid}{whisker}'
        f'<circle class="c{colour}" cx="{x:.1f}" cy="15" r="5"><title>{said}</title></circle></svg>'
    )


def _task_row(board: Board, task: str, columns: Sequence[str]) -> str:
    card = cards()[task]
    shown = [place.standing for place in board.places[: len(columns)]]
    best = max(standing.by_task[task].point for standing in shown)
    cells = "".join(
        f"<td>{_emphasised(f'{e.point:.3f}', e.point == best)} <small>{_interval(e)}</small>"
        f"<br><small>{_training(standing.training[task])}</small></td>"
        for standing in shown
        for e in (standing.by_task[task],)
    )
    warning = ' <span class="badge no">unequal training</span>' if task in board.unequal else ""
    return f'<tr><th title="{escape(card.summary)}">{escape(card.name)}{warning}</th>{cells}</tr>'


def _unequal(board: Board) -> Iterable[str]:
    if board.unequal:
        names = [cards()[task].name for task in board.unequal]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        most = max(high / low for low, high in board.unequal.values())
        yield (
            f"Warning: ranked entries trained for unequal numbers of steps on {len(names)} of {len(board.tasks)} tasks "
            f"({', '.join(names[:4])}{more}), up to {most:.3g} times as many. "
            "A better score there may be a longer training."
        )


def _board_remarks(board: Board) -> Iterable[str]:
    counts = {count for place in board.places for count in place.summary.seeds.values()}
    if len(counts) > 1:
        yield "Entries have different numbers of seeds: the more seeds, the narrower and the more honest an interval."
    classes = sorted({m.instruction_set for place in board.places for m in place.standing.submission.machines})
    if len(classes) > 1:
        yield f"Runs come from machines of several instruction sets ({'; '.join(classes)})."
    if within := [place.standing.title for place in board.places if not place.standing.verdict.exact]:
        yield (
            f"Replayed on another class of machine than the run's, so compared within each task's tolerance and not to "
            f"the bit: {', '.join(within)}."
        )
    if len(board.places) > MOST_COLUMNS:
        yield f"The table of tasks shows the first {MOST_COLUMNS} entries; results.json has all."


def _named(board: Board) -> str:
    return f"Suite {board.suite}, {board.budget} budget"


def _what(board: Board) -> str:
    count = len(board.tasks)
    names = ", ".join(escape(card.name) for card in board.tasks[:12]) + (", …" if count > 12 else "")
    return f"{count} task{'s' * (count != 1)}: {names}."


# -- rows of the first page --------------------------------------------------------------------------------------------


def _board_row(board: Board) -> str:
    first = board.places[0]
    return (
        f'<tr><th><a href="boards/{board.name}.html">{escape(board.suite)}</a></th><td class="left">{board.budget}</td>'
        f"<td>{len(board.tasks)}</td><td>{len(board.places)}</td>"
        f'<td class="left">{_entry_link(first.standing.title, "")}</td>'
        f"<td><b>{first.summary.iqm.point:.3f}</b> <small>{_interval(first.summary.iqm)}</small></td>"
        f"{_training_cells(_over_tasks(first.standing, board))}</tr>"
    )


def _entry_row(entry: Standing) -> str:
    said = entry.submission
    note = f"<br><small>not ranked: {escape(entry.unranked)}</small>" if entry.unranked else ""
    return (
        f'<tr><th>{_entry_link(entry.title, "")}{note}</th><td class="left">{escape(said.entry.agent)}</td>'
        f'<td class="left">{escape(_cut(", ".join(said.entry.authors) or "–", 40))}</td>'
        f'<td class="left">{said.budget}</td><td>{len(said.tasks)}</td><td>{entry.seeds}</td>'
        f"{_training_cells(_mean_training(entry, entry.training))}"
        f'<td class="left"><span class="badge yes">{_manner(entry.verdict)}</span></td>'
        f'<td class="left">{said.day}</td></tr>'
    )


def _refused(refused: Mapping[str, Sequence[str]]) -> str:
    if not refused:
        return ""
    rows = ""
    for name, problems in refused.items():
        more = f" And {len(problems) - 3} more." if len(problems) > 3 else ""
        said = escape(" ".join(problems[:3]) + more)
        rows += f"<tr><th>{escape(_cut(name, 60))}</th><td class='left wide'>{said}</td></tr>"
    return (
        "<h2>Refused</h2><p>Archives that do not stand up to replay are in no ranking.</p>"
        f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
    )


# -- an entry ----------------------------------------------------------------------------------------------------------


def _entry_task(entry: Standing, task: str) -> tuple[str, str]:
    """The row of a task, and whether its interval lies above the random player's: yes, no or unclear."""
    card = cards()[task]
    cells = [cell for cell in entry.verdict.cells if cell.task == task]
    score = entry.by_task[task]
    random, reference = card.scores()["random"], card.scores()["reference"]
    low, high = (card.normalise(end) for end in (random.low, random.high))
    beats = "yes" if score.low > high else "no" if score.high < low else "unclear"

    def over(name: str) -> float:
        return sum(getattr(cell, name) for cell in cells) / len(cells)

    return (
        f'<tr><th title="{escape(card.summary)}">{escape(card.name)}</th>'
        f"<td>{random.mean:.4g}</td><td>{reference.mean:.4g}</td><td>{over('mean_return'):.4g}</td>"
        f"<td><b>{score.point:.3f}</b> <small>{_interval(score)}</small></td>"
        f'<td class="{beats}">{beats}</td><td>{over("success_rate"):.0%}</td><td>{over("mean_length"):.1f}</td>'
        f"<td>{len(cells)}</td>{_training_cells(entry.training[task])}</tr>"
    ), beats


def _entry_remarks(entry: Standing, boards: Sequence[Board]) -> Iterable[str]:
    if entry.unranked:
        yield f"Not ranked: it {entry.unranked if not entry.superseded_by else f'is {entry.unranked}'}."
    for task, (title, same) in entry.copied.items():
        yield f"It plays the episodes of {title}, which arrived first, on {cards()[task].name} ({same:,} equal)."
    for title, same in entry.shared.items():
        if title != entry.copy_of:
            yield f"{same:,} of its episodes take the same actions, step for step, as those of {title}."
    for board in boards:
        longer = board.longer(entry) if any(place.standing.title == entry.title for place in board.places) else 1.0
        if longer > 1:
            yield (
                f"Warning: on a task of {_named(board).lower()} it trained {longer:.3g} times as long, in steps, "
                "as the entry that trained least."
            )
    if not entry.verdict.exact:
        yield (
            "Replayed on another class of machine than the run's: returns were compared within each task's tolerance, "
            "not to the bit."
        )


def _hyperparameters(entry: Standing) -> Iterable[str]:
    by_values: dict[str, list[str]] = {}
    for claim in entry.submission.tasks:
        text = json.dumps(claim.hyperparameters, indent=1, ensure_ascii=False)
        by_values.setdefault(text, []).append(cards()[claim.task].name)
    for text, names in by_values.items():
        if text == "{}":
            yield f'<p class="soft">None on {escape(", ".join(names))}.</p>'
        else:
            yield f"<details><summary>{escape(', '.join(names))}</summary><pre>{escape(text)}</pre></details>"


# -- what training took -----------------------------------------------------------------------------------------------

_TRAINING = "<th>training steps a seed</th><th>training time a seed</th>"


def _over_tasks(entry: Standing, board: Board) -> Training:
    return _mean_training(entry, [card.id for card in board.tasks if card.id in entry.training])


def _mean_training(entry: Standing, tasks: Iterable[str]) -> Training:
    """Means over tasks."""
    each = [entry.training[task] for task in tasks]
    return Training(sum(t.steps for t in each) / len(each), sum(t.seconds for t in each) / len(each))


def _training_cells(training: Training) -> str:
    return f"<td>{_steps(training)}</td><td>{_seconds(training)}</td>"


def _training(training: Training) -> str:
    return f"{_steps(training)} steps, {_seconds(training)}" if training.steps or training.seconds else "no training"


def _steps(training: Training) -> str:
    return chart.number(training.steps) if training.steps else "–"


def _seconds(training: Training) -> str:
    return f"{training.seconds:,.1f} s" if training.seconds else "–"


# -- small parts -------------------------------------------------------------------------------------------------------


def _page(title: str, template: str, **parts: str) -> str:
    folder = files("rlbench_suite.leaderboard")
    report = files("rlbench_suite.evaluation").joinpath("report.html").read_text()
    body = Template(folder.joinpath(template).read_text()).substitute(parts)
    return Template(folder.joinpath("page.html").read_text()).substitute(
        title=escape(title),
        style=report.split("<style>")[1].split("</style>")[0],  # the pages of one house look alike
        body=body,
        version=escape(rlbench_suite.__version__),
    )


def _remarks(sentences: Iterable[str]) -> str:
    return "".join(f'<p class="remark">{escape(sentence)}</p>' for sentence in sentences)


def _tile(name: str, figure: str, note: str = "") -> str:
    return f'<div class="tile"><h3>{name}</h3><p class="figure">{figure}</p><p>{note}</p></div>'


def _entry_link(title: str, root: str) -> str:
    return f'<a href="{root}entries/{escape(title)}.html">{escape(title)}</a>'


def _facts(facts: Mapping[str, str]) -> str:
    """``facts`` are HTML already."""
    return "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in facts.items())


def _manner(verdict: Verdict) -> str:
    return "to the bit" if verdict.exact else "within tolerance"


def _interval(estimate: Estimate) -> str:
    return f"[{estimate.low:.2f}, {estimate.high:.2f}]" if math.isfinite(estimate.low) else ""


def _emphasised(text: str, strong: bool) -> str:
    return f"<b>{text}</b>" if strong else text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
