"""A JSON file of a store is whole at every moment, whoever writes it at the same time."""

from __future__ import annotations

import json
import multiprocessing
import threading
from pathlib import Path

import pytest

from clew.store.commit import put_json

_WRITES = 60
_VALUE = {"text": "x" * 5_000}


def _write_often(path: Path, errors: list[Exception]) -> None:
    try:
        for number in range(_WRITES):
            put_json(path, {**_VALUE, "number": number})
    except Exception as error:
        errors.append(error)


def _read_often(path: Path, errors: list[Exception]) -> None:
    try:
        for _ in range(_WRITES * 5):
            assert json.loads(path.read_bytes())["text"] == _VALUE["text"]
    except Exception as error:
        errors.append(error)


def _write_in_process(path: str, failed: multiprocessing.Queue[str]) -> None:
    errors: list[Exception] = []
    _write_often(Path(path), errors)
    failed.put(repr(errors))


def test_threads_that_write_one_file_do_not_disturb_each_other_or_a_reader(tmp_path: Path) -> None:
    path, errors = tmp_path / "a.json", list[Exception]()
    put_json(path, {**_VALUE, "number": -1})
    jobs = [_write_often] * 4 + [_read_often] * 2
    threads = [threading.Thread(target=job, args=(path, errors)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_processes_that_write_one_file_leave_it_whole(tmp_path: Path) -> None:
    path, errors = tmp_path / "a.json", list[Exception]()
    put_json(path, {**_VALUE, "number": -1})
    context = multiprocessing.get_context("spawn")
    failed = context.Queue()
    started = [
        context.Process(target=_write_in_process, args=(str(path), failed)) for _ in range(2)
    ]
    for each in started:
        each.start()
    _read_often(path, errors)
    found = [failed.get(timeout=60) for _ in started]
    for each in started:
        each.join()
    assert (errors, found) == ([], ["[]", "[]"])
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_value_that_json_cannot_hold_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    put_json(path, {"number": 1})
    with pytest.raises(TypeError):
        put_json(path, {"number": object()})
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]
    assert json.loads(path.read_bytes()) == {"number": 1}
