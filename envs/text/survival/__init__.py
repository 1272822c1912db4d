"""An open world of needs, creatures and nights: its rules, its task and its players."""
