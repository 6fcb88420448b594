"""Where things are in a store: names, paths and the format number.

Only names and paths, and the one small file that says what the folder is: the writing side and the
reading side both come here, so that a path is spelled in one place. The layout is described in
`docs/reference/store.md`.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit
from urllib.request import url2pathname

from clew.exceptions import NotAStoreError, StoreError, StoreVersionError

FORMAT = 2
"""The format of stores that this version reads and writes."""

HEADER = "clew.json"
SECRET = "secret"  # noqa: S105 (the name of a field)
"""The field of the header with what row ids are hashed with."""

STREAMS = "streams"
BATCHES = "batches"
EDGES = "edges"
ROWS = "rows"
UNFOLDED = "unfolded"
POINTS = "points"
ASSERTED = "asserted"
ASSERTIONS = "assertions"

MOST_BYTES = 64 << 20
"""The longest JSON file that is read."""
MOST_NESTED = 200
"""How deep objects and lists may lie in one another in such a file."""

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_BATCH = re.compile(r"([0-9a-f]{8})-([0-9]{10,18})")
_PART = 8
_UNFOLDING = re.compile(r"([0-9a-f]{8})-([0-9]{10,18})-([0-9]{10,18}|[0-9a-f]{8})")


def quote_name(name: str) -> str:
    """Turn the name of a stream into the name of a file or folder.

    Examples:
        >>> quote_name("stopped cars/v2")
        'stopped%20cars%2Fv2'
        >>> quote_name("..")
        '%2E.'
    """
    if not name:
        msg = "a stream needs a name; got an empty one"
        raise ValueError(msg)
    quoted = quote(name, safe="").replace("~", "%7E")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def unquote_name(quoted: str) -> str:
    """Give back the name that `quote_name` turned into a file or folder name.

    Examples:
        >>> unquote_name("stopped%20cars%2Fv2")
        'stopped cars/v2'
    """
    return unquote(quoted, errors="strict")


def batch_folder(run: str, number: int) -> str:
    """Name the folder of a batch, which is also the stem of its commit file.

    Examples:
        >>> batch_folder("3f2a90bc", 7)
        '3f2a90bc-0000000007'
    """
    return f"{run}-{number:010d}"


def parse_batch_folder(folder: str) -> tuple[str, int] | None:
    """Read run and number from a batch's name, or `None` if it is no such name.

    Examples:
        >>> parse_batch_folder("3f2a90bc-0000000007")
        ('3f2a90bc', 7)
        >>> parse_batch_folder(".3f2a90bc-0000000007.tmp") is None
        True
    """
    match = _BATCH.fullmatch(folder)
    return (match[1], int(match[2])) if match else None


def unfolding_folder(run: str, first: int, last: int | str) -> str:
    """Name the folder of an unfolding, which is also the stem of its commit file.

    Args:
        run: The run whose batches were unfolded.
        first: The first of them.
        last: The last of them; or, if only some rows were unfolded, a name of eight hex digits.

    Examples:
        >>> unfolding_folder("3f2a90bc", 7, 9)
        '3f2a90bc-0000000007-0000000009'
    """
    end = f"{last:010d}" if isinstance(last, int) else last
    return f"{run}-{first:010d}-{end}"


def parse_unfolding_folder(folder: str) -> tuple[str, int, int | str] | None:
    """Read run, first and last from an unfolding's name, or `None` if it is no such name.

    Examples:
        >>> parse_unfolding_folder("3f2a90bc-0000000007-0000000009")
        ('3f2a90bc', 7, 9)
        >>> parse_unfolding_folder("3f2a90bc-0000000007") is None
        True
    """
    match = _UNFOLDING.fullmatch(folder)
    if not match:
        return None
    last = match[3]
    return match[1], int(match[2]), last if len(last) == _PART else int(last)


def store_root(path: str | os.PathLike[str]) -> Path:
    """Return the store's folder as an absolute path.

    Raises:
        StoreError: The path is on another machine, which this version cannot read.
    """
    text = os.fspath(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        text = url2pathname(parts.path)
    elif "://" in text:
        msg = (
            f"`{text}` is not a path on this machine; a store is read from a local or mounted "
            "folder.\n\nMount or copy the folder, and name it by its path, e.g. `/data/prov`."
        )
        raise StoreError(msg)
    return Path(text).resolve()


def header_file(root: Path) -> Path:
    """Return the file that makes a folder a store."""
    return root / HEADER


def streams_folder(root: Path) -> Path:
    """Return the folder with one file per stream."""
    return root / STREAMS


def stream_file(root: Path, stream: str) -> Path:
    """Return the file with the static part of a stream."""
    return root / STREAMS / f"{quote_name(stream)}.json"


def batches_folder(root: Path, writer: str) -> Path:
    """Return the folder with one file per batch that a writer committed."""
    return root / BATCHES / quote_name(writer)


def batch_file(root: Path, writer: str, run: str, number: int) -> Path:
    """Return the file whose presence commits a batch."""
    return batches_folder(root, writer) / f"{batch_folder(run, number)}.json"


def edges_folder(root: Path, writer: str, batch: str) -> Path:
    """Return the folder with the edges of a batch or an unfolding."""
    return root / EDGES / quote_name(writer) / batch


def rows_folder(root: Path, writer: str, batch: str, stream: str) -> Path:
    """Return the folder with the rows of one stream in a batch or an unfolding."""
    return root / ROWS / quote_name(writer) / batch / quote_name(stream)


def unfolded_folder(root: Path, writer: str) -> Path:
    """Return the folder with one file for each committed unfolding of a writer's batches."""
    return root / UNFOLDED / quote_name(writer)


