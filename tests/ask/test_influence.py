"""How much each source row moves a result, against leaving each out in plain Python."""

from __future__ import annotations

import json
import math
import random
import statistics
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import clew
from clew.ask import closed
from clew.cli import main
from clew.exceptions import QueryError
from clew.testing import write_batches
from frames import at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    Frame = clew.TracedFrame

SEED = 11

# The closed forms.


def brute(function: str, amounts: Sequence[Any]) -> Any:
    """Aggregate as SQL does: nulls are not there."""
    values = [each for each in amounts if each is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    made: dict[str, Callable[[list[Any]], Any]] = {
        "sum": sum,
        "min": min,
        "max": max,
        "avg": lambda each: sum(each) / len(each),
    }
    return made[function](values)


def random_amounts(chosen: random.Random) -> list[Any]:
    kinds: list[Callable[[], Any]] = [
        lambda: chosen.randint(-5, 5),
        lambda: chosen.uniform(-1e6, 1e6),
        lambda: Decimal(chosen.randint(-500, 500)).scaleb(-2),
    ]
    kind = chosen.choice(kinds)
    count = chosen.randint(2, 9)
    return [None if chosen.random() < 0.2 else kind() for _ in range(count)]


@pytest.mark.parametrize("function", ["sum", "count", "avg", "min", "max"])
def test_closed_forms_are_what_leaving_each_row_out_gives(function: str) -> None:
    print(f"seed {SEED}")
    chosen = random.Random(SEED)
    for _ in range(300):
        amounts = random_amounts(chosen)
        whole = brute(function, amounts)
        assert closed.agrees(function, amounts, whole)
        for place, moved in enumerate(closed.influences(function, amounts)):
            rest = brute(function, [*amounts[:place], *amounts[place + 1 :]])
            if amounts[place] is None:
                assert moved == 0
            elif rest is None and function != "sum":
                assert moved is None
            elif isinstance(whole, float):
                size = max(abs(float(each)) for each in amounts if each is not None)
                assert moved == pytest.approx(whole - (rest or 0), abs=1e-9 * size)
            elif function == "avg":
                assert float(moved or 0) == pytest.approx(float(whole - rest))
            else:
                assert moved == whole - (rest or 0)


def test_what_does_not_give_the_result_does_not_agree() -> None:
    assert closed.agrees("sum", [0.1] * 10, 1.0)
    assert not closed.agrees("sum", [1, 2, 3], 7)
    assert not closed.agrees("sum", [10**17, 1], 10**17)
    assert not closed.agrees("avg", [1.0, 2.0], 1.5001)
    assert closed.agrees(
        "avg", [Decimal("1.00"), Decimal("1.01"), Decimal("1.01")], Decimal("1.006667")
    )
    assert not closed.agrees("max", [1, None], 2)
    assert closed.agrees("sum", [None, None], None)
    assert not closed.agrees("sum", [None], 0)
    assert closed.agrees("max", [1.0, math.nan], math.nan)


def test_not_a_number_is_the_largest_as_in_spark() -> None:
    assert closed.influences("min", [math.nan, 3.0, 5.0]) == [0, -2.0, 0]
    assert closed.influences("min", [math.nan, 3.0]) == [0, None]
    assert closed.influences("max", [4, 4, 1]) == [0, 0, 0]


# Whole queries.

SCHEMA = pa.schema(
    [
        ("rid", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("meter", pa.string()),
        ("kwh", pa.int64()),
        ("volt", pa.float64()),
        ("cost", pa.decimal128(8, 2)),
    ]
)
ROWS: list[dict[str, Any]] = [
    {
        "rid": i,
        "ts": at(f"12:00:{5 * i:02d}"),
        "meter": "ab"[i % 2],
        "kwh": [4, 7, None, 7, 9, -3, 2, 5, 4, 1][i],
        "volt": [230.5, math.nan, 229.0, 230.0, 231.25, 230.0, 228.5, 231.0, 230.0, 229.5][i],
        "cost": Decimal([110, 250, 99, 5, 1000, 75, 0, 120, 333, 1][i]).scaleb(-2),
    }
    for i in range(10)
]
PRICES = {"a": 2, "b": 3}


def windows(readings: Frame, _: Frame) -> Frame:
    """Renamed, chosen, filtered, in windows that overlap: every column is still as it was."""
    kept = readings.filter("rid <> 8").withColumnRenamed("kwh", "energy")
    chosen = kept.select(
        "ts", F.col("meter").alias("m"), F.col("energy").alias("e"), "volt", "cost"
    )
    groups = chosen.groupBy(F.window("ts", "40 seconds", "20 seconds"), "m")
    made = groups.agg(
        F.count("*").alias("rows"),
        F.count("e").alias("known"),
        F.sum("e").alias("kwh"),
        F.avg("e").alias("mean"),
        F.min("e").alias("least"),
        F.max("e").alias("most"),
        F.sum("cost").alias("cost"),
        F.avg("cost").alias("each"),
        F.max("volt").alias("volt"),
    )
    return made.filter("rows > 1").withColumnRenamed("kwh", "total")


def mixed(readings: Frame, _: Frame) -> Frame:
    """Aggregates without a closed form, of rows that are as they were."""
    made = readings.groupBy("meter").agg(
        F.sum(F.expr("kwh * kwh")).alias("squares"),
        F.count_distinct("kwh").alias("different"),
        F.stddev_pop("cost").alias("spread"),
        F.max("ts").alias("last"),
    )
    return made.filter("squares > 110").withColumn("both", F.expr("squares + different"))


def priced(readings: Frame, prices: Frame) -> Frame:
    joined = readings.filter("kwh is not null").join(prices, "meter")
    return joined.groupBy("meter").agg(F.sum(F.expr("kwh * price")).alias("price"))


def nested(readings: Frame, _: Frame) -> Frame:
    """The largest sum of three rows each: an aggregate of aggregates."""
    threes = readings.groupBy(F.expr("rid div 3").alias("three")).agg(F.sum("kwh").alias("kwh"))
    return threes.groupBy(F.lit(1).alias("all")).agg(F.max("kwh").alias("kwh"))


QUERIES = {each.__name__: each for each in (windows, mixed, priced, nested)}


@pytest.fixture(scope="module")
def prov(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> clew.Provenance:
    folder = tmp_path_factory.mktemp("influence")
    write_batches(folder / "in", SCHEMA, [ROWS])
    prices = pa.schema([("meter", pa.string()), ("price", pa.int64())])
    write_batches(
        folder / "prices", prices, [[{"meter": m, "price": p} for m, p in PRICES.items()]]
    )
    source = clew.trace(spark.read.parquet(str(folder / "in")), "readings", event_time="ts")
    table = clew.trace(spark.read.parquet(str(folder / "prices")), "prices")
    for name, query in QUERIES.items():
        frame = query(source, table)
        writer = frame.write.provenance(str(folder / "prov"), name=name, capture="sets")
        writer.format("noop").mode("append").save()
    return clew.open(folder / "prov")


def moved(found: Any) -> dict[Any, Any]:
    """Map the number of each row to its influence."""
    assert found.why is None, found.why
    return {each.row.get("rid", each.row.get("price")): each.influence for each in found.rows}


FUNCTIONS = {
    "rows": ("count", None),
    "known": ("count", "kwh"),
    "total": ("sum", "kwh"),
    "mean": ("avg", "kwh"),
    "least": ("min", "kwh"),
    "most": ("max", "kwh"),
    "cost": ("sum", "cost"),
    "each": ("avg", "cost"),
}


def test_columns_are_followed_to_the_source_without_spark(
    prov: clew.Provenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clew.Provenance, "_without_each", None)
    results = prov.rows("windows")
    assert len(results) == 6
    for result in results:
        trace = prov.backward("windows", result)
        behind = {row["rid"]: row for row in trace.rows}
        for column, (function, value) in FUNCTIONS.items():
            found = trace.influence(column)

            amounts = {rid: 1 if value is None else row[value] for rid, row in behind.items()}
            whole = brute(function, list(amounts.values()))
            expected = {}
            for rid, own in amounts.items():
                rest = brute(function, [x for other, x in amounts.items() if other != rid])
                alone = rest is None and own is not None
                expected[rid] = (
                    (None if function != "sum" else own) if alone else whole - (rest or 0)
                )
            assert moved(found) == {
                rid: each if each is None else pytest.approx(each) for rid, each in expected.items()
            }
            assert (found.function, found.result) == (function, result[column])


def test_rows_come_with_the_largest_influence_first(prov: clew.Provenance) -> None:
    [result] = prov.rows("windows", "m = 'a' and total = 15 and rows = 4")
    found = prov.backward("windows", result).influence()

    assert (found.column, found.function, found.value) == ("total", "sum", "e")
    assert [(each.row["rid"], each.amount, each.influence) for each in found.rows] == [
        (4, 9, 9),
        (0, 4, 4),
        (6, 2, 2),
        (2, None, 0),
    ]
    assert [each.share for each in found.rows] == [9 / 15, 4 / 15, 2 / 15, 0]
    ties = prov.backward("windows", result).influence("rows")
    assert [each.row["rid"] for each in ties.rows] == [0, 2, 4, 6], "equal influence: by time"
    said = found.to_dict(limit=2)
    assert (len(said["rows"]), said["left_out"], said["why"]) == (2, 2, None)
    assert said["rows"][0]["row"]["rid"] == 4
    assert {"stream", "id", "segment", "position", "time", "row"} < said["rows"][0].keys()
    assert said["columns"][:3] == ["rows", "known", "total"]


def test_a_result_that_is_not_a_number_names_the_rows_that_make_it_so(
    prov: clew.Provenance,
) -> None:
    [result] = prov.rows(
        "windows", "m = 'b' and isnan(volt) and \"window\".start = '2026-01-01 12:00:00Z'"
    )
    found = prov.influence("windows", result, "volt")

    assert found.why == "`volt` is NaN, made so by 1 row whose `volt` is not a finite number"
    assert [(each.row["rid"], each.influence, each.share) for each in found.rows] == [
        (1, None, None)
    ]
    assert found.to_dict()["rows"][0]["amount"] == "NaN"


OF_A = [row for row in ROWS if row["meter"] == "a"]


def left_out(whole: Any, rows: list[dict[str, Any]], made: Callable[..., Any]) -> dict[int, Any]:
    return {r["rid"]: whole - made([x for x in rows if x["rid"] != r["rid"]]) for r in rows}


def test_what_has_no_closed_form_is_computed_by_leaving_rows_out(prov: clew.Provenance) -> None:
    def squares(rows: list[dict[str, Any]]) -> int:
        return sum(r["kwh"] ** 2 for r in rows if r["kwh"] is not None)

    def different(rows: list[dict[str, Any]]) -> int:
        return len({r["kwh"] for r in rows} - {None})

    def spread(rows: list[dict[str, Any]]) -> float:
        return statistics.pstdev([float(r["cost"]) for r in rows])

    made = {"squares": squares, "different": different, "spread": spread}
    made["both"] = lambda rows: squares(rows) + different(rows)
    for column, function in made.items():
        whole = function(OF_A)
        found = prov.influence("mixed", {"meter": "a"}, column)
        expected = left_out(whole, OF_A, function)
        assert moved(found) == {rid: pytest.approx(each) for rid, each in expected.items()}
        assert found.result == pytest.approx(whole)
        assert [each.amount for each in found.rows] == [None] * 5
    assert prov.influence("mixed", {"meter": "a"}, "squares").value == "kwh * kwh"


def test_a_join_and_two_aggregates_are_computed_by_leaving_rows_out(prov: clew.Provenance) -> None:
    found = prov.influence("priced", {"meter": "a"})
    known = [row for row in OF_A if row["kwh"] is not None]
    expected: dict[Any, Any] = {row["rid"]: 2 * row["kwh"] for row in known}
    assert moved(found) == {**expected, 2: None}, "without its price there is no result at all"
    assert found.rows[0].row.stream == "prices"

    def most(rows: list[dict[str, Any]]) -> int:
        sums: dict[int, int] = {}
        for row in rows:
            sums[row["rid"] // 3] = sums.get(row["rid"] // 3, 0) + (row["kwh"] or 0)
        return max(sums.values())

    assert moved(prov.influence("nested", {"all": 1})) == left_out(most(ROWS), ROWS, most)


def test_a_value_that_the_user_names_must_give_the_result(prov: clew.Provenance) -> None:
    [result] = prov.rows("windows", "m = 'a' and total = 15 and rows = 4")
    named = prov.influence("windows", result, "total", "kwh")
    assert moved(named) == {4: 9, 0: 4, 6: 2, 2: 0}
    other = prov.influence("windows", result, "total", "rid")
    assert other.why == (
        "the sum of `rid` over the source rows is 12, and `total` is 15: it is not what it is made "
        "of"
    )
    assert (other.rows, other.to_dict()["rows"]) == ([], [])
    with pytest.raises(QueryError, match="`readings` has no column `watts`"):
        prov.influence("windows", result, "total", "watts")
    texts = prov.influence("windows", result, "total", "meter")
    assert texts.why is not None
    assert "is no number" in texts.why


def test_what_cannot_be_weighed_is_said(prov: clew.Provenance) -> None:
    [result] = prov.rows("windows", "m = 'a' and total = 15 and rows = 4")
    assert prov.influence("windows", result, "m").why == "`m` is no number"
    assert prov.influence("mixed", {"meter": "a"}, "last").why == "`last` is no number"
    with pytest.raises(QueryError, match="has no column `watts`"):
        prov.influence("windows", result, "watts")
    with pytest.raises(QueryError, match="of source rows on a result"):
        prov.forward("readings", {"rid": 1}).influence()
    with pytest.raises(QueryError, match="one row is needed"):
        prov.backward("mixed", [{"meter": "a"}, *prov.rows("mixed", "meter = 'b'")]).influence()


def test_the_command_line_gives_the_same(
    prov: clew.Provenance, capsys: pytest.CaptureFixture[str]
) -> None:
    [result] = prov.rows("windows", "m = 'a' and total = 15 and rows = 4")
    asked = ["influence", prov.path, "windows", result.id.text]
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == prov.influence("windows", result).to_dict()
    assert main([*asked, "--limit", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"`total` of row {result.id.text} of `windows` is 15, sum of e."
    assert lines[3].split()[:5] == ["00000.parquet:4", "9", "9", "60.0", "%"]
    assert lines[4] == "and 3 more (--limit 0 shows all)"
    assert main([*asked, "--column", "m"]) == 1
    assert "`m` is no number" in capsys.readouterr().out
