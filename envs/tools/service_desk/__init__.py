"""A shop with a policy, and customers who want something."""
