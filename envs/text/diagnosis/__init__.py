"""Diagnosis: symptoms and tests at a cost, then the name of the disease."""
