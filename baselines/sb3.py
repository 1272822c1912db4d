"""Agents from stable-baselines3 (Raffin et al. 2021, JMLR 22), trained on the suite's vector env.

The environments run batched and compiled (simulators on the host in turn); networks and updates are
torch. Observations are normalised by their running mean and variance, as those of the suite's own
agents, and on-policy agents also scale rewards (SB3's ``VecNormalize``). A task's discount, network
and learning rate are those of the suite's counterpart.

These algorithms ignore action masks. They can still play masked tasks, because the environment
refuses an illegal action: the state stays and time passes. :class:`SuiteVecEnv` shows masks to
sb3-contrib's ``MaskablePPO``.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import safetensors
import yaml
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from rlbench_suite.adapters.entry_points import make_vec
from rlbench_suite.adapters.maskable import has_masks
from rlbench_suite.core.agent import CannotPlay, HostPolicy, Progress
from rlbench_suite.core.episode import scalar_return
from rlbench_suite.core.task import Task
from rlbench_suite.foundation.unknown_names import unknown

from . import checkpoint
from .configuration import FOLDER, training_steps

try:
    import stable_baselines3
    import torch
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.noise import NormalActionNoise
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize
except ImportError as error:
    raise ImportError(
        "Agents named sb3-... need stable-baselines3: pip install 'rlbench-suite[sb3]'"
    ) from error

from . import sb3_zip  # imports torch

HYPERPARAMETERS = FOLDER / "sb3.yaml"
HIDDEN = "hidden-information"
"""Tag of the cards of tasks in which an agent must not see what the others see."""
REPORTS = 15
"""Approximate number of progress reports in a run.

There are more if ``MAX_STEPS_PER_REPORT`` demands it.
"""
MAX_STEPS_PER_REPORT = 20_000
"""Largest number of environment steps between two reports, so that a long run still shows progress.
"""
ARCHITECTURE = ("net_arch", "activation_fn", "n_critics", "share_features_extractor")
"""Hyperparameters from which a policy is rebuilt.

