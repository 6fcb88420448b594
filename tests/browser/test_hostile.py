"""Names, ids and values that would do harm if they were taken for anything but text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from store.build import StoreBuilder, at, row

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.serving import Show

SCRIPT = "<script>alert(1)</script>"
IMAGE = '<img src=x onerror="alert(2)">'
SQL = "'; DROP TABLE rows; --"
SOURCE = f"in/{SCRIPT}?a=b&c#d"
SINK = f'out "{IMAGE}" %2F'
FILE = f"file:///in/{SCRIPT}/{IMAGE}.parquet"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = StoreBuilder(tmp_path / "prov")
    store.source(SOURCE, event_time="ts")
    store.sink(SINK, [SOURCE])
    store.batch(
        SINK,
        0,
        rows={
            SINK: [row(7, 1, text=SCRIPT, more={"inner": IMAGE}, sql=SQL)],
            SOURCE: [row(1, 1, segment=FILE, time=at("08:00:00"), text=IMAGE, none=None)],
        },
        edges=[(SINK, 7, 1, SOURCE, 1, 1)],
    )
    return store.root


def test_names_and_values_are_shown_as_text(page: Page, show: Show, store: Path) -> None:
    page.goto(f"{show(store).address}#/results?{urlencode({'stream': SINK})}")
    cell = page.locator("tbody td")
    expect(cell.and_(page.locator("[data-label=text]"))).to_have_text(SCRIPT)
    expect(cell.and_(page.locator("[data-label=sql]"))).to_have_text(SQL)
    nested = cell.and_(page.locator("[data-label=more]"))
    nested.locator("summary").click()
    expect(nested.locator("dd")).to_have_text(IMAGE)

    page.get_by_role("link", name="Why?").click()

    expect(page.get_by_role("heading", level=1)).to_contain_text(f"1 row of {SOURCE}.")
    expect(page.get_by_role("heading", name=SOURCE, exact=True)).to_be_visible()
    expect(page.locator(".sheet td[data-label=text]")).to_have_text(IMAGE)
    expect(page.locator(".sheet td[data-label=none]")).to_have_text("null")
    assert page.locator("img, main script").count() == 0


def test_the_address_of_a_strange_row_leads_back_to_it(page: Page, show: Show, store: Path) -> None:
    address = show(store).address
    page.goto(f"{address}#/results?{urlencode({'stream': SOURCE})}")
    page.get_by_role("link", name="What did it do?").click()
    headline = page.get_by_role("heading", level=1)
    expect(headline).to_contain_text(f"1 row of {SINK}.")

    page.reload()

    expect(headline).to_contain_text(f"1 row of {SINK}.")
    expect(page.locator(".drawing canvas").first).to_be_visible()


@pytest.mark.parametrize("value", [SCRIPT, IMAGE, SQL, "../../etc/passwd", "%00", "'"])
def test_a_row_or_stream_that_is_not_there_is_an_answer(
    page: Page, wrong: list[str], show: Show, store: Path, value: str
) -> None:
    asked = urlencode({"stream": SINK, "row": value})
    page.goto(f"{show(store).address}#/why?{asked}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text(re.compile("has no row|not clear which row"))

    page.goto(f"{page.url.split('#')[0]}#/results?{urlencode({'stream': value})}")
    expect(alert).to_contain_text("the store has no stream")

    wrong[:] = [each for each in wrong if "status of 40" not in each]


def test_large_numbers_are_shown_as_they_are(page: Page, show: Show, tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path / "numbers")
    store.source("in")
    store.sink("out", ["in"])
    large = 9_007_199_254_740_993
    store.batch("out", 0, rows={"out": [row(1, 1, n=large, x=0.5, nested={"n": large})]})
    page.goto(show(store.root).address + "#/results?stream=out")

    expect(page.locator("td[data-label=n]").first).to_have_text(str(large))
    expect(page.locator("td[data-label=nested]")).to_contain_text(json.dumps(str(large)))
