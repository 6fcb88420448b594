"""Packed edges are the same edges, in less space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
from clew.exceptions import LimitError, StoreError
from clew.limits import Limits, under
from clew.store import packed as module
from clew.store.edges import COLUMNS, EDGES
from clew.store.packed import (
    BLOCK,
    COMPRESSED,
    DELTA,
    IDS,
    INTERVAL,
    INTERVALS,
    PACKED,
    pack,
    pack_folder,
    read_edges,
    unpack,
    unpack_rows,
)
from fuzz.fenced import fenced
from store.build import RUN, StoreBuilder
from store.build import row as one_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

SEED = 20260101
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

Edge = tuple[str, int, int, str, int, int]


def table_of(edges: Iterable[Edge]) -> pa.Table:
    columns = [list(each) for each in zip(*edges, strict=True)] or [[]] * len(COLUMNS)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, EDGES, strict=True)], EDGES)


def edges_in(table: pa.Table) -> list[Edge]:
    columns = (table.column(name).to_pylist() for name in COLUMNS)
    return sorted(zip(*columns, strict=True))


def windows(*sets: Iterable[int], segment: int = 5) -> list[Edge]:
    """Return the edges of one sink row for each set of positions in a segment."""
    return [("s", i, -i, "r", segment, each) for i, found in enumerate(sets) for each in found]


def forms(packed: pa.Table) -> list[int]:
    return [int(each) for each in packed.column("form").to_pylist()]


# Forms


def test_a_set_without_gaps_needs_no_payload() -> None:
    packed = pack(table_of(windows(range(3, 9), [20])))

    assert packed.select(["lo", "hi", "count", "form", "payload"]).to_pylist() == [
        {"lo": 3, "hi": None, "count": 6, "form": INTERVAL, "payload": None},
        {"lo": 20, "hi": None, "count": 1, "form": INTERVAL, "payload": None},
    ]


def test_contiguous_parts_are_kept_as_intervals() -> None:
    [row] = pack(table_of(windows([1, 2, 3, 4, 6, 7, 8]))).to_pylist()  # [1, 4], [6, 8]

    assert (row["form"], row["lo"], row["hi"], row["count"]) == (INTERVALS, 1, 8, 7)
    assert row["payload"] == bytes([4, 1])


def test_a_window_that_slid_skips_the_first_and_appends_the_last() -> None:
    packed = pack(table_of(windows([1, 3, 5, 8, 9], [3, 5, 8, 9, 14])))

    assert forms(packed) == [IDS, DELTA]
    assert packed.column("payload").to_pylist() == [bytes([2, 2, 3, 1]), bytes([5])]


def test_a_window_with_the_same_gaps_appends_nothing() -> None:
    packed = pack(table_of(windows([1, 3, 5, 7, 9], [3, 5, 7, 9, 11], [107, 109, 111])))

    assert forms(packed) == [IDS, DELTA, DELTA]
    assert packed.column("payload").to_pylist() == [bytes([2, 2, 2, 2]), None, None]


def test_at_most_fifteen_deltas_follow_one_another() -> None:
    packed = pack(table_of(windows(*([i, i + 2, i + 5] for i in range(40)))))

    assert forms(packed) == [DELTA if i % BLOCK else IDS for i in range(40)]


def test_a_long_payload_is_compressed_only_if_that_makes_it_shorter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "COMPRESS_FROM", 8)
    regular = [i for i in range(9_000) if i % 7 != 3]
    short = [9_000 + i * i for i in range(10)]
    packed = pack(table_of(windows(regular, short)))

    assert forms(packed) == [INTERVALS + COMPRESSED, IDS]
    first, second = packed.column("payload").to_pylist()
    assert (len(first) < 100, len(second)) == (True, 9)
    assert edges_in(unpack(packed)) == sorted(windows(regular, short))


def test_an_edge_that_is_there_twice_is_packed_once() -> None:
    edges = windows([1, 2, 3])

    assert edges_in(unpack(pack(table_of(edges + edges)))) == edges


def test_an_edge_without_an_id_is_refused() -> None:
    edges = table_of(windows([1])).set_column(5, "source_b", pa.array([None], pa.int64()))

    with pytest.raises(ValueError, match="null"):
        pack(edges)


def test_no_edges_are_packed_to_no_sets() -> None:
    packed = pack(table_of([]))

    assert packed.num_rows == 0
    assert unpack(packed).num_rows == 0


# Any edges


def read_varints(payload: bytes) -> list[int]:
    values, value, shift = [], 0, 0
    for byte in payload:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def gaps_by_the_book(row: dict[str, Any], before: list[int]) -> list[int]:
    """Decode one set as `docs/reference/store.md` says, with nothing of the code under test."""
    payload = row["payload"] or b""
    form, number = row["form"], row["count"] - 1
    if form >= 8:
        size = int.from_bytes(payload[:4], "little")
        payload = pa.decompress(payload[4:], size, codec="zstd", asbytes=True)
    values = read_varints(payload)
    if form % 8 == 0:
        return [1] * number
    if form % 8 == 1:
        gaps: list[int] = []
        for run, hole in zip(values[::2], values[1::2], strict=True):
            gaps += [1] * (run - 1) + [hole + 1]
        return gaps + [1] * (number - len(gaps))
    kept = number - len(values)
    return [*before[len(before) - kept :], *values]


def unpack_by_the_book(packed: pa.Table) -> list[Edge]:
    edges: list[Edge] = []
    gaps: list[int] = []
    for row in packed.to_pylist():
        gaps = gaps_by_the_book(row, gaps)
        positions = [row["lo"]]
        for gap in gaps:
            positions.append(positions[-1] + gap)
        assert positions[-1] == row["hi"] or row["hi"] is None
        key = (row["sink"], row["sink_a"], row["sink_b"], row["source"], row["source_a"])
        edges += [(*key, each) for each in positions]
    return sorted(edges)


numbers = st.integers(LOWEST, HIGHEST) | st.sampled_from([LOWEST, -1, 0, 1, HIGHEST])


@st.composite
def sliding(draw: st.DrawFn) -> list[set[int]]:
    """Windows over positions some of which were left out."""
    size, step = draw(st.integers(1, 40)), draw(st.integers(1, 20))
    start = draw(st.sampled_from([0, -50, 1 << 40, HIGHEST - 600, LOWEST]))
    left_out = draw(st.sets(st.integers(0, 600), max_size=60))
    every = draw(st.integers(1, 4))
    found = []
    for i in range(draw(st.integers(1, 25))):
        window = range(i * step, i * step + size * every, every)
        found.append({start + each for each in window if each not in left_out and each <= 600})
    return found


scattered = st.lists(st.sets(numbers, max_size=12), max_size=8)
close = st.lists(st.sets(st.integers(-20, 20), max_size=30), max_size=20)
families = st.tuples(
    st.sampled_from(["s", "t"]),
    st.sampled_from(["r", "q"]),
    st.sampled_from([5, -7, LOWEST, HIGHEST]),
    st.one_of(sliding(), scattered, close),
)
pairs = st.tuples(numbers, numbers)
derived = st.lists(st.tuples(st.sampled_from([1, 2, 3]), pairs), max_size=20)


@st.composite
def any_edges(draw: st.DrawFn) -> list[Edge]:
    edges: set[Edge] = set()
    for sink, source, segment, sets in draw(st.lists(families, max_size=4)):
        for found in sets:
            a, b = draw(pairs)
            edges |= {(sink, a, b, source, segment, each) for each in found}
    edges |= {("s", a, -a, "named", *source) for a, source in draw(derived)}
    return draw(st.permutations(sorted(edges)))


many = settings(
    max_examples=150,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@many
@given(edges=any_edges(), compress_from=st.sampled_from([1, 8, 1_024]))
def test_unpacking_gives_the_edges_that_were_packed(edges: list[Edge], compress_from: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "COMPRESS_FROM", compress_from)
        packed = pack(table_of(edges))

    assert packed.schema == module.PACKED
    assert edges_in(unpack(packed)) == sorted(edges)
    assert unpack_by_the_book(packed) == sorted(edges)


@many
@given(edges=any_edges(), data=st.data())
def test_unpacking_some_rows_and_positions_gives_just_their_edges(
    edges: list[Edge], data: st.DataObject
) -> None:
    packed = pack(table_of(edges))
    rows = data.draw(st.sets(st.integers(0, max(packed.num_rows - 1, 0)), max_size=packed.num_rows))
    met = [each[-1] for each in edges]
    positions = data.draw(st.sets(st.sampled_from(met) | numbers if met else numbers, max_size=5))
    numbered = packed.append_column("number", pa.array(range(packed.num_rows), pa.int64()))

    found = unpack(numbered, sorted(rows), np.array(sorted(positions), np.int64))

    everything = unpack(numbered).to_pylist()
    assert sorted(map(str, found.to_pylist())) == sorted(
        str(each) for each in everything if each["number"] in rows and each["source_b"] in positions
    )


# Space


def hashes(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    return rng.integers(LOWEST, HIGHEST, count)


def window_edges(sets: Sequence[NDArray[np.int64]], *, shuffled: bool = False) -> pa.Table:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    lengths = [len(each) for each in sets]
    total = sum(lengths)
    order = rng.permutation(total) if shuffled else np.arange(total)
    sink_a, sink_b = (np.repeat(hashes(rng, len(sets)), lengths)[order] for _ in range(2))
    positions = np.concatenate(sets)[order]
    columns = [["s"] * total, sink_a, sink_b, ["r"] * total, np.full(total, 5), positions]
    return pa.table(columns, EDGES)


def bytes_per_edge(folder: Path, edges: pa.Table) -> float:
    folder.mkdir(exist_ok=True)
    pq.write_table(edges, folder / "part-0.parquet", compression="snappy")
    size = pack_folder(folder)
    [path] = folder.glob("*.parquet")
    assert path.name == "packed-0.parquet"
    assert edges_in(unpack(pq.read_table(path))) == edges_in(edges)
    return size / int(edges.num_rows)


@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_windows_that_slide_over_all_rows_take_a_quarter_byte_per_edge(
    tmp_path: Path, shuffled: bool
) -> None:
    edges = window_edges([np.arange(i, i + 100) for i in range(0, 20_000, 10)], shuffled=shuffled)

    assert bytes_per_edge(tmp_path, edges) < 0.25


def test_windows_over_every_fourth_row_take_less_than_a_byte_per_edge(tmp_path: Path) -> None:
    kept = np.flatnonzero(np.random.default_rng(SEED).random(20_000) < 0.25)
    sliding = [kept[(kept >= i) & (kept < i + 400)] for i in range(0, 19_600, 40)]
    tumbling = [kept[(kept >= i) & (kept < i + 400)] for i in range(0, 20_000, 400)]

    assert bytes_per_edge(tmp_path / "sliding", window_edges(sliding)) < 0.5
    assert bytes_per_edge(tmp_path / "tumbling", window_edges(tumbling)) < 1.5


def test_single_edges_take_little_more_than_the_id_of_their_sink_row(tmp_path: Path) -> None:
    edges = window_edges([np.array([i]) for i in range(0, 60_000, 3)])

    assert bytes_per_edge(tmp_path, edges) < 17


def test_edges_of_derived_rows_take_no_more_than_their_ids(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    sinks = [np.repeat(hashes(rng, 2_000), 10) for _ in range(2)]
    sources = [hashes(rng, 20_000) for _ in range(2)]
    edges = pa.table([["s"] * 20_000, *sinks, ["named"] * 20_000, *sources], EDGES)

    assert bytes_per_edge(tmp_path, edges) < 16 + 1.6 + 1


# Folders


def spark_folder(folder: Path, *parts: list[Edge]) -> Path:
    """Write edges as Spark does, with the files that it leaves beside."""
    folder.mkdir(exist_ok=True)
    for number, edges in enumerate(parts):
        path = folder / f"part-0000{number}.snappy.parquet"
        pq.write_table(table_of(edges), path, compression="snappy")
        (folder / f".{path.name}.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").touch()
    (folder / "._SUCCESS.crc").write_bytes(b"crc")
    return folder


def edges_of_folder(folder: Path) -> list[Edge]:
    return [
        each
        for path in folder.glob("*.parquet")
        for each in edges_in(unpack(pq.read_table(path, partitioning=None)))
    ]


BIG = windows(*(range(i, i + 50) for i in range(0, 2_000, 10)))


def test_packing_a_folder_leaves_one_packed_file_and_nothing_else(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path, BIG[:3_000], BIG[3_000:])

    size = pack_folder(folder)

    assert [each.name for each in folder.iterdir()] == ["packed-0.parquet"]
    assert size == (folder / "packed-0.parquet").stat().st_size
    assert edges_of_folder(folder) == sorted(BIG)
    assert pack_folder(folder) == size


def test_a_folder_stays_as_it_is_where_packing_does_not_pay(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path, windows([1]))
    before = {each.name: each.read_bytes() for each in folder.iterdir()}

    size = pack_folder(folder)

    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before
    assert size == (folder / "part-00000.snappy.parquet").stat().st_size


def test_a_folder_that_is_empty_or_not_there_takes_no_space(tmp_path: Path) -> None:
    assert pack_folder(tmp_path) == 0
    assert pack_folder(tmp_path / "none") == 0
    assert pack_folder(spark_folder(tmp_path, [])) > 0


def test_a_large_batch_is_packed_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_EDGES_AT_ONCE", 2_000)
    folder = spark_folder(tmp_path, BIG[:4_000], [], BIG[4_000:])

    pack_folder(folder)

    assert pq.read_metadata(folder / "packed-0.parquet").num_row_groups == 5
    assert edges_of_folder(folder) == sorted(BIG)


class CrashError(Exception):
    pass


@pytest.mark.parametrize("step", ["_write", "_sync", "replace", "unlink"])
def test_after_a_crash_packing_again_gives_the_same_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    folder = spark_folder(tmp_path, BIG[:3_000], BIG[3_000:])

    def crash(*_: object, **__: object) -> None:
        raise CrashError

    with monkeypatch.context() as patch:
        place = module if step.startswith("_") else type(folder)
        patch.setattr(place, step, crash)
        with pytest.raises(CrashError):
            pack_folder(folder)
    pack_folder(folder)

    assert [each.name for each in folder.iterdir()] == ["packed-0.parquet"]
    assert edges_of_folder(folder) == sorted(BIG)


def test_after_a_crash_while_raw_files_were_removed_the_packed_file_wins(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path, BIG[:3_000], BIG[3_000:])
    left = folder / "part-00001.snappy.parquet"
    content = left.read_bytes()
    pack_folder(folder)
    left.write_bytes(content)
    (folder / f".{left.name}.crc").write_bytes(b"crc")

    pack_folder(folder)

    assert [each.name for each in folder.iterdir()] == ["packed-0.parquet"]
    assert edges_of_folder(folder) == sorted(BIG)


def test_a_draft_that_a_crash_left_is_removed(tmp_path: Path) -> None:
    folder = spark_folder(tmp_path, BIG)
    (folder / ".packed-0.parquet.4711.tmp").write_bytes(b"PAR1 half a file")

    pack_folder(folder)

    assert [each.name for each in folder.iterdir()] == ["packed-0.parquet"]
    assert edges_of_folder(folder) == sorted(BIG)


# Chosen rows of a file


def test_chosen_rows_are_found_in_every_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROW_GROUP", 2 * BLOCK)
    gappy = windows(*([i, i + 3, *range(i + 9, i + 40)] for i in range(0, 1_000, 10)))
    pack_folder(spark_folder(tmp_path, gappy))
    path = str(tmp_path / "packed-0.parquet")

    found = unpack_rows(path, [99, 0, 47, 31, 32])

    assert pq.read_metadata(path).num_row_groups == 4
    assert edges_in(found) == sorted(each for each in gappy if each[1] in {0, 31, 32, 47, 99})
    positions = np.array([313, 319], np.int64)
    assert edges_in(unpack_rows(path, [31, 47], positions)) == [
        ("s", 31, -31, "r", 5, 313),
        ("s", 31, -31, "r", 5, 319),
    ]


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "packed-0.parquet"

    with pytest.raises(StoreError, match=f"gone: `{path}`"):
        unpack_rows(str(path), [0])
    path.write_bytes(b"no Parquet at all")
    with pytest.raises(StoreError, match=f"`{path}`"):
        unpack_rows(str(path), [0])


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("form", 4),
        ("form", IDS),
        ("form", IDS + COMPRESSED),
        ("count", 0),
        ("count", 6),
        ("count", 8),
        ("hi", 9),
        ("payload", b""),
        ("payload", b"\x04"),
        ("payload", b"\x09\x01"),
        ("payload", b"\x04\x81"),
        ("payload", b"\x00\x01"),
    ],
)
def test_a_set_that_does_not_add_up_is_an_error(tmp_path: Path, column: str, value: object) -> None:
    packed = pack(table_of(windows([1, 2, 3, 4, 6, 7, 8])))
    field = packed.schema.field(column)
    place = packed.column_names.index(column)
    wrong = packed.set_column(place, field, pa.array([value], field.type))
    pq.write_table(wrong, tmp_path / "packed-0.parquet")

    with pytest.raises(StoreError, match="packed-0.parquet.*does not add up"):
        unpack_rows(str(tmp_path / "packed-0.parquet"), [0])


def test_a_delta_that_needs_more_than_there_was_is_an_error() -> None:
    packed = pack(table_of(windows([1, 3, 5], [2, 4, 6])))
    assert forms(packed) == [IDS, DELTA]

    with pytest.raises(StoreError, match="does not add up"):
        unpack(packed.slice(1))


# Sets that say they are huge


def one_set(tmp_path: Path, **changes: object) -> str:
    """Write a file with one set, changed in some columns."""
    packed = pack(table_of(windows([1, 2, 3, 4, 6, 7, 8])))
    for column, value in changes.items():
        field = packed.schema.field(column)
        place = packed.column_names.index(column)
        packed = packed.set_column(place, field, pa.array([value], field.type))
    path = tmp_path / "packed-0.parquet"
    pq.write_table(packed, path)
    return str(path)


def zstd_of(size: int, content: bytes) -> bytes:
    squeezed: bytes = pa.Codec("zstd").compress(content, asbytes=True)
    return size.to_bytes(4, "little") + squeezed


HUGE = 1 << 62


@pytest.mark.parametrize(
    "changes",
    [
        {"form": IDS, "hi": HUGE + 9, "count": HUGE, "payload": b"\x01\x02"},
        {"form": DELTA, "hi": HUGE + 9, "count": HUGE, "payload": b"\x01\x02"},
        {"form": INTERVAL, "hi": None, "count": HIGHEST, "lo": 5, "payload": None},
        {"form": INTERVALS, "count": HUGE},
        {"form": IDS + COMPRESSED, "payload": zstd_of((1 << 32) - 1, b"\x01" * 9)},
        {"form": IDS, "payload": b"\xff" * 40 + b"\x01" * 6},
        {"hi": None},
    ],
    ids=["ids", "delta", "interval", "intervals", "zstd", "number", "no end"],
)
def test_a_set_larger_than_its_bytes_is_damage_found_before_there_is_room_for_it(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    path = one_set(tmp_path, **changes)

    with pytest.raises(StoreError, match="packed-0.parquet.*does not add up"):
        unpack_rows(path, [0])


@pytest.mark.parametrize(
    "changes",
    [
        {"form": INTERVAL, "hi": None, "count": 1 << 40, "payload": None},
        {"form": INTERVALS, "hi": (1 << 40) + 1, "count": 1 << 40, "payload": b"\x04\x01"},
    ],
    ids=["interval", "intervals"],
)
def test_a_set_that_needs_few_bytes_is_unpacked_up_to_the_limit_of_edges(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    path = one_set(tmp_path, **changes)

    with (
        under(Limits(edges=1_000_000)),
        pytest.raises(LimitError, match="more than the 1,000,000 edges"),
    ):
        unpack_rows(path, [0])


def repeated(tmp_path: Path, size: int = 16 << 10, **changes: object) -> str:
    """Write a small file of many sets, with one long text in all of them."""
    sets = 1 << 18
    said = {"sink": "out", "sink_a": 1, "sink_b": 1, "source": "r", "source_a": 7, "lo": 0}
    said |= {"hi": 4, "count": 5, "form": IDS, "payload": b"\x01" * size, **changes}
    columns = []
    for field in PACKED:
        places, text = pa.array(np.zeros(sets, np.int32)), pa.array([said[field.name]], field.type)
        columns.append(pa.DictionaryArray.from_arrays(places, text))
    path = tmp_path / "packed-0.parquet"
    pq.write_table(
        pa.table(columns, PACKED.names),
        path,
        row_group_size=sets,
        compression="zstd",
        dictionary_pagesize_limit=1 << 30,
        store_schema=False,
    )
    assert path.stat().st_size < 1 << 20
    return str(path)


def test_a_text_that_many_sets_share_is_measured_before_it_is_decoded(tmp_path: Path) -> None:
    path = repeated(tmp_path)

    with (
        under(Limits(memory="256 MB")),
        fenced(1 << 30),
        pytest.raises(LimitError, match="256 MB of memory"),
    ):
        unpack_rows(path, range(1 << 18))
    with (
        under(Limits(memory="256 MB")),
        fenced(1 << 30),
        pytest.raises(LimitError, match="256 MB of memory"),
    ):
        read_edges(Path(path))


def test_no_question_decodes_a_text_that_many_sets_share(tmp_path: Path) -> None:
    store = StoreBuilder(tmp_path / "prov")
    store.source("r")
    store.sink("out", ["r"])
    file = f"edges/out/{RUN}-0000000000/packed-0.parquet"
    (store.root / file).parent.mkdir(parents=True)
    repeated((store.root / file).parent)
    store.batch("out", 0, rows={"out": [one_row(1, 1, n=1)], "r": [one_row(7, 0, n=1)]})
    commit = f"batches/out/{RUN}-0000000000.json"
    said = json.loads((store.root / commit).read_text())
    store.put(commit, {**said, "files": [*said["files"], file], "edges": 1})

    with clew.open(store.root, limits=Limits(memory="256 MB")) as prov, fenced(2 << 30):
        for _ in range(2):  # the second question takes the edges into memory
            with pytest.raises(LimitError, match="256 MB of memory"):
                prov.backward("out", "00000000000000010000000000000001")


def test_of_a_text_that_many_sets_share_only_what_is_asked_for_counts(tmp_path: Path) -> None:
    path = repeated(tmp_path, size=4 << 10, count=(4 << 10) + 1, hi=4 << 10)

    with under(Limits(memory="256 MB")), fenced(1 << 30):
        assert unpack_rows(path, [1]).num_rows == (4 << 10) + 1


def test_a_payload_longer_than_its_set_can_need_is_damage(tmp_path: Path) -> None:
    path = one_set(tmp_path, form=IDS, payload=b"\x01" * 121)

    with pytest.raises(StoreError, match="does not add up"):
        unpack_rows(path, [0])


@pytest.mark.parametrize("side", ["sink", "source"])
def test_a_name_that_is_longer_than_a_file_may_have_is_damage(tmp_path: Path, side: str) -> None:
    path = repeated(tmp_path, size=4, **{side: "x" * (16 << 10)})

    with fenced(1 << 30), pytest.raises(StoreError, match="does not add up"):
        unpack_rows(path, [0])


def test_one_position_of_a_huge_interval_is_found_without_unpacking_it(tmp_path: Path) -> None:
    path = one_set(tmp_path, form=INTERVAL, hi=None, count=1 << 40, payload=None)

    found = unpack_rows(path, [0], np.array([0, 1 << 39, 1 << 50], np.int64))

    assert edges_in(found) == [("s", 0, 0, "r", 5, 1 << 39)]


def test_a_chain_of_deltas_is_no_longer_than_a_block() -> None:
    first = pack(table_of(windows([1, 3, 5], [2, 4, 6])))
    assert forms(first) == [IDS, DELTA]

    with pytest.raises(StoreError, match="does not add up"):
        unpack(first.take(pa.array([0] + [1] * BLOCK)))
    assert unpack(first.take(pa.array([0] + [1] * (BLOCK - 1)))).num_rows == 3 * BLOCK


def test_all_of_a_damaged_file_is_refused_by_name(tmp_path: Path) -> None:
    path = one_set(tmp_path, count=6)

    with pytest.raises(StoreError, match="packed-0.parquet.*does not add up"):
        read_edges(Path(path))
