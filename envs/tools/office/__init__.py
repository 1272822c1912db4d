"""OfficeApps: nine apps of a user, their APIs, and instructions to carry out with them."""
