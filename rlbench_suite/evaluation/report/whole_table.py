"""Print tables of the command line that never cut a number or a name.

Text that does not fit goes on in the next line.
"""

from __future__ import annotations

from typing import Any

import rich.table


class Table(rich.table.Table):
    """A table of Rich. In a narrow terminal Rich would end a long word with an ellipsis."""

    def add_column(self, *args: Any, **keywords: Any) -> None:
        """Add a column whose long words go on in the next line."""
        keywords.setdefault("overflow", "fold")
        super().add_column(*args, **keywords)
