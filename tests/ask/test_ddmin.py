"""The search for a smallest set, against all sets there are."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import TYPE_CHECKING

import pytest

from clew.ask.ddmin import HopelessError, Search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Kept = frozenset[int]
SEED = 7


@dataclass
class Judged:
    """A judge that asks a Python function, and counts how often it is called."""

    does: Callable[[Kept], bool]
    at_once: int = 1
    calls: int = 0
    asked: list[Kept] = field(default_factory=list)

    def together(self, size: int) -> int:
        return self.at_once

    def passing(self, sets: Sequence[Kept]) -> set[Kept]:
        assert len(sets) <= self.at_once
        self.calls += 1
        self.asked += sets
        return {each for each in sets if self.does(each)}


def subsets(members: Iterable[int]) -> list[Kept]:
    listed = sorted(members)
    found = (combinations(listed, n) for n in range(len(listed) + 1))
    return [Kept(each) for each in chain.from_iterable(found)]


def searched(does: Callable[[Kept], bool], count: int, at_once: int) -> tuple[Search, Judged]:
    judge = Judged(does, at_once)
    search = Search(judge, Kept(range(count)))
    search.run()
    return search, judge


def conditions(chosen: random.Random, count: int) -> list[Callable[[Kept], bool]]:
    """Conditions of several kinds that all members together meet."""
    weights = [chosen.randint(0, 9) for _ in range(count)]
    limit = chosen.randint(0, sum(weights))
    needed = Kept(chosen.sample(range(count), chosen.randint(0, count)))
    groups = [Kept(chosen.sample(range(count), chosen.randint(1, count))) for _ in range(3)]
    salt = chosen.randint(0, 1 << 30)
    whole = Kept(range(count))
    return [
        lambda kept: sum(weights[i] for i in kept) >= limit,
        lambda kept: needed <= kept,
        lambda kept: any(each <= kept for each in groups),
        # Not monotone: whether a set does says nothing of smaller or larger ones.
        lambda kept: kept == whole or random.Random(f"{salt}{sorted(kept)}").random() < 0.1,
    ]


@pytest.mark.parametrize("at_once", [1, 3, 40, 100_000])
def test_what_is_found_does_and_cannot_lose_a_member(at_once: int) -> None:
    print(f"seed {SEED}")
    chosen = random.Random(SEED)
    for _ in range(60):
        count = chosen.randint(1, 9)
        for does in conditions(chosen, count):
            search, judge = searched(does, count, at_once)

            assert search.complete
            assert does(search.best)
            assert not any(does(search.best - {each}) for each in search.best)
            if search.smallest:
                assert len(search.best) == min(
                    len(each) for each in subsets(range(count)) if does(each)
                )
            assert len(judge.asked) == len(set(judge.asked)), "nothing is tested twice"
            assert search.tests == len(judge.asked)


def test_a_small_set_is_searched_at_once() -> None:
    search, judge = searched(lambda kept: sum(kept) >= 12, 8, 100_000)

    assert (judge.calls, search.smallest) == (1, True)
    assert search.best == Kept([5, 7]), "the first of the smallest: 5 and 7 make 12"


def test_many_members_that_are_not_needed_go_in_a_few_rounds() -> None:
    needed = Kept([3, 500, 998])
    search, judge = searched(lambda kept: needed <= kept, 1000, 2000)

    assert (search.best, search.complete) == (needed, True)
    assert judge.calls <= 4


def test_one_by_one_it_takes_no_more_tests_than_delta_debugging_does() -> None:
    needed = Kept([3, 77])
    search, _ = searched(lambda kept: needed <= kept, 128, 1)

    assert search.best == needed
    # Two of 128, found by halving: about 4 log2(128) tests for each of them.
    assert search.tests < 80


def test_progress_counts_tests_and_what_is_left() -> None:
    told: list[tuple[int, int, int]] = []
    judge = Judged(lambda kept: {1, 6} <= kept)
    search = Search(judge, Kept(range(8)), progress=lambda *each: told.append(each))
    search.run()

    done, tests, sizes = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert all(a <= b for a, b in zip(done, tests, strict=True))
    assert list(sizes) == sorted(sizes, reverse=True)
    assert told[-1] == (search.tests, search.tests, 2)


def test_a_stopped_search_has_the_best_so_far() -> None:
    judge = Judged(lambda kept: {1, 6, 40} <= kept)
    search = Search(judge, Kept(range(64)), stop=lambda: judge.calls >= 12)
    search.run()

    assert not search.complete
    assert search.tests == 12
    assert {1, 6, 40} <= search.best
    assert len(search.best) < 64


def test_nothing_at_all_may_be_enough() -> None:
    for at_once in (1, 1000):
        search, _ = searched(lambda _: True, 5, at_once)
        assert (search.best, search.complete, search.smallest) == (Kept(), True, True)


def test_a_condition_that_nothing_meets_is_hopeless() -> None:
    for at_once in (1, 1000):
        with pytest.raises(HopelessError):
            searched(lambda _: False, 5, at_once)
