"""Parts that puzzles of several kinds share: contracts,
readers of answers, boards, canonical forms.
"""
