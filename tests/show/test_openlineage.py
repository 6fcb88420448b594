"""Run events are what OpenLineage's own package would make, follow from the store alone, arrive."""

from __future__ import annotations

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    column_lineage_dataset,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
)
from openlineage.client.serde import Serde

from clew.ask.provenance import open_store
from clew.cli import main
from clew.exceptions import QueryError
from clew.show.openlineage import write
from clew.show.send import send
from store.build import RUN, StoreBuilder, row

if TYPE_CHECKING:
    from collections.abc import Iterator

FACET = Path(__file__).parents[2] / "docs" / "reference" / "clew-provenance-facet.json"
LATER = "4" * 8


def schema(*names: str) -> dict[str, Any]:
    fields = [{"name": n, "type": "integer"} for n in names]
    window = {"type": "struct", "fields": [{"name": "start", "type": "timestamp"}]}
    return {"type": "struct", "fields": [*fields, {"name": "window", "type": window}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A stream with two runs, a batch query over its results, and a filter that hands on."""
    builder = StoreBuilder(tmp_path)
    builder.source("r", schema=schema("n"))
    runs = [
        {"run": RUN, "started": "2026-01-01T00:00:00Z", "checkpoint": "/chk", "spark": "4.3.0"},
        {"run": LATER, "started": "2026-01-01T00:00:10Z", "checkpoint": "/chk2", "spark": "4.3.0"},
    ]
    read = {"stream": True, "format": "parquet", "folder": "file:/data/in/"}
    pipeline = {"sources": {"r": {"read": read}}}
    builder.sink("s", ["r"], runs=runs, schema=schema("n"), pipeline=pipeline)
    for n in range(3):
        edges = [("s", n, 1, "r", 0, n), ("s", n, 1, "r", 0, n + 1)]
        builder.batch("s", n, edges=edges, rows={"s": [row(n, 1, n=n)]})
    builder.batch("s", 0, run=LATER, gap="disk full")
    batch = [{"run": "b" * 8, "started": "2026-01-01T00:00:20Z", "checkpoint": None}]
    nodes = [
        {"kind": "source", "label": "s", "inputs": []},
        {"kind": "aggregate", "label": "sum(n) AS total", "inputs": [0]},
    ]
    graph = {"nodes": nodes, "sources": ["s"], "named": {}}
    builder.sink("t", ["s"], runs=batch, schema=schema("total"), graph=graph)
    edges = [("t", 1, 1, "s", n, 1) for n in range(3)]
    builder.batch("t", 0, run="b" * 8, edges=edges, rows={"t": [row(1, 1, total=3)]})
    return tmp_path


@pytest.fixture
def events(path: Path) -> list[dict[str, Any]]:
    with open_store(path) as provenance:
        return provenance.openlineage("prod", every=2)


KINDS: dict[str, Any] = {
    "jobType": job_type_job.JobTypeJobFacet,
    "processing_engine": processing_engine_run.ProcessingEngineRunFacet,
    "schema": schema_dataset.SchemaDatasetFacet,
    "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
    "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet,
}


def made(name: str, said: dict[str, Any]) -> Any:
    """Make a facet with the class of OpenLineage's own package, which knows its fields."""
    fields = {k: v for k, v in said.items() if not k.startswith("_")}
    if name == "jobType":
        fields["emissionPattern"] = job_type_job.EmissionPattern(**fields["emissionPattern"])
    if name == "schema":
        fields["fields"] = [column(each) for each in fields["fields"]]
    if name == "columnLineage":
        fields["fields"] = {n: lineage(each) for n, each in fields["fields"].items()}
    facet = KINDS[name](**fields, producer=said["_producer"])
    assert facet._schemaURL == said["_schemaURL"], name
    return facet


def column(said: dict[str, Any]) -> Any:
    inner = [column(each) for each in said.get("fields", ())]
    return schema_dataset.SchemaDatasetFacetFields(**{**said, "fields": inner})


def lineage(said: dict[str, Any]) -> Any:
    own = column_lineage_dataset
    inputs = [
        own.InputField(
            **{
                **each,
                "transformations": [own.Transformation(**t) for t in each["transformations"]],
            }
        )
        for each in said["inputFields"]
    ]
    return own.Fields(inputFields=inputs)


def rebuilt(event: dict[str, Any]) -> dict[str, Any]:
    """Make an event again with OpenLineage's own package, our own facet aside."""
    run, job = event["run"], event["job"]
    own = {k: made(k, f) for k, f in run["facets"].items() if k != "clew_provenance"}

    def facets(said: dict[str, Any]) -> dict[str, Any]:
        return {name: made(name, each) for name, each in said.items()}

    again = RunEvent(
        eventType=RunState[event["eventType"]],
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=Run(run["runId"], facets=own),
        job=Job(job["namespace"], job["name"], facets=facets(job["facets"])),
        inputs=[
            InputDataset(d["namespace"], d["name"], facets=facets(d["facets"]))
            for d in event["inputs"]
        ],
        outputs=[
            OutputDataset(
                d["namespace"],
                d["name"],
                facets=facets(d["facets"]),
                outputFacets=facets(d["outputFacets"]),
            )
            for d in event["outputs"]
        ],
    )
    found: dict[str, Any] = json.loads(Serde.to_json(again))
    found["run"]["facets"]["clew_provenance"] = run["facets"]["clew_provenance"]
    return found


def bare(value: Any) -> Any:
    """Leave out what is empty, which both may write or not."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v not in ({}, [], None)}
    return [bare(each) for each in value] if isinstance(value, list) else value


def test_events_are_as_the_official_package_makes_them(events: list[dict[str, Any]]) -> None:
    for event in events:
        assert bare(rebuilt(event)) == bare(event)


def test_our_facet_is_as_its_published_schema_says(events: list[dict[str, Any]]) -> None:
    checker = jsonschema.Draft202012Validator(json.loads(FACET.read_text()))

    for event in events:
        checker.validate(event["run"]["facets"]["clew_provenance"])


def test_each_run_starts_goes_on_and_ends(events: list[dict[str, Any]]) -> None:
    told = [
        (e["job"]["name"], e["eventType"], e["eventTime"][17:19], f.get("firstBatch"), f["batches"])
        for e in events
        for f in [e["run"]["facets"]["clew_provenance"]]
    ]

    assert told == [
        ("s", "START", "00", None, 0),
        ("s", "RUNNING", "02", 0, 2),
        ("s", "RUNNING", "03", 2, 1),
        ("s", "COMPLETE", "03", 0, 3),
        ("s", "START", "10", None, 0),
        ("s", "RUNNING", "04", 0, 1),
        ("t", "START", "20", None, 0),
        ("t", "COMPLETE", "05", 0, 1),
    ]
    ids = {(e["job"]["name"], e["run"]["runId"]) for e in events}
    assert len(ids) == 3
    assert all(uuid.UUID(each).version == 5 for _, each in ids)
    kinds = {e["job"]["name"]: e["job"]["facets"]["jobType"]["processingType"] for e in events}
    assert kinds == {"s": "STREAMING", "t": "BATCH"}


def test_datasets_have_places_schemas_and_counts(events: list[dict[str, Any]], path: Path) -> None:
    running, done = events[1], events[-1]

    assert [(d["namespace"], d["name"]) for d in running["inputs"]] == [("file", "/data/in")]
    assert [(d["namespace"], d["name"]) for d in done["inputs"]] == [("prod", "s")]
    assert done["inputs"][0]["name"] == running["outputs"][0]["name"]
    assert running["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 2
    columns = running["outputs"][0]["facets"]["schema"]["fields"]
    assert columns == [
        {"name": "n", "type": "integer"},
        {"name": "window", "type": "struct", "fields": [{"name": "start", "type": "timestamp"}]},
    ]
    facet = running["run"]["facets"]["clew_provenance"]
    assert (facet["edges"], facet["rows"], facet["store"]) == (4, 2, path.as_uri())
    assert events[5]["run"]["facets"]["clew_provenance"]["gaps"] == [
        f"batch 0 of `s` (run {LATER}): disk full"
    ]


def test_column_lineage_is_told_only_where_it_is_known(events: list[dict[str, Any]]) -> None:
    handed_on = events[1]["outputs"][0]["facets"]["columnLineage"]["fields"]

    assert handed_on["n"]["inputFields"][0]["field"] == "n"
    assert "columnLineage" not in events[-1]["outputs"][0]["facets"]


def test_the_same_store_gives_the_same_events_again(
    events: list[dict[str, Any]], path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    to = tmp_path / "events.ndjson"
    options = ["openlineage", str(path), "--namespace", "prod", "--batches", "2"]
    assert main(options) == 0
    printed = capsys.readouterr().out
    assert main([*options, "--to", str(to), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"events": 8, "to": str(to), "url": None}

    assert [json.loads(line) for line in printed.splitlines()] == events
    assert to.read_text() == printed


def test_what_is_only_about_earlier_batches_is_left_out(path: Path) -> None:
    with open_store(path) as provenance:
        found = provenance.openlineage(since_batch=2, every=2)

    assert [(e["job"]["name"], e["eventType"]) for e in found] == [
        ("s", "RUNNING"),
        ("s", "COMPLETE"),
    ]


class Catalog(HTTPServer):
    """A server that answers as it is told, and keeps what it gets."""

    def __init__(self, *answers: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.got: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Catalog)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.got.append((self.path, self.headers["Authorization"], body))
        code = server.answers.pop(0) if server.answers else 201
        self.send_response(code)
        if code == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(f"token was {self.headers['Authorization']}".encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    server = Catalog()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_events_arrive_in_order_with_the_token(
    path: Path,
    events: list[dict[str, Any]],
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cret")
    code = main(
        ["openlineage", str(path), "--url", catalog.url, "--namespace", "prod", "--batches", "2"]
    )

    assert (code, capsys.readouterr().out) == (0, "8 events sent\n")
    assert [body for _, _, body in catalog.got] == events
    assert {(where, token) for where, token, _ in catalog.got} == {
        ("/api/v1/lineage", "Bearer s3cret")
    }


def test_a_busy_server_is_asked_again_ever_later(
    events: list[dict[str, Any]], catalog: Catalog
) -> None:
    catalog.answers = [503, 429, 201]
    waited: list[float] = []

    sent = send(events[:2], catalog.url, sleep=waited.append)

    assert (sent, waited) == (2, [1.0, 2.0])
    assert [body for _, _, body in catalog.got] == [events[0]] * 3 + [events[1]]


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([401], "Set the environment variable OPENLINEAGE_API_KEY"),
        ([422], "it answered 422"),
        ([302], "it answered 302"),
        ([503] * 9, "after 4 tries"),
    ],
)
def test_a_server_that_refuses_is_named_and_the_token_is_not(
    events: list[dict[str, Any]],
    catalog: Catalog,
    monkeypatch: pytest.MonkeyPatch,
    answers: list[int],
    says: str,
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "s3cret")
    catalog.answers = list(answers)

    with pytest.raises(QueryError) as raised:
        send(events, f"{catalog.url}/lineage", sleep=lambda _: None)

    text = str(raised.value)
    assert says in text
    assert f"{catalog.url}/lineage" in text
    assert "s3cret" not in text
    assert len(catalog.got) == (1 if len(answers) == 1 else 4)


def test_addresses_are_checked_and_shown_without_a_password() -> None:
    with pytest.raises(QueryError, match="begins with http:// or https://"):
        send([{}], "file:///etc/passwd")
    with pytest.raises(QueryError) as raised:
        send([{}], "http://user:hunter2@127.0.0.1:9", retries=0)

    assert "hunter2" not in str(raised.value)


def test_numbers_and_names_are_checked(path: Path) -> None:
    with open_store(path) as provenance, pytest.raises(QueryError, match="every=0"):
        provenance.openlineage(every=0)


def test_threads_that_write_one_file_of_events_do_not_disturb_each_other(tmp_path: Path) -> None:
    events, errors = [{"n": n} for n in range(200)], list[QueryError]()

    def write_often() -> None:
        try:
            for _ in range(50):
                write(events, str(tmp_path / "events.jsonl"))
        except QueryError as error:
            errors.append(error)

    threads = [threading.Thread(target=write_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == len(events)
