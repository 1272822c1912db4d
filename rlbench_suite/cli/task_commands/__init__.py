"""Commands of ``rlsuite`` that have a file of their own."""
