"""Agents for games of several sides."""
