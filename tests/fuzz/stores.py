"""Stores whose JSON somebody changed: every question is answered, or refused with a reason.

A real store is made by Spark beforehand; then its files are changed, a few at a time: other values
in every field, keys that go or come, paths that lead out, deep nesting, halves of characters, bytes
that are no JSON. It is opened by somebody else, who asks all kinds of questions without trusting
it. What comes of it is an answer or an error of clew: no process is started, no file outside the
store is opened or changed, and it takes neither all memory nor for ever. Beside the store lies a
folder with files that it could read, and the system tells of whoever opens one: DuckDB and Arrow
open files behind Python's back.
"""

from __future__ import annotations

import copy
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.parquet as pq

import clew
from clew.again.trust import KEY_FILE
from clew.doctor.stores import look
from clew.exceptions import ClewError
from clew.limits import Limits
from fuzz.fenced import fenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS = 60.0
_LIMITS = Limits(seconds=30, memory="256 MB", edges=100_000, depth=50)
_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63), 1.5, 1e308),
    *("", "a", "counts", "sums", "readings", "sets", "pointers", "intervals", "keys", "reduced"),
    *("clew", "source", "sink", "named", "content", "file", "../../..", "/etc/passwd", "..", "."),
    *("edges/../../x/y/z", "rows/a/b/c/../../../../../etc/passwd", "\x00", "\ud800", "x" * 5_000),
    *("2026-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "now", "filter", "Keep", "'; --", "%"),
    *("n in (reduce 1 using 'touch x' as y)", "[*", "\u202e", "long", "struct", "kafka", "delta"),
    *([], {}, [[]], [{}], [None], {"": None}, {"a": {"b": []}}, [0, -1], ["a", "a"], [1 << 70]),
]
_OUTSIDE = "outside"
_ANY_ACCESS = 0x1 | 0x2 | 0x20  # IN_ACCESS, IN_MODIFY and IN_OPEN of Linux
_FOREIGN = ("open", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink")
_fence = threading.local()


class OutsideError(BaseException):
    """A store made clew touch a file that is not its own; no `except Exception` may hide it."""

    def __init__(self, event: str, path: str) -> None:
        super().__init__(event, path)


def run(seconds: float, seed: int) -> int:
    """Try changed stores for so long, and return how many.

    Raises:
        AssertionError: A question ended with something else than an answer or an error of clew.
    """
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        real = _real(folder)
        _copy_outside(real)
        texts = {path.relative_to(real): path.read_bytes() for path in _json_files(real)}
        with mock.patch.dict(os.environ, {KEY_FILE: str(folder / "another" / "key")}):
            _ask(folder / "prov", rng, every=True)  # what is not changed is answered
            return _run(seconds, seed, rng, real, texts)


def _run(
    seconds: float, seed: int, rng: random.Random, real: Path, texts: dict[Path, bytes]
) -> int:
    tried = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        changed = {path: _changed(texts, path, rng) for path in _chosen(texts, rng)}
        for path, data in changed.items():
            (real / path).write_bytes(data)
        began = time.process_time()
        try:
            with fenced(3 << 30), _kept_inside(real), _unopened(real.parent / _OUTSIDE):
                asked = _ask(real, rng)
            assert time.process_time() - began < _SECONDS, f"{asked} take too long"
        except BaseException as error:
            said = "\n".join(f"{path}: {data[:6_000]!r}" for path, data in changed.items())
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{where.filename}:{where.lineno}"
            msg = f"seed {seed}, input {tried}: {type(error).__name__} at {place}: {error}\n{said}"
            raise AssertionError(msg) from error
        _restore(real, texts)
        tried += 1
    return tried


def _real(folder: Path) -> Path:
    """Make the store in a process of its own, as there Spark starts more."""
    env = {**os.environ, KEY_FILE: str(folder / "key"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "fuzz.real", str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder / "prov"


def _json_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.json") if path.is_file())


def _restore(root: Path, texts: dict[Path, bytes]) -> None:
    for path in _json_files(root):
        if path.relative_to(root) not in texts:
            path.unlink()
    for each, data in texts.items():
        place = root / each
        if not place.is_file() or place.read_bytes() != data:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)


def _ask(root: Path, rng: random.Random, *, every: bool = False) -> list[str]:
    """Ask a few questions, or all; what a store does not answer has a reason."""
    names = list(_QUESTIONS) if every else rng.sample(sorted(_QUESTIONS), 6)
    try:
        prov = clew.open(root, limits=_LIMITS)
    except ClewError:
        assert not every
        return names
    refused = []
    with prov:
        for name in names:
            try:
                _QUESTIONS[name](prov, rng)
            except ClewError as error:
                str(error).encode("utf-8", "backslashreplace")
                refused.append((name, str(error)))
    with suppress(ClewError):
        look(root)
    assert not every or {name for name, _ in refused} <= _REFUSED, refused
    return names


_STREAMS = ("counts", "sums", "spans", "old", "readings", "used", "copies")
_SINKS = _STREAMS[:4]


def _row(prov: clew.Provenance, stream: str) -> Any:
    rows = list(prov.rows(stream, limit=3))
    return rows[0].id if rows else "0" * 32


def _backward(prov: clew.Provenance, rng: random.Random) -> clew.Trace:
    stream = rng.choice(_SINKS)
    return prov.backward(stream, _row(prov, stream), intermediate=rng.random() < 0.5)


def _forward(prov: clew.Provenance, rng: random.Random) -> clew.Trace:
    stream = rng.choice(["readings", "used", "copies"])
    return prov.forward(stream, _row(prov, stream))


def _export(prov: clew.Provenance, rng: random.Random) -> object:
    form = rng.choice(["prov-json", "prov-n", "csv", "graphml", "svg"])
    return b"".join(clew.export.encode(_backward(prov, rng), form))


def _status(prov: clew.Provenance, rng: random.Random) -> object:
    stream = rng.choice(["readings", "copies", "counts"])
    return prov.expiry(stream, _row(prov, stream)).to_dict()


_QUESTIONS: dict[str, Callable[[clew.Provenance, random.Random], object]] = {
    "streams": lambda prov, _: [each.to_dict() for each in prov.streams()],
    "about": lambda prov, _: prov.about().to_dict(),
    "flow": lambda prov, _: prov.flow().to_dict(),
    "size": lambda prov, _: prov.size().to_dict(),
    "rows": lambda prov, rng: str(prov.rows(rng.choice(_STREAMS))),
    "backward": lambda prov, rng: _backward(prov, rng).to_dict(),
    "forward": lambda prov, rng: _forward(prov, rng).to_dict(),
    "draw": lambda prov, rng: _backward(prov, rng).drawing().to_dict(),
    "timeline": lambda prov, rng: _backward(prov, rng).timeline().to_dict(),
    "influence": lambda prov, rng: _backward(prov, rng).influence(replay=False).to_dict(),
    "status": _status,
    "alive": lambda prov, rng: str(prov.alive(rng.choice(["readings", "copies"]))),
    "recordings": lambda prov, _: prov.recordings(),
    "assertions": lambda prov, rng: str(prov.assertions(rng.choice(_STREAMS))),
    "openlineage": lambda prov, _: json.dumps(prov.openlineage()),
    "export": _export,
    "prune": lambda prov, _: prov.prune("1 day", dry_run=True),
    "replay": lambda prov, rng: prov.replay(rng.choice(_SINKS)),
    "unfold": lambda prov, rng: prov.unfold(rng.choice(_SINKS)),
}
_REFUSED = {"replay", "unfold", "assertions", "backward", "influence", "draw", "timeline", "export"}
"""What an untrusted store may refuse even if nobody changed it: what would have to be computed."""


def _copy_outside(root: Path) -> None:
    """Lay files beside the store that its own names could be changed to lead to."""
    outside = root.parent / _OUTSIDE
    outside.mkdir()
    for path in root.rglob("*.parquet"):
        shutil.copy(path, outside / path.name)


@contextmanager
def _unopened(folder: Path) -> Iterator[None]:
    """Let no file of a folder be opened, by whatever library."""
    system = ctypes.CDLL(None, use_errno=True)
    watch: int = system.inotify_init1(os.O_NONBLOCK)
    assert system.inotify_add_watch(watch, os.fsencode(folder), _ANY_ACCESS) >= 0
    try:
        yield
        with suppress(BlockingIOError):
            event = os.read(watch, 4_096)
            raise OutsideError("inotify", event[16:].split(b"\0")[0].decode())
    finally:
        os.close(watch)


@contextmanager
def _kept_inside(root: Path) -> Iterator[None]:
    """Let this thread touch no file but the store's and those that Python and clew are made of."""
    temporary = tempfile.gettempdir()
    own = [str(root), str(Path(clew.__file__).parent), str(Path(__file__).parent)]
    read = [sys.prefix, sys.base_prefix, "/proc/", "/sys/fs/cgroup/", "/usr/", "/lib", "/dev/"]
    read += [os.environ[KEY_FILE].rpartition("/")[0], *(each for each in sys.path if each)]
    read = [os.path.realpath(each) for each in [*read, "/etc/localtime", "/etc/mime.types"]]
    _fence.inside, _fence.readable = own, [*own, *read]
    _fence.temporary = f"{temporary}/clew-"
    if not getattr(_kept_inside, "is_watched", False):
        sys.addaudithook(_watch)
        _kept_inside.is_watched = True  # type: ignore[attr-defined]
    with mock.patch.multiple(
        pq,
        read_schema=_watched(pq.read_schema),
        read_table=_watched(pq.read_table),
        read_metadata=_watched(pq.read_metadata),
        ParquetFile=_watched(pq.ParquetFile),
    ):
        try:
            yield
        finally:
            _fence.readable = None


def _watched(read: Callable[..., Any]) -> Callable[..., Any]:
    def checked(source: Any, *args: Any, **named: Any) -> Any:
        if isinstance(source, str | Path):
            _look("open", str(source), is_write=False)
        return read(source, *args, **named)

    return checked


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if event not in _FOREIGN or getattr(_fence, "readable", None) is None:
        return
    mode = args[1] if event == "open" else "w"
    flags = args[2] if event == "open" else 0
    is_write = (isinstance(mode, str) and mode.strip("rbtU") != "") or bool(
        isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
    )
    for path in args[:2] if event in {"os.rename", "os.link", "os.symlink"} else args[:1]:
        if isinstance(path, str | bytes | os.PathLike):
            _look(event, os.fsdecode(path), is_write=is_write)


def _is_of_checkpoint(path: Path) -> bool:
    """Tell whether a file is one of those that are read of a checkpoint, which a store names."""
    return path.name == "clew.json" or path.parent.name in {"offsets", "commits"}


def _look(event: str, path: str, *, is_write: bool) -> None:
    real = os.path.realpath(path)
    allowed = _fence.inside if is_write else _fence.readable
    if not is_write and _is_of_checkpoint(Path(real)):
        return
    key = os.environ[KEY_FILE].rpartition("/")[0]
    if not real.startswith((*allowed, _fence.temporary, key)) and real != "/dev/null":
        _fence.readable = None  # what follows is about the error
        raise OutsideError(event, real)


def _chosen(texts: dict[Path, bytes], rng: random.Random) -> list[Path]:
    """Choose files, each kind as often as any other."""
    kinds: dict[str, list[Path]] = {}
    for path in texts:
        kinds.setdefault(path.parts[0], []).append(path)
    count = rng.choice([1, 1, 1, 2, 4])
    return [rng.choice(kinds[rng.choice(sorted(kinds))]) for _ in range(count)]


def _changed(texts: dict[Path, bytes], path: Path, rng: random.Random) -> bytes:
    data = texts[path]
    if rng.random() < 0.05:
        return _bytes(data, rng)
    value = json.loads(data)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        value = _change(value, texts, rng)
    text = json.dumps(value)
    if rng.random() < 0.02:
        text = text.replace("1", rng.choice(["1e999", "NaN", "1" * 5_000, "0x1"]), 1)
    return text.encode("utf-8", "surrogatepass")


def _bytes(data: bytes, rng: random.Random) -> bytes:
    way = rng.randrange(5)
    if way == 0:
        return data[: rng.randrange(len(data))]
    if way == 1:
        place = rng.randrange(len(data))
        return data[:place] + rng.randbytes(rng.randint(1, 8)) + data[place + 1 :]
    if way == 2:
        deep = rng.choice([100, 250, 100_000])
        return b"[" * deep + b"]" * deep
    return rng.choice([b"", b"null", b"[]", b"{}", b"7", b'"x"', b"\xff\xfe{}", data + data])


def _change(value: Any, texts: dict[Path, bytes], rng: random.Random) -> Any:
    """Change one place in a value, whichever."""
    places: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, dict | list):
            items = each.items() if isinstance(each, dict) else enumerate(each)
            for key, inner in list(items):
                places.append((each, key))
                stack.append(inner)
    if not places or rng.random() < 0.01:
        return copy.deepcopy(rng.choice(_VALUES))
    files = [(each, at) for each, at in places if _is_file(each[at])]
    if files and rng.random() < 0.2:
        holder, key = rng.choice(files)
        holder[key] = _led_out(holder[key], rng)
        return value
    holder, key = rng.choice(places)
    way = rng.randrange(10)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[rng.choice(["a", "", "x" * 300, "pruned", "part", "files"])] = holder.pop(key)
    elif way == 2 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(rng.choice(holder)))
    elif way == 3:
        holder[key] = [copy.deepcopy(holder[key])] * rng.choice([1, 2, 50])
    elif way == 4:
        other, at = rng.choice(places)
        holder[key] = copy.deepcopy(other[at])
    elif way == 5:
        whole = json.loads(texts[rng.choice(sorted(texts))])
        holder[key] = whole.get(key, whole) if isinstance(whole, dict) else whole
    elif way == 6 and isinstance(holder[key], int):
        holder[key] += rng.choice([-1, 1, 1_000, 1 << 40])
    elif way == 7 and isinstance(holder[key], str):
        holder[key] = _text(holder[key], rng)
    else:
        holder[key] = copy.deepcopy(rng.choice(_VALUES))
    return value


def _is_file(value: object) -> bool:
    return isinstance(value, str) and value.endswith(".parquet")


def _led_out(file: str, rng: random.Random) -> str:
    """Let the name of a file lead out of the store, to a file that can be read."""
    *folders, name = file.split("/")
    kept = folders[: rng.randint(0, len(folders))]
    return "/".join([*kept, *[".."] * (len(kept) + 1), _OUTSIDE, name])


def _text(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    piece = rng.choice(["/", "..", "../", "'", "`", "\x00", " ", "9", "-", "é", "\ud800", "%2F"])
    return text[:place] + piece + text[place + rng.randrange(2) :]