They are SB3's own, but the activation is given by name.
"""
OBSERVATION_MEAN = "normalization.mean"
OBSERVATION_VARIANCE = "normalization.variance"
"""Names of the arrays of a saved policy that normalise its observations."""


class SuiteVecEnv(VecEnv):
    """A vector env of the suite with the interface of Stable-Baselines3 (SB3).

    It resets in the same step, passes ``terminal_observation`` and pays scalar rewards.

    A multi-agent task becomes one agent with the joint observations and actions and the mean
    reward. The card's weights combine several objectives, unless the batch has weights of its own.

    Args:
        env: a vector env with the autoreset mode ``SameStep`` and NumPy arrays.

    Raises:
        TypeError: it is no vector env of the suite.
        ValueError: it has another autoreset mode or backend.
    """

    def __init__(self, env: Any) -> None:
        if not hasattr(env, "card") or not hasattr(env, "num_envs"):
            raise TypeError(
                "SuiteVecEnv wraps a batch that gymnasium.make_vec makes of an id of this suite, "
                f"got {env}."
            )
        mode = env.metadata["autoreset_mode"]
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                "SuiteVecEnv needs a batch that resets in the step of an end, got "
                f"autoreset_mode={mode.value!r}. "
                f'Make it by gymnasium.make_vec("{env.card.id}", {env.num_envs}, '
                "autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)."
            )
        if env.backend != "numpy":
            raise ValueError(
                f'SuiteVecEnv needs a batch with backend="numpy", got {env.backend!r}.'
            )
        self.env = env  # super().__init__ reads its render_mode
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.metadata = env.metadata  # with the frame rate, for videos
        self._next_seeds: list[int] | None = None
        self._actions: Any = None
        self._returns = np.zeros(env.num_envs)
        self.finished: list[float] = []
        """Scalar returns of the episodes that ended since the last report."""

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Set the seeds of the next reset and return them.

        Each env has a seed of its own, independent of those of other seeds: with ``seed + i`` the
        trainings of seeds 0 and 1 would share all but one of their streams of episodes.
        """
        if seed is None:
            self._next_seeds = None
            return [None] * self.num_envs
        self._next_seeds = np.random.SeedSequence(seed).generate_state(self.num_envs).tolist()
        return list(self._next_seeds)

    def reset(self) -> np.ndarray:
        """Reset every env and return the first observations."""
        observations, _ = self.env.reset(seed=self._next_seeds)
        self._next_seeds = None
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions for :meth:`step_wait`; SB3 has clipped those of a Box already."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Take one step in every env."""
        observations, rewards, terminated, truncated, infos = self.env.step(self._actions)
        if rewards.ndim > 1:  # one number for each objective: the batch was made without weights
            rewards = scalar_return(self.env.task, rewards)
        over = terminated | truncated
        self._returns += rewards
        sb3_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            sb3_infos[i] = {
                "terminal_observation": infos["final_obs"][i],
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
            }
        self.finished += self._returns[over].tolist()
        self._returns[over] = 0
        return observations, rewards.astype(np.float32), over, sb3_infos

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def get_images(self) -> tuple[Any, ...]:
        """Return a picture of each env.

        Each is None if the batch was made without ``render_mode="rgb_array"``.
        """
        if self.render_mode != "rgb_array":
            return (None,) * self.num_envs
        pictures: tuple[Any, ...] = self.env.render()
        return pictures

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the vector env, once for each env.

        ``action_masks`` is returned as a function of each.

        Raises:
            AttributeError: there is none, or it is ``action_masks`` of a task without masks.
        """
        selected_envs = list(self._get_indices(indices))
        if attr_name in self._methods:
            if attr_name == "action_masks" and not has_masks(self.env.task):
                raise AttributeError(
                    f"{self.env.card.id} has no action mask: every action is legal."
                )
            if attr_name == "compute_reward":
                self.env.compute_reward  # noqa: B018  (raises AttributeError for a task without goals)
            return [partial(self._methods[attr_name], self, i) for i in selected_envs]
        return [getattr(self.env, attr_name) for _ in selected_envs]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse to set an attribute, because the envs of a batch are not objects.

        Raises:
            AttributeError: always.
        """
        raise AttributeError(f"Cannot set {attr_name}: the envs of a batch are not objects.")

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **keywords: Any
    ) -> list[Any]:
        """Call a method of each env.

        There are ``action_masks``, which returns the legal actions, bool ``(n,)``, and
        ``compute_reward`` of tasks with goals.

        Raises:
            AttributeError: it is another method, since the envs of a batch are not objects, or the
                task has no masks or goals.
        """
        if method_name not in self._methods:
            methods = ", ".join(self._methods)
            raise AttributeError(
                f"Cannot call {method_name}: the envs of a batch are not objects. Known: {methods}."
            )
        return [method(*args, **keywords) for method in self.get_attr(method_name, indices)]

    def _mask_of(self, i: int) -> np.ndarray:
        mask: np.ndarray = self.env.action_masks()[i]
        return mask

    def _reward_of(self, i: int, achieved_goal: Any, desired_goal: Any, info: Any) -> Any:
        return self.env.compute_reward(achieved_goal, desired_goal, info)

    _methods: ClassVar[dict[str, Callable[..., Any]]] = {
        "action_masks": _mask_of,
        "compute_reward": _reward_of,
    }
    """Methods of single envs that a batch has too, called with the number of the env first."""

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False for each env."""
        return [False for _ in self._get_indices(indices)]


class Normalization(NamedTuple):
    """Running moments of the observations in training, as ``VecNormalize`` keeps them."""

    mean: np.ndarray
    variance: np.ndarray

    def normalize(self, observations: np.ndarray) -> np.ndarray:
        """Return the observations ``(n, ...)`` as the networks read them, float32."""
        deviation = np.sqrt(self.variance + EPSILON)
        return np.clip((observations - self.mean) / deviation, -CLIP, CLIP).astype(np.float32)


EPSILON = 1e-8
CLIP = 10.0
"""Added to the variance, and largest normalised value: VecNormalize's defaults."""


class SB3Policy:
    """The policy of a trained model, which takes the most likely or most valued actions.

    Args:
        model: the model.
        task_id: id of the task on which it was trained.
        hyperparameters: its hyperparameters as plain data.
        normalization: moments that normalise its observations; None if it reads them as they are.
    """

    def __init__(
        self,
        model: BaseAlgorithm,
        task_id: str,
        hyperparameters: dict[str, Any],
        normalization: Normalization | None = None,
    ) -> None:
        self.model = model
        self.task_id = task_id
        self.hyperparameters = hyperparameters
        self.normalization = normalization

    def act(self, observations: Any, action_masks: np.ndarray | None) -> np.ndarray:
        """Return actions ``(n, ...)`` inside the action space.

        Masks are ignored, as in training.
        """
        if self.normalization:
            observations = self.normalization.normalize(observations)
        return self.model.predict(observations, deterministic=True)[0]


