"""The client for asyncio: requests of many tasks share one connection."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    List,
    Optional,
    Sequence,
    TypeVar,
    Union,
)

from . import _check as check
from . import _load as loads
from . import _options as rules
from . import _request as requests
from ._address import parse
from ._async_connection import Connection, finished
from ._batch import Values
from ._codec import PLAIN, codec
from ._errors import EskerError
from ._fields import Fields, KnownFields
from ._frame import Request
from ._load import Load, Parts, Rows
from ._options import Options
from ._pipeline import WINDOW, AsyncPipeline
from ._row import Row
from ._socket import tls
from ._surface import AsyncSurface

T = TypeVar("T")


class AsyncClient(AsyncSurface):
    """A connection to a server: ``client = await AsyncClient.connect(url)``, or ``async with
    AsyncClient(url) as client``. The arguments are those of :class:`esker.Client`.

    Any number of tasks ask at the same time, and answers come as they are done. A connection that
    the server has closed is noticed before anything is sent, and made anew. What only reads is
    asked once more when the connection broke meanwhile, and what writes with ``retry_writes``, as
    :class:`esker.Client` says.

    While a transaction is open on the client, everything else is refused: only the transaction
    object asks within it. Tasks that have transactions take connections of an
    :class:`esker.AsyncPool`.
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

    def _prepare(self, options: Options) -> None:
        self._options = options
        self._codec = options.codec
        self._fields = KnownFields()
        self._learning: Optional[asyncio.Lock] = None
        self._connection: Optional[Connection] = None
        self._connecting: Optional[asyncio.Lock] = None
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._transaction: Optional[AsyncTransaction] = None
        self._is_closed = False

    @classmethod
    def _of(cls, options: Options) -> "AsyncClient":
        client = cls.__new__(cls)
        client._prepare(options)
        return client

    @classmethod
    async def connect(
        cls,
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
    ) -> "AsyncClient":
        """A client that has connected."""
        chosen = codec(rows, nan_as_null, naive_as_utc, iso_times)
        client = cls._of(rules.options(url, token, database, timeout, retry_writes, chosen))
        await client._connected()
        return client

    async def __aenter__(self) -> "AsyncClient":
        await self._connected()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; the server rolls a transaction back."""
        self._is_closed = True
        self._end_transaction(rules.ENDED_TRANSACTION)
        self._expect_loop()
        if self._connection is not None:
            await self._connection.close()

    def _abort(self) -> None:
        """Ends the connection for good, at once."""
        self._is_closed = True
        self._drop()

    def _drop(self) -> None:
        """Ends the connection at once; the next request connects again."""
        self._end_transaction(rules.BROKEN_TRANSACTION)
        if self._connection is not None:
            self._connection.abort()

    def _end_transaction(self, why: str) -> None:
        if self._transaction is not None:
            self._transaction._end(why)

    @property
    def in_transaction(self) -> bool:
        """True while a transaction is open."""
        return self._transaction is not None

    @property
    def _is_idle(self) -> bool:
        return self._connection is None or self._connection.is_idle

    def _expect_loop(self) -> None:
        """Lets go of a connection of an event loop that has ended, as that of another
        ``asyncio.run``."""
        loop, last = asyncio.get_running_loop(), self._loop
        if last is loop:
            return
        if last is not None and last.is_running():
            message = "the client is used by another event loop, in another thread"
            raise EskerError("invalid_request", message)
        self._loop = loop
        self._connecting = self._learning = None
        self._end_transaction(rules.BROKEN_TRANSACTION)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon()

    async def _connected(self) -> Connection:
        """The connection, made anew where it broke meanwhile: nothing is sent into a dead one."""
        self._expect_loop()
        if self._connecting is None:
            self._connecting = asyncio.Lock()
        async with self._connecting:
            last = self._connection
            if last is not None:
                await last.settle()
            if self._is_closed:
                raise EskerError("connection", rules.CLOSED)
            if last is not None and last.error is None:
                return last
            if last is not None:
                await last.close()
            self._connection = await self._open()
            return self._connection

    async def _open(self) -> Connection:
        url, timeout = self._options.url, self._options.timeout
        address = parse(url)
        context = None if address.authorities is None else tls(address.authorities)
        if address.unix_path is not None:
            opening = asyncio.open_unix_connection(address.unix_path)
        else:
            opening = asyncio.open_connection(address.host, address.port, ssl=context)
        try:
            reader, writer = await finished(opening, timeout)
        except (OSError, ValueError, asyncio.TimeoutError) as e:
            # A name that no host can have is a ValueError; a time limit says nothing.
            why = str(e) or f"no answer within {timeout} s"
            raise EskerError("connection", f"{url}: {why}") from e
        connection = Connection(reader, writer, timeout)
        token, database = self._options.token, self._options.database
        try:
            if token is not None or database is not None:
                await connection.run(requests.hello(token, database))
            else:
                await connection.run(requests.ping(PLAIN))
        except BaseException:
            connection.abort()
            raise
        if self._is_closed:
            connection.abort()
            raise EskerError("connection", rules.CLOSED)
        return connection

    def _expect_free(self) -> None:
        if self._transaction is not None:
            raise EskerError("invalid_request", rules.OPEN_TRANSACTION)

    async def _free(self) -> Connection:
        """The connection, outside of transactions. What is sent before the next ``await`` is done
        outside, too."""
        self._expect_free()
        connection = await self._connected()
        self._expect_free()
        return connection

    async def _run(self, request: Request[T]) -> T:
        request = await self._fitted(request, self._ask)
        return await self._ask(rules.with_key(request, self._options.retry_writes))

    async def _ask(self, request: Request[T]) -> T:
        try:
            outcome = await self._ask_twice(request)
        except EskerError as e:
            self._fields.look_at(e)
            raise
        self._fields.look_at(outcome)
        return outcome

    async def _ask_twice(self, request: Request[T]) -> T:
        """Asks once more where the connection broke, and nothing is done twice by that."""
        try:
            return await (await self._free()).run(request)
        except EskerError as e:
            if not self._may_ask_again(e) or not request.is_safe:
                raise
        return await (await self._free()).run(request)

    async def _fitted(
        self, request: Request[T], ask: Callable[[Request[str]], Awaitable[str]]
    ) -> Request[T]:
        """A request as it is sent, once the fields that it needs are known."""
        if request.table is None:
            return request
        return request.fitted(await self._learn(request.table, ask))

    async def _learn(
        self, table: str, ask: Callable[[Request[str]], Awaitable[str]]
    ) -> Optional[Fields]:
        if not self._fields.has(table):
            if self._learning is None:
                self._learning = asyncio.Lock()
            async with self._learning:
                if not self._fields.has(table):
                    outcome = await _outcome(ask(requests.schema(PLAIN, table)))
                    self._fields.learn(table, outcome)
        return self._fields.of(table)

    def pipeline(self, *, window: int = WINDOW) -> AsyncPipeline:
        """Requests that are sent together: see :class:`esker.AsyncPipeline`."""
        return AsyncPipeline(self._run_all, self._codec, window)

    async def _run_all(
        self, asked: Sequence[Request[Any]], window: int
    ) -> List[Union[Any, EskerError]]:
        fitted = [await self._fitted(request, self._ask) for request in asked]
        outcomes = await (await self._free()).run_all(fitted, window)
        for outcome in outcomes:
            self._fields.look_at(outcome)
        return outcomes

    def _may_ask_again(self, error: EskerError) -> bool:
        return error.code == "connection" and not self._is_closed

    async def stream(
        self,
        text: str,
        parameters: Values = (),
        *,
        rows: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
        iso_times: Optional[bool] = None,
    ) -> AsyncGenerator[Row, None]:
        """The rows of a statement as they come, however many:
        ``async for row in client.stream(…)``.

        Other answers of this connection wait while rows are not read.
        """
        codec = self._codec.but(rows, nan_as_null, iso_times)
        request = requests.sql(codec, text, parameters)
        found = (await self._free()).stream(request)
        try:
            async for row in found:
                yield row
        finally:
            await found.aclose()

    # Transactions.

    async def begin(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> "AsyncTransaction":
        """Begins a transaction, which goes on until its ``commit`` or ``rollback``."""
        request = requests.begin(serializable, read_only)
        connection = await self._free()
        # From here on other tasks are kept out.
        transaction = self._transaction = AsyncTransaction(self, connection)
        try:
            await connection.run(request)
        except BaseException as e:
            if not isinstance(e, EskerError) or e.code == "connection":
                # It may have begun.
                connection.abort()
            transaction._end(rules.ENDED_TRANSACTION)
            raise
        return transaction

    @asynccontextmanager
    async def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> AsyncIterator["AsyncTransaction"]:
        """A transaction that is committed at the end of ``async with``, and rolled back by an
        error: ``async with client.transaction() as tx``. What is asked of ``tx`` is done within
        it."""
        transaction = await self.begin(serializable=serializable, read_only=read_only)
        try:
            yield transaction
        except BaseException:
            await transaction._give_up()
            raise
        if not transaction._is_finished:
            await transaction.commit()

    async def transact(
        self,
        body: Callable[["AsyncTransaction"], Awaitable[T]],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """Runs a transaction, again while it conflicts with others, at most so often."""
        check.integer("attempts", attempts, 1, 1 << 31)
        attempt = 1
        while True:
            try:
                async with self.transaction(serializable=serializable) as transaction:
                    return await body(transaction)
            except EskerError as e:
                pause = rules.conflict_pause(e, attempt, attempts)
            await asyncio.sleep(pause)
            attempt += 1

    # Loads.

    async def load(
        self,
        table: str,
        rows: Rows,
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
    ) -> int:
        """Adds any number of rows: all at once when it returns, or none; how many.

        The arguments are those of :meth:`esker.Client.load`; the rows may come one by one by
        ``async for``, too.
        """
        if key is None and self._options.retry_writes:
            key = loads.load_key(rows, on_duplicate)
        codec = self._codec.but(nan_as_null=nan_as_null)
        load = loads.load(codec, table, rows, on_duplicate=on_duplicate, key=key)
        return await self._load(load)

    async def load_text(
        self,
        table: str,
        form: str,
        parts: Parts,
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
    ) -> int:
        """The same of ``csv`` or ``ndjson``, as :meth:`esker.Client.load_text`."""
        if key is None and self._options.retry_writes:
            key = loads.load_key(parts, on_duplicate)
        return await self._load(
            loads.load_text(table, form, parts, on_duplicate=on_duplicate, key=key)
        )

    async def _load(self, load: Load) -> int:
        try:
            return await self._load_once(load)
        except EskerError as e:
            self._fields.look_at(e)
            if not self._may_ask_again(e) or not load.is_repeatable:
                raise
        return await self._load_once(load)

    async def _load_once(self, load: Load) -> int:
        connection = await self._free()
        return await connection.load(load, lambda table: self._learn(table, connection.run))


async def _outcome(answer: Awaitable[str]) -> Union[str, EskerError]:
    try:
        return await answer
    except EskerError as e:
        return e


class AsyncTransaction(AsyncSurface):
    """A transaction: what is asked of it, is done within it, in the order in which it was asked, by
    any task.

    It ends by ``commit`` or ``rollback``; :meth:`AsyncClient.transaction` does so by itself. After
    a request of it was cancelled it can only be rolled back: whether that was done is not known.
    """

    def __init__(self, client: AsyncClient, connection: Connection) -> None:
        self._client = client
        self._codec = client._codec
        self._connection = connection
        self._order = asyncio.Lock()
        self._ended_by: Optional[str] = None
        self._is_finished = False
        self._is_given_up = False

    def _end(self, why: str) -> None:
        """What is asked from now on, is refused."""
        # What it has defined may be gone.
        self._client._fields.forget()
        if self._ended_by is None:
            self._ended_by = why
        if self._client._transaction is self:
            self._client._transaction = None

    def _break(self) -> None:
        """Ends it with its connection; so does the server."""
        self._end(rules.BROKEN_TRANSACTION)
        self._connection.abort()

    def _open(self) -> Connection:
        """The connection while it is open."""
        self._client._expect_loop()
        if self._ended_by is None and self._connection.error is not None:
            self._break()
        if self._ended_by is not None:
            code = "connection" if self._ended_by == rules.BROKEN_TRANSACTION else "invalid_request"
            raise EskerError(code, self._ended_by)
        return self._connection

    def _look_at(self, error: BaseException) -> None:
        """What an error of a request means for the transaction."""
        if not isinstance(error, EskerError):
            self._is_given_up = True
        elif rules.ends_transaction(error):
            self._break()

    async def _run(self, request: Request[T]) -> T:
        # Nothing overtakes a request for which the fields of a table are asked first.
        async with self._order:
            request = await self._client._fitted(request, self._ask)
        return await self._ask(request)

    async def _ask(self, request: Request[T]) -> T:
        connection = self._expect_known()
        try:
            outcome = await connection.run(request)
        except BaseException as e:
            self._client._fields.look_at(e)
            self._look_at(e)
            raise
        self._client._fields.look_at(outcome)
        return outcome

    def pipeline(self, *, window: int = WINDOW) -> AsyncPipeline:
        """Requests that are sent together: see :class:`esker.AsyncPipeline`."""
        return AsyncPipeline(self._run_all, self._codec, window)

    async def _run_all(
        self, asked: Sequence[Request[Any]], window: int
    ) -> List[Union[Any, EskerError]]:
        async with self._order:
            fitted = [await self._client._fitted(request, self._ask) for request in asked]
        connection = self._expect_known()
        try:
            outcomes = await connection.run_all(fitted, window)
        except BaseException as e:
            self._look_at(e)
            raise
        for outcome in outcomes:
            self._client._fields.look_at(outcome)
            if isinstance(outcome, EskerError):
                self._look_at(outcome)
        return outcomes

    def _expect_known(self) -> Connection:
        connection = self._open()
        if self._is_given_up:
            raise EskerError("invalid_request", "a request of the transaction was cancelled")
        return connection

    async def stream(
        self,
        text: str,
        parameters: Values = (),
        *,
        rows: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
        iso_times: Optional[bool] = None,
    ) -> AsyncGenerator[Row, None]:
        """As :meth:`AsyncClient.stream`, within it."""
        codec = self._codec.but(rows, nan_as_null, iso_times)
        found = self._expect_known().stream(requests.sql(codec, text, parameters))
        try:
            async for row in found:
                yield row
        except EskerError as e:
            self._look_at(e)
            raise
        finally:
            await found.aclose()

    async def commit(self) -> None:
        """Ends it; ``conflict`` when another transaction has changed the same."""
        if self._is_given_up:
            await self.rollback()
            message = "a request of the transaction was cancelled: it was rolled back"
            raise EskerError("cancelled", message)
        await self._finish(requests.commit())

    async def rollback(self) -> None:
        """Ends it, and nothing of it is done."""
        await self._finish(requests.rollback())

    async def _finish(self, request: Request[None]) -> None:
        async with self._order:
            connection = self._open()
            self._is_finished = True
            # Nothing else is asked within it, and until the answer nothing is outside of it.
            self._ended_by = rules.ENDED_TRANSACTION
        try:
            await connection.run(request)
        except BaseException as e:
            if not isinstance(e, EskerError) or e.code != "conflict":
                # The server may not have ended it.
                connection.abort()
            raise
        finally:
            self._end(rules.ENDED_TRANSACTION)

    async def _give_up(self) -> None:
        """Rolls it back, or closes the connection, by which the server does."""
        if self._ended_by is not None:
            return
        try:
            await self.rollback()
        except EskerError:
            self._break()
