"""DuckDB over the Parquet files of one store.

One in-memory DuckDB per open store, one cursor per question: cursors may be used from several
threads at once. The engine can read the store's folder and nothing else on the machine, since
questions may carry SQL conditions that come from a page in a browser.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from clew.exceptions import QueryError, StoreChangedError, StoreError
from clew.limits import Limits, check_time, out_of_memory, out_of_time, seconds_left
from clew.store.layout import unreadable
from clew.store.spill import database

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from clew.exceptions import LimitError


# DuckDB 2.0.0 loses a condition on a struct inside a struct (`window.start`, say) when it moves it
# into a Parquet scan, and fails inside when it puts off reading columns. Joins on ids still prune.
_UNSAFE_OPTIMIZERS = ("filter_pushdown", "late_materialization", "top_n_window_elimination")
MAX_TYPES = 50_000
"""Of how many files of rows the type is remembered."""
_SHUT = (
    "enable_external_access",
    "autoinstall_known_extensions",
    "autoload_known_extensions",
    "allow_community_extensions",
    "allow_persistent_secrets",
)


class Remembered:
    """The last few answers of some kind, as far as they are small; for several threads."""

    def __init__(self, entries: int = 4, rows: int = 5_000_000) -> None:
        self._lock = threading.Lock()
        self._entries = entries
        self._rows = rows
        self._tables: dict[Hashable, pa.Table] = {}

    def find(self, key: Hashable) -> pa.Table | None:
        """Return an answer that is remembered, and remember it for longer."""
        with self._lock:
            found = self._tables.pop(key, None)
            if found is not None:
                self._tables[key] = found
            return found

    def keep(self, key: Hashable, table: pa.Table) -> None:
        """Remember an answer, and forget those that were asked for longest ago."""
        if table.num_rows > self._rows:
            return
        with self._lock:
            self._tables[key] = table
            while (
                len(self._tables) > self._entries
                or sum(each.num_rows for each in self._tables.values()) > self._rows
            ):
                del self._tables[next(iter(self._tables))]


class Engine:
    """Runs SQL over the files of a store.

    Attributes:
        root: The store's folder.
        generation: How often DuckDB was started; what was put into memory is gone with the last.
        remembered: Which rows of a stream were found, in order, for whoever turns its pages.
    """

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        self.root = root
        self.generation = 0
        self._memory = (limits or Limits()).bytes
        self.remembered = Remembered()
        self._types: dict[str, pa.StructType] = {}
        self._lock = threading.Lock()
        self._connection = self._connect()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        root = self.root
        connection = database()
        # Files are named to DuckDB as patterns, so both spellings of the folder are allowed.
        folders = [f"{root}/", f"{as_pattern(str(root))}/"]
        for setting in (
            "SET GLOBAL TimeZone = 'UTC'",
            f"SET GLOBAL disabled_optimizers = {literal(unsafe_optimizers(connection))}",
            f"SET GLOBAL memory_limit = '{self._memory} B'",
            f"SET GLOBAL allowed_directories = [{', '.join(map(literal, folders))}]",
            *(f"SET GLOBAL {name} = false" for name in _SHUT),
            "SET GLOBAL lock_configuration = true",
        ):
            connection.execute(setting)
        self.generation += 1
        return connection

    def restart(self, failed: duckdb.DuckDBPyConnection | None = None) -> None:
        """Start DuckDB again and forget what was read.

        Args:
            failed: Do so only if this connection is still in use. After an error inside DuckDB, a
                connection refuses every further question.
        """
        with self._lock:
            if failed is None or self._connection is failed:
                self._types = {}
                self._connection = self._connect()

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a cursor for one question, which is interrupted when its time is over."""
        with self._lock:
            connection, generation = self._connection, self.generation
        cursor = connection.cursor()
        left = seconds_left()
        alarm = None if left is None else threading.Timer(max(left, 0.0), cursor.interrupt)
        if alarm is not None:
            alarm.daemon = True
            alarm.start()
        try:
            yield Session(cursor, generation, lambda: self.restart(connection))
        finally:
            if alarm is not None:
                alarm.cancel()
                alarm.join()
            cursor.close()

    def close(self) -> None:
        """Free what DuckDB holds."""
        self._connection.close()

    def row_types(self, paths: Iterable[str]) -> dict[str, pa.StructType]:
        """Return the type of the user's columns in each file of rows.

        Raises:
            StoreError: A file is gone or damaged.
        """
        return {path: self._row_type(path) for path in paths}

    def _row_type(self, path: str) -> pa.StructType:
        found = self._types.get(path)
        if found is None:
            try:
                found = pq.read_schema(path).field("row").type
            except FileNotFoundError as error:
                raise vanished(path) from error
            except OSError as error:
                raise unreadable(path, error) from error
            except (pa.ArrowException, KeyError, UnicodeError) as error:
                raise _damaged(str(error)) from error
            types = self._types
            types[path] = found
            while len(types) > MAX_TYPES:
                types.pop(next(iter(types)), None)  # the oldest; it is read again if need be
        return found