class SB3:
    """Base of the agents ``sb3-...``.

    Each names its algorithm and the action spaces that it can play.
    """

    name: ClassVar[str]
    model: ClassVar[Callable[..., Any]]
    plays: ClassVar[tuple[type[spaces.Space[Any]], ...]]
    counterpart: ClassVar[str] = "sac"
    """Agent of the suite whose settings for a family or a task it takes over."""
    shared: ClassVar[Mapping[str, str]] = {
        "gamma": "gamma",
        "hidden": "net_arch",
        "learning_rate": "learning_rate",
    }
    """The counterpart's names of these settings, each with SB3's."""
    learns = True

    def check(self, task: Task[Any, Any]) -> None:
        """Raise :class:`CannotPlay` if a space does not fit, or agents must not share rows.

        The algorithm and SB3's ``MlpPolicy`` must both take the spaces.
        """
        if task.card.agents > 1 and HIDDEN in task.card.tags:
            raise CannotPlay(
                f"{self.name} decides for all agents at once by what all of them see, and in "
                f"{task.card.id} an agent must not see what the others see (tag {HIDDEN!r})."
            )
        if not isinstance(task.observation_space, spaces.Box) or task.dtype != np.float32:
            raise CannotPlay(f"{self.name} reads one float32 Box, not {task.observation_space}.")
        space = task.action_space
        if not isinstance(space, self.plays):
            allowed = " and ".join(kind.__name__ for kind in self.plays)
            raise CannotPlay(f"{self.name} plays {allowed} actions, not {space}.")
        if isinstance(space, spaces.Box) and not space.is_bounded():
            raise CannotPlay(f"{self.name} plays bounded Box actions, not {space}.")
        if not isinstance(space, spaces.Box) and np.any(space.start):  # type: ignore[attr-defined]
            raise CannotPlay(f"{self.name} counts actions from zero, but {space} does not.")

    def hyperparameters(self, task: Task[Any, Any], budget: str) -> dict[str, Any]:
        """Return the hyperparameters of the files, as plain data.

        Raises:
            ValueError: the file names an unknown hyperparameter, or the budget does not exist.
        """
        table = yaml.safe_load(HYPERPARAMETERS.read_text())[self.name]
        default = {"total_steps": training_steps(task.card, budget)} | table["default"]
        values = (
            default | self._settings_of_counterpart(task) | table.get(task.card.registered_id, {})
        )
        for name, value in values.items():
            if name not in default:
                raise ValueError(unknown("hyperparameter", name, default))
            if isinstance(value, dict):
                values[name] = value[budget]
        return values

    def _settings_of_counterpart(self, task: Task[Any, Any]) -> dict[str, Any]:
        """Return what the suite's own agent sets for the task and its family, by SB3's names."""
        table = yaml.safe_load((FOLDER / f"{self.counterpart}.yaml").read_text())
        settings = table.get(task.card.family, {}) | table.get(task.card.registered_id, {})
        return {
            sb3_name: settings[name] for name, sb3_name in self.shared.items() if name in settings
        }

    def train(
        self,
        task: Task[Any, Any],
        *,
        seed: int,
        budget: str,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Iterator[Progress | HostPolicy]:
        """Train on the train split.

        Yields :class:`Progress` about fifteen times and, last, the policy.

        ``hyperparameters`` replace those that the files give for the budget, which are then not
        read.
        """
        self.check(task)
        settings = dict(
            self.hyperparameters(task, budget) if hyperparameters is None else hyperparameters
        )
        arguments = dict(settings)
        total = arguments.pop("total_steps")
        torch.set_num_threads(1)  # a second thread gains nothing with networks this small
        env = SuiteVecEnv(
            make_vec(task.card.id, arguments.pop("n_envs"), autoreset_mode="SameStep")
        )
        start_time = time.perf_counter()
        env.seed(seed)
        env.reset()
        env.step(np.stack([task.noop_action()] * env.num_envs))
        compile_seconds = time.perf_counter() - start_time
        env._returns[:] = 0
        env.finished.clear()

        start_time = time.perf_counter()
        normalize = {
            "norm_obs": arguments.pop("normalize_observations"),
            "norm_reward": arguments.pop("normalize_rewards"),
        }
        normalized = VecNormalize(
            env, **normalize, clip_obs=CLIP, epsilon=EPSILON, gamma=arguments["gamma"]
        )
        model = self.build(normalized, total, arguments, seed)
        steps_per_round = env.num_envs * arguments.get("train_freq", arguments.get("n_steps", 1))
        rounds = -(-total // steps_per_round)
        reports = max(REPORTS, total // MAX_STEPS_PER_REPORT)
        for report in range(1, reports + 1):
            goal = rounds * report // reports * steps_per_round
            if goal > model.num_timesteps:
                model.learn(goal - model.num_timesteps, reset_num_timesteps=report == 1)
            returns = env.finished
            env.finished = []
            yield Progress(
                steps=model.num_timesteps,
                total_steps=rounds * steps_per_round,
                seconds=time.perf_counter() - start_time,
                compile_seconds=compile_seconds,
                episode_return=float(np.mean(returns)) if returns else float("nan"),
            )
        normalization = None
        if normalize["norm_obs"]:
            moments: Any = normalized.obs_rms  # not the dict that a Dict space has
            normalization = Normalization(moments.mean.copy(), moments.var.copy())
        yield SB3Policy(model, task.card.id, settings, normalization)

    def build(self, env: VecEnv, total: int, arguments: dict[str, Any], seed: int) -> Any:
        """Return a new model.

        ``arguments`` has SB3's names; ``net_arch`` and the noise are wrapped.
        """
        arguments = dict(arguments)
        arguments["policy_kwargs"] = {"net_arch": arguments.pop("net_arch")}
        if "action_noise" in arguments:
            shape = env.action_space.shape or ()
            size = arguments.pop("action_noise")
            arguments["action_noise"] = NormalActionNoise(np.zeros(shape), np.full(shape, size))
        return type(self).model("MlpPolicy", env, seed=seed, device="cpu", **arguments)

    def save(self, policy: SB3Policy, path: str) -> None:
        """Write weights and normalisation as safetensors.

        The header names agent, task, hyperparameters and spaces.
        """
        from safetensors.torch import save

        spaces_of = {
            "observation": str(policy.model.observation_space),
            "action": str(policy.model.action_space),
        }
        header = checkpoint.header(self.name, policy.task_id, policy.hyperparameters)
        weights = {
            name: tensor.contiguous() for name, tensor in policy.model.policy.state_dict().items()
        }
        if policy.normalization:
            weights[OBSERVATION_MEAN] = torch.as_tensor(policy.normalization.mean)
            weights[OBSERVATION_VARIANCE] = torch.as_tensor(policy.normalization.variance)
        checkpoint.write_bytes(
            path, save(weights, metadata=header | {"spaces": json.dumps(spaces_of)})
        )

    def load(self, path: str, task: Task[Any, Any], *, budget: str = "smoke") -> SB3Policy:
        """Read a policy from a file of :meth:`save` or from a zip of SB3's ``model.save()``.

        No code in the zip is run.

        ``budget`` chooses the hyperparameters if the file names none.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a policy of this agent for this task, or cannot be read safely.
        """
        self.check(task)
        if zipfile.is_zipfile(path):
            weights, hyperparameters = sb3_zip.read_zip(path)
        else:
            defaults = self.hyperparameters(task, budget)
            hyperparameters = checkpoint.read_plain_config(path, self.name, task.card.id, defaults)
            with safetensors.safe_open(path, framework="pt") as file:
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no dict)
        normalization = read_normalization(path, weights, task.observation_space.shape or ())
        architecture = {
            name: hyperparameters[name] for name in ARCHITECTURE if name in hyperparameters
        }
        architecture = sb3_zip.check_arguments(architecture, path)
        layers = architecture.get("net_arch", [])
        for widths in layers.values() if isinstance(layers, dict) else [layers]:
            checkpoint.refuse_wider(
                path, (int(np.prod(task.observation_space.shape or ())), *widths)
            )
        if "activation_fn" in architecture:
            architecture["activation_fn"] = getattr(torch.nn, architecture["activation_fn"])
        env = SuiteVecEnv(make_vec(task.card.id, 1, autoreset_mode="SameStep"))
        buffer = {"buffer_size": 1} if issubclass(type(self).model, OffPolicyAlgorithm) else {}  # type: ignore[arg-type]
        model = type(self).model(
            "MlpPolicy", env, seed=0, device="cpu", policy_kwargs=architecture, **buffer
        )
        checkpoint.refuse_different_shapes(path, weights, model.policy.state_dict())
        model.policy.load_state_dict(weights)
        return SB3Policy(model, task.card.id, hyperparameters, normalization)


def read_normalization(
    path: str, arrays: dict[str, torch.Tensor], shape: tuple[int, ...]
) -> Normalization | None:
    """Take the moments of the observations out of a file's arrays; None if it has none.

    Raises:
        ValueError: one is missing, has another shape or type, is not finite, or a variance is
            negative.
    """
    moments = {
        name: arrays.pop(name)
        for name in (OBSERVATION_MEAN, OBSERVATION_VARIANCE)
        if name in arrays
    }
    if not moments:
        return None
    for name in (OBSERVATION_MEAN, OBSERVATION_VARIANCE):
        array = moments.get(name)
        if (
            array is None
            or array.dtype != torch.float64
            or tuple(array.shape) != shape
            or not array.isfinite().all()
        ):
            raise ValueError(
                f"{path}: {name} must be finite numbers of type F64 and shape {shape}."
            )
    mean = moments[OBSERVATION_MEAN].numpy()
    variance = moments[OBSERVATION_VARIANCE].numpy()
    if (variance < 0).any():
        raise ValueError(f"{path}: {OBSERVATION_VARIANCE} is negative.")
    return Normalization(mean, variance)


class OnPolicy(SB3):
    """Base of on-policy agents; their learning rate falls linearly to zero."""

    counterpart = "ppo"
    shared: ClassVar[Mapping[str, str]] = {
        "gamma": "gamma", "gae_lambda": "gae_lambda", "entropy": "ent_coef", "hidden": "net_arch"
    }  # fmt: skip
    plays = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)

    def build(self, env: VecEnv, total: int, arguments: dict[str, Any], seed: int) -> Any:
        """Return a new model whose learning rate falls over the whole run.

        Without this it would fall over each call of ``learn()``.
        """
        model = super().build(env, total, arguments, seed)
        rate = arguments["learning_rate"]
        model.lr_schedule = lambda _: rate * max(0.0, 1 - model.num_timesteps / total)
        return model


class SB3PPO(OnPolicy):
    """The agent ``sb3-ppo`` (Schulman et al. 2017)."""

    name = "sb3-ppo"
    model = stable_baselines3.PPO
    shared: ClassVar[Mapping[str, str]] = {**OnPolicy.shared, "learning_rate": "learning_rate"}


class SB3A2C(OnPolicy):
    """The agent ``sb3-a2c`` (Mnih et al. 2016, synchronous)."""

    name = "sb3-a2c"
    model = stable_baselines3.A2C


class SB3DQN(SB3):
    """The agent ``sb3-dqn`` (Mnih et al. 2015)."""

    name = "sb3-dqn"
    model = stable_baselines3.DQN
    counterpart = "dqn"
    plays = (spaces.Discrete,)

    def build(self, env: VecEnv, total: int, arguments: dict[str, Any], seed: int) -> Any:
        """Return a new model whose exploration falls over the whole run.

        Without this it would fall over each call of ``learn()``.
        """
        model = super().build(env, total, arguments, seed)
        initial = model.exploration_initial_eps
        final = model.exploration_final_eps
        steps = model.exploration_fraction * total
        model.exploration_schedule = lambda _: max(
            final, initial + (final - initial) * model.num_timesteps / steps
        )
        return model


class SB3SAC(SB3):
    """The agent ``sb3-sac`` (Haarnoja et al. 2018)."""

    name = "sb3-sac"
    model = stable_baselines3.SAC
    plays = (spaces.Box,)


class SB3TD3(SB3):
    """The agent ``sb3-td3`` (Fujimoto et al. 2018)."""

    name = "sb3-td3"
    model = stable_baselines3.TD3
    plays = (spaces.Box,)


class SB3DDPG(SB3):
    """The agent ``sb3-ddpg`` (Lillicrap et al. 2016)."""

    name = "sb3-ddpg"
    model = stable_baselines3.DDPG
    plays = (spaces.Box,)
