"""Redeploy a query on its checkpoint with batches pending: every answer is right, or none is given.

The query is changed in eleven ways, and in none as a control, under each capture. Source row `n`
adds the bit `n` to each result that it is in, so Spark itself says which rows a result was made
from; a model in plain Python says the same from the rows alone. An answer has to name those rows
and no others, or be refused, or name a gap. Results that were made before the change belong to the
query that it was, those that were open then to both. Each cell is asked in the process that ran the
queries and as another would ask. And each is run a second time with the first query cut off in its
last batch, which the changed query then runs again.
"""

from __future__ import annotations

import datetime as dt
import random
import shutil
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions as F

import clew
from clew.again import known
from clew.exceptions import ClewError, ReplayError
from clew.steps import listen, unlisten
from clew.testing import read_batches, run_stream, write_batches
from proof.captures import refused
from proof.case import Outcome, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

CAPTURES = ("sets", "pointers", "intervals", "keys")
ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
DEFAULTS = {ZONE: "UTC", ANSI: "false", "spark.sql.shuffle.partitions": "2"}
SCHEMA = pa.schema(
    [
        ("rid", pa.int64()),
        ("ts", pa.timestamp("us", tz="UTC")),
        ("meter", pa.string()),
        ("code", pa.string()),
        ("kwh", pa.int64()),
    ]
)
DDL = "rid long, ts timestamp, meter string, code string, kwh long"

Row = tuple[int, str, str, str, int]
FIRST: tuple[tuple[Row, ...], ...] = (
    ((0, "04:58:10", "a", "1", 0), (1, "04:58:20", "a", "x", 3), (2, "05:01:30", "b", "2", 0)),
    ((3, "05:02:05", "a", "1", 0), (4, "05:02:10", "b", "3", 3)),
)
THEN: tuple[tuple[Row, ...], ...] = (
    ((5, "05:02:40", "a", "1", 0), (6, "05:02:45", "b", "2", 3), (7, "05:06:00", "a", "1", 3)),
    ((8, "05:10:05", "b", "2", 0), (9, "05:10:10", "b", "2", 4)),
    ((10, "05:30:00", "z", "9", 0),),
)


@dataclass(frozen=True)
class Query:
    """One version of the query, and the settings it runs with."""

    least: int = 3
    size: int = 60
    slide: int = 60
    key: str = "meter"
    value: str = "max"
    extra: bool = False
    ddl: str = DDL
    settings: Mapping[str, str] = field(default_factory=dict)

    def build(self, readings: clew.TracedFrame) -> clew.TracedFrame:
        kept = readings.withWatermark("ts", "0 seconds").filter(f"kwh < {self.least}")
        keys = {
            "meter": F.col("meter"),
            "code": F.col("code"),
            "day": F.to_date("ts").cast("string"),
            "number": F.expr("CAST(code AS INT)").cast("string"),
        }
        size, slide = f"{self.size} seconds", f"{self.slide} seconds"
        grouped = kept.groupBy(F.window("ts", size, slide), keys[self.key].alias("k"))
        made = grouped.agg(
            F.sum(F.expr("shiftleft(1L, CAST(rid AS INT))")).alias("bits"),
            getattr(F, self.value)("kwh").alias("v"),
        )
        return made.withColumn("twice", F.col("v") * 2) if self.extra else made

    def groups(self, row: Row) -> Iterator[tuple[Any, ...]]:
        """Yield the groups that a row belongs to."""
        _, clock, meter, code, kwh = row
        if kwh >= self.least:
            return
        at = moment(clock)
        zone = ZoneInfo(self.settings.get(ZONE, "UTC"))
        keys = {
            "meter": meter,
            "code": code,
            "day": str(at.astimezone(zone).date()),
            "number": str(int(code)) if code.isdigit() else None,
        }
        seconds = int(at.timestamp())
        begin = seconds // self.slide * self.slide
        while begin > seconds - self.size:
            yield begin, begin + self.size, keys[self.key]
            begin -= self.slide


BY_DAY = Query(least=9, key="day", settings={ZONE: "America/New_York"})
BY_NUMBER = Query(least=9, key="number")
KINDS: dict[str, tuple[Query, Query]] = {
    "nothing": (Query(), Query()),
    "filter": (Query(), Query(least=9)),
    "window size": (Query(least=9), Query(least=9, size=120, slide=120)),
    "slide": (Query(least=9), Query(least=9, slide=30)),
    "key": (Query(least=9), Query(least=9, key="code")),
    "aggregate": (Query(least=9), Query(least=9, value="min")),
    "added column": (Query(least=9), Query(least=4, extra=True)),
    "schema of the source": (Query(), Query(least=4, ddl=f"{DDL}, more string")),
    "order of the source's columns": (
        Query(),
        Query(least=4, ddl=", ".join(DDL.split(", ")[::-1])),
    ),
    "time zone": (BY_DAY, replace(BY_DAY, settings={ZONE: "Asia/Tokyo"})),
    "ANSI": (BY_NUMBER, replace(BY_NUMBER, settings={ANSI: "true"})),
    "shuffle partitions": (
        Query(least=9),
        Query(least=9, settings={"spark.sql.shuffle.partitions": "3"}),
    ),
}
UNCHANGED = ("nothing", "shuffle partitions")
"""Kinds that change no result, so nothing may be missing either."""
CUTS = ("batch begun", "sink written", "batch committed")
"""Where the first query is cut off: nothing is done, the sink has the batch, all but Spark know."""


