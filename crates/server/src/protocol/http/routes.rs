//! Every route, once.

use super::health::PROMETHEUS_MEDIA;
use super::route::{Media, Need, Parameter, Route};
use super::{
    admin, buckets, bulk, copy, databases, event_pages, export, health, query, rows, streams,
    tables, tail, tokens, transactions, views,
};
use crate::session::Level;

const JSON: &str = "application/json";

/// `*`, or tags in quotes.
const TAGS: &str =
    r#"{"type":"string","pattern":"^(\\*|(W/)?\"[^\"]*\"( *, *(W/)?\"[^\"]*\")*)$"}"#;
const GRACE: &str = r#"{"type":"string","pattern":"^[0-9]{1,12}(ms|s|m|h)$"}"#;

const TRANSACTION: Parameter = Parameter {
    name: "Esker-Transaction",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "the transaction that it is done in",
};
const ONCE: Parameter = Parameter {
    name: "Idempotency-Key",
    schema: r#"{"type":"string","minLength":1,"maxLength":255}"#,
    meaning: "done once, however often it is sent with this key",
};
const IF_MATCH: Parameter = Parameter {
    name: "If-Match",
    schema: TAGS,
    meaning: "done only while what is there has one of these tags",
};
const IF_NONE_MATCH: Parameter = Parameter {
    name: "If-None-Match",
    schema: TAGS,
    meaning: "done only while what is there has none of these tags; `*`: nothing is there",
};
const TTL: Parameter = Parameter {
    name: "Esker-TTL",
    schema: r#"{"type":"string","pattern":"^([1-9][0-9]{0,9}|never)$"}"#,
    meaning: "when the entry ends: seconds from now, or `never`",
};
const RANGE: Parameter = Parameter {
    name: "Range",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "which bytes: `bytes=FIRST-LAST`",
};
const LIMIT: Parameter = Parameter {
    name: "limit",
    schema: r#"{"type":"integer","minimum":1,"maximum":10000}"#,
    meaning: "the most that are answered; 100 unless given",
};
const CURSOR: Parameter = Parameter {
    name: "cursor",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "where the page begins: `next` or `previous` of another",
};
const ON_DUPLICATE: Parameter = Parameter {
    name: "on_duplicate",
    schema: r#"{"type":"string","enum":["error","skip","replace"]}"#,
    meaning: "what happens to rows whose key is there",
};
const DURABILITY: Parameter = Parameter {
    name: "durability",
    schema: r#"{"type":"string","enum":["sync","async"]}"#,
    meaning: "answered once the disk has it, or once every query has it; as the database says \
              unless given",
};
const EACH: Parameter = Parameter {
    name: "each",
    schema: r#"{"type":"boolean"}"#,
    meaning: "each event has an outcome of its own, or all are stored or none; true unless given",
};
const PRODUCER: Parameter = Parameter {
    name: "Esker-Producer",
    schema: r#"{"type":"string","pattern":"^[^;]+; *epoch=[0-9]+; *seq=[0-9]+$"}"#,
    meaning: "`NAME; epoch=E; seq=N`: N is the number of the first event; each is stored once",
};
const TIMEOUT: Parameter = Parameter {
    name: "timeout_ms",
    schema: r#"{"type":"integer","minimum":1,"maximum":600000}"#,
    meaning: "how long the client waits for the disk: 504 then, with the ids",
};
const ORDER: Parameter = Parameter {
    name: "order",
    schema: r#"{"type":"string","enum":["newest","oldest"]}"#,
    meaning: "which times come first; newest unless given",
};
const PAGE_AFTER: Parameter = Parameter {
    name: "after",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "where the page begins: `next` of another",
};
const EVENT_AFTER: Parameter = Parameter {
    name: "after",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "behind which event: its id, or its row id",
};
const TAIL_AFTER: Parameter = Parameter {
    name: "after",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "`now`, `start`, or behind which event: its id, or its row id; now unless given",
};
const LAST_EVENT_ID: Parameter = Parameter {
    name: "Last-Event-ID",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "the same as `after`, in whose place it is: what a client that comes again sends",
};
const CHANGES_AFTER: Parameter = Parameter {
    name: "after",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "`now`, `start`, or the cursor of a commit, such as 12.345; now unless given",
};
const CHANGES_LIMIT: Parameter = Parameter {
    name: "limit",
    schema: r#"{"type":"integer","minimum":1}"#,
    meaning: "after how many commits it ends; never unless given",
};
const FROM: Parameter = Parameter {
    name: "from",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "events from this time on",
};
const BEFORE: Parameter = Parameter {
    name: "before",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "the time before which all events go; it or `where` has to be given",
};
const ERASE: Parameter = Parameter {
    name: "erase",
    schema: r#"{"type":"boolean"}"#,
    meaning: "whether the events are to go from all files of the database, too; false unless given",
};
const TO: Parameter = Parameter {
    name: "to",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "events before this time",
};
const WHERE: Parameter = Parameter {
    name: "where",
    schema: r#"{"type":"string","minLength":2}"#,
    meaning: "a condition on the event, as queries in JSON have it in `where`",
};
const EXPORT_FORMAT: Parameter = Parameter {
    name: "format",
    schema: r#"{"type":"string","enum":["ndjson","csv"]}"#,
    meaning: "ndjson unless given",
};
const TAIL_LIMIT: Parameter = Parameter {
    name: "limit",
    schema: r#"{"type":"integer","minimum":1}"#,
    meaning: "after how many events it ends; never unless given",
};
const PREFER: Parameter = Parameter {
    name: "Prefer",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "`return=minimal`: counts, the first and the last id only",
};
const COPY: Parameter = Parameter {
    name: "sql",
    schema: r#"{"type":"string","minLength":1}"#,
    meaning: "the statement: `COPY … FROM STDIN` or `COPY … TO STDOUT`",
};
const ANALYZE: Parameter = Parameter {
    name: "analyze",
    schema: r#"{"type":"boolean"}"#,
    meaning: "whether SQL is run, too, to tell what came of it",
};

