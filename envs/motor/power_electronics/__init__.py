"""Converters, their interlocking and the supply of their link."""
