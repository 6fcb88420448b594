"""Paths that a store names, kept inside of it.

A store may come from anybody, so a path in one of its files is a claim: it is taken only if it
leads to a file of the store, by its letters and on the disk. A store has no links: nothing of it is
read, changed or removed through one. Everything that turns such a text into a path comes here.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from clew.exceptions import StoreError
from clew.store.layout import ASSERTIONS, EDGES, ROWS, unquote_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TABLES = (EDGES, ROWS, ASSERTIONS)
"""The folders whose files a commit may name."""

_LEAST_PARTS = {EDGES: 4, ROWS: 5, ASSERTIONS: 5}
_STREAM = 3


def table_file(said: object) -> str:
    """Return a file's name as a commit may give it: relative, below a table, without detours.

    Raises:
        ValueError: It is no such name; the text says why.

    Examples:
        >>> table_file("edges/stopped/3f2a90bc-0000000007/part-0.parquet")
        'edges/stopped/3f2a90bc-0000000007/part-0.parquet'
    """
    if not isinstance(said, str):
        msg = f"a file is named by {type(said).__name__} and not by a text"
        raise ValueError(msg)  # noqa: TRY004 (a text of the store is wrong, not our code)
    parts = said.split("/")
    if "" in parts or "." in parts or ".." in parts or "\0" in said or "\\" in said:
        msg = f"`{said}` lies outside the store"
        raise ValueError(msg)
    if len(parts) < _LEAST_PARTS.get(parts[0], len(parts) + 1):
        msg = f"`{said}` is no file of {', '.join(f'`{each}`' for each in TABLES)}"
        raise ValueError(msg)
    if parts[0] != EDGES and not unquote_name(parts[_STREAM]):
        msg = f"`{said}` is in the folder of no stream"
        raise ValueError(msg)
    return said


def refuse_link(root: Path, path: str) -> None:
    """Refuse a path, relative to a store, that leads through a link, or to a pipe or a device.

    Raises:
        StoreError: It does.
    """
    place = str(root)
    for part in path.split("/"):
        place = f"{place}/{part}"
        try:
            mode = os.lstat(place).st_mode
        except (OSError, ValueError):
            return  # nothing is there, so nothing is read; whoever tries will say so
        if stat.S_ISLNK(mode):
            raise _link(place)
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _special(place)


def store_file(root: Path, said: object) -> Path:
    """Return the path of a file that a commit names.

    Raises:
        StoreError: It lies outside the store, or is reached through a link.
    """
    try:
        name = table_file(said)
    except ValueError as error:
        msg = f"a commit of `{root}` names a file that it may not: {error}.\n\n{_TODO}"
        raise StoreError(msg) from error
    refuse_link(root, name)
    return root / name


def below(folder: Path, said: object) -> Path:
    """Return the path of a file that is named relative to one of a store's folders.

    Raises:
        StoreError: It lies outside the folder, or is reached through a link.
    """
    parts = said.split("/") if isinstance(said, str) else [""]
    if {"", ".", ".."} & {*parts} or "\0" in parts[-1]:
        msg = f"a file in `{folder}` names {said!r}, which is no file there.\n\n{_TODO}"
        raise StoreError(msg)
    refuse_link(folder, "/".join(parts))
    return folder / "/".join(parts)


def refuse_links(root: Path, depth: int | None = None) -> None:
    """Refuse a store that has links, before something in it is changed or removed.

    Args:
        root: The store.
        depth: How many levels of folders are looked at; None for all.

    Raises:
        StoreError: There is a link.
    """
    for link in _links(root, depth):
        raise _link(link)


def _links(root: Path, depth: int | None) -> Iterator[str]:
    level = [str(root)]
    while level and (depth is None or depth > 0):
        below: list[str] = []
        for folder in level:
            for entry in _entries(folder):
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
        level = below
        depth = None if depth is None else depth - 1


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return ()


_TODO = (
    "Do not use the store if it is not your own: somebody may have made it to reach your files. If "
    "it is, copy the files to where the link leads from, or restore it from a backup."
)


def _link(place: str) -> StoreError:
    return StoreError(
        f"`{place}` is a link, and a store has none: it could lead to files that are not the "
        f"store's.\n\n{_TODO}"
    )


def _special(place: str) -> StoreError:
    return StoreError(
        f"`{place}` is no regular file, so the store is damaged: a pipe could be waited for, for "
        "ever.\n\nDo not use the store if it is not your own. If it is, restore the file from a "
        "backup."
    )
