"""GeneaLog's and Ananke's eight queries and real flights: every result, with the rows behind it.

The streams go the whole way: through the sink, the store and the queries of `clew.open`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import clew
from clew.testing import Traced, collect_traces, run_stream
from clew.workloads import linear_road, write_files
from domains import flights, object_annotation, smart_grid, vehicle_tracking
from proof.captures import refusal, refused
from proof.case import Outcome, Setting, check, difference, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from clew.capture.kinds import CaptureName
    from clew.workloads import Expected, Part

    Frames = Mapping[str, clew.TracedFrame]


CAPTURES: tuple[CaptureName, ...] = ("sets", "pointers", "intervals", "keys")


@dataclass(frozen=True)
class Workload:
    """A query over tables, and what it must return."""

    name: str
    tables: dict[str, pa.Table]
    closings: dict[str, pa.Table]
    query: Callable[[Frames], clew.TracedFrame]
    expected: Sequence[Expected]
    static: frozenset[str] = frozenset()
    streams: bool = True


def workloads(setting: Setting) -> Iterator[Workload]:
    seed, big = setting.seed, not setting.quick
    road = linear_road.reports(
        cars=300 if big else 60, minutes=20, seed=seed, stopped=8, accidents=3, out_of_order=20
    )
    closing = {"reports": linear_road.closing_report(road)}
    yield Workload(
        "Linear Road, stopped cars",
        {"reports": road},
        closing,
        lambda f: linear_road.stopped_cars(f["reports"]),
        linear_road.expected_stopped_cars(road),
    )
    yield Workload(
        "Linear Road, accidents",
        {"reports": road},
        closing,
        lambda f: linear_road.accidents_from_reports(f["reports"]),
        linear_road.expected_accidents(road),
    )
    grid = smart_grid.readings(meters=60 if big else 30, seed=seed)
    closing = {"readings": smart_grid.closing_reading(grid)}
    yield Workload(
        "Smart Grid, blackouts",
        {"readings": grid},
        closing,
        lambda f: smart_grid.blackouts(f["readings"]),
        smart_grid.expected_blackouts(grid),
    )
    yield Workload(
        "Smart Grid, anomalies",
        {"readings": grid},
        closing,
        lambda f: smart_grid.anomalies(f["readings"]),
        smart_grid.expected_anomalies(grid),
    )
    yield from _cars(seed, big=big)
    yield from _flights(big=big)


def _cars(seed: int, *, big: bool) -> Iterator[Workload]:
    driven = vehicle_tracking.positions(cars=20 if big else 10, seed=seed, out_of_order=20)
    closing = {"positions": vehicle_tracking.closing_position(driven)}
    yield Workload(
        "Vehicle Tracking, speeding",
        {"positions": driven},
        closing,
        lambda f: vehicle_tracking.speeding(f["positions"]),
        vehicle_tracking.expected_speeding(driven),
    )
    yield Workload(
        "Vehicle Tracking, visits",
        {"positions": driven},
        closing,
        lambda f: vehicle_tracking.visits(f["positions"]),
        vehicle_tracking.expected_visits(driven),
    )
    seen = object_annotation.frames(
        cars=3, seconds=30 if big else 15, seed=seed, crossings=6, out_of_order=2
    )
    closing = {"frames": object_annotation.closing_frame(seen)}
    yield Workload(
        "Object Annotation, bicycles ahead",
        {"frames": seen},
        closing,
        lambda f: object_annotation.bicycles_ahead(f["frames"]),
        object_annotation.expected_bicycles_ahead(seen),
    )
    yield Workload(
        "Object Annotation, crossings",
        {"frames": seen},
        closing,
        lambda f: object_annotation.crossings(f["frames"]),
        object_annotation.expected_crossings(seen),
    )


def _flights(*, big: bool) -> Iterator[Workload]:
    data = flights.load(date(2013, 2, 7 if big else 8), date(2013, 2, 11 if big else 10))
    left, sky = data.flights, data.weather
    closing = {"flights": flights.closing_flight(left), "weather": flights.closing_weather(sky)}
    yield Workload(
        "flights, delayed departures",
        {"flights": left},
        closing,
        lambda f: flights.delayed_departures(f["flights"]),
        flights.expected_delayed_departures(left),
    )
    yield Workload(
        "flights, delays with weather",
        {"flights": left, "weather": sky},
        closing,
        lambda f: flights.delays_with_weather(
            flights.delayed_departures(f["flights"]), f["weather"]
        ),
        flights.expected_delays_with_weather(left, sky),
        frozenset({"weather"}),
    )
    yield Workload(
        "flights, late flights and their planes",
        {"flights": left, "planes": data.planes},
        {},
        lambda f: flights.late_flights(f["flights"], f["planes"]),
        flights.expected_late_flights(left, data.planes),
        frozenset({"planes"}),
    )


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check every result row of every workload, in batch and as a stream through a store."""
    for number, workload in enumerate(workloads(setting)):
        if not setting.quick or number % 2 == 0:
            yield from _batch(setting, workload)
        if not setting.quick or number % 2 == 1:
            few: tuple[CaptureName, ...] = ("auto",)
            captures = few if setting.quick else CAPTURES
            for capture in captures:
                yield from _stream(setting, workload, capture)


