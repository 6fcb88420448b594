"""The page's files: vendored ones are what they were, ours hold nothing that is forbidden."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import clew.explore

PAGE = Path(clew.explore.__file__).parent / "page"
VENDOR = PAGE / "vendor"
OURS = sorted(
    path
    for path in PAGE.rglob("*")
    if path.suffix in {".html", ".css", ".js"} and VENDOR not in path.parents
)
CHECKSUMS = [line.split() for line in (VENDOR / "CHECKSUMS").read_text().splitlines()]


@pytest.mark.parametrize(("digest", "name"), CHECKSUMS, ids=[name for _, name in CHECKSUMS])
def test_a_vendored_file_is_what_was_vendored(digest: str, name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest


def test_every_vendored_file_has_a_checksum_and_a_licence() -> None:
    names = {path.name for path in VENDOR.iterdir()} - {"CHECKSUMS"}

    assert names == {name for _, name in CHECKSUMS}
    assert names == {"cytoscape.min.js", "cytoscape.LICENSE"}


@pytest.mark.parametrize("path", OURS, ids=[str(path.relative_to(PAGE)) for path in OURS])
def test_our_files_ask_no_other_host_and_never_make_markup_of_text(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")

    assert re.findall(r"https?://|//cdn", text) == []
    assert re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", text) == []


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    text = (PAGE / "index.html").read_text()

    assert re.findall(r"<style|<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", text) == []
    asked = re.findall(r'(?:href|src)="static/([^"]+)"', text)
    assert [name for name in asked if not (PAGE / name).is_file()] == []
    ours = [str(path.relative_to(PAGE)) for path in OURS if path.suffix != ".html"]
    assert sorted(asked) == sorted([*ours, "icon.svg", "vendor/cytoscape.min.js"])


def test_every_module_is_used() -> None:
    scripts = {path for path in OURS if path.suffix == ".js"}
    used = {
        (path.parent / name).resolve()
        for path in scripts
        for name in re.findall(r'from "(\.[^"]+)"', path.read_text())
    }

    assert scripts - used == {PAGE / "js" / "main.js"}
    assert used <= scripts
