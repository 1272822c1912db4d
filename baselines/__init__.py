"""Baseline agents: one readable file an algorithm, hyperparameters as data.

An algorithm file reads from top to bottom: configuration, networks, loss or update, training.
Behind it stand ``flat_task.py`` (a task as networks see it), ``networks.py`` (layers and
distributions of actions) and either ``training.py`` (``ppo``) or the loop of its folder
(``replay/replay_agent.py``, ``offline/offline_agent.py``).
"""
