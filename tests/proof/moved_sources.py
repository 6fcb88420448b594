"""Sources that change between the query and the question: right, refused or a named gap.

One stream has a file, a window and a batch for each kind of change; all files are changed at once,
and then each window is asked for. So a cell also shows that a change touches its own window only:
windows whose files nothing happened to must be answered. Two meters take turns in a file and one of
them is asked for, so rows that changed places would be seen. A source of a batch query is one
whole, and so is a table beside a stream: those are changed one kind at a time.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import clew
from clew.exceptions import ReplayError, RowNotFoundError
from clew.testing import read_batches, run_stream, write_batches
from frames import READINGS, READINGS_DDL, at
from proof.case import Outcome, Setting, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

CAPTURES = ("sets", "pointers", "intervals", "keys")
_ROWS = 4
_METERS = "ab"


def _table(path: Path) -> pa.Table:
    return pq.read_table(path, partitioning=None)


def _other(path: Path) -> pa.Table:
    """Return the rows of a file with other readings."""
    table = _table(path)
    changed = pa.array([-555 - n for n in range(table.num_rows)], pa.int64())
    return table.set_column(table.column_names.index("kwh"), "kwh", changed.cast(pa.int64()))


def _put(table: pa.Table, path: Path) -> None:
    pq.write_table(table.cast(READINGS), path)


def _with_times(path: Path, change: Callable[[], None]) -> None:
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _rewritten(path: Path) -> None:
    _put(_other(path), path)


def _rewritten_same_length(path: Path) -> None:
    before, table = path.stat().st_size, _table(path)
    # The same readings, of other rows: they take as many bytes.
    at = table.column_names.index("kwh")
    mixed = table.set_column(at, "kwh", table["kwh"].take(list(range(table.num_rows))[::-1]))
    _with_times(path, lambda: _put(mixed, path))
    assert path.stat().st_size == before, "the file has another length: the case shows nothing"


def _replaced_same_time(path: Path) -> None:
    draft = path.with_name(f".{path.name}")
    _put(_other(path), draft)
    before = path.stat()
    os.utime(draft, ns=(before.st_atime_ns, before.st_mtime_ns))
    draft.replace(path)


def _truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _compacted(path: Path) -> None:
    _put(_table(path), path.with_name(f"compacted-{path.name}"))
    path.unlink()


def _renamed(path: Path) -> None:
    path.rename(path.with_name(f"renamed-{path.name}"))


def _restored(path: Path) -> None:
    copy = path.with_name(f".{path.name}")
    shutil.copy2(path, copy)
    path.unlink()
    shutil.copy2(copy, path)
    copy.unlink()


def _restored_other(path: Path) -> None:
    path.unlink()
    _put(_table(path.parent / "00000.parquet"), path)


def _appended(path: Path) -> None:
    table = _table(path)
    _put(pa.concat_tables([table, _other(path).slice(0, 1)]), path)


def _reversed(path: Path) -> None:
    table = _table(path)
    _with_times(path, lambda: _put(table.take(list(range(table.num_rows))[::-1]), path))


def _away_and_back(path: Path) -> None:
    away = path.parent.with_name("away")
    path.parent.rename(away)
    away.rename(path.parent)


def _joined_by_another(path: Path) -> None:
    _put(_other(path), path.with_name(f"more-{path.name}"))


def _nothing(path: Path) -> None:
    pass


KINDS: dict[str, Callable[[Path], None]] = {
    "untouched": _nothing,
    "rewritten": _rewritten,
    "rewritten, same length and time": _rewritten_same_length,
    "replaced through a rename, same time": _replaced_same_time,
    "truncated": _truncated,
    "deleted": lambda path: path.unlink(),
    "compacted into another file": _compacted,
    "renamed": _renamed,
    "touched": lambda path: path.touch(),
    "deleted and restored": _restored,
    "deleted, another file in its place": _restored_other,
    "a row appended by rewriting": _appended,
    "rows in another order, same time": _reversed,
    "folder moved away and back": _away_and_back,
    "another file beside it": _joined_by_another,
}
HARMLESS = ("untouched", "folder moved away and back", "another file beside it")
"""What happens around a file and not to it: its rows must be answered."""


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Change sources in every way, under every capture, and ask."""
    chooser = random.Random(setting.seed)

    def some(cells: list[Any], few: int) -> list[Any]:
        return chooser.sample(cells, few) if setting.quick else cells

    for capture in some(list(CAPTURES), 1):
        yield from _streams(setting, capture, unfolded=False)
    if not setting.quick:
        yield from _streams(setting, "pointers", unfolded=True)
    for number, (capture, kind) in enumerate(some([(c, k) for c in CAPTURES for k in KINDS], 3)):
        yield from _batches(setting, capture, kind, number)
    for number, (capture, change) in enumerate(some([(c, t) for c in CAPTURES for t in TABLES], 1)):
        yield from _tables(setting, capture, change, number)


