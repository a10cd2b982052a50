"""The blocking client."""

from __future__ import annotations

import random
import time
import uuid
from contextlib import contextmanager
from types import TracebackType
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from . import _request as requests
from ._errors import EskerError
from ._request import Answer, Column, Frame, FrameReader, Key, Request, Result, Row
from ._socket import Socket

T = TypeVar("T")
Text = Union[bytes, str]

# So many bytes of a load wait to be sent at most.
_UNSENT_BYTES_MAX = 1 << 20


class Client:
    """A connection to a server. One thread uses it at a time; see :class:`esker.Pool` for more.

    ``url`` is ``HOST:PORT``, ``esker://HOST:PORT``, ``eskers://HOST:PORT?ca=FILE`` or ``unix:PATH``.
    ``timeout`` is how many seconds an answer may take; then the connection is closed, and the next
    request connects again. What only reads is asked once more when the connection broke, outside of
    transactions; what writes is with ``retry_writes``, under a key by which the server does it once.
    """

    def __init__(
        self,
        url: str = "127.0.0.1:7437",
        *,
        token: Optional[str] = None,
        database: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retry_writes: bool = False,
    ) -> None:
        self._url = url
        self._greeting = None if token is None and database is None else (token, database)
        self._timeout = timeout
        self._retry_writes = retry_writes
        self._socket: Optional[Socket] = None
        self._reader = FrameReader()
        self._next_id = 1
        self._in_transaction = False
        self._is_streaming = False
        self._connect()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; the server rolls a transaction back."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._in_transaction = False
        self._is_streaming = False

    @property
    def in_transaction(self) -> bool:
        """True between ``begin`` and its end."""
        return self._in_transaction

    # Asking.

    def _connect(self) -> Socket:
        if self._socket is not None:
            return self._socket
        if self._in_transaction:
            raise EskerError("connection", "the connection broke, and with it the transaction")
        self._socket = Socket(self._url, self._timeout)
        self._reader = FrameReader()
        self._socket.send(requests.GREETING)
        if self._greeting is not None:
            try:
                self._ask(requests.hello(*self._greeting))
            except EskerError:
                self.close()
                raise
        return self._socket

    def _id(self) -> int:
        # 0 is the server's.
        found = self._next_id
        self._next_id = found % 0xFFFF_FFFF + 1
        return found

    def _receive(self, socket: Socket) -> Frame:
        while True:
            received = self._reader.next()
            if received is not None:
                if received.id == 0:
                    error = Answer()
                    error.take(received)
                    raise error.error or EskerError("connection", "the server sent nonsense")
                return received
            self._reader.feed(socket.receive())

    def _ask(self, request: Request[T]) -> T:
        """Asks once. When the connection breaks, it is closed."""
        socket = self._connect()
        if self._is_streaming:
            raise EskerError("invalid_request", "the rows of a stream are still being read")
        request_id = self._id()
        sent = request.frame(request_id)
        answer = Answer()
        try:
            socket.send(sent)
            while True:
                received = self._receive(socket)
                if received.id == request_id and answer.take(received):
                    break
        except BaseException:
            # What follows would be taken for the answer to something else.
            self._break()
            raise
        return request.result(answer)

    def _break(self) -> None:
        was_in_transaction = self._in_transaction
        self.close()
        self._in_transaction = was_in_transaction

    def _run(self, request: Request[T]) -> T:
        if self._retry_writes and not self._in_transaction and request.kind in requests.WRITES:
            request = request.once(uuid.uuid4().hex)
        try:
            return self._ask(request)
        except EskerError as e:
            if e.code != "connection" or not request.is_safe or self._in_transaction:
                raise
        return self._ask(request)

    # Tables.

    def ping(self) -> None:
        """Whether anybody is there."""
        return self._run(requests.ping())

    def tables(self) -> List[str]:
        """The names of tables."""
        return self._run(requests.tables())

    def schema(self, table: str) -> str:
        """The fields, key and indexes of a table."""
        return self._run(requests.schema(table))

    def get(self, table: str, key: Key) -> Optional[Row]:
        """The row with a key, which is a value, or a tuple of those of several fields."""
        return self._run(requests.get(table, key))

    def get_many(self, table: str, keys: Iterable[Key]) -> List[Optional[Row]]:
        """The rows with some keys, in their order, all as of one commit."""
        return self._run(requests.get_many(table, keys))

    def exists(self, table: str, key: Key) -> bool:
        """Whether there is a row with a key."""
        return self._run(requests.exists(table, key))

    def exists_many(self, table: str, keys: Iterable[Key]) -> List[bool]:
        """The same of some keys."""
        return self._run(requests.exists_many(table, keys))

    def insert(self, table: str, row: Sequence[Any], *, replace: bool = False) -> Optional[int]:
        """Adds a row, which has a value for every field; its number, the key of one without."""
        return self._run(requests.insert(table, row, replace))

    def insert_many(
        self, table: str, rows: Iterable[Sequence[Any]], *, replace: bool = False
    ) -> int:
        """Adds rows, all or none; how many. For very many, see :meth:`load`."""
        return self._run(requests.insert_many(table, rows, replace))

    def update(
        self, table: str, key: Key, fields: Optional[Mapping[str, Any]] = None, **more: Any
    ) -> bool:
        """Changes fields of a row; false when there is none."""
        return self._run(requests.update(table, key, {**(fields or {}), **more}))

    def update_many(self, table: str, updates: Iterable[Tuple[Key, Mapping[str, Any]]]) -> int:
        """Changes fields of rows, each by its key, in one commit; how many updates found a row."""
        return self._run(requests.update_many(table, updates))

    def delete(self, table: str, key: Key) -> bool:
        """Removes a row; false when there is none."""
        return self._run(requests.delete(table, key))

    def delete_many(self, table: str, keys: Iterable[Key]) -> int:
        """Removes rows, in one commit; how many there were."""
        return self._run(requests.delete_many(table, keys))

    # Statements and queries.

    def sql(self, text: str, parameters: Sequence[Any] = ()) -> Result:
        """Runs a statement; ``?`` or ``$1`` in it are the parameters."""
        return self._run(requests.sql(text, parameters))

    def query(self, query: Union[str, Mapping[str, Any]]) -> Result:
        """Asks a query as JSON: see docs/reference/query-json.md."""
        return self._run(requests.query(query))

    def explain(self, query: Union[str, Mapping[str, Any]]) -> str:
        """How a query is answered."""
        return self._run(requests.explain(query))

    def admin(self, task: Union[str, Mapping[str, Any]]) -> Dict[str, Any]:
        """Does what looks after the database: ``client.admin({"task": "check"})``."""
        return self._run(requests.admin(task))

    @contextmanager
    def stream(self, text: str, parameters: Sequence[Any] = ()) -> Iterator["Stream"]:
        """The rows of a statement as they come, however many: ``with client.stream(…) as rows``.

        Whoever leaves early cancels the rest. Nothing else can be asked meanwhile.
        """
        request = requests.sql(text, parameters)
        socket = self._connect()
        if self._is_streaming:
            raise EskerError("invalid_request", "the rows of another stream are still being read")
        request_id = self._id()
        socket.send(request.frame(request_id))
        stream = Stream(self, socket, request_id)
        self._is_streaming = True
        try:
            stream._begin()
            yield stream
        finally:
            if self._socket is socket:
                stream._end()
            self._is_streaming = False

    # Transactions.

    def begin(self, *, serializable: bool = False, read_only: bool = False) -> None:
        """Begins a transaction: everything until ``commit`` or ``rollback`` is part of it."""
        self._run(requests.begin(serializable, read_only))
        self._in_transaction = True

    def commit(self) -> None:
        """Ends a transaction; ``conflict`` when somebody else has changed the same."""
        self._end_transaction(requests.commit())

    def rollback(self) -> None:
        """Ends a transaction, and nothing of it is done."""
        self._end_transaction(requests.rollback())

    def _end_transaction(self, request: Request[None]) -> None:
        try:
            self._ask(request)
        finally:
            self._in_transaction = False

    @contextmanager
    def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> Iterator["Client"]:
        """A transaction that is committed at the end of ``with``, and rolled back by an error."""
        self.begin(serializable=serializable, read_only=read_only)
        try:
            yield self
        except BaseException:
            if self._socket is not None:
                try:
                    self.rollback()
                except EskerError:
                    self.close()
            self._in_transaction = False
            raise
        self.commit()

    def transact(
        self,
        body: Callable[["Client"], T],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """Runs a transaction, again while it conflicts with others, at most so often."""
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction(serializable=serializable):
                    return body(self)
            except EskerError as e:
                if e.code != "conflict" or attempt == attempts:
                    raise
            time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.1)))
        raise EskerError("invalid_request", f"attempts: expected at least 1, found {attempts}")

    # Loads.

    def load(
        self,
        table: str,
        rows: Iterable[Sequence[Any]],
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
    ) -> int:
        """Adds any number of rows: all at once when it returns, or none; how many.

        ``on_duplicate`` is ``error``, ``skip`` or ``replace``. By a ``key`` the server loads the
        rows once, however often they are sent with it; ``skip`` goes without. With ``retry_writes``
        rows that can be gone through again, as those of a list, have one of their own, and are sent
        again when the connection broke.
        """
        return self._load_once(
            (table, "messagepack", on_duplicate, key), rows, requests.chunks_of_rows
        )

    def load_text(
        self,
        table: str,
        form: str,
        parts: Iterable[Text],
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
    ) -> int:
        """The same of ``csv`` (the first line names the columns) or ``ndjson``, cut anywhere:
        an open file will do."""
        return self._load_once((table, form, on_duplicate, key), parts, requests.chunks_of_text)

    def _load_once(
        self,
        asked: Tuple[str, str, str, Optional[str]],
        rows: Iterable[T],
        chunks: Callable[[Iterable[T]], Iterator[bytes]],
    ) -> int:
        table, form, on_duplicate, key = asked
        again = not hasattr(rows, "__next__") and not self._in_transaction
        if key is None and self._retry_writes and again and on_duplicate != "skip":
            key = uuid.uuid4().hex
        request = requests.bulk_begin(table, form, on_duplicate, key)
        try:
            return self._load(request, chunks(rows))
        except EskerError as e:
            if e.code != "connection" or key is None or not again:
                raise
        return self._load(request, chunks(rows))

    def _load(self, request: Request[int], chunks: Iterator[bytes]) -> int:
        socket = self._connect()
        if self._is_streaming:
            raise EskerError("invalid_request", "the rows of a stream are still being read")
        request_id = self._id()
        answer = Answer()
        is_answered = False
        try:
            socket.send(request.frame(request_id))
            for chunk in chunks:
                socket.send(requests.frame(request_id, requests.BULK_CHUNK, chunk))
                self._reader.feed(socket.flush(_UNSENT_BYTES_MAX))
                received = self._reader.next()
                if received is not None:
                    # It has failed: the rest need not be sent.
                    is_answered = received.id in (request_id, 0) and answer.take(received)
                    break
            socket.send(requests.frame(request_id, requests.BULK_END))
            while not is_answered:
                received = self._receive(socket)
                is_answered = received.id == request_id and answer.take(received)
        except BaseException:
            # The server loads nothing of what does not come to its end.
            self._break()
            raise
        return request.result(answer)

    # Buckets.

    def buckets(self) -> List[str]:
        """The names of buckets."""
        return self._run(requests.buckets())

    def bucket(self, name: str) -> "Bucket":
        """Keys and values, as bytes. The first put makes it."""
        return Bucket(self._run, name)

    # Several at once.

    def pipeline(self) -> "Pipeline":
        """Requests that are sent together: see :class:`Pipeline`."""
        return Pipeline(self)

    def _run_all(self, asked: Sequence[Request[Any]]) -> List[Union[Any, EskerError]]:
        socket = self._connect()
        if self._is_streaming:
            raise EskerError("invalid_request", "the rows of a stream are still being read")
        waiting: Dict[int, Tuple[int, Request[Any], Answer]] = {}
        frames = bytearray()
        for place, request in enumerate(asked):
            request_id = self._id()
            frames += request.frame(request_id)
            waiting[request_id] = (place, request, Answer())
        results: List[Union[Any, EskerError]] = [None] * len(asked)
        try:
            socket.send(bytes(frames))
            while waiting:
                received = self._receive(socket)
                if received.id not in waiting:
                    continue
                place, request, answer = waiting[received.id]
                if not answer.take(received):
                    continue
                del waiting[received.id]
                try:
                    results[place] = request.result(answer)
                except EskerError as e:
                    results[place] = e
        except BaseException:
            self._break()
            raise
        return results


