"""Examine single policies, tasks and runs."""
