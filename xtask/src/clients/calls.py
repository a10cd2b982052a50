"""Every operation of the document once, by the client that openapi-python-client made of it.

Writes a line for each to a file: the operation, and the status that it was answered with.
"""

import io
import sys
from http import HTTPStatus
from typing import Protocol, TypeVar

from esker_http import AuthenticatedClient
from esker_http.api.default import (
    alter_table, backup, begin, change_row, check, commit, compact, create_bucket,
    create_database, create_index, create_table, create_token, describe_bucket,
    describe_database, describe_table, end_session, explain, get_entry, get_limits, get_row,
    health, increment_entry, index, list_backups, list_buckets, list_databases, list_entries,
    list_rows, list_tables, list_tokens, load_rows, metrics, openapi, put_entry, put_row, query,
    readiness, remove_bucket, remove_database, remove_entry, remove_index, remove_row,
    remove_table, remove_token, rename_bucket, restore, rollback, rotate_token, sessions,
    set_limits, slow_statements,
)
from esker_http.models import (
    Answer, BucketNames, EntryPage, JsonQuery, Limits, MadeToken, NewBackup, NewIndex, NewName,
    NewTable, NewToken, NewTransaction, Restore, Row, SessionList, SqlQuery, Table,
    TableAlteration, Transaction,
)
from esker_http.types import File

base, token, target = sys.argv[1:]
client = AuthenticatedClient(base_url=base, token=token)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
DB, COPY = "python", "python-copy"


class Answered(Protocol[T_co]):
    """What a call of the client returns."""

    @property
    def status_code(self) -> HTTPStatus: ...
    @property
    def content(self) -> bytes: ...
    @property
    def parsed(self) -> T_co: ...


