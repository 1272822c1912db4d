"""Agents that train several agents together and let each act by what it observes."""
