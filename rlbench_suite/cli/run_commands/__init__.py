"""Commands of ``rlsuite-eval``: runs, and what is read from finished ones."""
