"""The provenance of a job that counts hashtags, as its functions would publish it.

Three functions as in Hadoop: `map` takes a line and makes a pair for each hashtag in it, `combine`
takes the equal pairs of a split, `reduce` takes what splits have of one hashtag. The shape follows
what the paper says of its data: ten gigabytes of tweets gave 127.73 M edges, of which 17.13 M were
left, 7.46 for each. What that ratio is depends on how many lines have no hashtag at all: with one
in seven that has some, one to three of them, it is 7.7 here, and with one in six 7.0. Popular
hashtags are far more frequent than others. A job goes on in rounds, each of which counts
its own lines, so that one as long as needed can be made.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SPLIT = 100
"""Lines in a split."""
SPLITS = 20
"""Splits in a round."""
NODES = 5
_SHARE = 1 / 7
_BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


@dataclass(frozen=True)
class Execution:
    """One execution of a function."""

    function: str
    number: str
    node: int
    used: list[str]
    generated: list[str]


def executions(rounds: int, seed: int, first: int = 0) -> Iterator[Execution]:
    """Run rounds of the job."""
    for number in range(first, first + rounds):
        yield from _round(number, random.Random(seed * 1_000_003 + number))


def _round(number: int, chosen: random.Random) -> Iterator[Execution]:
    counted: dict[str, list[str]] = {}
    for split in range(SPLITS):
        node, pairs = split % NODES, dict[str, list[str]]()
        for line in range(SPLIT):
            at = f"{number}-{split}-{line}"
            tags = _tags(chosen)
            made = [f"tags:pair/{at}-{i}" for i in range(len(tags))]
            for tag, pair in zip(tags, made, strict=True):
                pairs.setdefault(tag, []).append(pair)
            yield Execution("map", at, node, [f"tags:tweets/{at}"], made)
        for tag, used in pairs.items():
            part = f"tags:part/{number}-{split}-{tag}"
            yield Execution("combine", f"{number}-{split}-{tag}", node, used, [part])
            counted.setdefault(tag, []).append(part)
    for tag, parts in counted.items():
        node = hash_of(tag) % NODES
        yield Execution("reduce", f"{number}-{tag}", node, parts, [f"tags:count/{number}-{tag}"])


def hash_of(tag: str) -> int:
    """Say where a hashtag is counted."""
    return int(tag[1:])


def _tags(chosen: random.Random) -> list[str]:
    if chosen.random() >= _SHARE:
        return []
    return [f"t{int(chosen.paretovariate(0.6))}" for _ in range(chosen.choice([1, 1, 2, 3]))]


def statements(job: Iterator[Execution], start: int = 0) -> Iterator[str]:
    """Publish each edge as a line of its own."""
    seq = start
    for each in job:
        rest = _rest(each)
        for prov, things in (("used", each.used), ("wasGeneratedBy", each.generated)):
            for thing in things:
                said = {"prov": prov, "activity": _activity(each), "entity": thing}
                yield json.dumps({**said, **rest, "time": _time(seq), "seq": seq})
                seq += 1


def groups(job: Iterator[Execution], start: int = 0) -> Iterator[str]:
    """Publish each function execution as a line."""
    seq = start
    for each in job:
        said = {"prov": "group", "activity": _activity(each)}
        things = {"used": each.used, "generated": each.generated}
        yield json.dumps({**said, **things, **_rest(each), "time": _time(seq), "seq": seq})
        seq += len(each.used) + len(each.generated)


def documents(job: Iterator[Execution]) -> Iterator[str]:
    """Publish each function execution as a document of PROV-JSON."""
    for seq, each in enumerate(job):
        name, when = _activity(each), _time(seq)
        used = {
            f"_:u{seq}-{i}": {"prov:activity": name, "prov:entity": e, "prov:time": when}
            for i, e in enumerate(each.used)
        }
        made = {
            f"_:g{seq}-{i}": {"prov:entity": e, "prov:activity": name, "prov:time": when}
            for i, e in enumerate(each.generated)
        }
        yield json.dumps({"prefix": {"tags": "urn:tags:"}, "used": used, "wasGeneratedBy": made})


def _activity(each: Execution) -> str:
    return f"tags:{each.function}/{each.number}"


def _rest(each: Execution) -> dict[str, object]:
    where = {"job": "tags", "function": each.function, "node": f"worker-{each.node}"}
    return {**where, "partition": each.node, "group": _activity(each)}


def _time(seq: int) -> str:
    """One millisecond for each edge."""
    return (_BEGIN + dt.timedelta(milliseconds=seq)).isoformat(timespec="milliseconds")[:-6] + "Z"


def expected(job: Iterator[Execution]) -> set[tuple[str, str]]:
    """Say which tweet is in which count, by following single steps."""
    source: dict[str, set[str]] = {}
    found = set()
    for each in job:
        behind = {s for thing in each.used for s in source.get(thing, {thing})}
        for thing in each.generated:
            if each.function == "reduce":
                found |= {(thing, s) for s in behind}
            else:
                source[thing] = behind
    return found
