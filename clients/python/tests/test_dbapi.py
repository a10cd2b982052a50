"""`esker.dbapi` is what PEP 249 says: after Stuart Bishop's public tests for drivers."""

from __future__ import annotations

import datetime
import unittest
import warnings
from typing import Any, List, Tuple

from esker import Client, EskerError, dbapi

from .served import ServedCase
from .test_client import Faulty

try:
    import pandas
except ImportError:
    pandas = None

SAMPLES = ["Carlton Cold", "Carlton Draft", "Mountain Goat", "Redback", "Victoria Bitter", "XXXX"]


class Module(unittest.TestCase):
    def test_globals(self) -> None:
        self.assertEqual(dbapi.apilevel, "2.0")
        self.assertIn(dbapi.threadsafety, (0, 1, 2, 3))
        self.assertIn(dbapi.paramstyle, ("qmark", "numeric", "named", "format", "pyformat"))

    def test_exceptions(self) -> None:
        self.assertTrue(issubclass(dbapi.Warning, Exception))
        self.assertTrue(issubclass(dbapi.Error, Exception))
        for kind in (dbapi.InterfaceError, dbapi.DatabaseError):
            self.assertTrue(issubclass(kind, dbapi.Error))
        for kind in (
            dbapi.DataError,
            dbapi.OperationalError,
            dbapi.IntegrityError,
            dbapi.InternalError,
            dbapi.ProgrammingError,
            dbapi.NotSupportedError,
        ):
            self.assertTrue(issubclass(kind, dbapi.DatabaseError))
            self.assertIs(getattr(dbapi.Connection, kind.__name__), kind)

    def test_every_code_has_an_exception(self) -> None:
        kinds = {
            "invalid_request": dbapi.ProgrammingError,
            "not_found": dbapi.ProgrammingError,
            "forbidden": dbapi.ProgrammingError,
            "already_exists": dbapi.IntegrityError,
            "constraint_violated": dbapi.IntegrityError,
            "precondition_failed": dbapi.IntegrityError,
            "damaged": dbapi.InternalError,
            "internal": dbapi.InternalError,
            "conflict": dbapi.OperationalError,
            "connection": dbapi.OperationalError,
            "no_space": dbapi.OperationalError,
        }
        for code, kind in kinds.items():
            found = dbapi._of(EskerError(code, "why"))
            self.assertIs(type(found), kind)
            self.assertEqual((found.code, str(found)), (code, f"{code}: why"))

    def test_constructors(self) -> None:
        utc = datetime.timezone.utc
        self.assertEqual(dbapi.Date(2002, 12, 25), datetime.date(2002, 12, 25))
        self.assertEqual(dbapi.Time(13, 45, 30), datetime.time(13, 45, 30))
        moment = datetime.datetime(2002, 12, 25, 13, 45, 30, tzinfo=utc)
        self.assertEqual(dbapi.Timestamp(2002, 12, 25, 13, 45, 30), moment)
        ticks = moment.timestamp()
        self.assertEqual(dbapi.DateFromTicks(ticks), datetime.date(2002, 12, 25))
        self.assertEqual(dbapi.TimeFromTicks(ticks), datetime.time(13, 45, 30))
        self.assertEqual(dbapi.TimestampFromTicks(ticks), moment)
        for data in (b"x", bytearray(b"x"), memoryview(b"x")):
            self.assertEqual(dbapi.Binary(data), b"x")

    def test_what_is_no_bytes_is_no_binary(self) -> None:
        # bytes(5) would be five of them.
        for wrong in (5, "x", [120], None):
            with self.assertRaises(TypeError):
                dbapi.Binary(wrong)  # type: ignore[arg-type]

    def test_type_objects(self) -> None:
        self.assertTrue("i64" == dbapi.NUMBER and "decimal(9,2)" == dbapi.NUMBER)
        self.assertTrue("text" == dbapi.STRING and "bytes" == dbapi.BINARY)
        self.assertTrue("timestamp" == dbapi.DATETIME != "text")
        self.assertNotEqual(dbapi.NUMBER, dbapi.STRING)
        self.assertEqual(
            len({dbapi.STRING, dbapi.BINARY, dbapi.NUMBER, dbapi.DATETIME, dbapi.ROWID}), 5
        )


