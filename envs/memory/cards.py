"""Cards of the family ``memory``."""

from rlbench_suite.core.task_card import TaskCard

POPGYM = "Morad et al. 2023, arXiv:2303.01859 (POPGym)"


def _symbols(
    name: str,
    summary: str,
    source: str,
    classes: str,
    horizon: int,
    difficulties: dict[str, float],
    optima: dict[str, float],
    chance: str = "",
    **choices: tuple[str, ...],
) -> TaskCard:
    """Make the card of a task in which symbols are to be remembered.

    ``classes`` is ``file:Task:Reference:Memoryless``. The last one may be left out for the player
    that always gives the last answer.
    """
    file, task, reference, *memoryless = classes.split(":")
    without = f"{file}:{memoryless[0]}" if memoryless else "symbols:LastWord"
    return TaskCard(
        id=f"rlsuite/{name}",
        family="memory",
        summary=summary,
        source=source,
        entry_point=f"rlbench_suite.envs.memory.{file}:{task}",
        reference=f"rlbench_suite.envs.memory.{file}:{reference}",
        yardsticks={"memoryless": f"rlbench_suite.envs.memory.{without}"},
        horizon=horizon,
        choices=choices,
        variant=True,
        difficulties=difficulties,
        contexts=False,
        partially_observed=True,
        optima=optima,
        chance=chance,
        tags=("discrete", "memory", "partially-observed", "text"),
    )


CARDS = (
    TaskCard(
        id="rlsuite/TMaze-v0",
        family="memory",
        summary=(
            "Walk an endless chain of T-mazes; at each junction turn as a sign said at the "
            "corridor's start."
        ),
        source=(
            "Shchendrigin et al. 2026, arXiv:2601.15086 (endless); Bakker 2001, NIPS 14 (T-maze)"
        ),
        entry_point="rlbench_suite.envs.memory.t_maze:TMaze",
        reference="rlbench_suite.envs.memory.t_maze:RememberTheSign",
        yardsticks={"memoryless": "rlbench_suite.envs.memory.t_maze:Habit"},
        horizon=200,
        # Positive: rewriting; negative: retention. The size is the longest corridor; a half more:
        # all are that long.
        difficulties={
            "rewriting-medium": 10,
            "rewriting-short": 3,
            "rewriting-long": 30,
            "rewriting-fixed": 10.5,
            "retention-medium": -10,
            "retention-short": -3,
            "retention-long": -30,
            "retention-fixed": -10.5,
        },
        contexts=False,
        partially_observed=True,
        optima={
            f"{mode}-{size}": turns
            for mode in ("rewriting", "retention")
            for size, turns in {
                "medium": 30.443786982248522,
                "short": 66.37037037037037,
                "long": 11.789103084151876,
                "fixed": 18.0,
            }.items()
        },
        tags=("discrete", "memory", "partially-observed", "text"),
    ),
    _symbols(
        "RepeatPrevious-v0",
        "Repeat the symbol that was shown k steps ago.",
        f"{POPGYM}, RepeatPrevious",
        "repeat_previous:RepeatPrevious:Repeater",
        104,
        {"medium": 4, "easy": 1, "hard": 32},
        {"medium": 100, "easy": 103, "hard": 72},
    ),
    _symbols(
        "Autoencode-v0",
        "Watch a sequence of symbols, then recite it backwards.",
        f"{POPGYM}, Autoencode",
        "autoencode:Autoencode:Reciter",
        104,
        {"medium": 8, "easy": 4, "hard": 52},
        {"medium": 8, "easy": 4, "hard": 52},
    ),
    _symbols(
        "CountRecall-v0",
        "Tell how often a symbol has been dealt from a shuffled deck.",
        f"{POPGYM}, CountRecall",
        "count_recall:CountRecall:Counter:Guesser",
        104,
        {"easy": 2, "medium": 4, "hard": 8},
        {"easy": 26, "medium": 52, "hard": 104},
    ),
    _symbols(
        "NBack-v0",
        "Tell whether the symbol is that of n steps ago.",
        "Kirchner 1958, doi:10.1037/h0043688",
        "n_back:NBack:Comparer",
        100,
        {"easy": 1, "medium": 2, "hard": 8},
        {"easy": 99, "medium": 98, "hard": 92},
    ),
    _symbols(
        "KeyValue-v0",
        "Store, overwrite, delete and look up values by keys.",
        "Shchendrigin et al. 2026, arXiv:2601.15086 (rewriting of memory)",
        "key_value:KeyValue:Store",
        128,
        {"medium": 4, "easy": 1, "hard": 8},
        {"medium": 64, "easy": 64, "hard": 64},
        rewriting=("0.5", "0.125", "0.875"),
    ),
    _symbols(
        "DelayedInstruction-v0",
        (
            "Carry out an instruction long after it was given, among others that are meant for "
            "somebody else."
        ),
        "Hunter 1913 (delayed reaction)",
        "delayed_instruction:DelayedInstruction:Obedient",
        200,
        {"medium": 10, "easy": 3, "hard": 50},
        {"medium": 26.30666666666667, "easy": 49.645833333333336, "hard": 6.92859919258059},
        distractors=("0.5", "0", "1"),
    ),
    _symbols(
        "ColourCubes-v0",
        (
            "Walk to the cube of the wanted colour, on a floor whose cubes are seen only when one "
            "has moved."
        ),
        "Shchendrigin et al. 2026, arXiv:2601.15086 (Color-Cubes)",
        "colour_cubes:ColourCubes:Tracker:Wanderer",
        100,
        # Negative: colours are seen at the start only.
        {"medium": 4, "trivial": 1, "hard": 8, "extreme": -4},
        {"trivial": 22.803550295855327},
        moves=("0.1", "0", "0.5"),
    ),
    _symbols(
        "Concentration-v0",
        "Turn cards over two by two, and find the pairs with few turns in vain.",
        (
            f"{POPGYM}, Concentration; Velleman and Warrington 2013, American Mathematical Monthly "
            "120:9 (optimum)"
        ),
        "concentration:Concentration:Rememberer:Sweeper",
        300,
        {"medium": 8, "easy": 4, "hard": 12},
        {"medium": 7.450876900876901, "easy": 3.519047619047619, "hard": 11.429184121592252},
        chance="four pairs are often found in fewer turns in vain than there are pairs, by luck",
    ),
    _symbols(
        "RevisedFacts-v0",
        "Say where things are after facts were revised in a dialogue.",
        "Weston et al. 2015, arXiv:1502.05698 (bAbI: where is a thing after it was moved)",
        "revised_facts:RevisedFacts:Listener",
        128,
        {"medium": 4, "easy": 2, "hard": 8},
        {"medium": 62, "easy": 63, "hard": 60},
        rewriting=("0.5", "0.125", "0.875"),
    ),
)
