"""The blocking client."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from types import TracebackType
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from . import _check as check
from . import _frame as frames
from . import _load as loads
from . import _options as rules
from . import _request as requests
from ._batch import Values
from ._codec import PLAIN, codec
from ._errors import EskerError
from ._fields import Fields, KnownFields
from ._frame import Frame, FrameReader, Request
from ._load import Load, Parts, Rows
from ._options import Options
from ._pipeline import Pipeline
from ._result import Column
from ._row import Row
from ._socket import Socket
from ._surface import Surface
from ._tail import OnGap, Tail, Where

T = TypeVar("T")

# So many bytes of a load wait to be sent at most.
_UNSENT_BYTES_MAX = 1 << 20


class _Turn:
    """One thread after another; and within its own turn none begins another."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._owner: Optional[int] = None
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            # The thread that had it is one of the parent's.
            self._begin()
        if self._owner == threading.get_ident():
            raise EskerError("invalid_request", "the client is in the midst of another request")
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = None
        self._lock.release()


def _outcome(
    ask: Callable[[Request[str]], str], request: Request[str]
) -> Union[str, EskerError]:
    try:
        return ask(request)
    except EskerError as e:
        return e


class Client(Surface):
    """A connection to a server. Threads that share it take turns; see :class:`esker.Pool` for more.

    ``url`` is ``HOST:PORT``, ``esker://HOST:PORT``, ``eskers://HOST:PORT?ca=FILE`` or
    ``unix:PATH``. ``timeout`` is how many seconds an answer may take; then the connection is
    closed, and the next request connects again. A connection that the server has closed is
    noticed before anything is sent, and made anew. What only reads is asked once more when the
    connection broke meanwhile, outside of transactions; what writes is with ``retry_writes``,
    under a key by which the server does it once.

    ``rows`` says what the rows of answers are: ``"row"``, which is :class:`esker.Row`, ``"tuple"``
    or ``"dict"``. With ``nan_as_null`` a NaN is sent as NULL, with ``naive_as_utc`` a datetime
    without a zone is one in UTC, and with ``iso_times`` dates and times of answers are ISO texts.

    While a transaction is open on the client, everything else is refused: only the transaction
    object asks within it. In a process that was forked the client connects anew; a transaction and
    a stream stay with the parent.
    """

    def __init__(
        self,
        url: str = "127.0.0.1:7437",
        *,
        token: Optional[str] = None,
        database: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retry_writes: bool = False,
        rows: str = "row",
        nan_as_null: bool = False,
        naive_as_utc: bool = False,
        iso_times: bool = False,
    ) -> None:
        chosen = codec(rows, nan_as_null, naive_as_utc, iso_times)
        self._prepare(rules.options(url, token, database, timeout, retry_writes, chosen))
        with self._turn:
            self._connect()

    def _prepare(self, options: Options) -> None:
        self._options = options
        self._codec = options.codec
        self._fields = KnownFields()
        self._turn = _Turn()
        self._socket: Optional[Socket] = None
        self._reader = FrameReader()
        self._next_id = 1
        self._transaction: Optional[Transaction] = None
        self._is_streaming = False
        self._is_aborted = False

    @classmethod
    def _of(cls, options: Options) -> "Client":
        """A client that connects when it is asked."""
        client = cls.__new__(cls)
        client._prepare(options)
        return client

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
        """Ends the connection; the server rolls a transaction back. What is asked afterwards
        connects again."""
        self._shut(rules.ENDED_TRANSACTION)

    def _shut(self, why: str) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()
        self._is_streaming = False
        if self._transaction is not None:
            self._transaction._end(why)

    def _break(self) -> None:
        """Ends a connection of which it is not known what is on its way."""
        self._shut(rules.BROKEN_TRANSACTION)

    def _abort(self) -> None:
        """Ends the connection for good, though another thread may be using it."""
        self._is_aborted = True
        if self._socket is not None:
            self._socket.abort()

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._transaction is not None

    @property
    def _is_busy(self) -> bool:
        """True while a transaction is open, or the rows of a stream are read."""
        return self._transaction is not None or self._is_streaming

    # Asking.

    def _expect_process(self) -> None:
        """Lets go of a connection that is the parent's of this process."""
        if self._socket is not None and self._socket.is_inherited:
            self._break()

    def _connect(self) -> Socket:
        """The connection, made anew where it broke meanwhile: nothing is sent into a dead one."""
        if self._is_aborted:
            raise EskerError("connection", rules.CLOSED)
        if self._socket is not None and (self._is_streaming or self._is_alive(self._socket)):
            return self._socket
        self.close()
        self._socket = Socket(self._options.url, self._options.timeout)
        self._reader = FrameReader()
        self._socket.send(frames.GREETING)
        if self._options.token is not None or self._options.database is not None:
            try:
                hello = requests.hello(self._options.token, self._options.database)
                self._ask_on(self._socket, hello)
            except EskerError:
                self.close()
                raise
        return self._socket

    def _is_alive(self, socket: Socket) -> bool:
        came = socket.poll()
        if came is None:
            return False
        self._reader.feed(came)
        try:
            received = self._reader.next() if came else None
            while received is not None and received.id != 0:
                received = self._reader.next()
        except EskerError:
            return False
        # What has no id is the last that the server says.
        return received is None

    def _expect_free(self) -> None:
        self._expect_process()
        if self._transaction is not None:
            raise EskerError("invalid_request", rules.OPEN_TRANSACTION)
        self._expect_read()

    def _expect_read(self) -> None:
        if self._is_streaming:
            raise EskerError("invalid_request", "the rows of a stream are still being read")

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
                    raise frames.last_words(received)
                return received
            self._reader.feed(socket.receive())

    def _ask_on(self, socket: Socket, request: Request[T]) -> T:
        """Asks once. When the connection breaks, it is closed."""
        request_id = self._id()
        sent = request.frame(request_id)
        answer = request.answer()
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
        outcome = request.outcome(answer)
        self._fields.look_at(outcome)
        return frames.expect(outcome)

    def _ask(self, request: Request[T]) -> T:
        self._expect_free()
        return self._ask_on(self._connect(), request)

    def _ask_twice(self, request: Request[T]) -> T:
        """Asks once more where the connection broke, and nothing is done twice by that."""
        try:
            return self._ask(request)
        except EskerError as e:
            if e.code != "connection" or not request.is_safe:
                raise
        return self._ask(request)

    def _run(self, request: Request[T]) -> T:
        with self._turn:
            request = self._fitted(request, self._ask_twice)
            return self._ask_twice(rules.with_key(request, self._options.retry_writes))

    def _fitted(self, request: Request[T], ask: Callable[[Request[str]], str]) -> Request[T]:
        """A request as it is sent, once the fields that it needs are known."""
        if request.table is None:
            return request
        return request.fitted(self._learn(request.table, ask))

    def _learn(self, table: str, ask: Callable[[Request[str]], str]) -> Optional[Fields]:
        if not self._fields.has(table):
            self._fields.learn(table, _outcome(ask, requests.schema(PLAIN, table)))
        return self._fields.of(table)

    @contextmanager
    def stream(
        self,
        text: str,
        parameters: Values = (),
        *,
        rows: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
        iso_times: Optional[bool] = None,
    ) -> Iterator["Stream"]:
        """The rows of a statement as they come, however many: ``with client.stream(…) as rows``.

        At the end of ``with`` the rest is cancelled. Nothing else can be asked meanwhile.
        """
        codec = self._codec.but(rows, nan_as_null, iso_times)
        request = requests.sql(codec, text, parameters)
        with self._turn:
            self._expect_free()
            stream = Stream(self, self._connect(), request)
        with stream:
            yield stream

    def tail(
        self,
        stream: str,
        *,
        after: Union[str, int] = "now",
        where: Where = None,
        on_gap: Optional[OnGap] = None,
        patience: Optional[float] = 60.0,
    ) -> Tail:
        """The events of a stream as they arrive, each once and only once the disk has it, for as
        long as they are read: ``for event in client.tail(…)``.

        ``after`` is ``now``, ``start``, the id of an event, or its row id; ``where`` a condition as
        queries in JSON have it. It has a connection of its own, and connects again for
        ``patience`` seconds when that breaks. ``on_gap`` is called with the first and the last row
        id where retention took events before they were told; without it, that is an error.
        """
        return Tail(Client._of(self._options), stream, after, where, on_gap, patience)

    # Transactions.

    def begin(self, *, serializable: bool = False, read_only: bool = False) -> "Transaction":
        """Begins a transaction, which goes on until its ``commit`` or ``rollback``."""
        request = requests.begin(serializable, read_only)
        with self._turn:
            self._ask(request)
            self._transaction = Transaction(self)
            return self._transaction

    @contextmanager
    def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> Iterator["Transaction"]:
        """A transaction that is committed at the end of ``with``, and rolled back by an error:
        ``with client.transaction() as tx``. What is asked of ``tx`` is done within it."""
        transaction = self.begin(serializable=serializable, read_only=read_only)
        try:
            yield transaction
        except BaseException:
            transaction._give_up()
            raise
        if not transaction._is_finished:
            transaction.commit()

    def transact(
        self,
        body: Callable[["Transaction"], T],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """Runs a transaction, again while it conflicts with others, at most so often."""
        check.integer("attempts", attempts, 1, 1 << 31)
        attempt = 1
        while True:
            try:
                with self.transaction(serializable=serializable) as transaction:
                    return body(transaction)
            except EskerError as e:
                pause = rules.conflict_pause(e, attempt, attempts)
            time.sleep(pause)
            attempt += 1

    # Loads.

    def load(
        self,
        table: str,
        rows: Rows,
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
    ) -> int:
        """Adds any number of rows, as tuples or dicts: all at once when it returns, or none; how
        many.

        ``on_duplicate`` is ``error``, ``skip`` or ``replace``. By a ``key`` the server loads the
        rows once, however often they are sent with it; ``skip`` goes without. With ``retry_writes``
        rows that can be gone through again, as those of a list, have one of their own, and are sent
        again when the connection broke.
        """
        if key is None and self._options.retry_writes:
            key = loads.load_key(rows, on_duplicate)
        codec = self._codec.but(nan_as_null=nan_as_null)
        return self._load(loads.load(codec, table, rows, on_duplicate=on_duplicate, key=key))

    def load_text(
        self,
        table: str,
        form: str,
        parts: Parts,
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
    ) -> int:
        """The same of ``csv`` (the first line names the columns) or ``ndjson``, cut anywhere:
        an open file will do."""
        if key is None and self._options.retry_writes:
            key = loads.load_key(parts, on_duplicate)
        return self._load(
            loads.load_text(table, form, parts, on_duplicate=on_duplicate, key=key)
        )

    def _load(self, load: Load) -> int:
        with self._turn:
            try:
                return self._load_once(load)
            except EskerError as e:
                if e.code != "connection" or not load.is_repeatable:
                    raise
            return self._load_once(load)

    def _load_once(self, load: Load) -> int:
        self._expect_free()
        socket = self._connect()
        request_id = self._id()
        answer = load.request.answer()
        is_answered = False
        early: List[Frame] = []

        def learn(table: str) -> Optional[Fields]:
            return self._learn(table, lambda request: self._ask_beside(socket, request, early))

        try:
            socket.send(load.request.frame(request_id))
            for chunk in loads.chunks(load, learn):
                socket.send(frames.frame(request_id, frames.BULK_CHUNK, chunk))
                self._reader.feed(socket.flush(_UNSENT_BYTES_MAX))
                received = early.pop() if early else self._reader.next()
                while received is not None and received.id not in (request_id, 0):
                    # Of what was given up before.
                    received = self._reader.next()
                if received is not None:
                    # It has failed: the rest need not be sent.
                    is_answered = answer.take(received)
                    break
            socket.send(frames.frame(request_id, frames.BULK_END))
            while not is_answered:
                received = early.pop() if early else self._receive(socket)
                is_answered = received.id == request_id and answer.take(received)
        except BaseException:
            # The server loads nothing of what does not come to its end.
            self._break()
            raise
        outcome = load.request.outcome(answer)
        self._fields.look_at(outcome)
        return frames.expect(outcome)

    def _ask_beside(self, socket: Socket, request: Request[T], early: List[Frame]) -> T:
        """Asks while something else is under way, whose frames are kept."""
        request_id = self._id()
        socket.send(request.frame(request_id))
        answer = request.answer()
        while True:
            received = self._receive(socket)
            if received.id != request_id:
                early.append(received)
            elif answer.take(received):
                return request.result(answer)

    # Several at once.

    def pipeline(self) -> Pipeline:
        """Requests that are sent together: see :class:`Pipeline`."""
        return Pipeline(self._run_all, self._codec)

    def _run_all(self, asked: Sequence[Request[Any]]) -> List[Union[Any, EskerError]]:
        with self._turn:
            self._expect_free()
            fitted = [self._fitted(request, self._ask_twice) for request in asked]
            return self._ask_all(self._connect(), fitted)

    def _ask_all(
        self, socket: Socket, asked: Sequence[Request[Any]]
    ) -> List[Union[Any, EskerError]]:
        waiting: Dict[int, Tuple[int, Request[Any], frames.Answer]] = {}
        sent = bytearray()
        for place, request in enumerate(asked):
            request_id = self._id()
            sent += request.frame(request_id)
            waiting[request_id] = (place, request, request.answer())
        results: List[Union[Any, EskerError]] = [None] * len(asked)
        try:
            socket.send(bytes(sent))
            while waiting:
                received = self._receive(socket)
                if received.id not in waiting:
                    continue
                place, request, answer = waiting[received.id]
                if not answer.take(received):
                    continue
                del waiting[received.id]
                results[place] = request.outcome(answer)
                self._fields.look_at(results[place])
        except BaseException:
            self._break()
            raise
        return results


class Transaction(Surface):
    """A transaction: what is asked of it, is done within it, by any thread.

    It ends by ``commit`` or ``rollback``; :meth:`Client.transaction` does so by itself.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._codec = client._codec
        self._ended_by: Optional[str] = None
        self._is_finished = False

    def _end(self, why: str) -> None:
        """What is asked from now on, is refused."""
        # What it has defined may be gone.
        self._client._fields.forget()
        if self._ended_by is None:
            self._ended_by = why
        if self._client._transaction is self:
            self._client._transaction = None

    def _socket(self) -> Socket:
        """The connection while it is open."""
        self._client._expect_process()
        socket = self._client._socket
        if self._ended_by is not None or socket is None:
            code = "connection" if self._ended_by == rules.BROKEN_TRANSACTION else "invalid_request"
            raise EskerError(code, self._ended_by or rules.BROKEN_TRANSACTION)
        self._client._expect_read()
        return socket

    def _look_at(self, error: object) -> None:
        """Closes the connection, where the server may have ended the transaction by an error."""
        if isinstance(error, EskerError) and rules.ends_transaction(error):
            self._client._break()

    def _run(self, request: Request[T]) -> T:
        with self._client._turn:
            return self._ask(self._client._fitted(request, self._ask))

    def _ask(self, request: Request[T]) -> T:
        socket = self._socket()
        try:
            return self._client._ask_on(socket, request)
        except EskerError as e:
            self._look_at(e)
            raise

    def pipeline(self) -> Pipeline:
        """Requests that are sent together: see :class:`Pipeline`."""
        return Pipeline(self._run_all, self._codec)

    def _run_all(self, asked: Sequence[Request[Any]]) -> List[Union[Any, EskerError]]:
        with self._client._turn:
            fitted = [self._client._fitted(request, self._ask) for request in asked]
            results = self._client._ask_all(self._socket(), fitted)
            for result in results:
                self._look_at(result)
            return results

    @contextmanager
    def stream(
        self,
        text: str,
        parameters: Values = (),
        *,
        rows: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
        iso_times: Optional[bool] = None,
    ) -> Iterator["Stream"]:
        """As :meth:`Client.stream`, within it."""
        codec = self._codec.but(rows, nan_as_null, iso_times)
        request = requests.sql(codec, text, parameters)
        with self._client._turn:
            stream = Stream(self._client, self._socket(), request)
        with stream:
            yield stream

    def commit(self) -> None:
        """Ends it; ``conflict`` when another transaction has changed the same."""
        self._finish(requests.commit())

    def rollback(self) -> None:
        """Ends it, and nothing of it is done."""
        self._finish(requests.rollback())

    def _finish(self, request: Request[None]) -> None:
        client = self._client
        with client._turn:
            socket = self._socket()
            self._is_finished = True
            try:
                client._ask_on(socket, request)
            except EskerError as e:
                if e.code != "conflict":
                    # The server may not have ended it.
                    client._break()
                raise
            finally:
                self._end(rules.ENDED_TRANSACTION)

    def _give_up(self) -> None:
        """Rolls it back, or closes the connection, by which the server does."""
        if self._ended_by is not None:
            return
        try:
            self.rollback()
        except EskerError:
            self._client._break()


class Stream:
    """Rows as they come."""

    def __init__(self, client: Client, socket: Socket, request: Request[Any]) -> None:
        self._client = client
        self._socket = socket
        self._id = client._id()
        self._waiting: List[Row] = []
        self._is_done = False
        self._answer = request.answer()
        self.columns: List[Column] = []
        """The columns."""
        socket.send(request.frame(self._id))
        client._is_streaming = True

    def __enter__(self) -> "Stream":
        try:
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client._expect_process()
        if self._client._socket is not self._socket:
            return
        try:
            self._end()
        finally:
            self._client._is_streaming = False

    def _take(self, is_wanted: bool = True) -> None:
        """Reads a frame, of which only the last is looked at where its rows are not wanted."""
        answer = self._answer
        self._client._expect_process()
        if self._client._socket is not self._socket:
            self._is_done = True
            raise EskerError("connection", "the connection of the stream was closed")
        try:
            received = self._client._receive(self._socket)
            while received.id != self._id:
                received = self._client._receive(self._socket)
            if is_wanted or received.kind != frames.ROWS:
                self._is_done = answer.take(received)
        except BaseException:
            self._is_done = True
            self._client._break()
            raise
        self.columns = answer.columns
        self._waiting += answer.rows
        answer.rows = []
        if answer.error is not None:
            error, answer.error = answer.error, None
            if self._client._transaction is not None:
                self._client._transaction._look_at(error)
            raise error

    def _end(self) -> None:
        if self._is_done:
            return
        payload = requests.cancelled(self._id)
        self._socket.send(frames.frame(self._client._id(), frames.CANCEL, payload))
        self._waiting.clear()
        while not self._is_done:
            try:
                self._take(is_wanted=False)
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