class Session:
    """A cursor whose errors are ours, and whose answers are Arrow tables.

    Attributes:
        generation: Which start of DuckDB it belongs to.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, generation: int, restart: Callable[[], None]
    ) -> None:
        self._cursor = cursor
        self.generation = generation
        self._restart = restart

    def register(self, name: str, table: pa.Table) -> None:
        """Give a table a name that SQL can use."""
        self._cursor.register(name, table)

    def execute(self, sql: str, params: Mapping[str, Any] | None = None) -> None:
        """Run a statement of our own that has no answer.

        Raises:
            StoreError: A file of the store is gone or damaged.
        """
        check_time()
        try:
            self._cursor.execute(sql, dict(params or {}))
        except duckdb.Error as error:
            self._note(error)
            raise _limit_of(error) or _translate(error) from error

    def table(self, sql: str, params: Mapping[str, Any] | None = None) -> pa.Table:
        """Run a query of our own.

        Raises:
            StoreError: A file of the store is gone or damaged.
        """
        check_time()
        try:
            return self._cursor.sql(sql, params=dict(params or {})).to_arrow_table()
        except duckdb.Error as error:
            self._note(error)
            raise _limit_of(error) or _translate(error) from error

    def user_table(
        self, sql: str, params: Mapping[str, Any], *, asked: str, columns: Sequence[str]
    ) -> pa.Table:
        """Run a query that holds an expression by the user.

        Raises:
            QueryError: DuckDB does not accept the expression.
            StoreError: A file of the store is gone or damaged.
        """
        names = ", ".join(f"`{each}`" for each in columns) or "none"
        check_time()
        try:
            kinds = [each.type for each in duckdb.extract_statements(sql)]
            if kinds != [duckdb.StatementType.SELECT]:
                msg = f"{asked} is more than one expression.\n\nThe columns are: {names}."
                raise QueryError(msg)
            return self._cursor.sql(sql, params=dict(params)).to_arrow_table()
        except duckdb.Error as error:
            self._note(error)
            limit = _limit_of(error)
            if limit is not None:
                raise limit from error
            if _is_about_files(error):
                raise _translate(error) from error
            first_line = str(error).strip().splitlines()[0]
            msg = f"DuckDB does not accept {asked}: {first_line}\n\nThe columns are: {names}."
            raise QueryError(msg) from error

    def _note(self, error: duckdb.Error) -> None:
        if isinstance(error, duckdb.InternalException | duckdb.FatalException):
            self._restart()


def as_pattern(path: str) -> str:
    """Spell a path so that DuckDB, which reads patterns, takes it literally.

    Examples:
        >>> as_pattern("/data/run[1]/prov")
        '/data/run[[]1]/prov'
    """
    return re.sub(r"([\[*?])", r"[\1]", path)


def vanished(path: str) -> StoreChangedError:
    """Say that a file of a committed batch is no longer there."""
    return StoreChangedError(
        f"a file of the store is gone: `{path}`. Its batch was pruned while the question was "
        "answered, or the file was deleted by hand, so the answer would be incomplete.\n\n"
        "Ask again; if the error stays, remove the batch's file in `batches/` as well, or restore "
        "the store from a backup."
    )


def unsafe_optimizers(connection: duckdb.DuckDBPyConnection) -> str:
    """Name the optimizers that must be off, for DuckDB's setting of that name."""
    known = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    return ",".join(name for name in _UNSAFE_OPTIMIZERS if (name,) in known)


def _limit_of(error: duckdb.Error) -> LimitError | None:
    """Return the limit that a question met, if that is why it failed."""
    if isinstance(error, duckdb.InterruptException):
        return out_of_time()
    return out_of_memory() if isinstance(error, duckdb.OutOfMemoryException) else None


def _is_about_files(error: duckdb.Error) -> bool:
    return isinstance(error, duckdb.IOException) or ".parquet" in str(error)


def _translate(error: duckdb.Error) -> StoreError:
    text = str(error).strip()
    missing = re.search(r'No files found that match the pattern "(.*)"', text)
    missing = missing or re.search(r'Cannot open file "(.*)": No such file', text)
    if missing:
        return vanished(missing[1])
    named = re.search(r'file "([^"]*\.parquet)"', text)
    if _NO_TEXT.search(text):
        return _no_text(text.splitlines()[0])
    is_refused = isinstance(error, duckdb.PermissionException)
    if named and not is_refused and _is_sound(named[1]):
        return _replaced(named[1])
    return _damaged(text.splitlines()[0])


_NO_TEXT = re.compile(r"invalid (?:unicode|UTF-?8)|not valid UTF-?8", re.IGNORECASE)


def _no_text(line: str) -> StoreError:
    return StoreError(
        f"a row of the store holds a text that is not UTF-8 ({line}), and such a text cannot be "
        "shown.\n\nRead the source in its own encoding, e.g. "
        '`spark.read.option("encoding", "ISO-8859-1").csv(...)`, or as bytes, '
        '`spark.read.format("binaryFile")`; or mend it while it is traced: '
        '`.withColumn("value", F.make_valid_utf8("value"))` before `clew.trace`.'
    )


def _is_sound(path: str) -> bool:
    """Tell whether all of a file can be read."""
    try:
        for part in pq.ParquetFile(path).iter_batches():
            del part
    except (OSError, pa.ArrowException, UnicodeError):
        return False
    return True


def _replaced(path: str) -> StoreChangedError:
    """Say that a file was another one when DuckDB had read its beginning."""
    return StoreChangedError(
        f"a file of the store was replaced while it was read: `{path}`. Content in it was erased "
        "meanwhile.\n\nAsk again."
    )


def _damaged(why: str) -> StoreError:
    return StoreError(
        f"a file of the store cannot be read: {why}\n\n"
        "Check the permissions of the store's folder; if the file is damaged, restore it from a "
        "backup."
    )


def literal(text: str) -> str:
    """Write text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
