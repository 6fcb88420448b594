"""A stream of events out of order, with some twice and some lost, as much as asked for.

An event is out of order if an event that stood behind it comes before it. To put one out of order
it is held back: it comes after the event that stood `d` places behind it, with `d` from 1 to the
distance. Events that are not held back keep their order, so those held back are just the ones that
are out of order, and no event comes before one that stood more than the distance ahead of it.

Shares are kept exactly, not by chance: of each 1,000 events so many are chosen, and what rounding
leaves over is carried to the next thousand. `python -m domains.disorder` does the same to
lines of a file.
"""

from __future__ import annotations

import argparse
import heapq
import random
import sys
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

BLOCK = 1000
"""So many events are looked at together."""


def disorder(
    events: Iterable[str],
    share: float,
    distance: int,
    duplicates: float = 0,
    losses: float = 0,
    seed: int = 0,
) -> Iterator[str]:
    """Yield events of an ordered stream, out of order.

    Args:
        events: The events in order.
        share: The share of the events that are out of order, below 1.
        distance: How many places an event is held back at most.
        duplicates: The share of the events that come twice; the second comes up to `distance`
            places behind the place of the first.
        losses: The share of the events that do not come at all. The other shares are of the rest.
        seed: The same seed gives the same stream.

    Raises:
        ValueError: A share is not from 0 up to 1, or the distance is less than 1.

    Examples:
        >>> "".join(disorder("abcdefgh", share=0.25, distance=2, seed=1))
        'acbdfgeh'
    """
    _check(share, distance, duplicates, losses)
    return _disorder(iter(events), share, distance, duplicates, losses, seed)


def _disorder(
    events: Iterator[str], share: float, distance: int, duplicates: float, losses: float, seed: int
) -> Iterator[str]:
    chance = random.Random(seed)
    lost, late, twice = (_Shares(each, chance) for each in (losses, share, duplicates))
    waiting: list[tuple[int, int, int, str]] = []
    place = copies = 0
    for block in _blocks(events, lost):
        held = late.choose(len(block), last=False)
        again = twice.choose(len(block))
        for at, event in enumerate(block):
            if at in held:
                # It must come behind one that is not held back, or it would be in order still.
                nearest = next(n for n in range(at + 1, len(block)) if n not in held) - at
                back = chance.randint(min(nearest, distance), distance)
                heapq.heappush(waiting, (place + back, place, 0, event))
            else:
                yield event
            if at in again:
                copies += 1
                heapq.heappush(waiting, (place + chance.randint(1, distance), place, copies, event))
            while waiting and waiting[0][0] <= place:
                yield heapq.heappop(waiting)[3]
            place += 1
    while waiting:
        yield heapq.heappop(waiting)[3]


def _blocks(events: Iterator[str], lost: _Shares) -> Iterator[list[str]]:
    """Yield the events that are not lost, a thousand at a time."""
    kept: list[str] = []
    while block := list(islice(events, BLOCK)):
        gone = lost.choose(len(block))
        kept += [event for at, event in enumerate(block) if at not in gone]
        if len(kept) > BLOCK:
            yield kept[:BLOCK]
            kept = kept[BLOCK:]
    if kept:
        yield kept


class _Shares:
    """Chooses a share of places, and carries to the next time what rounding leaves over."""

    def __init__(self, share: float, chance: random.Random) -> None:
        self._share = share
        self._chance = chance
        self._seen = self._chosen = 0

    def choose(self, count: int, *, last: bool = True) -> set[int]:
        """Choose among the next places.

        Args:
            count: How many there are.
            last: The last one may be among them.
        """
        self._seen += count
        room = count if last else count - 1
        number = min(room, round(self._share * self._seen) - self._chosen)
        self._chosen += number
        return set(self._chance.sample(range(room), number))


def _check(share: float, distance: int, duplicates: float, losses: float) -> None:
    for name, value in (("share", share), ("duplicates", duplicates), ("losses", losses)):
        if not 0 <= value < 1:
            msg = f"`{name}` is a share of the events, from 0 up to 1; got {value}."
            raise ValueError(msg)
    if distance < 1:
        msg = f"`distance` is at least 1 place; got {distance}."
        raise ValueError(msg)


def main(arguments: Sequence[str] | None = None) -> int:
    """Put the lines of a file out of order."""
    parser = argparse.ArgumentParser(
        prog="python -m domains.disorder",
        description="Print the lines of an ordered stream of events out of order.",
    )
    parser.add_argument("file", nargs="?", type=argparse.FileType("r"), default=sys.stdin)
    parser.add_argument("--share", type=float, default=0.1, help="the share out of order")
    parser.add_argument("--distance", type=int, default=1000, help="how far at most, in lines")
    parser.add_argument("--duplicates", type=float, default=0, help="the share that comes twice")
    parser.add_argument("--losses", type=float, default=0, help="the share that does not come")
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args(arguments)
    sys.stdout.writelines(
        disorder(said.file, said.share, said.distance, said.duplicates, said.losses, said.seed)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
