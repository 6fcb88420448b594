"""The whole output of each command, as it stands in `tests/golden/cli/`.

To accept changed output, run these tests with `CLEW_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import clew.cli
from clew.cli import main
from store.build import StoreBuilder, row
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Sequence

GOLDEN = Path(__file__).parents[1] / "golden" / "cli"
SOURCE = str(Path(clew.cli.__file__).parents[2])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the road store and one whose store has a gap and a long stream."""
    folder = tmp_path_factory.mktemp("cli")
    build_road(folder / "prov")
    builder = StoreBuilder(folder / "gaps")
    builder.sink("s", ["r"])
    builder.batch("s", 0, edges=[("s", 1, 1, "r", 0, i) for i in range(30)])
    builder.batch("s", 1, gap="disk \x1b[31mfull")
    rows = [row(0, i, segment="in/p", note="\x1b]0;owned\x07", n=i) for i in range(30)]
    builder.batch("s", 2, rows={"s": [row(1, 1, n=30)], "r": rows})
    return folder


def check(name: str, text: str, place: Path) -> None:
    text = text.replace(str(place.resolve()), "/work")
    text = re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0.01', text)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("CLEW_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


ANSWERS = {
    "streams": ["streams", "prov"],
    "streams_json": ["streams", "prov", "--json"],
    "streams_gaps": ["streams", "gaps"],
    "about": ["about", "prov"],
    "about_json": ["about", "prov", "--json"],
    "flow": ["flow", "prov"],
    "help_about": ["about", "--help"],
    "help_flow": ["flow", "--help"],
    "help_explore": ["explore", "--help"],
    "rows_chosen": ["rows", "prov", "reports", "--filter", "car >= 8", "--sort", "car"],
    "rows": ["rows", "prov", "reports"],
    "rows_where": ["rows", "prov", "stopped", "--where", "car = 7", "--order-by", "n"],
    "rows_limit": ["rows", "prov", "reports", "--limit", "2"],
    "rows_none": ["rows", "prov", "reports", "--where", "car = 1"],
    "rows_json": ["rows", "prov", "reports", "--where", "car = 9", "--json"],
    "rows_json_limit": ["rows", "prov", "reports", "--limit", "1", "--json"],
    "rows_long": ["rows", "gaps", "r"],
    "rows_all": ["rows", "gaps", "r", "--limit", "0", "--where", "n > 6"],
    "backward": ["backward", "prov", "accidents", "pos=5"],
    "backward_words": ["backward", "prov", "stopped", "car=7", "n=2"],
    "backward_scope": ["backward", "prov", "accidents", "pos=5", "--scope", "stopped"],
    "backward_scopes": ["backward", "prov", "stopped", "car=8", "--scope", "slow", "reports"],
    "backward_json": ["backward", "prov", "stopped", "0" * 14 + "50" + "0" * 15 + "1", "--json"],
    "backward_long": ["backward", "gaps", "s", "n=30"],
    "forward": ["forward", "prov", "reports", "part-0.parquet:3"],
    "forward_limit": ["forward", "prov", "reports", "part-0.parquet:3", "--limit", "1"],
    "forward_none": ["forward", "prov", "reports", "part-0.parquet:99"],
    "forward_gap": ["forward", "gaps", "r", "n=3"],
    "version": ["--version"],
    "help": ["--help"],
    "help_streams": ["streams", "--help"],
    "help_rows": ["rows", "--help"],
    "help_backward": ["backward", "--help"],
    "help_forward": ["forward", "--help"],
    "export": ["export", "prov", "stopped", "car=8"],
    "export_n": ["export", "prov", "accidents", "pos=5", "--format", "prov-n"],
    "export_csv": ["export", "prov", "reports", "part-0.parquet:3", "--forward", "--format", "csv"],
    "export_svg": ["export", "prov", "stopped", "car=8", "--format", "svg"],
    "help_export": ["export", "--help"],
    "compare": ["compare", "prov", "stopped", "n=2,car=7", "car=7,n=1"],
    "help_compare": ["compare", "--help"],
    "draw": ["draw", "prov", "accidents", "pos=5", "--intermediate"],
    "draw_json": ["draw", "prov", "stopped", "car=8", "--depth", "1", "--json"],
    "draw_long": ["draw", "gaps", "s", "n=30"],
    "draw_forward": ["draw", "prov", "reports", "part-0.parquet:3", "--forward", "--limit", "4"],
    "help_draw": ["draw", "--help"],
    "timeline": ["timeline", "prov", "accidents", "pos=5"],
    "timeline_json": ["timeline", "prov", "stopped", "car=9", "--json"],
    "timeline_bins": ["timeline", "prov", "accidents", "pos=5", "--limit", "2"],
    "help_timeline": ["timeline", "--help"],
    "help_influence": ["influence", "--help"],
    "help_minimize": ["minimize", "--help"],
    "help_assertions": ["assertions", "--help"],
    "help_estimate": ["estimate", "--help"],
    "help_unfold": ["unfold", "--help"],
    "help_replay": ["replay", "--help"],
    "help_subscribe": ["subscribe", "--help"],
    "help_live": ["live", "--help"],
    "help_verify_live": ["verify-live", "--help"],
    "help_status": ["status", "--help"],
    "help_erase": ["erase", "--help"],
    "help_reduce": ["reduce", "--help"],
    "help_size": ["size", "--help"],
    "help_prune": ["prune", "--help"],
    "help_doctor": ["doctor", "--help"],
    "help_openlineage": ["openlineage", "--help"],
    "help_completion": ["completion", "--help"],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_go_to_standard_output(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")

    try:
        code = main(ANSWERS[name])
    except SystemExit as done:  # argparse leaves this way after --help
        code = int(done.code or 0)

    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    check(name, out, place)


FAILURES = {
    "no_command": (2, []),
    "unknown_command": (2, ["sideways"]),
    "unknown_option": (2, ["rows", "prov", "reports", "--limits", "3"]),
    "bad_limit": (2, ["rows", "prov", "reports", "--limit", "-3"]),
    "missing_row": (2, ["backward", "prov", "stopped"]),
    "not_a_store": (1, ["streams", "."]),
    "unknown_stream": (1, ["rows", "prov", "cars"]),
    "bad_where": (1, ["rows", "prov", "reports", "--where", "sped = \x1b[31m1"]),
    "row_not_found": (1, ["backward", "prov", "stopped", "car=1"]),
    "ambiguous_row": (1, ["backward", "prov", "stopped", "n=2"]),
    "no_condition": (2, ["backward", "prov", "stopped", "car=7", "twice"]),
    "no_field": (1, ["backward", "prov", "stopped", "car=7", "window.start=08:03"]),
    "unclear_row": (1, ["backward", "prov", "stopped", "what?"]),
    "scope_off_the_way": (1, ["backward", "prov", "stopped", "car=8", "--scope", "accidents"]),
    "reduce_nothing": (1, ["reduce", "--store", "new", "--job", "j"]),
    "reduce_missing": (1, ["reduce", "nowhere", "--store", "new", "--job", "j"]),
    "json_error": (1, ["forward", "prov", "reports", "car=1", "--json"]),
}


@pytest.mark.parametrize("name", FAILURES)
def test_errors_go_to_standard_error_without_a_traceback(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    expected, arguments = FAILURES[name]

    try:
        code = main(arguments)
    except SystemExit as done:  # argparse leaves this way for wrong usage
        code = int(done.code or 0)

    out, err = capsys.readouterr()
    assert (code, out) == (expected, "")
    assert "error: " in err
    check(f"error_{name}", err, place)


def run(arguments: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clew", *arguments],
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_as_a_module(place: Path) -> None:
    done = run(["rows", str(place / "prov"), "reports"])

    assert (done.returncode, done.stderr) == (0, "")
    check("rows", done.stdout, place)


def test_a_terminal_that_knows_only_ascii_gets_escapes(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(1, 1, t="naïve")]})

    done = run(["rows", str(tmp_path), "s"], PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].endswith("na\\xefve")


@pytest.mark.parametrize("option", ["--limit=0", "--json"])
def test_a_reader_that_went_away_is_not_an_error(tmp_path: Path, option: str) -> None:
    builder = StoreBuilder(tmp_path)
    builder.batch("s", 0, rows={"s": [row(i, 0, t="x" * 100) for i in range(2000)]})
    read, write = os.pipe()
    os.close(read)  # what is left of `clew rows ... | head` once head has seen enough

    with os.fdopen(write, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "clew", "rows", str(tmp_path), "s", option],
            env={**os.environ, "PYTHONPATH": SOURCE},
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("1", False)])
def test_a_terminal_gets_colour_unless_the_user_objects(
    place: Path, no_color: str | None, *, coloured: bool
) -> None:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    if no_color is not None:
        environment["NO_COLOR"] = no_color
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-m", "clew", "backward", str(place / "prov"), "stopped", "car=8"],
        env=environment,
        stdout=theirs,
        check=True,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        shown = terminal.read1(65536).decode()

    assert "part-0.parquet:1  2026-01-01T08:00:05Z    8      0    5" in shown
    assert ("\x1b[36m" in shown or "\x1b[1;36m" in shown) is coloured


def test_the_demo_gets_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["demo", "--help"])

    assert done.value.code == 0
    assert "usage: clew demo" in capsys.readouterr().out


def test_the_reference_has_the_help_of_every_command() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()

    for name in [name for name in ANSWERS if name.startswith("help")]:
        assert (GOLDEN / f"{name}.txt").read_text().strip() in reference, name
