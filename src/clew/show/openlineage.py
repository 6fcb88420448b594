"""Run events of OpenLineage, made from the store alone.

OpenLineage knows jobs, runs and datasets, and nothing below: so an event says which query read and
wrote what, and a facet of our own points into the store, where rows are answered for. Everything in
an event follows from the store, its ids as well. So the same events come again when asked again,
and a consumer that takes an event twice is none the worse.

A query is a job, a run of it is a run. Committed batches are told of in groups by their numbers: a
group that is full never changes, unless its batches are unfolded or pruned later.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.capture.kinds import kind_of
from clew.exceptions import QueryError
from clew.store.commit import read_stream
from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.store.reader import Snapshot
    from clew.store.records import Batch

Event = dict[str, Any]

PRODUCER = f"urn:clew:{__version__}"
FACET = "urn:clew:facets:1-0-0:ClewProvenanceRunFacet"
_SPEC = "https://openlineage.io/spec"
_EVENT = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = {
    "JobTypeJobFacet": "2-0-4",
    "ProcessingEngineRunFacet": "1-1-1",
    "SchemaDatasetFacet": "1-2-0",
    "ColumnLineageDatasetFacet": "1-2-0",
    "OutputStatisticsOutputDatasetFacet": "1-0-2",
}
_RUNS = uuid.UUID("9b8d5f0e-3f6c-5a51-8a3c-5b0f7c1d2e4a")
"""What the ids of runs are made under."""
_UNCHANGED = frozenset({"source", "watermark", "filter", "where"})
"""Steps behind which every column is what it was in the source."""
_MOST_GAPS = 20


def events(
    snapshot: Snapshot, *, namespace: str = "clew", since_batch: int = 0, every: int = 100
) -> Iterator[Event]:
    """Make the run events of every query of a store, each query's in the order of time.

    Args:
        snapshot: The store.
        namespace: The namespace of jobs, and of datasets that no path or topic is known of.
        since_batch: Leave out what is only about batches with smaller numbers.
        every: How many batches one event tells of.

    Raises:
        QueryError: A number is not what it can be, or the namespace is empty.
    """
    if not namespace or every < 1 or since_batch < 0:
        msg = (
            "a namespace is not empty, events tell of one batch or more, and batches are numbered "
            f"from 0; got namespace={namespace!r}, every={every}, since_batch={since_batch}."
        )
        raise QueryError(msg)
    for writer in snapshot.batches:
        query = _Query(snapshot, writer, namespace)
        for run in query.runs():
            yield from query.events(run, since_batch, every)


def run_id(writer: str, run: str) -> str:
    """Return the id of a run, the same whenever it is asked for.

    Examples:
        >>> run_id("stopped", "3f2a90bc")
        '92b2ac68-f40e-5579-8c40-96e9bd75a068'
    """
    return str(uuid.uuid5(_RUNS, f"{writer}\n{run}"))


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a query, with its batches by number.

    Attributes:
        run: Its name in the store.
        started: When it was started.
        is_stream: It has a checkpoint.
        has_ended: It is known to be over: a batch query, or another run followed.
        spark: The version of Spark; None if the store does not say.
        batches: What was committed.
    """

    run: str
    started: str
    is_stream: bool
    has_ended: bool
    spark: str | None
    batches: tuple[Batch, ...]