def _folder(setting: Setting, workload: Workload) -> Path:
    return setting.folder / workload.name.replace(", ", "-").replace(" ", "-")


def _batch(setting: Setting, workload: Workload) -> Iterator[Outcome]:
    folder = _folder(setting, workload) / "batch"
    parts = {n: write_files(t, folder / n, files=2) for n, t in workload.tables.items()}
    frames = {
        n: clew.trace(setting.spark.read.parquet(str(folder / n)), n) for n in workload.tables
    }

    def test() -> str:
        traces = collect_traces(workload.query(frames))
        return difference(_expected(workload), [_indexed(t, parts) for t in traces])

    yield check(f"{workload.name}, batch, {len(workload.expected)} results", test)


def _stream(setting: Setting, workload: Workload, capture: CaptureName) -> Iterator[Outcome]:
    folder = _folder(setting, workload) / capture
    parts: dict[str, list[Part]] = {}
    frames = {}
    for name, table in workload.tables.items():
        streamed = name not in workload.static
        closing = workload.closings.get(name) if streamed else None
        parts[name] = write_files(table, folder / name, files=5 if streamed else 1, closing=closing)
        schema = setting.spark.read.parquet(str(folder / name)).schema
        if streamed:
            reader = setting.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
            frames[name] = clew.trace(reader.parquet(str(folder / name)), name)
        else:
            frames[name] = clew.trace(setting.spark.read.parquet(str(folder / name)), name)

    frame = workload.query(frames)
    if refusal(frame, capture):
        refused[refusal(frame, capture)] += 1
        return

    def run() -> str:
        run_stream(frame, folder / "prov", "results", checkpoint=folder / "chk", capture=capture)
        clew.open(folder / "prov").unfold("results")
        return ""

    started = check(f"{workload.name}, stream with {capture} runs", run)
    if started.wrong:
        yield started
        return
    prov = clew.open(str(folder / "prov"))
    rows = list(prov.rows("results", limit=None))

    def test() -> str:
        found = []
        for row in rows:
            trace = prov.backward("results", row)
            places: dict[str, list[tuple[str, int]]] = {}
            for source in trace.rows:
                places.setdefault(source.stream, []).append(
                    (source.segment or "", source.position or 0)
                )
            found.append(_indexed(Traced(dict(row), {}, places), parts))
        closing = {len(t) for t in workload.tables.values()}
        return difference(
            [(_times(v), r) for v, r in _expected(workload)],
            [(_times(v), r) for v, r in found if not _is_closing(r, workload, closing)],
        )

    name = f"{workload.name}, stream and store, {capture}"
    yield check(f"{name}, {len(workload.expected)} results", test)
    yield from _forward(prov, workload, parts, name)
    yield check(f"{name}, replayed", _replayed, prov, len(rows))


def _replayed(prov: clew.Provenance, count: int) -> str:
    """Run the whole query again: every result must come out as it is in the store."""
    done = prov.replay("results")
    return "" if done.same and done.unchanged == count else f"{done} of {count}"


def _forward(
    prov: clew.Provenance, workload: Workload, parts: dict[str, list[Part]], title: str
) -> Iterator[Outcome]:
    """Ask the other way round: each source row leads to just the results that it is behind."""
    name = next(iter(workload.tables))

    def test() -> str:
        wrong = []
        sample = sorted(prov.rows(name, limit=None), key=lambda row: row.id)[:10]
        for row in sample:
            index = _index((row.segment or "", row.position or 0), parts[name])
            expected = sum(index in e.rows[name] for e in workload.expected)
            found = len(prov.forward(name, row))
            if index < workload.tables[name].num_rows and found != expected:
                wrong.append(f"row {index}: {expected} results expected, {found} found")
        return "\n".join(wrong)

    yield check(f"{title}, forward from source rows", test)


def _expected(workload: Workload) -> list[Any]:
    return [
        (frozen(dict(e.values)), frozenset((s, i) for s, rows in e.rows.items() for i in rows))
        for e in workload.expected
    ]


def _indexed(trace: Traced, parts: dict[str, list[Part]]) -> Any:
    rows = frozenset((s, _index(p, parts[s])) for s, places in trace.places.items() for p in places)
    return frozen(trace.values), rows


def _index(place: tuple[str, int], parts: list[Part]) -> int:
    segment, position = place
    [part] = [p for p in parts if segment.endswith(str(p.path))]
    return part.first + position


def _is_closing(rows: frozenset[tuple[str, int]], workload: Workload, sizes: set[int]) -> bool:
    return any(i >= workload.tables[s].num_rows for s, i in rows)


def _times(value: Any) -> Any:
    """Read times as UTC: Arrow gives them a zone, DuckDB does not."""
    if isinstance(value, tuple):
        return tuple(_times(v) for v in value)
    if hasattr(value, "tzinfo") and value.tzinfo is not None:
        return value.replace(tzinfo=None)
    return value
