"""Make a store, describe its streams, commit its batches.

A file that others may read appears whole or not at all: it is written under another name, flushed
to disk and renamed. A batch is in the store if and only if its commit file is, so that file comes
last.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreConflictError, StoreError
from clew.store.layout import (
    ASSERTIONS,
    EDGES,
    FORMAT,
    ROWS,
    asserted_folder,
    batch_file,
    batches_folder,
    check_store,
    header_file,
    quote_name,
    read_json,
    stream_file,
    unfolded_folder,
    unfolding_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def now() -> str:
    """Return the time as text in UTC."""
    return dt.datetime.now(dt.timezone.utc).isoformat().replace("+00:00", "Z")


def put_json(path: Path, value: object) -> None:
    """Write a JSON file so that it appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.{os.getpid()}.tmp"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_store(root: Path, version: str) -> None:
    """Make a store, or check the one that is there.

    Raises:
        StoreError: The folder holds something else, has another format, or cannot be written.
    """
    if header_file(root).exists():
        check_store(root)
        if not os.access(root, os.W_OK):
            raise _unwritable(root, "permission denied")
        return
    if root.is_dir() and any(root.iterdir()):
        msg = (
            f"`{root}` holds files that are not a clew store, so provenance is not written there."
            "\n\nName a new or empty folder."
        )
        raise StoreConflictError(msg)
    try:
        put_json(header_file(root), {"format": FORMAT, "created": now(), "clew": version})
    except OSError as error:
        raise _unwritable(root, error.strerror or str(error)) from error


def _unwritable(root: Path, why: str) -> StoreError:
    return StoreError(
        f"cannot write provenance to `{root}`: {why}.\n\nName a folder that this user may write, "
        f"or change its permissions, e.g. `chmod u+w {root}`."
    )


@dataclass(frozen=True, slots=True)
class Commit:
    """What one batch put into the store."""

    writer: str
    run: str
    batch: int
    watermark: str | None = None
    sink_rows: int | None = None
    edges: int | None = None
    files: list[str] = field(default_factory=list)
    gap: str | None = None
    capture: str = "sets"
    watermark_ms: int = 0
    offsets: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What one unfolding put into the store: the edges of the rows of some batches.

    Attributes:
        writer: The query.
        run: Its run.
        first: The first batch.
        last: The last batch; all between are unfolded as well.
        part: A name of its own if only some rows of the batches were unfolded; else None.
        edges: How many edges there are.
        files: All files, relative to the store.
    """

    writer: str
    run: str
    first: int
    last: int
    part: str | None = None
    edges: int = 0
    files: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Copied:
    """A file of a source that is kept as it was: row `n` of it is the row `(a, n)`."""

    file: str
    a: int
    segment: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What one round recorded of a stream: how many rows, and the files with their keys."""

    rows: int
    files: list[str] = field(default_factory=list)
    copies: list[Copied] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Asserted:
    """What one round recorded: the keys of the rows that came out in some batches."""

    writer: str
    run: str
    first: int
    last: int
    streams: dict[str, Kept]


def is_committed(root: Path, writer: str, run: str, number: int) -> bool:
    """Tell whether a batch is in the store."""
    return batch_file(root, writer, run, number).exists()


def committed_rows(root: Path, writer: str, run: str, number: int) -> int | None:
    """Return how many rows a batch has, if it is in the store."""
    try:
        said = read_json(batch_file(root, writer, run, number))
    except FileNotFoundError:
        return None
    rows: int | None = said["sink_rows"]
    return rows


def commit(root: Path, batch: Commit) -> None:
    """Put a batch into the store for good."""
    path = batch_file(root, batch.writer, batch.run, batch.batch)
    put_json(path, {**asdict(batch), "committed": now()})


def commit_unfolded(root: Path, done: Unfolded) -> None:
    """Put an unfolding into the store for good."""
    name = unfolding_folder(done.run, done.first, done.part or done.last)
    path = unfolded_folder(root, done.writer) / f"{name}.json"
    put_json(path, {**asdict(done), "gap": None, "sink_rows": None, "committed": now()})


def commit_asserted(root: Path, done: Asserted) -> None:
    """Put a round of assertions into the store for good."""
    name = unfolding_folder(done.run, done.first, done.last)
    path = asserted_folder(root, done.writer) / f"{name}.json"
    put_json(path, {**asdict(done), "committed": now()})


def forget_writer(root: Path, writer: str) -> None:
    """Remove everything that a writer put into the store, commits first."""
    shutil.rmtree(batches_folder(root, writer), ignore_errors=True)
    shutil.rmtree(unfolded_folder(root, writer), ignore_errors=True)
    shutil.rmtree(asserted_folder(root, writer), ignore_errors=True)
    shutil.rmtree(root / EDGES / quote_name(writer), ignore_errors=True)
    shutil.rmtree(root / ASSERTIONS / quote_name(writer), ignore_errors=True)
    shutil.rmtree(root / ROWS / quote_name(writer), ignore_errors=True)


def forget_streams(root: Path, names: Iterable[str], *, whole: bool) -> None:
    """Take back streams that were described for a query which then did not start.

    Args:
        root: The store.
        names: The streams that the store did not know before.
        whole: The store itself was made for that query.
    """
    for name in names:
        stream_file(root, name).unlink(missing_ok=True)
    if whole:
        shutil.rmtree(root, ignore_errors=True)


def read_stream(root: Path, name: str) -> dict[str, Any] | None:
    """Read what the store knows of a stream, if it knows it."""
    try:
        found: dict[str, Any] = read_json(stream_file(root, name))
    except FileNotFoundError:
        return None
    return found


def put_stream(root: Path, stream: dict[str, Any]) -> None:
    """Describe a stream, keeping the runs that are known of it.

    Raises:
        StoreConflictError: The name belongs to a stream of another kind or identity.
    """
    name = stream["name"]
    known = read_stream(root, name)
    if known is None:
        put_json(stream_file(root, name), stream)
        return
    if stream["kind"] == "source":
        if known["kind"] == "source" and known["identity"] != stream["identity"]:
            msg = (
                f"source `{name}` is in the store with another row identity "
                f"({known['identity']['kind']}, now {stream['identity']['kind']}), so old and new "
                f"ids would not match.\n\nGive it another name, or the same identity: "
                f"`clew.trace(df, {name!r}, id=...)`."
            )
            raise StoreConflictError(msg)
        if known["kind"] != "source":
            return  # a sink that feeds another query: its own description says more
    elif known["kind"] == "source" and known["identity"]["kind"] != "clew":
        msg = (
            f"the store has a source `{name}` whose rows do not carry the ids of a query's "
            "results, so the two would be mixed up.\n\nChoose another name for this query or frame."
        )
        raise StoreConflictError(msg)
    elif known["kind"] != "source" and known["writer"] != stream["writer"]:
        msg = (
            f"the store has a stream `{name}` that is filled by `{known['writer']}`.\n\n"
            "Choose another name for this query or frame."
        )
        raise StoreConflictError(msg)
    runs = [*known.get("runs", [])]
    runs += [run for run in stream.get("runs", []) if run["run"] not in {r["run"] for r in runs}]
    put_json(stream_file(root, name), {**stream, "runs": runs})
