//! Every kind of frame and every operation of JSON lines, asked with every token that does not
//! reach so far: the refusal that is documented, nothing changed, nothing told.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use esker_vfs::Environment;
use esker_wire::{Kind, Reader, pack};

use super::tests::{Client, Running};
use crate::ServerConfig;
use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use crate::config::Config;
use crate::protocol::json_lines::OPERATIONS;
use crate::session::Level;
use crate::two_tenants::{Tenants, expect_nothing};

fn serve() -> (Arc<AccessControl>, Tenants, Running) {
    let wire_listen = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
    let config = Config { memory: true, wire_listen, ..Config::default() };
    let access_control = Arc::new(AccessControl::open(config, &Environment::os(), None).unwrap());
    let tenants = Tenants::new(&access_control);
    let server = Running::with(ServerConfig::of(&access_control).unwrap(), || {
        Arc::new(TokenAuthenticator::new(&access_control))
    });
    (access_control, tenants, server)
}

/// What a request needs before it does anything.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    /// It tells nothing of any database, and changes none.
    Nothing,
    /// To have been let in; what it does is asked for by others.
    Hello,
    /// A right in the whole database.
    Database(Level),
    /// A right in the table or bucket that it names.
    Place(Level),
}

impl Needs {
    /// Tokens that let in and do not reach so far.
    fn small_scopes(self) -> &'static [&'static str] {
        match self {
            Self::Nothing | Self::Hello => &[],
            Self::Database(Level::Admin) => &["write:mill", "read:mill", "admin:mill/t"],
            Self::Database(_) => &["admin:mill/u", "admin:mill/t", "admin:mill/b"],
            Self::Place(Level::Read) => &["admin:mill/u", "admin:mill/c"],
            Self::Place(Level::Write) => {
                &["read:mill", "read:mill/t", "read:mill/b", "admin:mill/u", "admin:mill/c"]
            }
            Self::Place(Level::Admin) => {
                &["write:mill", "write:mill/t", "write:mill/b", "admin:mill/u", "admin:mill/c"]
            }
        }
    }
}

const READ: Needs = Needs::Place(Level::Read);
const WRITE: Needs = Needs::Place(Level::Write);
const ADMIN: Needs = Needs::Place(Level::Admin);
const DATABASE: Needs = Needs::Database(Level::Admin);

/// MessagePack of JSON, which has all that requests have but bytes.
fn packed(json: &str) -> Vec<u8> {
    fn write(out: &mut Vec<u8>, value: &serde_json::Value) {
        match value {
            serde_json::Value::Null => pack::nil(out),
            serde_json::Value::Bool(v) => pack::bool(out, *v),
            serde_json::Value::Number(v) => pack::int(out, v.as_i64().unwrap()),
            serde_json::Value::String(v) => match v.strip_prefix('=') {
                Some(bytes) => pack::bytes(out, bytes.as_bytes()),
                None => pack::text(out, v),
            },
            serde_json::Value::Array(all) => {
                pack::array(out, all.len());
                all.iter().for_each(|one| write(out, one));
            }
            serde_json::Value::Object(all) => {
                pack::map(out, all.len());
                for (name, one) in all {
                    pack::text(out, name);
                    write(out, one);
                }
            }
        }
    }
    let mut out = Vec::new();
    if !json.is_empty() {
        write(&mut out, &serde_json::from_str(json).unwrap());
    }
    out
}

