"""Verdicts against SciPy's tests and against runs with known differences."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_runs import fail_cell, make_run, sitting
from scipy import stats

from rlbench_suite.evaluation.report import comparison
from rlbench_suite.evaluation.report.comparison import Verdict, verdicts
from rlbench_suite.evaluation.report.paired_cells import find_separate_pairs, gaps
from rlbench_suite.evaluation.report.run_selection import select_runs
from rlbench_suite.evaluation.report.verdict_remarks import remarks
from rlbench_suite.evaluation.runs.run import cells_by_agent, read_run, read_runs
from rlbench_suite.evaluation.statistics.permutation import holm, sign_flip_test
from rlbench_suite.evaluation.statistics.unseen_runs import ends_of_runs

TASKS = [f"rlsuite/Made{i}-v0" for i in range(6)]


def sample_scores(
    seed: int, seeds: int, *, better: float = 0.0, tasks: list[str] = TASKS
) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    return {task: (0.5 + better + rng.normal(0, 0.05, seeds)).tolist() for task in tasks}


def verdict_on(tmp_path: Path, x: dict[str, list[float]], y: dict[str, list[float]]) -> Verdict:
    (verdict,) = verdicts([read_run(make_run(tmp_path / "run", {"x": x, "y": y}))])
    return verdict


@pytest.mark.parametrize("seeds", [3, 5, 9])
def test_permutation_test_is_scipys(seeds: int):
    for seed in range(5):
        values = np.random.default_rng(seed).normal(0.3, 1, seeds)
        values[0] = round(values[0], 1)
        expected = stats.permutation_test(
            (values,),
            lambda x, axis: x.mean(axis),
            permutation_type="samples",
            n_resamples=np.inf,
            vectorized=True,
        )
        assert sign_flip_test({"task": values.tolist()}) == pytest.approx(
            expected.pvalue, abs=1e-12
        )
    assert sign_flip_test({"task": [1.0] * 5}) == 2 / 32
    assert sign_flip_test({"task": [0.0] * 5}) == 1.0


def test_permutation_test_over_tasks_weighs_tasks_equally():
    rng = np.random.default_rng(3)
    few = {"a": rng.normal(0.5, 1, 5).tolist(), "b": rng.normal(0.5, 1, 3).tolist()}
    signs = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    means = (signs[:, :5] * few["a"]).mean(1) + (signs[:, 5:] * few["b"]).mean(1)
    assert sign_flip_test(few) == np.mean(np.abs(means) >= abs(means[0]) - 1e-12)

    many = {task: rng.normal(0.12, 1, 40).tolist() for task in "abcd"}
    expected = stats.permutation_test(
        (np.concatenate(list(many.values())),), lambda x, axis: x.mean(axis),
        permutation_type="samples", n_resamples=20_000, vectorized=True,
        rng=np.random.default_rng(4),
    )  # fmt: skip
    assert 0.005 < expected.pvalue < 0.5
    # Both are random: 4 standard errors.
    assert sign_flip_test(many) == pytest.approx(expected.pvalue, abs=0.015)


def test_permutation_test_errs_as_rarely_as_it_says():
    rng = np.random.default_rng(5)
    p = [sign_flip_test({"a": rng.normal(0, 1, 5), "b": rng.normal(0, 3, 5)}) for _ in range(1000)]
    assert 0.03 < np.mean(np.array(p) < 0.05) < 0.07


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_clear_difference(tmp_path: Path):
    x, y = sample_scores(0, 10, better=0.1), sample_scores(1, 10)
    verdict = verdict_on(tmp_path, x, y)
    assert verdict.better == "x"
    assert verdict.words.startswith("x is better than y: its mean score is higher by 0.")
    assert verdict.seeds_needed is None
    differences = {task: np.subtract(x[task], y[task]) for task in TASKS}
    assert verdict.difference.point == pytest.approx(np.mean(list(differences.values())))
    assert verdict.difference.low < 0.1 < verdict.difference.high
    trimmed = [stats.trim_mean(np.concatenate(list(scores.values())), 0.25) for scores in (x, y)]
    assert verdict.iqm.point == pytest.approx(trimmed[0] - trimmed[1])
    assert verdict.iqm.low < 0.1 < verdict.iqm.high
    u = [stats.mannwhitneyu(x[task], y[task]).statistic / 100 for task in TASKS]
    assert verdict.improvement.point == pytest.approx(np.mean(u))
    assert verdict.p < 0.001
    for task in verdict.tasks:
        values = differences[task.task]
        assert task.effect == pytest.approx(values.mean() / values.std(ddof=1))
        assert task.corrected >= task.p
        # 10 seeds exclude no failures in a quarter of runs, which would undo 0.1.
        assert task.better is None


def test_the_order_of_the_agents_does_not_matter(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(1, 10), sample_scores(0, 10, better=0.1))
    assert verdict.better == "y"
    assert verdict.words.startswith("y is better than x: its mean score is higher by 0.")
    assert verdict.difference.point < 0


def test_no_difference_and_the_seeds_that_are_missing(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(0, 5, better=0.005), sample_scores(1, 5))
    assert verdict.better is None
    assert verdict.seeds_needed is not None
    assert verdict.words.startswith("Cannot tell x from y: ")
    assert (
        f"{verdict.seeds_needed - 5} more seeds ({verdict.seeds_needed} in all) show it with "
        "80% power."
    ) in verdict.words


def test_few_seeds_give_no_verdict(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(0, 4, better=0.5), sample_scores(1, 4))
    assert verdict.corrected < 0.05
    assert verdict.better is None
    assert (
        "a verdict needs at least 5 paired seeds on every task, and the fewest are 4 (6 tasks, "
        "4 paired"
    ) in verdict.words
    assert verdict.seeds_needed == 5


def test_equal_agents(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(0, 6), sample_scores(0, 6))
    assert (verdict.better, verdict.p, verdict.effect, verdict.seeds_needed) == (
        None,
        1.0,
        None,
        None,
    )
    assert "the mean scores are equal" in verdict.words


def test_equal_differences_have_no_effect_size(tmp_path: Path):
    x = sample_scores(0, 6)
    verdict = verdict_on(
        tmp_path, {task: [score + 0.1 for score in scores] for task, scores in x.items()}, x
    )
    assert verdict.effect is None  # their spread is rounding
    assert verdict.better == "x"


def test_a_mean_that_depends_on_one_task_is_said_to(tmp_path: Path):
    x, y = sample_scores(0, 10), sample_scores(1, 10)
    x[TASKS[2]] = [score + 3 for score in x[TASKS[2]]]
    runs = [read_run(make_run(tmp_path / "run", {"x": x, "y": y}))]
    sentences = remarks(runs, verdicts(runs))
    assert any(
        f"more than half of all differences is that on {TASKS[2]}" in each for each in sentences
    )


def test_one_seed_has_no_interval_and_no_verdict(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(0, 1), sample_scores(1, 1))
    assert "the fewest are 1 (6 tasks, 1 paired seed)." in verdict.words
    assert verdict.effect is None


def test_pairs_are_what_both_have(tmp_path: Path):
    x = make_run(tmp_path / "one", {"agent": sample_scores(0, 8)})
    y = make_run(
        tmp_path / "two",
        {
            "agent": sample_scores(1, 6, tasks=TASKS[:4]),
            "other": sample_scores(2, 6, tasks=TASKS[2:]),
        },
    )
    runs = read_runs([x, y])
    assert list(cells_by_agent(runs)) == ["agent (one)", "agent (two)", "other"]
    pair_verdicts = verdicts(runs)
    assert [(v.first, v.second, len(v.tasks), v.seeds) for v in pair_verdicts] == [
        ("agent (one)", "agent (two)", 4, 6), ("agent (one)", "other", 4, 6),
        ("agent (two)", "other", 2, 6),
    ]  # fmt: skip
    assert pair_verdicts[0].left_out == tuple(TASKS[4:])
    assert [v.corrected for v in pair_verdicts] == holm([v.p for v in pair_verdicts])
    tasks = [task for verdict in pair_verdicts for task in verdict.tasks]
    assert [task.corrected for task in tasks] == holm([task.p for task in tasks])
    sentence = (
        f"agent (one) and agent (two): left out, because they have no pair there: {TASKS[4]}, "
        f"{TASKS[5]}."
    )
    assert sentence in remarks(runs, pair_verdicts)


def test_pairs_without_anything_in_common_are_left_out_and_told(tmp_path: Path):
    x = make_run(
        tmp_path / "one",
        {
            "x": sample_scores(0, 6, better=0.5, tasks=TASKS[:4]),
            "y": sample_scores(1, 6, tasks=TASKS[:4]),
        },
    )
    z = make_run(tmp_path / "two", {"z": sample_scores(2, 5, tasks=TASKS[4:])})
    alone = verdicts([read_run(x)])
    runs = read_runs([x, z])
    pair_verdicts = verdicts(runs)
    assert [(v.first, v.second, v.corrected) for v in pair_verdicts] == [
        ("x", "y", alone[0].corrected)
    ]
    assert find_separate_pairs(runs) == [("x", "z"), ("y", "z")]
    lack = (
        "No task, seed and evaluation episodes in common: x and z, y and z. x, y have Made0-v0, "
        "Made1-v0, Made2-v0 and 1 more task (seeds 0 to 5, 50 episodes each); z has Made4-v0, "
        "Made5-v0 (seeds 0 to 4, 50 episodes each)."
    )
    assert lack in remarks(runs, pair_verdicts)
    with pytest.raises(
        ValueError, match=r"nothing to compare\. No task.* in common: x and z\. x has Made0-v0"
    ):
        verdicts(select_runs(runs, "x,z"))


def test_an_agent_with_equal_cells_in_two_runs_is_one(tmp_path: Path):
    more = sample_scores(0, 7)
    fewer = {task: scores[:5] for task, scores in more.items()}
    first = make_run(tmp_path / "one", {"x": fewer, "y": sample_scores(1, 7)})
    second = make_run(tmp_path / "two", {"x": more, "z": sample_scores(2, 7)})
    runs = read_runs([first, second])
    assert list(cells_by_agent(runs)) == ["x", "y", "z"]
    pair_verdicts = verdicts(runs)
    assert [(v.first, v.second, v.seeds, v.missing) for v in pair_verdicts] == [
        ("x", "y", 7, 0),
        ("x", "z", 7, 0),
        ("y", "z", 7, 0),
    ]
    assert gaps(runs) == []  # the second run has the seeds that the first lacks
    assert "x has the same scores in the runs one, two, so it is one agent here." in remarks(
        runs, pair_verdicts
    )

    with pytest.raises(
        ValueError, match=r"x is the only agent\. x has the same scores in the runs one, two"
    ):
        verdicts(select_runs(runs, "x"))

    unequal = make_run(tmp_path / "other", {"x": sample_scores(3, 5)})
    runs = read_runs([first, second, unequal])
    assert list(cells_by_agent(runs)) == ["x (one + two)", "y", "z", "x (other)"]
    sentences = remarks(runs, verdicts(runs))
    assert (
        "x has the same scores in the runs one, two, so it is one agent here, x (one + two)."
        in sentences
    )
    hyperparameters = {"x": {task: {"rate": 2} for task in TASKS}}
    tuned = make_run(tmp_path / "tuned", {"x": more}, hyperparameters=hyperparameters)
    assert list(cells_by_agent(read_runs([second, tuned]))) == ["x (two)", "z", "x (tuned)"]


def test_chosen_agents_and_tasks(tmp_path: Path):
    first = make_run(tmp_path / "one", {"x": sample_scores(0, 5), "y": sample_scores(1, 5)})
    second = make_run(tmp_path / "two", {"x": sample_scores(2, 5), "z": sample_scores(3, 5)})
    runs = read_runs([first, second])
    assert list(cells_by_agent(select_runs(runs, " x (two), y"))) == ["x", "y"]
    assert list(cells_by_agent(select_runs(runs, "y,x (one)"))) == ["y", "x"]
    assert list(cells_by_agent(select_runs(runs, "x"))) == ["x (one)", "x (two)"]
    few = select_runs(runs, "z", "Made1-v0,rlsuite/Made0-v0")
    assert [run.name for run in few] == ["two"]
    assert (
        {result.task for result in few[0].results()}
        == set(few[0].manifest.references)
        == set(TASKS[:2])
    )
    for wrong, words in (
        (("zz",), "'zz'. Did you mean 'z'?"),
        (("x", "Made9-v0"), "'Made9-v0'. Did you mean 'Made"),
        (("x", "motor"), "'motor'"),
        ((",",), "No agent is named in ','. The runs have"),
    ):
        with pytest.raises(ValueError, match=re.escape(words)):
            select_runs(runs, *wrong)
    assert [task.corrected for task in verdicts(select_runs(runs, "y,z", "Made1-v0"))[0].tasks] == [
        task.p for task in verdicts(select_runs(runs, "y,z", "Made1-v0"))[0].tasks
    ]


def test_seeds_that_can_decide_one_of_many_tasks(tmp_path: Path):
    for seeds, decided in ((5, False), (7, False), (8, True)):
        path = make_run(
            tmp_path / str(seeds),
            {"x": sample_scores(0, seeds, better=0.5), "y": sample_scores(1, seeds)},
        )
        (verdict,) = verdicts([read_run(path)])
        assert verdict.better == "x"
        assert {task.better for task in verdict.tasks} == {"x" if decided else None}
        sentences = [
            each for each in remarks([read_run(path)], [verdict]) if "cannot exclude" not in each
        ]
        assert [f"{seeds} seeds can decide no single task" in each for each in sentences] == [
            True
        ] * (not decided)
        assert decided or "for 6 p-values of tasks needs at least 8." in sentences[0]


def test_what_is_decided_is_not_called_undecidable(tmp_path: Path):
    """Holm corrects the p-value of x and z for two pairs only if x and y are not decided."""
    for better, decided in ((1.0, ["y", "z"]), (0.0, [None, None])):
        x = sample_scores(0, 12, tasks=TASKS[:2])
        y = sample_scores(1, 12, better=better, tasks=TASKS[:1])
        z = sample_scores(2, 6, better=1, tasks=TASKS[1:2])
        runs = [read_run(make_run(tmp_path / str(better), {"x": x, "y": y, "z": z}))]
        pair_verdicts = verdicts(runs)
        assert [verdict.better for verdict in pair_verdicts] == decided
        assert [task.better for verdict in pair_verdicts for task in verdict.tasks] == decided
        sentences = [each for each in remarks(runs, pair_verdicts) if "however large" in each]
        assert [each.partition(": ")[0] for each in sentences] == (
            [] if better else ["x and z", "x and z"]
        )


def test_agents_that_are_too_many_for_a_verdict_are_told(tmp_path: Path):
    for number, too_many in ((2, False), (3, True)):
        scores = {f"x{i}": sample_scores(i, 6, better=i, tasks=TASKS[:1]) for i in range(number)}
        runs = [read_run(make_run(tmp_path / str(number), scores))]
        pair_verdicts = verdicts(runs)
        assert {verdict.better is None for verdict in pair_verdicts} == {too_many}
        sentences = [
            each for each in remarks(runs, pair_verdicts) if "no verdict is possible" in each
        ]
        assert len(sentences) == too_many
        assert not too_many or sentences[0].startswith(
            "x0 and x1, x0 and x2, x1 and x2: no verdict"
        )
        assert all(
            "gives no p-value below 0.031, which Holm's correction for 3 pairs of agents" in each
            for each in sentences
        )


def test_seeds_needed_depend_on_where_the_difference_is(tmp_path: Path):
    """If it is on one task, the signs of this task's few seeds decide, however large it is."""
    y, z, u = (sample_scores(seed, 5) for seed in (1, 2, 3))
    for name, gains, needed in (
        ("one", {TASKS[2]: 3.0}, (7, 8)),
        ("all", dict.fromkeys(TASKS, 0.5), (None,)),
    ):
        x = {
            task: [score + gains.get(task, 0) for score in scores]
            for task, scores in sample_scores(0, 5).items()
        }
        pair_verdicts = verdicts(
            [read_run(make_run(tmp_path / name, {"x": x, "y": y, "z": z, "u": u}))]
        )
        assert (pair_verdicts[0].better, pair_verdicts[0].seeds_needed in needed) == (
            "x" if name == "all" else None,
            True,
        )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"budget": "full"}, "has the budget 'smoke' and .* has 'full'"),
        (
            {
                "references": {
                    TASKS[0]: {"random": {"mean": 0.1, "low": 0, "high": 1, "episodes": 9}}
                }
            },
            "by other reference scores",
        ),
    ],
)
def test_runs_that_do_not_compare_are_refused(tmp_path: Path, changed: dict, words: str):
    runs = [
        make_run(tmp_path / "a", {"x": sample_scores(0, 5)}),
        make_run(tmp_path / "b", {"y": sample_scores(1, 5)}, **changed),
    ]
    with pytest.raises(ValueError, match=words):
        verdicts(read_runs(runs))


