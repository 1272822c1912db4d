"""A disk on which nothing more can be written."""

import errno


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
