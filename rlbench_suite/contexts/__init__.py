"""What a user writes and the suite reads: contexts, records, documents, numbers and names."""
