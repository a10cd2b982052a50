"""Answers as tables: for terminals, and for notebooks."""

from __future__ import annotations

import html as escaping
import shutil
import unicodedata
from typing import Any, List, Optional, Sequence

# So many rows are shown, half of them from the end; and so much of a value.
ROWS_MAX = 20
_CELL_WIDTH_MAX = 40
_COLUMNS_MAX = 30

Rows = Sequence[Sequence[Any]]


def count(number: int, what: str) -> str:
    """How many there are of something.

    >>> count(1, "row"), count(1500, "row")
    ('1 row', '1,500 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _width(text: str) -> int:
    """The columns of a terminal that a text takes."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while text and _width(text) >= width:
        text = text[:-1]
    return text + "…"


def cell(value: Any) -> str:
    """A value in one line."""
    if value is None:
        return "NULL"
    most = 2 * _CELL_WIDTH_MAX
    text = str(value[:most] if isinstance(value, (str, bytes)) else value)[:most]
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return _cut(shown, _CELL_WIDTH_MAX)


def _is_number(kind: str) -> bool:
    return kind.startswith("decimal") or (kind[:1] in "iuf" and kind[1:].isdigit())


def _shown(rows: Rows) -> List[Optional[Sequence[Any]]]:
    """The first and the last rows, and ``None`` for those between."""
    if len(rows) <= ROWS_MAX:
        return list(rows)
    return [*rows[: ROWS_MAX // 2], None, *rows[-(ROWS_MAX // 2) :]]


def _padded(text: str, width: int, is_right: bool) -> str:
    gap = " " * (width - _width(text))
    return gap + text if is_right else text + gap


def table(
    names: Sequence[str], types: Sequence[str], rows: Rows, width: Optional[int] = None
) -> str:
    """Rows with their columns beside each other, as many as the width has room for.

    >>> print(table(["item", "n"], ["text", "i64"], [("tea", 3), ("salt", None)], 40))
    item |    n
    -----+-----
    tea  |    3
    salt | NULL
    2 rows
    """
    room = shutil.get_terminal_size().columns if width is None else width
    shown = _shown(rows)
    columns: List[List[str]] = []
    left = room
    for at, name in enumerate(names):
        cells = [cell(name), *("…" if row is None else cell(row[at]) for row in shown)]
        widest = max(map(_width, cells))
        if columns and left < widest + (5 if at + 1 < len(names) else 0):
            break
        is_right = _is_number(types[at])
        widest = min(widest, max(room, 1))
        columns.append([_padded(_cut(c, widest), widest, is_right) for c in cells])
        left -= widest + 3
    hidden = len(names) - len(columns)
    if hidden:
        columns.append(["…"] * (len(shown) + 1))
    lines = [" | ".join(line).rstrip() for line in zip(*columns)]
    rule = "-+-".join("-" * _width(column[0]) for column in columns)
    end = count(len(rows), "row")
    if hidden:
        end += f", {count(hidden, 'more column')}"
    return "\n".join([lines[0], rule, *lines[1:], end])


def html_text(text: str) -> str:
    """A text as HTML."""
    return f"<p>{escaping.escape(text)}</p>"


def html(names: Sequence[str], types: Sequence[str], rows: Rows) -> str:
    """Rows as a table of HTML.

    >>> html(["n"], ["i64"], [(1,)]).count("<td")
    1
    """
    hidden = max(0, len(names) - _COLUMNS_MAX)
    places = range(len(names) - hidden)

    def line(tag: str, texts: Sequence[str]) -> str:
        cells = [
            f'<{tag} style="text-align: {"right" if _is_number(types[at]) else "left"}">'
            f"{escaping.escape(text)}</{tag}>"
            for at, text in zip(places, texts)
        ]
        return f"<tr>{''.join(cells)}{f'<{tag}>…</{tag}>' if hidden else ''}</tr>"

    lines = ["<table><thead>", line("th", [cell(name) for name in names]), "</thead><tbody>"]
    for row in _shown(rows):
        texts = ["…"] * len(names) if row is None else [cell(row[at]) for at in places]
        lines.append(line("td", texts))
    end = count(len(rows), "row")
    if hidden:
        end += f", {count(hidden, 'more column')}"
    return "\n".join([*lines, "</tbody></table>", html_text(end)])
