"""Two results beside each other, and the smallest cause of one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

import clew

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page
    from pyspark.sql import SparkSession

    from browser.serving import Show


def test_two_results_are_compared_by_their_source_rows(
    page: Page, show: Show, demo: Path, alerts: tuple[str, str]
) -> None:
    one, two = alerts
    with clew.open(demo) as prov:
        expected = prov.compare("accidents", one, two).to_dict()["counts"]
        place = [row.id.text for row in prov.rows("accidents", limit=None)].index(two)
    page.goto(show(demo).address + f"#/why?stream=accidents&row={one}")
    page.get_by_role("link", name="Compare with another row").click()
    for offset in range(100, place + 1, 100):  # ids differ between stores, and so does the order
        page.get_by_role("link", name="Next").click()
        expect(page).to_have_url(re.compile(rf"offset={offset}\b"))
    page.locator(f"tr[data-key='row:accidents/{two}'] a").click()

    expect(page.get_by_text("The two rows share")).to_be_visible()
    chips = page.locator(".chip").all_inner_texts()
    names = ("common", "only_left", "only_right")
    assert [int(each.split()[0]) for each in chips] == [expected[name] for name in names]
    expect(page.get_by_role("link", name=re.compile("^What did it do"))).to_have_count(
        sum(expected.values())
    )


def test_the_search_for_a_minimal_cause_shows_how_far_it_is_and_stops(
    page: Page, show: Show, demo: Path, spark: SparkSession
) -> None:
    with clew.open(demo) as prov:
        row = prov.rows("accidents")[0].id.text
    page.goto(show(demo).address + f"#/minimize?stream=accidents&row={row}")

    page.get_by_role("button", name="Find it").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("button", name="Stop").click()

    stopped = re.compile("Stopped before|The search was stopped")
    expect(page.get_by_text(stopped)).to_be_visible(timeout=120_000)
    expect(page.get_by_role("button", name="Find it")).to_be_enabled()


def test_a_minimal_cause_is_found_under_a_condition(
    page: Page, show: Show, demo: Path, spark: SparkSession
) -> None:
    with clew.open(demo) as prov:
        row = prov.rows("stopped")[0].id.text
    page.goto(show(demo).address + f"#/minimize?stream=stopped&row={row}")

    page.get_by_label("Condition").fill("n >= 4")
    page.get_by_role("button", name="Find it").click()

    # A car has stopped when four reports say so: none can be left out.
    expect(page.get_by_role("heading", name="4 of 4 source rows are enough")).to_be_visible(
        timeout=180_000
    )
    expect(page.locator(".sheet tbody tr")).to_have_count(4)
