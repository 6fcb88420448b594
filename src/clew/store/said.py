"""What the JSON files of a store say, read as what they are: one reader for each kind.

Whoever reads a file of a store comes here and gets values of the types that the reference names, or
a `StoreError` with the name of the file. So the rest of clew need not ask what a store might hold
instead: a text for a number, a step that comes before itself, a file somewhere else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreError
from clew.model import EDGES_COME
from clew.store.inside import refuse_link
from clew.store.layout import (
    parse_unfolding_folder,
    read_json,
)
from clew.store.shapes import (
    MisfitError,
    Shape,
    both,
    count,
    file,
    flag,
    listed,
    mapped,
    maybe,
    misfit,
    moment,
    name,
    real,
    record,
    row,
    text,
    whole,
)

if TYPE_CHECKING:
    from pathlib import Path

_MOST_NESTED = 60
_TYPE = re.compile(r"[\w :,.()]+")


def _anything(value: Any, at: str) -> None:
    """Take any value: it is looked at where it is used."""


def _nested(kind: Any, at: str, depth: int = 0) -> None:
    if depth > _MOST_NESTED:
        msg = f"`{at[:60]}` is nested too deeply"
        raise MisfitError(msg)
    if isinstance(kind, str):
        if not _TYPE.fullmatch(kind):
            raise misfit(at, kind, "a type")
        return
    inside = {"array": ("elementType",), "map": ("keyType", "valueType"), "struct": ()}
    said = kind.get("type") if isinstance(kind, dict) else None
    if not isinstance(said, str) or said not in inside:
        # A type of the user's own (`udt`) would name a Python class, or hold a pickled one.
        raise misfit(at, kind if said is None else said, "a type of Spark's own")
    for part in inside[said]:
        if part not in kind:
            msg = f"it has no '{part}' in `{at}`"
            raise MisfitError(msg)
        _nested(kind[part], f"{at}.{part}", depth + 1)
    if said == "struct":
        listed(record({"name": text, "type": _anything}, {"metadata": maybe(mapped(_anything))}))(
            kind.get("fields"), f"{at}.fields"
        )
        for number, each in enumerate(kind["fields"]):
            _nested(each["type"], f"{at}.fields[{number}].type", depth + 1)


def spark_type(value: Any, at: str) -> None:
    """Take a type as Spark writes it as JSON, made of Spark's own types only."""
    _nested(value, at)


def spark_schema(value: Any, at: str) -> None:
    """Take a schema as Spark writes it as JSON, made of Spark's own types only."""
    if not isinstance(value, dict) or value.get("type") != "struct":
        raise misfit(at, value, "a schema")
    _nested(value, at)


def _any_schema(value: Any, at: str) -> None:
    if value:
        record({}, {"fields": listed(record({"name": text}))})(value, at)
        if "fields" in value:
            spark_schema(value, at)


def _node(value: Any, at: str) -> None:
    needed: dict[str, Shape] = {"kind": text, "label": text, "inputs": listed(count)}
    optional = {"columns": listed(text), "exactness": maybe(text), "names": maybe(mapped(text))}
    record(needed, {**optional, "id": count, "detail": maybe(mapped(_anything))})(value, at)


def _graph(value: Any, at: str) -> None:
    known: dict[str, Shape] = {
        "nodes": listed(_node),
        "sink": maybe(count),
        "sources": maybe(listed(name)),
        "named": maybe(mapped(count)),
    }
    record({}, known)(value, at)
    nodes = value.get("nodes", [])
    for number, node in enumerate(nodes):
        if node.setdefault("id", number) != number:
            raise misfit(f"{at}.nodes[{number}].id", node["id"], f"{number}, its place")
        # Steps stand in the order in which rows pass them, so none comes after itself.
        late = [each for each in node.get("inputs", []) if each >= number]
        if late:
            raise misfit(f"{at}.nodes[{number}].inputs", late[0], "the number of a step before it")
    ends = {"sink": value.get("sink"), **(value.get("named") or {})}
    for key, end in ends.items():
        if nodes and end is not None and end >= len(nodes):
            raise misfit(f"{at}.{key}", end, "the number of a step")


