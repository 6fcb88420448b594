"""What identifies the state of the files that a batch read, and what has become of them since.

A commit names each file with its length, the time of its last change as Spark's source log has it,
and the time at which the file system last touched its entry, which nobody can set back. Whatever
reads the files again compares: a file that differs is not what the batch read. Files on other
machines are looked at through Spark, which tells their length and the time of their last change.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from clew.exceptions import SourceChangedError
from clew.plan.sql import quiet

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import SparkSession

_LOG = "logOffset"
_PATTERN = re.compile(r"([\[\]{}*?\\])")


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


def literal_path(path: str) -> str:
    """Spell a file's path so that Spark's reader takes it as it is.

    Spark writes down paths percent-encoded and reads them as patterns.

    Examples:
        >>> literal_path("file:/data/stream%205/a.parquet")
        'file:/data/stream 5/a.parquet'
    """
    return _PATTERN.sub(r"\\\1", unquote(path))


def states_elsewhere(spark: SparkSession, paths: Collection[str]) -> dict[str, FileState]:
    """Look at the files that are not on this machine; those that are gone are left out."""
    wanted = sorted(path for path in paths if not is_local(path))
    if not wanted:
        return {}
    try:
        with quiet():
            return _listed(spark, wanted)
    except AnalysisException:
        # Spark names one file that is gone and lists none of the others.
        middle = len(wanted) // 2
        parts = (wanted[:middle], wanted[middle:]) if middle else ()
        return {path: now for part in parts for path, now in states_elsewhere(spark, part).items()}


def _listed(spark: SparkSession, paths: Sequence[str]) -> dict[str, FileState]:
    # Of this format Spark opens no file unless its content is asked for. Partitions are not
    # guessed: files of several tables may be among them.
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    names = ("file_path", "file_size", "file_modification_time")
    path, size, modified = (F.col(f"_metadata.{name}") for name in names)
    files = reader.load([literal_path(each) for each in paths])
    rows = files.select(path, size, F.unix_millis(modified)).collect()
    return {str(path): FileState(size, modified_ms) for path, size, modified_ms in rows}


def find_change(before: FileState, now: FileState | None) -> str | None:
    """Say what has become of a file since a batch read it; None if it is as it was."""
    if now is None:
        return "is gone"
    pairs = (
        (before.length, now.length),
        (before.modified_ms, now.modified_ms),
        (before.changed_ns, now.changed_ns),
    )
    if all(old is None or old == new for old, new in pairs):
        return None
    seconds = (now.modified_ms or 0) / 1e3 if now.changed_ns is None else now.changed_ns / 1e9
    at = dt.datetime.fromtimestamp(seconds, dt.timezone.utc)
    return f"was rewritten or replaced at {at:%Y-%m-%d %H:%M:%S} UTC"


def refuse_changed(
    spark: SparkSession, states: Mapping[str, FileState], batches: Mapping[str, int]
) -> None:
    """Refuse to take files for those that batches read if they are others by now.

    Args:
        spark: The session to look with at files on other machines.
        states: The files, as the batches found them.
        batches: The batch that read each file, where it is known.

    Raises:
        SourceChangedError: One of them has changed.
    """
    compared = {path: state for path, state in states.items() if is_local(path) or _is_known(state)}
    elsewhere = states_elsewhere(spark, compared)
    for path, before in sorted(compared.items()):
        now = state_now(path) if is_local(path) else elsewhere.get(path)
        change = find_change(before, now)
        if change is not None:
            name = unquote(path).rsplit("/", 1)[-1]
            by = f", after batch {batches[path]} had read it" if path in batches else ""
            what = f"{name} {change}{by}"
            raise SourceChangedError(what)


def _is_known(state: FileState) -> bool:
    return state.length is not None or state.modified_ms is not None


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
