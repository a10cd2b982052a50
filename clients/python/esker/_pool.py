"""Connections for several threads."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import Any, Iterator, List

from ._client import Client
from ._errors import EskerError


class Pool:
    """At most ``size`` connections, given out one at a time: ``with pool.client() as client``.

    The other arguments are those of :class:`esker.Client`. A connection within a transaction, or
    one that broke, is closed when it comes back.
    """

    def __init__(self, url: str = "127.0.0.1:7437", *, size: int = 8, **options: Any) -> None:
        if size < 1:
            raise EskerError("invalid_request", f"size: expected at least 1, found {size}")
        self._url = url
        self._options = options
        self._room = threading.Semaphore(size)
        self._lock = threading.Lock()
        self._free: List[Client] = []
        self._is_closed = False

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection, until the end of ``with``; waits while all are in use."""
        with self._room:
            with self._lock:
                if self._is_closed:
                    raise EskerError("invalid_request", "the pool is closed")
                client = self._free.pop() if self._free else None
            client = client or Client(self._url, **self._options)
            try:
                yield client
            finally:
                if client.in_transaction:
                    client.close()
                with self._lock:
                    if self._is_closed:
                        client.close()
                    else:
                        self._free.append(client)

    def close(self) -> None:
        """Closes what is free, and the rest as it comes back."""
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for client in free:
            client.close()
