"""Arguments are checked before anything is sent: what a caller hardly meant is an error.

A wrong type is a ``TypeError``, a wrong value an ``EskerError`` of the code ``invalid_request``.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Dict, List, Union

from . import _scalars as scalars
from ._errors import EskerError

_TEXTS = (str, bytes, bytearray, memoryview)


def _found(value: Any) -> str:
    return f"found {type(value).__name__}"


def invalid(message: str) -> EskerError:
    """The error of a wrong value."""
    return EskerError("invalid_request", message)


def text(what: str, value: Any) -> str:
    """A name or a statement."""
    if not isinstance(value, str):
        raise TypeError(f"{what}: expected a str, {_found(value)}")
    return value


def flag(what: str, value: Any) -> bool:
    """True or false, and no number."""
    if not isinstance(value, bool):
        raise TypeError(f"{what}: expected True or False, {_found(value)}")
    return value


def integer(what: str, value: Any, least: int, most: int) -> int:
    """A number between two others, of any type of integer, and no boolean."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{what}: expected an int, {_found(value)}")
    number = operator.index(value)
    if not least <= number <= most:
        raise invalid(f"{what}: expected {least} to {most}, found {shown(number)}")
    return number


def seconds(what: str, value: Any) -> float:
    """A finite number that is not negative, of any type of real number, and no boolean."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number:
        raise TypeError(f"{what}: expected a number of seconds, {_found(value)}")
    if not (math.isfinite(value) and 0 <= value < 1 << 53):
        raise invalid(f"{what}: expected a number of seconds, found {shown(value)}")
    return value if type(value) is int else float(value)


def shown(value: Any) -> str:
    """A value in a message: a very long integer cannot be written out."""
    is_huge = isinstance(value, int) and value.bit_length() > 256
    return f"an integer of {value.bit_length()} bits" if is_huge else str(value)


def data(what: str, value: Any) -> bytes:
    """Bytes, or a text as UTF-8."""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as e:
            raise invalid(f"{what}: expected a text that UTF-8 has: {e}") from e
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{what}: expected bytes or a str, {_found(value)}")


def iterable(what: str, value: Any) -> "Iterable[Any]":
    """Anything with an order that can be gone through: no text, dictionary or set."""
    if isinstance(value, (*_TEXTS, Mapping, Set)) or not isinstance(value, Iterable):
        hint = f": for one of them, a list with it, [{what.rstrip('s')}]"
        given = hint if isinstance(value, (*_TEXTS, Mapping)) else ""
        raise TypeError(
            f"{what}: expected a list, or an iterable like one, {_found(value)}{given}"
        )
    return value


def items(what: str, value: Any) -> List[Any]:
    """The same as a list."""
    return list(iterable(what, value))


def named(what: str, value: Any) -> Dict[str, Any]:
    """Values by name."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{what}: expected a dict, {_found(value)}")
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{what}: expected names that are str, {_found(name)}")
    return dict(value)


_SHAPES = {
    "row": "a tuple or a list with a value for every field, or a dict of fields",
    "parameters": "a list for ?, or a dict for :name",
}


def values(what: str, value: Any) -> "Union[Sequence[Any], Dict[str, Any]]":
    """Values by position, or a dictionary of them by name."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, Mapping):
        return named(what, value)
    if scalars.is_array(value) and value.ndim == 1:
        return list(value)
    if isinstance(value, _TEXTS) or not isinstance(value, Sequence):
        raise TypeError(f"{what}: expected {_SHAPES[what]}, {_found(value)}")
    return value


def key(value: Any) -> Any:
    """A key: a value, or a tuple or list of those of several fields."""
    if isinstance(value, (Mapping, Set)) or hasattr(value, "__next__"):
        raise TypeError(f"key: expected a value or a tuple of values, {_found(value)}")
    return value
