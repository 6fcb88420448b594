"""Rows chosen by value are those that a plain loop over them would choose."""

from __future__ import annotations

import operator
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any, get_args

import pytest

from clew.ask.provenance import open_store
from clew.ask.where import Operator, parse_filter
from clew.exceptions import QueryError
from store.build import StoreBuilder, at, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clew.ask.provenance import Provenance

SEED = 7
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _rows() -> list[dict[str, Any]]:
    rng = random.Random(SEED)
    return [
        row(
            rng.randrange(-(1 << 63), 1 << 63),
            i,
            segment=f"file:///in/part-{i % 3}.parquet",
            time=at(f"08:00:{i:02d}"),
            n=rng.choice([None, *range(5)]),
            x=rng.choice([0.5, -1.0, 2.25]),
            price=Decimal(rng.randrange(500)) / 100,
            name=rng.choice(["north", "South", "null", "", "50%"]),
            ok=rng.random() < 0.5,
            at=at(f"09:00:{rng.randrange(60):02d}"),
            raw=bytes([rng.randrange(3)]),
            window={"start": at(f"08:00:{i // 10 * 10:02d}"), "n": i % 4},
        )
        for i in range(40)
    ]


ROWS = _rows()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provenance]:
    builder = StoreBuilder(tmp_path_factory.mktemp("choose") / "prov")
    builder.source("s")
    builder.sink("out", ["s"])
    builder.batch("out", 0, rows={"s": ROWS[:25]})
    builder.batch("out", 1, rows={"s": ROWS[20:]})  # rows that contributed twice are one row each
    with open_store(builder.root) as provenance:
        yield provenance


def _value(each: dict[str, Any], column: str) -> Any:
    found: Any = each["row"]
    for part in column.split("."):
        found = found[part]
    return found


VALUES: dict[str, list[Any]] = {
    "n": [2, "3"],
    "x": [0.5, "2.25"],
    "price": [Decimal("2.50"), "1"],
    "name": ["north", "'null'", ""],
    "ok": [True, "false"],
    "at": [at("09:00:30"), "2026-01-01T09:00:30Z"],
    "raw": [b"\x01", "01"],
    "window.start": [at("08:00:10"), "2026-01-01 08:00:10+00"],
    "window.n": [1],
}
MEANT: dict[Any, Any] = {
    "3": 3,
    "2.25": 2.25,
    "1": Decimal(1),
    "'null'": "null",
    "false": False,
    "2026-01-01T09:00:30Z": at("09:00:30"),
    "01": b"\x01",
    "2026-01-01 08:00:10+00": at("08:00:10"),
}


def _positions(rows: Any) -> list[int]:
    return sorted(each.position for each in rows)


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("op", COMPARE)
def test_comparisons_are_those_of_the_columns_type(
    store: Provenance, column: str, op: Operator
) -> None:
    for value in VALUES[column]:
        meant = MEANT.get(value, value) if isinstance(value, str) else value

        found = store.rows("s", filters=[(column, op, value)])

        expected = [
            each["b"]
            for each in ROWS
            if (_value(each, column) is not None or op == "!=")
            and COMPARE[op](_value(each, column), meant)
        ]
        assert _positions(found) == sorted(expected), (column, op, value)


def test_null_is_a_value_that_can_be_looked_for(store: Provenance) -> None:
    missing = [each["b"] for each in ROWS if each["row"]["n"] is None]

    assert _positions(store.rows("s", filters=[("n", "=", "null")])) == missing
    assert _positions(store.rows("s", filters=[("n", "=", None)])) == missing
    assert store.rows("s", filters=[("n", "!=", None)]).total == len(ROWS) - len(missing)
    assert store.rows("s", filters=[("n", ">", None)]).total == 0


def test_text_is_found_in_any_case_and_any_column(store: Provenance) -> None:
    south = [each["b"] for each in ROWS if each["row"]["name"] == "South"]
    percent = [each["b"] for each in ROWS if each["row"]["name"] == "50%"]

    assert _positions(store.rows("s", filters=[("name", "contains", "OUT")])) == south
    assert _positions(store.rows("s", text="south")) == south
    assert _positions(store.rows("s", text="0%")) == percent


def test_times_include_both_ends(store: Provenance) -> None:
    found = store.rows("s", since=at("08:00:05"), until="2026-01-01T08:00:09Z")

    assert _positions(found) == [5, 6, 7, 8, 9]


def test_ids_are_found_whole_by_their_beginning_and_by_place(store: Provenance) -> None:
    [wanted] = store.rows("s", since=at("08:00:07"), until=at("08:00:07"))

    for text in (wanted.id.text, wanted.id.text[:9].upper(), "part-1.parquet:7"):
        assert [each.id for each in store.rows("s", id=text)] == [wanted.id]
    assert _positions(store.rows("s", id="part-1")) == list(range(1, 40, 3))
    assert store.rows("s", id="zz").total == 0


@pytest.mark.parametrize("descending", [False, True])
def test_pages_put_together_are_the_whole(store: Provenance, descending: bool) -> None:
    whole = [each["b"] for each in sorted(ROWS, key=lambda each: each["row"]["x"])]
    pages = [
        store.rows("s", sort="x", descending=descending, limit=7, offset=offset)
        for offset in range(0, 42, 7)
    ]

    found = [each for page in pages for each in page]
    assert [each["x"] for each in found] == sorted(
        (each["x"] for each in found), reverse=descending
    )
    assert sorted(each.position or 0 for each in found) == sorted(whole)
    assert [page.to_dict()["left_out"] for page in pages] == [33, 26, 19, 12, 5, 0]
    assert {page.total for page in pages} == {40}


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ([("nothing", "=", 1)], "no column `nothing`"),
        ([("window.nothing", "=", 1)], "no column `window.nothing`"),
        ([("n.start", "=", 1)], "no column `n.start`"),
        ([("n", "~", 1)], "is not a comparison"),
        ([("n", "=", "many")], "column `n` is BIGINT"),
        ([("raw", "=", "xyz")], "column `raw` is BLOB"),
    ],
)
def test_what_cannot_be_compared_is_said(store: Provenance, filters: list[Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        store.rows("s", filters=filters)


def test_wrong_times_orders_and_offsets_are_said(store: Provenance) -> None:
    for settings, said in (
        ({"since": "soon"}, "not a point in time"),
        ({"sort": "nothing"}, "no column `nothing`"),
        ({"offset": -1}, "`offset` is 0 or more"),
    ):
        with pytest.raises(QueryError, match=said):
            store.rows("s", **settings)


def test_conditions_are_read_as_they_are_typed() -> None:
    assert [
        (each.column, each.op, each.value)
        for each in map(parse_filter, ["n>=4", "a b = c=d", "name contains x y", "x != "])
    ] == [("n", ">=", "4"), ("a b", "=", "c=d"), ("name", "contains", "x y"), ("x", "!=", "")]
    with pytest.raises(QueryError, match="is not a condition"):
        parse_filter("n")


def test_every_comparison_is_tested() -> None:
    assert {*COMPARE, "contains"} == set(get_args(Operator))
