"""Esker by Python's Database API 2.0, PEP 249: what programs and libraries ask any database by.

    from esker import dbapi

    with dbapi.connect("127.0.0.1:7437") as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO stock VALUES (?, ?)", ("tea", 3))
        cursor.execute("SELECT item, n FROM stock WHERE n > :least", {"least": 2})
        for item, n in cursor:
            print(item, n)

The first statement begins a transaction, which goes on until ``commit`` or ``rollback``: see
:class:`Connection`. Everything else is easier by :class:`esker.Client`.
"""

from __future__ import annotations

import datetime
import itertools
from contextlib import contextmanager
from types import TracebackType
from typing import (
    Any,
    FrozenSet,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from . import _check as check
from . import _request as requests
from ._client import Client, Transaction
from ._errors import EskerError
from ._frame import Request
from ._result import Column, Result

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, and each has its own connections."""
paramstyle = "qmark"
"""``?`` with a sequence; ``:name`` with a dict, too."""

Parameters = Union[Sequence[Any], Mapping[str, Any]]

# Statements of `executemany` that are sent together.
_BATCH = 1000
_SAVEPOINT = "esker_executemany"


# Exceptions.


class Warning(Exception):  # The name is that of PEP 249.
    """What is worth knowing; nothing raises it."""


class Error(EskerError):
    """Anything that went wrong. ``code`` is one of those of docs/reference/wire.md."""


class InterfaceError(Error):
    """This module was not used as it should be: a connection or a cursor is closed."""


class DatabaseError(Error):
    """What the database says."""


class DataError(DatabaseError):
    """A value that no field can have."""


class OperationalError(DatabaseError):
    """The connection broke, a limit was reached, or another transaction was in the way."""


class IntegrityError(DatabaseError):
    """A key exists already, a value is NULL that must not be, or a condition does not hold."""


class InternalError(DatabaseError):
    """The server failed, or a file of the database is damaged."""


class ProgrammingError(DatabaseError):
    """A wrong statement, an unknown table, or other parameters than the statement has."""


class NotSupportedError(DatabaseError):
    """What Esker has not."""


_KINDS = {
    "invalid_request": ProgrammingError,
    "not_found": ProgrammingError,
    "forbidden": ProgrammingError,
    "already_exists": IntegrityError,
    "constraint_violated": IntegrityError,
    "precondition_failed": IntegrityError,
    "damaged": InternalError,
    "internal": InternalError,
}


def _of(error: EskerError, kind: Optional[Type[Error]] = None) -> Error:
    if isinstance(error, Error):
        return error
    chosen = kind or _KINDS.get(error.code, OperationalError)
    return chosen(error.code, error.message)


@contextmanager
def _translated(kind: Optional[Type[Error]] = None) -> Iterator[None]:
    """Raises errors as those of this module."""
    try:
        yield
    except EskerError as e:
        raise _of(e, kind) from e
    except TypeError as e:
        raise ProgrammingError("invalid_request", str(e)) from e


# Types.


class _TypeObject:
    """Equals the types of columns that it stands for: ``cursor.description[0][1] == NUMBER``."""

    def __init__(self, name: str, *types: str) -> None:
        self._name = name
        self._types: FrozenSet[str] = frozenset(types)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self._types
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return self._name


STRING = _TypeObject("STRING", "text", "enum", "json", "uuid", "ipv4", "ipv6")
BINARY = _TypeObject("BINARY", "bytes")
NUMBER = _TypeObject(
    "NUMBER",
    *("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    *("f32", "f64", "decimal", "bool"),
)
DATETIME = _TypeObject("DATETIME", "date", "time", "timestamp")
ROWID = _TypeObject("ROWID")

Date = datetime.date
Time = datetime.time


def Binary(value: Union[bytes, bytearray, memoryview]) -> bytes:
    """The same bytes."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"Binary: expected bytes, found {type(value).__name__}")
    return bytes(value)


def Timestamp(
    year: int,
    month: int,
    day: int,
    hour: int = 0,
    minute: int = 0,
    second: int = 0,
    microsecond: int = 0,
) -> datetime.datetime:
    """A timestamp in UTC."""
    utc = datetime.timezone.utc
    return datetime.datetime(year, month, day, hour, minute, second, microsecond, utc)


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The timestamp of seconds since 1970."""
    return datetime.datetime.fromtimestamp(ticks, datetime.timezone.utc)


def DateFromTicks(ticks: float) -> datetime.date:
    """The date of seconds since 1970, in UTC."""
    return TimestampFromTicks(ticks).date()


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of the day of seconds since 1970, in UTC."""
    return TimestampFromTicks(ticks).time()


# Connections.


def connect(
    url: str = "127.0.0.1:7437",
    *,
    token: Optional[str] = None,
    database: Optional[str] = None,
    timeout: Optional[float] = 60.0,
    autocommit: bool = False,
    serializable: bool = False,
    rows: str = "row",
    nan_as_null: bool = False,
    naive_as_utc: bool = True,
    iso_times: bool = False,
) -> "Connection":
    """Connects to a server. The arguments are those of :class:`esker.Client`, but that a datetime
    without a zone is taken as UTC unless ``naive_as_utc`` is false; ``autocommit`` and
    ``serializable`` are said by :class:`Connection`."""
    with _translated():
        check.flag("autocommit", autocommit)
        check.flag("serializable", serializable)
        client = Client(
            url,
            token=token,
            database=database,
            timeout=timeout,
            rows=rows,
            nan_as_null=nan_as_null,
            naive_as_utc=naive_as_utc,
            iso_times=iso_times,
        )
    return Connection(client, autocommit, serializable)


class Connection:
    """A connection to a server, with at most one transaction at a time.

    The first statement begins a transaction, and so does the first after each ``commit`` or
    ``rollback``. Its statements, of all cursors, see the database as it was when it began, and what
    it changed itself; definitions such as ``CREATE TABLE`` are part of it. Where another
    transaction has changed the same rows, ``commit`` is an :class:`OperationalError` whose code is
    ``conflict``, and nothing is done: begin again. With ``serializable`` that holds for rows that
    were read, too. After an error that ended the transaction, such as a connection that broke,
    ``rollback`` comes before anything else.

    With ``autocommit`` each statement is done by itself, and each ``executemany``.

    ``with connect(…) as connection`` commits at its end, or rolls back after an error, and closes.
    """

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, client: Client, autocommit: bool, serializable: bool) -> None:
        self._client = client
        self._is_serializable = serializable
        self._autocommit = autocommit
        self._transaction: Optional[Transaction] = None
        self._is_lost = False
        self._is_closed = False

    def __enter__(self) -> "Connection":
        self._expect_open()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            if not self._is_closed and kind is None:
                self.commit()
        finally:
            self.close()

    @property
    def autocommit(self) -> bool:
        """True when each statement is done by itself. It is changed outside of transactions."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._expect_open()
        with _translated():
            check.flag("autocommit", value)
        if value == self._autocommit:
            return
        if self._transaction is not None or self._is_lost:
            message = "a transaction is open: commit or roll back before autocommit is changed"
            raise ProgrammingError("invalid_request", message)
        self._autocommit = value

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._transaction is not None

    def cursor(self) -> "Cursor":
        """Something to ask by."""
        self._expect_open()
        return Cursor(self)

    def commit(self) -> None:
        """Ends the transaction, if one is open."""
        self._expect_open()
        self._expect_whole()
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            with _translated():
                transaction.commit()

    def rollback(self) -> None:
        """Ends the transaction, and nothing of it is done."""
        self._expect_open()
        self._is_lost = False
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            transaction._give_up()

    def close(self) -> None:
        """Ends the connection; a transaction is rolled back."""
        self._is_closed = True
        self._transaction = None
        self._client.close()

    def _expect_open(self) -> None:
        if self._is_closed:
            raise InterfaceError("invalid_request", "the connection is closed")

    def _expect_whole(self) -> None:
        if self._is_lost:
            message = "the transaction was ended by an error: call rollback()"
            raise OperationalError("invalid_request", message)

    def _begun(self) -> Transaction:
        if self._transaction is None:
            self._transaction = self._client.begin(serializable=self._is_serializable)
        return self._transaction

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Notices when an error has ended the transaction."""
        self._expect_open()
        self._expect_whole()
        try:
            with _translated():
                yield
        finally:
            if self._transaction is not None and self._transaction._ended_by is not None:
                self._transaction = None
                self._is_lost = True

    def _run(self, request: Request[Result]) -> Result:
        with self._asking():
            if self._autocommit:
                return self._client._run(request)
            return self._begun()._run(request)

    def _run_many(self, asked: Iterator[Request[Result]]) -> int:
        """Runs statements, all of them or none; how many rows they changed."""
        with self._asking():
            if self._autocommit:
                with self._client.transaction(serializable=self._is_serializable) as transaction:
                    return _run_in(transaction, asked)
            transaction = self._begun()
            transaction.sql(f"SAVEPOINT {_SAVEPOINT}")
            try:
                changed = _run_in(transaction, asked)
            except BaseException:
                if transaction._ended_by is None:
                    transaction.sql(f"ROLLBACK TO {_SAVEPOINT}")
                raise
            transaction.sql(f"RELEASE {_SAVEPOINT}")
            return changed


