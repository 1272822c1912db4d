"""Text games whose structured view and text view show the same instance."""
