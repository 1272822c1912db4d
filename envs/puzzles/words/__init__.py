"""Texts: ciphers, a crossword, and programs that rewrite symbols."""
