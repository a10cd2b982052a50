"""How values, rows and times are converted: the options of a connection, and of a call."""

from __future__ import annotations

from typing import NamedTuple, Optional

from . import _check as check

ROW_KINDS = ("row", "tuple", "dict")


class Codec(NamedTuple):
    """What a client converts on the way to the server, and back."""

    rows: str = "row"
    """What a row of an answer is: a ``row`` (:class:`esker.Row`), a ``tuple`` or a ``dict``."""
    nan_as_null: bool = False
    """True when NaN is sent as NULL."""
    naive_as_utc: bool = False
    """True when a datetime without a zone is taken as UTC; else it is refused."""
    iso_times: bool = False
    """True when dates, times and timestamps of answers are ISO texts."""

    def but(
        self,
        rows: Optional[str] = None,
        nan_as_null: Optional[bool] = None,
        iso_times: Optional[bool] = None,
    ) -> "Codec":
        """The same, but for what a call says."""
        if rows is None and nan_as_null is None and iso_times is None:
            return self
        return codec(
            self.rows if rows is None else rows,
            self.nan_as_null if nan_as_null is None else nan_as_null,
            self.naive_as_utc,
            self.iso_times if iso_times is None else iso_times,
        )


def codec(rows: str, nan_as_null: bool, naive_as_utc: bool, iso_times: bool) -> Codec:
    """The options, checked."""
    if check.text("rows", rows) not in ROW_KINDS:
        raise check.invalid(f"rows: expected row, tuple or dict, found {rows!r}")
    return Codec(
        rows,
        check.flag("nan_as_null", nan_as_null),
        check.flag("naive_as_utc", naive_as_utc),
        check.flag("iso_times", iso_times),
    )


PLAIN = Codec()
