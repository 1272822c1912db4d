"""Train a tiny language model on Sudoku4 by TRL's GRPO, from chance to skill, in minutes.

Nothing is downloaded.

    pip install 'rlbench-suite[trl]'
    python examples/train_tiny_model.py [--minutes 8] [--seed 0]

The model is made here: a two-layer transformer whose tokens are the symbols of the grid. It learns
in two phases.

1. *Format*, supervised: it imitates random well-formed answers (`Puzzle.guess`). It learns to
   repeat the given digits and to write some digit into each empty cell. It sees no solution, so it
   begins at the chance level of the puzzle.
2. *Skill*, by GRPO: the reward is the score of the answer plus the share of empty cells that agree
   with the solution. Prompts have 1 to 6 empty cells, so that a random answer to some of them is
   often right.

The evaluation asks for whole grids of the test split at the tier `easy` (6 empty cells). None of
them occurs in training, under any symmetry. An answer counts only if `score` gives it 1. The model
answers greedily. The prompt is only the grid: a row keeps its instance, so any rendering of it may
be the prompt.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

import datasets
from rlbench_suite.core.task_card import Score
from rlbench_suite.evaluation.statistics.wilson import wilson_interval
from rlbench_suite.language import PuzzleDataset
from rlbench_suite.language.rows import Row, instance_of, score
from rlbench_suite.language.trl import puzzle_reward
from rlbench_suite.puzzle.dice import Dice
from rlbench_suite.puzzle.puzzle import CLOSING, OPENING, Puzzle

PUZZLE = "Sudoku4-v0"
DIFFICULTY = "easy"
TRAINING_DIFFICULTIES = (1, 2, 3, 4, 5, 6)
"""Difficulties of the training rows: numbers of empty cells."""
ROWS = 12_000
TEST_ROWS = 400
CELLS = 16
REPLY = CELLS + 3
"""Tokens of a reply: the cells, two tags, and the end."""
WARM_UP_BATCH = 64
WARM_UP_RATE = 3e-3
GROUP = 8
PROMPTS = 32
RATE = 2e-3


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer of the grid.

    A token is a symbol with the space or line break after it, or a tag.
    """
    words = [
        "<pad>",
        "<end>",
        OPENING,
        CLOSING,
        *(symbol + space for symbol in "1234_" for space in (" ", "\n", "")),
    ]
    raw = Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<pad>")
    )
    raw.pre_tokenizer = pre_tokenizers.Split(
        Regex(rf"{OPENING}|{CLOSING}|[1-4_][ \n]?"), "isolated"
    )
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<end>", pad_token="<pad>", padding_side="left"
    )


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> GPT2LMHeadModel:
    """Make a random model of about 100,000 parameters."""
    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=CELLS + REPLY,
            n_embd=64,
            n_layer=2,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def grid_of(row: Row) -> str:
    """Return the prompt: the grid, with `_` for each cell to fill."""
    puzzle, instance = instance_of(row)
    return str(puzzle.write_answer(puzzle.clue_rows(instance)))


def warm_up(model: Any, tokenizer: Any, rows: Sequence[Row], seed: int, steps: int) -> None:
    """Teach the format by random well-formed answers."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=WARM_UP_RATE, betas=(0.9, 0.95))
    luck = random.Random(seed)
    for step in range(steps):
        texts = []
        for member, row in enumerate(luck.sample(rows, WARM_UP_BATCH)):
            puzzle, instance = instance_of(row)
            guess = puzzle.guess(instance, Dice(seed, step * WARM_UP_BATCH + member))
            texts.append(f"{grid_of(row)}{OPENING}{guess}{CLOSING}{tokenizer.eos_token}")
        tokens = torch.tensor(tokenizer(texts)["input_ids"])
        labels = tokens.clone()
        labels[:, :CELLS] = -100  # only the reply is learnt
        loss = model(tokens, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def likeness_reward(
    completions: list[str], answer: list[str], metadata: list[Any], **_: Any
) -> list[float]:
    """Return the share of the empty cells that agree with the solution.

    It is 0 for an answer that is not well-formed.
    """
    rewards = []
    for completion, best, row_metadata in zip(completions, answer, metadata, strict=True):
        puzzle, instance = instance_of({"metadata": row_metadata})
        reply = Puzzle.extract(completion)
        valid = puzzle.verify(instance, reply).valid
        rewards.append(puzzle.likeness(instance, reply, best) if valid and reply else 0.0)
    return rewards


def evaluate(model: Any, tokenizer: Any, rows: Sequence[Row]) -> Score:
    """Return the mean score of greedy answers, with its 95 % interval."""
    tokens = torch.tensor(tokenizer([grid_of(row) for row in rows])["input_ids"])
    model.eval()
    with torch.no_grad():
        replies = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=REPLY, do_sample=False
        )
    texts = tokenizer.batch_decode(replies[:, CELLS:], skip_special_tokens=True)
    return wilson_interval([score(row, text) for row, text in zip(rows, texts, strict=True)])


class Progress(TrainerCallback):  # type: ignore[misc]
    """Prints the score now and then, and ends the training in time."""

    def __init__(
        self, model: Any, tokenizer: Any, rows: Sequence[Row], started: float, minutes: float
    ) -> None:
        self.of, self.started, self.minutes = (model, tokenizer, rows), started, minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Print the score after each 50 steps."""
        seconds = time.monotonic() - self.started
        control.should_training_stop = control.should_training_stop or seconds > 60 * self.minutes
        if state.global_step % 50 == 0:
            self.of[0].eval()
            print(
                f"step {state.global_step}, {seconds:.0f} s: {score_text(evaluate(*self.of))}",
                flush=True,
            )
            self.of[0].train()