const fn text(name: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, schema: r#"{"type":"string"}"#, meaning }
}

const ROWS: &[Media] = &[("text/csv", ""), ("application/x-ndjson", ""), (JSON, "Rows")];
const ANSWER: &[Media] = &[(JSON, "Answer"), ("application/x-ndjson", ""), ("text/csv", "")];
const EVENTS: &[Media] = &[
    (JSON, "Events"),
    ("application/x-ndjson", ""),
    ("text/csv", ""),
    ("application/msgpack", ""),
];
const EXPORTED: &[Media] = &[("application/x-ndjson", ""), ("text/csv", "")];
const APPENDED: &[Media] = &[(JSON, "Appended")];
const QUESTION: &[Media] = &[(JSON, "Question"), ("application/sql", "")];
const COPIED: &[Media] =
    &[(JSON, "Loaded"), ("text/plain", ""), ("text/csv", ""), ("application/x-ndjson", "")];
const BYTES: &[Media] = &[("*/*", "")];
const METRICS: &[Media] = &[(PROMETHEUS_MEDIA, "")];
const ROW: &[Media] = &[(JSON, "Row")];
const OBJECT: &[Media] = &[(JSON, "Object")];

macro_rules! route {
    ($method:literal $path:literal, $id:literal, $need:expr, $handler:path, $summary:literal,
     $answers:expr $(, $field:ident: $value:expr)*) => {
        Route {
            $($field: $value,)*
            ..Route {
                method: $method,
                path: $path,
                id: $id,
                summary: $summary,
                need: $need,
                query: &[],
                headers: &[],
                bodies: &[],
                streams: false,
                answers: $answers,
                errors: &[],
                handler: |call| Box::pin($handler(call)),
            }
        }
    };
}

const READ: Level = Level::Read;
const WRITE: Level = Level::Write;
const ADMIN: Level = Level::Admin;

