"""Read statements one by one: documents, and whatever the fast way stumbles over.

This is the plain way to read a line, and what decides whether it is sound. The fast way in `parse`
gives up on a whole block when one line in it is odd, and then that block comes here.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clew.prov.words import (
    ACTIVITY,
    EDGE_RELATIONS,
    ELEMENTS,
    END,
    GROUP,
    LETTERS,
    OTHER_RELATIONS,
    THINGS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ENDS = {
    "used": ("activity", "entity"),
    "wasGeneratedBy": ("entity", "activity"),
    "wasDerivedFrom": ("generatedEntity", "usedEntity"),
    "hadMember": ("collection", "entity"),
}
_LEFT_OUT = frozenset((*OTHER_RELATIONS, *THINGS))
_LONGEST = 65_536
_LONGEST_TIME = 64
_ROOM = 16 << 20
"""How many characters the names of a document may have, written out; more if it is long."""
_ROOM_PER_CHARACTER = 20
_READ_OF_MEMBERS = frozenset({"prov:collection", "prov:time", "group", "function", "node"})
_KNOWN_IN_DOCUMENTS = {*EDGE_RELATIONS, *OTHER_RELATIONS, *THINGS, "prefix", "bundle"}
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


class OddLineError(ValueError):
    """A line that cannot be read; its text is the reason."""


@dataclass
class Collected:
    """What lines were read into, column by column."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    dead: list[tuple[str, str]] = field(default_factory=list)
    apart: list[tuple[str, str]] = field(default_factory=list)
    filtered: int = 0
    foreign: int = 0
    ended: bool = False

    def elements(self) -> pa.Table:
        """Return the elements as a table."""
        return _table(self.rows, ELEMENTS)

    def letters(self) -> pa.Table:
        """Return what could not be read."""
        return _table(self.dead, LETTERS)

    def left_out(self) -> pa.Table:
        """Return what was left out, if it is kept."""
        return _table(self.apart, LETTERS)


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in schema]
    arrays = [_column(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Make a column; lists are laid out by hand, which Arrow does four times slower."""
    if not pa.types.is_list(kind):
        return pa.array(values, kind)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    flat = list(chain.from_iterable(values))
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(flat, kind.value_type))


class SlowParser:
    """Reads lines one by one.

    Args:
        job: Statements of other jobs are left out; None takes all.
        groups: A document is all there is to say about its activities.
        keep_apart: Keep what is left out.
    """

    def __init__(self, job: str | None, *, groups: bool, keep_apart: bool) -> None:
        self._job = job
        self._groups = groups
        self._keep_apart = keep_apart

    def parse(self, lines: list[bytes | None]) -> Collected:
        """Read lines; what cannot be read is a dead letter and stops nothing."""
        into = Collected()
        for line in lines:
            if line is None or not line.strip():
                continue
            before = len(into.rows)
            try:
                self._line(_decoded(line), into)
            except OddLineError as odd:
                del into.rows[before:]
                shown = line[:_LONGEST].decode("utf-8", errors="replace")
                into.dead.append((shown, str(odd)))
        return into

    def _line(self, line: str, into: Collected) -> None:
        said = _loads(line)
        relation = said.get("prov")
        if relation is None and _KNOWN_IN_DOCUMENTS.intersection(said):
            self._document(line, said, into)
        elif self._job is not None and said.get("job") not in (None, self._job):
            into.foreign += 1
        elif relation == END:
            into.ended = True
        elif isinstance(relation, str) and relation in _LEFT_OUT:
            self._leave_out(line, relation, 1, into)
        elif relation == GROUP:
            into.rows.append(_group(said))
        elif isinstance(relation, str) and relation in _ENDS:
            into.rows.append(_statement(relation, said, "", {}))
        elif relation is None:
            raise OddLineError("it has no `prov`, which names the relation, and is no document")
        else:
            raise OddLineError("its `prov` is no relation of PROV")

    def _leave_out(self, line: str, relation: str, count: int, into: Collected) -> None:
        into.filtered += count
        if self._keep_apart and count:
            into.apart.append((line, relation))

    def _document(self, line: str, said: dict[str, Any], into: Collected) -> None:
        rows: list[tuple[Any, ...]] = []
        left_out: Counter[str] = Counter()
        spaces = _spaces(said)
        room = max(_ROOM, _ROOM_PER_CHARACTER * len(line))
        for part in (said, *_bundles(said)):
            own = spaces if part is said else {**spaces, **_spaces(part)}
            for relation, found in part.items():
                if relation in _ENDS:
                    for each in chain.from_iterable(
                        _in_document(relation, one, own) for one in _statements(found)
                    ):
                        room -= len(each[0][0]) + len(each[1][0])
                        if room < 0:
                            raise OddLineError("its prefixes stand for far more than it says")
                        rows.append(each)
                elif relation in _LEFT_OUT:
                    left_out[relation] += len(_statements(found))
        into.rows += _by_activity(rows) if self._groups else rows
        for relation, count in left_out.items():
            self._leave_out(line, relation, count, into)


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        # Two names that differ in such bytes only would become one.
        raise OddLineError("it is no text in UTF-8") from None


def _loads(line: str) -> dict[str, Any]:
    try:
        said = _read(line)
    except RecursionError:
        raise OddLineError("it is nested too deeply") from None
    except ValueError as error:
        where = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise OddLineError(f"it is no JSON{where}") from None
    if not isinstance(said, dict):
        raise OddLineError("it is JSON, but no object")
    return said


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        raise
    except ValueError:
        # A number of thousands of digits. None of ours is a number, so it may be any.
        return json.loads(line, parse_int=float)


def _bundles(said: dict[str, Any]) -> list[dict[str, Any]]:
    bundles = said.get("bundle")
    if bundles is None:
        return []
    if not isinstance(bundles, dict) or not all(isinstance(b, dict) for b in bundles.values()):
        raise OddLineError("its `bundle` is no object of documents")
    return list(bundles.values())


def _spaces(said: dict[str, Any]) -> dict[str, str]:
    """Return what the prefixes of a document stand for."""
    spaces = said.get("prefix")
    if spaces is None:
        return {}
    if not isinstance(spaces, dict) or not all(isinstance(s, str) for s in spaces.values()):
        raise OddLineError("its `prefix` is no object of texts")
    return spaces


def _full_name(name: Any, spaces: dict[str, str]) -> Any:
    """Put what a prefix stands for in its place; a name without a known one stays as it is.

    Examples:
        >>> _full_name("ex:in/42", {"ex": "http://example.org/"})
        'http://example.org/in/42'
    """
    if not isinstance(name, str) or not name:
        return name
    prefix, colon, rest = name.partition(":")
    if not colon:
        return spaces.get("default", "") + name
    return spaces[prefix] + rest if prefix in spaces else name


def _statements(found: Any) -> list[dict[str, Any]]:
    """List the statements of one relation: an object of objects, or of lists of them."""
    if found is None:
        return []
    if not isinstance(found, dict):
        raise OddLineError("a relation in it is no object of statements")
    flat = [s for v in found.values() for s in (v if isinstance(v, list) else [v])]
    if not all(isinstance(s, dict) for s in flat):
        raise OddLineError("a statement in it is no object")
    return flat


def _in_document(
    relation: str, said: dict[str, Any], spaces: dict[str, str]
) -> Iterator[tuple[Any, ...]]:
    members = said.get("prov:entity")
    if relation == "hadMember" and isinstance(members, list):
        said = {name: said[name] for name in said.keys() & _READ_OF_MEMBERS}
        for member in members:
            yield _statement(relation, {**said, "prov:entity": member}, "prov:", spaces)
    else:
        yield _statement(relation, said, "prov:", spaces)


def _statement(
    relation: str, said: dict[str, Any], prefix: str, spaces: dict[str, str]
) -> tuple[Any, ...]:
    first, second = _ENDS[relation]
    one, other = said.get(prefix + first), said.get(prefix + second)
    if spaces:
        one, other = _full_name(one, spaces), _full_name(other, spaces)
    output, source = _vertex(one, first), _vertex(other, second)
    execution = said.get("group")
    if first == "activity":
        execution = one
    elif second == "activity":
        execution = other
    elif not isinstance(execution, str) or not execution:
        execution = output
    elif not _sound(execution):
        raise OddLineError("its `group` has characters that no name may have")
    return ([output], [source], None, _time(said, prefix), execution, *_where(said))


def _group(said: dict[str, Any]) -> tuple[Any, ...]:
    activity = said.get("activity")
    _vertex(activity, "activity")
    outputs = [_vertex(e, "generated") for e in _names(said.get("generated"))]
    inputs = [_vertex(e, "used") for e in _names(said.get("used"))]
    return (outputs, inputs, activity, _time(said, ""), activity, *_where(said))


def _names(found: Any) -> list[Any]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise OddLineError("its `used` or `generated` is no list")
    return found


def _by_activity(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Make one element of all that a document says of an activity."""
    loose, groups = (
        [],
        defaultdict[str, tuple[list[str], list[str], list[int]]](lambda: ([], [], [])),
    )
    for row in rows:
        [output], [source] = row[0], row[1]
        if output.startswith(ACTIVITY):
            outputs, inputs, times = groups[output[1:]]
            inputs.append(source)
        elif source.startswith(ACTIVITY):
            outputs, inputs, times = groups[source[1:]]
            outputs.append(output)
        else:
            loose.append(row)
            continue
        times += [] if row[3] is None else [row[3]]
    for activity, (outputs, inputs, times) in groups.items():
        when = max(times, default=None)
        loose.append((outputs, inputs, activity, when, activity, None, None))
    return loose


def _vertex(name: Any, role: str) -> str:
    if not isinstance(name, str) or not name:
        raise OddLineError(f"it names no `{role}`")
    if name[0] == ACTIVITY or not _sound(name):
        raise OddLineError(f"its `{role}` has characters that no name may have")
    return ACTIVITY + name if role == "activity" else name


def _where(said: dict[str, Any]) -> tuple[str | None, str | None]:
    function, node = said.get("function"), said.get("node")
    return (
        function if isinstance(function, str) and _sound(function) else None,
        node if isinstance(node, str) and _sound(node) else None,
    )


def _sound(text: str) -> bool:
    """Tell whether a text can be written as UTF-8, which half a character cannot."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _time(said: dict[str, Any], prefix: str) -> int | None:
    text = said.get(prefix + "time")
    if text is None:
        return None
    # Python takes digits without end for a time, seconds since 1970 for one in the year 1710.
    if not isinstance(text, str) or len(text) > _LONGEST_TIME or text[:9].isdecimal():
        raise OddLineError("its `time` is no time in ISO 8601")
    return _micros(text)


@lru_cache(maxsize=1024)
def _micros(text: str) -> int:
    try:
        when = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise OddLineError("its `time` is no time in ISO 8601") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=dt.timezone.utc)
    return (when - _EPOCH) // dt.timedelta(microseconds=1)
