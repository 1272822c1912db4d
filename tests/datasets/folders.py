"""Contents of a folder."""

from pathlib import Path


def visible(root: Path) -> list[str]:
    """List everything in a datasets folder, hidden files included."""
    return (
        sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
        if root.is_dir()
        else []
    )
