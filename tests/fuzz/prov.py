"""Lines of PROV that nobody should publish, through the parser that reads a job's topic.

Sound statements and documents are changed: other values in every field, half characters, numbers
beyond all bounds, deep nesting, keys that come twice, bytes that are no text. Each line must become
elements, be left out, or be a dead letter: nothing is raised, what comes out can be written, sound
lines beside an odd one are read as if they were alone, and reading a block at once gives what
reading it line by line gives.
"""

from __future__ import annotations

import io
import json
import random
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.prov.parse import Parser
from fuzz.fenced import fenced

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.prov.parse import Parsed

_SOUND = '{"prov": "wasDerivedFrom", "generatedEntity": "sound", "usedEntity": "origin"}'
_TEXTS = ["a", "b", "ex:a", "", "\x00", "\x01", "\x01a", "\ud800", "a\udfff", "\U0001f600", "é"]
_TEXTS += ["used", "group", "x" * 300, "_", ":", "ex:", "\u2028", '"', "\\", "{}", "\ufeff"]
_HARD = ["\ud800", "a\udfff", "\x00", "\x01a", ""]
"""Texts that are no names."""
_TIMES = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "now", "1e9"]
_TIMES += [
    "9999-12-31T23:59:59-23:59",
    "2026-02-30",
    "2026-01-01T00:00:00.123456789Z",
    "12",
    "\x00",
]
_TIMES += ["2016-12-31T23:59:60Z", "2026-W01-1", "20260101T000000Z", "2026-01-01 00:00:00+00:00"]
_FIELDS = ["prov", "activity", "entity", "generatedEntity", "usedEntity", "collection", "job"]
_FIELDS += ["function", "node", "time", "group", "used", "generated", "bundle", "prefix"]
_ENDS = {
    "used": ["activity", "entity"],
    "wasGeneratedBy": ["entity", "activity"],
    "wasDerivedFrom": ["generatedEntity", "usedEntity"],
    "hadMember": ["collection", "entity"],
    "group": ["activity"],
}
_RELATIONS = ["used", "wasGeneratedBy", "wasDerivedFrom", "hadMember", "group", "end", "entity"]
_RELATIONS += ["activity", "agent", "wasInformedBy", "wasAttributedTo", "nonsense"]