def _rows(window: int) -> list[dict[str, Any]]:
    # Far enough apart that what lies around one window is in no other's file.
    clock = f"{10 + window // 12}:{5 * (window % 12):02d}"
    return [
        {
            "rid": 10 * window + n,
            "ts": at(f"{clock}:{n:02d}"),
            "meter": _METERS[n % 2],
            "kwh": window + n,
        }
        for n in range(_ROWS)
    ]


def _asked_for(window: int) -> set[tuple[int, int]]:
    return {(row["rid"], row["kwh"]) for row in _rows(window) if row["meter"] == _METERS[0]}


def _results(prov: clew.Provenance) -> dict[tuple[int, int], Any]:
    """Return the results of the meter that is asked for, by hour and minute."""
    return {
        (row["window"]["start"].hour, row["window"]["start"].minute): row
        for row in prov.rows("sums")
        if row["meter"] == _METERS[0]
    }


def _result(prov: clew.Provenance, window: int) -> Any:
    begin = _rows(window)[0]["ts"]
    return _results(prov)[begin.hour, begin.minute]


def _answer(ask: Callable[[], clew.Trace], expected: set[tuple[int, int]], *, must: bool) -> str:
    """Say what is wrong with an answer: it is right, or it is none and says why."""
    try:
        why = ask()
    except ReplayError as error:
        return f"refused without need: {error}" if must else ""
    except RowNotFoundError as error:
        return f"a row of the store was not found: {error}"
    found = {(row["rid"], row["kwh"]) for row in why.rows if row.stream == "readings"}
    if why.complete:
        return "" if found == expected else f"found {sorted(found)}, and not {sorted(expected)}"
    if must:
        return f"gaps without need: {why.gaps}"
    if not found <= expected:
        return f"rows that were not behind it, beside gaps: {sorted(found - expected)}"
    said = " ".join(gap.reason for gap in why.gaps)
    return "" if ".parquet" in said or "`" in said else f"a gap that names nothing: {said}"


def _replay(ask: Callable[[], clew.Replay], *, must: bool) -> str:
    try:
        replay = ask()
    except ReplayError as error:
        return f"refused without need: {error}" if must else ""
    return "" if replay.same else f"the query is blamed for its source: {replay}"


def _sums(readings: clew.TracedFrame) -> clew.TracedFrame:
    grouped = readings.groupBy(F.window("ts", "1 minute"), "meter")
    return grouped.agg(F.sum("kwh").alias("kwh"), F.count("*").alias("n"))


def _streamed(spark: SparkSession, folder: Path, rates: Path | None = None) -> clew.TracedFrame:
    stream = read_batches(spark, folder, READINGS_DDL)
    readings = clew.trace(stream, "readings", event_time="ts").withWatermark("ts", "0 seconds")
    if rates is not None:
        readings = readings.join(clew.trace(spark.read.parquet(str(rates)), "rates"), "meter")
    return _sums(readings)


def _streams(setting: Setting, capture: str, *, unfolded: bool) -> Iterator[Outcome]:
    """Change the files of one stream, each in its own way, and ask for every window."""
    place = setting.folder / f"stream-{capture}-{unfolded}"
    kinds = list(KINDS)
    # Two more, so that all windows are closed.
    write_batches(place / "in", READINGS, [_rows(n) for n in range(len(kinds) + 2)])
    frame = _streamed(setting.spark, place / "in")
    later = {"unfold": "here" if unfolded else "later"} if capture == "pointers" else {}
    run_stream(frame, place / "prov", "sums", checkpoint=place / "chk", capture=capture, **later)
    for number, kind in enumerate(kinds):
        KINDS[kind](place / "in" / f"{number:05d}.parquet")
    prov = clew.open(place / "prov")
    when = "unfolded before" if unfolded else "not unfolded"
    # A query that reads nothing again does not note what its files cover.
    answers = capture != "sets"
    results = _results(prov)
    for number, kind in enumerate(kinds):
        begin = _rows(number)[0]["ts"]
        row, expected = results[begin.hour, begin.minute], _asked_for(number)
        must = kind in HARMLESS or capture == "sets" or unfolded
        yield check(
            f"stream, {capture}, {when}, {kind}",
            lambda row=row, expected=expected, must=must: _answer(
                lambda: prov.backward("sums", row.id), expected, must=must
            ),
        )
        if setting.quick and number % 5:
            continue
        period = (begin.isoformat(), begin.replace(second=59).isoformat())
        yield check(
            f"stream, {capture}, {when}, {kind}, replay",
            lambda period=period, kind=kind: _replay(
                lambda: prov.replay("sums", period=period), must=answers and kind in HARMLESS
            ),
        )


