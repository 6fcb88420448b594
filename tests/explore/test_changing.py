"""A store that changes while it is read gives answers that are right, or says that it changed."""

from __future__ import annotations

import datetime as dt
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from clew.ask.provenance import open_store
from clew.prov import end_job, put_reduced
from explore.server import serving

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

SEED = 20260101
BATCHES = 30
OUTPUTS = 4


@dataclass
class Writing:
    """What was committed, and what was begun to be pruned."""

    root: Path
    committed: int = 0
    pruned: int = 0
    marks: list[dt.datetime] = field(default_factory=list)

    def write(self) -> None:
        """Commit batch after batch, and prune the older ones."""
        with open_store(self.root) as provenance:
            for batch in range(BATCHES):
                _put(self.root, batch)
                self.committed = batch + 1
                self.marks.append(dt.datetime.now(dt.timezone.utc))
                if batch % 10 == 9:
                    self.pruned = batch - 5
                    provenance.prune(self.marks[self.pruned - 1], streams="job")


def _inputs(batch: int, output: int) -> list[str]:
    return [f"in/{batch}/{output + i}" for i in range(3)]


def _put(root: Path, batch: int) -> None:
    pairs = [(f"out/{batch}/{o}", name) for o in range(OUTPUTS) for name in _inputs(batch, o)]
    outputs, inputs = zip(*pairs, strict=True)
    table = pa.table({"output": list(outputs), "input": list(inputs)})
    put_reduced(root, "job", "monday", batch, table)


def _entities(answer: dict[str, Any]) -> list[str]:
    return sorted(each["row"]["entity"] for each in answer["rows"])


def _ask_on(client: httpx.Client, writing: Writing, done: threading.Event, seed: int) -> int:
    """Ask for committed rows until the writer is done; return how many answers were right."""
    rng = random.Random(seed)
    right = 0
    while not done.is_set() or right == 0:
        first, last = writing.pruned, writing.committed
        batch, output = rng.randrange(first, last), rng.randrange(OUTPUTS)
        params = {"stream": "job", "row": f"out/{batch}/{output}"}
        answer = client.get("/api/backward", params=params)
        if answer.status_code == 200 and answer.json()["complete"]:
            assert _entities(answer.json()) == _inputs(batch, output), answer.text
            right += 1
        else:  # only what was pruned meanwhile may be missing, and the answer must say so
            assert batch < writing.pruned, answer.text
            assert answer.status_code in {200, 404, 409}
        listed = client.get("/api/rows", params={"stream": "job", "limit": 500})
        assert listed.status_code in {200, 409}
        if listed.status_code == 200:
            assert listed.json()["total"] % OUTPUTS == 0  # a batch is seen as a whole
    return right


def test_answers_are_right_while_batches_are_committed_and_pruned(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    _put(tmp_path, 0)
    writing, done = Writing(tmp_path, committed=1), threading.Event()
    with (
        open_store(tmp_path) as provenance,
        serving(provenance) as client,
        ThreadPoolExecutor(4) as pool,
    ):
        asking = [pool.submit(_ask_on, client, writing, done, SEED + i) for i in range(3)]
        try:
            writing.write()
        finally:
            done.set()
        answers = [each.result() for each in asking]

        assert all(answers)
        last = client.get("/api/rows", params={"stream": "job"}).json()["total"]
        assert last == OUTPUTS * (BATCHES - writing.pruned)


def test_answers_are_right_while_rows_are_erased(tmp_path: Path) -> None:
    for batch in range(3):
        _put(tmp_path, batch)
    end_job(tmp_path, "job", "monday")
    names = [name for batch in range(3) for name in _inputs(batch, 0)]
    erased: set[str] = set()
    done = threading.Event()

    def ask_on(client: httpx.Client) -> int:
        asked = 0
        while not done.is_set() or not asked:
            before = set(erased)
            params = {"stream": "job", "row": f"out/{asked % 3}/0"}
            answer = client.get("/api/backward", params=params)
            assert answer.status_code == 200, answer.text
            rows = answer.json()["rows"]
            known = {each["row"]["entity"] for each in rows if each["row"] is not None}
            assert len(rows) == 3  # ids and edges stay
            assert known <= set(_inputs(asked % 3, 0)) - before
            asked += 1
        return asked

    with (
        open_store(tmp_path) as provenance,
        serving(provenance) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        asking = [pool.submit(ask_on, client) for _ in range(2)]
        try:
            for name in names:
                provenance.erase("entities", name)
                erased.add(name)
        finally:
            done.set()
        assert all(each.result() for each in asking)


def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    _put(tmp_path, 0)
    with open_store(tmp_path) as provenance, serving(provenance) as client:
        params = {"stream": "job", "row": "out/0/0"}
        assert client.get("/api/backward", params=params).status_code == 200

        for path in tmp_path.glob("rows/**/*.parquet"):
            path.unlink()
        answer = client.get("/api/backward", params={**params, "row": "out/0/1"})

        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "stale"
        assert "Ask again" in answer.json()["error"]["hint"]


def test_a_store_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    _put(tmp_path / "prov", 0)
    with open_store(tmp_path / "prov") as provenance, serving(provenance) as client:
        (tmp_path / "prov").rename(tmp_path / "elsewhere")

        answer = client.get("/api/streams")

        assert answer.status_code == 409
        assert answer.json()["error"]["code"] == "store_gone"
