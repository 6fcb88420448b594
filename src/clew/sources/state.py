"""What identifies the state of the files that a batch read, and what has become of them since.

A commit names each file with its length, the time of its last change as Spark's source log has it,
and the time at which the file system last touched its entry, which nobody can set back. Whatever
reads the files again compares: a file that differs is not what the batch read.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from clew.exceptions import SourceChangedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOG = "logOffset"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as a batch found it; None where that is not known.

    Attributes:
        length: Its length in bytes.
        modified_ms: When its content was last changed, in milliseconds.
        changed_ns: When the file system last changed anything of it, in nanoseconds.
        span: The first and the last event time in it, in microseconds; empty if it has no rows.
    """

    length: int | None
    modified_ms: int | None
    changed_ns: int | None = None
    span: tuple[int, ...] | None = None


def state_from(said: Sequence[Any]) -> FileState:
    """Read a state that a commit holds.

    Raises:
        TypeError: It is none.
    """
    length, modified_ms, changed_ns, *more = said
    span = more[0] if more else None
    return FileState(length, modified_ms, changed_ns, None if span is None else tuple(span))


def is_local(path: str) -> bool:
    """Tell whether a path of Spark's is on this machine."""
    return urlsplit(path).scheme in ("", "file")


def normal_path(path: str) -> str:
    """Spell a file's path as row ids do.

    Examples:
        >>> normal_path("file:///data/a.parquet")
        'file:/data/a.parquet'
    """
    return "file:/" + path[8:] if path.startswith("file:///") else path


def state_now(path: str) -> FileState | None:
    """Look at a local file; None if it is not there."""
    try:
        stat = Path(unquote(urlsplit(path).path)).stat()
    except OSError:
        return None
    return FileState(stat.st_size, stat.st_mtime_ns // 1_000_000, stat.st_ctime_ns)


def find_change(path: str, before: FileState) -> str | None:
    """Say what has become of a file since a batch read it; None if it is as it was."""
    if not is_local(path):
        return None
    now = state_now(path)
    if now is None:
        return "is gone"
    pairs = (
        (before.length, now.length),
        (before.modified_ms, now.modified_ms),
        (before.changed_ns, now.changed_ns),
    )
    if all(old is None or old == new for old, new in pairs):
        return None
    at = dt.datetime.fromtimestamp((now.changed_ns or 0) / 1e9, dt.timezone.utc)
    return f"was rewritten or replaced at {at:%Y-%m-%d %H:%M:%S} UTC"


def refuse_changed(states: Mapping[str, FileState], batches: Mapping[str, int]) -> None:
    """Refuse to take files for those that batches read if they are others by now.

    Args:
        states: The files, as the batches found them.
        batches: The batch that read each file, where it is known.

    Raises:
        SourceChangedError: One of them has changed.
    """
    for path, before in sorted(states.items()):
        change = find_change(path, before)
        if change is not None:
            name = unquote(path).rsplit("/", 1)[-1]
            by = f", after batch {batches[path]} had read it" if path in batches else ""
            what = f"{name} {change}{by}"
            raise SourceChangedError(what)


def files_of_batch(checkpoint: str, batch: int) -> dict[str, FileState]:
    """Look at the files that a batch reads, as Spark's own source logs list them."""
    ends, before = _ends(checkpoint, batch), _ends(checkpoint, batch - 1)
    found: dict[str, FileState] = {}
    for folder in sorted(Path(checkpoint).glob("sources/*")):
        number = int(folder.name) if folder.name.isdigit() else -1
        if not 0 <= number < len(ends) or ends[number] is None:
            continue
        first = before[number] if number < len(before) else None
        low, high = -1 if first is None else first, ends[number] or 0
        for entry in _entries(folder, low, high):
            path = normal_path(str(entry["path"]))
            now = state_now(path) if is_local(path) else None
            listed = FileState(None, int(entry["timestamp"]))
            if now is not None:
                listed = FileState(now.length, listed.modified_ms, now.changed_ns)
            found[path] = listed
    return found


def input_digest(checkpoint: str, batch: int) -> str | None:
    """Digest what a batch reads: how far in each source, and which files; None if nothing says."""
    offsets = _offsets(checkpoint, batch)
    if not offsets:
        return None
    files = {path: each.modified_ms for path, each in files_of_batch(checkpoint, batch).items()}
    text = json.dumps([offsets, files], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _ends(checkpoint: str, batch: int) -> list[int | None]:
    """Read how far a batch goes in the log of each source; None where a source has no such log."""
    return [_log_offset(line) for line in _offsets(checkpoint, batch)]


def _offsets(checkpoint: str, batch: int) -> list[str]:
    """Read the line for each source in Spark's plan of a batch."""
    try:
        text = (Path(checkpoint) / "offsets" / str(batch)).read_text(encoding="utf-8")
    except OSError:
        return []
    return text.splitlines()[2:]


def _log_offset(line: str) -> int | None:
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return int(said[_LOG]) if isinstance(said, dict) and _LOG in said else None


def _entries(folder: Path, low: int, high: int) -> list[dict[str, Any]]:
    """Read the entries of a source's log after one offset, up to another."""
    found: dict[str, dict[str, Any]] = {}
    for number in range(low + 1, high + 1):
        path = folder / str(number)
        path = path if path.exists() else folder / f"{number}.compact"
        try:
            lines: Sequence[str] = path.read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        for line in lines:
            entry = json.loads(line) if line.startswith("{") else {}
            if "path" in entry and low < int(entry["batchId"]) <= high:
                found[entry["path"]] = entry
    return list(found.values())
