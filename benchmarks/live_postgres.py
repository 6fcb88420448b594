"""A PostgreSQL server of our own, on a free port, with its data in a folder of ours.

It is a child of this process, so its CPU time counts. Where PostgreSQL is not installed and we are
root, Debian's package is installed; where that fails, `UnavailableError` says why.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE = 60.0
_DEBIAN = Path("/usr/lib/postgresql")
"""Where Debian keeps the programs of the server: they are not on the path."""


class UnavailableError(Exception):
    """PostgreSQL cannot be had on this machine."""


@dataclass
class Server:
    """The server.

    Attributes:
        folder: Where its data goes; must not be there yet.
        port: Where it listens, once it is started.
    """

    folder: Path
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def dsn(self) -> str:
        """How to connect to it."""
        return f"host=127.0.0.1 port={self.port} user=clew dbname=postgres"

    def start(self) -> None:
        """Make the data folder, start the server and wait until it answers.

        Raises:
            UnavailableError: It cannot be had here; the message says why.
        """
        programs, user = _programs(), _other_user()
        data = self.folder / "data"
        self.folder.mkdir(parents=True)
        if user:
            shutil.chown(self.folder, user["user"], user["group"])
        init = (programs / "initdb", "-D", data, "-U", "clew", "-A", "trust", "-E", "UTF8")
        made = subprocess.run(init, capture_output=True, text=True, check=False, **user)
        if made.returncode:
            msg = f"initdb failed: {made.stderr.strip()}"
            raise UnavailableError(msg)
        self.port = _free_port()
        serve = (programs / "postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1")
        with (self.folder / "log").open("wb") as log:
            own = ("-k", "")  # no socket in a folder that others share
            self._process = subprocess.Popen((*serve, *own), stdout=log, stderr=log, **user)
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                msg = f"the server does not answer: {(self.folder / 'log').read_text().strip()}"
                self.stop()
                raise UnavailableError(msg)
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            import psycopg
        except ImportError:
            self.stop()
            msg = "psycopg is not there: pip install 'clew[bench]'"
            raise UnavailableError(msg) from None
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.dsn).close()
            return True
        return False

    def stop(self) -> None:
        """Stop the server and remove its data."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _programs() -> Path:
    """Find the folder with PostgreSQL's programs, installing them if we may."""
    found = _find_programs()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing PostgreSQL", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (("update", "-qq"), ("install", "-y", "-qq", "postgresql")):
            subprocess.run(("apt-get", *command), capture_output=True, check=False, env=quiet)
        found = _find_programs()
    if found is None:
        msg = "it is not installed: apt-get install postgresql"
        raise UnavailableError(msg)
    return found


def _find_programs() -> Path | None:
    named = shutil.which("initdb")
    folders = [
        *sorted(_DEBIAN.glob("*/bin"), reverse=True),
        *([Path(named).parent] if named else []),
    ]
    wanted = ("initdb", "postgres")
    return next((f for f in folders if all((f / each).exists() for each in wanted)), None)


def _other_user() -> dict[str, Any]:
    """Name a user for the server, which refuses to run as root; none is needed if we are not."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    msg = "it does not run as root, and there is no other user"
    raise UnavailableError(msg)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
