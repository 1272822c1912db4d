"""The fighting game of two sides: rules, views, opponents and the reference player."""
