"""The errors clew raises.

Every message says what happened and where, why, and what to write instead. Fields on the
exception serve programs, `str()` serves people. Errors cross process boundaries when Spark
runs a callback elsewhere, so each one can be rebuilt from its positional arguments.

    ClewError
    ├── GraphError                  while the pipeline is built
    │   ├── RefusedVerbError        (AttributeError) a verb with no row-level meaning here
    │   ├── BeyondRowError          (ValueError) an expression that looks at other rows
    │   ├── ReservedNameError       (ValueError) a column called like one of ours
    │   └── ColumnError             (ValueError) a column that is not there or is ambiguous
    ├── SourceError                 while a source is wrapped
    │   └── IdentityError           (ValueError) no usable row identity
    ├── CaptureError                while provenance is carried
    │   ├── OpaqueOperatorError     (ValueError) a function that hides how rows follow
    │   ├── PropertyError           (ValueError) a property that cannot be merged or is not there
    │   ├── CaptureRefusedError     (ValueError) a way of capture that cannot serve this query
    │   └── AssertionsRefusedError  (ValueError) a stream whose rows cannot be recorded
    ├── RunError                    while a traced query is started or runs
    │   └── WriterError             (ValueError) a writer setting that cannot work
    ├── ReduceError                 while provenance of other systems is reduced
    │   ├── ReduceSettingError      (ValueError) a setting that cannot be
    │   └── ReduceConflictError     (ValueError) a reduction that was begun in another way
    ├── StoreError                  while a store is opened, read or written
    │   ├── NotAStoreError          (ValueError)
    │   ├── StoreVersionError       (ValueError)
    │   ├── StoreChangedError       a file that was there is gone
    │   └── StoreConflictError      (ValueError) two things of one name
    ├── EmitError                   (OSError) while a job publishes events
    └── QueryError                  while a question is answered
        ├── LimitError              (RuntimeError) a question that takes more than it may
        ├── ReplayError             (RuntimeError) what a replay needs is not there, or differs
        │   ├── SourceChangedError  a source is not as the query read it
        │   └── OtherVersionError   a batch ran with a version of its query that is not at hand
        ├── UnknownStreamError      (LookupError)
        └── RowNotFoundError        (LookupError)
"""

from __future__ import annotations


class ClewError(Exception):
    """The base of every error that clew raises."""


class GraphError(ClewError):
    """A pipeline cannot be built as written."""


class RefusedVerbError(GraphError, AttributeError):
    """A DataFrame verb that clew does not follow at row level."""

    def __init__(self, verb: str, instead: str) -> None:
        super().__init__(verb, instead)
        self.verb = verb
        self.instead = instead

    def __str__(self) -> str:
        return (
            f"`{self.verb}` is not available on a traced frame: {self.instead}\n\n"
            "More: docs/reference/operators.md"
        )


class BeyondRowError(GraphError, ValueError):
    """An expression reads rows other than the one it is computed for."""

    def __init__(self, verb: str, found: str, instead: str) -> None:
        super().__init__(verb, found, instead)
        self.verb = verb
        self.found = found
        self.instead = instead

    def __str__(self) -> str:
        return (
            f"`{self.verb}` holds {self.found}, which looks beyond its own row, so a row-by-row "
            f"trace would be wrong.\n\n{self.instead}\n\nMore: docs/reference/operators.md"
        )


class ReservedNameError(GraphError, ValueError):
    """A user's column has a name that clew keeps for itself."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column

    def __str__(self) -> str:
        return (
            f"the column name `{self.column}` is reserved: clew keeps its annotation in columns "
            "that begin with `_clew`.\n\nRename it before it is traced, e.g. "
            f'`.withColumnRenamed("{self.column}", "{self.column.lstrip("_")}")`.'
        )


class ColumnError(GraphError, ValueError):
    """A column is missing or ambiguous."""


class SourceError(ClewError):
    """A source cannot be traced as given."""


class IdentityError(SourceError, ValueError):
    """A source has no usable row identity."""


class CaptureError(ClewError):
    """Provenance cannot be carried through an operator."""


class OpaqueOperatorError(CaptureError, ValueError):
    """An operator hides how its output rows follow from its input rows."""

    def __init__(self, operator: str, allowed: str) -> None:
        super().__init__(operator, allowed)
        self.operator = operator
        self.allowed = allowed

    def __str__(self) -> str:
        return (
            f"cannot follow rows through `{self.operator}`: Spark hands the function many rows at "
            "once, so nothing shows which input rows made which output rows.\n\n"
            f"{self.allowed}\n\nMore: docs/how-to/opaque-functions.md"
        )


class PropertyError(CaptureError, ValueError):
    """A property cannot be what was asked for."""


class CaptureRefusedError(CaptureError, ValueError):
    """A way to capture provenance cannot serve this query."""

    def __init__(self, capture: str, why: str) -> None:
        super().__init__(capture, why)
        self.capture = capture
        self.why = why

    def __str__(self) -> str:
        return (
            f'`capture="{self.capture}"` cannot serve this query: {self.why}.\n\n'
            'Write `capture="sets"`, which carries the rows themselves, or leave `capture` out: '
            "clew then chooses by itself.\n\nMore: docs/how-to/choose-a-capture.md"
        )


class AssertionsRefusedError(CaptureError, ValueError):
    """The rows of a stream cannot be recorded behind the query."""

    def __init__(self, stream: str, why: str) -> None:
        super().__init__(stream, why)
        self.stream = stream
        self.why = why

    def __str__(self) -> str:
        return (
            f"the rows of stream `{self.stream}` cannot be recorded: {self.why}.\n\n"
            'Name the streams to record and leave this one out: `assertions=["name", ...]`.\n\n'
            "More: docs/how-to/record-keys.md"
        )


class RunError(ClewError):
    """A traced query cannot start or go on."""


class WriterError(RunError, ValueError):
    """A writer setting cannot work with provenance."""


class ReduceError(ClewError):
    """Provenance of another system cannot be reduced."""


class ReduceSettingError(ReduceError, ValueError):
    """A setting of a reduction cannot be what was asked for."""

    def __init__(self, setting: str, got: object, allowed: str) -> None:
        super().__init__(setting, got, allowed)
        self.setting = setting
        self.got = got
        self.allowed = allowed

    def __str__(self) -> str:
        return (
            f"`{self.setting}` cannot be {self.got!r}; it takes {self.allowed}.\n\n"
            "More: docs/how-to/reduce-provenance.md"
        )


class ReduceConflictError(ReduceError, ValueError):
    """A reduction cannot go on in another way than it was begun."""

    def __init__(self, job: str, setting: str, before: object, now: object) -> None:
        super().__init__(job, setting, before, now)
        self.job = job
        self.setting = setting
        self.before = before
        self.now = now

    def __str__(self) -> str:
        return (
            f"the reduction of `{self.job}` in this store was begun with "
            f"`{self.setting}={self.before!r}` and cannot go on with {self.now!r}: edges that are "
            "not final yet would be read in another way.\n\nWrite "
            f"`{self.setting}={self.before!r}` again, or give the job another name.\n\n"
            "More: docs/how-to/reduce-provenance.md"
        )


class StoreError(ClewError):
    """A store cannot be read or written."""


class NotAStoreError(StoreError, ValueError):
    """The path holds no clew store."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(path, why)
        self.path = path
        self.why = why

    def __str__(self) -> str:
        return (
            f"`{self.path}` is not a clew store: {self.why}\n\n"
            'A store is made by the first traced query that names it: `.provenance("'
            f'{self.path}")` on `writeStream` or `write`.'
        )


