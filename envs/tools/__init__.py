"""Worlds behind APIs: look up, act, and change nothing else; the final state decides."""
