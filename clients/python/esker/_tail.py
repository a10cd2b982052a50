"""Events of a stream as they arrive."""

from __future__ import annotations

import json
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Deque, Iterator, Mapping, Optional, Tuple, Type, Union

from . import _check as check
from . import _events as events
from . import _frame as frames
from ._errors import EskerError
from ._frame import Answer, Frame
from ._messagepack import pack
from ._unpack import unpack

if TYPE_CHECKING:
    from ._client import Client

# Events that the server may send before any is read.
_CREDIT = 1_024
# What a server that is started anew, or a network, may cure.
_PASSING = ("connection", "unavailable")
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.05, 2.0

Where = Union[None, str, Mapping[str, Any]]
OnGap = Callable[[int, int], None]


class Tail:
    """Events as they arrive: rows with the id first, and then the fields.

    It has a connection of its own. When that breaks it connects again, and goes on behind the last
    event that came, so that each event comes once. :attr:`position` is where another tail would go
    on.
    """

    def __init__(
        self,
        client: "Client",
        stream: str,
        after: events.After,
        where: Where,
        on_gap: Optional[OnGap],
        patience: Optional[float],
    ) -> None:
        self._client = client
        self._stream = check.text("stream", stream)
        if not isinstance(after, str):
            check.integer("after", after, 0, (1 << 64) - 1)
        self._after: events.After = after
        is_text = where is None or isinstance(where, str)
        self._where = where if is_text else json.dumps(check.named("where", where))
        self._on_gap = on_gap
        self._patience = None if patience is None else check.seconds("patience", patience)
        self._waiting: Deque[Tuple[int, Any]] = deque()
        self._answer = Answer(client._codec)
        self._id = 0
        self._taken = 0
        self._position: Optional[int] = None
        self._gap: Optional[Tuple[int, int]] = None
        self._is_over = False
        self._is_reading = False
        self._pause = _PAUSE_MIN_S
        self._failing_since: Optional[float] = None
        try:
            self._begin()
        except BaseException:
            client._break()
            raise

    def __enter__(self) -> "Tail":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, though another thread waits for an event."""
        self._is_over = True
        self._client._abort()
        if not self._is_reading:
            self._client._break()

    @property
    def position(self) -> Optional[int]:
        """Everything up to this row id was told, or is not wanted: a tail that begins ``after`` it
        goes on where this one is."""
        return self._position

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self._is_over:
            if self._waiting:
                self._position, row = self._waiting.popleft()
                self._give_credit()
                return row
            if self._gap is not None:
                gap, self._gap = self._gap, None
                self._tell_gap(*gap)
                continue
            self._is_reading = True
            try:
                self._step()
            finally:
                self._is_reading = False
        raise StopIteration

    def _give_credit(self) -> None:
        self._taken += 1
        socket = self._client._socket
        if self._taken < _CREDIT // 2 or socket is None:
            return
        out = bytearray()
        pack(out, self._taken)
        socket.send(frames.frame(self._id, frames.CREDIT, bytes(out)))
        self._taken = 0
        try:
            self._client._reader.feed(socket.flush(0))
        except EskerError:
            # What broke is found when it is read.
            pass

    def _begin(self) -> None:
        """Asks for what comes behind the last event, and waits until the server listens."""
        client = self._client
        client._expect_process()
        socket = client._connect()
        self._answer = Answer(client._codec)
        self._id = client._id()
        self._taken = 0
        payload = events.tail(self._stream, self._after, self._where, _CREDIT)
        socket.send(frames.frame(self._id, frames.TAIL, payload))
        is_begun = False
        while not is_begun:
            received = self._receive()
            self._take(received)
            is_begun = received.kind == frames.POSITION

    def _receive(self) -> Frame:
        socket = self._client._socket
        if socket is None:
            raise EskerError("connection", "the connection of the tail was closed")
        received = self._client._receive(socket)
        while received.id != self._id:
            received = self._client._receive(socket)
        return received

    def _step(self) -> None:
        """Reads a frame; connects again where that fails."""
        try:
            self._take(self._receive())
            # A tail that begins and fails at once has not come back.
            self._pause, self._failing_since = _PAUSE_MIN_S, None
        except EskerError as e:
            self._client._break()
            if self._is_over:
                return
            if e.code not in _PASSING:
                self._is_over = True
                raise
            self._begin_again()

    def _begin_again(self) -> None:
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        else:
            self._wait_again()
        while not self._is_over:
            try:
                return self._begin()
            except EskerError as e:
                self._client._break()
                is_late = (
                    self._patience is not None
                    and time.monotonic() - self._failing_since >= self._patience
                )
                if e.code not in _PASSING or is_late:
                    self._is_over = True
                    raise
            self._wait_again()

    def _wait_again(self) -> None:
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, _PAUSE_MAX_S)

    def _take(self, received: Frame) -> None:
        if received.kind == frames.POSITION:
            self._note(unpack(received.payload))
            return
        is_last = self._answer.take(received)
        if self._answer.error is not None:
            raise self._answer.error
        for row in self._answer.rows:
            found = row["id"] if isinstance(row, dict) else row[0]
            self._after = str(found)
            self._waiting.append((events.row_id(found), row))
        self._answer.rows = []
        self._is_over = self._is_over or is_last

    def _note(self, value: Any) -> None:
        reached, gap = value
        self._after = int(reached)
        if not self._waiting:
            self._position = int(reached)
        if gap is not None:
            self._gap = (int(gap[0]), int(gap[1]))

    def _tell_gap(self, first: int, last: int) -> None:
        """Told once: what is asked next goes on with what is left of these."""
        if self._on_gap is not None:
            self._on_gap(first, last)
            return
        raise EskerError(
            "cursor_gone",
            f"events with some of the row ids {first} to {last} are gone: retention took them "
            "before they were told; the next event is the first that is left, and on_gap takes "
            "this in place of an error",
        )
