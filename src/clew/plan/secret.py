"""The secret of a store, with which its row ids are hashed.

Whoever chooses the values of rows could choose them so that two rows get one id, if ids could be
computed by anybody. So each store has a secret, made with it, and an id is a hash of the secret and
the values. Ids are compared within one store only; one that a sink carries into another store is a
value there like any other. The sources of a pipeline know the secret; `interpret` hashes with it.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.exceptions import GraphError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTES = 32
_WORD = 8


@dataclass(frozen=True, slots=True)
class Secret:
    """256 random bits; no text of it shows them.

    Attributes:
        words: Four numbers: what is hashed before and behind the values in each half of an id.
    """

    words: tuple[int, int, int, int] = field(repr=False)

    @classmethod
    def make(cls) -> Secret:
        """Make a new one."""
        return cls.from_hex(secrets.token_hex(_BYTES))

    @classmethod
    def from_hex(cls, text: str) -> Secret:
        """Read what `to_hex` wrote.

        Raises:
            ValueError: It is something else.

        Examples:
            >>> Secret.from_hex("00" * 31 + "01").to_hex()[-4:]
            '0001'
        """
        data = bytes.fromhex(text)
        if len(data) != _BYTES:
            msg = f"a secret has {_BYTES} bytes, not {len(data)}"
            raise ValueError(msg)
        parts = [data[at : at + _WORD] for at in range(0, _BYTES, _WORD)]
        a, b, c, d = (int.from_bytes(part, "big", signed=True) for part in parts)
        return cls((a, b, c, d))

    def to_hex(self) -> str:
        """Write it for the store's header."""
        return b"".join(word.to_bytes(_WORD, "big", signed=True) for word in self.words).hex()


UNKEYED = Secret((0, 0, 0, 0))
"""For ids that no store ever sees, and that nothing outside of one computation is compared with."""

_current: ContextVar[Secret | None] = ContextVar("clew_secret", default=None)


@contextmanager
def hashing_with(secret: Secret | None) -> Iterator[None]:
    """Hash ids with a secret."""
    token = _current.set(secret)
    try:
        yield
    finally:
        _current.reset(token)


def current_secret() -> Secret:
    """Return the secret that ids are hashed with here.

    Raises:
        GraphError: There is none; ids of no store would match those of one by no means.
    """
    secret = _current.get()
    if secret is None:
        msg = (
            "row ids are hashed with the secret of a store, and this pipeline belongs to none.\n\n"
            "Run it with `.provenance(path)`, or hand it to `clew.open(path, pipelines=...)`."
        )
        raise GraphError(msg)
    return secret