class StoreVersionError(StoreError, ValueError):
    """A store was written in a format that this version does not know."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(path, found, known)
        self.path = path
        self.found = found
        self.known = known

    def __str__(self) -> str:
        return (
            f"the store `{self.path}` has format {self.found}; this version of clew reads and "
            f"writes format {self.known}.\n\nOpen it with a matching version of clew, or name "
            "another place for new provenance."
        )


class StoreChangedError(StoreError):
    """A file of the store went away while a question was answered."""


class StoreConflictError(StoreError, ValueError):
    """A store already holds something else under the same name."""


class EmitError(ClewError, OSError):
    """Events of a job cannot be published."""


class QueryError(ClewError):
    """A question about provenance cannot be answered."""


class LimitError(QueryError, RuntimeError):
    """A question takes more than it may, and was ended."""

    def __init__(self, limit: str, allowed: str, instead: str) -> None:
        super().__init__(limit, allowed, instead)
        self.limit = limit
        self.allowed = allowed
        self.instead = instead

    def __str__(self) -> str:
        advice = f"{self.instead[:1].upper()}{self.instead[1:]}"
        return (
            f"the question needs more than the {self.allowed} that it may take, so it was ended "
            f"without an answer.\n\n{advice}.\n\nMore: docs/reference/limits.md"
        )


class ReplayError(QueryError, RuntimeError):
    """A replay lacks what it needs, or gives something else than the query did."""


class SourceChangedError(ReplayError):
    """A source is not as the query read it, so nothing may be computed from it again."""

    def __init__(self, change: str) -> None:
        super().__init__(change)
        self.change = change

    def __str__(self) -> str:
        return (
            f"a source has changed since the query read it: {self.change}. Computed from it now, "
            "an answer would be about other rows.\n\nLeave the files of a source as they are until "
            'results are unfolded; or use `capture="sets"`, which reads no source again.'
        )


class OtherVersionError(ReplayError):
    """A batch ran with a version of its query, or with settings, that are not at hand."""

    def __init__(self, root: str, stream: str, version: str | None, why: str) -> None:
        super().__init__(root, stream, version, why)
        self.root = root
        self.stream = stream
        self.version = version
        self.why = why

    @property
    def change(self) -> str:
        """What an answer says of a batch that has no edges because of it."""
        return f"it ran with {self._which} of the query, which is not at hand: {self.why}"

    @property
    def _which(self) -> str:
        return "a version" if self.version is None else f"version {self.version[:8]}"

    def __str__(self) -> str:
        return (
            f"results of `{self.stream}` were made by {self._which} of the query, which is not at "
            f"hand: {self.why}. Computed with another one, an answer would be about other rows."
            "\n\nHand it in, under the settings that it ran with: "
            f'`clew.open("{self.root}", pipelines={{"{self.stream}": frame}})`, or on the command '
            "line `--pipeline module:function`.\n\nMore: docs/how-to/replay.md"
        )


class UnknownStreamError(QueryError, LookupError):
    """The store has no stream of that name."""

    def __init__(self, stream: str, known: tuple[str, ...]) -> None:
        super().__init__(stream, known)
        self.stream = stream
        self.known = known

    def __str__(self) -> str:
        known = ", ".join(f"`{name}`" for name in self.known) or "none yet"
        return f"the store has no stream `{self.stream}`; it has: {known}."


class RowNotFoundError(QueryError, LookupError):
    """The store has no such row."""

    def __init__(self, stream: str, row: str, why: str) -> None:
        super().__init__(stream, row, why)
        self.stream = stream
        self.row = row
        self.why = why

    def __str__(self) -> str:
        return f"stream `{self.stream}` has no row {self.row}: {self.why}"
