"""Train a language model on tasks of the suite with TRL's GRPO, in both of TRL's forms.

    pip install 'rlbench-suite[trl]'
    python examples/train_with_trl.py one-shot Sudoku4-v0 SAT-v0
    python examples/train_with_trl.py environment Sudoku4-v0 Wordle-v0

The model is made here, tiny and random, so that nothing is downloaded and two steps take seconds;
it learns nothing. Pass your own model and tokenizer to `one_shot` or `environment` to train it.
`train_tiny_model.py` shows a tiny model that does learn.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trl
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from rlbench_suite.language import CompositeDataset
from rlbench_suite.language.trl import (
    check_chat_template,
    environment_factory,
    episode_rows,
    format_reward,
    make_reward,
    prompt_dataset,
)

ROWS = 16


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Make a tokenizer whose tokens are bytes, with a chat template that renders tool calls."""
    alphabet = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    raw = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    raw.pre_tokenizer, raw.decoder = ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>", padding_side="left"
    )
    tokenizer.add_tokens(["<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>"])
    tokenizer.chat_template = (
        Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja"
    ).read_text()
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Make a random model of 40,000 parameters."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=8192,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def settings(folder: str, **changed: Any) -> trl.GRPOConfig:
    """Return settings for a processor without accelerator.

    They are small, so that a step takes seconds.
    """
    small = {
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "num_generations": 2,
        "max_completion_length": 16,
    }
    quiet = {"report_to": "none", "save_strategy": "no", "logging_steps": 1, "disable_tqdm": True}
    return trl.GRPOConfig(output_dir=folder, use_cpu=True, bf16=False, **(small | quiet | changed))


def one_shot(
    model: Any, tokenizer: Any, task_ids: Sequence[str], args: trl.GRPOConfig
) -> trl.GRPOTrainer:
    """Train on puzzles whose whole answer is one reply.

    Lenient reading and partial credit help at the beginning.
    """
    rows = CompositeDataset(dict.fromkeys(task_ids, 1.0), size=ROWS)
    trainer = trl.GRPOTrainer(
        model=model,
        args=args,
        processing_class=tokenizer,
        train_dataset=prompt_dataset(rows),
        reward_funcs=[make_reward(lenient=True, partial=True), format_reward],
    )
    trainer.train()
    return trainer


def environment(
    model: Any, tokenizer: Any, task_ids: Sequence[str], args: trl.GRPOConfig
) -> trl.GRPOTrainer:
    """Train on tasks that are played by calls of tools, puzzles and games alike."""
    check_chat_template(tokenizer)
    rows = episode_rows(task_ids, size=ROWS)
    trainer = trl.GRPOTrainer(
        model=model,
        args=args,
        processing_class=tokenizer,
        train_dataset=prompt_dataset(rows, environment=True),
        environment_factory=environment_factory(task_ids),
    )
    trainer.train()
    return trainer


if __name__ == "__main__":
    form, ids = sys.argv[1:2], sys.argv[2:]
    if form not in (["one-shot"], ["environment"]):
        sys.exit("usage: train_with_trl.py one-shot|environment ID [ID ...]")
    tokenizer = make_tokenizer()
    with tempfile.TemporaryDirectory() as scratch:
        train = one_shot if form == ["one-shot"] else environment
        train(make_model(tokenizer), tokenizer, ids or ["Sudoku4-v0"], settings(scratch))
