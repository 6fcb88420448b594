"""The pipeline that a batch ran with: handed in, known in this process, or rebuilt from the store.

Nothing is computed again with another pipeline than the one that made the rows, nor under other
settings. Where neither is at hand there is an error that says what to hand in, or which settings to
give the session, and an answer says so of the batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from clew.again.known import recall
from clew.exceptions import OtherVersionError, ReplayError
from clew.plan.node import with_secret
from clew.plan.settings import differing, settings_of, to_set
from clew.store.commit import read_stream, store_secret, stored_mask
from clew.store.versions import over_a_change, said_of, versions_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from clew.again.describe import Likeness
    from clew.plan.node import Node


class Versions:
    """Finds the pipeline for each version of a query.

    Args:
        root: The store.
        stream: The results.
        given: A pipeline that somebody hands in: whoever does vouches for its functions.
        trust: Rebuild what another user's query stored, too.
    """

    def __init__(
        self, root: Path, stream: str, given: Node | None = None, *, trust: bool = False
    ) -> None:
        self._root = root
        self._stream = stream
        self._given = None if given is None else self._bound(given)
        self._trust = trust
        self._likeness: Likeness | None = None
        self._rebuilt: dict[str, Node] = {}

    @property
    def newest(self) -> str | None:
        """The version of the query that was started last."""
        return (read_stream(self._root, self._stream) or {}).get("version")

    def node_of(self, version: str | None) -> Node:
        """Return the pipeline of a version, in a session with its settings.

        Args:
            version: As a batch names it; None if it names none.

        Raises:
            ReplayError: It is not at hand.
        """
        said = said_of(read_stream(self._root, self._stream) or {}, version)
        if said is None:
            why = "it is not stored" if version else "the batch does not say which version it was"
            raise OtherVersionError(str(self._root), self._stream, version, why)
        node = self._at_hand(said)
        if node is not None and not self._other_settings(node, said):
            return node
        try:
            return self._rebuild(said)
        except ReplayError as error:
            names = [] if node is None else self._other_settings(node, said)
            if names:
                writing = to_set(said["settings"], names)
                why = (
                    f"the session has other settings than it ran with ({', '.join(names)}); "
                    f"write `{writing}`"
                )
            elif version == self.newest:
                raise
            else:
                why = getattr(error, "why", None) or str(error).splitlines()[0]
            raise OtherVersionError(str(self._root), self._stream, version, why) from error

    @property
    def is_strange(self) -> bool:
        """Whether a pipeline was handed in that is no version of the query."""
        said = read_stream(self._root, self._stream) or {}
        known = (said_of(said, version) for version in versions_of(said))
        return self._given is not None and not any(each and self._fits(each) for each in known)

    @property
    def has_any(self) -> bool:
        """Whether a pipeline is at hand, of any version, and need not be rebuilt first."""
        known = recall(self._root, self._stream)
        return self._given is not None or known is not None or bool(self._rebuilt)

    def rebuild(self) -> Node:
        """Rebuild the newest version from the store.

        Raises:
            ReplayError: It cannot be rebuilt.
        """
        return self._rebuild(read_stream(self._root, self._stream) or {})

    def any_node(self) -> Node:
        """Return the pipeline of any version, the newest that is at hand.

        Raises:
            ReplayError: There is none; the error is about the newest.
        """
        versions = versions_of(read_stream(self._root, self._stream) or {})
        with suppress(ReplayError):
            return self.node_of(self.newest)
        for version in reversed(versions[:-1]):
            with suppress(ReplayError):
                return self.node_of(version)
        return self.node_of(self.newest)  # whose error says what to do

    def refuse_other_settings(self, node: Node, version: str | None) -> None:
        """Refuse what was computed while somebody gave the session other settings.

        Raises:
            OtherVersionError: The settings are not those of the version.
        """
        said = said_of(read_stream(self._root, self._stream) or {}, version) or {}
        names = self._other_settings(node, said)
        if names:
            why = f"the session was given other settings meanwhile ({', '.join(names)})"
            raise OtherVersionError(str(self._root), self._stream, version, why)

    def over_a_change(self, run: str) -> dict[int, str]:
        """Find the batches of a run whose rows may rest on what another version had gathered.

        Versions that differ in functions only, which nothing shows, are one if somebody has handed
        in a pipeline that is both.
        """
        return over_a_change(self._root, self._stream, run, self._fits)

    def _at_hand(self, said: Mapping[str, Any]) -> Node | None:
        known = recall(self._root, self._stream, said.get("version"))
        node = None if known is None else self._bound(known.node)
        if self._given is None or node is self._given or not self._fits(said):
            return node
        return self._given

    def in_time(self, node: Node) -> AbstractContextManager[None]:
        """End what is computed with a pipeline once the time of the question is over."""
        from clew.again.session import stopped_in_time

        return stopped_in_time(node.plain.df.sparkSession)

    def _bound(self, node: Node) -> Node:
        """Let a pipeline hash ids as the store does, and keep what its query keeps."""
        mask = stored_mask(self._root, self._stream)
        return with_secret(node, store_secret(self._root), mask)

    def _fits(self, said: Mapping[str, Any]) -> bool:
        if self._given is None:
            return False
        from clew.again.describe import Likeness

        if self._likeness is None:
            self._likeness = Likeness(self._given)
        return self._likeness.fits(said)

    def _other_settings(self, node: Node, said: Mapping[str, Any]) -> list[str]:
        settings = said.get("settings")
        if settings is None:
            return []
        return differing(settings, settings_of(node.plain.df.sparkSession))

    def _rebuild(self, said: Mapping[str, Any]) -> Node:
        version = said.get("version") or ""
        node = self._rebuilt.get(version)
        if node is None or self._other_settings(node, said):
            from clew.again.rebuild import rebuild

            node = rebuild(self._root, self._stream, trust=self._trust, version=version)
            self._rebuilt[version] = self._bound(node)
        return self._rebuilt[version]
