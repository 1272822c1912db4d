"""Drives as tasks, their cards and measured scores."""
