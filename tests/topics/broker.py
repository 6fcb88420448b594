"""A real Kafka broker for tests: one node, on loopback, in a scratch folder.

Its program comes as a Maven package, by way of Spark's own package resolution, so nothing has to be
installed. It is a process of its own and ends with the tests.
"""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import uuid
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "org.apache.kafka:kafka_2.13:3.9.1"
_SECONDS = 60


@contextmanager
def broker(jars: Path, folder: Path) -> Iterator[str]:
    """Run a broker; give its address.

    Args:
        jars: The folder with Kafka's jars.
        folder: A new folder for its data and log.
    """
    folder.mkdir(parents=True)
    port, control = _free_port(), _free_port()
    address = f"127.0.0.1:{port}"
    settings = folder / "server.properties"
    settings.write_text(_settings(folder, address, f"127.0.0.1:{control}"))
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    made = ["format", f"--cluster-id={cluster}", "--config", str(settings)]
    _java(jars, "kafka.tools.StorageTool", *made).wait(_SECONDS)
    with (folder / "broker.log").open("w") as log:
        running = _java(jars, "kafka.Kafka", str(settings), log=log)
        try:
            _wait(port, running)
            yield address
        finally:
            running.terminate()
            running.wait(_SECONDS)


def _settings(folder: Path, address: str, control: str) -> str:
    said = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{control}",
        "listeners": f"PLAINTEXT://{address},CONTROLLER://{control}",
        "advertised.listeners": f"PLAINTEXT://{address}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "num.partitions": "2",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{key}={value}\n" for key, value in said.items())


def _java(jars: Path, main: str, *given: str, log: object = None) -> subprocess.Popen[bytes]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    # Spark's resolution leaves out Scala itself, which Spark brings.
    scala = [str(p) for p in (Path(pyspark.__file__).parent / "jars").glob("scala-*.jar")]
    command = [java, "-Xmx512m", "-cp", os.pathsep.join([f"{jars}/*", *scala]), main, *given]
    target = log if log is not None else subprocess.DEVNULL
    return subprocess.Popen(command, stdout=target, stderr=subprocess.STDOUT)  # type: ignore[call-overload,no-any-return]


def _free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(port: int, running: subprocess.Popen[bytes]) -> None:
    """Wait until the broker takes connections."""
    import time

    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        if running.poll() is not None:
            msg = f"the broker ended with {running.returncode}; see its broker.log"
            raise RuntimeError(msg)
        with closing(socket.socket()) as trying:
            trying.settimeout(1)
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    msg = f"the broker took no connection within {_SECONDS} s"
    raise RuntimeError(msg)
