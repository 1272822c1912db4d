"""Leaderboard of archives of actions, which are replayed, and of static pages of verified results.

``pack`` makes an archive of a run. ``verify`` replays it and computes every number again.
``submit`` adds it to a folder of archives. ``build`` writes the pages. SCHEMA.md describes the
archive, and what a check can and cannot prove. Archives come from strangers: they are read within
limits, and nothing in them is executed.
"""
