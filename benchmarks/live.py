"""What does a live graph cost the queries that it follows?

Runs the two queries of each use case together: plain, with a live graph by each engine, and where
Ananke does so (Figures 18 and 19) with databases that are polled. All in one process, in turns, and
the runs of a turn are compared with each other; each turn has another order.
Small turns warm up and are dropped. Writes `benchmarks/results/live.json`, one row per use case and
engine:

| field | means |
|---|---|
| `live_rows_per_s` | input rows by the seconds until the last element is delivered |
| `ratio` | `live_rows_per_s` / `plain_rows_per_s`: median over turns, with lowest and highest |
| `cpu_ratio` | CPU seconds of all processes until then, live / plain |
| `peak_rss_ratio` | the most memory of all processes, live / plain; see `live_memory` |
| `provenance_latency_u` | event time until an element is there, in multiples of U; `live_latency` |
| `delivery_latency_s` | seconds from the commit of provenance to the delivery of its elements |

Rows whose use case begins with `synthetic` are about provenance that no query made, see
`live_synthetic`; what counts there is how many results an engine takes in per second. A field is
null where it has no meaning or was not measured.

Run: python -m benchmarks.live [--quick] [--only TEXT] [--results FILE]
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import statistics
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import live_runs, live_synthetic, overhead, streams
from benchmarks.databases import RELAXED, OnDemand, Postgres, Sqlite
from benchmarks.live_domains import DOMAINS
from benchmarks.live_latency import latencies
from benchmarks.live_memory import peak_bytes
from benchmarks.live_postgres import Server, UnavailableError
from benchmarks.live_runs import ENGINES, FOLLOW_EVERY
from benchmarks.live_synthetic import Shape
from benchmarks.processes import all_cpu_seconds, cpu_seconds, machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.databases import Database
    from benchmarks.live_domains import Domain
    from benchmarks.live_runs import Run
    from benchmarks.streams import Stream
    from clew.frame.frame import TracedFrame
    from clew.live.graph_state import EngineName

RESULTS = Path(__file__).parent / "results" / "live.json"
SCRATCH = Path("build") / "bench-live"
STATE_STORE = "in memory (HDFSBackedStateStoreProvider)"
_JAVA = overhead.SESSION["spark.driver.extraJavaOptions"]

FIELDS = (
    "use_case",
    "engine",
    "input_rows",
    "plain_rows_per_s",
    "live_rows_per_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "cpu_ratio",
    "peak_rss_ratio",
    "vertices",
    "edges",
    "labels",
    "provenance_latency_u",
    "delivery_latency_s",
    "sink_rows",
    "repetitions",
)
"""The fields of every row; synthetic ones have more."""

SIZES, OVERLAPS = (10, 50, 100), (0, 25, 75)
QUERIES, PARTITIONS = (1, 2, 4), (1, 2, 4)


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Attributes:
        turns: How many turns count.
        database_turns: In how many of them databases run as well.
        first_warm_ups: How many small turns of the first use case are dropped.
        warm_ups: How many of the others.
        batches: In how many batches a small turn takes its stream.
        latency: The engines whose provenance latency is measured.
        latency_of: In use cases whose name holds this text.
        fine: In how many batches the queries take the stream for that, of four times U.
        memory: Measure memory.
        shapes: The synthetic stores for both engines.
        database_shapes: Those of them for databases.
        several: The synthetic stores with several queries.
        partitions: In how many partitions the native engine builds the graphs of these.
        fed: How often the graph of each is built.
    """

    turns: int = 5
    database_turns: int = 2
    first_warm_ups: int = 4
    warm_ups: int = 2
    batches: int = 5
    latency: tuple[EngineName, ...] = ENGINES
    latency_of: str = ""
    fine: int = 12
    memory: bool = True
    shapes: tuple[Shape, ...] = tuple(Shape(size, share) for size in SIZES for share in OVERLAPS)
    database_shapes: tuple[Shape, ...] = tuple(Shape(size, 0) for size in SIZES)
    several: tuple[Shape, ...] = tuple(Shape(50, 25, number, 100_000) for number in QUERIES)
    partitions: tuple[int, ...] = PARTITIONS
    fed: int = 2