def _capture(value: Any, at: str) -> None:
    # Taken for another, rows would be asked for edges that they do not have.
    if not isinstance(value, str) or value not in EDGES_COME:
        raise misfit(at, value, f"one of {', '.join(EDGES_COME)}")


def _way(value: Any, at: str) -> None:
    if value not in ("drop", "hash", "redact"):
        raise misfit(at, value, "drop, hash or redact")


_RUN = record(
    {"run": name},
    {
        "checkpoint": maybe(text),
        "started": maybe(moment),
        "graph": maybe(text),
        "pipeline": maybe(text),
        "spark": maybe(text),
    },
)
_BOUND = record(
    {"micros": maybe(whole), "waits": flag, "by_arrival": flag},
    {"why": maybe(listed(text))},
)
_RECORDED = record(
    {"node": count, "time": maybe(text), "same_as": maybe(text), "first": flag},
    {"is_window": maybe(flag)},
)
_PIPELINE = record(
    {},
    {
        "steps": listed(mapped(_anything)),
        "settings": mapped(text),
        "sources": mapped(mapped(_anything)),
        "unstored": listed(record({"step": count, "why": text})),
    },
)
_OF_VERSION: dict[str, Shape] = {
    "exactness": maybe(text),
    "capture": maybe(_capture),
    "why": maybe(text),
    "graph": maybe(_graph),
    "schema": maybe(_any_schema),
    "bounds": maybe(mapped(_BOUND)),
    "pipeline": maybe(_PIPELINE),
    "settings": maybe(mapped(text)),
    "signature": maybe(text),
    "shape": maybe(text),
    "functions": maybe(text),
    "meaning": maybe(text),
    "by_window": maybe(flag),
    "state": maybe(record({"kept": flag, "clears_us": maybe(whole)}, {"carried": maybe(text)})),
}
_STREAM = record(
    {"name": name, "kind": text},
    {
        **_OF_VERSION,
        "version": maybe(text),
        "earlier": maybe(mapped(record({}, _OF_VERSION))),
        "writer": maybe(name),
        "identity": maybe(record({"kind": text}, {"keys": maybe(listed(text))})),
        "event_time": maybe(text),
        "node": maybe(count),
        "sources": maybe(listed(name)),
        "runs": maybe(listed(_RUN)),
        "assertions": maybe(record({"content": text, "streams": mapped(_RECORDED)})),
        "mask": maybe(record({"columns": mapped(_way), "literals": flag})),
    },
)
_COMMIT = record(
    {"committed": moment, "files": listed(file)},
    {
        "writer": text,
        "run": text,
        "batch": count,
        "watermark": maybe(moment),
        "sink_rows": maybe(count),
        "edges": maybe(count),
        "gap": maybe(text),
        "capture": maybe(_capture),
        "watermark_ms": maybe(whole),
        "offsets": maybe(listed(text)),
        "sources": maybe(mapped(_anything)),
        "pruned": maybe(_anything),
        "version": maybe(text),
    },
)
_UNFOLDING = both(
    _COMMIT,
    record({}, {"first": count, "last": count, "part": maybe(text), "pruned": listed(count)}),
)
_KEPT = record(
    {
        "rows": count,
        "files": listed(file),
        "copies": listed(record({"file": file, "a": whole}, {"segment": maybe(text)})),
    }
)
_ROUND = record(
    {"run": text, "first": count, "last": count, "committed": moment, "streams": mapped(_KEPT)},
    {"writer": text, "pruned": maybe(text)},
)
_NOTE = record({"changes": count, "prunings": listed(mapped(_anything))})
_DEFINITION = record(
    {"name": name, "queries": maybe(listed(name))},
    {"engine": text, "results": text, "content": flag},
)
_OPEN = record({"latest": maybe(whole), "segments": listed(row(maybe(text), whole, whole))})
_STEP = record(
    {
        **dict.fromkeys(("step", "at_us", "done"), whole),
        **dict.fromkeys(("vertices", "edges", "labels"), count),
        "taken": mapped(mapped(whole)),
        "reached": mapped(record({"run": text, "batch": whole, "watermark_ms": whole})),
        "moved": mapped(real),
        "late": mapped(maybe(whole)),
        **dict.fromkeys(("left_out", "gaps"), mapped(count)),
        **dict.fromkeys(("idle", "repeating"), listed(text)),
        "open": listed(record({"step": whole, "streams": mapped(_OPEN)})),
    }
)


