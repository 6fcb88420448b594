"""One trace serves all who ask for it at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from clew.explore.traces import Traces


class Answer:
    """Stands where a trace does: the cache looks at its length alone."""

    def __len__(self) -> int:
        return 1


def test_those_who_ask_meanwhile_get_the_answer_of_the_first() -> None:
    traces = Traces()
    answer: Any = Answer()
    begun, go_on = threading.Event(), threading.Event()
    asked: list[int] = []

    def ask(number: int) -> Any:
        asked.append(number)
        begun.set()
        assert go_on.wait(60)
        return answer

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(traces.get, "key", lambda: ask(1))
        assert begun.wait(60)
        others = [pool.submit(traces.get, "key", lambda: ask(2)) for _ in range(2)]
        go_on.set()

        assert [each.result(60) for each in (first, *others)] == [answer] * 3
    assert asked == [1]
    assert traces.get("key", lambda: ask(3)) is answer
    assert asked == [1]


def test_a_question_that_failed_is_asked_anew() -> None:
    traces = Traces()
    answer: Any = Answer()

    def fail() -> Any:
        raise LookupError

    with pytest.raises(LookupError):
        traces.get("key", fail)

    assert traces.get("key", lambda: answer) is answer
