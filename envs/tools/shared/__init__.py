"""Declared tools, calls as text, reward modes and pages, which the worlds of tools share."""
