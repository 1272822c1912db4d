"""Compare finished runs and write reports of them."""
