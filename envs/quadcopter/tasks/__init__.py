"""Tasks of one vehicle, their cards, reference players and measured scores."""
