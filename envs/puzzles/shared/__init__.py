"""Parts that several kinds of puzzles share.

They are contracts, readers of answers, boards, and canonical forms.
"""
