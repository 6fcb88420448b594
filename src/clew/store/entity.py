"""Row ids of entities: things that jobs of any system used or generated, known by an identifier.

An entity is one row whichever job speaks of it, so its id is a hash of its identifier alone: XXH64
over the UTF-8 bytes, once with each of two seeds. Spark computes it with its own `xxhash64`
(`id_sql`), everyone else here with numpy, all identifiers of an array at once; a test holds the two
against each other. Where no job generated an entity it belongs to the stream `entities`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clew.model import RowId

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    _Words = NDArray[np.uint64]
    _Places = NDArray[np.int64]

ENTITIES = "entities"
"""The stream of what jobs used; an entity that some job generated belongs to that job."""

COLUMN = "entity"
"""The column with the identifier."""

IDENTITY = {"kind": "entity", "segment": None, "position": "hash", "unique": True}
"""How rows of the streams of a repository are told apart."""

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(each)
    for each in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
# What `xxhash64(0, ...)` and `xxhash64(1, ...)` of Spark hand on to the column that follows.
_SEEDS = (np.uint64(0x3229FBC4681E48F3), np.uint64(0xA309B38455455929))
_STRIPE = 32


def is_entity(identity: Mapping[str, Any] | None) -> bool:
    """Tell whether rows of a stream are entities, by what the stream says of its identity."""
    return (identity or {}).get("kind") == IDENTITY["kind"]


def entity_id(stream: str, identifier: str) -> RowId:
    """Return the row id of one entity.

    Examples:
        >>> entity_id("entities", "in/42").text
        '8d5b5fe4c791fa59828872f1228e019c'
    """
    a, b = entity_ids(pa.array([identifier], pa.string()))
    return RowId(stream, int(a[0]), int(b[0]))


def entity_ids(identifiers: pa.Array | pa.ChunkedArray) -> tuple[_Places, _Places]:
    """Return both halves of the ids of many entities; none of the identifiers may be null."""
    if isinstance(identifiers, pa.ChunkedArray):
        identifiers = identifiers.combine_chunks()
    text = identifiers.cast(pa.large_string())
    _, offsets, data = text.buffers()
    ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
    # Words are read at any place, so there must be a whole one behind the last byte as well.
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    padded = np.concatenate([held[: ends[-1]] if len(text) else held[:0], np.zeros(8, np.uint8)])
    a, b = (_xxh64(padded, ends[:-1], np.diff(ends), seed) for seed in _SEEDS)
    return a.view(np.int64), b.view(np.int64)


def id_sql(column: str) -> tuple[str, str]:
    """Write both halves of an entity's id as Spark's SQL over the column with its identifier."""
    return f"xxhash64(0, {column})", f"xxhash64(1, {column})"


def _xxh64(data: NDArray[np.uint8], starts: _Places, lengths: _Places, seed: np.uint64) -> _Words:
    words = np.ndarray((len(data) - 7,), "<u8", data.tobytes(), strides=(1,))
    with np.errstate(over="ignore"):
        found = np.full(len(starts), seed + _P5, np.uint64)
        long = np.flatnonzero(lengths >= _STRIPE)
        if len(long):
            found[long] = _stripes(words, starts[long], lengths[long], seed)
        found += lengths.astype(np.uint64)
        found = _tails(words, data, starts, lengths, found)
        for shift, factor in ((33, _P2), (29, _P3)):
            found ^= found >> np.uint64(shift)
            found *= factor
        mixed: _Words = found ^ (found >> np.uint64(32))
        return mixed


def _stripes(words: _Words, starts: _Places, lengths: _Places, seed: np.uint64) -> _Words:
    """Mix in all whole stretches of 32 bytes."""
    lanes = [np.full(len(starts), seed + x, np.uint64) for x in (_P1 + _P2, _P2, np.uint64(0))]
    lanes.append(np.full(len(starts), seed - _P1, np.uint64))
    number = lengths // _STRIPE
    for stripe in range(int(number.max())):
        here = np.flatnonzero(number > stripe)
        at = starts[here] + stripe * _STRIPE
        for place, lane in enumerate(lanes):
            lane[here] = _round(lane[here], words[at + 8 * place])
    found = sum(
        (_turn(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)),
        np.zeros(len(starts), np.uint64),
    )
    for lane in lanes:
        found = (found ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    return np.asarray(found)


def _tails(
    words: _Words, data: NDArray[np.uint8], starts: _Places, lengths: _Places, found: _Words
) -> _Words:
    """Mix in what is left behind the stretches: words, half a word, single bytes."""
    rest = lengths % _STRIPE
    at = starts + lengths - rest
    for _ in range(3):
        here = np.flatnonzero(rest >= 8)
        mixed = found[here] ^ _round(np.zeros(len(here), np.uint64), words[at[here]])
        found[here] = _turn(mixed, 27) * _P1 + _P4
        at[here] += 8
        rest[here] -= 8
    here = np.flatnonzero(rest >= 4)
    half = words[at[here]] & np.uint64(0xFFFFFFFF)
    found[here] = _turn(found[here] ^ (half * _P1), 23) * _P2 + _P3
    at[here] += 4
    rest[here] -= 4
    for _ in range(3):
        here = np.flatnonzero(rest >= 1)
        byte = data[at[here]].astype(np.uint64)
        found[here] = _turn(found[here] ^ (byte * _P5), 11) * _P1
        at[here] += 1
        rest[here] -= 1
    return found


def _round(lane: _Words, word: _Words) -> _Words:
    mixed: _Words = _turn(lane + word * _P2, 31) * _P1
    return mixed


def _turn(words: _Words, by: int) -> _Words:
    turned: _Words = (words << np.uint64(by)) | (words >> np.uint64(64 - by))
    return turned
