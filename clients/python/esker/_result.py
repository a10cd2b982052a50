"""The answers to statements and queries."""

from __future__ import annotations

import collections
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union, overload

from ._errors import EskerError

Row = Tuple[Any, ...]


class Column(NamedTuple):
    """A column of an answer."""

    name: str
    type: str


class Result:
    """The answer to a statement or a query: a sequence of its rows, and what else was said."""

    def __init__(self) -> None:
        self.columns: List[Column] = []
        """The columns; none where a statement has no rows."""
        self.rows: List[Row] = []
        """The rows, each with a value for every column."""
        self.changed = 0
        """How many rows a statement changed."""
        self.text: Optional[str] = None
        """What a statement says that has neither."""
        self.next: Optional[str] = None
        """The cursor of the next page of a query, if there is one."""
        self.previous: Optional[str] = None
        """The cursor of the page before."""
        self.total: Optional[int] = None
        """How many rows all pages have, where that was asked for."""

    def dicts(self) -> List[Dict[str, Any]]:
        """The rows as dictionaries by the names of columns."""
        names = self._names()
        return [dict(zip(names, row)) for row in self.rows]

    def named(self) -> List[Any]:
        """The rows as named tuples: ``row.item``. A name that Python does not allow for an
        attribute, such as ``count(*)``, is ``_`` and the position of its column."""
        kind: Any = collections.namedtuple("Row", self._names(), rename=True)  # type: ignore[misc]
        return [kind._make(row) for row in self.rows]

    def _names(self) -> List[str]:
        names = [column.name for column in self.columns]
        for name in names:
            if names.count(name) > 1:
                raise EskerError(
                    "invalid_request", f"two columns are named {name!r}: rename one with AS"
                )
        return names

    def column(self, name: str) -> List[Any]:
        """The values of one column."""
        names = self._names()
        if name not in names:
            raise KeyError(f"no column {name!r}; columns: {', '.join(names)}")
        place = names.index(name)
        return [row[place] for row in self.rows]

    def first(self) -> Optional[Row]:
        """The first row; ``None`` without rows."""
        return self.rows[0] if self.rows else None

    def scalar(self) -> Any:
        """The first value of the first row; ``None`` without rows."""
        return self.rows[0][0] if self.rows and self.rows[0] else None

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> List[Row]: ...

    def __getitem__(self, place: Union[int, slice]) -> Union[Row, List[Row]]:
        return self.rows[place]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)
