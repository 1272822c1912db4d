"""Text games whose structured core and text view are one and the same instance."""
