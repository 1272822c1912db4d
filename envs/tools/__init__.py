"""Worlds behind APIs: look up, act, and change nothing else; judged by the state they end in."""
