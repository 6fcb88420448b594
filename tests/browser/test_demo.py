"""The story of the demo: find an alert, ask why, go forward from a source row, take it away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import prov.model
import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.serving import Show


@pytest.fixture
def alert(page: Page, show: Show, demo: Path) -> Page:
    """The answer to Why? about an accident of two cars."""
    page.goto(show(demo).address)
    page.get_by_role("link", name="Results").click()
    expect(page.get_by_role("combobox", name="Stream")).to_have_value("accidents")
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_role("combobox", name="Column").select_option("cars")
    page.get_by_role("textbox", name="Value").fill("2")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("tbody tr td[data-label=cars]").first).to_have_text("2")
    page.get_by_role("link", name=re.compile("^Why?")).first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("was made from 8 rows of reports")
    return page


def test_an_alert_of_two_cars_was_made_from_eight_reports(alert: Page) -> None:
    rows = alert.locator(".sheet tbody tr")

    expect(rows).to_have_count(8)
    assert rows.locator("td[data-label=speed]").all_inner_texts() == ["0"] * 8
    cars = rows.locator("td[data-label=car]").all_inner_texts()
    assert sorted(cars.count(car) for car in set(cars)) == [4, 4]
    places = alert.locator("td[data-label=pos]").all_inner_texts()
    assert set(places) == {alert.locator(".beside .pairs dd").nth(1).inner_text()}


def test_forward_from_a_report_leads_back_to_the_alert(alert: Page) -> None:
    asked = alert.url.split("row=")[1]

    alert.get_by_role("link", name=re.compile("^What did it do")).first.click()

    expect(alert.get_by_role("heading", level=1)).to_contain_text("took part in")
    expect(alert.locator(".life .badge")).to_have_text("Expired: nothing more will follow")
    accidents = alert.get_by_role("table", name="Rows of accidents").locator("tbody tr")
    expect(accidents.first).to_be_visible()
    keys = [accidents.nth(i).get_attribute("data-key") for i in range(accidents.count())]
    assert f"row:accidents/{asked}" in keys
    alert.go_back()
    expect(alert.get_by_role("heading", level=1)).to_contain_text("was made from 8 rows of reports")


def test_the_answer_is_exported_as_provenance_that_others_read(alert: Page) -> None:
    alert.get_by_text("Export", exact=True).click()
    with alert.expect_download() as download:
        alert.get_by_role("link", name="PROV-JSON W3C provenance").click()

    document = prov.model.ProvDocument.deserialize(download.value.path(), format="json")

    [bundle] = [document, *document.bundles][:1]
    entities = list(bundle.get_records(prov.model.ProvEntity))
    derived = list(bundle.get_records(prov.model.ProvDerivation))
    assert (len(entities), len(derived)) == (9, 8)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("CSV", b"stream,"),
        ("Parquet", b"PAR1"),
        ("PROV-N", b"document"),
        ("GraphML", b"<?xml"),
        ("SVG", b'<?xml version="1.0" encoding="UTF-8"?>\n<svg'),
        ("PNG", b"\x89PNG"),
    ],
)
def test_the_answer_is_exported_as(alert: Page, name: str, start: bytes) -> None:
    alert.get_by_text("Export", exact=True).click()
    with alert.expect_download() as download:
        alert.locator(".menu .items a").filter(has_text=re.compile(f"^{name}")).first.click()

    assert download.value.path().read_bytes().startswith(start)


def test_the_drawing_says_what_a_node_is_and_lights_up_its_rows(alert: Page) -> None:
    drawing = alert.get_by_role("application")
    drawing.focus()
    alert.keyboard.press("ArrowRight")  # the row asked about
    alert.keyboard.press("ArrowLeft")
    told = alert.locator(".drawing .told")

    expect(told).to_contain_text("select")
    expect(alert.locator(".sheet tr.lit")).to_have_count(8)
    for _ in range(8):
        alert.keyboard.press("ArrowLeft")
    expect(told).to_contain_text("reports")
    expect(alert.locator(".sheet tr.lit")).to_have_count(1)
    alert.locator(".sheet tbody tr").last.hover()  # it stands in the group of those not drawn
    expect(alert.locator(".sheet tr.lit")).to_have_count(1)
    expect(alert.locator(".timeline .dot.lit")).to_have_count(2)  # the report, and the alert
    drawing.focus()
    alert.keyboard.press("Escape")
    expect(told).to_contain_text("Choose a node")


def test_a_group_is_expanded_and_the_address_keeps_it(alert: Page) -> None:
    expect(alert.get_by_text("9 rows: 6 shown, 3 more in groups")).to_be_visible()
    drawing = alert.get_by_role("application")
    drawing.focus()
    for key in ["ArrowRight", *["ArrowLeft"] * 9, *["ArrowDown"] * 5]:
        alert.keyboard.press(key)
    expect(alert.locator(".drawing .told")).to_contain_text("3 more rows of reports")

    alert.keyboard.press("Enter")

    expect(alert.get_by_text("3 more in groups")).to_be_hidden()
    expect(alert).to_have_url(re.compile("expand="))
    alert.reload()
    expect(alert.locator(".drawing canvas").first).to_be_visible()
    expect(alert.get_by_text("3 more in groups")).to_be_hidden()


def test_the_timeline_has_the_rows_and_their_windows(alert: Page) -> None:
    expect(alert.locator(".timeline .dot")).to_have_count(9)  # the reports, and the alert
    expect(alert.locator(".timeline .window").first).to_be_visible()


def test_a_scope_keeps_the_answer_to_a_stream_and_stays_in_the_address(alert: Page) -> None:
    alert.get_by_label("Rows in between").check()
    expect(alert).to_have_url(re.compile("intermediate=true"))
    alert.reload()

    expect(alert.get_by_label("Rows in between")).to_be_checked()
    expect(alert.locator(".sheet tbody tr")).to_have_count(8)
