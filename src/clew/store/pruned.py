"""Batches whose provenance was taken out on purpose.

A pruned batch keeps its commit file, changed in one rename: it names no files any more, and says
when it was pruned. What restarts and later unfoldings need stays in it: that the batch was
finished, its watermark and how far it read. The files go afterwards, so a process that dies in
between leaves files that nothing names, and never a commit whose files are gone.

A reader keeps what it has read of commits, since those do not change otherwise. `pruned.json` is
what tells it: whenever that file is another one, everything is read anew.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.steps import reached
from clew.store.commit import put_json
from clew.store.layout import (
    ASSERTIONS,
    EDGES,
    ROWS,
    batch_file,
    batches_folder,
    parse_batch_folder,
    parse_unfolding_folder,
    quote_name,
    unfolded_folder,
)
from clew.store.records import PRUNED, was_pruned
from clew.store.said import read_commit, read_note, read_unfolding

if TYPE_CHECKING:
    from collections.abc import Iterator

NOTE = "pruned.json"
_MOST_NOTED = 100


def signature(root: Path) -> tuple[int, int, int] | None:
    """Return what tells one state of the note from another; None if nothing was ever pruned."""
    try:
        stat = (root / NOTE).stat()
    except FileNotFoundError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


def note(root: Path, done: dict[str, Any] | None = None) -> None:
    """Let every reader look again, and keep what was done once it is done."""
    try:
        said = read_note(root / NOTE)
    except FileNotFoundError:
        said = {"changes": 0, "prunings": []}
    prunings = [*said["prunings"], *([done] if done else [])][-_MOST_NOTED:]
    put_json(root / NOTE, {"changes": said["changes"] + 1, "prunings": prunings})


def mark_batch(root: Path, writer: str, run: str, number: int, at: str) -> bool:
    """Take a batch's files out of its commit; say whether there was such a batch."""
    path = batch_file(root, writer, run, number)
    try:
        said = read_commit(path)
    except FileNotFoundError:
        return False  # its query was begun anew meanwhile
    if said.get("gap") is not None:
        return False
    gone = {"at": at, "files": len(said["files"])}
    put_json(path, {**said, "files": [], "gap": f"{PRUNED}{at[:10]}", "pruned": gone})
    reached("batch pruned", number)
    return True


def pruned_batches(root: Path, writer: str) -> set[tuple[str, int]]:
    """List the batches of a writer that were pruned."""
    found = set()
    for path in batches_folder(root, writer).glob("*.json"):
        key = parse_batch_folder(path.stem)
        if key is not None and was_pruned(read_commit(path)):
            found.add(key)
    return found


def drop_batches(root: Path, writer: str, names: set[str]) -> tuple[int, int]:
    """Remove the folders of batches that are pruned; return how many files and bytes went."""
    files = size = 0
    for kind in (EDGES, ROWS):
        place = root / kind / quote_name(writer)
        for name in sorted(names & _names_in(place)):
            more = drop(place / name)
            files, size = files + more[0], size + more[1]
            reached("files removed", files)
    return files, size


def drop_unlisted(root: Path, writer: str) -> tuple[int, int]:
    """Remove files in the folders of unfoldings that their commits do not name any more."""
    files = size = 0
    for path in sorted(unfolded_folder(root, writer).glob("*.json")):
        said = read_unfolding(path)
        if "pruned" not in said:
            continue
        listed = {root / each for each in said["files"]}
        for kind in (EDGES, ROWS):
            for file in sorted((root / kind / quote_name(writer) / path.stem).rglob("*")):
                if file.is_file() and file not in listed:
                    size += file.stat().st_size
                    files += 1
                    file.unlink()
    return files, size


def clear_unfolded(root: Path, writer: str) -> tuple[int, int]:
    """Remove what an unfolding that is not committed left behind; its lock must be held."""
    files = size = 0
    committed = {p.stem for p in unfolded_folder(root, writer).glob("*.json")}
    for kind in (EDGES, ROWS):
        for folder in sorted((root / kind / quote_name(writer)).glob("*")):
            if parse_unfolding_folder(folder.name) and folder.name not in committed:
                more = drop(folder)
                files, size = files + more[0], size + more[1]
    return files, size


def drop_rounds(root: Path, writer: str, names: set[str]) -> tuple[int, int]:
    """Remove the folders of rounds that are pruned; return how many files and bytes went."""
    files = size = 0
    place = root / ASSERTIONS / quote_name(writer)
    for name in sorted(names & _names_in(place)):
        more = drop(place / name)
        files, size = files + more[0], size + more[1]
    return files, size


def drop(folder: Path) -> tuple[int, int]:
    """Remove a folder; return how many files there were, and their size."""
    sizes = [each.stat().st_size for each in _files_in(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    return len(sizes), sum(sizes)


def _files_in(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


def _names_in(place: Path) -> set[str]:
    try:
        return {each.name for each in os.scandir(place)}
    except FileNotFoundError:
        return set()
