"""How long does the explorer take to say why a result is there, in a store of five million edges?

Two queries of Linear Road run with Spark over reports of cars that stand still, and write a store
as queries of any user do: stopped cars with four source rows each, accidents with eight. Then
`clew explore` is started in a process of its own and asked over HTTP for rows picked at random, as
the page asks: Why? is `backward` and then `drawing`. Server time is what the server says in
`Server-Timing`. Where Playwright and Chromium are there, the page itself is opened as well, and
timed from the address to the drawing. Writes `benchmarks/results/explorer.json`.

Run: python -m benchmarks.explorer [--quick] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pyarrow as pa

from clew.ask.provenance import open_store
from clew.frame.door import trace
from clew.workloads import linear_road
from clew.workloads.files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

RESULTS = Path(__file__).parent / "results" / "explorer.json"
REPORTS = 60
EXPECTED = {"stopped": 4, "accidents": 8}


def make_reports(cars: int, crashes: int) -> pa.Table:
    """Let cars stand for half an hour and report every 30 seconds; pairs of some share a place."""
    car = np.tile(np.arange(cars), REPORTS)
    second = np.repeat(np.arange(REPORTS) * 30, cars)
    start = np.datetime64(linear_road.START.replace(tzinfo=None), "us")
    pos = np.where(car < 2 * crashes, car // 2, car)
    columns = {
        "ts": pa.array(start + second.astype("timedelta64[s]")).cast(pa.timestamp("us", "UTC")),
        "car": pa.array(car),
        "speed": pa.array(np.zeros_like(car)),
        "pos": pa.array(pos),
    }
    zeros = pa.array(np.zeros_like(car))
    schema = linear_road.reports(cars=1, stopped=0, accidents=0, decoys=0).schema
    return pa.table(
        [columns.get(name, zeros).cast(schema.field(name).type) for name in schema.names], schema
    )


def make_session(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .appName("clew explorer")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )


def make_store(folder: Path, cars: int, crashes: int, files: int) -> Path:
    """Run the queries; return their store."""
    table = make_reports(cars, crashes)
    write_files(table, folder / "in", files=files, closing=linear_road.closing_report(table))
    spark = make_session(folder)
    source = spark.readStream.schema(linear_road.SCHEMA).option("maxFilesPerTrigger", 1)
    reports = trace(source.parquet(str(folder / "in")), "reports", event_time="ts")
    stopped = linear_road.stopped_cars(reports)
    frames = {"stopped": stopped, "accidents": linear_road.accidents(stopped)}
    for name, frame in frames.items():
        writer = frame.writeStream.provenance(str(folder / "prov")).queryName(name)
        writer = writer.format("parquet").option("path", str(folder / name))
        writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name))
        writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()
    return folder / "prov"


@contextmanager
def exploring(store: Path) -> Iterator[str]:
    """Run `clew explore`; yield its address."""
    command = [sys.executable, "-m", "clew", "explore", str(store), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found, "the server did not start"
        try:
            yield found[0]
        finally:
            server.terminate()


def server_ms(answer: httpx.Response) -> float:
    answer.raise_for_status()
    return float(answer.headers["server-timing"].split("dur=")[1])


def pick(client: httpx.Client, stream: str, number: int, rng: random.Random) -> list[str]:
    """Choose rows of a stream at random."""
    total = client.get("/api/rows", params={"stream": stream, "limit": 1}).json()["total"]
    pages = [rng.randrange(max(1, total - 50)) for _ in range(5)]
    found = [
        each["id"]
        for offset in pages
        for each in client.get("/api/rows", params={"stream": stream, "offset": offset}).json()[
            "rows"
        ]
    ]
    return rng.sample(found, min(number, len(found)))


def why(client: httpx.Client, stream: str, row: str) -> float:
    """Ask as the page does; return the server's milliseconds."""
    params = {"stream": stream, "row": row}
    answer = client.get("/api/backward", params=params)
    drawing = client.get("/api/drawing", params={**params, "direction": "backward"})
    assert len(answer.json()["rows"]) == EXPECTED[stream], answer.text
    assert drawing.json()["rows"] == EXPECTED[stream] + 1, drawing.text
    return server_ms(answer) + server_ms(drawing)


