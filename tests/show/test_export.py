"""What is written is read back by the tools it is for, and says what the answer says."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import networkx as nx
import pyarrow as pa
import pytest
from prov.model import ProvDocument

from clew.ask.provenance import open_store
from clew.cli import main
from clew.exceptions import QueryError
from clew.prov import put_reduced
from clew.show.export import FORMS, chunks, encode
from clew.show.values import Literal, literal
from repository.model import edges
from store.build import StoreBuilder, row
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.ask.trace import Trace

READERS = {"prov-json": "json", "prov-n": "provn", "prov-jsonld": "jsonld"}

VALUES: dict[str, Any] = {
    "n": -7,
    "big": 2**62,
    "share": 0.1,
    "low": float("-inf"),
    "yes": True,
    "text": 'a "quoted" \\ word\nand\ta <tag> & \x1b[31m é 日本 \x00 %% }}',
    "empty": "",
    "at": dt.datetime(2026, 1, 1, 8, 0, 0, 500000, tzinfo=dt.timezone.utc),
    "local": dt.datetime(2026, 1, 1, 8),  # noqa: DTZ001 (a time without a zone)
    "day": dt.date(2026, 2, 3),
    "price": Decimal("12.50"),
    "raw": b"\x00\xff",
    "list": [1, None, 3],
    "none": None,
    "a column: of 'mine' / é": 1,
    "id": "users",
}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trace]]:
    """Answers of a road, of a row with every kind of value, and of a repository of jobs."""
    folder = tmp_path_factory.mktemp("export")
    build_road(folder / "road")
    builder = StoreBuilder(folder / "odd")
    builder.sink("odd stream/é", ["in"])
    builder.batch(
        "odd stream/é",
        0,
        edges=[("odd stream/é", 1, -1, "in", 0, 4)],
        rows={"odd stream/é": [row(1, -1, **VALUES)], "in": [row(0, 4, segment="f", x=1)]},
    )
    put_reduced(folder / "jobs", "one", "r", 0, edges(("m", "i/1"), ("m", "i/2")))
    put_reduced(folder / "jobs", "two", "r", 0, edges(("o", "m")))
    opened = {name: open_store(folder / name) for name in ("road", "odd", "jobs")}
    yield {
        "road": opened["road"].backward("accidents", {"pos": 5}),
        "named": opened["road"].backward("accidents", {"pos": 5}, intermediate=True),
        "forward": opened["road"].forward("reports", "part-0.parquet:3"),
        "nothing": opened["road"].forward("reports", "part-0.parquet:99"),
        "odd": opened["odd"].backward("odd stream/é", {"n": -7}),
        "jobs": opened["jobs"].backward("two", "o"),
    }
    for each in opened.values():
        each.close()


NAMES = ["road", "named", "forward", "nothing", "odd", "jobs"]


def read(trace: Trace, form: Any) -> ProvDocument:
    return ProvDocument.deserialize(content=trace.to_prov(form), format=READERS[form])


def names(document: ProvDocument, kind: str) -> list[tuple[str, ...]]:
    found = [r for r in document.get_records() if r.get_type().localpart == kind]
    return sorted(tuple(str(a) for a in r.args if a) or (str(r.identifier),) for r in found)


def name(row_id: Any) -> str:
    stream = row_id.stream.replace(" ", "%20").replace("/", "%2F").replace("é", "%C3%A9")
    return f"row:{stream}/{row_id.text}"


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("which", NAMES)
def test_prov_reads_the_derivations_and_entities_of_the_answer(
    traces: dict[str, Trace], which: str, form: str
) -> None:
    trace = traces[which]

    document = read(trace, form)

    derived = [(d[0], d[1]) for d in names(document, "Derivation")]
    assert derived == sorted({(name(e.sink), name(e.source)) for e in trace.edges})
    rows = {*trace.start.ids(), *trace.rows.ids()}
    rows |= {each for e in trace.edges for each in (e.sink, e.source)}
    entities = [r for r in document.get_records() if r.get_type().localpart == "Entity"]
    assert sorted(str(e.identifier) for e in entities) == sorted(map(name, rows))
    used = {(u[0].split(":")[0], u[1]) for u in names(document, "Usage")}
    assert used == {("query", name(e.source)) for e in trace.edges}
    assert {g[0] for g in names(document, "Generation")} == {name(e.sink) for e in trace.edges}


@pytest.mark.parametrize("which", NAMES)
def test_the_three_forms_say_the_same_and_survive_a_round_trip(
    traces: dict[str, Trace], which: str
) -> None:
    documents = [read(traces[which], form) for form in READERS]

    assert documents[0] == documents[1] == documents[2]
    for form in READERS.values():
        text = documents[0].serialize(format=form)
        assert ProvDocument.deserialize(content=text, format=form) == documents[0]


@pytest.mark.parametrize("form", READERS)
def test_values_keep_their_types(traces: dict[str, Trace], form: str) -> None:
    document = read(traces["odd"], form)

    [odd] = [e for e in document.get_records() if str(e.identifier).startswith("row:odd")]
    found = {str(key): value for key, value in odd.attributes if str(key).startswith("column:")}
    plain = {key.removeprefix("column:"): value for key, value in found.items()}
    assert plain["text"] == VALUES["text"]
    assert plain["yes"] is True
    assert plain["at"] == VALUES["at"]
    assert plain["local"] == VALUES["local"]
    assert plain["empty"] == ""
    assert plain["list"] == "[1, null, 3]"
    assert plain["id"] == "users"
    assert "none" not in plain
    kinds = {
        key: (str(value.datatype), value.value) if hasattr(value, "datatype") else value
        for key, value in plain.items()
    }
    assert kinds["day"] == ("xsd:date", "2026-02-03")
    assert kinds["price"] == ("xsd:decimal", "12.50")
    assert kinds["raw"] == ("xsd:hexBinary", "00FF")
    assert float(plain["low"]) == float("-inf")
    assert float(plain["share"]) == 0.1
    numbers = {key: int(getattr(plain[key], "value", plain[key])) for key in ("n", "big")}
    assert numbers == {"n": -7, "big": 2**62}
    assert plain["a%20column%3A%20of%20%27mine%27%20%2F%20%C3%A9"] is not None


def test_a_number_that_is_none_has_its_name() -> None:
    assert literal(float("nan")) == Literal("NaN", "xsd:double")


def test_an_activity_is_a_query_with_its_runs(traces: dict[str, Trace]) -> None:
    document = read(traces["road"], "prov-json")

    found = {
        str(a.identifier): {str(k): str(v) for k, v in a.attributes}
        for a in document.get_records()
        if a.get_type().localpart == "Activity"
    }
    assert found.keys() == {"query:accidents", "query:stopped"}
    assert found["query:accidents"]["clew:run"] == "aaaabbbb"
    assert found["query:stopped"]["clew:run"] == "3f2a90bc"
    assert found["query:stopped"]["clew:exactness"] == "exact"


def test_jobs_of_a_repository_are_activities_and_identifiers_attributes(
    traces: dict[str, Trace],
) -> None:
    document = read(traces["jobs"], "prov-json")

    entities = [r for r in document.get_records() if r.get_type().localpart == "Entity"]
    found = {str(v) for e in entities for k, v in e.attributes if str(k) == "column:entity"}
    assert found == {"o", "i/1", "i/2"}
    assert [d[2] for d in names(document, "Derivation")] == ["query:one"] * 2 + ["query:two"]


@pytest.mark.parametrize("which", NAMES)
def test_graphml_is_read_by_networkx(traces: dict[str, Trace], which: str) -> None:
    trace = traces[which]

    graph = nx.parse_graphml("".join(chunks(trace, "graphml")))

    assert graph.is_directed()
    assert set(graph.edges()) == {(name(e.source), name(e.sink)) for e in trace.edges}
    for row_ in trace.rows:
        shown = graph.nodes[name(row_.id)]
        assert (shown["stream"], shown["id"]) == (row_.stream, row_.id.text)


def test_graphml_keeps_values_that_xml_can_hold(traces: dict[str, Trace]) -> None:
    trace = traces["odd"]

    graph = nx.parse_graphml("".join(chunks(trace, "graphml")))

    shown = graph.nodes[name(trace.start[0].id)]
    assert shown["text"] == VALUES["text"].replace("\x1b", "\\x1b").replace("\x00", "\\x00")
    assert (shown["n"], shown["big"], shown["share"], shown["yes"]) == (-7, 2**62, 0.1, True)
    assert shown["low"] == float("-inf")
    assert shown["row.id"] == "users"
    assert shown["a column: of 'mine' / é"] == 1


def test_csv_holds_the_rows_of_the_answer(traces: dict[str, Trace]) -> None:
    trace = traces["road"]

    rows = list(csv.DictReader(io.StringIO("".join(chunks(trace, "csv")), newline="")))

    assert [(r["stream"], r["id"], r["position"], r["car"]) for r in rows] == [
        (r.stream, r.id.text, str(r.position), str(r["car"])) for r in trace.rows
    ]
    assert rows[0]["time"] == "2026-01-01T08:00:00Z"


def test_csv_of_edges_holds_the_edges(traces: dict[str, Trace]) -> None:
    trace = traces["named"]

    rows = list(csv.reader(io.StringIO("".join(chunks(trace, "csv-edges")), newline="")))

    expected = {(e.sink.stream, e.sink.text, e.source.stream, e.source.text) for e in trace.edges}
    assert rows[0] == ["sink", "sink_id", "source", "source_id"]
    assert {tuple(each) for each in rows[1:]} == expected
    assert len(rows) == len(expected) + 1


def test_csv_quotes_what_needs_it(tmp_path: Path) -> None:
    value = 'a "b", c\nd'
    put_reduced(tmp_path, "j", "r", 0, pa.table({"output": ["o"], "input": [value]}))
    with open_store(tmp_path) as prov:
        text = "".join(chunks(prov.backward("j", "o"), "csv"))

    [found] = csv.DictReader(io.StringIO(text, newline=""))
    assert found["entity"] == value


@pytest.mark.parametrize("ending", [".json", ".provn", ".jsonld", ".csv", ".graphml"])
def test_the_name_of_a_file_says_its_form(
    traces: dict[str, Trace], tmp_path: Path, ending: str
) -> None:
    from clew.show.export import ENDINGS

    traces["road"].write(tmp_path / f"why{ending}")

    assert [p.name for p in tmp_path.iterdir()] == [f"why{ending}"]
    with (tmp_path / f"why{ending}").open(encoding="utf-8", newline="") as file:
        assert file.read() == "".join(chunks(traces["road"], ENDINGS[ending]))


def test_what_cannot_be_written_is_said(traces: dict[str, Trace], tmp_path: Path) -> None:
    trace = traces["road"]
    with pytest.raises(QueryError, match="does not say in which form"):
        trace.write(tmp_path / "why.txt")
    with pytest.raises(QueryError, match="The forms are: prov-json, prov-n"):
        trace.to_prov("prov-xml")  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="No such file or directory"):
        trace.write(tmp_path / "nowhere" / "why.json")


@pytest.mark.parametrize("form", FORMS)
def test_the_command_line_writes_what_python_does(tmp_path: Path, form: str) -> None:
    build_road(tmp_path / "prov")
    out = tmp_path / "out"

    asked = ["export", str(tmp_path / "prov"), "accidents", "pos=5"]
    assert main([*asked, "--format", form, "-o", str(out)]) == 0

    with open_store(tmp_path / "prov") as prov:
        expected = b"".join(encode(prov.backward("accidents", {"pos": 5}), form))
    assert out.read_bytes() == expected