class Stream:
    """Rows as they come."""

    def __init__(self, client: Client, socket: Socket, request_id: int) -> None:
        self._client = client
        self._socket = socket
        self._id = request_id
        self._waiting: List[Row] = []
        self._is_done = False
        self.columns: List[Column] = []
        """The columns."""

    def _take(self) -> None:
        """Reads a frame."""
        try:
            received = self._client._receive(self._socket)
            while received.id != self._id:
                received = self._client._receive(self._socket)
            answer = Answer()
            self._is_done = answer.take(received)
        except BaseException:
            self._is_done = True
            self._client._break()
            raise
        self.columns = answer.columns or self.columns
        self._waiting.extend(answer.rows)
        if answer.error is not None:
            raise answer.error

    def _begin(self) -> None:
        self._take()

    def _end(self) -> None:
        if self._is_done:
            return
        payload = requests.cancelled(self._id)
        self._socket.send(requests.frame(self._client._id(), requests.CANCEL, payload))
        while not self._is_done:
            self._waiting.clear()
            try:
                self._take()
            except EskerError as e:
                if e.code != "cancelled":
                    raise

    def __iter__(self) -> Iterator[Row]:
        while True:
            waiting, self._waiting = self._waiting, []
            yield from waiting
            if self._waiting:
                continue
            if self._is_done:
                return
            self._take()


