"""Make the gallery, which shows every task in a moving picture, a sentence and its scores.

Readers can filter it by family.
"""

from __future__ import annotations

from html import escape

from rlbench_suite.core.task_card import TaskCard

PLAYERS = ("reference", "random", "noop")

STYLE = """<style>
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); \
gap: .8rem; margin-top: 1rem; }
.gallery article { border: 1px solid var(--md-default-fg-color--lightest); \
border-radius: .3rem; padding: .6rem; }
.gallery img { width: 100%; height: 9rem; object-fit: contain; background: #fff; }
.gallery h2 { font-size: .75rem; margin: .3rem 0; overflow-wrap: anywhere; }
.gallery p { font-size: .65rem; margin: .3rem 0; }
.gallery dl { display: flex; justify-content: space-between; font-size: .6rem; margin: .4rem 0 0; }
.md-typeset .gallery dd { margin: 0; font-variant-numeric: tabular-nums; }
.filter { display: flex; flex-wrap: wrap; gap: .4rem 1rem; align-items: center; }
.filter select { font: inherit; color: inherit; background: var(--md-default-bg-color); \
border: 1px solid; }
.filter[hidden], .gallery article[hidden] { display: none; }
</style>"""

SCRIPT = """<script>
{
  const filter = document.querySelector(".filter"), family = filter.querySelector("select");
  const still = filter.querySelector("input"), count = filter.querySelector("output");
  const tasks = [...document.querySelectorAll(".gallery article")];
  const show = () => {
    for (const task of tasks) task.hidden = family.value !== "" && \
task.dataset.family !== family.value;
    count.value = tasks.filter(task => !task.hidden).length + " of " + tasks.length + " tasks";
  };
  const pause = () => {
    for (const source of document.querySelectorAll(".gallery source"))
      source.media = still.checked ? "all" : "(prefers-reduced-motion: reduce)";
  };
  const follow = () => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    family.value = [...family.options].some(option => option.value === wanted) ? wanted : "";
    show();
  };
  family.addEventListener("change", () => { \
history.replaceState(null, "", "#" + family.value); show(); });
  still.addEventListener("change", pause);
  addEventListener("hashchange", follow);
  filter.hidden = false;
  pause();
  follow();
}
</script>"""


def gallery(listed: list[TaskCard]) -> str:
    """Write the page. Without scripts it shows every task."""
    families = dict.fromkeys(card.family for card in listed)
    options = "".join(f'<option value="{family}">{family}</option>' for family in families)
    lines = [
        "---",
        "hide: [toc]",
        "---",
        "",
        "# Gallery",
        "",
        "An episode of every task's reference player on the test split. Scores are mean returns "
        "at the default difficulty (`rlsuite dev calibrate ID` measures them); the page of a task "
        "has their intervals.",
        "",
        STYLE,
        "",
        '<form class="filter" hidden onsubmit="return false">',
        f'<label>Family <select><option value="">all</option>{options}</select></label>',
        '<label><input type="checkbox"> Pause the pictures</label>',
        '<output aria-live="polite"></output>',
        "</form>",
        "",
        '<div class="gallery">',
        *(_tile(card) for card in listed),
        "</div>",
        "",
        SCRIPT,
    ]
    return "\n".join(lines) + "\n"


def _tile(card: TaskCard) -> str:
    """Write one task's tile on one line: a blank line would end the block of HTML."""
    scores = {
        player: f"{score.mean:.4g}" for player in PLAYERS if (score := card.scores().get(player))
    }
    if card.optimum is not None:
        scores["optimum"] = f"{card.optimum:.4g}"
    if (ceiling := card.build().memoryless_ceiling) is not None:
        scores["no memory"] = f"{ceiling:.4g}"
    pairs = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in scores.items())
    link = f"../tasks/{card.name}/"
    return (
        f'<article data-family="{card.family}"><a '
        f'href="{link}">{moving_picture(card, "../tasks")}</a><h2><a '
        f'href="{link}">{card.name}</a></h2><p>{escape(card.summary)}</p><dl>{pairs}</dl></article>'
    )


def moving_picture(card: TaskCard, folder: str) -> str:
    """Return the HTML of a task's animation.

    People who asked their system for less motion see a still picture.
    """
    source = f'<source media="(prefers-reduced-motion: reduce)" srcset="{folder}/{card.name}.png">'
    alt = f"An episode of {card.name}, played by its reference player"
    return (
        f'<picture>{source}<img src="{folder}/{card.name}.gif" loading="lazy" '
        f'alt="{alt}"></picture>'
    )
