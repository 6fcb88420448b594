"""A stream runs, and the page follows it without being loaded again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from playwright.sync_api import expect
from pyspark.sql import functions as F

import clew
from clew.testing import write_batches
from store.build import StoreBuilder, at, row

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from browser.serving import Show

READINGS = pa.schema([("at", pa.timestamp("us", "UTC")), ("meter", pa.string())])


def write(folder: Path, *clocks: str) -> None:
    write_batches(folder, READINGS, [[{"at": at(clock), "meter": "m1"} for clock in clocks]])


def start(spark: SparkSession, folder: Path) -> StreamingQuery:
    """Count readings in windows of 20 seconds that begin every 10."""
    frame = spark.readStream.schema("at timestamp, meter string").parquet(str(folder / "in"))
    counts = (
        clew.trace(frame, "readings", event_time="at")
        .withWatermark("at", "0 seconds")
        .groupBy(F.window("at", "20 seconds", "10 seconds"), "meter")
        .agg(F.count("*").alias("n"))
    )
    writer = counts.writeStream.provenance(str(folder / "prov")).queryName("counts")
    writer = writer.format("parquet").option("path", str(folder / "out"))
    return writer.option("checkpointLocation", str(folder / "checkpoint")).start()


def test_a_new_result_appears_while_the_stream_runs(
    page: Page, show: Show, spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path / "in", "08:00:05", "08:00:11")  # closes the window that ends at 08:00:10
    query = start(spark, tmp_path)
    try:
        query.processAllAvailable()
        page.goto(show(tmp_path / "prov").address + "#/results?stream=readings")
        page.get_by_role("link", name=re.compile("^What did it do")).first.click()
        expect(page.locator(".life .badge")).to_have_text("Alive: more results may follow")
        rows = page.locator(".sheet tbody tr")
        expect(rows).to_have_count(1)
        page.evaluate("globalThis.stays = 'the same page'")

        write(tmp_path / "in", "08:00:21")  # closes the other window of the first reading
        query.processAllAvailable()

        expect(page.locator("#news")).to_have_text("1 new result of this row")
        expect(rows).to_have_count(2)
        assert sorted(rows.locator("td[data-label=n]").all_inner_texts()) == ["1", "2"]
        expect(page.locator(".life .badge")).to_have_text("Alive: more results may follow")

        write(tmp_path / "in", "08:00:40")  # beyond the reading's last window and its bound
        query.processAllAvailable()

        expect(page.locator(".life .badge")).to_have_text("Expired: nothing more will follow")
        expect(rows).to_have_count(2)
        expect(page.locator("#live")).to_have_text("Following")
        assert page.evaluate("globalThis.stays") == "the same page"
    finally:
        query.stop()


def test_a_store_without_a_batch_says_so_and_fills_by_itself(
    page: Page, show: Show, tmp_path: Path
) -> None:
    store = StoreBuilder(tmp_path / "prov")
    page.goto(show(store.root).address)
    expect(page.get_by_text("The store has no batch yet; this page updates")).to_be_visible()

    store.source("reports")
    store.sink("stopped", ["reports"])
    store.batch("stopped", 0, rows={"stopped": [row(1, 1, car=7)]})

    expect(page.get_by_role("table", name="Streams").locator("tbody tr")).to_have_count(2)
    expect(page.locator(".drawing")).to_be_visible()


def test_a_lost_connection_is_said_and_found_again(
    page: Page, wrong: list[str], show: Show, road: Path
) -> None:
    served = show(road)
    page.goto(served.address)
    badge = page.locator("#live")
    expect(badge).to_have_text(re.compile("Following|Store quiet"))

    served.stop()
    expect(badge).to_have_text("Connection lost, trying again")
    served.start()

    expect(badge).to_have_text(re.compile("Following|Store quiet"))
    wrong[:] = [each for each in wrong if "net::ERR_" not in each]