class Compliance(ServedCase):
    def setUp(self) -> None:
        with Client(self.url) as client:
            for table in client.tables():
                client.sql(f"DROP TABLE {table}")
            client.sql("CREATE TABLE booze (name text PRIMARY KEY)")
        self.connection = dbapi.connect(self.url)
        self.addCleanup(self.connection.close)
        self.cursor = self.connection.cursor()

    def fill(self) -> None:
        self.cursor.executemany("INSERT INTO booze VALUES (?)", [(name,) for name in SAMPLES])

    def seen(self) -> List[Any]:
        """What another connection sees."""
        with Client(self.url) as client:
            return client.sql("SELECT name FROM booze ORDER BY name").column("name")

    def test_connections(self) -> None:
        connection = dbapi.connect(self.url)
        connection.commit()
        connection.rollback()
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM booze")
        connection.close()
        for body in (connection.commit, connection.cursor, connection.rollback, cursor.fetchall):
            with self.assertRaises(dbapi.Error):
                body()
        with self.assertRaises(dbapi.Error):
            cursor.execute("SELECT 1")
        connection.close()
        with self.assertRaises(dbapi.OperationalError):
            dbapi.connect("127.0.0.1:1")

    def test_cursors_of_a_connection_are_not_isolated(self) -> None:
        other = self.connection.cursor()
        self.cursor.execute("INSERT INTO booze VALUES ('Victoria Bitter')")
        other.execute("SELECT name FROM booze")
        self.assertEqual(other.fetchall(), [("Victoria Bitter",)])

    def test_description(self) -> None:
        cursor = self.cursor
        self.assertIsNone(cursor.description)
        cursor.execute("CREATE TABLE d (id i64 PRIMARY KEY, price decimal(9,2), at timestamp)")
        self.assertIsNone(cursor.description)
        cursor.execute("SELECT id, price, at FROM d")
        description = cursor.description
        assert description is not None
        self.assertEqual([column[0] for column in description], ["id", "price", "at"])
        self.assertEqual([len(column) for column in description], [7] * 3)
        self.assertEqual(description[1], ("price", "decimal(9,2)", None, None, 9, 2, None))
        self.assertTrue(description[0][1] == dbapi.NUMBER and description[2][1] == dbapi.DATETIME)
        cursor.execute("INSERT INTO d VALUES (1, 2.5, NULL)")
        self.assertIsNone(cursor.description)

    def test_rowcount(self) -> None:
        cursor = self.cursor
        self.assertEqual(cursor.rowcount, -1)
        cursor.execute("CREATE TABLE r (id i64 PRIMARY KEY)")
        self.assertEqual(cursor.rowcount, -1)
        cursor.execute("INSERT INTO r VALUES (1), (2)")
        self.assertEqual(cursor.rowcount, 2)
        cursor.execute("SELECT id FROM r")
        self.assertEqual(cursor.rowcount, 2)
        cursor.execute("DELETE FROM r WHERE id = 8")
        self.assertEqual(cursor.rowcount, 0)
        cursor.execute("INSERT INTO r VALUES (3) RETURNING id")
        self.assertEqual((cursor.rowcount, cursor.fetchall()), (1, [(3,)]))
        cursor.executemany("DELETE FROM r WHERE id = ?", [(1,), (2,), (7,)])
        self.assertEqual(cursor.rowcount, 2)
        cursor.executemany("DELETE FROM r WHERE id = ?", [])
        self.assertEqual(cursor.rowcount, 0)

    def test_parameters(self) -> None:
        cursor = self.cursor
        for text, parameters in [
            ("INSERT INTO booze VALUES (?)", ("Cooper's",)),
            ("INSERT INTO booze VALUES (?)", ["?"]),
            ("INSERT INTO booze VALUES (:beer)", {"beer": "Gösser"}),
        ]:
            cursor.execute(text, parameters)  # type: ignore[arg-type]
        cursor.executemany("INSERT INTO booze VALUES (:beer)", [{"beer": "a"}, {"beer": "b"}])
        cursor.execute("SELECT name FROM booze ORDER BY name")
        self.assertEqual([row[0] for row in cursor], ["?", "Cooper's", "Gösser", "a", "b"])
        naive = datetime.datetime(2024, 2, 29, 12)
        cursor.execute("SELECT TIMESTAMP '2024-02-29 12:00' = ?", [naive])
        self.assertEqual(cursor.fetchone(), (True,))
        loose: Any = cursor
        for wrong in ("ab", b"ab", 5, {1}, None):
            with self.assertRaises(dbapi.ProgrammingError):
                loose.execute("SELECT ?", wrong)
            with self.assertRaises(dbapi.ProgrammingError):
                loose.executemany("SELECT ?", wrong)
            with self.assertRaises(dbapi.ProgrammingError):
                loose.executemany("SELECT ?", [wrong])
        with self.assertRaises(dbapi.ProgrammingError):
            cursor.execute("SELECT ?", ())
        with self.assertRaises(dbapi.DataError):
            cursor.execute("SELECT ?", [10**40])

    def test_fetchone(self) -> None:
        cursor = self.cursor
        self.assertRaises(dbapi.Error, cursor.fetchone)
        cursor.execute("CREATE TABLE f (id i64)")
        self.assertRaises(dbapi.Error, cursor.fetchone)
        cursor.execute("SELECT name FROM booze")
        self.assertIsNone(cursor.fetchone())
        cursor.execute("INSERT INTO booze VALUES ('Victoria Bitter')")
        self.assertRaises(dbapi.Error, cursor.fetchone)
        cursor.execute("SELECT name FROM booze")
        row = cursor.fetchone()
        self.assertEqual((row, row.name), (("Victoria Bitter",), "Victoria Bitter"))
        self.assertIsNone(cursor.fetchone())

    def test_fetchmany(self) -> None:
        cursor = self.cursor
        self.assertRaises(dbapi.Error, cursor.fetchmany, 4)
        self.fill()
        cursor.execute("SELECT name FROM booze ORDER BY name")
        self.assertEqual(cursor.fetchmany(), [(SAMPLES[0],)])
        cursor.arraysize = 4
        self.assertEqual(cursor.rownumber, 1)
        self.assertEqual([row[0] for row in cursor.fetchmany()], SAMPLES[1:5])
        self.assertEqual([row[0] for row in cursor.fetchmany(10)], SAMPLES[5:])
        self.assertEqual(cursor.fetchmany(10), [])
        self.assertEqual(cursor.fetchmany(0), [])

    def test_fetchall_and_iteration(self) -> None:
        cursor = self.cursor
        self.assertRaises(dbapi.Error, cursor.fetchall)
        self.fill()
        self.assertRaises(dbapi.Error, cursor.fetchall)
        cursor.execute("SELECT name FROM booze ORDER BY name")
        self.assertEqual(cursor.fetchone(), (SAMPLES[0],))
        self.assertEqual(next(cursor), (SAMPLES[1],))
        self.assertEqual([row[0] for row in cursor.fetchall()], SAMPLES[2:])
        self.assertEqual(cursor.fetchall(), [])
        self.assertEqual(
            [row[0] for row in cursor.execute("SELECT name FROM booze ORDER BY name")], SAMPLES
        )
        self.assertEqual(list(cursor), [])

    def test_the_rest_of_a_cursor(self) -> None:
        cursor = self.cursor
        cursor.setinputsizes([25])
        cursor.setoutputsize(1000)
        cursor.setoutputsize(2000, 0)
        self.assertIs(cursor.connection, self.connection)
        self.assertIsNone(cursor.lastrowid)
        with cursor as same:
            same.execute("SELECT 1")
            self.assertEqual(same.fetchone(), (1,))
        self.assertRaises(dbapi.Error, cursor.execute, "SELECT 1")
        self.assertRaises(dbapi.Error, cursor.fetchall)

    def test_values(self) -> None:
        cursor = self.cursor
        cursor.execute(
            "CREATE TABLE v (id i64 PRIMARY KEY, day date, clock time, at timestamp, raw bytes, n f64)"
        )
        at = dbapi.Timestamp(2002, 12, 25, 13, 45, 30)
        row = (
            1,
            dbapi.Date(2002, 12, 25),
            dbapi.Time(13, 45, 30),
            at,
            dbapi.Binary(b"\x00\xff"),
            None,
        )
        cursor.execute("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)", row)
        cursor.execute(
            "INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)",
            (2, "2002-12-25", "13:45:30", "2002-12-25T13:45:30Z", None, 1),
        )
        cursor.execute("SELECT * FROM v ORDER BY id")
        self.assertEqual(cursor.fetchall(), [row, (2, *row[1:4], None, 1.0)])

    def test_commit_and_rollback(self) -> None:
        self.assertFalse(self.connection.in_transaction)
        self.fill()
        self.assertTrue(self.connection.in_transaction)
        self.assertEqual(self.seen(), [])
        self.connection.rollback()
        self.cursor.execute("SELECT count(*) FROM booze")
        self.assertEqual(self.cursor.fetchone(), (0,))
        self.connection.rollback()
        self.fill()
        self.connection.commit()
        self.assertEqual(self.seen(), SAMPLES)
        self.cursor.execute("DELETE FROM booze")
        self.connection.close()
        self.assertEqual(self.seen(), SAMPLES)

    def test_connections_as_context_managers(self) -> None:
        with dbapi.connect(self.url) as connection:
            connection.cursor().execute("INSERT INTO booze VALUES ('a')")
        self.assertEqual(self.seen(), ["a"])
        self.assertRaises(dbapi.Error, connection.cursor)
        with self.assertRaises(KeyError):
            with dbapi.connect(self.url) as connection:
                connection.cursor().execute("INSERT INTO booze VALUES ('b')")
                raise KeyError("no")
        with dbapi.connect(self.url) as connection:
            connection.close()
        self.assertEqual(self.seen(), ["a"])

    def test_autocommit(self) -> None:
        connection, cursor = self.connection, self.cursor
        self.assertFalse(connection.autocommit)
        connection.autocommit = True
        cursor.execute("INSERT INTO booze VALUES ('a')")
        self.assertEqual((self.seen(), connection.in_transaction), (["a"], False))
        with self.assertRaises(dbapi.IntegrityError):
            cursor.executemany("INSERT INTO booze VALUES (?)", [("b",), ("a",)])
        self.assertEqual(self.seen(), ["a"])
        cursor.executemany("INSERT INTO booze VALUES (?)", [("b",), ("c",)])
        self.assertEqual(self.seen(), ["a", "b", "c"])
        connection.commit()
        connection.autocommit = False
        cursor.execute("DELETE FROM booze")
        with self.assertRaises(dbapi.ProgrammingError):
            connection.autocommit = True
        connection.rollback()
        for wrong in (None, 1, "off"):
            with self.assertRaises(dbapi.ProgrammingError):
                connection.autocommit = wrong  # type: ignore[assignment]
        connection.autocommit = True
        with dbapi.connect(self.url, autocommit=True) as other:
            self.assertTrue(other.autocommit)

    def test_not_null_and_check_are_integrity_errors(self) -> None:
        cursor, table = self.cursor, "s (id i64 PRIMARY KEY, t text NOT NULL, n i64 CHECK (n > 0))"
        cursor.execute(f"CREATE TABLE {table}")
        cursor.execute("INSERT INTO s VALUES (1, 'a', 1)")
        wrongs: List[Tuple[str, List[Any]]] = [
            ("INSERT INTO s (id) VALUES (?)", [2]),
            ("INSERT INTO s VALUES (?, ?, ?)", [2, None, 1]),
            ("INSERT INTO s VALUES (?, ?, ?)", [2, "b", 0]),
            ("UPDATE s SET t = ?", [None]),
            ("UPDATE s SET n = n - ?", [1]),
            ("ALTER TABLE s ADD CONSTRAINT most CHECK (n > 1)", []),
        ]
        for wrong, parameters in wrongs:
            with self.assertRaises(dbapi.IntegrityError) as caught:
                cursor.execute(wrong, parameters)
            self.assertEqual(caught.exception.code, "constraint_violated", wrong)
        self.connection.commit()
        self.assertEqual(cursor.execute("SELECT * FROM s").fetchall(), [(1, "a", 1)])
        self.connection.rollback()
        with Client(self.url) as client:
            rows: List[Any] = [(2, None, 1), {"id": 2}, {"id": 2, "t": "b", "n": 0}]
            for row in rows:
                with self.assertRaises(EskerError) as told:
                    client.insert("s", row)
                self.assertEqual(told.exception.code, "constraint_violated", row)
                with self.assertRaises(EskerError) as told:
                    client.load("s", [row])
                self.assertEqual(told.exception.code, "constraint_violated", row)
            with self.assertRaises(EskerError) as told:
                client.update("s", 1, t=None)
            self.assertEqual(told.exception.code, "constraint_violated")

    def test_errors_leave_the_transaction_open(self) -> None:
        cursor = self.cursor
        cursor.execute("INSERT INTO booze VALUES ('a')")
        for text, kind in [
            ("SELEC 1", dbapi.ProgrammingError),
            ("SELECT * FROM nowhere", dbapi.ProgrammingError),
            ("INSERT INTO booze VALUES ('a')", dbapi.IntegrityError),
            ("BEGIN", dbapi.ProgrammingError),
            ("COMMIT", dbapi.ProgrammingError),
        ]:
            with self.assertRaises(kind):
                cursor.execute(text)
            with self.assertRaises(EskerError):
                cursor.execute(text)
        names = [("b",), *[(f"n{i}",) for i in range(1_500)], ("a",)]
        with self.assertRaises(dbapi.IntegrityError):
            cursor.executemany("INSERT INTO booze VALUES (?)", names)
        self.connection.commit()
        self.assertEqual(self.seen(), ["a"])

    def test_conflicts(self) -> None:
        with Client(self.url) as client:
            client.sql("CREATE TABLE c (id i64 PRIMARY KEY, n i64)")
            client.insert("c", (1, 0))
            self.cursor.execute("UPDATE c SET n = 1 WHERE id = 1")
            client.update("c", 1, n=2)
            with self.assertRaises(dbapi.OperationalError) as caught:
                self.connection.commit()
            self.assertEqual(caught.exception.code, "conflict")
            self.cursor.execute("UPDATE c SET n = n + 1 WHERE id = 1")
            self.connection.commit()
            self.assertEqual(client.get("c", 1), (1, 3))

    def test_a_transaction_that_is_lost_is_rolled_back_first(self) -> None:
        with Faulty(self.url) as faulty, dbapi.connect(faulty.url) as connection:
            cursor = connection.cursor()
            cursor.execute("INSERT INTO booze VALUES ('a')")
            faulty.faults = 1
            for body in (
                lambda: cursor.execute("SELECT 1"),
                lambda: cursor.execute("SELECT 1"),
                connection.commit,
            ):
                with self.assertRaises(dbapi.OperationalError):
                    body()
            connection.rollback()
            cursor.execute("INSERT INTO booze VALUES ('b')")
        self.assertEqual(self.seen(), ["b"])

    def test_options(self) -> None:
        with dbapi.connect(self.url, rows="dict", nan_as_null=True, iso_times=True) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT ? IS NULL AS a, DATE '2024-02-29' AS b", [float("nan")])
            self.assertEqual(cursor.fetchone(), {"a": True, "b": "2024-02-29"})

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_pandas(self) -> None:
        pd: Any = pandas
        self.fill()
        with warnings.catch_warnings():
            # It has tested SQLAlchemy and SQLite alone.
            warnings.simplefilter("ignore", UserWarning)
            frame = pd.read_sql("SELECT name, 1.5e0 AS f FROM booze ORDER BY name", self.connection)
            some = pd.read_sql(
                "SELECT name FROM booze WHERE name < ?", self.connection, params=["M"]
            )
        self.assertEqual((list(frame.columns), list(frame["name"])), (["name", "f"], SAMPLES))
        self.assertEqual((str(frame["f"].dtype), len(some)), ("float64", 2))


if __name__ == "__main__":
    unittest.main()
