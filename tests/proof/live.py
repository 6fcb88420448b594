"""Live graphs of four domains: each domain's queries together, both engines, batches of any size.

Each graph is checked by `verify`, which knows nothing of how it was made, and against the edges of
the store. A graph that was killed at many points must be the same as one that was not.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clew
from clew.testing import committed_files, read_edges, run_stream
from clew.workloads import linear_road, write_files
from domains import object_annotation, smart_grid, vehicle_tracking
from live.graphs import elements, of
from proof.case import Outcome, Setting, check
from recovery.chain import run, write_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from clew.live.graph_state import EngineName

ENGINES: tuple[EngineName, ...] = ("operator", "native")
FILES = (1, 4, 9)
"""How many batches the input comes in."""

STEPS = {
    "operator": ("live elements made", "live step written", "live step delivered"),
    "native": (
        "live intake written",
        "live intake committed",
        "live elements made",
        "live step written",
        "live step delivered",
    ),
}
KILLS = {
    engine: tuple((step, nth) for nth in (1, 2, 1, 3) for step in steps)[:10]
    for engine, steps in STEPS.items()
}
"""Ten points for each engine."""


@dataclass(frozen=True)
class Domain:
    """Queries that read one source, and run together."""

    name: str
    source: str
    table: pa.Table
    closing: pa.Table
    queries: Mapping[str, Callable[[clew.TracedFrame], clew.TracedFrame]]


def domains(setting: Setting) -> Iterator[Domain]:
    seed = setting.seed
    road = linear_road.reports(
        cars=60, minutes=12, seed=seed, stopped=8, accidents=3, out_of_order=20
    )
    yield Domain(
        "Linear Road",
        "reports",
        road,
        linear_road.closing_report(road),
        {
            "stopped": linear_road.stopped_cars,
            "accidents": linear_road.accidents_from_reports,
        },
    )
    grid = smart_grid.readings(meters=30, seed=seed)
    yield Domain(
        "Smart Grid",
        "readings",
        grid,
        smart_grid.closing_reading(grid),
        {"blackouts": smart_grid.blackouts, "anomalies": smart_grid.anomalies},
    )
    driven = vehicle_tracking.positions(cars=10, seed=seed, out_of_order=20)
    yield Domain(
        "Vehicle Tracking",
        "positions",
        driven,
        vehicle_tracking.closing_position(driven),
        {"speeding": vehicle_tracking.speeding, "visits": vehicle_tracking.visits},
    )
    seen = object_annotation.frames(cars=2, seconds=15, seed=seed, crossings=4, out_of_order=2)
    yield Domain(
        "Object Annotation",
        "frames",
        seen,
        object_annotation.closing_frame(seen),
        {
            "bicycles": object_annotation.bicycles_ahead,
            "crossings": object_annotation.crossings,
        },
    )


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Check the live graph of every domain, and that kills leave no trace."""
    for number, domain in enumerate(domains(setting)):
        sizes = (FILES[number % len(FILES)],) if setting.quick else FILES
        for files in sizes:
            folder = setting.folder / f"{domain.name.replace(' ', '-')}-{files}"
            ran = check(
                f"{domain.name}, {files + 1} batches, queries run", _run, setting, domain, files
            )
            if ran.wrong:
                yield ran
                continue
            for engine in ENGINES:
                name = f"{domain.name}, {files + 1} batches, {engine}"
                yield check(name, _graph, setting, folder, domain, engine)
    if not setting.quick:
        # A query that carries sets finishes a part with each batch, so there are many steps.
        write_input(setting.folder / "many", batches=50)
        assert run(setting.folder / "many") == "finished"
        for engine in ENGINES:
            yield from _kills(setting, setting.folder / "many", engine)


def _run(setting: Setting, domain: Domain, files: int) -> str:
    folder = setting.folder / f"{domain.name.replace(' ', '-')}-{files}"
    write_files(domain.table, folder / "in", files=files, closing=domain.closing)
    schema = setting.spark.read.parquet(str(folder / "in")).schema
    for name, query in domain.queries.items():
        reader = setting.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        frame = query(clew.trace(reader.parquet(str(folder / "in")), domain.source))
        run_stream(frame, folder / "prov", name, checkpoint=folder / name)
    return ""


def _graph(setting: Setting, folder: Path, domain: Domain, engine: EngineName) -> str:
    with clew.open(folder / "prov") as prov:
        graph = prov.graph(name=engine, engine=engine, spark=setting.spark)
        graph.advance()
        report = graph.verify()
        if not report.ok:
            return str(report)
        found = elements(prov, engine)
        wrong = []
        expected = _stored(folder / "prov", domain)
        if of("edge", found) != expected:
            wrong.append(f"{report.edges} edges, {expected.total()} in the store")
        ends = {("source", *edge[3:]) for edge in expected}
        if set(of("vertex", found, "source")) != ends:
            wrong.append("the source vertices are not the ends of the edges")
        alive = {("source", r.stream, r.id.a, r.id.b) for r in prov.alive(domain.source, None)}
        if set(of("label", found, "source")) != ends - alive:
            wrong.append(f"{report.labels} labels, but {len(alive)} of {len(ends)} rows are alive")
        return "; ".join(wrong)


def _stored(store: Path, domain: Domain) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for name in domain.queries:
        for file in map(Path, committed_files(store, name)):
            if file.parents[2].name == "edges":
                found.update(
                    tuple(edge.values())
                    for edge in read_edges(file).to_pylist()
                    if edge["sink"] == name and edge["source"] == domain.source
                )
    return found


def _kills(setting: Setting, folder: Path, engine: EngineName) -> Iterator[Outcome]:
    """Kill the building of a graph at each point in turn, and compare with one left in peace."""
    calm, stormy = setting.folder / f"calm-{engine}", setting.folder / f"stormy-{engine}"
    for each in (calm, stormy):
        shutil.copytree(folder / "prov", each / "prov", ignore=shutil.ignore_patterns("live"))
    assert run(calm, engine, program="live.py") == "finished"
    for step, nth in KILLS[engine]:

        def killed(step: str = step, nth: int = nth) -> str:
            said = run(stormy, engine, step, str(nth), program="live.py")
            return "" if said.startswith(f"killed at {step},") else f"it was not killed: {said}"

        yield check(f"{engine} killed at {step}, time {nth}", killed)

    def same() -> str:
        if (said := run(stormy, engine, program="live.py")) != "finished":
            return f"the last run did not finish: {said}"
        with clew.open(calm / "prov") as one, clew.open(stormy / "prov") as other:
            report = other.graph(name=engine, spark=setting.spark).verify()
            if not report.ok:
                return str(report)
            before, after = elements(one, engine), elements(other, engine)
            kinds = ("vertex", "edge", "label")
            differ = [kind for kind in kinds if of(kind, before) != of(kind, after)]
            return f"{differ} differ" if differ else ""

    yield check(f"{engine}: after all kills the graph is the same", same)