def _batches(setting: Setting, capture: Any, kind: str, number: int) -> Iterator[Outcome]:
    """Change one of the files of a batch query, and ask for a result of it and of another."""
    place = setting.folder / f"batch-{capture}-{number}"
    write_batches(place / "in", READINGS, [_rows(n) for n in range(3)])

    def frame() -> clew.TracedFrame:
        return _sums(clew.trace(setting.spark.read.parquet(str(place / "in")), "readings"))

    writer = frame().write.provenance(str(place / "prov"), capture=capture, name="sums")
    writer.parquet(str(place / "out"))
    KINDS[kind](place / "in" / "00001.parquet")
    # Half of them as another process would ask, which lists the files anew.
    pipelines = {"sums": frame()} if number % 2 and kind != "truncated" else None
    prov = clew.open(place / "prov", pipelines=pipelines)
    must = kind in HARMLESS or capture in ("sets", "pointers")
    row, expected = _result(prov, 1), _asked_for(1)
    yield check(
        f"batch, {capture}, {kind}",
        lambda: _answer(lambda: prov.backward("sums", row.id), expected, must=must),
    )
    yield check(
        f"batch, {capture}, {kind}, replay",
        lambda: _replay(lambda: prov.replay("sums"), must=kind in HARMLESS),
    )


def _put_rates(folder: Path, name: str, price: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"meter": ["a"], "price": [price]}), folder / name)


TABLES: dict[str, Callable[[Path], None]] = {
    "a file added": lambda folder: _put_rates(folder, "b.parquet", 2),
    "rewritten": lambda folder: _put_rates(folder, "a.parquet", 3),
    "renamed": lambda folder: _renamed(folder / "a.parquet"),
    "deleted": lambda folder: (folder / "a.parquet").unlink(),
    "moved away and back": lambda folder: _away_and_back(folder / "a.parquet"),
}


def _tables(setting: Setting, capture: str, change: str, number: int) -> Iterator[Outcome]:
    """Change the table beside a stream between two runs, and ask for results of the first."""
    place = setting.folder / f"table-{capture}-{number}"
    _put_rates(place / "rates", "a.parquet", 1)
    write_batches(place / "in", READINGS, [_rows(n) for n in range(3)])
    later = {"unfold": "later"} if capture == "pointers" else {}

    def go() -> None:
        frame = _streamed(setting.spark, place / "in", place / "rates")
        run_stream(
            frame, place / "prov", "sums", checkpoint=place / "chk", capture=capture, **later
        )

    go()
    TABLES[change](place / "rates")
    if change != "deleted":
        write_batches(place / "in", READINGS, [_rows(n) for n in range(3, 6)])
        go()
    frame = _streamed(setting.spark, place / "in", place / "rates") if change != "deleted" else None
    prov = clew.open(place / "prov", pipelines={"sums": frame} if frame is not None else None)

    def prices() -> str:
        try:
            why = prov.backward("sums", _result(prov, 0).id)
        except ReplayError as error:
            kept = capture == "sets" or change in ("a file added", "moved away and back")
            return f"refused without need: {error}" if kept else ""
        found = {row["price"] for row in why.rows if row.stream == "rates"}
        if not why.complete:
            return "" if not found else f"prices beside gaps: {found}"
        return "" if found == {1} else f"it had the price 1, and is traced to {sorted(found)}"

    yield check(f"table, {capture}, {change}", prices)
    yield check(
        f"table, {capture}, {change}, replay",
        lambda: _replay(lambda: prov.replay("sums"), must=False),
    )
