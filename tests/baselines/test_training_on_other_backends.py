"""Each agent's training program lowers for CUDA."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from toy_tasks import Cue, Picture

from rlbench_suite.adapters.rollout import open_stream
from rlbench_suite.baselines import hdpo
from rlbench_suite.baselines.flat_task import flatten_task
from rlbench_suite.baselines.offline import offline_agent
from rlbench_suite.baselines.offline.bc import BC
from rlbench_suite.baselines.offline.td3_bc import TD3BC
from rlbench_suite.baselines.ppo import agent as ppo_agent
from rlbench_suite.baselines.ppo import model_based, ppo
from rlbench_suite.baselines.ppo.agent import PPO
from rlbench_suite.baselines.ppo.model_based import ModelBasedPPO
from rlbench_suite.baselines.replay import replay_agent
from rlbench_suite.baselines.replay.dqn import DQN
from rlbench_suite.baselines.replay.sac import SAC
from rlbench_suite.core.episode import ContextSource
from rlbench_suite.core.registry import card as find_card
from rlbench_suite.numerics import bit_exact

SEED = np.zeros(2, np.uint32)


@pytest.fixture(autouse=True)
def accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bit_exact, "_on_cpu", lambda: False)


def task_of(name: str) -> Any:
    return find_card(name).build()


def begin_episodes(task: Any, num_envs: int) -> Any:
    """Return the shapes of a batch of episodes."""
    source = ContextSource(np.int32(0), np.int32(-1))
    return jax.eval_shape(partial(open_stream, task), np.zeros((num_envs, 2), np.uint32), source)


def ppo_update(task: Any) -> tuple[Any, ...]:
    flat = ppo_agent.flatten_for_ppo(task)
    config = PPO().config(task, "smoke")
    algorithm = ppo_agent.algorithm(config)
    start = partial(algorithm.start, flat, config)
    training = jax.eval_shape(
        start,
        algorithm.Networks.initial(flat, config, 0),
        SEED,
        begin_episodes(task, config.num_envs),
    )
    return partial(algorithm.train_chunk, flat, config), training


def model_based_update(task: Any) -> tuple[Any, ...]:
    flat = flatten_task(task, "this test")
    config = ModelBasedPPO().config(task, "smoke")
    inputs = flat.features + flat.outputs
    ensemble = model_based.Ensemble.initial(config, inputs, flat.features, 0)
    networks = ppo.Networks.initial(flat, config, 0)
    stream = begin_episodes(task, config.num_envs)
    training = jax.eval_shape(
        partial(model_based.start, flat, config), networks, ensemble, SEED, stream
    )
    return partial(model_based.train_chunk, flat, config), training


def replay_update(agent: replay_agent.ReplayAgent, task: Any) -> tuple[Any, ...]:
    config = agent.config(task, "smoke")
    algorithm = agent.algorithm(task, config)
    start = partial(replay_agent.start, algorithm)
    training = jax.eval_shape(
        start, algorithm.networks(0), SEED, begin_episodes(task, config.num_envs)
    )
    return partial(replay_agent.train_chunk, algorithm), training


def offline_update(agent: type[offline_agent.OfflineAgent], task: Any) -> tuple[Any, ...]:
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    config = agent().config(task, "smoke")
    flat = flatten_task(task, "this test")
    observation = jax.ShapeDtypeStruct((64, flat.features), np.float32)
    action = jax.ShapeDtypeStruct((64, flat.outputs), np.float32)
    reward = jax.ShapeDtypeStruct((64,), np.float32)
    over = jax.ShapeDtypeStruct((64,), np.bool_)
    run = offline_agent.TrainingState(agent.algorithm.start(flat, config, 0), SEED, np.int32(0))
    return (
        partial(offline_agent.train_chunk, agent.algorithm, config),
        run,
        offline_agent.Batch(observation, action, reward, observation, over),
    )


def hdpo_update(task: Any) -> tuple[Any, ...]:
    flat, config = flatten_task(task, "hdpo"), hdpo.HDPO().config(task, "smoke")
    return partial(hdpo.train_chunk, flat, config), hdpo.start(flat, config, 0)


TRAININGS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "ppo": lambda: ppo_update(task_of("QuadcopterHover-v0")),
    "ppo masked": lambda: ppo_update(task_of("SAT-v0")),
    "ppo agents": lambda: ppo_update(task_of("QuadcopterSwarm2-v0")),
    "ppo recurrent": lambda: ppo_update(Cue()),
    "ppo pixels": lambda: ppo_update(Picture()),
    "mbppo": lambda: model_based_update(task_of("PMSMCurrent-v0")),
    "sac": lambda: replay_update(SAC(), task_of("PMSMCurrent-v0")),
    "hdpo": lambda: hdpo_update(task_of("InventoryNetwork-v0")),
    "dqn": lambda: replay_update(DQN(), task_of("PMSMCurrentFinite-v0")),
    "bc": lambda: offline_update(BC, task_of("QuadcopterHover-v0")),
    "td3-bc": lambda: offline_update(TD3BC, task_of("QuadcopterHover-v0")),
}


@pytest.mark.parametrize("name", TRAININGS)
def test_every_training_lowers_for_cuda(name: str) -> None:
    train, *arguments = TRAININGS[name]()
    text = jax.jit(train).trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert "stablehlo.while" in text
