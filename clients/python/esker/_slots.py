"""The places of a pool, and the queue for them."""

from __future__ import annotations

from collections import deque
from typing import Deque, Generic, List, Optional, Set, TypeVar

from . import _check as check
from ._errors import EskerError

C = TypeVar("C")
W = TypeVar("W")

CLOSED = "the pool is closed"


class Slots(Generic[C, W]):
    """At most ``size`` connections of type ``C`` are out at a time. For another, a ``W`` waits in
    the queue: places go to the first that asked. The caller does the locking."""

    def __init__(self, size: int, wait_timeout: Optional[float]) -> None:
        self.size = check.integer("size", size, 1, 1 << 20)
        if wait_timeout is not None:
            wait_timeout = check.seconds("wait_timeout", wait_timeout)
        self.wait_timeout = wait_timeout
        self.is_closed = False
        self.free: List[C] = []
        self.out: Set[C] = set()
        self._taken = 0
        self.waiting: Deque[W] = deque()

    def expect_open(self) -> None:
        """Raises where the pool is closed."""
        if self.is_closed:
            raise EskerError("invalid_request", CLOSED)

    def take(self) -> bool:
        """Takes a place, where one is free and the queue is empty."""
        self.expect_open()
        is_free = self._taken < self.size and not self.waiting
        self._taken += is_free
        return is_free

    def leave(self) -> Optional[W]:
        """Gives a place back: to the first of the queue, which is returned, if there is one."""
        if self.waiting:
            return self.waiting.popleft()
        self._taken -= 1
        return None

    @property
    def is_empty(self) -> bool:
        """True when no place is taken."""
        return self._taken == 0

    def late(self) -> EskerError:
        """The error where a place was waited for too long."""
        found = f"all {self.size} connections of the pool were in use for {self.wait_timeout} s"
        return EskerError("timeout", found)