class Bucket:
    """Keys and values, as bytes; texts are sent as UTF-8."""

    def __init__(self, run: Callable[[Request[Any]], Any], name: str) -> None:
        self._run = run
        self.name = name

    def get(self, key: Text) -> Optional[bytes]:
        """The value of a key."""
        found: List[Optional[bytes]] = self._run(requests.bucket_get(self.name, [key]))
        return found[0]

    def get_many(self, keys: Iterable[Text]) -> List[Optional[bytes]]:
        """The values of keys, in their order."""
        found: List[Optional[bytes]] = self._run(requests.bucket_get(self.name, keys))
        return found

    def put(self, key: Text, value: Text, *, ttl: Union[None, bool, float] = None) -> None:
        """Puts a value; ``ttl`` is seconds from now, ``False`` never, ``None`` as the bucket says."""
        self._run(requests.bucket_put(self.name, {key: value}, ttl))

    def put_many(
        self, entries: Mapping[Text, Text], *, ttl: Union[None, bool, float] = None
    ) -> int:
        """Puts values, all or none; how many."""
        count: int = self._run(requests.bucket_put(self.name, entries, ttl))
        return count

    def remove(self, key: Text) -> bool:
        """Removes a key; false when there is none."""
        return self.remove_many([key]) == 1

    def remove_many(self, keys: Iterable[Text]) -> int:
        """Removes keys; how many there were."""
        count: int = self._run(requests.bucket_remove(self.name, keys))
        return count

    def increment(self, key: Text, by: int = 1) -> int:
        """Adds to a number; what it is then."""
        number: int = self._run(requests.bucket_increment(self.name, key, by))
        return number

    def range(
        self,
        start: Optional[Text] = None,
        end: Optional[Text] = None,
        *,
        prefix: Optional[Text] = None,
        limit: Optional[int] = None,
        reverse: bool = False,
    ) -> List[Tuple[bytes, bytes]]:
        """Keys from ``start`` up to ``end``, which is not among them, with their values."""
        asked = requests.bucket_range(self.name, start, end, prefix, limit, reverse)
        found: List[Tuple[bytes, bytes]] = self._run(asked)
        return found


