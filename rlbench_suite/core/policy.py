"""The contract of a player: a pytree with two pure functions.

Learned policies carry their weights as leaves; classical controllers, solvers and scripted players
carry gains or nothing. All run inside the same compiled episode loop (``adapters/rollout.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax

from rlbench_suite.core.task_card import load

if TYPE_CHECKING:
    from rlbench_suite.core.task import Task


class UndeclaredAccess(TypeError):
    """A policy read state or params of a task without declaring that it does."""


class View(NamedTuple):
    """The input of a policy at a step of one episode.

    Learned agents use ``observation`` and ``action_mask`` only. Evaluations hide ``state`` and
    ``params`` from every policy that is not declared privileged (:func:`privileged_player`), and
    mark every score of one that is. A family's own reference player may be privileged, as far as a
    practitioner would know state and params: a controller knows its plant, but the player of a word
    game must not read the hidden word.
    """

    observation: Any
    """An array in the task's observation space, or a dict of such arrays."""
    action_mask: jax.Array | None
    """bool ``(n,)``; None if every action is legal."""
    state: Any
    """The task's ``NamedTuple``."""
    params: Any
    """The task's ``NamedTuple``."""


Player = TypeVar("Player", bound=type)


def privileged_player(player: Player) -> Player:
    """Declare that the policies of a class read state or params.

    Return the class, so that this can be its decorator.

    Classes derived from it are privileged, too. ``privileged = True`` in the class says the same.
    """
    player.privileged = True  # type: ignore[attr-defined]
    return player


def is_privileged(policy: Any) -> bool:
    """Return True if a policy is declared to read state or params."""
    return bool(getattr(policy, "privileged", False))


class Hidden:
    """Stands for state or params where a policy may not read them.

    Every use raises :class:`UndeclaredAccess`.
    """

    def _refuse(self, *_: Any) -> Any:
        raise UndeclaredAccess(
            "The policy reads the state or params of the task, which agents do not see: use "
            "view.observation and view.action_mask only. A policy that has to read them declares "
            "it by the attribute privileged = True, and tables then mark its scores."
        )

    def __getattr__(self, name: str) -> Any:
        """Refuse every name but those by which Python looks for optional protocols of an object."""
        if name.startswith("__") and name != "__jax_array__":
            raise AttributeError(name)
        self._refuse()

    __getitem__ = __iter__ = __len__ = __bool__ = __array__ = __eq__ = __hash__ = _refuse


HIDDEN = Hidden()


class Unprivileged(NamedTuple):
    """Policy whose view has neither state nor params."""

    policy: Any

    def initial(self, params: Any) -> Any:
        """Return the policy's first memory, which it makes without params."""
        return self.policy.initial(HIDDEN)

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the policy's action for what it may see."""
        action, next_memory = self.policy.act(
            memory, view._replace(state=HIDDEN, params=HIDDEN), key
        )
        return action, next_memory


def restrict_view(policy: Any) -> Any:
    """Return a policy that reads state and params only if its class is declared privileged.

    It acts like the given one, and is the given one if that is declared.
    """
    return policy if is_privileged(policy) else Unprivileged(policy)


def no_memory(self: Any, params: Any) -> tuple[()]:
    """Return an empty memory: the method ``initial`` of players that remember nothing.

    A class has it by ``initial = no_memory``.
    """
    return ()


def reference_player(task: Task[Any, Any]) -> Policy:
    """Return the family's own player of a task.

    The method ``for_task`` of the class that its card names makes it.

    Raises:
        ValueError: the task has none.
    """
    if not task.card.reference:
        raise ValueError(f"{task.card.id} has no reference player.")
    return player_for(task, task.card.reference)


