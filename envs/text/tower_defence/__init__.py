"""Tower defence: maps, rules, orders, wording, players."""