def ask(client: httpx.Client, path: str, params: dict[str, str]) -> float:
    return server_ms(client.get(f"/api/{path}", params=params))


def summary(times: list[float]) -> dict[str, float]:
    return {
        "questions": len(times),
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(statistics.quantiles(times, n=20)[-1], 1),
        "max_ms": round(max(times), 1),
        "first_ms": round(times[0], 1),
    }


def measure(address: str, questions: int, rng: random.Random) -> list[dict[str, Any]]:
    """Ask everything; return one row for each kind of question."""
    rows: list[dict[str, Any]] = []
    with httpx.Client(base_url=address, timeout=120) as client:
        chosen = {stream: pick(client, stream, questions // 2, rng) for stream in EXPECTED}
        asked = [(stream, row) for stream, found in chosen.items() for row in found]
        rng.shuffle(asked)
        rows.append({"experiment": "why", **summary([why(client, *each) for each in asked])})
        sources = pick(client, "reports", questions // 2, rng)
        for name, path, many in (
            ("what did it do", "forward", [{"stream": "reports", "row": each} for each in sources]),
            ("timeline", "timeline", [{"stream": s, "row": r} for s, r in asked[:20]]),
            (
                "page of results",
                "rows",
                [{"stream": "accidents", "offset": str(i * 50)} for i in range(10)],
            ),
            (
                "results by value",
                "rows",
                [
                    {"stream": "stopped", "column": "car", "op": "=", "value": str(i)}
                    for i in range(10)
                ],
            ),
            ("flow", "flow", [{}] * 10),
        ):
            rows.append({"experiment": name, **summary([ask(client, path, each) for each in many])})
        rows += drawn(address, asked[:20])
    return rows


_VIEW: Any = {"width": 1280, "height": 900}


def drawn(address: str, asked: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """Open the page for rows, and time it from the address to the drawing."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None or httpx.get(address).status_code != 200:
        print("the page is not timed: Playwright, Chromium or the page is missing")
        return []
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, is_first in (("why, drawn in the page", False), ("why, on a first visit", True)):
            times: list[float] = []
            page = browser.new_page(viewport=_VIEW)
            for stream, row in asked:
                if is_first:  # nothing of the page is known to the browser
                    page.close()
                    page = browser.new_page(viewport=_VIEW)
                page.goto("about:blank")
                began = time.perf_counter()
                page.goto(f"{address}#/why?stream={stream}&row={row}", wait_until="commit")
                page.wait_for_selector(".drawing .canvas canvas", state="visible")
                page.wait_for_selector("table tbody tr", state="visible")
                times.append((time.perf_counter() - began) * 1000)
            page.close()
            rows.append({"experiment": name, **summary(times)})
        browser.close()
    return rows


def machine() -> dict[str, Any]:
    packages = ("duckdb", "pyarrow", "fastapi", "uvicorn")
    return {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "load_at_start": [round(each, 2) for each in os.getloadavg()],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in packages},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a small store, few questions")
    parser.add_argument(
        "--keep", metavar="FOLDER", help="make the store here, or use the one there"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    cars, crashes, files = (400, 20, 3) if options.quick else (20_000, 1_000, 10)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch)
        store = folder / "prov"
        if not store.exists():
            store = make_store(folder, cars, crashes, files)
        about = machine()
        with open_store(store) as provenance:
            size = provenance.about()
        with exploring(store) as address:
            rows = measure(address, 20 if options.quick else 200, random.Random(options.seed))
    rows = [{**each, "edges": size.edges} for each in rows]
    result = {
        **about,
        "seed": options.seed,
        "quick": options.quick,
        "edges": size.edges,
        "batches": size.batches,
        "rows": rows,
    }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
