"""Pictures of greenhouses."""
