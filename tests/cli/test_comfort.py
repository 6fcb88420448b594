"""The shell completes, long answers are paged, long work shows itself, help comes at once."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import clew
from clew.cli import main
from clew.cli.completion import SCRIPTS
from clew.cli.output import progress
from store.road import build_road

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCE = str(Path(clew.__file__).parents[1])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the road store, and a `clew` that a shell can find."""
    folder = tmp_path_factory.mktemp("comfort")
    build_road(folder / "prov")
    script = folder / "bin" / "clew"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} exec {sys.executable} -m clew "$@"\n')
    script.chmod(0o755)
    return folder


def completed(place: Path, *words: str) -> list[str]:
    """Let bash complete the last of some words, with the script that `clew` prints."""
    code = (
        'eval "$(clew completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _clew; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", "clew", *words],
        cwd=place,
        env={**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_bash_completes_commands_options_and_streams(place: Path) -> None:
    assert completed(place, "re") == ["reduce", "replay"]
    assert completed(place, "backward", "prov", "") == ["accidents", "reports", "slow", "stopped"]
    assert completed(place, "backward", "prov", "st") == ["stopped"]
    assert completed(place, "prune", "prov", "--d") == ["--dry-run"]


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["__complete", str(len(words)), *words]) == 0
    return capsys.readouterr().out.split()


def test_values_of_options_are_offered(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)

    assert offered(capsys, "prune", "prov", "--by", "") == ["commit", "event"]
    assert offered(capsys, "prune", "prov", "--stream", "stopped", "a") == ["accidents"]
    assert offered(capsys, "backward", "prov", "stopped", "car=7", "--scope", "s") == [
        "slow",
        "stopped",
    ]
    assert offered(capsys, "subscribe", "--store", "prov", "--property", "x", "--st") == [
        "--store",
        "--stream",
    ]
    assert offered(capsys, "completion", "") == ["bash", "fish", "zsh"]
    assert offered(capsys, "--no-pager", "str") == ["streams"]
    assert offered(capsys, "rows", "") == []  # a path: the shell's own business
    assert offered(capsys, "rows", "nowhere", "") == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_are_printed_and_are_what_the_shell_reads(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"shell": shell, "script": script}
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def on_terminal(place: Path, arguments: Sequence[str], **environment: str) -> str:
    """Run a command whose output is a terminal of eighty columns and six lines."""
    ours, theirs = pty.openpty()
    settings = {"LINES": "6", "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    subprocess.run(
        [sys.executable, "-m", "clew", *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": SOURCE, **settings, **environment},
        stdout=theirs,
        check=True,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        return terminal.read1(65536).decode().replace("\r\n", "\n")


def test_a_long_answer_goes_through_the_pager_and_a_short_one_does_not(place: Path) -> None:
    pager = {"CLEW_PAGER": "sed s/^/paged:/", "PAGER": "false"}
    long = ["rows", "prov", "reports"]

    paged = on_terminal(place, long, **pager)
    plain = on_terminal(place, ["--no-pager", *long], **pager)
    short = on_terminal(place, [*long, "--limit", "1"], **pager)

    assert [line.removeprefix("paged:") for line in paged.splitlines()] == plain.splitlines()
    assert all(line.startswith("paged:") for line in paged.splitlines())
    assert "paged:" not in plain + short
    assert plain.splitlines()[1].startswith("part-0.parquet:0")


def test_without_the_pager_the_answer_is_printed(place: Path) -> None:
    said = on_terminal(place, ["rows", "prov", "reports"], CLEW_PAGER="no-such-program -x")

    assert said.splitlines()[1].startswith("part-0.parquet:0")


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("unfolding rows") as advance:
        advance(1, 2)
    assert capsys.readouterr().err == ""
    code = (
        "from clew.cli.output import progress\n"
        "with progress('unfolding rows') as advance: advance(1, 2); advance(2, 2)"
    )
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "80"},
        stderr=theirs,
        check=True,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as terminal:
        shown = terminal.read1(65536).decode()

    assert "unfolding rows" in shown
    assert "2/2" in shown


def test_help_needs_none_of_the_large_libraries() -> None:
    code = (
        "import sys\nfrom clew.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('duckdb', 'numpy', 'pyarrow', 'pyspark', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "[]"


def test_an_export_tells_of_its_file_as_data(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    to = tmp_path / "why.csv"
    question = ["export", "prov", "stopped", "car=8", "--json"]

    code = main([*question, "-o", str(to)])

    said = json.loads(capsys.readouterr().out)
    assert (code, said["format"], said["rows"], said["edges"]) == (0, "csv", 2, 2)
    assert said["bytes"] == to.stat().st_size
    assert main(question) == 1
    assert "Name the file: `-o FILE --json`" in capsys.readouterr().err


def test_every_command_can_print_json() -> None:
    from clew.cli.completion import _commands, _options
    from clew.cli.main import _parser
    from clew.workloads import demo

    commands = {**_commands(_parser()), "demo": demo._parser()}

    assert [name for name, each in commands.items() if "--json" not in _options(each)] == []
