"""The answers to statements and queries."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from . import _show as show
from ._row import Row, distinct, row_class


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
        names = distinct(self._names())
        return [dict(zip(names, values)) for values in self._values()]

    def tuples(self) -> List[Row]:
        """The rows as plain tuples."""
        return [tuple(values) for values in self._values()]  # type: ignore[misc]

    def named(self) -> List[Row]:
        """The rows as :class:`esker.Row`, which rows are unless the client was made otherwise."""
        kind = row_class(tuple(distinct(self._names())))
        return [kind(values) for values in self._values()]

    def _values(self) -> List[Sequence[Any]]:
        """The values of each row."""
        if self.rows and isinstance(self.rows[0], dict):
            return [list(row.values()) for row in self.rows]
        return list(self.rows)

    def _names(self) -> List[str]:
        return [column.name for column in self.columns]

    def column(self, name: str) -> List[Any]:
        """The values of one column."""
        names = distinct(self._names())
        if name not in names:
            raise KeyError(f"no column {name!r}; columns: {', '.join(names)}")
        place = names.index(name)
        return [values[place] for values in self._values()]

    def first(self) -> Optional[Row]:
        """The first row; ``None`` without rows."""
        return self.rows[0] if self.rows else None

    def scalar(self) -> Any:
        """The first value of the first row; ``None`` without rows."""
        if not self.rows or not self.rows[0]:
            return None
        return next(iter(self._values()[0]))

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

    def __repr__(self) -> str:
        """The rows as a table: the first and the last, cut to a width."""
        if not self.columns:
            return f"<Result: {self._said()}>"
        return show.table(self._names(), self._types(), self._values())

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        if not self.columns:
            return show.html_text(self._said())
        return show.html(self._names(), self._types(), self._values())

    def _types(self) -> List[str]:
        return [column.type for column in self.columns]

    def _said(self) -> str:
        return self.text if self.text is not None else show.count(self.changed, "row") + " changed"
