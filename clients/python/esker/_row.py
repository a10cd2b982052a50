"""The rows of answers: tuples whose values have names, too."""

from __future__ import annotations

import collections
import functools
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    ClassVar,
    Dict,
    Iterable,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
    overload,
)

from ._errors import EskerError


class Row(Tuple[Any, ...]):
    """A row of an answer: a tuple, whose values are found by name, too.

    >>> row = row_class(("item", "n"))(["tea", 3])
    >>> row == ("tea", 3), row[1], row["n"], row.n, row._asdict()
    (True, 3, 3, 3, {'item': 'tea', 'n': 3})
    >>> row
    Row(item='tea', n=3)

    ``row["n"]`` takes any name; ``row.n`` those that are no method of :class:`Row`, which begin
    with an underscore. A name that two columns have is an error.
    """

    __slots__ = ()
    _fields: ClassVar[Tuple[str, ...]] = ()
    """The names of the columns."""
    _places: ClassVar[Dict[str, int]] = {}

    @overload  # type: ignore[override]
    def __getitem__(self, place: Union[int, str]) -> Any: ...

    @overload
    def __getitem__(self, place: slice) -> Tuple[Any, ...]: ...

    def __getitem__(self, place: Union[int, str, slice]) -> Any:
        if isinstance(place, str):
            return tuple.__getitem__(self, self._place(place))
        return tuple.__getitem__(self, place)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def _place(cls, name: str) -> int:
        found = cls._places.get(name)
        if found is None:
            if cls._fields.count(name) > 1:
                raise twice((name, name))
            raise KeyError(f"no column {name!r}; columns: {', '.join(cls._fields)}")
        return found

    def _asdict(self) -> Dict[str, Any]:
        """The values by name."""
        return dict(zip(distinct(self._fields), self))

    def __repr__(self) -> str:
        pairs = zip(self._fields, self)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuilt, (self._fields, tuple(self))


def _rebuilt(names: Tuple[str, ...], values: Tuple[Any, ...]) -> Row:
    return row_class(names)(values)


def _attribute(place: int) -> property:
    return property(lambda row: tuple.__getitem__(row, place))


@functools.lru_cache(maxsize=256)
def row_class(names: Tuple[str, ...]) -> Type[Row]:
    """The class of rows with columns of such names."""
    counts = collections.Counter(names)
    places = {name: at for at, name in enumerate(names) if counts[name] == 1}
    members: Dict[str, Any] = {"__slots__": (), "_fields": names, "_places": places}
    for name, place in places.items():
        if name.isidentifier() and not name.startswith("_"):
            members[name] = _attribute(place)
    return type("Row", (Row,), members)


def twice(names: Sequence[str]) -> EskerError:
    """The error where two columns have the same name."""
    name = next(name for name in names if names.count(name) > 1)
    message = f"two columns are named {name!r}: rename one with AS"
    return EskerError("invalid_request", message)


def distinct(names: Sequence[str]) -> Sequence[str]:
    """The names, of which none comes twice."""
    if len(set(names)) < len(names):
        raise twice(names)
    return names


def maker(kind: str, names: Optional[Tuple[str, ...]]) -> Callable[[Iterable[Any]], Any]:
    """What makes a row of its values: a row, a tuple or a dict. Without names it is a tuple."""
    if kind == "tuple" or names is None:
        return tuple
    if kind == "row":
        return row_class(names)
    columns = distinct(names)
    return lambda values: dict(zip(columns, values))
