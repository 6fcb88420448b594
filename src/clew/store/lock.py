"""One process at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.store.inside import refuse_link
from clew.store.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCK = ".lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, waiting for whoever has it.

    Raises:
        StoreError: The lock is a link.
    """
    make_folder(folder)
    refuse_link(folder, _LOCK)
    # Nothing is cut off, and no link is followed: what it leads to is not the store's.
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with os.fdopen(os.open(folder / _LOCK, flags, 0o666), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
