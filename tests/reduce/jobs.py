"""Random jobs and what they publish, and a plain model of what a reduction must keep.

A job is a list of function executions in the order of time; each uses some things that are there
and generates new ones. The model walks the graph by hand: it shares no code with the reducers.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Edge = tuple[str, str]


@dataclass(frozen=True)
class Execution:
    activity: str
    used: tuple[str, ...]
    generated: tuple[str, ...]
    function: str
    node: str
    second: int


def shared_job(seed: int, executions: int = 12, recent: int = 10**6) -> list[Execution]:
    """Make a job in which things may be used by any number of executions, as long as recent."""
    chosen = random.Random(seed)
    things = [f"in/{i}" for i in range(chosen.randint(1, 5))]
    done = []
    for number in range(executions):
        near = things[-recent:]
        used = chosen.sample(near, min(len(near), chosen.randint(0, 3)))
        generated = [f"d/{number}.{i}" for i in range(chosen.randint(0, 3))]
        things += generated
        place = f"f{chosen.randint(0, 2)}", f"n{chosen.randint(0, 1)}"
        done.append(Execution(f"e{number}", tuple(used), tuple(generated), *place, number))
    return done


def single_use_job(seed: int, executions: int = 12) -> list[Execution]:
    """Make a job in which each intermediate thing is used by one execution, as in MapReduce."""
    chosen = random.Random(seed)
    inputs = [f"in/{i}" for i in range(4)]
    waiting: list[str] = []
    done = []
    for number in range(executions):
        taken = chosen.sample(waiting, min(len(waiting), chosen.randint(0, 3)))
        waiting = [w for w in waiting if w not in taken]
        used = [*taken, *chosen.sample(inputs, chosen.randint(0, 2))]
        generated = [f"d/{number}.{i}" for i in range(chosen.randint(0, 3))]
        waiting += generated
        place = f"f{chosen.randint(0, 2)}", f"n{chosen.randint(0, 1)}"
        done.append(Execution(f"e{number}", tuple(used), tuple(generated), *place, number))
    return done


def statements(job: Iterable[Execution], name: str = "job") -> list[str]:
    """Publish each edge as a line of its own."""
    lines = []
    for each in job:
        for prov, things in (("used", each.used), ("wasGeneratedBy", each.generated)):
            for thing in things:
                said = {"prov": prov, "activity": each.activity, "entity": thing}
                lines.append(json.dumps({**said, **_rest(each, name)}))
    return lines


def groups(job: Iterable[Execution], name: str = "job") -> list[str]:
    """Publish each function execution as one line."""
    return [
        json.dumps(
            {
                "prov": "group",
                "activity": each.activity,
                "used": each.used,
                "generated": each.generated,
                **_rest(each, name),
            }
        )
        for each in job
    ]


def documents(job: Iterable[Execution]) -> list[str]:
    """Publish each function execution as a document of PROV-JSON."""
    lines = []
    for each in job:
        a = each.activity
        used = {f"_:u{i}": {"prov:activity": a, "prov:entity": e} for i, e in enumerate(each.used)}
        made = {
            f"_:g{i}": {"prov:entity": e, "prov:activity": a} for i, e in enumerate(each.generated)
        }
        agent = {"_:a": {"prov:activity": a, "prov:agent": "me"}}
        said = {"prefix": {"ex": "http://example.org/"}, "activity": {a: {}}, "used": used}
        lines.append(json.dumps({**said, "wasGeneratedBy": made, "wasAssociatedWith": agent}))
    return lines


def _rest(each: Execution, name: str) -> dict[str, Any]:
    time = (
        f"2026-01-01T{each.second // 3600:02d}:{each.second // 60 % 60:02d}:{each.second % 60:02d}Z"
    )
    return {"job": name, "function": each.function, "node": each.node, "time": time}


def shuffled(lines: Sequence[str], seed: int, distance: int | None = None) -> list[str]:
    """Put lines out of order, none further than a distance from its place."""
    chosen = random.Random(seed)
    far = len(lines) if distance is None else distance
    keyed = sorted((i + chosen.uniform(0, far), line) for i, line in enumerate(lines))
    return [line for _, line in keyed]


def derivations(job: Iterable[Execution]) -> set[Edge]:
    """Say what was derived from what in one step."""
    return {(g, u) for each in job for g in each.generated for u in each.used}


def closure(edges: Iterable[Edge]) -> set[Edge]:
    """Follow edges from what nothing was derived from to what was derived from nothing."""
    below = defaultdict(set)
    for output, source in edges:
        below[output].add(source)
    used = {source for sources in below.values() for source in sources}
    found = set()
    for output in below:
        if output in used:
            continue
        waiting, seen = [output], {output}
        while waiting:
            for source in below.get(waiting.pop(), ()):
                if source not in seen:
                    seen.add(source)
                    waiting.append(source)
        found |= {(output, s) for s in seen if s not in below}
    return found


def expected(job: Iterable[Execution]) -> set[Edge]:
    """Say what must be left of a job."""
    return closure(derivations(job))
