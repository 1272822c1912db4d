"""The command line: ``rlsuite`` and ``rlsuite-eval``."""
