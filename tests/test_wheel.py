"""What a wheel carries is what users need: the library, its page, and the data of the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hatchling.builders.wheel import WheelBuilder

from clew.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]


def in_the_wheel() -> Iterator[str]:
    """List what the build takes up; nothing is written."""
    for each in WheelBuilder(str(ROOT)).recurse_included_files():
        yield Path(each.distribution_path).as_posix()


def below(folder: str) -> set[str]:
    return {path.removeprefix(folder) for path in in_the_wheel() if path.startswith(folder)}


def test_a_wheel_has_the_package_and_nothing_beside_it() -> None:
    files = set(in_the_wheel())
    modules = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/**/*.py")}

    assert {path.split("/")[0] for path in files} == {"clew"}
    assert {path for path in files if path.endswith(".py")} == modules
    assert "clew/py.typed" in files
    assert {Path(path).suffix for path in files} == {
        *(".py", ".typed", ".css", ".html", ".js", ".svg"),
        *(".LICENSE", ""),  # of what is vendored, and its check sums
    }


def test_a_wheel_has_no_workload_but_that_of_the_demo() -> None:
    assert below("clew/workloads/") == {
        *("__init__.py", "demo.py", "linear_road.py", "traffic.py"),
        *("arrival.py", "expected.py", "files.py", "verbs.py"),
    }
    assert not [path for path in in_the_wheel() if "test_" in path or "/tests/" in path]


def test_a_wheel_has_the_whole_page() -> None:
    page = ROOT / "src/clew/explore/page"

    files = {each.relative_to(page).as_posix() for each in page.rglob("*") if each.is_file()}

    assert below("clew/explore/page/") == files
    assert {"index.html", "js/main.js", "vendor/cytoscape.min.js"} <= files


def test_a_wheel_has_the_version_of_the_code() -> None:
    assert WheelBuilder(str(ROOT)).metadata.version == __version__