def asserted_folder(root: Path, writer: str) -> Path:
    """Return the folder with one file for each committed round of a writer's assertions."""
    return root / ASSERTED / quote_name(writer)


def assertions_folder(root: Path, writer: str, name: str, stream: str) -> Path:
    """Return the folder with the assertions of one stream in a round."""
    return root / ASSERTIONS / quote_name(writer) / name / quote_name(stream)


def point_folder(root: Path, writer: str, source: str) -> Path:
    """Return the folder of a connection point: what a query keeps of a source for a while."""
    return root / POINTS / quote_name(writer) / quote_name(source)


def read_json(path: Path) -> Any:
    """Read a JSON file of a store.

    Raises:
        FileNotFoundError: There is no such file.
        NotADirectoryError: A part of the path is a file.
        StoreError: The file cannot be read or is not JSON.
    """
    try:
        return _parsed(path)
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        msg = (
            f"`{path}` is not valid JSON ({error}), so the store is damaged.\n\n"
            "Restore the file from a backup, or write provenance to a new place."
        )
        raise StoreError(msg) from error


def _parsed(path: Path) -> Any:
    """Parse a file as strict JSON: no NaN, no halves of characters, no bottomless nesting."""
    with _regular(path) as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        msg = f"it has more than {MOST_BYTES:,} bytes"
        raise ValueError(msg)
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    if text.count(b"[") + text.count(b"{") > MOST_NESTED:
        _refuse_depth(value)
    if _SURROGATE.search(text):
        json.dumps(value, ensure_ascii=False).encode()  # fails for half a character
    return value


class _NotRegularError(OSError):
    """A pipe, a device or a folder is where a file should be."""


def _regular(path: Path) -> IO[bytes]:
    """Open a regular file, and wait for nobody to write into a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        msg = "it is no regular file, so the store is damaged"
        raise _NotRegularError(msg)
    return os.fdopen(descriptor, "rb")


def _refuse_constant(found: str) -> float:
    msg = f"{found} is no number"
    raise ValueError(msg)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        msg = f"{digits[:20]} is too large"
        raise ValueError(msg)
    return value


def _refuse_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        if depth > MOST_NESTED:
            msg = f"it is nested more than {MOST_NESTED} deep"
            raise ValueError(msg)
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]


def unreadable(path: Path | str, error: OSError) -> StoreError:
    """Say that the operating system does not let us read something, and what to do."""
    why = error.strerror or str(error)
    todo = "Check the path and the disk, then ask again."
    if isinstance(error, _NotRegularError):
        todo = "Restore the file from a backup, or write provenance to a new place."
    if isinstance(error, PermissionError):
        todo = (
            "Let the user who runs this read the store, e.g. `chmod -R a+rX` on its folder, or run "
            "as the user who wrote it."
        )
    return StoreError(f"cannot read `{path}`: {why}.\n\n{todo}")


def check_store(root: Path) -> dict[str, Any]:
    """Check that a folder is a store in our format, and return what its header says.

    Raises:
        NotAStoreError: The folder is missing, or is no store.
        StoreVersionError: Another version of clew wrote it.
        StoreError: It cannot be read.
    """
    try:
        header = read_json(header_file(root))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotAStoreError(str(root), _what_is_there(root)) from error
    found = header.get("format") if isinstance(header, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise NotAStoreError(str(root), f"its `{HEADER}` has no format number.")
    if found != FORMAT:
        raise StoreVersionError(str(root), found, FORMAT)
    return dict(header)


def is_store(path: str | os.PathLike[str]) -> bool:
    """Tell whether a folder is a store, in whatever format."""
    return header_file(Path(path)).exists()


def _what_is_there(root: Path) -> str:
    if not root.exists():
        return "there is no such folder."
    if not root.is_dir():
        return "it is a file, not a folder."
    return f"the folder has no `{HEADER}`."