/// What is asked with frames of a kind, and what it needs; nothing of kinds that ask nothing. A
/// text that begins with `=` stands for bytes.
fn of_kind(kind: Kind) -> &'static [(&'static str, Needs)] {
    match kind {
        Kind::Ping => &[("", Needs::Nothing)],
        Kind::Hello => &[],
        Kind::Cancel | Kind::BulkChunk | Kind::BulkEnd => &[],
        // Of an insert, by its code.
        Kind::Once => &[
            (r#"["k", 18, ["t", false, [[9, "x"]]]]"#, WRITE),
            // Of events.
            (r#"["k", 80, ["t", null, [[9, "x"]]]]"#, WRITE),
        ],
        Kind::Get => &[(r#"["t", [1]]"#, READ), (r#"["b", ["=1"]]"#, READ)],
        Kind::Exists => &[(r#"["t", [1]]"#, READ)],
        Kind::Insert => {
            &[(r#"["t", false, [[9, "x"]]]"#, WRITE), (r#"["t", true, [[1, "x"]]]"#, WRITE)]
        }
        Kind::Update => &[(r#"["t", 1, {"name": "x"}]"#, WRITE)],
        Kind::UpdateMany => &[(r#"["t", [1, {"name": "x"}]]"#, WRITE)],
        Kind::Delete => &[(r#"["t", [1]]"#, WRITE), (r#"["b", ["=1"]]"#, WRITE)],
        Kind::Tables | Kind::Buckets => &[("", Needs::Database(Level::Read))],
        Kind::Schema => &[(r#"["t"]"#, READ), (r#"["b"]"#, READ)],
        Kind::Sql => &[
            (r#"["SELECT * FROM t", []]"#, READ),
            (r#"["SELECT * FROM b", []]"#, READ),
            (r#"["EXPLAIN SELECT * FROM t", []]"#, READ),
            (r#"["INSERT INTO t VALUES (9, 'x')", []]"#, WRITE),
            (r#"["UPDATE t SET name = 'x' RETURNING name", []]"#, WRITE),
            (r#"["DELETE FROM t RETURNING *", []]"#, WRITE),
            (r#"["DROP TABLE t", []]"#, ADMIN),
            (r#"["ALTER TABLE t ADD COLUMN z i64", []]"#, ADMIN),
            (r#"["ALTER TABLE t RENAME TO z", []]"#, ADMIN),
            (r#"["DROP INDEX i", []]"#, ADMIN),
            (r#"["CREATE INDEX j ON t (name)", []]"#, ADMIN),
        ],
        Kind::Query => &[(r#"["{\"table\": \"t\"}"]"#, READ)],
        Kind::Explain => &[(r#"["{\"table\": \"t\"}"]"#, READ)],
        Kind::Admin => &[
            (r#"["{\"task\": \"info\"}"]"#, Needs::Database(Level::Read)),
            (r#"["{\"task\": \"info\", \"table\": \"t\"}"]"#, READ),
            (r#"["{\"task\": \"check\"}"]"#, DATABASE),
            (r#"["{\"task\": \"compact\"}"]"#, DATABASE),
            (r#"["{\"task\": \"recount\"}"]"#, DATABASE),
            (r#"["{\"task\": \"backup\", \"name\": \"x\"}"]"#, DATABASE),
            (r#"["{\"task\": \"create_bucket\", \"bucket\": \"d\"}"]"#, ADMIN),
        ],
        Kind::Begin => &[("[false, false]", Needs::Hello)],
        Kind::Commit | Kind::Rollback => &[("", Needs::Hello)],
        Kind::BucketGet => &[(r#"["b", ["=1"]]"#, READ)],
        Kind::BucketPut => &[(r#"["b", null, ["=1", "=x"]]"#, WRITE)],
        Kind::BucketRemove => &[(r#"["b", ["=1"]]"#, WRITE)],
        Kind::BucketIncrement => &[(r#"["b", "=n", 1]"#, WRITE)],
        Kind::BucketRange => &[(r#"["b", null, null, null, 10, false]"#, READ)],
        Kind::BulkBegin => {
            &[(r#"["t", "csv", "replace"]"#, WRITE), (r#"["t", "csv", "replace", "k"]"#, WRITE)]
        }
        Kind::Append => &[(r#"["t", null, [[9, "x"]]]"#, WRITE)],
        Kind::AppendColumns => &[(r#"["t", null, 1, [["id", "i64", null, [9]]]]"#, WRITE)],
        Kind::Tail => &[(r#"["t", "now", null, 1]"#, READ)],
        Kind::Credit => &[],
        Kind::Done | Kind::Columns | Kind::Rows | Kind::Position | Kind::Failed => &[],
    }
}

/// Asks; the code of the error, or nothing, and all payloads.
fn ask(client: &mut Client, kind: Kind, payload: &[u8]) -> (Option<String>, Vec<u8>) {
    client.send(7, kind, |out| out.extend_from_slice(payload));
    if kind == Kind::BulkBegin {
        client.send(7, Kind::BulkChunk, |out| out.extend_from_slice(b"id,name\n1,loaded\n"));
        client.send(7, Kind::BulkEnd, |_| ());
    }
    let mut told = Vec::new();
    loop {
        let (_, kind, payload) = client.receive();
        told.extend_from_slice(&payload);
        match kind {
            Kind::Failed => {
                let mut reader = Reader::new(&payload);
                reader.array_of(2).unwrap();
                return (Some(reader.text().unwrap().to_owned()), told);
            }
            Kind::Done => return (None, told),
            _ => {}
        }
    }
}

fn hello(client: &mut Client, token: &str, database: &str) -> Option<String> {
    ask(client, Kind::Hello, &packed(&format!("[{token:?}, {database:?}]"))).0
}

#[test]
fn no_frame_does_or_tells_anything_for_a_token_that_does_not_reach_it() {
    let (access_control, tenants, server) = serve();
    let dead = tenants.dead_tokens();
    let all: Vec<(Kind, Vec<u8>, Needs)> = Kind::ALL
        .iter()
        .flat_map(|kind| of_kind(*kind).iter().map(|(json, needs)| (*kind, packed(json), *needs)))
        .collect();
    let mut state = tenants.state();
    let mut count = 0;
    let mut expect = |state: &str, client: &mut Client, one: &(Kind, Vec<u8>, Needs), who: &str| {
        let (kind, payload, needs) = one;
        let (code, told) = ask(client, *kind, payload);
        let wanted = match (who, needs) {
            (_, Needs::Nothing) => None,
            ("nothing" | "ended", _) => Some("unauthenticated"),
            _ => Some("forbidden"),
        };
        let what = format!("{kind:?} {:?} with {who}", String::from_utf8_lossy(payload));
        assert_eq!(code.as_deref(), wanted, "{what}");
        expect_nothing(&tenants, state, &told, &what);
        count += 1;
    };
    for one in &all {
        expect(&state, &mut server.binary(), one, "nothing");
        for (why, token) in &dead {
            let mut client = server.binary();
            let told = hello(&mut client, token, "mill");
            assert_eq!(told.as_deref(), Some("unauthenticated"), "{why}");
            expect(&state, &mut client, one, "nothing");
        }
    }
    for scope in ["admin:shop", "read:shop/t"] {
        let (_, token) = tenants.token(scope, None);
        assert_eq!(hello(&mut server.binary(), &token, "mill").as_deref(), Some("forbidden"));
    }
    for one in &all {
        for scope in one.2.small_scopes() {
            let (id, token) = tenants.token(scope, None);
            state = tenants.state();
            let mut client = server.binary();
            assert_eq!(hello(&mut client, &token, "mill"), None, "{scope}");
            expect(&state, &mut client, one, scope);
            // Once the token is gone, an open connection has no more than a new one.
            access_control.tokens.remove(&id).unwrap();
            state = tenants.state();
            expect(&state, &mut client, one, "ended");
        }
    }
    eprintln!("{count} cases of frames");
    assert!(count > 200);
    // They are done for who may: nothing was refused for another reason.
    let (_, token) = tenants.token("admin:mill", None);
    for (kind, payload, _) in &all {
        let mut client = server.binary();
        assert_eq!(hello(&mut client, &token, "mill"), None);
        let (code, _) = ask(&mut client, *kind, payload);
        let code = code.unwrap_or_default();
        assert!(!["forbidden", "unauthenticated"].contains(&code.as_str()), "{kind:?}: {code}");
    }
}

/// What is asked with an operation of JSON lines, and what it needs.
fn of_operation(operation: &str) -> (&'static str, Needs) {
    match operation {
        "hello" | "cancel" => ("", Needs::Nothing),
        "ping" | "begin" | "commit" | "rollback" => ("", Needs::Hello),
        "tables" | "buckets" => ("", Needs::Database(Level::Read)),
        "schema" => (r#""table": "t""#, READ),
        "get" | "exists" => (r#""table": "t", "key": 1"#, READ),
        "insert" => (r#""table": "t", "row": {"id": 1, "name": "x"}, "replace": true"#, WRITE),
        "update" => (r#""table": "t", "key": 1, "fields": {"name": "x"}"#, WRITE),
        "update_many" => {
            (r#""table": "t", "updates": [{"key": 1, "fields": {"name": "x"}}]"#, WRITE)
        }
        "delete" => (r#""table": "t", "key": 1"#, WRITE),
        "load" => (r#""table": "t", "on_duplicate": "replace""#, WRITE),
        "sql" => (r#""sql": "DELETE FROM t RETURNING name""#, WRITE),
        "admin" => (r#""admin": {"task": "check"}"#, DATABASE),
        "query" | "explain" => (r#""query": {"table": "t"}"#, READ),
        "bucket_get" => (r#""bucket": "b", "key": "1""#, READ),
        "bucket_put" => (r#""bucket": "b", "key": "1", "value": "x""#, WRITE),
        "bucket_remove" => (r#""bucket": "b", "key": "1""#, WRITE),
        "bucket_increment" => (r#""bucket": "b", "key": "n""#, WRITE),
        "bucket_range" => (r#""bucket": "b""#, READ),
        other => panic!("operation {other:?} has no case here"),
    }
}

/// A line and its answer.
fn told(stream: &mut (impl Read + Write), line: &str) -> String {
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut told = String::new();
    BufReader::new(stream).read_line(&mut told).unwrap();
    told
}

#[test]
fn no_line_does_or_tells_anything_for_a_token_that_does_not_reach_it() {
    let (access_control, tenants, server) = serve();
    let dead = tenants.dead_tokens();
    let mut count = 0;
    let mut expect = |state: &str, told: &str, code: &str, what: &str| {
        assert!(told.contains(&format!("\"code\":\"{code}\"")), "{what}: {told}");
        expect_nothing(&tenants, state, told.as_bytes(), what);
        count += 1;
    };
    let hello = |token: &str| {
        format!("{{\"op\": \"hello\", \"token\": \"{token}\", \"database\": \"mill\"}}")
    };
    let (_, shop) = tenants.token("admin:shop", None);
    let mut state = tenants.state();
    for (operation, _) in OPERATIONS {
        let (members, needs) = of_operation(operation);
        if needs == Needs::Nothing {
            continue;
        }
        let comma = if members.is_empty() { "" } else { ", " };
        let mut line = format!("{{\"op\": \"{operation}\"{comma}{members}}}");
        if operation == "load" {
            line += "\n{\"id\": 1, \"name\": \"loaded\"}\n";
        }
        expect(&state, &told(&mut server.connect(), &line), "unauthenticated", &line);
        for (why, token) in &dead {
            let mut stream = server.connect();
            expect(&state, &told(&mut stream, &hello(token)), "unauthenticated", why);
            expect(&state, &told(&mut stream, &line), "unauthenticated", &line);
        }
        let mut stream = server.connect();
        expect(&state, &told(&mut stream, &hello(&shop)), "forbidden", "another tenant");
        expect(&state, &told(&mut stream, &line), "unauthenticated", &line);
        for scope in needs.small_scopes() {
            let (id, token) = tenants.token(scope, Some(Duration::from_secs(600)));
            state = tenants.state();
            let mut stream = server.connect();
            assert!(told(&mut stream, &hello(&token)).contains("\"ok\":true"), "{scope}");
            expect(&state, &told(&mut stream, &line), "forbidden", &format!("{line} {scope}"));
            access_control.tokens.remove(&id).unwrap();
            state = tenants.state();
            expect(&state, &told(&mut stream, &line), "unauthenticated", &line);
        }
    }
    eprintln!("{count} cases of lines");
    assert!(count > 200);
}
