"""What the docs say is what happens: code runs, outputs match, lists are whole."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import clew
from clew.frame.refused import REFUSED, REFUSED_ON_GROUPS
from clew.testing import read_batches, write_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    return [(m[1], m[2]) for m in BLOCK.finditer((ROOT / page).read_text())]


def run(code: str, names: dict[str, Any]) -> str:
    """Run code of a page as if Spark had been started in this folder."""
    for name in ("in/", "out/", "prov/", "events", "minutes/", "checkpoint/", "checkpoint-2/"):
        code = code.replace(f'"{name}', f'"{Path.cwd()}/{name}')
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        exec(compile(code, "docs", "exec"), names)
    return text.getvalue()


def run_page(page: str, names: dict[str, Any]) -> int:
    """Run a page's code; what it shows must be printed. Return how many outputs it shows."""
    printed, shown = "", 0
    for language, code in blocks(page):
        if language == "python":
            printed = run(code, names)
        elif language == "text":
            assert printed == code
            shown += 1
    return shown


def test_the_tutorial_runs_and_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_page("docs/tutorials/first-trace.md", {}) == 3


def test_choosing_a_capture_runs_and_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    from clew.testing import write_batches

    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    schema = pa.schema(
        [("ts", pa.timestamp("us", tz="UTC")), ("meter", pa.string()), ("kwh", pa.int32())]
    )
    rows = [
        {"ts": noon + dt.timedelta(minutes=m), "meter": f"m{k}", "kwh": k + 1}
        for m, k in ((5, 1), (25, 1), (35, 2), (45, 2), (55, 3), (300, 1))
    ]
    write_batches(Path("in/readings"), schema, [rows[:3], rows[3:5], rows[5:]])

    assert run_page("docs/how-to/choose-a-capture.md", {"spark": spark}) == 3


def test_several_processes_runs_and_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    eight = dt.datetime(2026, 1, 1, 8, tzinfo=dt.timezone.utc)
    rows = [
        {"ts": eight + dt.timedelta(seconds=s), "car": car, "speed": 0, "pos": 5}
        for s, car in ((1, 7), (31, 7), (61, 7), (41, 8), (7200, 9))
    ]
    Path("in/reports").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), "in/reports/part-0.parquet")

    assert run_page("docs/how-to/several-processes.md", {"spark": spark}) == 1


def test_following_rows_runs_and_prints_what_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    from clew.testing import write_batches

    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    schema = pa.schema(
        [("ts", pa.timestamp("us", tz="UTC")), ("meter", pa.string()), ("kwh", pa.int32())]
    )
    rows = [
        {"ts": noon + dt.timedelta(minutes=m), "meter": f"m{m % 2}", "kwh": kwh}
        for m, kwh in ((5, 1), (20, 3), (55, 2), (65, 9), (110, 1), (135, 4))
    ]
    write_batches(Path("in/readings"), schema, [rows[:2], rows[2:4], rows[4:]])

    assert run_page("docs/how-to/live-graph.md", {"spark": spark}) == 4


def test_asking_while_the_stream_runs_prints_what_it_shows(spark: SparkSession) -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    rows = [
        (noon, "n1", "north", 20.0, 0.8, None),
        (noon + dt.timedelta(minutes=2), "n2", "north", 22.0, 0.4, "Ann"),
        (noon + dt.timedelta(minutes=3), "s1", "south", 19.5, 0.9, None),
    ]
    kinds = "ts timestamp, sensor string, room string, celsius double, trust double, person string"

    readings = spark.createDataFrame(rows, kinds)
    assert run_page("docs/how-to/properties.md", {"readings": readings}) == 3


def test_the_page_on_ordered_windows_runs(spark: SparkSession) -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    meters = [("north", [1, 2, 3, 4, 5]), ("south", [9, 3])]
    rows = [
        (1 + i + 5 * m, noon + dt.timedelta(minutes=i), meter, kwh)
        for m, (meter, all_kwh) in enumerate(meters)
        for i, kwh in enumerate(all_kwh)
    ]
    readings = spark.createDataFrame(rows, "n long, ts timestamp, meter string, kwh long")
    provider = "spark.sql.streaming.stateStore.providerClass"
    try:
        names = {"readings": readings, "spark": spark}
        assert run_page("docs/how-to/ordered-windows.md", names) == 3
    finally:
        spark.conf.unset(provider)