def moment(clock: str) -> dt.datetime:
    """Read a time of one fixed day: five in the morning is midnight in New York."""
    return dt.datetime.fromisoformat(f"2026-01-01T{clock}+00:00")


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Take every kind with every capture, or a sample of them."""
    cells: list[tuple[str, str, str]] = []
    for number, (kind, capture) in enumerate((k, c) for k in KINDS for c in CAPTURES):
        cells += [(kind, capture, ""), (kind, capture, CUTS[number % len(CUTS)])]
    if setting.quick:
        cells = random.Random(setting.seed).sample(cells, 5)
    before = {name: str(setting.spark.conf.get(name)) for name in DEFAULTS}
    try:
        for number, (kind, capture, cut) in enumerate(cells):
            yield from _cell(setting.spark, setting.folder / f"cell-{number}", kind, capture, cut)
    finally:
        for name, value in before.items():
            setting.spark.conf.set(name, value)


def _cell(
    spark: SparkSession, folder: Path, kind: str, capture: str, cut: str
) -> Iterator[Outcome]:
    name = f"{kind}, {capture}{cut and f', cut off after: {cut}'}"
    first, then = KINDS[kind]
    why = ""
    with _cut_off(cut, len(FIRST) - 1):
        _deploy(spark, folder, first, FIRST, capture, is_cut=bool(cut))
    try:
        _deploy(spark, folder, then, THEN, capture)
    except (ClewError, PySparkException) as error:
        why = str(error)
    shutil.copytree(folder / "prov", folder / "copy")
    # The changed query read the batch in which the first was cut off.
    versions = [*(first for _ in FIRST), *(then for _ in THEN)]
    if cut:
        versions[len(FIRST) - 1] = then
    truth = _truth(versions)
    for where in ("here", "elsewhere"):
        if where == "elsewhere":
            shutil.rmtree(folder / "prov")
            (folder / "copy").rename(folder / "prov")
            known._known.clear()
        yield _asked(f"{name}, asked {where}", folder, kind, why, truth)


def _asked(
    name: str, folder: Path, kind: str, why: str, truth: Mapping[tuple[Any, ...], int]
) -> Outcome:
    seen: Counter[str] = Counter({"redeploy refused": 1} if why else {})
    wrong = [f"refused without need: {why}"] if why and kind in UNCHANGED else []
    _ask(folder, seen, wrong, truth)
    if kind in UNCHANGED and set(seen) != {"right"}:
        wrong.append(f"nothing was changed, and not all is right: {dict(seen)}")
    if not seen["right"] and not why:
        wrong.append("no result was answered at all")
    said = ", ".join(f"{count} {what}" for what, count in sorted(seen.items()))
    for what, count in seen.items():
        if what != "right":
            refused[f"redeployed with another {kind}: {what}"] += count
    return Outcome(f"{name}: {said}", "\n".join(wrong))


class _CutError(Exception):
    """The query ends here, as if its process had been killed."""


@contextmanager
def _cut_off(step: str, batch: int) -> Iterator[None]:
    """End a query at a step of a batch; at none if there is no step."""

    def end(at: str, number: int) -> None:
        if (at, number) == (step, batch):
            raise _CutError

    listen(end)
    try:
        yield
    finally:
        unlisten(end)


def _deploy(
    spark: SparkSession,
    folder: Path,
    query: Query,
    batches: tuple[tuple[Row, ...], ...],
    capture: str,
    *,
    is_cut: bool = False,
) -> None:
    for name, value in {**DEFAULTS, **query.settings}.items():
        spark.conf.set(name, value)
    rows = [[dict(zip(SCHEMA.names, _typed(row), strict=True)) for row in b] for b in batches]
    write_batches(folder / "in", SCHEMA, rows)
    read = read_batches(spark, folder / "in", query.ddl)
    frame = query.build(clew.trace(read, "readings", event_time="ts"))
    store, chk = folder / "prov", folder / "chk"
    try:
        run_stream(frame, store, "out", checkpoint=chk, capture=capture, unfold="later")
    except StreamingQueryException:
        if not is_cut:
            raise
    else:
        assert not is_cut, "the query was not cut off: the case shows nothing"


def _typed(row: Row) -> tuple[Any, ...]:
    rid, clock, meter, code, kwh = row
    return rid, moment(clock), meter, code, kwh


def _truth(versions: Sequence[Query]) -> dict[tuple[Any, ...], int]:
    """Say which rows are in each result, as bits: each row by the version that read its batch."""
    bits: dict[tuple[Any, ...], int] = {}
    for query, batch in zip(versions, (*FIRST, *THEN), strict=True):
        for row in batch:
            for group in query.groups(row):
                bits[group] = bits.get(group, 0) | 1 << row[0]
    return bits


def _ask(
    folder: Path, seen: Counter[str], wrong: list[str], truth: Mapping[tuple[Any, ...], int]
) -> None:
    with clew.open(str(folder / "prov")) as prov:
        for result in list(prov.rows("out")):
            values = dict(result)
            window = result["window"]
            group = (_seconds(window["start"]), _seconds(window["end"]), result["k"])
            if truth.get(group) != result["bits"]:
                wrong.append(f"the model differs from Spark: {values}, {truth.get(group)}")
            try:
                trace = prov.backward("out", result.id)
            except ReplayError as error:
                seen["refused"] += 1
                if "\n\n" not in str(error):
                    wrong.append(f"refused without saying what to do: {error}")
                continue
            found = sum(1 << row["rid"] for row in trace.rows)
            if found == result["bits"]:
                seen["right"] += 1
            elif not trace.complete:
                seen["named gap"] += 1
                if found & ~result["bits"]:
                    wrong.append(f"a gap, and rows of others: {values}, {found:b}")
            else:
                wrong.append(f"WRONG {values}: traced to {found:b}, not {result['bits']:b}")


def _seconds(at: dt.datetime) -> int:
    return int((at if at.tzinfo else at.replace(tzinfo=dt.timezone.utc)).timestamp())
