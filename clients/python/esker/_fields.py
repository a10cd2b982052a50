"""What a client knows of a table: so that texts become dates, and rows have names."""

from __future__ import annotations

import decimal
import ipaddress
import re
import time
import uuid
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from . import _times as times
from ._errors import EskerError
from ._result import Result
from ._scalars import Interval

# So long the fields of a table are taken to be as they were.
_KNOWN_S = 1.0

_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),]|[^'"(),]+""")
_NAME = r'("(?:[^"]|"")*"|\w+)'
_FIELD = re.compile(rf"{_NAME} ([a-z]\w*)(?=\(|$| not null$)")
_KEY_NAME = re.compile(_NAME)
_KEY = "primary key ("


def _decimal(text: str) -> Optional[decimal.Decimal]:
    try:
        found = decimal.Decimal(text)
    except ArithmeticError:
        return None
    return found if found.is_finite() else None


def _made(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    def of(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            return None

    return of


# What a text is taken for, where the field is of such a type; else it is sent as it is.
READERS: Dict[str, Callable[[str], Any]] = {
    "date": times.date,
    "time": times.time,
    "timestamp": times.timestamp,
    "decimal": _decimal,
    "uuid": _made(uuid.UUID),
    "ipv4": _made(ipaddress.IPv4Address),
    "ipv6": _made(ipaddress.IPv6Address),
    "interval": Interval,
}


class Fields(NamedTuple):
    """The fields of a table: their names and types, and the names of the key."""

    names: Tuple[str, ...]
    types: Tuple[str, ...]
    key: Tuple[str, ...]

    @property
    def key_readers(self) -> List[Optional[Callable[[str], Any]]]:
        """For each field of the key, what its texts are taken for."""
        types = dict(zip(self.names, self.types))
        return [READERS.get(types.get(name, "")) for name in self.key]

    @property
    def readers(self) -> Dict[int, Callable[[str], Any]]:
        """The same for those fields that have one, by position."""
        return {at: READERS[kind] for at, kind in enumerate(self.types) if kind in READERS}

    @property
    def named_readers(self) -> Dict[str, Callable[[str], Any]]:
        """The same by name, as lower case."""
        pairs = zip(self.names, self.types)
        return {name.lower(): READERS[kind] for name, kind in pairs if kind in READERS}


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def parse(schema: str) -> Fields:
    """Reads a schema, as the server writes it.

    >>> parse('"x y" i64 not null, e enum(a, \\'b, c\\'), primary key ("x y"), index i (e)')
    Fields(names=('x y', 'e'), types=('i64', 'enum'), key=('x y',))
    """
    parts, depth = [""], 0
    for token in _TOKEN.findall(schema):
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    fields: List[Tuple[str, str]] = []
    key: List[str] = []
    for part in map(str.strip, parts):
        found = _FIELD.match(part)
        if found is not None:
            fields.append((_plain(found.group(1)), found.group(2)))
        elif part.startswith(_KEY):
            key = [_plain(name) for name in _KEY_NAME.findall(part[len(_KEY) :])]
    return Fields(tuple(n for n, _ in fields), tuple(t for _, t in fields), tuple(key))


# Where a client is not shown the fields of a table, it goes without.
_NOT_SHOWN = ("not_found", "forbidden")
# What may be wrong because the table was changed.
_OUTDATED = ("not_found", "invalid_request", "constraint_violated")


class KnownFields:
    """The fields of tables, for a second: others may change them."""

    def __init__(self) -> None:
        self._known: Dict[str, Tuple[float, Optional[Fields]]] = {}

    def has(self, table: str) -> bool:
        """True when it is known, whatever it is."""
        found = self._known.get(table)
        return found is not None and time.monotonic() < found[0]

    def of(self, table: str) -> Optional[Fields]:
        """The fields; ``None`` of a table that there is not."""
        found = self._known.get(table)
        return None if found is None else found[1]

    def learn(self, table: str, schema: Union[str, EskerError]) -> None:
        """Takes the schema of a table, or the error in place of it."""
        if isinstance(schema, EskerError) and schema.code not in _NOT_SHOWN:
            raise schema
        fields = None if isinstance(schema, EskerError) else parse(schema)
        self._known[table] = (time.monotonic() + _KNOWN_S, fields)

    def look_at(self, outcome: object) -> None:
        """Forgets what an answer may have changed: a definition answers by a text."""
        if isinstance(outcome, EskerError):
            is_old = outcome.code in _OUTDATED
        else:
            is_old = isinstance(outcome, Result) and outcome.text is not None
        if is_old:
            self.forget()

    def forget(self) -> None:
        """Takes nothing for known: a table may have been changed."""
        self._known.clear()
