"""Whose word a store is: a key of the user's own signs what this user's queries store.

To rebuild a pipeline is to let a store decide what Spark runs, so a store is believed only if
whoever asks wrote it, or says so with `trust`. The key is made on first use, is readable by its
owner only and never goes into a store. A digest beside the pipeline would not do: whoever can
change the one can change the other.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.exceptions import StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY_FILE = "CLEW_KEY_FILE"
"""The environment variable that names another file for the key, e.g. for a service."""

_LENGTH = 32
_SIGNED = ("name", "pipeline", "graph", "shape", "functions", "version")
"""All of a stream that is read to rebuild its query: steps, and which feeds which, too."""


def sign(stream: Mapping[str, Any]) -> str:
    """Sign what is stored of a stream to rebuild its query, with the user's key."""
    return _signature(stream, _key())


def is_own(stream: Mapping[str, Any]) -> bool:
    """Tell whether what is stored of a stream is signed by the user, and not changed since."""
    signature = stream.get("signature")
    if not isinstance(signature, str) or not signature.isascii():
        return False
    return hmac.compare_digest(_signature(stream, _key()), signature)


def _signature(stream: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps([stream.get(each) for each in _SIGNED], sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def key_file() -> Path:
    """Return where the user's key is kept."""
    named = os.environ.get(KEY_FILE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "clew" / "key"


def _key() -> bytes:
    """Read the user's key, making it on first use; of two that make it at once, one wins.

    Raises:
        StoreError: The key cannot be read or made.
    """
    path = key_file()
    try:
        if not path.exists():
            _make(path)
        key = bytes.fromhex(path.read_text("ascii").strip())
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from error
    if len(key) != _LENGTH:
        raise _unusable(path, f"it has {len(key)} bytes and should have {_LENGTH}")
    return key


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_LENGTH))
        try:
            os.link(draft, path)  # unlike a rename, this leaves a key that is there alone
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"the key that signs your pipelines, `{path}`, cannot be used: {why}.\n\nMake the file "
        f"readable, remove it so that a new key is made, or name another in {KEY_FILE}."
    )