def test_the_page_on_functions_runs(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    rows = [(1, "n", 95.0), (2, "n", 97.0), (3, "s", 20.0)]
    df = spark.createDataFrame(rows, "id long, sensor string, celsius double")
    names: dict[str, Any] = {"readings": clew.trace(df, "readings", id=["id"]), "F": F}
    assert run_page("docs/how-to/opaque-functions.md", names) == 0

    shown = {
        name: sorted((row.sensor, row.celsius) for row in names[name].collect())
        for name in ("hot", "top", "peaks")
    }
    assert shown["hot"] == [("n", 95.0), ("n", 97.0)]
    assert shown["top"] == shown["peaks"] == [("n", 97.0), ("s", 20.0)]


def test_the_page_on_replay_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    rows = [
        (n, noon + dt.timedelta(minutes=25 * n), meter, kwh)
        for n, (meter, kwh) in enumerate([("south", 2), ("south", 3), ("north", 4), ("north", 1)])
    ]
    readings = spark.createDataFrame(rows, "n long, ts timestamp, meter string, kwh long")
    assert run_page("docs/how-to/replay.md", {"readings": readings, "spark": spark}) == 3


def test_the_page_on_causes_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    kwh = {"south": [5, 3, 1, 90, 2, 4, 0], "north": [2, 8]}
    rows = [
        (n, noon + dt.timedelta(minutes=n), meter, each)
        for meter, listed in kwh.items()
        for n, each in enumerate(listed, 1 if meter == "south" else 11)
    ]
    schema = "n int, ts timestamp, meter string, kwh int"
    readings = spark.createDataFrame(rows, schema)

    assert run_page("docs/how-to/find-the-cause.md", {"readings": readings, "spark": spark}) == 6


def test_the_page_on_recording_keys_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    times = [noon + dt.timedelta(seconds=n) for n in (10, 20, 40, 70)]
    kinds = {"ts": pa.timestamp("us", "UTC"), "meter": pa.string(), "kwh": pa.int64()}
    rows = [
        {"ts": ts, "meter": "m1", "kwh": kwh} for ts, kwh in zip(times, (3, 90, 4, 5), strict=True)
    ]
    write_batches(tmp_path / "in", pa.schema(kinds), [rows])
    stream = read_batches(spark, tmp_path / "in", "ts timestamp, meter string, kwh long")
    assert run_page("docs/how-to/record-keys.md", {"stream": stream}) == 3


def test_the_page_on_publishing_provenance_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run_page("docs/how-to/emit-provenance.md", {"spark": spark}) == 3


def test_the_page_on_exports_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from store.road import build_road

    monkeypatch.chdir(tmp_path)
    build_road(tmp_path / "prov")

    assert run_page("docs/how-to/export.md", {}) == 3
    assert (tmp_path / "why.svg").read_text().endswith("</svg>\n")
    assert (tmp_path / "why.provn").read_text().startswith("document\n")


def test_the_page_on_notebooks_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from store.road import build_road

    monkeypatch.chdir(tmp_path)
    build_road(tmp_path / "prov")
    names: dict[str, Any] = {}

    assert run_page("docs/how-to/notebook.md", names) == 3
    assert names["why"]._repr_html_().count("<rect") == len(names["why"].drawing().nodes)


@pytest.mark.parametrize(("page", "outputs"), [("operate", 4), ("openlineage", 1)])
def test_the_pages_on_running_a_store_run(
    page: str, outputs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from store.road import build_road

    monkeypatch.chdir(tmp_path)
    build_road(tmp_path / "prov")

    assert run_page(f"docs/how-to/{page}.md", {}) == outputs


def test_the_page_on_reduction_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seeds.big_provenance import HASHTAGS, lines

    monkeypatch.chdir(tmp_path)
    Path("in/events").mkdir(parents=True)
    said = [
        *lines(HASHTAGS, "hashtags"),
        '{"prov": "agent", "agent": "me"}',
        '{"prov": "used", "acti',
    ]
    Path("in/events/0.jsonl").write_text("\n".join(said))

    assert run_page("docs/how-to/reduce-provenance.md", {"spark": spark}) == 4


def test_the_readme_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    times = [
        dt.datetime(2026, 1, 1, 8, 0, 1, tzinfo=dt.timezone.utc) + dt.timedelta(seconds=30 * i)
        for i in range(4)
    ]
    rows = [{"ts": t, "car": 7, "speed": 0, "pos": 100} for t in times]
    rows.append({**rows[0], "ts": times[0] + dt.timedelta(hours=1), "car": 8})
    Path("in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), "in/part-0.parquet")
    schema = "ts timestamp, car long, speed long, pos long"
    [code] = [code for language, code in blocks("README.md") if language == "python"]
    names: dict[str, Any] = {"spark": spark, "schema": schema}
    printed = run(code, names)

    [shown] = [text for language, text in blocks("README.md") if language == "text"]
    table = shown.split("\n\n")[1].splitlines()
    assert "was made from 4 rows of `reports`" in printed
    assert [line.rstrip() for line in printed.splitlines()[2:7]] == table
    assert "exactness: exact" in printed
    assert [row["ts"] for row in names["why"].rows] == times


def test_the_readme_is_short_and_shows_python_early() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()

    assert len(lines) < 150
    assert lines.index("```python") < 30


def test_every_refused_verb_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/operators.md").read_text()

    for verb, instead in REFUSED.items():
        assert f"| `{verb}` | {instead} |" in page
    for verb, instead in REFUSED_ON_GROUPS.items():
        assert f"| `groupBy(…).{verb}` | {instead} |" in page


def test_every_followed_verb_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/operators.md").read_text()
    actions = {
        "collect", "columns", "count", "dtypes", "explain", "first", "head", "isEmpty",
        "isStreaming", "node", "plain", "printSchema", "schema", "show", "sparkSession",
        "storageLevel", "tail", "take", "toArrow", "toLocalIterator", "toPandas", "unpersist",
        "write", "writeStream", "recover", "named", "crossJoin", "groupby", "drop_duplicates",
        "repartitionByRange", "repartitionById", "properties", "property", "subscribe",
    }  # fmt: skip
    verbs = {name for name in vars(clew.TracedFrame) if not name.startswith("_")} - actions

    assert {verb for verb in verbs if f"`{verb}" not in page} == set()


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