def player_for(task: Task[Any, Any], entry_point: str) -> Policy:
    """Return the player that a class ``module:Class`` makes for a task.

    The class has a method ``for_task``. The player of a task that is shown with several objectives
    is made for the plain one, whose observations and actions are the same.

    Raises:
        ValueError: there is no such class, or it lacks that method.
    """
    player_class = load(entry_point)
    if not hasattr(player_class, "for_task"):
        raise ValueError(
            f"The player {entry_point} of {task.card.id} lacks the class method for_task(task), "
            "which makes it."
        )
    player: Policy = player_class.for_task(task.task_of_players)
    return player


@runtime_checkable
class Policy(Protocol):
    """A pytree (NamedTuple or ``equinox.Module``) with these two methods.

    ``memory`` is a pytree of arrays.

    An optional attribute ``privileged`` is True if it reads ``params``, or the state or params of a
    view.
    """

    def initial(self, params: Any) -> Any:
        """Return the memory at the start of an episode (``()`` for a memoryless policy)."""
        ...

    def act(self, memory: Any, view: View, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action and the next memory."""
        ...


@runtime_checkable
class PolicySet(Policy, Protocol):
    """A policy that can also play for other weights of the objectives than those of the card.

    An evaluation then measures the front of its returns.
    """

    def for_weights(self, weights: jax.Array) -> Policy:
        """Return the policy for weights ``(k,)``, which are not negative and whose sum is 1.

        This is a pure function, to be traced: policies for different weights differ only by the
        values of their arrays.
        """
        ...


@runtime_checkable
class FinitePolicySet(PolicySet, Protocol):
    """A set of finitely many policies, some of which may be best for no weights at all."""

    @property
    def members(self) -> jax.Array:
        """Arguments of :meth:`for_member`, one for each of the n policies, ``(n,)``."""
        ...

    def for_member(self, member: jax.Array) -> Policy:
        """Return one of the policies, as :meth:`for_weights` does."""
        ...


@runtime_checkable
class StochasticPolicy(Policy, Protocol):
    """A policy without memory for one discrete choice, which tells how likely each action is."""

    def action_probabilities(self, view: View) -> jax.Array:
        """Return the probability of each action, ``(n,)``."""
        ...


@runtime_checkable
class MixedPolicy(Policy, Protocol):
    """A policy that samples one of finitely many policies in each episode and plays it."""

    def mixture(self) -> list[tuple[float, Policy]]:
        """Return the policies that it may sample, each with its probability."""
        ...


class ActingParameters(NamedTuple):
    """Parameters of a policy that is a multilayer perceptron.

    ``policy.acting_parameters()`` may give them.

    Exporters read them (``evaluation/deploy/network.py``). A layer is an object with ``weight``
    ``(n, m)`` and ``bias`` ``(m,)``.
    """

    moments: Any
    """Object with ``mean`` and ``scale``, the variance; both ``(features,)``.

    They normalise each feature.
    """
    layers: Sequence[Any]
    """Layers from the normalised observation, and what the memory adds to it, to the outputs."""
    activation: Literal["tanh", "relu"]
    """Activation between the layers."""
    choices: tuple[int, ...] = ()
    """Number of values of each discrete choice, whose logits are the outputs.

    It is empty for a continuous action.
    """
    bounds: tuple[Any, Any] | None = None
    """Lowest and highest continuous action.

    Outputs of -1 and 1 stand for them, and all are clipped to them.
    """
    squashed: bool = False
    """True if a tanh of the outputs comes before the bounds."""
    sampled: bool = False
    """True if the policy samples its action, where an export takes the most likely one."""
    memory: str = "none"
    """Recurrent unit in front of the layers: gru, lstm or mingru.

    It appends its reading to the observation.
    """
    memory_layers: Sequence[Any] = ()
    """Layers of that unit: of its inputs and, but for mingru, of its recurrence."""
    action_features: Any = None
    """Features of each action, ``(actions, F)``, or None.

    With them, the outputs are F numbers, and the logits are their products with these features.
    """
    direct: Any = None
    """Weights ``(features, F)`` of a linear path from the observation to those F numbers."""
    action_bias: Any = None
    """Bias of each action's logit."""