_FEW = Shape(50, 25, 1, 5_000)
QUICK = Plan(
    turns=1,
    database_turns=0,
    first_warm_ups=0,
    warm_ups=0,
    batches=1,
    latency=("operator",),
    latency_of="linear_road",
    fine=4,
    memory=False,
    shapes=(_FEW,),
    database_shapes=(_FEW,),
    several=(Shape(50, 25, 2, 5_000),),
    partitions=(2,),
    fed=1,
)


@dataclass
class Trial:
    """A use case in the course of being measured."""

    domain: Domain
    stream: Stream
    plain: dict[str, DataFrame]
    traced: dict[str, TracedFrame]
    turns: list[dict[str, Run]] = field(default_factory=list)
    latency: dict[str, Any] = field(default_factory=dict)
    peaks: dict[str, int] = field(default_factory=dict)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Compare the runs with each engine with the plain ones."""
        engines = dict.fromkeys(name for turn in self.turns for name in turn if name != "plain")
        for engine in sorted(engines, key=_place):
            yield self._compared(engine)

    def _compared(self, engine: str) -> dict[str, Any]:
        pairs = [(turn["plain"], turn[engine]) for turn in self.turns if engine in turn]
        ratios = [plain.seconds / run.seconds for plain, run in pairs]
        last = pairs[-1][1]
        said = {
            "use_case": self.domain.use_case,
            "engine": engine,
            "input_rows": self.stream.rows,
            "plain_rows_per_s": self._rate(plain for plain, _ in pairs),
            "live_rows_per_s": self._rate(run for _, run in pairs),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_low": round(min(ratios), 3),
            "ratio_high": round(max(ratios), 3),
            "cpu_ratio": round(statistics.median(run.cpu / plain.cpu for plain, run in pairs), 3),
            "vertices": last.vertices,
            "edges": last.edges,
            "labels": last.labels,
            "provenance_latency_u": self.latency.get(engine),
            "delivery_latency_s": _median(d for _, run in pairs for d in run.delays),
            "sink_rows": last.sink_rows,
            "repetitions": len(pairs),
        }
        if engine in self.peaks:
            said["peak_rss_ratio"] = round(self.peaks[engine] / self.peaks["plain"], 3)
        return {name: said.get(name) for name in FIELDS}

    def _rate(self, runs: Iterator[Run]) -> int:
        return round(self.stream.rows / statistics.median(run.seconds for run in runs))


class Bench:
    """Measures use cases.

    Args:
        spark: The session.
        plan: How much is measured.
        databases: Makes an empty database, by its name in the results, and says how long to wait
            between two polls.
        quick: Take fewer rows.
    """

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        databases: dict[str, tuple[Callable[[], Database], float]],
        *,
        quick: bool,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._databases = databases
        self._quick = quick
        self._runs = 0
        self._is_warm = False

    def measure(self, domain: Domain) -> Trial:
        """Measure a use case with all its repetitions."""
        rows = domain.quick_rows if self._quick else domain.rows
        warm_ups = self._plan.warm_ups if self._is_warm else self._plan.first_warm_ups
        few = self._plan.batches
        small = self._trial(domain, max(domain.quick_rows // 2, rows // 4), few)
        if not self._is_warm:
            self._run(small, "operator")  # what comes first in a session pays for its start
            self._is_warm = True
        for number in range(warm_ups):
            self._turn(small, with_databases=number == 0 and not self._quick)
        trial = self._trial(domain, rows, few if self._quick else domain.batches)
        for number in range(self._plan.turns):
            self._turn(trial, with_databases=number < self._plan.database_turns)
            said = ", ".join(f"{name} {run.seconds:.1f} s" for name, run in trial.turns[-1].items())
            print(f"{domain.use_case}, turn {number + 1}: {said}", flush=True)
        if self._plan.latency_of in domain.use_case:
            plan, folder = self._plan, self._fresh()
            trial.latency = latencies(self._spark, domain, plan.latency, plan.fine, folder)
        if self._plan.memory:
            scratch = SCRATCH.absolute() / "memory"
            for variant in ("plain", *ENGINES):
                found = peak_bytes(domain.use_case, variant, small.stream, scratch)
                trial.peaks[variant] = found
        return trial

    def _trial(self, domain: Domain, rows: int, batches: int) -> Trial:
        stream = streams.write(domain.data, SCRATCH.absolute() / "in", rows, batches=batches)
        plain = live_runs.plain_frames(self._spark, domain, stream)
        return Trial(domain, stream, plain, live_runs.traced_frames(self._spark, domain, stream))

    def _turn(self, trial: Trial, *, with_databases: bool) -> None:
        asked = self._databases if trial.domain.databases and with_databases else {}
        variants = ("plain", *ENGINES, *asked)
        turn = {v: self._run(trial, v) for v in _mixed(variants, len(trial.turns))}
        for what in ("sink_rows", "vertices", "edges"):
            known = {getattr(run, what) for name, run in turn.items() if name != "plain"}
            assert len(known) == 1, f"{trial.domain.use_case}: {what} are {known}"
        trial.turns.append(turn)

    def _run(self, trial: Trial, variant: str) -> Run:
        live_runs.settle(self._spark)
        folder = self._fresh()
        if variant == "plain":
            run = live_runs.run_plain(trial.plain, folder)
        else:
            run = live_runs.run_live(trial.traced, folder, self._follow(trial.domain, variant))
        shutil.rmtree(folder)
        return run

    def _follow(self, domain: Domain, variant: str) -> Callable[[Path], Callable[[], None]]:
        queries = tuple(domain.queries)
        for engine in ENGINES:
            if engine == variant:
                return live_runs.follow_with(self._spark, engine, queries)
        make, every = self._databases[variant]
        return lambda root: OnDemand(root, queries, make(), every).start().finish

    def _fresh(self) -> Path:
        self._runs += 1
        return SCRATCH.absolute() / f"run-{self._runs}"

    def feed(self) -> Iterator[dict[str, Any]]:
        """Measure the engines on provenance that no query made."""
        plan = self._plan
        for shape in plan.shapes:
            asked = tuple(self._databases) if shape in plan.database_shapes else ()
            yield from self._fed("synthetic_size", shape, [(e, 2) for e in ENGINES], asked)
        for shape in plan.several:
            native = [("native", partitions) for partitions in plan.partitions]
            yield from self._fed("synthetic_queries", shape, [("operator", 1), *native], ())

    def _fed(
        self,
        use_case: str,
        shape: Shape,
        engines: Sequence[tuple[Any, int]],
        databases: Sequence[str],
    ) -> Iterator[dict[str, Any]]:
        root = self._fresh()
        live_synthetic.write_store(root, shape)
        ways: dict[tuple[str, int | None], Any] = {
            (engine, partitions): partial(
                live_synthetic.feed_engine, root, shape, engine, self._spark, partitions
            )
            for engine, partitions in engines
        }
        for name in databases:
            make, every = self._databases[name]
            way = partial(live_synthetic.feed_database, root, shape, make, every)
            ways[name, None] = way
        found: dict[tuple[str, int | None], list[live_synthetic.Fed]] = {key: [] for key in ways}
        for turn in range(self._plan.fed):
            # Databases take long, and once is enough to tell.
            asked = [key for key in ways if key[0] in ENGINES or turn == 0]
            for key in asked if turn % 2 == 0 else reversed(asked):
                live_runs.settle(self._spark)
                self._runs += 1
                found[key].append(ways[key](f"graph-{self._runs}"))
        for (engine, partitions), each in found.items():
            row = live_synthetic.row(use_case, engine, shape, partitions, each)
            yield {**dict.fromkeys(FIELDS), **row}
        shutil.rmtree(root)


def _mixed(variants: Sequence[str], turn: int) -> list[str]:
    """Put variants in another order each turn, so that none always comes after the same one."""
    orders = ((0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1), (2, 0, 1), (1, 0, 2))
    first = [variants[place] for place in orders[turn % len(orders)]]
    others = list(variants[len(first) :])
    return [*first, *others] if turn % 2 == 0 else [*reversed(others), *first]


def _place(engine: str) -> int:
    """Put engines before databases."""
    return ENGINES.index(engine) if engine in ENGINES else len(ENGINES)


def _median(values: Iterator[float]) -> float | None:
    found = list(values)
    return round(statistics.median(found), 3) if found else None


def session(scratch: Path, java: str = _JAVA) -> SparkSession:
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName("clew bench-live")
    for key, value in {**overhead.SESSION, "spark.driver.extraJavaOptions": java}.items():
        builder = builder.config(key, value)
    local = {"spark.local.dir": "local", "spark.sql.warehouse.dir": "warehouse"}
    for key, name in local.items():
        builder = builder.config(key, str(scratch.absolute() / name))
    return builder.getOrCreate()


def databases(server: Server) -> dict[str, tuple[Callable[[], Database], float]]:
    """List the databases, with PostgreSQL if it can be had."""
    kinds: dict[str, Callable[[], Database]] = {"sqlite": Sqlite}
    try:
        server.start()
        kinds["postgres"] = partial(Postgres, server.dsn)
    except UnavailableError as error:
        print(f"PostgreSQL is left out: {error}", flush=True)
    polls = {"aggressive": 0.0, "relaxed": RELAXED}
    return {
        f"{kind}_{p}": (make, every) for kind, make in kinds.items() for p, every in polls.items()
    }


def show(row: dict[str, Any]) -> None:
    """Print a row as soon as it is known."""
    skipped = ("use_case", "engine")
    parts = [f"{k} {v}" for k, v in row.items() if k not in skipped and v is not None]
    print(f"{row['use_case']}, {row['engine']}: {', '.join(parts)}", flush=True)


def run(bench: Bench, only: str) -> Iterator[dict[str, Any]]:
    """Measure all use cases whose name holds a text."""
    for domain in DOMAINS:
        if only in domain.use_case:
            yield from bench.measure(domain).rows()
    if only in "synthetic":
        yield from bench.feed()


def write(result: dict[str, Any], path: Path) -> None:
    """Write what is known so far, so that a run that is stopped was not for nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="few rows, one turn, no memory")
    parser.add_argument("--only", default="", help="just use cases whose name holds this text")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file to write")
    options = parser.parse_args()
    plan = QUICK if options.quick else Plan()
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    began = time.perf_counter()
    others = all_cpu_seconds() - cpu_seconds()
    spark = session(SCRATCH)
    server = Server(SCRATCH.absolute() / "postgres")
    rows: list[dict[str, Any]] = []
    result: dict[str, Any] = {}
    try:
        about = machine(spark)
        print(json.dumps(about), flush=True)
        bench = Bench(spark, plan, databases(server), quick=options.quick)
        settings = {
            "repetitions": plan.turns,
            "seed": streams.SEED,
            "quick": options.quick,
            "follow_every_s": FOLLOW_EVERY,
            "spark": overhead.SESSION,
        }
        result = {"machine": about, "state_store": STATE_STORE, "settings": settings, "rows": rows}
        for row in run(bench, options.only):
            rows.append(row)
            show(row)
            write(result, options.results)
        seconds = time.perf_counter() - began
        used = (all_cpu_seconds() - cpu_seconds() - others) / seconds
        about["cores_used_by_others"] = round(used, 2)
    finally:
        server.stop()
        spark.stop()
        shutil.rmtree(SCRATCH, ignore_errors=True)
    result["settings"]["minutes"] = round(seconds / 60, 1)
    write(result, options.results)
    print(f"{seconds:.0f} s, {about['cores_used_by_others']} cores used by other processes")
    print(f"written to {options.results}")


if __name__ == "__main__":
    main()
