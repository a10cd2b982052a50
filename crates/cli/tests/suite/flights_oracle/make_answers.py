#!/usr/bin/env python3
"""Asks SQLite the questions of queries.sql over the flights tables and writes answers.json.

Run it from the root of the repository after changing queries.sql; it needs Python 3 and zstd.
"""
import csv
import io
import json
import pathlib
import sqlite3
import subprocess

HERE = pathlib.Path(__file__).parent
FLIGHTS = HERE.parents[4] / "examples" / "flights"
REAL = {
    "airports": {"lat", "lon"},
    "weather": {"temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib"},
}
TEXT = {
    "flights": {"carrier", "tailnum", "origin", "dest", "time_hour"},
    "airlines": {"carrier", "name"},
    "airports": {"faa", "name", "dst", "tzone"},
    "planes": {"tailnum", "type", "manufacturer", "model", "engine"},
    "weather": {"origin", "time_hour"},
}


def value(table, column, text):
    if text == "NA":
        return None
    if column == "time_hour":
        return text.replace("T", " ").rstrip("Z")
    if column in TEXT[table]:
        return text
    return float(text) if column in REAL.get(table, ()) else int(text)


def load(connection, table):
    file = FLIGHTS / f"{table}.csv.zst"
    text = subprocess.run(["zstd", "-dcq", file], check=True, stdout=subprocess.PIPE).stdout
    with io.StringIO(text.decode(), newline="") as file:
        rows = csv.reader(file)
        header = next(rows)
        kinds = [
            "TEXT" if c in TEXT[table] else "REAL" if c in REAL.get(table, ()) else "INTEGER"
            for c in header
        ]
        columns = ", ".join(f'"{c}" {k}' for c, k in zip(header, kinds))
        connection.execute(f"CREATE TABLE {table} ({columns})")
        places = ", ".join("?" * len(header))
        connection.executemany(
            f"INSERT INTO {table} VALUES ({places})",
            ([value(table, c, t) for c, t in zip(header, row)] for row in rows),
        )


def main():
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    for table in TEXT:
        load(connection, table)
    lines = (HERE / "queries.sql").read_text().splitlines()
    queries = [line.rstrip(";") for line in lines if line and not line.startswith("--")]
    answers = []
    for query in queries:
        rows = [list(row) for row in connection.execute(query)]
        answers.append(json.dumps({"query": query, "rows": rows}))
    (HERE / "answers.json").write_text("[\n" + ",\n".join(answers) + "\n]\n")
    print(f"{len(answers)} answers by SQLite {sqlite3.sqlite_version}")


main()
