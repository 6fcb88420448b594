"""Long answers, a screen at a time: through the user's pager, as other commands do it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from contextlib import suppress

USUAL = "less -FRX"


def page(text: str) -> bool:
    """Show text in a pager; say whether there is one.

    `CLEW_PAGER` names it, else `PAGER`, else it is `less -FRX`; an empty name means none.
    """
    command = shlex.split(os.environ.get("CLEW_PAGER", os.environ.get("PAGER", USUAL)))
    if not command or command == ["cat"]:
        return False
    environment = {"LESS": "FRX", **os.environ}
    try:
        pager = subprocess.Popen(  # noqa: S603 (the user's own choice)
            command, stdin=subprocess.PIPE, env=environment, text=True, errors="backslashreplace"
        )
    except OSError:
        return False
    # Ctrl-C is the pager's while it runs.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with suppress(BrokenPipeError):
            pager.communicate(text)
    finally:
        signal.signal(signal.SIGINT, before)
    return True