def run(seconds: float, seed: int) -> int:
    """Try odd lines for so long, and return how many.

    Raises:
        AssertionError: The parser raised, or blocks and lines do not give the same.
    """
    rng = random.Random(seed)
    tried = 0
    until = time.monotonic() + seconds
    with fenced():
        while time.monotonic() < until:
            lines = [_line(rng) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
            try:
                _try(lines, rng)
            except BaseException as error:
                shown = [each[:2_000] for each in lines]
                msg = f"seed {seed}, input {tried}: {type(error).__name__}: {error}\n{shown!r}"
                raise AssertionError(msg) from error
            tried += len(lines)
    return tried


def _try(lines: list[bytes], rng: random.Random) -> None:
    settings: dict[str, Any] = {
        "groups": rng.random() < 0.3,
        "keep_apart": rng.random() < 0.3,
        "in_order": True,
    }
    parser = Parser(rng.choice([None, None, "a"]), **settings)
    given = _as_arrow(lines, rng)
    found = parser.parse(given)
    _check(found)
    _compare(found, parser.parse_slowly(given))
    beside = parser.parse(_as_arrow([*lines, _SOUND.encode()], rng))
    outputs = beside.elements["outputs"].to_pylist()
    assert outputs[-1] == ["sound"]
    assert len(outputs) == found.elements.num_rows + 1
    assert beside.dead.num_rows == found.dead.num_rows


def _as_arrow(lines: list[bytes], rng: random.Random) -> pa.Array:
    """Hand lines over as bytes, or as text that may be none: Spark checks no text that it reads."""
    found = pa.array(lines, pa.binary())
    if rng.random() < 0.5:
        _, offsets, data = found.buffers()
        return pa.Array.from_buffers(pa.string(), len(found), [None, offsets, data])
    return found


def _check(found: Parsed) -> None:
    for table in (found.elements, found.dead, found.apart):
        table.validate(full=True)
        table.to_pylist()
        pq.write_table(table, io.BytesIO())


def _compare(fast: Parsed, slow: Parsed) -> None:
    assert fast.elements.to_pylist() == slow.elements.to_pylist()
    assert fast.dead.num_rows == slow.dead.num_rows
    numbers = [(e.statements, e.filtered, e.foreign, e.ended) for e in (fast, slow)]
    assert numbers[0] == numbers[1]


def _line(rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return json.dumps(_nearly_sound(rng)).encode()
    said = _document(rng) if rng.random() < 0.4 else _statement(rng)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        _change(said, rng)
    text = json.dumps(said, ensure_ascii=rng.random() < 0.6)
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        text = rng.choice(_TEXT_CHANGES)(text, rng)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data and rng.random() < 0.15:
        for _ in range(rng.choice([1, 2, 10])):
            data[rng.randrange(len(data))] = rng.choice(
                [0, 0x0A, 0x22, 0x7F, 0x80, 0xC0, 0xED, 255]
            )
    return bytes(data) or b" "


def _odd() -> list[Any]:
    return [None, True, 0, -1, 1.5, 1e308, 1 << 70, [], {}, [None], {"a": 1}, [[]], ["a", 1]]


def _text(rng: random.Random) -> str:
    return rng.choice(_TEXTS)


def _nearly_sound(rng: random.Random) -> dict[str, Any]:
    """Make a statement with one odd thing at most, so that nothing before it is stumbled over."""
    relation = rng.choice(list(_ENDS))
    said: dict[str, Any] = {"prov": relation, "group": "g", "function": "f", "node": "n"}
    said |= {name: rng.choice("abc") for name in _ENDS[relation]}
    said["time"] = _TIMES[0]
    if relation == "group":
        said |= {"used": ["a", "b"], "generated": ["c"]}
    name = rng.choice(list(said))
    odd: Any = rng.choice(_HARD)
    if rng.random() < 0.5:
        odd = rng.choice([_text(rng), rng.choice(_TIMES), *_odd()])
    if isinstance(said[name], list) and rng.random() < 0.5:
        said[name][-1] = odd
    else:
        said[name] = odd
    return said


def _statement(rng: random.Random) -> dict[str, Any]:
    relation = rng.choice(_RELATIONS)
    said: dict[str, Any] = {"prov": relation}
    for name in rng.sample(_FIELDS[1:], rng.randint(1, 6)):
        said[name] = _text(rng)
    for name in ("activity", "entity", "generatedEntity", "usedEntity", "collection"):
        if rng.random() < 0.8:
            said[name] = rng.choice("abc")
    if rng.random() < 0.5:
        said["time"] = rng.choice(_TIMES)
    for name in ("used", "generated"):
        if relation == "group" or name in said:
            said[name] = [_text(rng) for _ in range(rng.randint(0, 4))]
    return said


def _document(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if rng.random() < 0.5:
        said["prefix"] = {rng.choice(["ex", "default", ""]): _text(rng)}
    for relation in rng.sample(_RELATIONS, rng.randint(1, 4)):
        said[relation] = {
            f"_:{i}": {
                f"prov:{name}": rng.choice([_text(rng), "a", "b", "ex:c"])
                for name in ("activity", "entity", "generatedEntity", "usedEntity", "collection")
            }
            for i in range(rng.randint(0, 3))
        }
    if depth < 2 and rng.random() < 0.2:
        said["bundle"] = {"b": _document(rng, depth + 1)}
    return said


def _change(said: dict[str, Any], rng: random.Random) -> None:
    """Put something else in some place, at any depth."""
    name = rng.choice([*said, *_FIELDS])
    held = said.get(name)
    if isinstance(held, dict) and held and rng.random() < 0.7:
        inner = rng.choice(list(held))
        if isinstance(held[inner], dict):
            _change(held[inner], rng)
        else:
            held[inner] = rng.choice([_text(rng), *_odd()])
        return
    if isinstance(held, list) and held and rng.random() < 0.7:
        held[rng.randrange(len(held))] = rng.choice([_text(rng), *_odd()])
        return
    said[name] = rng.choice([_text(rng), rng.choice(_TIMES), *_odd()])


def _nest(text: str, rng: random.Random) -> str:
    deep = rng.choice([10, 500, 2_000, 100_000])
    opened, closed = rng.choice([("[", "]"), ('{"a":', "}")])
    inner = "1" if opened != "[" else ""
    return text[:-1] + f', "{rng.choice(_FIELDS)}": {opened * deep}{inner}{closed * deep}}}'


def _twice(text: str, rng: random.Random) -> str:
    value = rng.choice(['"c"', "null", "1", "[]", '["d"]', "{}", "NaN", "Infinity", "-0", "1E400"])
    return text[:-1] + f', "{rng.choice(_FIELDS)}": {value}}}'


def _number(text: str, rng: random.Random) -> str:
    digits = rng.choice(["9" * 30, "9" * 5_000, "1e" + "9" * 9, "0." + "1" * 900, "-" + "8" * 400])
    return text[:-1] + f', "{rng.choice(_FIELDS)}": {digits}}}'


def _cut(text: str, rng: random.Random) -> str:
    return text[: rng.randrange(len(text))] if text else text


def _double(text: str, rng: random.Random) -> str:
    return text + rng.choice(["", " ", ",", "\n", "\t"]) + text


def _space(text: str, rng: random.Random) -> str:
    edge = rng.choice([" ", "\t", "\ufeff", "\r", "\x0b", "\x00", "\u00a0"])
    return edge + text if rng.random() < 0.5 else text + edge


def _escape(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text)) if text else 0
    odd = rng.choice(["\\u0000", "\\ud800", "\\udc00\\ud800", "\\x", "\\/", "\\u12", "/*a*/", "//"])
    return text[:at] + odd + text[at:]


_TEXT_CHANGES: list[Callable[[str, random.Random], str]] = [
    _nest,
    _twice,
    _twice,
    _number,
    _cut,
    _double,
    _space,
    _escape,
]
