"""A line that cannot be stored as text is a dead letter, and stops nothing."""

from __future__ import annotations

import json
import tracemalloc

import pyarrow as pa
import pytest

from clew.prov.parse import Parser

_SOUND = '{"prov": "wasDerivedFrom", "generatedEntity": "c", "usedEntity": "d"}'
_HALF = "\ud800"
_DERIVED = {"prov": "wasDerivedFrom", "generatedEntity": "a", "usedEntity": "b"}


@pytest.mark.parametrize(
    "odd",
    [
        {**_DERIVED, "group": _HALF},
        {**_DERIVED, "generatedEntity": _HALF},
        {"prov": "used", "activity": _HALF, "entity": "b"},
        {"prov": "group", "activity": "x", "used": [_HALF], "generated": ["y"]},
        {"wasDerivedFrom": {"_": {"prov:generatedEntity": "a", "prov:usedEntity": _HALF}}},
    ],
)
def test_half_a_character_makes_a_line_a_dead_letter(odd: dict[str, object]) -> None:
    found = Parser().parse(pa.array([json.dumps(odd), _SOUND]))
    assert found.elements["outputs"].to_pylist() == [["c"]]
    assert found.dead["line"].to_pylist() == [json.dumps(odd)]


@pytest.mark.parametrize(
    "line",
    [
        '{"prov": "used", "activity": "a", "entity": "b", "time": "0001-01-01T00:00:00+14:00"}',
        '{"prov": "used", "activity": "a", "entity": "b", "time": 1e999}',
        '{"prov": "used", "activity": "a", "entity": ' + "[" * 100_000,
        '{"prov": "used", "activity": ' + "9" * 5_000 + ', "entity": "b"}',
        '{"prov": NaN}',
        '{"prov": {}, "job": []}',
    ],
)
def test_an_odd_value_never_stops_the_parser(line: str) -> None:
    found = Parser("job").parse(pa.array([line, _SOUND]))
    assert ["c"] in found.elements["outputs"].to_pylist()


def _text_unseen(*lines: bytes) -> pa.Array:
    """Hand bytes over as text, as Spark does with what it reads from files and topics."""
    held = pa.array(lines, pa.binary())
    _, offsets, data = held.buffers()
    return pa.Array.from_buffers(pa.string(), len(held), [None, offsets, data])


@pytest.mark.parametrize("as_text", [False, True], ids=["bytes", "text"])
def test_a_name_that_is_no_text_is_a_dead_letter_and_never_another_name(as_text: bool) -> None:
    names = [b"caf\xe9", b"caf\xe8"]
    lines = [
        b'{"prov": "wasDerivedFrom", "generatedEntity": "%s", "usedEntity": "b"}' % n for n in names
    ]
    given = [*lines, _SOUND.encode()]

    found = Parser().parse(_text_unseen(*given) if as_text else pa.array(given, pa.binary()))

    assert found.elements["outputs"].to_pylist() == [["c"]]
    assert found.dead["reason"].to_pylist() == ["it is no text in UTF-8"] * 2


def test_prefixes_may_not_blow_a_document_up() -> None:
    derived = {"prov:generatedEntity": "ex:a", "prov:usedEntity": "ex:b"}
    document = {
        "prefix": {"ex": "x" * 100_000},
        "wasDerivedFrom": dict.fromkeys(map(str, range(500)), derived),
    }
    few = {**document, "wasDerivedFrom": {"_": derived}}

    found = Parser().parse(pa.array([json.dumps(document), json.dumps(few)]))

    assert found.dead["reason"].to_pylist() == ["its prefixes stand for far more than it says"]
    assert found.elements["outputs"].to_pylist() == [["x" * 100_000 + "a"]]


def test_members_of_a_collection_share_what_is_said_of_it() -> None:
    said = {
        **{f"k{i}": i for i in range(3_000)},
        "prov:collection": "c",
        "prov:time": "2026-01-01T00:00:00Z",
    }
    document = {"hadMember": {"_": {**said, "prov:entity": [f"m{i}" for i in range(1_000)]}}}
    tracemalloc.start()

    found = Parser().parse(pa.array([json.dumps(document)]))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.elements["inputs"].to_pylist() == [[f"m{i}"] for i in range(1_000)]
    assert set(found.elements["time"].to_pylist()) == {1_767_225_600_000_000}
    assert peak < 20 << 20


@pytest.mark.parametrize(
    "odd",
    ["[" * 2_000 + "]" * 2_000, '{"a":' * 2_000 + "1" + "}" * 2_000, "9" * 5_000],
    ids=["lists", "objects", "digits"],
)
def test_a_line_is_read_alike_alone_and_beside_an_odd_one(odd: str) -> None:
    line = f'{{"prov": "used", "activity": "a", "entity": "b", "more": {odd}}}'

    alone = Parser().parse(pa.array([line, _SOUND]))
    beside = Parser().parse(pa.array([line, _SOUND, "no JSON"]))

    assert alone.elements.equals(beside.elements)
    assert alone.dead.num_rows == beside.dead.num_rows - 1


@pytest.mark.parametrize("time", ["1710101010101", 1710101010101, "1" * 5_000, 1.5, True, [], ""])
def test_a_number_is_no_time(time: object) -> None:
    line = json.dumps({"prov": "used", "activity": "a", "entity": "b", "time": time})

    found = Parser().parse(pa.array([line, _SOUND]))

    assert found.elements["outputs"].to_pylist() == [["c"]]
    assert found.dead["reason"].to_pylist() == ["its `time` is no time in ISO 8601"]


def test_a_time_without_dashes_is_one() -> None:
    line = '{"prov": "used", "activity": "a", "entity": "b", "time": "20260101T000000Z"}'

    found = Parser().parse(pa.array([line]))

    assert found.elements["time"].to_pylist() == [1_767_225_600_000_000]