class _Query:
    """What is the same in all events of a query."""

    def __init__(self, snapshot: Snapshot, writer: str, namespace: str) -> None:
        self._snapshot = snapshot
        self._writer = writer
        self._namespace = namespace
        self._said: Mapping[str, Any] = read_stream(snapshot.root, writer) or {}
        self._record = snapshot.streams[writer]
        self._inputs = [self._input(name) for name in self._sources()]

    def runs(self) -> list[_Run]:
        """List the runs in the order in which they began."""
        known = {each["run"]: each for each in self._said.get("runs") or ()}
        batches = self._snapshot.batches[self._writer]
        names = [*known, *dict.fromkeys(b.run for b in batches if b.run not in known)]
        found = []
        for place, name in enumerate(names):
            said = known.get(name, {})
            own = sorted((b for b in batches if b.run == name), key=lambda each: each.number)
            started = said.get("started") or (own[0].committed if own else None)
            is_stream = said.get("checkpoint", "unknown") is not None
            # Also of a stream, a run is over once there is a later one.
            over = not is_stream or place + 1 < len(names)
            if started is not None:
                run = _Run(name, started, is_stream, over, said.get("spark"), tuple(own))
                found.append(run)
        return found

    def events(self, run: _Run, since_batch: int, every: int) -> Iterator[Event]:
        """Make the events of a run: its start, its batches in groups, its end."""
        if since_batch == 0:
            yield self._event("START", run.started, run, ())
        groups: dict[int, list[Batch]] = {}
        for batch in run.batches:
            groups.setdefault(batch.number // every, []).append(batch)
        if run.is_stream:
            for group in groups.values():
                if group[-1].number >= since_batch:
                    yield self._event("RUNNING", group[-1].committed, run, group, counts=True)
        if run.has_ended and run.batches and run.batches[-1].number >= since_batch:
            at = max(each.committed for each in run.batches)
            yield self._event("COMPLETE", at, run, run.batches, counts=not run.is_stream)

    def _event(
        self, kind: str, at: str, run: _Run, batches: Sequence[Batch], *, counts: bool = False
    ) -> Event:
        return {
            "eventType": kind,
            "eventTime": at,
            "producer": PRODUCER,
            "schemaURL": _EVENT,
            "run": {
                "runId": run_id(self._writer, run.run),
                "facets": {
                    **self._engine(run),
                    "clew_provenance": self._provenance(run, batches),
                },
            },
            "job": {
                "namespace": self._namespace,
                "name": self._writer,
                "facets": {"jobType": self._job_type(run)},
            },
            "inputs": self._inputs,
            "outputs": [self._output(batches if counts else None)],
        }

    def _job_type(self, run: _Run) -> Event:
        is_job = kind_of(self._record.capture).of_jobs
        return {
            **_base("JobTypeJobFacet"),
            "processingType": "STREAMING" if run.is_stream else "BATCH",
            "integration": "CLEW" if is_job else "SPARK",
            "jobType": "JOB" if is_job else "QUERY",
            "emissionPattern": {
                "eventTrigger": "EVENT_BASED",
                "eventContentMode": "ACCUMULATIVE",
            },
        }

    def _engine(self, run: _Run) -> Event:
        if run.spark is None:
            return {}
        facet = {
            **_base("ProcessingEngineRunFacet"),
            "version": run.spark,
            "name": "spark",
            "openlineageAdapterVersion": __version__,
        }
        return {"processing_engine": facet}

    def _provenance(self, run: _Run, batches: Sequence[Batch]) -> Event:
        """Point into the store: where the rows are answered for, and how far answers go."""
        numbers = [each.number for each in batches]
        gaps = [
            str(gap)
            for gap in self._snapshot.gaps(self._writer)
            if gap.run == run.run
            and numbers
            and gap.first <= max(numbers)
            and gap.last >= min(numbers)
        ]
        said = {
            "_producer": PRODUCER,
            "_schemaURL": FACET,
            "store": self._snapshot.root.as_uri(),
            "stream": self._writer,
            "run": run.run,
            "firstBatch": min(numbers, default=None),
            "lastBatch": max(numbers, default=None),
            "batches": len(numbers),
            "rows": _sum(each.sink_rows for each in batches),
            "edges": _sum(each.edges for each in self._holders(run, batches)),
            "capture": self._record.capture,
            "exactness": self._record.exactness,
            "idScheme": "two signed 64-bit integers, as 32 hexadecimal digits",
            "streams": [
                {"stream": name, "namespace": each["namespace"], "name": each["name"]}
                for name, each in zip(self._sources(), self._inputs, strict=True)
            ],
            "gaps": gaps[:_MOST_GAPS],
            "gapCount": len(gaps),
        }
        return {key: value for key, value in said.items() if value is not None}

    def _holders(self, run: _Run, batches: Sequence[Batch]) -> list[Batch]:
        """List what holds the edges of batches: themselves, and unfoldings that end with them."""
        numbers = {each.number for each in batches}
        unfolded = self._snapshot.unfolded.get(self._writer, ())
        ends = [u for u in unfolded if u.run == run.run and (u.last or u.number) in numbers]
        return [*(each for each in batches if each.gap is None), *ends]

    def _sources(self) -> tuple[str, ...]:
        return self._record.sources

    def _input(self, name: str) -> Event:
        said = read_stream(self._snapshot.root, name) or {}
        namespace, dataset = self._place(name)
        facets = _schema(said)
        return {"namespace": namespace, "name": dataset, "facets": facets, "inputFacets": {}}

    def _place(self, name: str) -> tuple[str, str]:
        """Name a dataset as OpenLineage does where the store knows what it is."""
        if name in self._snapshot.batches:
            return self._namespace, name  # another query's results
        pipeline = self._said.get("pipeline") or {}
        read = ((pipeline.get("sources") or {}).get(name) or {}).get("read") or {}
        if read.get("folder"):
            folder = str(read["folder"]).removeprefix("file://").removeprefix("file:")
            return ("file", folder.rstrip("/")) if "://" not in folder else _remote(folder)
        topic = self._topic()
        servers = (read.get("topics") or {}).get("kafka.bootstrap.servers")
        if servers and topic:
            return f"kafka://{servers.split(',')[0]}", topic
        return self._namespace, str(read.get("table") or name)

    def _topic(self) -> str | None:
        """Find the one topic that the query reads, if it reads nothing else."""
        topics: set[str] = set()
        for batch in self._snapshot.batches[self._writer][-1:]:
            for line in batch.offsets:
                said = json.loads(line) if line.startswith("{") else {}
                topics |= {key for key, each in said.items() if isinstance(each, dict)}
        only = len(self._sources()) == 1 and len(topics) == 1
        return topics.pop() if only else None

    def _output(self, batches: Sequence[Batch] | None) -> Event:
        counted: Event = {}
        if batches is not None:
            rows = _sum(each.sink_rows for each in batches)
            if rows is not None:
                facet = {**_base("OutputStatisticsOutputDatasetFacet"), "rowCount": rows}
                counted = {"outputStatistics": facet}
        return {
            "namespace": self._namespace,
            "name": self._writer,
            "facets": {**_schema(self._said), **self._columns()},
            "outputFacets": counted,
        }

    def _columns(self) -> Event:
        """Say which column came from which, where every one is just handed on; else nothing."""
        nodes = self._record.graph.get("nodes") or ()
        if len(self._inputs) != 1 or not {node["kind"] for node in nodes} <= _UNCHANGED:
            return {}
        [source] = self._inputs
        names = [field["name"] for field in (self._said.get("schema") or {}).get("fields", ())]
        known = {field["name"] for field in source["facets"].get("schema", {}).get("fields", ())}
        if not names or not set(names) <= known:
            return {}
        identity = {"type": "DIRECT", "subtype": "IDENTITY", "masking": False}
        place = {key: source[key] for key in ("namespace", "name")}
        fields = {
            name: {"inputFields": [{**place, "field": name, "transformations": [identity]}]}
            for name in names
        }
        return {"columnLineage": {**_base("ColumnLineageDatasetFacet"), "fields": fields}}


def _base(facet: str) -> Event:
    url = f"{_SPEC}/facets/{_FACETS[facet]}/{facet}.json#/$defs/{facet}"
    return {"_producer": PRODUCER, "_schemaURL": url}


def _schema(said: Mapping[str, Any]) -> Event:
    fields = (said.get("schema") or {}).get("fields") or ()
    if not fields:
        return {}
    return {"schema": {**_base("SchemaDatasetFacet"), "fields": [_field(each) for each in fields]}}


def _field(said: Mapping[str, Any]) -> Event:
    """Describe a column; the columns of a struct stand below it."""
    kind = said["type"]
    if isinstance(kind, str):
        return {"name": said["name"], "type": kind}
    inner = kind.get("fields") or (
        (kind.get("elementType") or {}).get("fields")
        if isinstance(kind.get("elementType"), dict)
        else ()
    )
    found = {"name": said["name"], "type": str(kind["type"])}
    return {**found, "fields": [_field(each) for each in inner]} if inner else found


def _remote(folder: str) -> tuple[str, str]:
    scheme, _, rest = folder.partition("://")
    place, _, name = rest.partition("/")
    return f"{scheme}://{place}", name.rstrip("/") or "/"


def _sum(numbers: Iterator[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


def to_lines(found: Sequence[Event]) -> str:
    """Write events as JSON, one a line."""
    return "".join(json.dumps(each, sort_keys=True) + "\n" for each in found)


def write(found: Sequence[Event], to: str) -> None:
    """Write events to a file, one a line; it appears whole or not at all.

    Raises:
        QueryError: The file cannot be written.
    """
    path = Path(to)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        draft.write_text(to_lines(found), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        msg = f"cannot write `{path}`: {error.strerror or error}.\n\nName another file."
        raise QueryError(msg) from error
    finally:
        draft.unlink(missing_ok=True)
