"""Weather outside and prices, synthetic or recorded."""
