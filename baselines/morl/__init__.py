"""Agents that learn a set of policies, one for each preference among several objectives."""
