"""Searches run beside the server, one at a time, and can be watched and stopped."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from clew.exceptions import ReplayError
from clew.explore.failures import RefusedError
from clew.explore.searches import Job, Jobs


class Answer:
    """What a search of four rows ends with."""

    def __init__(self, left: int, *, complete: bool) -> None:
        self.left = left
        self.complete = complete

    def to_dict(self) -> dict[str, Any]:
        return {"of": 4, "rows": [{}] * self.left, "complete": self.complete}


def _ended(job: Job) -> dict[str, Any]:
    for thread in threading.enumerate():
        if thread.daemon and getattr(thread, "_target", None) == job.run:
            thread.join()
    return job.to_dict()


def test_a_search_is_watched_until_it_is_done() -> None:
    jobs, halfway, go_on = Jobs(), threading.Event(), threading.Event()

    def search(job: Job) -> Answer:
        job.note(1, 3, 4)
        job.note(2, 3, 2)
        halfway.set()
        go_on.wait(30)
        return Answer(1, complete=True)

    job = jobs.begin(search)
    assert halfway.wait(30)
    seen = jobs.find(job.name).to_dict()
    go_on.set()

    assert (seen["state"], seen["done"], seen["tests"]) == ("running", 2, 3)
    assert (seen["of"], seen["size"], seen["answer"]) == (4, 2, None)
    done = _ended(job)
    assert (done["state"], done["of"], done["size"]) == ("done", 4, 1)


def test_a_search_that_is_stopped_answers_with_what_it_has() -> None:
    jobs, begun = Jobs(), threading.Event()

    def search(job: Job) -> Answer:
        begun.set()
        assert job._stop.wait(30)
        return Answer(3, complete=not job.is_stopped())

    job = jobs.begin(search)
    assert begun.wait(30)
    with pytest.raises(RefusedError, match="another search is running") as refused:
        jobs.begin(search)
    job.stop()

    assert refused.value.status == 409
    stopped = _ended(job)
    assert (stopped["state"], stopped["size"]) == ("stopped", 3)


def test_a_search_that_fails_says_why_and_lets_the_next_begin() -> None:
    jobs = Jobs()

    def refuse(_: Job) -> Answer:
        msg = "the pipeline is not known.\n\nHand it in."
        raise ReplayError(msg)

    def fail(_: Job) -> Answer:
        msg = "row 7 holds a secret"
        raise RuntimeError(msg)

    refused, failed = (_ended(jobs.begin(each)) for each in (refuse, fail))

    assert refused["error"] == {
        "code": "cannot_compute",
        "message": "the pipeline is not known.",
        "hint": "Hand it in.",
    }
    assert (failed["state"], failed["error"]["code"]) == ("failed", "internal")
    assert "secret" not in str(failed)


def test_an_unknown_search_is_said_to_be(client: Any) -> None:
    for method in ("GET", "DELETE"):
        answer = client.request(method, "/api/minimize", params={"job": "nothing"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_job")


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ({"stream": "accidents", "row": "pos=5", "condition": "reflect('a', 'b')"}, 400),
        (
            {
                "stream": "accidents",
                "row": "pos=5",
                "condition": "n in (reduce 1 using 'touch x' as y)",
            },
            400,
        ),
        ({"stream": "accidents", "row": "pos=6"}, 404),
        ({"stream": "nothing", "row": "pos=5"}, 404),
        ({"stream": "accidents"}, 422),
        ({"stream": "accidents", "row": "pos=5", "more": 1}, 422),
    ],
)
def test_a_search_that_cannot_begin_is_refused_at_once(
    client: Any, question: dict[str, str], status: int
) -> None:
    assert client.post("/api/minimize", json=question).status_code == status