def test_wrong_runs_are_refused(tmp_path: Path):
    run = make_run(tmp_path / "a", {"x": sample_scores(0, 2)})
    with pytest.raises(ValueError, match="x is the only agent"):
        verdicts([read_run(run)])
    with pytest.raises(ValueError, match="is given twice"):
        read_runs([run, tmp_path / "a" / "." / ""])
    with pytest.raises(ValueError, match=r"Unknown run '.*/none'\. Did you mean '.*/a'"):
        read_run(tmp_path / "none")
    with pytest.raises(ValueError, match=r"/none/one does not exist\."):
        read_run(tmp_path / "none" / "one")
    (run / "cells" / "x" / "Made0-v0" / "1" / "result.json").write_text("{")
    with pytest.raises(
        ValueError,
        match=r"1/result.json is damaged .*; delete the folder .*/Made0-v0/1 and run the same",
    ):
        read_run(run)


SPEED = "rlsuite/PMSMSpeed-v0"
"""Its card allows a mean cost of 20."""


@pytest.mark.parametrize(
    ("costs", "violators"),
    [
        ({"x": 129.0}, ["x"]),
        ({"y": 129.0}, ["y"]),
        ({}, []),
        ({"x": 30.0, "y": 129.0}, ["x", "y"]),
    ],
)
def test_who_breaks_a_constraint_ranks_below_who_keeps_it(
    tmp_path: Path, costs: dict[str, float], violators: list[str]
):
    x = sample_scores(0, 10, better=0.3, tasks=[SPEED, *TASKS])
    y = sample_scores(1, 10, tasks=[SPEED, *TASKS])
    (verdict,) = verdicts([read_run(make_run(tmp_path / "run", {"x": x, "y": y}, costs))])
    alone = "x is better than y: its mean score is higher by "
    assert verdict.tasks[0].violating == tuple(violators)
    assert verdict.tasks[1].violating == ()
    assert verdict.ranks_below == (violators[0] if len(violators) == 1 else None)
    assert verdict.constrained is not None
    differences = {task: np.subtract(x[task], y[task]) for task in x}
    differences[SPEED] = np.mean([0 if "x" in violators else x[SPEED]]) - np.mean(
        [0 if "y" in violators else y[SPEED]]
    )
    assert verdict.constrained.point == pytest.approx(
        np.mean([np.mean(values) for values in differences.values()])
    )
    if violators == ["x"]:
        assert (verdict.better, verdict.tasks[0].better) == (None, None)
        assert verdict.words.startswith(
            f"x violates the constraint of PMSMSpeed-v0 and ranks below y. By scores alone: {alone}"
        )
    elif violators == ["y"]:
        assert verdict.better == "x"
        assert verdict.words.startswith(
            f"y violates the constraint of PMSMSpeed-v0 and ranks below x. By scores alone: {alone}"
        )
    else:
        assert verdict.better == "x"
        assert verdict.words.startswith(alone)