/// Every route, in the order of the document.
pub const ROUTES: &[Route] = &[
    route!("get" "/", "index", Need::Nothing, health::index, "what is here",
        &[(200, "the name, the version, and where the rest is", &[(JSON, "Index")])]),
    route!("get" "/healthz", "health", Need::Nothing, health::alive, "whether the server is there",
        &[(200, "it is", &[(JSON, "Status")])]),
    route!("get" "/readyz", "readiness", Need::Nothing, health::is_ready,
        "whether the server takes requests",
        &[(200, "it does", &[(JSON, "Status")])], errors: &[503]),
    route!("get" "/metrics", "metrics", Need::Server(READ), health::metrics,
        "what the server counts, for Prometheus", &[(200, "counters", METRICS)]),
    route!("get" "/openapi.json", "openapi", Need::Nothing, health::openapi, "this document",
        &[(200, "the document", OBJECT)]),
    route!("get" "/v1/tokens", "listTokens", Need::Server(ADMIN), tokens::list,
        "the tokens, without their texts", &[(200, "the tokens", &[(JSON, "TokenList")])]),
    route!("post" "/v1/tokens", "createToken", Need::Server(ADMIN), tokens::create,
        "makes a token and shows its text, once",
        &[(201, "the token", &[(JSON, "MadeToken")])], bodies: &[(JSON, "NewToken")]),
    route!("post" "/v1/tokens/{token}/rotate", "rotateToken", Need::Server(ADMIN), tokens::rotate,
        "makes a token in place of another",
        &[(201, "the new token", &[(JSON, "MadeToken")])], errors: &[404],
        query: &[Parameter { name: "grace", schema: GRACE,
            meaning: "how long the old one still holds, such as 5m" }]),
    route!("delete" "/v1/tokens/{token}", "removeToken", Need::Server(ADMIN), tokens::remove,
        "removes a token", &[(204, "it opens nothing from now on", &[])], errors: &[404]),
    route!("get" "/v1/databases", "listDatabases", Need::Token, databases::list,
        "the databases that the token reaches",
        &[(200, "their names", &[(JSON, "DatabaseNames")])]),
    route!("put" "/v1/databases/{database}", "createDatabase", Need::Server(ADMIN),
        databases::create, "makes a database",
        &[(201, "it is there", &[(JSON, "MadeDatabase")])], errors: &[409]),
    route!("get" "/v1/databases/{database}", "describeDatabase", Need::Database(READ),
        databases::describe, "figures about a database",
        &[(200, "figures", &[(JSON, "Database")])]),
    route!("delete" "/v1/databases/{database}", "removeDatabase", Need::Server(ADMIN),
        databases::remove, "removes a database with all it has",
        &[(204, "it is gone", &[])], errors: &[404]),
    route!("get" "/v1/databases/{database}/limits", "getLimits", Need::Database(READ),
        databases::limits, "what the database may take", &[(200, "limits", &[(JSON, "Limits")])]),
    route!("put" "/v1/databases/{database}/limits", "setLimits", Need::Limits,
        databases::set_limits, "gives the database limits of its own",
        &[(200, "limits", &[(JSON, "Limits")])], bodies: &[(JSON, "Limits")]),
    route!("get" "/v1/databases/{database}/tables", "listTables", Need::Enter, tables::list,
        "the tables", &[(200, "their names", &[(JSON, "TableNames")])], headers: &[TRANSACTION]),
    route!("put" "/v1/databases/{database}/tables/{table}", "createTable", Need::Table(ADMIN),
        tables::create, "makes a table", &[(201, "the table", &[(JSON, "Table")])], errors: &[409],
        headers: &[TRANSACTION], bodies: &[(JSON, "NewTable"), ("text/plain", "")]),
    route!("get" "/v1/databases/{database}/tables/{table}", "describeTable", Need::Table(READ),
        tables::describe, "the schema and the indexes of a table",
        &[(200, "the table", &[(JSON, "Table")])], headers: &[TRANSACTION]),
    route!("patch" "/v1/databases/{database}/tables/{table}", "alterTable", Need::Table(ADMIN),
        tables::alter, "changes fields, indexes and rules of a table, or its name",
        &[(200, "the table", &[(JSON, "Table")])], bodies: &[(JSON, "TableChange")],
        headers: &[TRANSACTION], errors: &[409]),
    route!("delete" "/v1/databases/{database}/tables/{table}", "removeTable", Need::Table(ADMIN),
        tables::remove, "removes a table with its rows", &[(204, "it is gone", &[])],
        headers: &[TRANSACTION]),
    route!("post" "/v1/databases/{database}/tables/{table}/indexes", "createIndex",
        Need::Table(ADMIN), tables::create_index, "gives a table an index",
        &[(201, "the table", &[(JSON, "Table")])], errors: &[409], headers: &[TRANSACTION],
        bodies: &[(JSON, "NewIndex")]),
    route!("delete" "/v1/databases/{database}/tables/{table}/indexes/{index}", "removeIndex",
        Need::Table(ADMIN), tables::remove_index, "takes an index away",
        &[(204, "it is gone", &[])], headers: &[TRANSACTION]),
    route!("get" "/v1/databases/{database}/views", "listViews", Need::Enter, views::list,
        "the views", &[(200, "their names", &[(JSON, "ViewNames")])], headers: &[TRANSACTION]),
    route!("get" "/v1/databases/{database}/views/{table}", "describeView", Need::Table(READ),
        views::describe, "the query and the columns of a view",
        &[(200, "the view", &[(JSON, "View")])], headers: &[TRANSACTION]),
    route!("put" "/v1/databases/{database}/views/{table}", "putView", Need::Database(ADMIN),
        views::put, "makes a view, or puts it in place of the one with its name",
        &[(200, "the view, in place of another", &[(JSON, "View")]),
            (201, "the view, which is new", &[(JSON, "View")])], errors: &[409],
        headers: &[TRANSACTION], bodies: &[(JSON, "NewView")]),
    route!("delete" "/v1/databases/{database}/views/{table}", "removeView",
        Need::Database(ADMIN), views::remove, "removes a view", &[(204, "it is gone", &[])],
        headers: &[TRANSACTION]),
    route!("get" "/v1/databases/{database}/tables/{table}/rows", "listRows", Need::Table(READ),
        rows::page, "rows, page by page", &[(200, "a page", &[(JSON, "Answer")])],
        query: &[LIMIT, CURSOR], headers: &[TRANSACTION], errors: &[406]),
    route!("post" "/v1/databases/{database}/tables/{table}/rows", "loadRows", Need::Table(WRITE),
        bulk::load, "adds rows as they arrive: all of them or none",
        &[(200, "how many", &[(JSON, "Loaded")])], query: &[ON_DUPLICATE],
        headers: &[TRANSACTION, ONCE],
        bodies: ROWS, streams: true, errors: &[409, 422]),
    route!("post" "/v1/databases/{database}/streams/{table}/events", "appendEvents",
        Need::Table(WRITE), streams::append, "adds events to a stream",
        &[
            (201, "stored: the id, or what became of each", APPENDED),
            (202, "in every query, and soon on the disk", APPENDED),
            (207, "some were refused: what became of each", APPENDED),
        ],
        query: &[DURABILITY, EACH, TIMEOUT], headers: &[PREFER, ONCE, PRODUCER],
        bodies: EVENTS, streams: true, errors: &[409, 413, 422]),
    route!("get" "/v1/databases/{database}/streams/{table}/events", "listEvents",
        Need::Table(READ), event_pages::page, "events, page by page, by their times",
        &[(200, "a page", &[(JSON, "EventPage")])],
        query: &[ORDER, LIMIT, PAGE_AFTER, FROM, TO, WHERE]),
    route!("get" "/v1/databases/{database}/streams/{table}/events/export", "exportEvents",
        Need::Table(READ), export::export, "all events in the order of their arrival, as of now",
        &[(200, "the events", EXPORTED)],
        query: &[EXPORT_FORMAT, EVENT_AFTER, FROM, TO, WHERE]),
    route!("get" "/v1/databases/{database}/streams/{table}/tail", "tailEvents",
        Need::Table(READ), tail::tail, "events as they arrive, once they are on the disk",
        &[(200, "an event each: `id`, and `data` in JSON", &[("text/event-stream", "")])],
        query: &[TAIL_AFTER, TAIL_LIMIT, WHERE], headers: &[LAST_EVENT_ID]),
    route!("get" "/v1/databases/{database}/tables/{table}/changes", "tailChanges",
        Need::Table(READ), tail::changes, "changes of a table as they are made, by whole commits",
        &[(200, "a commit each: `id`, and `data` in JSON", &[("text/event-stream", "")])],
        query: &[CHANGES_AFTER, CHANGES_LIMIT], headers: &[LAST_EVENT_ID], errors: &[410]),
    route!("get" "/v1/databases/{database}/streams/{table}/events/{id}", "getEvent",
        Need::Table(READ), streams::get, "an event by its id", &[(200, "the event", ROW)]),
    route!("delete" "/v1/databases/{database}/streams/{table}/events", "removeEvents",
        Need::Table(WRITE), event_pages::remove_many,
        "removes all events before a time, or that a condition is true of",
        &[(200, "how many", &[(JSON, "Removed")])], query: &[BEFORE, WHERE, ERASE]),
    route!("delete" "/v1/databases/{database}/streams/{table}/events/{id}", "removeEvent",
        Need::Table(WRITE), streams::remove, "removes an event", &[(204, "it is gone", &[])]),
    route!("get" "/v1/databases/{database}/tables/{table}/rows/{key}", "getRow",
        Need::Table(READ), rows::get, "a row by its key; parts of a key have commas between them",
        &[(200, "the row", ROW), (304, "it has the tag still", &[])],
        headers: &[TRANSACTION, IF_MATCH, IF_NONE_MATCH], errors: &[412]),
    route!("put" "/v1/databases/{database}/tables/{table}/rows/{key}", "putRow",
        Need::Table(WRITE), rows::put, "adds a row, or puts it in place of the one with its key",
        &[(200, "the row, in place of another", ROW), (201, "the row, which is new", ROW)],
        headers: &[TRANSACTION, ONCE, IF_MATCH, IF_NONE_MATCH], bodies: ROW,
        errors: &[409, 412, 422]),
    route!("patch" "/v1/databases/{database}/tables/{table}/rows/{key}", "changeRow",
        Need::Table(WRITE), rows::patch, "gives fields of a row other values",
        &[(200, "the row", ROW)], headers: &[TRANSACTION, ONCE, IF_MATCH, IF_NONE_MATCH],
        bodies: ROW, errors: &[409, 412, 422]),
    route!("delete" "/v1/databases/{database}/tables/{table}/rows/{key}", "removeRow",
        Need::Table(WRITE), rows::delete, "removes a row", &[(204, "it is gone", &[])],
        headers: &[TRANSACTION, ONCE, IF_MATCH, IF_NONE_MATCH], errors: &[412]),
    route!("post" "/v1/databases/{database}/query", "query", Need::Enter, query::query,
        "answers a query as JSON or in SQL, or does what a statement says",
        &[(200, "rows, or how many were changed", ANSWER)], headers: &[TRANSACTION, ONCE],
        bodies: QUESTION, errors: &[406, 409, 410, 422]),
    route!("post" "/v1/databases/{database}/copy", "copy", Need::Enter, copy::copy,
        "adds the rows of the body to a table, or answers rows, in the form that COPY names",
        &[(200, "how many rows, or the rows", COPIED)], query: &[COPY], headers: &[TRANSACTION],
        bodies: BYTES, streams: true, errors: &[409]),
    route!("post" "/v1/databases/{database}/explain", "explain", Need::Enter, query::explain,
        "how a query is answered", &[(200, "the plan", &[(JSON, "Plan")])], query: &[ANALYZE],
        headers: &[TRANSACTION], bodies: QUESTION),
    route!("post" "/v1/databases/{database}/transactions", "begin", Need::Enter,
        transactions::begin, "begins a transaction that later requests name",
        &[(201, "its id", &[(JSON, "Transaction")])], bodies: &[(JSON, "NewTransaction")]),
    route!("post" "/v1/databases/{database}/transactions/{transaction}/commit", "commit",
        Need::Enter, transactions::commit, "commits a transaction",
        &[(204, "it is durable", &[])], errors: &[409]),
    route!("delete" "/v1/databases/{database}/transactions/{transaction}", "rollback",
        Need::Enter, transactions::rollback, "forgets a transaction", &[(204, "it is gone", &[])]),
    route!("get" "/v1/databases/{database}/buckets", "listBuckets", Need::Enter, buckets::list,
        "the buckets", &[(200, "their names", &[(JSON, "BucketNames")])], headers: &[TRANSACTION]),
    route!("put" "/v1/databases/{database}/buckets/{bucket}", "createBucket", Need::Table(ADMIN),
        buckets::create, "makes a bucket",
        &[(201, "the bucket", &[(JSON, "Bucket")])], errors: &[409, 422],
        headers: &[TRANSACTION, ONCE],
        query: &[Parameter { name: "ttl_s", schema: r#"{"type":"integer","minimum":1}"#,
            meaning: "how long entries last unless they say otherwise" }]),
    route!("get" "/v1/databases/{database}/buckets/{bucket}", "describeBucket", Need::Table(READ),
        buckets::describe, "how many entries a bucket has",
        &[(200, "the bucket", &[(JSON, "Bucket")])], headers: &[TRANSACTION]),
    route!("patch" "/v1/databases/{database}/buckets/{bucket}", "renameBucket",
        Need::Table(ADMIN), buckets::rename, "gives a bucket another name",
        &[(200, "the bucket", &[(JSON, "Bucket")])], headers: &[TRANSACTION],
        bodies: &[(JSON, "NewName")], errors: &[409]),
    route!("delete" "/v1/databases/{database}/buckets/{bucket}", "removeBucket",
        Need::Table(ADMIN), buckets::remove, "removes a bucket with its entries",
        &[(204, "it is gone", &[])], headers: &[TRANSACTION]),
    route!("get" "/v1/databases/{database}/buckets/{bucket}/entries", "listEntries",
        Need::Table(READ), buckets::entries,
        "entries in the order of their keys; bytes that are no text, and %, as %XX",
        &[(200, "entries", &[(JSON, "EntryPage")])], headers: &[TRANSACTION],
        query: &[text("from", "the first key"), text("to", "the key before which it ends"),
            text("prefix", "what all keys begin with"), LIMIT,
            Parameter { name: "reverse", schema: r#"{"type":"boolean"}"#,
                meaning: "whether the last come first" }]),
    route!("get" "/v1/databases/{database}/buckets/{bucket}/entries/{key}", "getEntry",
        Need::Table(READ), buckets::get, "a value, as bytes",
        &[(200, "the value", &[("application/octet-stream", "")]),
            (206, "a part of it", &[("application/octet-stream", "")]),
            (304, "it has the tag still", &[])],
        headers: &[TRANSACTION, IF_MATCH, IF_NONE_MATCH, RANGE], errors: &[412, 416]),
    route!("put" "/v1/databases/{database}/buckets/{bucket}/entries/{key}", "putEntry",
        Need::Table(WRITE), buckets::put, "puts a value",
        &[(201, "the entry is new", &[]), (204, "the value is in place of another", &[])],
        headers: &[TRANSACTION, ONCE, IF_MATCH, IF_NONE_MATCH, TTL], bodies: BYTES,
        errors: &[412, 422]),
    route!("delete" "/v1/databases/{database}/buckets/{bucket}/entries/{key}", "removeEntry",
        Need::Table(WRITE), buckets::delete, "removes an entry", &[(204, "it is gone", &[])],
        headers: &[TRANSACTION, ONCE, IF_MATCH, IF_NONE_MATCH], errors: &[412]),
    route!("post" "/v1/databases/{database}/buckets/{bucket}/entries/{key}/increment",
        "incrementEntry", Need::Table(WRITE), buckets::increment,
        "adds to a value that is a number, written in digits",
        &[(200, "the number", &[(JSON, "Number")])], headers: &[TRANSACTION, ONCE], errors: &[422],
        query: &[Parameter { name: "by", schema: r#"{"type":"integer"}"#,
            meaning: "how much; 1 unless given" }]),
    route!("post" "/v1/databases/{database}/compact", "compact", Need::Database(ADMIN),
        admin::compact, "rewrites what has dead rows",
        &[(200, "what was done", &[(JSON, "Compacted")])]),
    route!("post" "/v1/databases/{database}/check", "check", Need::Database(ADMIN), admin::check,
        "reads every byte and verifies it", &[(200, "what was found", &[(JSON, "Checked")])]),
    route!("post" "/v1/databases/{database}/backups", "backup", Need::Database(ADMIN),
        admin::backup, "makes a backup in the server's directory, beside writers",
        &[(201, "where it is", &[(JSON, "Backup")])], bodies: &[(JSON, "NewBackup")],
        errors: &[409]),
    route!("get" "/v1/databases/{database}/backups", "listBackups", Need::Database(ADMIN),
        admin::backups, "the backups of the database",
        &[(200, "their names", &[(JSON, "BackupNames")])]),
    route!("post" "/v1/databases/{database}/restore", "restore", Need::Server(ADMIN),
        admin::restore, "makes a new database of a backup, of it or of another",
        &[(201, "it is there", &[(JSON, "Restored")])], bodies: &[(JSON, "Restore")],
        errors: &[404, 409]),
    route!("get" "/v1/databases/{database}/sessions", "sessions", Need::Database(ADMIN),
        admin::sessions, "who is connected, and what is under way",
        &[(200, "queries, transactions and sessions of all protocols", &[(JSON, "SessionList")])]),
    route!("delete" "/v1/databases/{database}/sessions/{session}", "endSession",
        Need::Database(ADMIN), admin::end_session,
        "ends a connection or transaction, and what runs for it", &[(204, "it is ended", &[])]),
    route!("get" "/v1/databases/{database}/slow-statements", "slowStatements",
        Need::Database(ADMIN), query::slow, "statements that were slow, with their plans",
        &[(200, "the last ones", &[(JSON, "SlowStatements")])]),
];
