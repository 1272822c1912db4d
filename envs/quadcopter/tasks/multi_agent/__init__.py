"""Tasks of many vehicles, their cards, reference players and measured scores."""