def test_nothing_is_constrained_where_no_task_has_a_limit(tmp_path: Path):
    assert verdict_on(tmp_path, sample_scores(0, 5), sample_scores(1, 5)).constrained is None


def test_missing_seeds_are_told(tmp_path: Path):
    scores = {"x": sample_scores(0, 8, better=0.1), "y": sample_scores(1, 8)}
    path = make_run(tmp_path / "run", scores)
    assert gaps([read_run(path)]) == []
    for seed in (3, 5):
        (path / "cells" / "x" / "Made2-v0" / str(seed) / "result.json").unlink()
    for file in path.glob("cells/y/Made4-v0/*/result.json"):
        file.unlink()
    runs = [read_run(path)]
    (verdict,) = verdicts(runs)
    assert [(gap.agent, gap.task, gap.planned, gap.finished) for gap in gaps(runs)] == [
        ("x", TASKS[2], 8, 6), ("y", TASKS[4], 8, 0),
    ]  # fmt: skip
    assert (verdict.seeds, verdict.missing, verdict.unpaired) == (6, 2, (0, 2))
    assert verdict.words.endswith(
        "(5 tasks, 6 to 8 paired seeds; 2 seeds of the runs are missing)."
    )
    sentences = remarks(runs, [verdict])
    assert "x has fewer seeds than the 8 of the run run: 6 on Made2-v0." in sentences
    assert "y has fewer seeds than the 8 of the run run: 0 on Made4-v0." in sentences
    assert any(
        each.startswith("The verdicts are about the finished seeds only.") for each in sentences
    )
    assert any(
        "2 finished cells of y do not count, because the other agent has no cell" in each
        for each in sentences
    )