class Calls:
    """What was called, and what came of it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, operation: str, answered: Answered[T], expected: int) -> T:
        status = int(answered.status_code)
        if status != expected:
            text = answered.content.decode(errors="replace")
            raise SystemExit(f"{operation}: expected {expected}, found {status}: {text}")
        self.lines.append(f"{operation}\t{status}\n")
        return answered.parsed


def row(**fields: object) -> Row:
    return Row.from_dict(fields)


def server(calls: Calls) -> None:
    calls.note("index", index.sync_detailed(client=client), 200)
    calls.note("health", health.sync_detailed(client=client), 200)
    calls.note("readiness", readiness.sync_detailed(client=client), 200)
    text = calls.note("metrics", metrics.sync_detailed(client=client), 200)
    assert isinstance(text, str) and "esker_" in text, text
    calls.note("openapi", openapi.sync_detailed(client=client), 200)
    body = NewToken(name="calls", scopes=[f"read:{DB}"], expires="1h")
    made = calls.note("createToken", create_token.sync_detailed(client=client, body=body), 201)
    assert isinstance(made, MadeToken) and made.token.startswith("esk_")
    calls.note("listTokens", list_tokens.sync_detailed(client=client), 200)
    rotated = rotate_token.sync_detailed(made.id, client=client, grace="5m")
    calls.note("rotateToken", rotated, 201)
    calls.note("removeToken", remove_token.sync_detailed(made.id, client=client), 204)
    calls.note("createDatabase", create_database.sync_detailed(DB, client=client), 201)
    calls.note("listDatabases", list_databases.sync_detailed(client=client), 200)
    calls.note("describeDatabase", describe_database.sync_detailed(DB, client=client), 200)
    limits = Limits(rows=1_000_000)
    calls.note("setLimits", set_limits.sync_detailed(DB, client=client, body=limits), 200)
    found = calls.note("getLimits", get_limits.sync_detailed(DB, client=client), 200)
    assert isinstance(found, Limits) and found.rows == 1_000_000


def tables(calls: Calls) -> None:
    new = NewTable(schema="id i64 not null, name text, primary key (id)")
    made = create_table.sync_detailed(DB, "t", client=client, body=new)
    table = calls.note("createTable", made, 201)
    assert isinstance(table, Table) and table.key == ["id"]
    by_text = File(payload=io.BytesIO(b"id i64 not null, primary key (id)"))
    assert create_table.sync(DB, "u", client=client, body=by_text) is not None
    calls.note("listTables", list_tables.sync_detailed(DB, client=client), 200)
    changes = TableAlteration(changes=["ADD COLUMN n i64 DEFAULT 1"])
    altered = alter_table.sync_detailed(DB, "t", client=client, body=changes)
    calls.note("alterTable", altered, 200)
    new_index = NewIndex(index="unique name")
    made = create_index.sync_detailed(DB, "t", client=client, body=new_index)
    table = calls.note("createIndex", made, 201)
    assert isinstance(table, Table)
    described = describe_table.sync_detailed(DB, "t", client=client)
    calls.note("describeTable", described, 200)
    removed = remove_index.sync_detailed(DB, "t", table.indexes[0].name, client=client)
    calls.note("removeIndex", removed, 204)
    calls.note("removeTable", remove_table.sync_detailed(DB, "u", client=client), 204)


def rows(calls: Calls) -> None:
    some = [row(id=1, name="tea"), row(id=2, name="salt")]
    loaded = load_rows.sync_detailed(DB, "t", client=client, body=some)
    calls.note("loadRows", loaded, 200)
    put = put_row.sync_detailed(DB, "t", "3", client=client, body=row(name="flour"))
    calls.note("putRow", put, 201)
    found = calls.note("getRow", get_row.sync_detailed(DB, "t", "3", client=client), 200)
    assert isinstance(found, Row) and found["name"] == "flour"
    changed = change_row.sync_detailed(DB, "t", "3", client=client, body=row(n=5))
    calls.note("changeRow", changed, 200)
    calls.note("removeRow", remove_row.sync_detailed(DB, "t", "3", client=client), 204)
    page = calls.note("listRows", list_rows.sync_detailed(DB, "t", client=client, limit=1), 200)
    assert isinstance(page, Answer) and isinstance(page.next_, str)
    rest = list_rows.sync(DB, "t", client=client, cursor=page.next_)
    assert isinstance(rest, Answer) and isinstance(rest.rows, list) and len(rest.rows) == 1
    sql = SqlQuery(sql="SELECT name FROM t WHERE id = ?", parameters=[2])
    answer = calls.note("query", query.sync_detailed(DB, client=client, body=sql), 200)
    assert isinstance(answer, Answer) and isinstance(answer.rows, list)
    assert answer.rows[0]["name"] == "salt"
    question = JsonQuery(table="t")
    calls.note("explain", explain.sync_detailed(DB, client=client, body=question), 200)


def transactions(calls: Calls) -> None:
    for operation, end in [("commit", commit), ("rollback", rollback)]:
        begun = begin.sync_detailed(DB, client=client, body=NewTransaction(read_only=False))
        assert isinstance(begun.parsed, Transaction)
        if operation == "commit":
            calls.note("begin", begun, 201)
        ended = end.sync_detailed(DB, begun.parsed.id, client=client)
        calls.note(operation, ended, 204)
    assert isinstance(begin.sync(DB, client=client, body=NewTransaction()), Transaction)
    listed = calls.note("sessions", sessions.sync_detailed(DB, client=client), 200)
    assert isinstance(listed, SessionList)
    session = str(listed.sessions[0].id)
    calls.note("endSession", end_session.sync_detailed(DB, session, client=client), 204)
    calls.note("slowStatements", slow_statements.sync_detailed(DB, client=client), 200)


def buckets(calls: Calls) -> None:
    made = create_bucket.sync_detailed(DB, "b", client=client, ttl_s=3600)
    calls.note("createBucket", made, 201)
    listed = calls.note("listBuckets", list_buckets.sync_detailed(DB, client=client), 200)
    assert isinstance(listed, BucketNames) and "b" in listed.buckets
    calls.note("describeBucket", describe_bucket.sync_detailed(DB, "b", client=client), 200)
    value = File(payload=io.BytesIO(b"\x00\xff"))
    put = put_entry.sync_detailed(DB, "b", "k", client=client, body=value, esker_ttl="60")
    calls.note("putEntry", put, 201)
    found = calls.note("getEntry", get_entry.sync_detailed(DB, "b", "k", client=client), 200)
    assert isinstance(found, File) and found.payload.read() == b"\x00\xff"
    added = increment_entry.sync_detailed(DB, "b", "count", client=client, by=3)
    calls.note("incrementEntry", added, 200)
    some = calls.note("listEntries", list_entries.sync_detailed(DB, "b", client=client), 200)
    assert isinstance(some, EntryPage) and some.entries[0].key == "count"
    calls.note("removeEntry", remove_entry.sync_detailed(DB, "b", "k", client=client), 204)
    renamed = rename_bucket.sync_detailed(DB, "b", client=client, body=NewName(rename="c"))
    calls.note("renameBucket", renamed, 200)
    calls.note("removeBucket", remove_bucket.sync_detailed(DB, "c", client=client), 204)


def administration(calls: Calls) -> None:
    calls.note("compact", compact.sync_detailed(DB, client=client), 200)
    calls.note("check", check.sync_detailed(DB, client=client), 200)
    name = NewBackup(name="monday")
    calls.note("backup", backup.sync_detailed(DB, client=client, body=name), 201)
    calls.note("listBackups", list_backups.sync_detailed(DB, client=client), 200)
    of = Restore(backup="monday", of=DB)
    calls.note("restore", restore.sync_detailed(COPY, client=client, body=of), 201)
    calls.note("removeDatabase", remove_database.sync_detailed(DB, client=client), 204)


done = Calls()
for part in [server, tables, rows, transactions, buckets, administration]:
    part(done)
with open(target, "w") as file:
    file.writelines(done.lines)
