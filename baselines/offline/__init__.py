"""Agents that learn from recorded datasets: ``bc`` and ``td3-bc``."""
