"""What clew notes in a query's checkpoint: its own name, and by which secret its state has ids.

Spark's state may hold ids for as long as windows are open, and they were hashed with the secret of
one store. With another store the ids that come out of the state would be found nowhere, so a
checkpoint stays with the store it was begun with.
"""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreConflictError, WriterError
from clew.plan.secret import Secret
from clew.store.commit import put_json
from clew.store.layout import SECRET, read_json

if TYPE_CHECKING:
    from pathlib import Path

_MARK = "clew.json"
_IDS = "ids"


def run_of(checkpoint: Path) -> str:
    """Return the checkpoint's own name, giving it one the first time."""
    said = _read(checkpoint)
    if "run" in said:
        return str(said["run"])
    run = uuid.uuid4().hex[:8]
    _put(checkpoint, {**said, "run": run})
    return run


def check_bound(checkpoint: Path, root: Path, secret: Secret) -> None:
    """Check that a checkpoint was not begun with another store.

    Raises:
        StoreConflictError: It was.
    """
    if _read(checkpoint).get(_IDS, _digest(secret)) != _digest(secret):
        msg = (
            f"the checkpoint `{checkpoint}` was begun with another store than `{root}`: what Spark "
            "holds in its state carries ids of that store, which this one does not know.\n\n"
            "Write provenance to the store that belongs to the checkpoint, or begin with a new "
            "checkpoint."
        )
        raise StoreConflictError(msg)


def bind(checkpoint: Path, secret: Secret) -> None:
    """Note with which secret the query of a checkpoint hashes ids."""
    said = _read(checkpoint)
    if _IDS not in said:
        _put(checkpoint, {**said, _IDS: _digest(secret)})


def own_secret(checkpoint: Path) -> Secret:
    """Return the secret of a query that has no store, making it the first time."""
    said = _read(checkpoint)
    if SECRET in said:
        return Secret.from_hex(said[SECRET])
    secret = Secret.make()
    _put(checkpoint, {**said, SECRET: secret.to_hex(), _IDS: _digest(secret)})
    return secret


def _digest(secret: Secret) -> str:
    return hashlib.sha256(b"ids " + secret.to_hex().encode()).hexdigest()[:32]


def _read(checkpoint: Path) -> dict[str, Any]:
    try:
        return dict(read_json(checkpoint / _MARK))
    except FileNotFoundError:
        return {}


def _put(checkpoint: Path, said: dict[str, Any]) -> None:
    try:
        put_json(checkpoint / _MARK, said, closed=True)
    except OSError as error:
        msg = (
            f"cannot write the checkpoint `{checkpoint}`: {error.strerror}.\n\n"
            'Name another place: `.option("checkpointLocation", "path")`.'
        )
        raise WriterError(msg) from error