class Pending(Generic[T]):
    """What a request of a pipeline will answer."""

    def __init__(self) -> None:
        self._outcome: Optional[Tuple[T]] = None
        self._error: Optional[EskerError] = None

    def result(self) -> T:
        """The answer, or its error, once the pipeline was run."""
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise EskerError("invalid_request", "the pipeline has not been run yet")
        return self._outcome[0]


class Pipeline:
    """Requests that are sent together and answered together.

    At the end of ``with`` they are run; each tells its own result or error then. They are done in
    their order, as far as they ask for keys.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: List[Tuple[Request[Any], Pending[Any]]] = []

    def __enter__(self) -> "Pipeline":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if kind is None:
            self.run()

    def run(self) -> None:
        """Sends what was asked since, and reads all answers."""
        asked, self._asked = self._asked, []
        outcomes = self._client._run_all([request for request, _ in asked])
        for (_, pending), outcome in zip(asked, outcomes):
            if isinstance(outcome, EskerError):
                pending._error = outcome
            else:
                pending._outcome = (outcome,)

    def _push(self, request: Request[T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._asked.append((request, pending))
        return pending

    def get(self, table: str, key: Key) -> Pending[Optional[Row]]:
        """As :meth:`Client.get`."""
        return self._push(requests.get(table, key))

    def exists(self, table: str, key: Key) -> Pending[bool]:
        """As :meth:`Client.exists`."""
        return self._push(requests.exists(table, key))

    def insert(
        self, table: str, row: Sequence[Any], *, replace: bool = False
    ) -> Pending[Optional[int]]:
        """As :meth:`Client.insert`."""
        return self._push(requests.insert(table, row, replace))

    def update(
        self, table: str, key: Key, fields: Optional[Mapping[str, Any]] = None, **more: Any
    ) -> Pending[bool]:
        """As :meth:`Client.update`."""
        return self._push(requests.update(table, key, {**(fields or {}), **more}))

    def delete(self, table: str, key: Key) -> Pending[bool]:
        """As :meth:`Client.delete`."""
        return self._push(requests.delete(table, key))

    def sql(self, text: str, parameters: Sequence[Any] = ()) -> Pending[Result]:
        """As :meth:`Client.sql`."""
        return self._push(requests.sql(text, parameters))

    def bucket_get(self, bucket: str, key: Text) -> Pending[List[Optional[bytes]]]:
        """As :meth:`Bucket.get_many` of one key."""
        return self._push(requests.bucket_get(bucket, [key]))

    def bucket_put(
        self, bucket: str, key: Text, value: Text, *, ttl: Union[None, bool, float] = None
    ) -> Pending[int]:
        """As :meth:`Bucket.put`."""
        return self._push(requests.bucket_put(bucket, {key: value}, ttl))
