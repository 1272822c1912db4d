"""Task families: one folder each.

A family knows its domain and nothing of agents or leaderboards.
"""
