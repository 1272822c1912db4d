"""Verified results side by side: archives of a run's actions, their replay, static pages.

``pack`` makes an archive of a run, ``verify`` replays it and computes every number anew, ``submit`` puts it with the
others, ``build`` makes pages of what was verified. SCHEMA.md says what an archive holds and what a check can and cannot
tell. Archives are foreign data: they are read within limits and nothing in them is executed.
"""
