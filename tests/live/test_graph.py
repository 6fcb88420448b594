"""Live graphs: what they deliver, when, and that they deliver it once."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

import clew
from clew.exceptions import StoreConflictError, UnknownStreamError, WriterError
from clew.live.deliver import steps
from clew.live.elements import SCHEMA
from clew.store.layout import EDGES
from clew.testing import committed_files, read_edges, run_stream, write_batches
from frames import READINGS, at, scattered
from live.graphs import QUERIES, elements, of, readings, run, summed
from seeds import ananke
from seeds.case import write_batches as write_case

if TYPE_CHECKING:
    import datetime as dt

    from pyspark.sql import SparkSession

    from clew.live.graph import LiveGraph
    from clew.live.graph_state import EngineName

ENGINES: tuple[EngineName, ...] = ("operator", "native")


def stored_edges(prov: clew.Provenance, names: tuple[str, ...]) -> Counter[Any]:
    """Read the edges of queries from the store itself."""
    found: Counter[Any] = Counter()
    for name in names:
        for file in map(Path, committed_files(Path(prov.path), name)):
            if file.parents[2].name == EDGES:
                for edge in read_edges(file).to_pylist():
                    found[tuple(edge.values())] += 1
    return found


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step take one batch with edges at a time."""
    monkeypatch.setattr("clew.live.take.MOST_EDGES", 0)


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(
    ("names", "capture"),
    [(("summed",), "sets"), (("nested", "joined"), "pointers"), (("large", "summed"), "pointers")],
)
def test_everything_is_delivered_once_and_labelled(
    spark: SparkSession, tmp_path: Path, names: tuple[str, ...], capture: str
) -> None:
    seed = random.Random(f"{names}{capture}").randrange(1000)
    print(f"seed {seed}")
    with run(spark, tmp_path, names, scattered(seed, 8, late=40), capture=capture) as prov:
        for engine in ENGINES:
            check_everything(spark, prov, engine, names)


def check_everything(
    spark: SparkSession, prov: clew.Provenance, engine: Any, names: tuple[str, ...]
) -> None:
    graph = prov.graph(name=engine, engine=engine, spark=spark)
    graph.advance()
    found = elements(prov, engine)

    assert str(graph.verify()).endswith("0 violations")
    assert of("edge", found) == stored_edges(prov, names)
    sinks = {("sink", n, r.id.a, r.id.b) for n in names for r in prov.rows(n, limit=None)}
    assert of("vertex", found, "sink") == Counter(sinks)
    sources = {("source", "readings", e[4], e[5]) for e in stored_edges(prov, names)}
    assert of("vertex", found, "source") == Counter(sources)
    # The last row closes all windows of the others, and is itself in no closed one.
    alive = {("source", r.stream, r.id.a, r.id.b) for r in prov.alive("readings", None)}
    assert alive <= {
        ("source", r.stream, r.id.a, r.id.b) for r in prov.rows("readings", "rid = 999")
    }
    assert of("label", found, "source") == Counter(sources - alive)
    assert of("label", found, "sink") == Counter(sinks)