def test_other_software_and_other_versions_of_a_task_are_told(tmp_path: Path):
    def make_versioned_run(name: str, version: str, jax: str, tasks: list[str]) -> Path:
        launch = sitting(packages={"jax": jax, "numpy": "2.4"})
        path = make_run(tmp_path / name, {name: sample_scores(0, 5, tasks=tasks)})
        manifest = json.loads((path / "manifest.json").read_text())
        manifest |= {"version": version, "sittings": [launch]}
        (path / "manifest.json").write_text(json.dumps(manifest))
        return path

    first = make_versioned_run("one", "0.2.0", "0.9.0", TASKS)
    equal_runs = read_runs([first, make_versioned_run("same", "0.2.0", "0.9.0", TASKS)])
    assert not any(
        "versions" in each or "different tasks" in each
        for each in remarks(equal_runs, verdicts(equal_runs))
    )
    unequal_runs = read_runs(
        [first, make_versioned_run("two", "0.3.0", "0.10.2", [*TASKS[:5], "rlsuite/Made5-v1"])]
    )
    sentences = remarks(unequal_runs, verdicts(unequal_runs))
    assert any(
        each.startswith(
            "The runs were made with different versions of rlbench-suite: 0.2.0 (one); 0.3.0 (two)"
        )
        for each in sentences
    )
    assert any("different versions of jax: 0.9.0 (one); 0.10.2 (two)" in each for each in sentences)
    assert not any("numpy" in each for each in sentences)
    assert any(
        each.startswith("rlsuite/Made5-v0 and rlsuite/Made5-v1 are different tasks")
        for each in sentences
    )


