"""The worked examples hold on plain Spark: values, and the provenance they claim.

No clew here. Each case runs in batch and as a finite stream, and its sink rows are compared with
the expected ones. The expected provenance is then checked by force: a sink row must come out again
when only its labelled source rows go in, and must not when one of them is left out (each in turn;
of more than three a few).
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from seeds import ananke, ariadne, genealog, thesis
from seeds.case import SeedCase, SeedRow, columns, write_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Fingerprint: TypeAlias = tuple[tuple[str, Any], ...]

CASES = (*ananke.CASES, *genealog.CASES, *ariadne.CASES, *thesis.CASES)
STREAM_TIMEOUT_SECONDS = 300
MAX_REMOVALS = 3

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> SparkSession:
    """Set a session up for tiny data, where jobs, planning and generated code cost most."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


class Streams(NamedTuple):
    """The running streams of all cases, by case and sink."""

    queries: Mapping[tuple[str, str], StreamingQuery]
    tables: Mapping[tuple[str, str], str]


@pytest.fixture(scope="module")
def streams(
    small: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Streams]:
    """Start the streams of the selected cases side by side; starting costs more than running."""
    wanted = {item.name for item in request.session.items}
    folder = tmp_path_factory.mktemp("streams")
    queries, tables = {}, {}
    for number, case in enumerate(CASES):
        if f"test_stream_gives_the_expected_rows[{case.name}]" not in wanted:
            continue
        sinks = case.build(_open_streams(small, case, folder / case.name))
        for position, (sink, frame) in enumerate(sinks.items()):
            table = f"seed_{number}_{position}"
            queries[case.name, sink] = (
                cast("DataFrame", frame)
                .writeStream.format("memory")
                .queryName(table)
                .outputMode("append")
                .option("checkpointLocation", str(folder / "checkpoints" / table))
                .trigger(availableNow=True)
                .start()
            )
            tables[case.name, sink] = table
    yield Streams(queries, tables)
    for query in queries.values():
        query.stop()


def _open_streams(spark: SparkSession, case: SeedCase, folder: Path) -> dict[str, DataFrame]:
    frames = {}
    for name, source in case.sources.items():
        write_batches(source, folder / name, closed=True)
        reader = spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 1)
        frames[name] = reader.parquet(str(folder / name))
    return frames


def _open_tables(spark: SparkSession, case: SeedCase, folder: Path) -> dict[str, DataFrame]:
    """Open the sources for batch, in one partition each, so that nothing is shuffled."""
    frames = {}
    for name, source in case.sources.items():
        write_batches(source, folder / name, closed=False)
        frames[name] = spark.read.schema(source.schema).parquet(str(folder / name)).coalesce(1)
    return frames


def _plain(value: Any) -> Any:
    """Make a value comparable: times in UTC, structures as tuples."""
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc)
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    return value


def _fingerprint(values: Mapping[str, Any]) -> Fingerprint:
    return tuple(sorted((name, _plain(value)) for name, value in values.items()))


def _counted(rows: Iterable[Row]) -> Counter[Fingerprint]:
    return Counter(_fingerprint(row.asDict()) for row in rows)


def _expected(rows: Iterable[SeedRow]) -> Counter[Fingerprint]:
    return Counter(_fingerprint(row.values) for row in rows)


def _rerun(
    case: SeedCase, frames: Mapping[str, DataFrame], sink: str, choices: set[frozenset[str]]
) -> dict[frozenset[str], set[Fingerprint]]:
    """Run one sink's query once per choice of source rows; all choices are one Spark job."""
    ordered = sorted(choices, key=sorted)
    runs = []
    for number, labels in enumerate(ordered):
        chosen = {
            name: frame.filter(F.col("label").isin(*labels)) for name, frame in frames.items()
        }
        built = cast("DataFrame", case.build(chosen)[sink])
        runs.append(built.withColumn("_run", F.lit(number)))
    answers: dict[frozenset[str], set[Fingerprint]] = {labels: set() for labels in ordered}
    for row in reduce(DataFrame.union, runs).collect():
        values = row.asDict()
        answers[ordered[values.pop("_run")]].add(_fingerprint(values))
    return answers


def _removals(row: SeedRow) -> list[str]:
    """Choose labels to leave out: all of them, or some spread over a large set."""
    labels = sorted(row.labels)
    return labels[:: -(-len(labels) // MAX_REMOVALS)]


@each_case
def test_batch_gives_the_expected_rows(case: SeedCase, small: SparkSession, tmp_path: Path) -> None:
    sinks = case.build(_open_tables(small, case, tmp_path))

    found = {sink: _counted(cast("DataFrame", frame).collect()) for sink, frame in sinks.items()}

    assert found == {sink: _expected(rows) for sink, rows in case.expected.items()}


@each_case
def test_stream_gives_the_expected_rows(
    case: SeedCase, small: SparkSession, streams: Streams
) -> None:
    found = {}
    for sink in case.expected:
        assert streams.queries[case.name, sink].awaitTermination(STREAM_TIMEOUT_SECONDS)
        found[sink] = _counted(small.table(streams.tables[case.name, sink]).collect())

    assert found == {sink: _expected(rows) for sink, rows in case.expected.items()}


@each_case
def test_labelled_source_rows_are_enough_and_all_needed(
    case: SeedCase, small: SparkSession, tmp_path: Path
) -> None:
    frames = _open_tables(small, case, tmp_path)
    for sink, rows in case.expected.items():
        shrunk = [(row, row.labels - {label}) for row in rows for label in _removals(row)]
        choices = {row.labels for row in rows} | {labels for _, labels in shrunk}

        answers = _rerun(case, frames, sink, choices)

        missing = [row for row in rows if _fingerprint(row.values) not in answers[row.labels]]
        unmoved = [
            (row, labels) for row, labels in shrunk if _fingerprint(row.values) in answers[labels]
        ]
        assert (missing, unmoved) == ([], [])


@each_case
def test_labels_name_source_rows_of_the_case(case: SeedCase) -> None:
    sources = case.sources.values()
    rows = [row for source in sources for row in source.rows()]
    closing = [source.closing for source in sources if source.closing is not None]

    assert len({row["label"] for row in (*rows, *closing)}) == len(rows) + len(closing)
    assert all(batch for source in sources for batch in source.batches)
    for source in sources:
        assert all(set(row) == set(columns(source.schema)) for row in source.rows())
    used = {label for rows in case.expected.values() for row in rows for label in row.labels}
    assert used <= case.labels()


def test_case_names_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("graph", ananke.LIVE_GRAPHS, ids=lambda graph: f"{graph.watermark:%H:%M}")
def test_live_graph_follows_from_the_window_size(graph: ananke.LiveGraph) -> None:
    case = ananke.RUNNING_EXAMPLE
    times = {row["label"]: row["ts"] for row in case.sources["S"].rows()}

    alerts = {
        f"a_{query}^{number}": row.labels
        for query, sink in ((1, "K1"), (2, "K2"))
        for number, row in enumerate(case.expected[sink], start=1)
        if row.values["ts"] <= graph.watermark
    }
    bound = graph.watermark - timedelta(minutes=ananke.WINDOW_MINUTES)
    seen = frozenset().union(*alerts.values())

    assert graph.alerts == alerts
    assert graph.expired == {label for label in seen if times[label] < bound}
