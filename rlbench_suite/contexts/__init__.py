"""Texts that a user writes and the suite reads: contexts, records, documents and numbers."""
