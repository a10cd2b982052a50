"""What can go wrong."""

from __future__ import annotations

_AGAIN = frozenset(["conflict", "unavailable"])


class EskerError(Exception):
    """What the server said, or that the connection failed.

    ``code`` is one of those of docs/reference/wire.md, or ``connection`` where no server answers,
    the connection broke, or an answer did not come in time. Then it is not known whether a write
    was done, and the connection is closed; that of an ``AsyncClient`` goes on where other answers
    have come meanwhile.
    """

    def __init__(self, code: str, message: str) -> None:
        # As given: copies and pickles are made of them.
        super().__init__(code, message)
        self.code = code
        self.message = message

    @property
    def is_retryable(self) -> bool:
        """True when the same request may succeed later, having done nothing so far."""
        return self.code in _AGAIN

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
