"""Lines become elements, fast or slowly, and nothing that is written in them does harm."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

from clew.prov.parse import Parsed, Parser
from clew.prov.reducer import Rule, reduced, spread
from reduce.jobs import documents, groups, shared_job, statements

TIME = 1_767_225_600_000_000


def parse(*lines: str, **how: bool) -> Parsed:
    return Parser("job", **how).parse(pa.array(lines, pa.string()))


def same(first: Parsed, second: Parsed) -> None:
    def rows(table: pa.Table) -> list[str]:
        return sorted(map(repr, table.to_pylist()))

    for part in ("elements", "dead", "apart"):
        assert rows(getattr(first, part)) == rows(getattr(second, part)), part
    for part in ("statements", "filtered", "foreign", "ended"):
        assert getattr(first, part) == getattr(second, part), part


def test_each_relation_says_what_was_derived_from_what() -> None:
    where = {"job": "job", "function": "count", "node": "n1", "time": "2026-01-01T00:00:00.001Z"}
    said = [
        {"prov": "used", "activity": "e1", "entity": "in/1", **where},
        {"prov": "wasGeneratedBy", "entity": "out/1", "activity": "e1", **where},
        {"prov": "wasDerivedFrom", "generatedEntity": "b", "usedEntity": "a", "group": "g"},
        {"prov": "hadMember", "collection": "c", "entity": "m"},
        {"prov": "group", "activity": "e2", "used": ["x"], "generated": ["y", "z"], **where},
    ]

    found = parse(*map(json.dumps, said), in_order=True).elements.to_pylist()

    rest = {"time": TIME + 1_000, "function": "count", "node": "n1"}
    none = {"time": None, "function": None, "node": None}
    assert found == [
        {"outputs": ["\x01e1"], "inputs": ["in/1"], "activity": None, "execution": "e1", **rest},
        {"outputs": ["out/1"], "inputs": ["\x01e1"], "activity": None, "execution": "e1", **rest},
        {"outputs": ["b"], "inputs": ["a"], "activity": None, "execution": "g", **none},
        {"outputs": ["c"], "inputs": ["m"], "activity": None, "execution": "c", **none},
        {"outputs": ["y", "z"], "inputs": ["x"], "activity": "e2", "execution": "e2", **rest},
    ]


def test_the_names_in_documents_mean_what_their_prefixes_say() -> None:
    def derived(output: str, source: str) -> dict[str, Any]:
        return {"_:d": {"prov:generatedEntity": output, "prov:usedEntity": source}}

    one = {"prefix": {"ex": "urn:a:"}, "wasDerivedFrom": derived("ex:2", "other:1")}
    two = {
        "prefix": {"ex": "urn:b:", "my": "urn:a:", "default": "urn:d:"},
        "wasDerivedFrom": derived("ex:2", "my:2"),
        "hadMember": {"_:m": {"prov:collection": "all", "prov:entity": ["ex:1", "plain"]}},
        "bundle": {"ex:b": {"prefix": {"ex": "urn:c:"}, "wasDerivedFrom": derived("ex:2", "my:2")}},
    }

    found = parse(json.dumps(one), json.dumps(two)).elements.to_pylist()

    assert [(*e["outputs"], *e["inputs"]) for e in found] == [
        ("urn:a:2", "other:1"),
        ("urn:b:2", "urn:a:2"),
        ("urn:d:all", "urn:b:1"),
        ("urn:d:all", "urn:d:plain"),
        ("urn:c:2", "urn:a:2"),
    ]


def test_prefixes_that_are_none_make_a_dead_letter() -> None:
    found = parse(json.dumps({"prefix": ["ex"], "used": {}}))

    assert found.dead["reason"].to_pylist() == ["its `prefix` is no object of texts"]


def test_a_document_says_the_same_as_its_statements() -> None:
    document = {
        "prefix": {"ex": "http://example.org/"},
        "entity": {"a": {}, "b": {"ex:size": 5}},
        "wasDerivedFrom": {"_:d": {"prov:generatedEntity": "b", "prov:usedEntity": "a"}},
        "hadMember": {"_:m": {"prov:collection": "a", "prov:entity": ["m1", "m2"]}},
        "used": {"_:u": [{"prov:activity": "e", "prov:entity": "b"}]},
        "bundle": {"ex:b": {"wasGeneratedBy": {"_:g": {
            "prov:entity": "c", "prov:activity": "e", "prov:time": "2026-01-01T02:00:00+02:00"}}}},
        "wasAttributedTo": {"_:t": {"prov:entity": "c", "prov:agent": "me"}},
    }  # fmt: skip

    found = parse(json.dumps(document))

    ends = [(e["outputs"], e["inputs"], e["time"]) for e in found.elements.to_pylist()]
    assert ends == [
        (["b"], ["a"], None),
        (["a"], ["m1"], None),
        (["a"], ["m2"], None),
        (["\x01e"], ["b"], None),
        (["c"], ["\x01e"], TIME),
    ]
    assert found.filtered == 3
    final, _ = reduced(spread(found.elements), Rule(end=True))
    assert sorted(map(tuple, (r.values() for r in final.to_pylist()))) == [("c", "m1"), ("c", "m2")]


@pytest.mark.parametrize("seed", range(10))
def test_both_ways_to_read_agree(seed: int) -> None:
    job = shared_job(seed)
    lines = statements(job) + groups(job)
    lines += ['{"prov":"end"}', '{"prov":"used","activity":"a","entity":"b","job":"other"}']
    lines += ['{"prov":"wasInformedBy","job":"job"}', '{"prov":"agent","agent":"x"}']
    random.Random(seed).shuffle(lines)
    array, parser = pa.array(lines), Parser("job", keep_apart=True)

    same(parser.parse(array), parser.parse_slowly(array))
    same(parser.parse(array.cast(pa.binary())), parser.parse_slowly(array))


ODD = [
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    '{"prov": "used", "activity": "a", "entity": "b"} {"prov": "end"}',
    '{"prov": "used", "activity": "a",',
    '"entity": "b"}',
    '{"prov": "used", "activity": "\x01a", "entity": "b"}',
    '{"prov": "used", "activity": "", "entity": "b"}',
    '{"prov": "used", "activity": "a", "entity": null}',
    '{"prov": null}',
    '{"prov": ["used"]}',
    '{"prov": {"used": 1}, "activity": "a", "entity": "b"}',
    '{"prov": "group", "activity": "a", "used": [null], "generated": ["x"]}',
    '{"prov": "group", "activity": "a", "used": [["x"]], "generated": ["x"]}',
    '{"prov": "used", "activity": "a", "entity": "b", "time": "2026-13-01T00:00:00Z"}',
    '{"prov": "used", "activity": "a", "entity": "b", "time": 1e400}',
    '{"prov": "used", "activity": "a\\u0000", "entity": "b\\u0000' + '"' + ', "x"}',
    "\ufeff{}",
    "nan",
    "\x00",
]


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_line_is_a_dead_letter_and_its_neighbours_are_read(number: int) -> None:
    before, after = groups(shared_job(1)), statements(shared_job(1))
    parser = Parser("job")

    found = parser.parse(pa.array([*before, ODD[number], *after]))

    assert found.dead["line"].to_pylist() == [ODD[number][:65_536]]
    assert len(found.elements) == len(before) + len(after)


@pytest.mark.parametrize("seed", range(5))
def test_text_cut_anywhere_is_read_alike_both_ways(seed: int) -> None:
    chosen = random.Random(seed)
    parser = Parser("job", keep_apart=True)
    whole = statements(shared_job(seed)) + groups(shared_job(seed)) + documents(shared_job(seed))
    for _ in range(40):
        line = chosen.choice(whole)
        at = chosen.randrange(len(line))
        odd = (
            line[:at] + chosen.choice(["", '"', "}", "{", "\\", "\x00", "é", ",", line]) + line[at:]
        )
        lines = pa.array([*chosen.sample(whole[:20], 2), odd[: chosen.randrange(1, len(odd) + 9)]])

        same(parser.parse(lines), parser.parse_slowly(lines))


def test_bytes_that_are_no_text_do_no_harm() -> None:
    good = groups(shared_job(1))

    found = Parser("job").parse(pa.array([b"\xff\xfe{", *(g.encode() for g in good)]))

    assert (len(found.dead), len(found.elements)) == (1, len(good))


def test_an_execution_with_very_many_on_both_sides_stays_a_vertex() -> None:
    used, made = [f"i{n}" for n in range(1_500)], [f"o{n}" for n in range(1_500)]
    line = json.dumps({"prov": "group", "activity": "sort", "used": used, "generated": made})

    final, rest = reduced(spread(parse(line).elements), Rule(end=True))

    assert rest.num_rows == 0
    assert {(r["output"], r["input"]) for r in final.to_pylist()} == {
        *((o, "sort") for o in made),
        *(("sort", i) for i in used),
    }


def test_a_circle_is_walked_once() -> None:
    ends = [("o", "a"), ("a", "b"), ("b", "a"), ("b", "i"), ("x", "y"), ("y", "x"), ("z", "z")]
    said = [{"prov": "wasDerivedFrom", "generatedEntity": o, "usedEntity": i} for o, i in ends]

    final, _ = reduced(spread(parse(*map(json.dumps, said)).elements), Rule(end=True))

    assert final.to_pylist() == [{"output": "o", "input": "i"}]


def test_a_long_chain_is_walked_to_its_end() -> None:
    job = [json.dumps({"prov": "group", "activity": f"e{n}", "used": [f"d{n}"],
                       "generated": [f"d{n + 1}"]}) for n in range(300)]  # fmt: skip

    final, _ = reduced(spread(parse(*job).elements), Rule(end=True))

    assert final.to_pylist() == [{"output": "d300", "input": "d0"}]
