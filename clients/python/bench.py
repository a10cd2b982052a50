"""How long rows take on their way in and out: 336,776 rows of five fields.

    ESKER=target/release/esker python3 clients/python/bench.py [--rounds N] [--generated]

The rows are those of the example's flights, where `zstd` can unpack them, or generated ones: an
integer, a text, a float, a timestamp, and a small integer that may be NULL. A server of its own, in
memory, is loaded and asked over TCP on this machine. What comes back is compared with what was
sent, value by value and type by type, before any time is printed: medians in seconds, by the clock,
and of the processor time of this process.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, _HERE)

from esker import Client  # noqa: E402
from tests.served import Served  # noqa: E402

ROWS = 336_776
_FLIGHTS = os.path.join(_HERE, "../../examples/flights/flights.csv.zst")
_UTC = datetime.timezone.utc
_TABLE = "CREATE TABLE rows (id i64 PRIMARY KEY, name text, size f64, at timestamp, delay i16)"

Row = Tuple[int, str, float, datetime.datetime, Any]


def flights() -> List[Row]:
    """Number, tail number, distance, hour and delay of each flight."""
    unpacked = subprocess.run(["zstd", "-dc", _FLIGHTS], check=True, capture_output=True).stdout
    lines = csv.DictReader(io.StringIO(unpacked.decode()))
    rows = []
    for number, line in enumerate(lines):
        day = datetime.date.fromisoformat(line["time_hour"][:10])
        hour = datetime.time(int(line["time_hour"][11:13]))
        moment = datetime.datetime.combine(day, hour, _UTC)
        delay = None if line["dep_delay"] == "NA" else int(line["dep_delay"])
        rows.append((number, line["tailnum"], float(line["distance"]), moment, delay))
    return rows


def generated() -> List[Row]:
    """The same number of rows, whose values seldom repeat."""
    chance = random.Random(2013)
    first = datetime.datetime(2013, 1, 1, tzinfo=_UTC)

    def row(number: int) -> Row:
        at = first + datetime.timedelta(seconds=chance.randrange(365 * 86_400))
        delay = None if chance.random() < 0.025 else chance.randrange(-30, 800)
        return (number, f"N{chance.randrange(100_000):05}", chance.random() * 5_000, at, delay)

    return [row(number) for number in range(ROWS)]


def timed(body: Callable[[], Any]) -> Tuple[Any, float, float]:
    """What a function returns, and how long it took: by the clock, and by the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    found = body()
    return found, time.perf_counter() - clock, time.process_time() - processor


def expect_equal(found: List[Any], sent: List[Row]) -> None:
    """Raises unless all values, and their types, are those that were sent."""
    if [tuple(row) for row in found] != sent:
        raise AssertionError("the rows that came back are not those that were sent")
    for column, other in zip(zip(*found), zip(*sent)):
        if list(map(type, column)) != list(map(type, other)):
            raise AssertionError("a value came back with another type")


def main() -> None:
    """Prints the medians of some rounds."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--generated", action="store_true", help="not the flights")
    given = arguments.parse_args()
    has_flights = os.path.exists(_FLIGHTS) and shutil.which("zstd") is not None
    sent = generated() if given.generated or not has_flights else flights()
    times: Dict[str, List[Tuple[float, float]]] = {"in": [], "out": []}
    server = Served("--trust-local")
    try:
        with Client(server.url) as client:
            for _ in range(given.rounds):
                client.sql("DROP TABLE IF EXISTS rows")
                client.sql(_TABLE)
                loaded, *took = timed(lambda: client.load("rows", sent))
                assert loaded == len(sent), loaded
                times["in"].append((took[0], took[1]))
                found, *took = timed(lambda: client.sql("SELECT * FROM rows").rows)
                times["out"].append((took[0], took[1]))
                expect_equal(sorted(found), sent)
                del found
    finally:
        server.stop()
    print(f"{len(sent):,} rows of {len(sent[0])} fields, medians of {given.rounds} rounds")
    totals = [0.0, 0.0]
    for name, pairs in times.items():
        medians = [statistics.median(column) for column in zip(*pairs)]
        totals = [total + median for total, median in zip(totals, medians)]
        print(f"{name:5} {medians[0]:6.2f} s, processor {medians[1]:6.2f} s")
    print(f"{'both':5} {totals[0]:6.2f} s, processor {totals[1]:6.2f} s")


if __name__ == "__main__":
    main()
