"""From agents and tasks to numbers with intervals: protocol, runner, store, statistics, report."""
