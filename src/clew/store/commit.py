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
import uuid
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreConflictError, StoreError
from clew.model import UNNAMED
from clew.plan.mask import Mask, mask_from
from clew.plan.secret import Secret
from clew.store.inside import refuse_links
from clew.store.layout import (
    ASSERTIONS,
    EDGES,
    FORMAT,
    HEADER,
    ROWS,
    SECRET,
    asserted_folder,
    batch_file,
    batches_folder,
    check_store,
    header_file,
    quote_name,
    stream_file,
    unfolded_folder,
    unfolding_folder,
)
from clew.store.private import make_folder, make_root, open_new
from clew.store.said import read_commit, read_described

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def now() -> str:
    """Return the time as text in UTC."""
    return dt.datetime.now(dt.timezone.utc).isoformat().replace("+00:00", "Z")


def put_json(path: Path, value: object, *, replace: bool = True, closed: bool = False) -> None:
    """Write a JSON file so that it appears whole or not at all.

    The draft has a name that nobody else uses, on any thread or machine that shares the folder:
    containers on one volume have equal process ids.

    Args:
        path: The file.
        value: What it says.
        replace: Put it in the place of one that is there.
        closed: Only its owner may read it; else those who may read the folder.

    Raises:
        FileExistsError: There is one, and it is not to be replaced.
    """
    make_folder(path.parent)
    draft = path.parent / f".{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        with open_new(draft, closed=closed) as file:
            json.dump(value, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            os.link(draft, path)  # unlike a rename, this leaves a file that is there alone
            draft.unlink()
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def planned_secret(root: Path) -> Secret:
    """Return the secret of a store, or one for the store that is about to be made there.

    Raises:
        StoreError: There is a store that has no secret, or no store but another thing.
    """
    return store_secret(root) if header_file(root).exists() else Secret.make()


def store_secret(root: Path) -> Secret:
    """Return the secret with which a store's row ids are hashed.

    Raises:
        StoreError: It has none that can be used.
    """
    try:
        return Secret.from_hex(check_store(root)[SECRET])
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"the store `{root}` has no secret to hash row ids with, so rows that are computed now "
            f"would not be found by the ids in it: `{SECRET}` in `{HEADER}` is missing or damaged."
            "\n\nRestore the file from a backup, or write provenance to a new place."
        )
        raise StoreError(msg) from error


def make_store(root: Path, version: str, secret: Secret | None = None) -> None:
    """Make a store, or check the one that is there.

    Args:
        root: Where.
        version: The version of clew that makes it.
        secret: What its row ids are hashed with, if it is made now.

    Raises:
        StoreError: The folder holds something else, has another format, or cannot be written.
    """
    if header_file(root).exists():
        check_store(root)
        refuse_links(root, 2)
        if not os.access(root, os.W_OK):
            raise _unwritable(root, "permission denied")
        return
    if root.is_dir() and any(root.iterdir()):
        msg = (
            f"`{root}` holds files that are not a clew store, so provenance is not written there."
            "\n\nName a new or empty folder."
        )
        raise StoreConflictError(msg)
    header = {
        "format": FORMAT,
        "created": now(),
        "clew": version,
        SECRET: (secret or Secret.make()).to_hex(),
    }
    try:
        make_root(root)
        # Of two that make the store at once one wins, and its secret is the store's.
        put_json(header_file(root), header, replace=False)
    except FileExistsError:
        check_store(root)
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
    capture: str = UNNAMED
    watermark_ms: int = 0
    offsets: list[str] = field(default_factory=list)
    sources: dict[str, Any] = field(default_factory=dict)
    version: str | None = None


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
        gap: Why a batch could not be unfolded; `part` is then a hash of it.
        version: The version of the query that the batches ran with.
    """

    writer: str
    run: str
    first: int
    last: int
    part: str | None = None
    edges: int = 0
    files: list[str] = field(default_factory=list)
    gap: str | None = None
    version: str | None = None


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


def has_batches(root: Path, writer: str) -> bool:
    """Tell whether a store holds any batch of a writer."""
    return any(batches_folder(root, writer).glob("*.json"))


def is_committed(root: Path, writer: str, run: str, number: int) -> bool:
    """Tell whether a batch is in the store."""
    return batch_file(root, writer, run, number).exists()


def committed_rows(root: Path, writer: str, run: str, number: int) -> int | None:
    """Return how many rows a batch has, if it is in the store."""
    try:
        said = read_commit(batch_file(root, writer, run, number))
    except FileNotFoundError:
        return None
    rows: int | None = said.get("sink_rows")
    return rows


def commit(root: Path, batch: Commit) -> None:
    """Put a batch into the store for good."""
    path = batch_file(root, batch.writer, batch.run, batch.batch)
    put_json(path, {**asdict(batch), "committed": now()})


def commit_unfolded(root: Path, done: Unfolded) -> None:
    """Put an unfolding into the store for good."""
    name = unfolding_folder(done.run, done.first, done.part or done.last)
    path = unfolded_folder(root, done.writer) / f"{name}.json"
    put_json(path, {**asdict(done), "sink_rows": None, "committed": now()})


def commit_asserted(root: Path, done: Asserted) -> None:
    """Put a round of assertions into the store for good."""
    name = unfolding_folder(done.run, done.first, done.last)
    path = asserted_folder(root, done.writer) / f"{name}.json"
    put_json(path, {**asdict(done), "committed": now()})


def forget_writer(root: Path, writer: str, *, but: str | None = None) -> None:
    """Remove everything that a writer put into the store, commits first.

    Args:
        root: The store.
        writer: The writer.
        but: A run whose commits stay; it has no files yet.
    """
    for path in batches_folder(root, writer).glob("*.json"):
        if but is None or not path.name.startswith(f"{but}-"):
            path.unlink(missing_ok=True)
    if but is None:
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
        return read_described(stream_file(root, name))
    except FileNotFoundError:
        return None


def stored_mask(root: Path, writer: str) -> Mask:
    """Return what a query that fills a stream keeps otherwise than it is."""
    return mask_from((read_stream(root, writer) or {}).get("mask"))


OF_VERSION = (
    *("graph", "schema", "exactness", "bounds", "capture", "why"),
    *("pipeline", "settings", "signature", "shape", "functions", "meaning", "state", "by_window"),
)
"""What is said of a stream that belongs to one version of its query."""


def put_stream(root: Path, stream: dict[str, Any]) -> None:
    """Describe a stream, keeping the runs and the versions of its query that are known of it.

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
    earlier = _earlier(known, stream.get("version"))
    kept = {"earlier": earlier} if earlier else {}
    put_json(stream_file(root, name), {**stream, "runs": runs, **kept})


def _earlier(known: dict[str, Any], newest: str | None) -> dict[str, Any]:
    """Return what is said of the versions of a query before the newest."""
    earlier = dict(known.get("earlier") or {})
    version = known.get("version")
    if version is not None:
        earlier[version] = {each: known[each] for each in OF_VERSION if each in known}
    earlier.pop(newest or "", None)
    return earlier
