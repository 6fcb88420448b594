"""The table of rows: ordered, narrowed down and paged as Python does it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

import clew
from store.build import StoreBuilder, row

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.serving import Show


def keys(page: Page) -> list[str]:
    """The rows that are shown, once they are."""
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    script = "[...document.querySelectorAll('tbody tr')].map((each) => each.dataset.key)"
    return list(page.evaluate(script))


def test_rows_between_two_moments_and_of_one_car_are_those_that_python_finds(
    page: Page, show: Show, road: Path
) -> None:
    address = show(road).address
    page.goto(f"{address}#/results?stream=reports")
    page.get_by_label("From, UTC").fill("2026-01-01 08:00:05")
    page.get_by_label("To, UTC").fill("2026-01-01 08:00:15")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_role("combobox", name="Column").select_option("car")
    page.get_by_role("textbox", name="Value").fill("8")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("that are like that")).to_be_visible()

    with clew.open(road) as prov:
        found = [each for each in prov.rows("reports") if each["car"] == 8]
    expected = [
        f"row:reports/{each.id.text}"
        for each in found
        if each.time is not None and 5 <= each.time.second <= 15 and each.time.minute == 0
    ]
    assert len(expected) == 2
    assert sorted(keys(page)) == sorted(expected)
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_text("that are like that")).to_be_hidden()


def test_headings_order_upwards_then_downwards_and_pages_are_turned(
    page: Page, show: Show, tmp_path: Path
) -> None:
    store = StoreBuilder(tmp_path / "prov")
    store.source("in")
    store.sink("out", ["in"])
    store.batch("out", 0, rows={"out": [row(i, i, n=(i * 7) % 30) for i in range(30)]})
    page.goto(show(store.root).address + "#/results?stream=out")
    cells = page.locator("td[data-label=n]")

    page.get_by_title("Order by n").click()
    expect(page.get_by_role("columnheader", name=re.compile("^n"))).to_have_attribute(
        "aria-sort", "ascending"
    )
    expect(cells.first).to_have_text("0")
    assert cells.all_inner_texts() == [str(n) for n in range(25)]
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text(re.compile("^26.30 of 30$"))).to_be_visible()
    assert cells.all_inner_texts() == [str(n) for n in range(25, 30)]
    page.get_by_title("Order by n").click()

    expect(cells.first).to_have_text("29")
    expect(page).to_have_url(re.compile("order_by=n&descending=true"))
