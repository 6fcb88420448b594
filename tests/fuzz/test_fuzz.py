"""No input makes clew start a process, take all memory, or raise what is not its own error."""

from __future__ import annotations

import random
import subprocess

import pytest

from fuzz.fenced import ProcessStartedError, fenced
from fuzz.targets import names, target


@pytest.mark.parametrize("name", names())
def test_odd_input_does_no_harm(name: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")

    assert target(name)(2.0, seed) > 20


def test_the_fence_holds() -> None:
    with fenced(), pytest.raises(ProcessStartedError):
        subprocess.run(["true"], check=True)
    with fenced(256 << 20), pytest.raises(MemoryError):
        bytearray(1 << 30)

    assert subprocess.run(["true"], check=False).returncode == 0
    assert len(bytearray(1 << 30)) == 1 << 30
