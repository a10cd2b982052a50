"""Where a server is."""

from __future__ import annotations

from typing import NamedTuple, Optional

from ._errors import EskerError

_PORT = 7437


class Address(NamedTuple):
    """A host and a port, with a file of certificates where TLS is spoken; or a socket's path.

    Where the certificates are those that the system trusts, ``authorities`` is empty.
    """

    host: str
    port: int
    authorities: Optional[str] = None
    unix_path: Optional[str] = None


def parse(text: str) -> Address:
    """Reads ``esker://HOST:PORT``, ``HOST:PORT``, ``eskers://HOST:PORT``, perhaps with
    ``?ca=FILE``, or ``unix:PATH``.

    >>> parse("esker://localhost")
    Address(host='localhost', port=7437, authorities=None, unix_path=None)
    """
    if text.startswith("unix:"):
        return Address("", 0, unix_path=text[len("unix:") :])
    authorities = None
    host = text
    if text.startswith("eskers://"):
        host, found, query = text[len("eskers://") :].partition("?")
        authorities = query[len("ca=") :]
        if found and (not query.startswith("ca=") or not authorities):
            raise EskerError(
                "connection",
                "expected eskers://HOST:PORT or eskers://HOST:PORT?ca=FILE, where FILE has "
                "certificates, "
                f"found {text!r}",
            )
    elif text.startswith("esker://"):
        host = text[len("esker://") :]
    host = host.rstrip("/")
    if not host or any(character in host for character in "/@ "):
        raise EskerError(
            "connection",
            "expected esker://HOST:PORT, HOST:PORT, eskers://HOST:PORT or unix:PATH, "
            f"found {text!r}",
        )
    name, found, port = host.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and int(port[:6]) < 1 << 16
    if found and name and is_port and not name.endswith(":"):
        return Address(name.strip("[]"), int(port), authorities)
    if found and (":" not in name or name.endswith("]")):
        raise EskerError("connection", f"expected a port from 0 to 65535, found {text!r}")
    return Address(host.strip("[]"), _PORT, authorities)
