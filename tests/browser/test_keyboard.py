"""Everything can be reached without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.serving import Show


def focused(page: Page) -> str:
    """What the focused element is called."""
    return str(page.evaluate("document.activeElement.textContent"))


def tab_to(page: Page, text: str) -> None:
    for _ in range(40):
        page.keyboard.press("Tab")
        if focused(page) == text:
            return
    message = f"no Tab leads to {text!r}"
    raise AssertionError(message)


def test_from_the_first_page_to_an_answer_and_back_by_keys_alone(
    page: Page, show: Show, road: Path
) -> None:
    page.goto(show(road).address)
    expect(page.get_by_role("table", name="Streams")).to_be_visible()
    page.keyboard.press("Tab")
    tab_to(page, "Results")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("table", name="Rows of accidents")).to_be_visible()

    tab_to(page, "Why?")
    page.keyboard.press("Enter")

    headline = page.get_by_role("heading", level=1)
    expect(headline).to_contain_text("was made from 4 rows of reports")
    expect(headline).to_be_focused()
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "accidents"
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Rows of accidents")).to_be_visible()


def test_the_skip_link_leads_past_the_header(page: Page, show: Show, road: Path) -> None:
    page.goto(show(road).address)
    expect(page.get_by_role("table", name="Streams")).to_be_visible()
    page.locator(".skip").focus()

    page.keyboard.press("Enter")

    expect(page.locator("main")).to_be_focused()
    assert "#main" not in page.url


def test_arrows_go_from_row_to_row_and_enter_asks(page: Page, show: Show, road: Path) -> None:
    page.goto(show(road).address + "#/results?stream=reports")
    rows = page.get_by_role("table", name="Rows of reports").locator("tbody tr")
    rows.first.focus()

    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(rows.last).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text("took part in")


def test_escape_closes_a_menu_and_returns_to_its_button(page: Page, show: Show, road: Path) -> None:
    page.goto(show(road).address + "#/results?stream=accidents")
    page.get_by_role("link", name="Why?").first.click()
    menu = page.locator("details.menu").filter(has_text="Export")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.get_by_text("PROV-N", exact=False).first).to_be_visible()

    page.keyboard.press("Escape")

    expect(menu.locator(".items")).to_be_hidden()
    expect(menu.locator("summary")).to_be_focused()
