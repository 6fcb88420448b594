"""A browser, a demo store, and pages that watch themselves; only `make test-browser` asks for them.

A page fails its test when it logs an error, lets an exception escape, asks another host, or opens
a dialog, whatever else the test looks at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.serving import serving
from clew.ask.provenance import open_store
from store.road import build_road

_BROWSER = os.environ.get("CLEW_TEST_BROWSER")

if _BROWSER is None:
    collect_ignore_glob = ["test_*.py"]
else:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=20_000)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

    from browser.serving import Show

WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Chromium's own sandbox does not start as root, e.g. in a container.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=_BROWSER, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the browser is like; a test changes it with `indirect`."""
    return {"viewport": WIDE, "color_scheme": "light", **getattr(request, "param", {})}


@pytest.fixture
def wrong() -> Iterator[list[str]]:
    """What went wrong in the page; a test that breaks something takes it out."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def page(
    chromium: Browser, settings: dict[str, Any], wrong: list[str], show: Show
) -> Iterator[Page]:
    """A page that takes note of whatever goes wrong in it, and closes before servers stop."""
    context = chromium.new_context(**settings)
    context.set_default_timeout(20_000)
    page = context.new_page()
    _watch(page, wrong)
    yield page
    context.close()


def _watch(page: Page, wrong: list[str]) -> None:
    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    def asked(request: Request) -> None:
        if not _is_here(request.url):
            wrong.append(f"asked {request.url}")

    page.on("console", said)
    page.on("request", asked)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))


def _is_here(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:"))


@pytest.fixture
def show() -> Iterator[Show]:
    """Serve a store until the test ends."""
    with serving() as show:
        yield show


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of `make demo`, of fewer cars; CLEW_TEST_DEMO names one that is there already."""
    if "CLEW_TEST_DEMO" in os.environ:
        return Path(os.environ["CLEW_TEST_DEMO"])
    folder = tmp_path_factory.mktemp("demo") / "clew-demo"
    command = [sys.executable, "-m", "clew", "demo", "--folder", str(folder), "--cars", "1000"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "prov"


@pytest.fixture(scope="session")
def alerts(demo: Path) -> tuple[str, str]:
    """The ids of two alerts of the demo about one place."""
    with open_store(demo) as prov:
        rows = sorted(prov.rows("accidents"), key=lambda row: (row["pos"], row["window"]["start"]))
        return next(
            (one.id.text, two.id.text) for one, two in pairwise(rows) if one["pos"] == two["pos"]
        )


@pytest.fixture
def road(tmp_path: Path) -> Path:
    """The small store of most tests."""
    return build_road(tmp_path / "prov").root
