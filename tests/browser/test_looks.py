"""The page can be read at both widths and in both colours, by people and by machines."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import expect

import clew
from browser.conftest import NARROW, WIDE

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browser.serving import Show

IMAGES = Path(
    os.environ.get("CLEW_TEST_IMAGES", Path(__file__).parents[2] / "docs" / "images")
).resolve()

SIZES = pytest.mark.parametrize(
    "settings",
    [
        {"viewport": viewport, "color_scheme": scheme}
        for viewport in (WIDE, NARROW)
        for scheme in ("light", "dark")
    ],
    indirect=True,
    ids=["1280-light", "1280-dark", "390-light", "390-dark"],
)

PICTURED = {(1280, "light"), (390, "dark")}

# Text on what is behind it, as WCAG 2 measures contrast.
CONTRAST = """() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = numbers(getComputedStyle(each).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const own = (element) => [...element.childNodes]
    .some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("body *")]
    .filter((each) => own(each) && each.checkVisibility() && !each.matches(":disabled, .skip"))
    .map((each) => {
      const [one, two] = [light(numbers(getComputedStyle(each).color)), light(behind(each))];
      const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
      return [ratio, each.tagName + "." + each.className + ": " + each.textContent.slice(0, 30)];
    })
    .filter(([ratio]) => ratio < 4.5);
}"""

# What can be acted on has a name, ids are there once, and headings skip no level.
UNNAMED = """() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const isNamed = (each) => each.getAttribute("aria-label") || each.textContent.trim()
    || each.labels?.length || each.title;
  const acts = all("a, button, input, select, summary, [role=application], svg[role=img]");
  const ids = all("[id]").map((each) => each.id);
  const levels = all("h1, h2, h3, h4").map((each) => Number(each.tagName[1]));
  return [
    ...acts.filter((each) => !isNamed(each)).map((each) => each.outerHTML.slice(0, 80)),
    ...ids.filter((id, i) => ids.indexOf(id) !== i),
    ...levels.filter((level, i) => level > (levels[i - 1] ?? 0) + 1).map((level) => "h" + level),
  ];
}"""


def views(store: Path, alerts: tuple[str, str]) -> dict[str, str]:
    """The addresses of all views, about one accident."""
    one, two = alerts
    with clew.open(store) as prov:
        report = prov.backward("accidents", one).rows[0].id.text
    return {
        "streams": "#/streams",
        "results": "#/results?stream=accidents",
        "why": f"#/why?stream=accidents&row={one}",
        "forward": f"#/forward?stream=reports&row={report}",
        "compare": f"#/compare?stream=accidents&row={one}&other={two}",
        "minimize": f"#/minimize?stream=accidents&row={one}",
    }


def settled(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".loading, [aria-busy=true]")).to_have_count(0)


@SIZES
def test_every_view_can_be_read_and_is_pictured(
    page: Page, show: Show, demo: Path, alerts: tuple[str, str], settings: dict[str, Any]
) -> None:
    address = show(demo).address
    width = settings["viewport"]["width"]
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, view in views(demo, alerts).items():
        page.goto(address + view)
        settled(page)

        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(CONTRAST) == [], name
        assert page.evaluate(UNNAMED) == [], name
        if (width, settings["color_scheme"]) in PICTURED:
            take_picture(page, f"{name}-{width}.png")


def take_picture(page: Page, name: str) -> None:
    """Keep a small picture of the page, without what differs from run to run."""
    page.evaluate(
        """() => {
          for (const chip of document.querySelectorAll(".chip")) {
            if (chip.textContent.startsWith("answered in")) chip.hidden = true;
          }
          document.getElementById("live").textContent = "Store quiet";
          document.activeElement.blur();
        }"""
    )
    picture = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
    picture.quantize(128).save(IMAGES / name, optimize=True)


def test_the_colours_are_chosen_with_a_button_and_kept(page: Page, show: Show, road: Path) -> None:
    page.goto(show(road).address)
    settled(page)
    button = page.get_by_role("button", name=re.compile("^Colours"))
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(paper) == "rgb(247, 247, 245)"

    button.click()
    button.click()

    expect(button).to_have_text("Dark")
    assert page.evaluate(paper) == "rgb(19, 21, 25)"
    page.reload()
    settled(page)
    assert page.evaluate(paper) == "rgb(19, 21, 25)"


@pytest.mark.parametrize("settings", [{"reduced_motion": "reduce"}], indirect=True)
def test_nothing_moves_for_those_who_do_not_want_it(page: Page, show: Show, road: Path) -> None:
    page.goto(show(road).address)
    settled(page)

    assert page.evaluate("document.getAnimations().length") == 0
