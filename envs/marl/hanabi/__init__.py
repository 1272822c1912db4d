"""Hanabi: the cooperative card game in which nobody sees the cards in one's own hand."""
