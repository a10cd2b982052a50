"""A socket that reads while it writes: the server reads no further while answers wait."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import time
from typing import Optional

from ._address import Address, parse
from ._errors import EskerError

_READ_BYTES = 256 << 10
# One socket is waited for: what needs no descriptor of its own is the quickest.
_SELECTOR = getattr(selectors, "PollSelector", selectors.SelectSelector)
# No system call waits longer than some weeks: what may take longer is waited for again.
WAIT_S_MAX = 86_400.0


def is_readable(descriptor: int) -> bool:
    """Whether there is something to read, or the other side has hung up."""
    with _SELECTOR() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


def tls(authorities: str) -> ssl.SSLContext:
    """TLS 1.3 to a server that a file of certificates vouches for; without one, the system."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        if authorities:
            context.load_verify_locations(authorities)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    except (OSError, ssl.SSLError) as e:
        raise EskerError("connection", f"TLS: {authorities}: {e}") from e
    return context


class Socket:
    """Bytes to a server and from it."""

    def __init__(self, url: str, timeout: Optional[float]) -> None:
        self.timeout = timeout
        address = parse(url)
        try:
            self._socket = _connect(address, timeout)
        except (OSError, ValueError) as e:
            # A name that no host can have is a ValueError.
            raise EskerError("connection", f"{url}: {e}") from e
        self._process = os.getpid()
        self._socket.setblocking(False)
        self._unsent = bytearray()

    @property
    def is_inherited(self) -> bool:
        """True in a process that was forked: the connection is that of its parent."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Ends the connection, though another thread waits for it: that is told."""
        self.abort()
        self._socket.close()

    def abort(self) -> None:
        """The same of a connection whose descriptor may be in use."""
        if self.is_inherited:
            return
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def poll(self) -> Optional[bytes]:
        """What has come meanwhile, without waiting; ``None`` when the server has hung up."""
        came = b""
        try:
            while True:
                more = self._receive_some()
                if not more:
                    return came
                came += more
        except (EskerError, OSError):
            return None

    def send(self, data: bytes) -> None:
        """Takes bytes that are to be sent: `receive` and `flush` do that."""
        self._unsent += data

    @property
    def unsent(self) -> int:
        """How many bytes are still to be sent."""
        return len(self._unsent)

    def receive(self) -> bytes:
        """Waits for bytes, and sends meanwhile. Raises when the server hangs up."""
        return self._exchange(is_read_needed=True)

    def flush(self, most: int) -> bytes:
        """Sends until at most so many bytes are left; returns what came meanwhile."""
        came = b""
        while len(self._unsent) > most:
            came += self._exchange(is_read_needed=False)
        return came

    def _exchange(self, is_read_needed: bool) -> bytes:
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        try:
            while True:
                is_sent = self._send_some()
                came = self._receive_some()
                if came or (is_sent and not is_read_needed):
                    return came
                self._wait(deadline)
        except (OSError, ValueError) as e:
            # Of a socket that another thread has closed, there is nothing to wait for.
            raise EskerError("connection", f"the connection broke: {e}") from e

    def _send_some(self) -> bool:
        """Sends what can be sent now; true when something was, or nothing is left."""
        if not self._unsent:
            return True
        try:
            with memoryview(self._unsent) as view:
                sent = self._socket.send(view[:_READ_BYTES])
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        del self._unsent[:sent]
        return sent > 0

    def _receive_some(self) -> bytes:
        try:
            came = self._socket.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b""
        if not came:
            raise EskerError("connection", "the server hung up")
        return came

    def _wait(self, deadline: Optional[float]) -> None:
        left = None
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise EskerError("connection", f"no answer within {self.timeout} s")
            left = min(left, WAIT_S_MAX)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        with _SELECTOR() as selector:
            selector.register(self._socket, events)
            selector.select(left)


def _connect(address: Address, timeout: Optional[float]) -> socket.socket:
    timeout = None if timeout is None else min(timeout, WAIT_S_MAX)
    if address.unix_path is not None:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            plain.settimeout(timeout)
            plain.connect(address.unix_path)
        except OSError:
            plain.close()
            raise
        return plain
    plain = socket.create_connection((address.host, address.port), timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.authorities is None:
            return plain
        return tls(address.authorities).wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