@pytest.mark.parametrize("seeds", [6, 8, 20])
def test_failures_that_so_few_seeds_cannot_exclude_decide_nothing(tmp_path: Path, seeds: int):
    """Six seeds of runs that fail once in ten show no failure with probability .53.

    They score above .9 then.
    """
    task = TASKS[:1]
    x, y = {task[0]: [1.0 + 0.001 * i for i in range(seeds)]}, {task[0]: [0.9] * seeds}
    verdict = verdict_on(tmp_path, x, y)
    assert verdict.corrected < 0.05
    assert (verdict.better, verdict.tasks[0].better) == (None, None)
    share = f"{1 - 0.05 ** (1 / seeds):.0%}"
    assert (
        f"{seeds} pairs cannot exclude that {share} of runs fail (or succeed) unlike all of them"
        in verdict.words
    )
    assert verdict.seeds_needed is not None
    assert 27 <= verdict.seeds_needed <= 31  # 0.9^29 = 0.047


def test_an_unseen_run_of_a_wide_agent_may_lie_in_a_tail_that_was_not_seen(tmp_path: Path):
    """Seven lognormal scores may all lie below their mean, 1.65.

    Whoever always scores that mean is no better.
    """
    scores = np.random.default_rng(0).lognormal(size=(4_000, 7))
    below = scores[(scores < np.exp(0.5)).all(1)]
    # So often does the permutation test alone decide.
    assert len(below) == pytest.approx(4_000 * 0.07, rel=0.2)
    better = []
    for number, sample in enumerate(below[:40]):
        verdict = verdict_on(
            tmp_path / str(number), {TASKS[0]: sample.tolist()}, {TASKS[0]: [np.exp(0.5)] * 7}
        )
        better.append(verdict.better)
        assert verdict.p < 0.05
    assert better.count("y") <= 0.6 * len(better)  # 37 of the 40 without tails


