"""The client for asyncio: requests of many tasks share one connection."""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import asynccontextmanager
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

from . import _request as requests
from ._address import parse
from ._errors import EskerError
from ._request import Answer, Frame, FrameReader, Key, Request, Result, Row
from ._socket import tls

T = TypeVar("T")
Text = Union[bytes, str]

_READ_BYTES = 256 << 10
# Frames of a stream that nobody has read yet; then the connection is read no further.
_FRAMES_MAX = 16


class _Connection:
    """A socket, and who waits for which answer."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        timeout: Optional[float],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._timeout = timeout
        self._next_id = 1
        self._waiting: Dict[int, "asyncio.Queue[Union[Frame, EskerError]]"] = {}
        self.error: Optional[EskerError] = None
        writer.write(requests.GREETING)
        self._task = asyncio.ensure_future(self._read())

    async def close(self) -> None:
        self._fail(EskerError("connection", "the connection was closed"))
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            pass
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            pass

    async def _read(self) -> None:
        """Gives every frame to whoever waits for it."""
        frames = FrameReader()
        try:
            while True:
                data = await self._reader.read(_READ_BYTES)
                if not data:
                    raise EskerError("connection", "the server hung up")
                frames.feed(data)
                received = frames.next()
                while received is not None:
                    if received.id == 0:
                        said = Answer()
                        said.take(received)
                        raise said.error or EskerError("connection", "the server sent nonsense")
                    queue = self._waiting.get(received.id)
                    if queue is not None:
                        await queue.put(received)
                    received = frames.next()
        except EskerError as e:
            self._fail(e)
        except OSError as e:
            self._fail(EskerError("connection", f"the connection broke: {e}"))

    def _fail(self, error: EskerError) -> None:
        if self.error is None:
            self.error = error
        waiting, self._waiting = self._waiting, {}
        for queue in waiting.values():
            while queue.full():
                queue.get_nowait()
            queue.put_nowait(error)

    def _send(self, kind: int, payload: bytes, request_id: int) -> None:
        if self.error is not None:
            raise self.error
        self._writer.write(requests.frame(request_id, kind, payload))

    def _id(self) -> int:
        found = self._next_id
        self._next_id = found % 0xFFFF_FFFF + 1
        return found

    def _expect(self, request_id: int) -> "asyncio.Queue[Union[Frame, EskerError]]":
        if self.error is not None:
            raise self.error
        queue: "asyncio.Queue[Union[Frame, EskerError]]" = asyncio.Queue(_FRAMES_MAX)
        self._waiting[request_id] = queue
        return queue

    async def _next(self, queue: "asyncio.Queue[Union[Frame, EskerError]]") -> Frame:
        try:
            received = await asyncio.wait_for(queue.get(), self._timeout)
        except asyncio.TimeoutError as e:
            raise EskerError("connection", f"no answer within {self._timeout} s") from e
        if isinstance(received, EskerError):
            raise received
        return received

    async def run(self, request: Request[T]) -> T:
        request_id = self._id()
        queue = self._expect(request_id)
        answer = Answer()
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            await self._writer.drain()
            while not is_done:
                is_done = answer.take(await self._next(queue))
        except OSError as e:
            # Whoever comes next is not to find it.
            self._fail(EskerError("connection", f"the connection broke: {e}"))
            raise EskerError("connection", f"the connection broke: {e}") from e
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                self._cancel(request_id)
        return request.result(answer)

    async def load(self, request: Request[int], chunks: AsyncIterator[bytes]) -> int:
        request_id = self._id()
        queue = self._expect(request_id)
        answer = Answer()
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            async for chunk in chunks:
                self._send(requests.BULK_CHUNK, chunk, request_id)
                await self._writer.drain()
                if not queue.empty():
                    break
            self._send(requests.BULK_END, b"", request_id)
            while not is_done:
                is_done = answer.take(await self._next(queue))
        except OSError as e:
            # Whoever comes next is not to find it.
            self._fail(EskerError("connection", f"the connection broke: {e}"))
            raise EskerError("connection", f"the connection broke: {e}") from e
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                self._cancel(request_id)
        return request.result(answer)

    async def stream(self, request: Request[Result]) -> AsyncGenerator[Row, None]:
        request_id = self._id()
        queue = self._expect(request_id)
        is_done = False
        try:
            self._send(request.kind, request.payload, request_id)
            while not is_done:
                answer = Answer()
                is_done = answer.take(await self._next(queue))
                if answer.error is not None:
                    raise answer.error
                for row in answer.rows:
                    yield row
        finally:
            self._waiting.pop(request_id, None)
            if not is_done:
                while not queue.empty():
                    queue.get_nowait()
                self._cancel(request_id)

    def _cancel(self, request_id: int) -> None:
        """Tells the server that nobody waits any more."""
        if self.error is None:
            self._send(requests.CANCEL, requests.cancelled(request_id), self._id())


class AsyncClient:
    """A connection to a server: ``client = await AsyncClient.connect(url)``.

    Any number of tasks ask at the same time, and answers come as they are done. A transaction is
    one of the connection: while it lasts, only the task that began it should ask. When the
    connection broke, the next request connects again; what only reads is asked once more then, and
    what writes with ``retry_writes``, as :class:`esker.Client` says.
    """

    def __init__(
        self,
        url: str,
        hello: Optional[Tuple[Optional[str], Optional[str]]],
        timeout: Optional[float],
        retry_writes: bool,
    ) -> None:
        self._url = url
        self._hello = hello
        self._timeout = timeout
        self._retry_writes = retry_writes
        self._connection: Optional[_Connection] = None
        self._connecting = asyncio.Lock()
        self._in_transaction = False
        self._is_closed = False

    @classmethod
    async def connect(
        cls,
        url: str = "127.0.0.1:7437",
        *,
        token: Optional[str] = None,
        database: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retry_writes: bool = False,
    ) -> "AsyncClient":
        """Connects: the arguments are those of :class:`esker.Client`."""
        hello = None if token is None and database is None else (token, database)
        client = cls(url, hello, timeout, retry_writes)
        await client._connected()
        return client

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection; the server rolls a transaction back."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    @property
    def in_transaction(self) -> bool:
        """True between ``begin`` and its end."""
        return self._in_transaction

    async def _connected(self) -> _Connection:
        """The connection, made anew where the last one broke."""
        async with self._connecting:
            last = self._connection
            if last is not None and (last.error is None or self._is_closed):
                return last
            if self._in_transaction:
                raise EskerError("connection", "the connection broke, and with it the transaction")
            if last is not None:
                await last.close()
            self._connection = await self._open()
            return self._connection

    async def _open(self) -> _Connection:
        address = parse(self._url)
        context = None if address.authorities is None else tls(address.authorities)
        if address.unix_path is not None:
            opening = asyncio.open_unix_connection(address.unix_path)
        else:
            opening = asyncio.open_connection(address.host, address.port, ssl=context)
        try:
            reader, writer = await asyncio.wait_for(opening, self._timeout)
        except (OSError, asyncio.TimeoutError) as e:
            raise EskerError("connection", f"{self._url}: {e or 'nobody answers'}") from e
        connection = _Connection(reader, writer, self._timeout)
        try:
            if self._hello is not None:
                await connection.run(requests.hello(*self._hello))
            else:
                await connection.run(requests.ping())
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _run(self, request: Request[T]) -> T:
        if self._retry_writes and not self._in_transaction and request.kind in requests.WRITES:
            request = request.once(uuid.uuid4().hex)
        try:
            return await (await self._connected()).run(request)
        except EskerError as e:
            if not self._may_ask_again(e) or not request.is_safe:
                raise
        return await (await self._connected()).run(request)

    def _may_ask_again(self, error: EskerError) -> bool:
        return error.code == "connection" and not (self._in_transaction or self._is_closed)

    # Tables.

    async def ping(self) -> None:
        """Whether anybody is there."""
        return await self._run(requests.ping())

    async def tables(self) -> List[str]:
        """The names of tables."""
        return await self._run(requests.tables())

    async def schema(self, table: str) -> str:
        """The fields, key and indexes of a table."""
        return await self._run(requests.schema(table))

    async def get(self, table: str, key: Key) -> Optional[Row]:
        """The row with a key."""
        return await self._run(requests.get(table, key))

    async def get_many(self, table: str, keys: Iterable[Key]) -> List[Optional[Row]]:
        """The rows with some keys, in their order, all as of one commit."""
        return await self._run(requests.get_many(table, keys))

    async def exists(self, table: str, key: Key) -> bool:
        """Whether there is a row with a key."""
        return await self._run(requests.exists(table, key))

    async def exists_many(self, table: str, keys: Iterable[Key]) -> List[bool]:
        """The same of some keys."""
        return await self._run(requests.exists_many(table, keys))

    async def insert(
        self, table: str, row: Sequence[Any], *, replace: bool = False
    ) -> Optional[int]:
        """Adds a row; its number, the key of one without."""
        return await self._run(requests.insert(table, row, replace))

    async def insert_many(
        self, table: str, rows: Iterable[Sequence[Any]], *, replace: bool = False
    ) -> int:
        """Adds rows, all or none; how many."""
        return await self._run(requests.insert_many(table, rows, replace))

    async def update(
        self, table: str, key: Key, fields: Optional[Mapping[str, Any]] = None, **more: Any
    ) -> bool:
        """Changes fields of a row; false when there is none."""
        return await self._run(requests.update(table, key, {**(fields or {}), **more}))

    async def update_many(
        self, table: str, updates: Iterable[Tuple[Key, Mapping[str, Any]]]
    ) -> int:
        """Changes fields of rows, each by its key, in one commit; how many updates found a row."""
        return await self._run(requests.update_many(table, updates))

    async def delete(self, table: str, key: Key) -> bool:
        """Removes a row; false when there is none."""
        return await self._run(requests.delete(table, key))

    async def delete_many(self, table: str, keys: Iterable[Key]) -> int:
        """Removes rows, in one commit; how many there were."""
        return await self._run(requests.delete_many(table, keys))

    # Statements and queries.

    async def sql(self, text: str, parameters: Sequence[Any] = ()) -> Result:
        """Runs a statement; ``?`` or ``$1`` in it are the parameters."""
        return await self._run(requests.sql(text, parameters))

    async def query(self, query: Union[str, Mapping[str, Any]]) -> Result:
        """Asks a query as JSON."""
        return await self._run(requests.query(query))

    async def explain(self, query: Union[str, Mapping[str, Any]]) -> str:
        """How a query is answered."""
        return await self._run(requests.explain(query))

    async def admin(self, task: Union[str, Mapping[str, Any]]) -> Dict[str, Any]:
        """Does what looks after the database: ``await client.admin({"task": "check"})``."""
        return await self._run(requests.admin(task))

    async def stream(self, text: str, parameters: Sequence[Any] = ()) -> AsyncIterator[Row]:
        """The rows of a statement as they come, however many: ``async for row in client.stream(…)``.

        Other answers of this connection wait while rows are not read.
        """
        connection = await self._connected()
        rows = connection.stream(requests.sql(text, parameters))
        try:
            async for row in rows:
                yield row
        finally:
            await rows.aclose()

    # Transactions.

    async def begin(self, *, serializable: bool = False, read_only: bool = False) -> None:
        """Begins a transaction."""
        await self._run(requests.begin(serializable, read_only))
        self._in_transaction = True

    async def commit(self) -> None:
        """Ends a transaction; ``conflict`` when somebody else has changed the same."""
        await self._end_transaction(requests.commit())

    async def rollback(self) -> None:
        """Ends a transaction, and nothing of it is done."""
        await self._end_transaction(requests.rollback())

    async def _end_transaction(self, request: Request[None]) -> None:
        try:
            await (await self._connected()).run(request)
        finally:
            self._in_transaction = False

    @asynccontextmanager
    async def transaction(
        self, *, serializable: bool = False, read_only: bool = False
    ) -> AsyncIterator["AsyncClient"]:
        """A transaction that is committed at the end of ``async with``, and rolled back by an
        error."""
        await self.begin(serializable=serializable, read_only=read_only)
        try:
            yield self
        except BaseException:
            if self._connection is not None and self._connection.error is None:
                try:
                    await self.rollback()
                except EskerError:
                    # Whether the transaction has ended is not known.
                    await self._connection.close()
            self._in_transaction = False
            raise
        await self.commit()

    async def transact(
        self,
        body: Callable[["AsyncClient"], Awaitable[T]],
        *,
        serializable: bool = False,
        attempts: int = 10,
    ) -> T:
        """Runs a transaction, again while it conflicts with others, at most so often."""
        for attempt in range(1, attempts + 1):
            try:
                async with self.transaction(serializable=serializable):
                    return await body(self)
            except EskerError as e:
                if e.code != "conflict" or attempt == attempts:
                    raise
            await asyncio.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.1)))
        raise EskerError("invalid_request", f"attempts: expected at least 1, found {attempts}")

    # Loads.

    async def load(
        self,
        table: str,
        rows: Union[Iterable[Sequence[Any]], AsyncIterable[Sequence[Any]]],
        *,
        on_duplicate: str = "error",
        key: Optional[str] = None,
    ) -> int:
        """Adds any number of rows: all at once when it returns, or none; how many.

        The arguments are those of :meth:`esker.Client.load`. Rows that can be gone through again
        are sent again when the connection broke, where there is a key.
        """
        again = not (hasattr(rows, "__next__") or hasattr(rows, "__anext__"))
        if key is None and self._retry_writes and again and on_duplicate != "skip":
            key = uuid.uuid4().hex
        request = requests.bulk_begin(table, "messagepack", on_duplicate, key)
        try:
            return await (await self._connected()).load(request, _chunks(rows))
        except EskerError as e:
            if not self._may_ask_again(e) or key is None or not again:
                raise
        return await (await self._connected()).load(request, _chunks(rows))

    # Buckets.

    async def buckets(self) -> List[str]:
        """The names of buckets."""
        return await self._run(requests.buckets())

    def bucket(self, name: str) -> "AsyncBucket":
        """Keys and values, as bytes. The first put makes it."""
        return AsyncBucket(self, name)


async def _chunks(
    rows: Union[Iterable[Sequence[Any]], AsyncIterable[Sequence[Any]]],
) -> AsyncIterator[bytes]:
    if isinstance(rows, AsyncIterable):
        out = bytearray()
        async for row in rows:
            for chunk in requests.chunks_of_rows([row]):
                out += chunk
            if len(out) >= requests.CHUNK_BYTES:
                yield bytes(out)
                out.clear()
        if out:
            yield bytes(out)
        return
    for chunk in requests.chunks_of_rows(rows):
        yield chunk


class AsyncBucket:
    """Keys and values, as bytes; texts are sent as UTF-8."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    async def get(self, key: Text) -> Optional[bytes]:
        """The value of a key."""
        return (await self.get_many([key]))[0]

    async def get_many(self, keys: Iterable[Text]) -> List[Optional[bytes]]:
        """The values of keys, in their order."""
        return await self._client._run(requests.bucket_get(self.name, keys))

    async def put(self, key: Text, value: Text, *, ttl: Union[None, bool, float] = None) -> None:
        """Puts a value; ``ttl`` is seconds from now, ``False`` never, ``None`` as the bucket says."""
        await self.put_many({key: value}, ttl=ttl)

    async def put_many(
        self, entries: Mapping[Text, Text], *, ttl: Union[None, bool, float] = None
    ) -> int:
        """Puts values, all or none; how many."""
        return await self._client._run(requests.bucket_put(self.name, entries, ttl))

    async def remove(self, key: Text) -> bool:
        """Removes a key; false when there is none."""
        return await self.remove_many([key]) == 1

    async def remove_many(self, keys: Iterable[Text]) -> int:
        """Removes keys; how many there were."""
        return await self._client._run(requests.bucket_remove(self.name, keys))

    async def increment(self, key: Text, by: int = 1) -> int:
        """Adds to a number; what it is then."""
        return await self._client._run(requests.bucket_increment(self.name, key, by))

    async def range(
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
        return await self._client._run(asked)
