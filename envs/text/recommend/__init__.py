"""Recommendation: questions about a customer's taste at a cost, then an item."""