def test_a_rival_of_equal_spread_or_of_two_kinds_has_no_longer_tail():
    even = np.array([[0.7, 0.9], [0.8, 0.8], [0.9, 0.7], [0.6, 1.0], [1.0, 0.6]])
    assert ends_of_runs(even) == ((0.0, 1.0), (0.0, 1.0))
    two_kinds = np.column_stack([[1.0, 1.0, 1.0, 1.0, 0.0], [0.5] * 5])
    assert ends_of_runs(two_kinds) == ((0.0, 1.0), (0.0, 1.0))
    wide = np.column_stack([[0.2, 0.4, 0.6, 0.8, 1.0], [0.5] * 5])
    (low, high), rival = ends_of_runs(wide)
    assert rival == (0.0, 1.0)
    assert (low, high) == (pytest.approx(0.2 - 2 * 0.4), pytest.approx(1.0 + 2 * 0.4))
    above = np.column_stack([[0.2, 0.4, 0.6, 0.8, 1.1], [0.5] * 5])
    # Beyond the scale, nothing bounds it.
    assert ends_of_runs(above)[0][1] == pytest.approx(1.1 + 4 * 0.5)
    assert ends_of_runs(above[:, ::-1]) == ends_of_runs(above)[::-1]


def test_the_seeds_that_are_needed_exclude_the_failures(tmp_path: Path):
    for seeds, better in ((26, None), (31, "x")):
        x, y = {TASKS[0]: [1.0 + 0.001 * (i % 5) for i in range(seeds)]}, {TASKS[0]: [0.9] * seeds}
        assert verdict_on(tmp_path / str(seeds), x, y).better == better


