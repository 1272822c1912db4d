"""A kitchen that two cooks share: its layouts, its rules, the task and its reference player."""
