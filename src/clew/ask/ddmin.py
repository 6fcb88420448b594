"""Delta debugging: cut a set down until none of its members can be left out.

Zeller and Hildebrandt's ddmin, for tests that are cheap together and dear one by one. A round tests
all parts of the set and all that is left without one of them at once. If several parts can be left
out one at a time, the next question is how many of them can be left out together, again at once.
In the end no single member can go. Where there are few enough smaller sets, all of them are tested,
so that there is none for sure; of a small set to begin with, all there are, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import comb
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Kept = frozenset[int]
_FEW = 5_000
"""How many smaller sets are few enough to test them all."""


class Judge(Protocol):
    """What says which sets still do."""

    def together(self, size: int) -> int:
        """Say how many sets of at most a size are tested at once."""

    def passing(self, sets: Sequence[Kept]) -> set[Kept]:
        """Test sets, all at once; return those that do."""


class StoppedError(Exception):
    """Somebody does not want to wait any longer."""


class HopelessError(Exception):
    """Not even all members together do."""


@dataclass
class Search:
    """The search for a smallest set.

    Attributes:
        judge: What says which sets still do.
        progress: Called with the number of tests done, the number of tests known to be needed, and
            the size of the smallest set so far.
        stop: Asked between tests whether to end here.
        best: The smallest set so far.
        tests: How many sets were tested.
        complete: No member of `best` can be left out.
        smallest: There is no smaller set at all.
    """

    judge: Judge
    best: Kept
    progress: Callable[[int, int, int], None] | None = None
    stop: Callable[[], bool] | None = None
    tests: int = 0
    complete: bool = False
    smallest: bool = False
    _known: dict[Kept, bool] = field(default_factory=dict, repr=False)

    def run(self) -> None:
        """Search until nothing can be left out, or somebody says stop.

        Raises:
            HopelessError: Not even the set that it began with does.
        """
        everything = self.best
        try:
            if not self._tried_all(everything):
                self._cut()
                self.complete = True
                self._look_below(everything)
        except StoppedError:
            return

    def _tried_all(self, everything: Kept) -> bool:
        """Test all sets there are, if they are few and can be tested at once."""
        count = len(everything)
        if 2**count > min(_FEW, self.judge.together(count)):
            return False
        self._take_smallest(everything, range(count))
        self.complete = True
        return True

    def _cut(self) -> None:
        parts = self._first_parts()
        while self.best:
            size = len(self.best)
            parts = min(parts, size)
            pieces = _split(self.best, parts)
            rests = {p: self.best - p for p in pieces}
            if 2 * parts <= self.judge.together(size):
                self._ask([*pieces, *rests.values()])
            found = self._first([p for p in pieces if len(p) < size])
            if found is not None:
                self._take(found)
                parts = self._first_parts()
                continue
            passing = self._ask(list(rests.values()))
            loose = [p for p, rest in rests.items() if rest in passing]
            if loose:
                parts = max(2, parts - self._take_most(loose))
            elif parts < size:
                parts *= 2
            else:
                return

    def _first_parts(self) -> int:
        """Say into how many parts to cut at first: as many as can be tested at once, at least 2."""
        return max(2, min(len(self.best), self.judge.together(len(self.best)) // 2))

    def _take_most(self, loose: Sequence[Kept]) -> int:
        """Leave out as many as possible of the parts that can be left out one by one."""
        without = [self.best.difference(*loose[: n + 1]) for n in range(len(loose))]
        passing = self._ask(without[::-1]) if len(without) > 1 else {without[0]}
        count = max(n for n, rest in enumerate(without) if n == 0 or rest in passing)
        self._take(without[count])
        return count + 1

    def _look_below(self, everything: Kept) -> None:
        """Test all sets that are smaller, if they are few."""
        sizes = range(1, len(self.best))
        count = sum(comb(len(everything), size) for size in sizes)
        if count > min(_FEW, self.judge.together(len(everything))):
            return
        self._take_smallest(everything, sizes)

    def _take_smallest(self, everything: Kept, sizes: range) -> None:
        smaller = [Kept(each) for size in sizes for each in combinations(sorted(everything), size)]
        passing = self._ask(smaller)
        found = next((each for each in smaller if each in passing), None)
        if found is not None:
            self._take(found)
        self.smallest = True

    def _take(self, found: Kept) -> None:
        self.best = found
        self._report(0)

    def _first(self, sets: Sequence[Kept]) -> Kept | None:
        """Find the first set that does, testing no more than needed."""
        for part in self._rounds(sets):
            passing = self._ask(part)
            found = next((each for each in part if each in passing), None)
            if found is not None:
                return found
        return None

    def _ask(self, sets: Sequence[Kept]) -> set[Kept]:
        """Test sets that are not known yet; return those that do."""
        new = [each for each in dict.fromkeys(sets) if each not in self._known]
        if not self._known:
            new = [self.best, *[each for each in new if each != self.best]]
        done = 0
        for part in self._rounds(new):
            self._report(len(new) - done)
            if self.stop is not None and self.stop():
                raise StoppedError
            passing = self.judge.passing(part)
            self._known.update({each: each in passing for each in part})
            if not self._known[self.best]:
                raise HopelessError
            self.tests += len(part)
            done += len(part)
        self._report(0)
        return {each for each in sets if self._known[each]}

    def _rounds(self, sets: Sequence[Kept]) -> Iterator[Sequence[Kept]]:
        size = self.judge.together(len(frozenset().union(*sets)))
        for start in range(0, len(sets), size):
            yield sets[start : start + size]

    def _report(self, left: int) -> None:
        if self.progress is not None:
            self.progress(self.tests, self.tests + left, len(self.best))


def _split(members: Kept, parts: int) -> list[Kept]:
    """Cut a set into parts of almost equal size, neighbours together."""
    ordered = sorted(members)
    ends = [len(ordered) * n // parts for n in range(parts + 1)]
    return [Kept(ordered[a:b]) for a, b in pairwise(ends)]