def test_failed_cells_leave_no_verdict(tmp_path: Path):
    """An agent that raises where it does badly is not better for it."""
    path = make_run(
        tmp_path / "run", {"x": sample_scores(0, 10, better=0.3), "y": sample_scores(1, 10)}
    )
    assert verdicts([read_run(path)])[0].better == "x"
    folder = path / "cells" / "x" / TASKS[0].split("/")[1] / "9"
    (folder / "result.json").unlink()
    folder.rmdir()
    folder.with_name("9.failed").write_text(json.dumps({"error": "ValueError: no"}))
    (verdict,) = verdicts([read_run(path)])
    assert (verdict.better, verdict.failed) == (None, (1, 0))
    assert "1 cell of x failed, and a failure is not a gap" in verdict.words
    assert verdict.tasks[0].failed == ("x",)
    assert verdict.tasks[0].better is None


def test_an_agent_with_failed_cells_does_not_outrank_who_breaks_a_constraint(tmp_path: Path):
    """Its failed cells might break the constraint, too."""
    scores = {"x": {SPEED: [0.9] * 6}, "y": {SPEED: [0.5] * 6}}
    path = make_run(tmp_path / "run", scores, {"x": 129.0})
    assert verdicts([read_run(path)])[0].ranks_below == "x"
    fail_cell(path, "y", SPEED, 5)
    (verdict,) = verdicts([read_run(path)])
    assert (verdict.ranks_below, verdict.better) == (None, None)
    assert "1 cell of y failed" in verdict.words


