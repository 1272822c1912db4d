"""SAT and puzzles: seeded generators, verifiers that check rules, exact difficulty."""
