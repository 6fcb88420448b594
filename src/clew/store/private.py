"""Folders and files of a store, for their owner only, whatever the process's umask is.

A store holds rows, so its folder is made for the one who makes it. What is made below is open to
whom the folder above it is open: who opens a store to a group, with `chmod -R g+rX`, has to do so
once. What Spark's executors write has the mode that Spark gives it; it lies in a closed folder.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = 0o700
_READ_AND_WRITE = 0o666
_OWNERS = 0o600


def make_root(root: Path) -> None:
    """Make the folder of a new store, or close an empty one that is there."""
    with suppress(FileExistsError):
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=_FOLDER)
    if root.stat().st_uid == os.geteuid():
        root.chmod(_FOLDER)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each as open as the one that it is in."""
    if folder.is_dir():
        return
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    mode = _mode(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(mode=mode)
        folder.chmod(mode)


def open_new(path: Path, *, closed: bool = False) -> IO[str]:
    """Open a new text file for writing, as open as its folder is, or for its owner only.

    Raises:
        FileExistsError: There is such a file.
    """
    mode = _mode(path.parent) & (_OWNERS if closed else _READ_AND_WRITE)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "w", encoding="utf-8")


def _mode(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode) & 0o777