def test_errors_of_the_scale_stretch_a_difference(tmp_path: Path):
    x, y = sample_scores(0, 10, better=0.3), sample_scores(1, 10)
    exact = {"mean": 0.0, "low": 0.0, "high": 0.0, "episodes": 10}
    rough = {"mean": 2.0, "low": 1.8, "high": 2.2, "episodes": 10}
    ends = []
    for name, reference in (
        ("exact", exact | {"mean": 2.0, "low": 2.0, "high": 2.0}),
        ("rough", rough),
    ):
        references = {task: {"random": exact, "reference": reference} for task in TASKS}
        run = make_run(tmp_path / name, {"x": x, "y": y}, references=references)
        (verdict,) = verdicts([read_run(run)])
        ends.append(verdict.tasks[0].difference)
    errors = [(end.high - end.point) for end in ends]
    assert errors[1] == pytest.approx(np.hypot(errors[0], ends[0].point * 0.1), rel=1e-6)


def test_words_are_those_of_statistics(tmp_path: Path):
    verdict = verdict_on(tmp_path, sample_scores(0, 5, better=0.005), sample_scores(1, 5))
    assert (
        ", which is not significant at the level of 5% (6 tasks, 5 paired seeds)." in verdict.words
    )
    assert "chance" not in verdict.words
    undecided = replace(verdict, better=None, seeds_needed=verdict.seeds + 1)
    assert "1 more seed (6 in all) shows it" in comparison._words(undecided)
    assert (
        "the test finds a difference at the level of 5%, but the interval contains 0"
        in comparison._words(replace(undecided, corrected=0.04, unseen=0.0))
    )


def test_the_mean_cost_decides_as_everywhere(tmp_path: Path):
    """Most seeds cost more than the limit, 20, and their mean does not: the median is no rule."""
    path = make_run(
        tmp_path / "run",
        {"x": sample_scores(0, 5, tasks=[SPEED]), "y": sample_scores(1, 5, tasks=[SPEED])},
    )
    for seed in range(5):
        file = path / "cells" / "x" / "PMSMSpeed-v0" / str(seed) / "result.json"
        file.write_text(
            json.dumps(json.loads(file.read_text()) | {"mean_cost": 0.0 if seed == 4 else 24.0})
        )
    (verdict,) = verdicts([read_run(path)])
    assert verdict.tasks[0].violating == ()