def _run_in(transaction: Transaction, asked: Iterator[Request[Result]]) -> int:
    changed = 0
    batch = list(itertools.islice(asked, _BATCH))
    while batch:
        for outcome in transaction._run_all(batch):
            if isinstance(outcome, EskerError):
                raise outcome
            changed += outcome.changed
        batch = list(itertools.islice(asked, _BATCH))
    return changed


Description = Tuple[str, str, None, None, Optional[int], Optional[int], None]


def _described(column: Column) -> Description:
    precision = scale = None
    kind, found, digits = column.type.partition("(")
    if kind == "decimal" and found:
        precision, scale = map(int, digits.rstrip(")").split(","))
    return (column.name, column.type, None, None, precision, scale, None)


class Cursor:
    """Statements, and the rows of the last of them: all of them have come when it was run."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        """How many rows ``fetchmany`` gives unless it is asked for another number."""
        self.lastrowid: None = None
        """Esker gives keys by ``INSERT … RETURNING``."""
        self._is_closed = False
        self._set(None)

    def _set(self, result: Optional[Result]) -> None:
        self._rows: Optional[List[Any]] = None
        self._place = 0
        self.rowcount = -1
        """How many rows the statement changed, or has; -1 where that is not known."""
        self.description: Optional[List[Description]] = None
        """Of each column its name and type, and the digits of a decimal; else ``None``."""
        if result is not None and result.columns:
            self._rows = result.rows
            self.rowcount = len(result.rows)
            self.description = [_described(column) for column in result.columns]
        elif result is not None and result.text is None:
            self.rowcount = result.changed

    @property
    def rownumber(self) -> Optional[int]:
        """The position of the next row, from 0."""
        return None if self._rows is None else self._place

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the rows; nothing more is asked by it."""
        self._is_closed = True
        self._set(None)

    def _expect_open(self) -> None:
        self.connection._expect_open()
        if self._is_closed:
            raise InterfaceError("invalid_request", "the cursor is closed")

    def _request(self, operation: str, parameters: Parameters) -> Request[Result]:
        codec = self.connection._client._codec
        with _translated(DataError):
            return requests.sql(codec, operation, parameters)

    def execute(self, operation: str, parameters: Parameters = ()) -> "Cursor":
        """Runs a statement, with a sequence for ``?`` or a dict for ``:name``; returns itself."""
        self._expect_open()
        self._set(None)
        with _translated():
            requests.refuse_transaction(operation)
        self._set(self.connection._run(self._request(operation, parameters)))
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> "Cursor":
        """Runs a statement with each of several parameters: all of that is done, or nothing. Rows
        of answers are dropped."""
        self._expect_open()
        self._set(None)
        with _translated():
            requests.refuse_transaction(operation)
            check.iterable("parameters", seq_of_parameters)
        asked = (self._request(operation, parameters) for parameters in seq_of_parameters)
        self.rowcount = self.connection._run_many(asked)
        return self

    def _left(self) -> List[Any]:
        self._expect_open()
        if self._rows is None:
            raise ProgrammingError("invalid_request", "there are no rows: run a query first")
        return self._rows

    def _take(self, end: int) -> List[Any]:
        rows = self._left()[self._place : end]
        self._place += len(rows)
        return rows

    def fetchone(self) -> Any:
        """The next row; ``None`` behind the last."""
        rows = self._take(self._place + 1)
        return rows[0] if rows else None

    def fetchmany(self, size: Optional[int] = None) -> List[Any]:
        """The next rows, at most so many."""
        return self._take(self._place + max(0, self.arraysize if size is None else size))

    def fetchall(self) -> List[Any]:
        """All rows that are left."""
        return self._take(len(self._left()))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        rows = self._take(self._place + 1)
        if not rows:
            raise StopIteration
        return rows[0]

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing: values say themselves how large they are."""

    def setoutputsize(self, size: int, column: Optional[int] = None) -> None:
        """Does nothing: values come whole."""
