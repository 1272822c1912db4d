"""Export policies for other machines."""
