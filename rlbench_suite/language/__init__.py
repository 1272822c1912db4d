"""Tasks as language models meet them: rows that score replies, conversations, and bridges to trainers."""