def answers_score(rows: Sequence[Row], *, guessing: bool) -> Iterator[float]:
    """Yield the score of random answers, or else of the puzzle's rule of thumb.

    The latter is `Puzzle.heuristic`.
    """
    for number, row in enumerate(rows):
        puzzle, instance = instance_of(row)
        answer = puzzle.guess(instance, Dice(0, number)) if guessing else puzzle.heuristic(instance)
        yield score(row, f"{OPENING}{answer}{CLOSING}")


def score_text(score: Score) -> str:
    """Return a score with its interval."""
    return f"{score.mean:.3f} [{score.low:.3f}, {score.high:.3f}]"


def main(
    *, minutes: float = 8.0, steps: int = 600, seed: int = 0, warm_up_steps: int = 250
) -> tuple[Score, Score]:
    """Train, print the scores, and return those before and after GRPO.

    Args:
        minutes: GRPO ends after this time since the beginning.
        steps: it ends after so many steps, too.
        seed: seed of the model and of all draws.
        warm_up_steps: length of the supervised phase.
    """
    started = time.monotonic()
    # Rows equal but for a symmetry are no harm here.
    warnings.filterwarnings("ignore", f".*{PUZZLE} has few different")
    rows = list(PuzzleDataset(PUZZLE, size=ROWS, difficulty=TRAINING_DIFFICULTIES))
    tests = list(PuzzleDataset(PUZZLE, size=TEST_ROWS, split="test", difficulty=DIFFICULTY))
    tokenizer = make_tokenizer()
    model = make_model(tokenizer, seed)
    warm_up(model, tokenizer, rows, seed, warm_up_steps)
    before = evaluate(model, tokenizer, tests)
    print(f"{PUZZLE} {DIFFICULTY}, test split: mean score of {len(tests)} answers [95 % interval]")
    print(
        f"random answers: {score_text(wilson_interval(list(answers_score(tests, guessing=True))))}"
    )
    print(
        f"rule of thumb: {score_text(wilson_interval(list(answers_score(tests, guessing=False))))}"
    )
    print(f"start of GRPO, {time.monotonic() - started:.0f} s: {score_text(before)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            args=GRPOConfig(
                output_dir=folder,
                seed=seed,
                max_steps=steps,
                num_generations=GROUP,
                per_device_train_batch_size=GROUP * PROMPTS,
                max_completion_length=REPLY,
                learning_rate=RATE,
                lr_scheduler_type="constant_with_warmup",
                warmup_steps=10,
                adam_beta2=0.95,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            ),
            processing_class=tokenizer,
            train_dataset=datasets.Dataset.from_list(
                [{**row, "prompt": grid_of(row)} for row in rows]
            ),
            reward_funcs=[puzzle_reward, likeness_reward],
            callbacks=[Progress(model, tokenizer, tests, started, minutes)],
        )
        trainer.train()
    after = evaluate(model, tokenizer, tests)
    seconds = time.monotonic() - started
    print(
        f"end of GRPO, {trainer.state.global_step} steps, {seconds:.0f} s: {score_text(after)}",
        flush=True,
    )
    return before, after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a tiny language model on Sudoku4 by GRPO.")
    parser.add_argument("--minutes", type=float, default=8.0, help="time limit of the training")
    parser.add_argument("--steps", type=int, default=600, help="most steps of GRPO")
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
