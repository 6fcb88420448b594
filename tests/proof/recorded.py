"""Recorded keys against the engine itself: each step's stream, run as a query of its own.

What is recorded of a stream is computed behind the query, from sources and watermarks. The same
step run as a query, by Spark and with another capture, says which rows really came out of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import clew
from clew.again.recorded_streams import recorded_streams
from clew.capture.keys import KEYS
from clew.exceptions import AssertionsRefusedError, GraphError
from clew.frame.frame import TracedFrame
from clew.plan.node import interpret
from clew.testing import keyed, make_alike
from proof.case import Outcome, Setting, check, difference, frozen
from properties.building import build
from properties.random_rows import random_data
from properties.random_specs import random_spec
from properties.row_files import read_frames, write_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.again.recorded_streams import Recorded


def outcomes(setting: Setting) -> Iterator[Outcome]:
    """Record the rows of random pipelines in one run or in two, with content or without."""
    left = 1 if setting.quick else 16
    for seed in range(setting.seed, setting.seed + 200):
        if not left:
            return
        spec = random_spec(seed, streaming=True)
        data: Any = random_data(seed, spec)
        folder = setting.folder / f"recorded-{seed}"
        name = f"recorded keys, pipeline {seed}"
        late = folder / "late"
        paths = write_data(folder / "in", spec, data)
        try:
            frames = read_frames(setting.spark, spec, paths)
            traced = {n: clew.trace(df, n, event_time="ts") for n, df in frames.items()}
            frame = build(spec, traced)
            content: Any = "all" if seed % 3 == 0 else "first"
            recorded_streams(frame.node, "out", "all", content=content)
            interpret(keyed(frame), KEYS)
        except (GraphError, AssertionsRefusedError) as refused:
            print(f"  {name} is refused: {str(refused).splitlines()[0]}")
            continue
        except Exception as refused:
            print(f"  {name} is not valid: {type(refused).__name__}")
            continue
        held = hold_back(paths.values(), late) if seed % 2 else []
        left -= 1
        yield check(name, wrong_records, frame, folder, content, held)


def hold_back(folders: Any, aside: Path) -> list[tuple[Path, Path]]:
    """Take the younger half of the files away, for a second run."""
    aside.mkdir(parents=True)
    held = []
    for place, folder in enumerate(folders):
        files = sorted(folder.glob("*.parquet"))
        for path in files[(len(files) + 1) // 2 :]:
            target = aside / f"{place}-{path.name}"
            path.rename(target)
            held.append((target, path))
    return held


def wrong_records(
    frame: TracedFrame,
    folder: Path,
    content: str,
    held: list[tuple[Path, Path]],
    *,
    all_steps: bool = True,
) -> str:
    """Run a query, in two runs if files are held back, and say what is wrong with its records.

    Each step runs as a query of its own beside it, in as many runs: where one ends, the watermark
    goes on, and rows that come later may be late that would not have been. Without `all_steps`,
    streams that have the rows of another are taken on trust.
    """
    found = recorded_streams(frame.node, "out", "all")
    streams = [each for each in found if all_steps or each.same_as is None]
    _run_all(frame, streams, folder, content)
    for path, back in held:
        path.rename(back)
    if held:
        _run_all(frame, streams, folder, content)
    prov = clew.open(folder / "prov")
    for stream in streams:
        wrong = _wrong(prov, stream, folder, content)
        if wrong:
            return f"stream {stream.name} ({stream.node.operator.kind}):\n{wrong}"
    return ""


def _run_all(frame: TracedFrame, streams: list[Recorded], folder: Path, content: str) -> None:
    said: dict[str, Any] = {"assertions": "all", "content": content}
    own = {each.number: folder / f"own-{each.number}" for each in streams}
    if not (folder / "prov").exists():
        make_alike(folder / "prov", *(place / "prov" for place in own.values()))
    running = [_start(frame, folder, "out", said)]
    try:
        for each in streams:
            if each.node.plain.df.isStreaming:
                running.append(  # noqa: PERF401 (each that began is stopped)
                    _start(_told_apart(each), own[each.number], f"own {each.number}", {})
                )
        for query in running:
            query.awaitTermination()
    finally:
        for query in running:
            query.stop()


def _told_apart(stream: Recorded) -> TracedFrame:
    """Return a step's frame; where a join left two columns of one name, with other names."""
    frame, columns = TracedFrame(stream.node), stream.node.columns
    if len({name.lower() for name in columns}) == len(columns):
        return frame
    return frame.toDF(*[f"c{number}" for number in range(len(columns))])


def _start(frame: TracedFrame, folder: Path, name: str, said: dict[str, Any]) -> Any:
    writer = frame.writeStream.provenance(str(folder / "prov"), **said).queryName(name)
    writer = writer.option("checkpointLocation", str(folder / "chk"))
    return writer.trigger(availableNow=True).start()


def _wrong(prov: Any, stream: Recorded, folder: Path, content: str) -> str:
    found = list(prov.assertions(stream.name, limit=None))
    if [each.seq for each in found] != list(range(1, len(found) + 1)):
        return "sequence numbers have holes"
    if not stream.node.plain.df.isStreaming:
        return ""  # a table beside the streams: all of it is known
    own = clew.open(folder / f"own-{stream.number}" / "prov")
    truth = own.rows(f"own {stream.number}", limit=None)
    wrong = difference([r.id.text for r in truth], [each.id.text for each in found])
    if wrong or not (content == "all" and not stream.is_first):
        return wrong
    # Rows that are equal in all columns may share an id, so contents are counted, not looked up.
    expected = [repr(frozen(dict(row))) for row in truth]
    return difference(expected, [repr(frozen(each.row)) for each in found])
