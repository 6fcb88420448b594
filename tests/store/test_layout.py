"""Names and paths of a store, and what is refused as one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.exceptions import NotAStoreError, StoreError, StoreVersionError
from clew.store import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@given(st.text(min_size=1).filter(lambda name: not any(0xD800 <= ord(c) < 0xE000 for c in name)))
def test_any_name_becomes_one_safe_path_part_and_back(name: str) -> None:
    quoted = layout.quote_name(name)

    assert layout.unquote_name(quoted) == name
    assert set(quoted) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.%")
    assert not quoted.startswith(".")


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a name"):
        layout.quote_name("")


def test_paths_of_a_batch_are_those_of_the_reference() -> None:
    root = Path("/prov")

    assert str(layout.stream_file(root, "a/b")) == "/prov/streams/a%2Fb.json"
    assert (
        str(layout.batch_file(root, "stopped", "3f2a90bc", 7))
        == "/prov/batches/stopped/3f2a90bc-0000000007.json"
    )
    assert (
        str(layout.edges_folder(root, "stopped", layout.batch_folder("3f2a90bc", 7)))
        == "/prov/edges/stopped/3f2a90bc-0000000007"
    )
    assert (
        str(layout.rows_folder(root, "stopped", layout.batch_folder("3f2a90bc", 7), "reports"))
        == "/prov/rows/stopped/3f2a90bc-0000000007/reports"
    )


@pytest.mark.parametrize("number", [0, 7, 10**10])
def test_a_batch_folder_is_read_back(number: int) -> None:
    assert layout.parse_batch_folder(layout.batch_folder("3f2a90bc", number)) == (
        "3f2a90bc",
        number,
    )


@pytest.mark.parametrize("name", ["3f2a90bc", "3f2a90bc-7", "x-0000000007", "", "_temporary"])
def test_other_names_are_no_batch(name: str) -> None:
    assert layout.parse_batch_folder(name) is None


def test_a_file_address_is_a_path() -> None:
    assert layout.store_root("file:///tmp/my%20prov") == Path("/tmp/my prov")


def test_a_remote_address_is_refused_with_what_to_do() -> None:
    with pytest.raises(StoreError, match="Mount or copy the folder"):
        layout.store_root("s3://bucket/prov")


def test_a_missing_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError, match="there is no such folder"):
        layout.check_store(tmp_path / "nowhere")


def test_a_folder_without_header_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStoreError, match=r"the folder has no `clew\.json`"):
        layout.check_store(tmp_path)


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(NotAStoreError, match="it is a file, not a folder"):
        layout.check_store(tmp_path / "file")


@pytest.mark.parametrize("header", [{}, [], {"format": "1"}, {"format": True}])
def test_a_header_without_format_number_is_no_store(tmp_path: Path, header: object) -> None:
    (tmp_path / "clew.json").write_text(json.dumps(header))

    with pytest.raises(NotAStoreError, match="has no format number"):
        layout.check_store(tmp_path)


def test_another_format_is_refused_by_number(tmp_path: Path) -> None:
    (tmp_path / "clew.json").write_text('{"format": 1}')

    with pytest.raises(
        StoreVersionError, match="has format 1; this version of clew reads"
    ) as error:
        layout.check_store(tmp_path)

    assert (error.value.found, error.value.known) == (1, 2)


def test_a_damaged_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "clew.json").write_text('{"format"')

    with pytest.raises(StoreError, match=r"clew\.json` is not valid JSON"):
        layout.check_store(tmp_path)


@pytest.fixture
def in_time() -> Iterator[None]:
    """Fail, instead of waiting for ever."""
    before = signal.signal(signal.SIGALRM, _fail)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _fail(*_: object) -> None:
    raise AssertionError


@pytest.mark.usefixtures("in_time")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "clew.json")

    with pytest.raises(StoreError, match=r"cannot read `.*clew\.json`: it is no regular file"):
        layout.check_store(tmp_path)


def test_a_store_that_may_not_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "clew.json").write_text('{"format": 2}')
    (tmp_path / "clew.json").chmod(0)
    # Root may read everything, so the question is asked as somebody else.
    script = (
        "import os, sys; from pathlib import Path; from clew.store.layout import check_store\n"
        "from clew.exceptions import StoreError\n"
        "os.chdir('/')\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "try: check_store(Path(sys.argv[1]))\n"
        "except StoreError as error: print(error)\n"
    )
    source = str(Path(layout.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith(f"cannot read `{tmp_path / 'clew.json'}`: Permission denied.")
    assert "chmod -R a+rX" in done.stdout