@pytest.mark.usefixtures("one_by_one")
def test_the_graphs_of_the_paper(spark: SparkSession, tmp_path: Path) -> None:
    case = ananke.RUNNING_EXAMPLE
    write_case(case.sources["S"], tmp_path / "in", closed=True)
    stream = spark.readStream.schema(case.sources["S"].schema).option("maxFilesPerTrigger", 1)
    source = clew.trace(stream.parquet(str(tmp_path / "in")), "S", event_time="ts")
    built: Any = case.build({"S": source})
    for name, frame in built.items():
        run_stream(frame, tmp_path / "prov", name, checkpoint=tmp_path / name, capture="sets")
    prov = clew.open(tmp_path / "prov")
    prov.graph().advance()
    found = elements(prov)
    labels = {(r.id.a, r.id.b): r["label"] for r in prov.rows("S", limit=None)}

    for graph in ananke.LIVE_GRAPHS:
        here = [each for each in found if each["at"] <= graph.watermark]
        behind: dict[Any, set[str]] = {}
        for edge in here:
            if edge["element"] == "edge":
                sink = (edge["sink"], edge["sink_a"], edge["sink_b"])
                behind.setdefault(sink, set()).add(labels[edge["a"], edge["b"]])
        expired = {labels[key[2:]] for key in of("label", here, "source")}
        assert sorted(map(sorted, behind.values())) == sorted(map(sorted, graph.alerts.values()))
        assert expired == graph.expired
    prov.close()


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize("name", ["summed", "nested"])
def test_a_label_comes_with_the_first_batch_that_allows_it(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    print("seed 5")
    prov = run(spark, tmp_path, [name], scattered(5, 10, late=40))
    prov.graph().advance()
    found = elements(prov)
    [stream] = [each for each in prov.streams() if each.name == name]
    assert stream.bound is not None
    seen: dict[Any, dt.datetime] = {}
    labelled = set()
    for folder in steps(Path(prov.path), "live"):
        number = int(folder.name)
        here = [each for each in found if each["step"] == number]
        for each in here:
            if each["element"] == "vertex" and each["side"] == "source":
                seen[each["a"], each["b"]] = each["time"]
            if each["element"] == "label" and each["side"] == "source":
                labelled.add((each["a"], each["b"]))
        [at] = {each["at"] for each in here}
        assert labelled == {key for key, time in seen.items() if time < at - stream.bound}, number
    assert len(labelled) > 20
    prov.close()


@pytest.mark.usefixtures("one_by_one")
def test_native_labels_come_within_four_times_the_bound(
    spark: SparkSession, tmp_path: Path
) -> None:
    print("seed 6")
    batches = [b for b in scattered(6, 12, late=10) if b]
    prov = run(spark, tmp_path, ["summed"], batches)
    prov.graph(engine="native", spark=spark).advance()
    found = elements(prov)
    [stream] = [each for each in prov.streams() if each.name == "summed"]
    assert stream.bound is not None
    began = {
        (e["a"], e["b"]): e for e in found if e["element"] == "vertex" and e["side"] == "source"
    }
    ends = {(e["a"], e["b"]): e for e in found if e["element"] == "label" and e["side"] == "source"}
    last = max(e["at"] for e in found)
    for key, vertex in began.items():
        end = ends[key]["at"] if key in ends else None
        # The last batch moves the watermark by an hour, so what it labels could not come earlier.
        if end != last:
            assert end is not None
            assert end - vertex["at"] <= 4 * stream.bound
    prov.close()


def test_a_graph_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """Each round begins with a new process's eyes: a store that is opened again."""
    print("seed 8")
    batches = scattered(8, 9, late=40)
    for first, last in ((0, 3), (3, 6), (6, 10)):
        write_batches(tmp_path / "in", READINGS, batches[first:last])
        with run(spark, tmp_path, ["summed", "large"]) as prov:
            for engine in ENGINES:
                prov.graph(name=engine, engine=engine, spark=spark).advance()
    with clew.open(tmp_path / "prov") as prov:
        for engine in ENGINES:
            check_everything(spark, prov, engine, ("summed", "large"))


def test_a_query_that_joins_late_breaks_no_promise(spark: SparkSession, tmp_path: Path) -> None:
    print("seed 9")
    prov = run(spark, tmp_path, ["summed"], scattered(9, 8, late=40))
    graphs = [prov.graph(name=e, engine=e, spark=spark) for e in ENGINES]
    for graph in graphs:
        graph.advance()
    labelled = of("label", elements(prov, "operator"), "source")
    assert len(labelled) > 20
    assert labelled == of("label", elements(prov, "native"), "source")
    run(spark, tmp_path, ["large"]).close()
    for graph in graphs:
        graph.advance()
        check_late_joiner(prov, graph, labelled)
    prov.close()


def check_late_joiner(prov: clew.Provenance, graph: LiveGraph, labelled: Counter[Any]) -> None:
    assert graph.verify().ok
    large = list(prov.rows("large", limit=None))
    behind = {r.id: prov.backward("large", r).rows[0].id for r in large}
    expected = {i for i, s in behind.items() if ("source", s.stream, s.a, s.b) not in labelled}
    found = {key for key in of("vertex", elements(prov, graph.name), "sink") if key[1] == "large"}
    assert found == {("sink", "large", i.a, i.b) for i in expected}
    [member] = [m for m in graph.status().members if m.query == "large"]
    assert member.left_out == len(large) - len(expected) > 0


def test_labels_wait_for_the_slowest_query_until_it_is_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    print("seed 10")
    prov = run(spark, tmp_path, ["summed"], scattered(10, 6, late=40))
    graph = prov.graph(["summed", "large"])
    graph.advance()
    assert of("label", elements(prov), "source") == Counter(), "`large` has not begun"

    graph.remove("large")
    graph.advance()
    assert graph.verify().ok
    assert graph.status().alive == len(prov.alive("readings", None))
    prov.close()


def test_a_query_without_progress_is_given_up_after_a_while(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print("seed 11")
    prov = run(spark, tmp_path, ["summed"], scattered(11, 6, late=40))
    graph = prov.graph(["summed", "large"], idle=60)
    now = 1_000_000.0
    monkeypatch.setattr("clew.live.graph.time.time", lambda: now)
    graph.advance()
    assert graph.status().labels == graph.status().vertices - graph.status().alive
    assert of("label", elements(prov), "source") == Counter()

    now += 61
    graph.advance()
    status = graph.status()
    assert [(m.query, m.idle) for m in status.members] == [("summed", True), ("large", True)]
    labelled = of("label", elements(prov), "source")
    assert len(labelled) == len(of("vertex", elements(prov), "source"))
    assert graph.verify().ok
    prov.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_results_may_be_one_vertex(spark: SparkSession, tmp_path: Path, engine: Any) -> None:
    rows = [
        {"rid": i, "ts": at(clock), "meter": meter, "kwh": 1}
        for i, (clock, meter) in enumerate(
            [("12:00:05", "a"), ("12:00:06", "b"), ("12:00:07", "c"), ("12:30:00", "a")]
        )
    ]
    write_batches(tmp_path / "in", READINGS, [rows[:3], rows[3:]])
    counted = summed(readings(spark, tmp_path)).select(F.col("window.end").alias("end"), "n")
    run_stream(
        counted,
        tmp_path / "prov",
        "counts",
        checkpoint=tmp_path / "chk",
        capture="sets",
        event_time="end",
    )
    prov = clew.open(tmp_path / "prov")
    prov.graph(engine=engine, results="merged", spark=spark).advance()
    found = elements(prov)

    # Three meters, each once in two windows: six results, of which three and three are equal.
    assert len(prov.rows("counts")) == 6
    assert len(of("vertex", found, "sink")) == 2
    assert of("edge", found).total() == 6
    assert prov.graph(spark=spark).verify(complete=True).ok
    prov.close()


def test_merged_results_need_an_event_time(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", READINGS, scattered(12, 3))
    untimed = summed(readings(spark, tmp_path)).select("n")
    run_stream(untimed, tmp_path / "prov", "n", checkpoint=tmp_path / "chk", capture="sets")
    prov = clew.open(tmp_path / "prov")
    with pytest.raises(WriterError, match=r'provenance\(path, event_time="ts"\)'):
        prov.graph(results="merged").advance()
    prov.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_never_expire_are_never_labelled(
    spark: SparkSession, tmp_path: Path, engine: Any
) -> None:
    print("seed 13")
    write_batches(tmp_path / "in", READINGS, scattered(13, 4, late=10))
    frame = readings(spark, tmp_path).withWatermark("ts", "10 seconds")
    sessions = frame.groupBy(F.session_window("ts", "5 seconds"), "meter").agg(F.count("*"))
    run_stream(sessions, tmp_path / "prov", "sessions", checkpoint=tmp_path / "chk", capture="sets")
    prov = clew.open(tmp_path / "prov")
    prov.graph(engine=engine, spark=spark).advance()
    found = elements(prov)

    assert of("label", found, "source") == Counter()
    assert len(of("vertex", found, "source")) == len(prov.alive("readings", None)) > 10
    assert prov.graph(spark=spark).verify().ok
    prov.close()


def test_intervals_are_computed_for_a_graph(spark: SparkSession, tmp_path: Path) -> None:
    print("seed 14")
    prov = run(spark, tmp_path, ["summed"], scattered(14, 5, late=40), capture="intervals")
    graph = prov.graph()
    graph.advance()

    assert graph.verify().ok
    results = prov.rows("summed", limit=None)
    assert len(of("vertex", elements(prov), "sink")) == len(results)
    edges = of("edge", elements(prov))
    assert edges.total() == sum(row["n"] for row in results)
    prov.close()


def test_the_stream_has_everything_that_was_delivered(spark: SparkSession, tmp_path: Path) -> None:
    print("seed 15")
    prov = run(spark, tmp_path, ["summed"], scattered(15, 5, late=40))
    out = prov.live(spark=spark).writeStream.format("parquet").option("path", str(tmp_path / "out"))
    out = out.option("checkpointLocation", str(tmp_path / "out-chk")).trigger(availableNow=True)
    out.start().awaitTermination()
    delivered = elements(prov)
    prov.close()

    written = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(written.columns) == sorted(SCHEMA.names)
    got = written.select("element", "stream", "a", "b", "sink_a", "sink_b").collect()
    assert Counter(map(tuple, got)) == Counter(
        tuple(e[n] for n in ("element", "stream", "a", "b", "sink_a", "sink_b")) for e in delivered
    )
    [vertex] = written.filter("element = 'vertex' and row like '%\"rid\":0,%'").collect()
    assert (vertex.stream, vertex.segment is not None) == ("readings", True)


def test_a_graph_keeps_its_settings(spark: SparkSession, tmp_path: Path) -> None:
    prov = run(spark, tmp_path, ["summed"], scattered(16, 2))
    prov.graph()
    with pytest.raises(StoreConflictError, match="begun with engine 'operator'"):
        prov.graph(engine="native")
    with pytest.raises(UnknownStreamError):
        prov.graph(["readings"], name="other")
    prov.close()


@pytest.mark.parametrize("seed", range(2))
def test_no_label_is_broken_whatever_the_speed_of_queries(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    print(f"seed {seed}")
    chosen = random.Random(seed)
    batches = scattered(seed, 9, late=chosen.choice([0, 20, 60]))
    names = tuple(sorted(chosen.sample(sorted(QUERIES), k=2)))
    captures = {name: chosen.choice(["sets", "pointers"]) for name in names}
    for cut in (batches[:3], batches[3:5], batches[5:]):
        write_batches(tmp_path / "in", READINGS, cut)
        for name in (
            chosen.sample(names, k=chosen.choice([1, 2])) if cut[-1][0]["rid"] != 999 else names
        ):
            prov = run(spark, tmp_path, [name], capture=captures[name])
            for engine in ENGINES:
                prov.graph(names, name=engine, engine=engine, spark=spark).advance()
            prov.close()
    prov = clew.open(tmp_path / "prov")
    for engine in ENGINES:
        assert str(prov.graph(name=engine, spark=spark).verify()).endswith("0 violations")
        assert of("edge", elements(prov, engine)) == stored_edges(prov, names)
    labels = [of("label", elements(prov, engine)) for engine in ENGINES]
    assert labels[1] == labels[0]
    alive = {("source", r.stream, r.id.a, r.id.b) for r in prov.alive("readings", None)}
    assert not alive & set(labels[0])
    prov.close()


def test_a_graph_follows_queries_while_they_run(spark: SparkSession, tmp_path: Path) -> None:
    print("seed 17")
    batches = scattered(17, 6, late=40)
    names = ("large", "summed")
    with run(spark, tmp_path, ["summed"], batches[:2]) as prov:
        graphs = [prov.graph(names, name=e, engine=e, spark=spark).start(0.2) for e in ENGINES]
        write_batches(tmp_path / "in", READINGS, batches[2:])
        run(spark, tmp_path, names).close()
        for graph in graphs:
            graph.stop()
        for engine in ENGINES:
            check_everything(spark, prov, engine, names)
