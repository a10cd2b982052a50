"""DuckDB and SQLite for a program on the other end of a pipe: a request a line, an answer a line.

Requests and answers are JSON. A request has `do` and what that needs; an answer has what was asked
for, or `error`. What JSON has no value for is an object of one member: `d` a decimal, `f` a float,
`t` a date or time, `b` bytes in hex, `s` anything else as text.
"""

import csv
import datetime
import decimal
import json
import os
import sys
import threading
import time


def duckdb_module():
    try:
        import duckdb
    except ImportError:
        raise SystemExit("the Python package duckdb is missing")
    return duckdb


class DuckDB:
    def open(self, request):
        duckdb = duckdb_module()
        self.connection = duckdb.connect(request.get("path", ":memory:"))
        self.connection.execute("SET enable_progress_bar = false")
        for name, value in request.get("settings", {}).items():
            self.connection.execute(f"SET {name} = '{value}'")
        return duckdb.__version__

    def execute(self, text, values):
        cursor = self.connection.execute(text, values) if values else self.connection.execute(text)
        return cursor.fetchall() if cursor.description is not None else []

    def interrupt(self):
        self.connection.interrupt()

    def load(self, request):
        path = request["path"].replace("'", "''")
        options = "HEADER, DELIMITER ',', QUOTE '\"', ESCAPE '\"', ALLOW_QUOTED_NULLS false"
        self.connection.execute(f"COPY {request['table']} FROM '{path}' ({options})")
        self.connection.execute("CHECKPOINT")


class SQLite:
    def open(self, request):
        import sqlite3

        path = request.get("path", ":memory:")
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for name, value in request.get("settings", {}).items():
            self.connection.execute(f"PRAGMA {name} = {value}").fetchall()
        return sqlite3.sqlite_version

    def execute(self, text, values):
        return self.connection.execute(text, values or []).fetchall()

    def interrupt(self):
        self.connection.interrupt()

    def load(self, request):
        with open(request["path"], newline="") as file:
            reader = csv.reader(file)
            places = ", ".join("?" for _ in next(reader))
            self.connection.execute("BEGIN")
            insert = f"INSERT INTO {request['table']} VALUES ({places})"
            self.connection.executemany(insert, reader)
            self.connection.execute("COMMIT")


def cell(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else {"d": str(value)}
    if isinstance(value, float):
        return {"f": repr(value)}
    if isinstance(value, decimal.Decimal):
        return {"d": format(value, "f")}
    if isinstance(value, (datetime.date, datetime.time)):
        return {"t": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"b": bytes(value).hex()}
    return {"s": str(value)}


ENGINES = {"duckdb": DuckDB(), "sqlite": SQLite()}


def answer(request):
    engine = ENGINES[request["engine"]]
    match request["do"]:
        case "open":
            return {"version": engine.open(request)}
        case "load":
            engine.load(request)
            return {}
        case "run":
            timer = threading.Timer(request.get("seconds", 3600), engine.interrupt)
            timer.start()
            try:
                start = time.perf_counter()
                rows = engine.execute(request["sql"], request.get("values"))
                seconds = time.perf_counter() - start
            finally:
                timer.cancel()
            if not request.get("rows", True):
                return {"seconds": seconds}
            rows = [[cell(value) for value in row] for row in rows]
            return {"seconds": seconds, "rows": rows}
    raise ValueError(f"unknown request {request['do']!r}")


def main():
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answered = answer(json.loads(line))
        except Exception as error:
            answered = {"error": " ".join(str(error).split()) or type(error).__name__}
        print(json.dumps(answered), file=answers, flush=True)


main()