def read_commit(path: Path) -> dict[str, Any]:
    """Read the file that commits a batch, `<store>/batches/<writer>/<batch>.json`.

    Raises:
        FileNotFoundError: The batch is gone.
        StoreError: The file does not say what a batch file must say.
    """
    root = path.parents[2]
    said = _read(root, path, _COMMIT)
    _refuse_links(root, said["files"])
    return said


def read_unfolding(path: Path) -> dict[str, Any]:
    """Read the file that commits an unfolding, `<store>/unfolded/<writer>/<unfolding>.json`.

    Raises:
        FileNotFoundError: It is gone.
        StoreError: The file does not say what it must say.
    """
    root = path.parents[2]
    said = _read(root, path, _UNFOLDING)
    parsed = parse_unfolding_folder(path.stem)
    if parsed is not None:
        run, first, last = parsed
        said.setdefault("part", last if isinstance(last, str) else None)
        whole_name = {"run": run, "first": first}
        if isinstance(last, int):
            whole_name["last"] = last
        said.setdefault("last", first)
        _refuse_other(path, said, whole_name)
    _refuse_links(root, said["files"])
    return said


def read_round(path: Path) -> dict[str, Any]:
    """Read the file that commits a round of assertions, `<store>/asserted/<writer>/<round>.json`.

    Raises:
        FileNotFoundError: It is gone.
        StoreError: The file does not say what it must say.
    """
    root = path.parents[2]
    said = _read(root, path, _ROUND)
    for kept in said["streams"].values():
        _refuse_links(root, [*kept["files"], *(copy["file"] for copy in kept["copies"])])
    return said


def read_described(path: Path) -> dict[str, Any]:
    """Read the file that describes a stream, `<store>/streams/<stream>.json`.

    Raises:
        FileNotFoundError: The stream is gone.
        StoreError: The file does not describe a stream.
    """
    return _read(path.parents[1], path, _STREAM)


def read_note(path: Path) -> dict[str, Any]:
    """Read `<store>/pruned.json`.

    Raises:
        FileNotFoundError: Nothing was ever pruned.
        StoreError: The file does not say what it must say.
    """
    return _read(path.parent, path, _NOTE)


def read_definition_of(path: Path) -> dict[str, Any]:
    """Read the file that makes a live graph known, `<store>/live/<graph>/graph.json`.

    Raises:
        FileNotFoundError: There is no such graph.
        StoreError: The file does not say what it must say.
    """
    return _read(path.parents[2], path, _DEFINITION)


def read_step(path: Path) -> dict[str, Any]:
    """Read how far a step left a live graph, `<store>/live/<graph>/<folder>/<step>/_step.json`.

    Raises:
        FileNotFoundError: There is no such step.
        StoreError: The file does not say how far a graph has come.
    """
    return _read(path.parents[4], path, _STEP)


def read_point(path: Path) -> int:
    """Read which batch a connection point holds last, `<store>/points/<writer>/<source>/...`.

    Raises:
        FileNotFoundError: It holds none.
        StoreError: The file does not say what it must say.
    """
    batch: int = _read(path.parents[3], path, record({"batch": count}))["batch"]
    return batch


def damaged(path: Path, why: object) -> StoreError:
    """Say that a file of a store is not as it should be."""
    return StoreError(
        f"`{path}` is not as a store's file should be: {why}.\n\n"
        "Restore the file from a backup, or write provenance to a new place."
    )


def _read(root: Path, path: Path, shape: Shape) -> dict[str, Any]:
    refuse_link(root, path.relative_to(root).as_posix())
    said = read_json(path)
    try:
        shape(said, "")
    except MisfitError as error:
        raise damaged(path, error) from error
    found: dict[str, Any] = said
    return found


def _refuse_links(root: Path, files: list[str]) -> None:
    for each in files:
        refuse_link(root, each)


def _refuse_other(path: Path, said: dict[str, Any], wanted: dict[str, Any]) -> None:
    for key, value in wanted.items():
        if said.setdefault(key, value) != value:
            raise damaged(path, f"`{key}` is {said[key]!r}, and its name says {value!r}")
