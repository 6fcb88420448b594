"""What share and distance mean, measured on the stream that comes out."""

from __future__ import annotations

from collections import Counter

import pytest

from domains.disorder import disorder, main


def events(number: int) -> list[str]:
    return [f"e{i:06d}" for i in range(number)]


def overtaken(stream: list[str]) -> set[str]:
    """Return the events that an event from behind them came before."""
    found, furthest = set(), ""
    for event in stream:
        if event < furthest:
            found.add(event)
        furthest = max(furthest, event)
    return found


@pytest.mark.parametrize(("share", "distance"), [(0.01, 1), (0.1, 10), (0.3, 1000), (0.5, 100)])
def test_just_that_share_of_events_is_out_of_order(share: float, distance: int) -> None:
    stream = list(disorder(events(10_250), share, distance, seed=7))

    assert sorted(stream) == events(10_250)
    missed = sum(1 for e in stream) * share - len(overtaken(stream))
    # With a distance of 1 an event may have none to come behind but another that is held back.
    assert abs(missed) <= (0.5 if distance > 9 else 10)


@pytest.mark.parametrize("distance", [1, 10, 500])
def test_no_event_comes_before_one_that_stood_more_than_the_distance_ahead(distance: int) -> None:
    stream = [int(e[1:]) for e in disorder(events(5_000), 0.3, distance, duplicates=0.1, seed=3)]

    reach, furthest = [], 0
    for place in stream:
        reach.append(furthest - place)
        furthest = max(furthest, place)
    assert max(reach) == distance


def test_without_a_share_nothing_changes() -> None:
    assert list(disorder(iter(events(2_500)), 0, 10)) == events(2_500)


def test_duplicates_and_losses_are_as_many_as_said() -> None:
    stream = list(disorder(events(10_000), 0.2, 50, duplicates=0.05, losses=0.1, seed=5))

    counts = Counter(stream)
    assert len(counts) == 9_000
    assert Counter(counts.values()) == {1: 8_550, 2: 450}


def test_a_seed_gives_the_same_stream_and_another_seed_another() -> None:
    one, same, other = (list(disorder(events(3_000), 0.2, 50, seed=s)) for s in (1, 1, 2))

    assert one == same != other


def test_it_takes_only_as_much_of_the_stream_as_it_needs() -> None:
    taken = []
    source = (taken.append(e) or e for e in events(10_000))  # type: ignore[func-returns-value]

    stream = disorder(source, 0.1, 10)
    first = [next(stream) for _ in range(10)]

    assert len(first) == 10
    assert len(taken) <= 2_000


@pytest.mark.parametrize(("share", "losses", "said"), [(1, 0, "`share`"), (0, -1, "`losses`")])
def test_shares_that_make_no_sense_are_refused(share: float, losses: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        disorder([], share, 1, losses=losses)
    with pytest.raises(ValueError, match="`distance`"):
        disorder([], 0.1, 0)


def test_the_command_line_does_the_same(
    tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "events"
    file.write_text("".join(f"{e}\n" for e in events(100)))

    main([str(file), "--share", "0.2", "--distance", "5", "--seed", "4"])

    assert capsys.readouterr().out.splitlines() == list(disorder(events(100), 0.2, 5, seed=4))
