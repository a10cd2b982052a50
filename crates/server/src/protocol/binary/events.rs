//! Tests of events that come by frames.

use esker::{Column, DataType, Database, Durability, EventId, Options, Value};
use esker_wire::{Kind, Reader, columns, pack, value};

use super::safety::{access_control, hello, serve, token};
use super::tests::{Client, Running};
use crate::protocol::resp::tests::Directory;
use crate::tenant::TenantLimits;

/// The answer to a request.
#[derive(Debug, PartialEq)]
struct Told {
    accepted: u64,
    rejected: u64,
    /// The row ids; 0 where there is none.
    row_ids: Vec<u64>,
    /// Item, code, message, whether it may be tried again.
    errors: Vec<(u64, String, String, bool)>,
    is_duplicate: bool,
    within_ms: Option<u64>,
}

impl Told {
    fn of(payload: &[u8]) -> Self {
        let mut reader = Reader::new(payload);
        reader.array_of(6).unwrap();
        let (accepted, rejected) = (reader.uint().unwrap(), reader.uint().unwrap());
        let ids = reader.optional_bytes().unwrap().unwrap_or_default();
        let row_id = |id: &[u8]| id[8..].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        let row_ids = ids.chunks(16).map(row_id).collect();
        let errors = (0..reader.array().unwrap()).map(|_| {
            reader.array_of(4).unwrap();
            let item = reader.uint().unwrap();
            let (code, message) = (reader.text().unwrap(), reader.text().unwrap());
            (item, code.to_owned(), message.to_owned(), reader.bool().unwrap())
        });
        let errors = errors.collect();
        let is_duplicate = reader.bool().unwrap();
        let within_ms = reader.optional_uint().unwrap();
        reader.finish().unwrap();
        Self { accepted, rejected, row_ids, errors, is_duplicate, within_ms }
    }
}

/// What is answered, or the code and message of the error.
fn answer(client: &mut Client) -> Result<Told, (String, String)> {
    let (_, kind, payload) = client.receive();
    if kind == Kind::Done {
        return Ok(Told::of(&payload));
    }
    let mut reader = Reader::new(&payload);
    reader.array_of(2).unwrap();
    Err((reader.text().unwrap().to_owned(), reader.text().unwrap().to_owned()))
}

/// What a member of `how` is.
#[derive(Clone, Copy)]
enum Member<'m> {
    Text(&'m str),
    Flag(bool),
    Producer(&'m str, u64, u64),
    Names(&'m [&'m str]),
}

fn write_how(out: &mut Vec<u8>, how: &[(&str, Member<'_>)]) {
    pack::map(out, how.len());
    for (name, member) in how {
        pack::text(out, name);
        match member {
            Member::Text(text) => pack::text(out, text),
            Member::Flag(flag) => pack::bool(out, *flag),
            Member::Producer(name, epoch, seq) => {
                pack::array(out, 3);
                pack::text(out, name);
                pack::uint(out, *epoch);
                pack::uint(out, *seq);
            }
            Member::Names(names) => {
                pack::array(out, names.len());
                names.iter().for_each(|name| pack::text(out, name));
            }
        }
    }
}

/// Rows as JSON: arrays or objects; what is in an array at `t` is a time.
fn write_json(out: &mut Vec<u8>, json: &serde_json::Value) {
    use serde_json::Value as Json;
    match json {
        Json::Null => pack::nil(out),
        Json::Bool(v) => pack::bool(out, *v),
        Json::Number(v) => match v.as_i64() {
            Some(v) => pack::int(out, v),
            None => pack::f64(out, v.as_f64().unwrap()),
        },
        Json::String(v) => match v.strip_prefix('@') {
            Some(us) => value::write(out, Value::Timestamp(us.parse().unwrap()).as_ref()),
            None => pack::text(out, v),
        },
        Json::Array(v) => {
            pack::array(out, v.len());
            v.iter().for_each(|v| write_json(out, v));
        }
        Json::Object(v) => {
            pack::map(out, v.len());
            for (name, v) in v {
                pack::text(out, name);
                write_json(out, v);
            }
        }
    }
}

fn send(client: &mut Client, id: u32, how: &[(&str, Member<'_>)], rows: &str) {
    let rows: serde_json::Value = serde_json::from_str(rows).unwrap();
    client.send(id, Kind::Append, |out| {
        pack::array(out, 3);
        pack::text(out, "events");
        write_how(out, how);
        write_json(out, &rows);
    });
}

fn append(
    client: &mut Client,
    how: &[(&str, Member<'_>)],
    rows: &str,
) -> Result<Told, (String, String)> {
    send(client, 7, how, rows);
    answer(client)
}

fn append_columns(
    client: &mut Client,
    how: &[(&str, Member<'_>)],
    all: &[(&str, Column)],
) -> Result<Told, (String, String)> {
    client.send(7, Kind::AppendColumns, |out| {
        pack::array(out, 4);
        pack::text(out, "events");
        write_how(out, how);
        pack::uint(out, all.first().map_or(0, |(_, column)| column.len()) as u64);
        columns::write(out, all.iter().map(|(name, column)| (*name, column)));
    });
    answer(client)
}

const TABLE: &str = "CREATE TABLE events (t timestamp NOT NULL, n u32, what text DEFAULT 'none', \
    tags text[], extra json, CHECK (n < 100)) WITH (stream = 't', rest = 'extra')";

fn database() -> Database {
    let database = Options::new().memory().unwrap();
    run(&database, TABLE);
    database
}

fn run(database: &Database, text: &str) {
    let request = crate::Request::Sql { text: text.into(), parameters: Vec::new() };
    crate::Session::new(database).run(request).unwrap();
}

/// Every event, as texts.
fn events(database: &Database) -> Vec<String> {
    let rows = database.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    let text = |value: &Value| value.as_ref().to_string();
    let row = |row: &[Value]| row.iter().map(text).collect::<Vec<_>>().join("|");
    rows.iter().map(|(_, found)| row(found)).collect()
}

#[test]
fn rows_are_maps_or_arrays_each_with_its_outcome() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let rows = r#"[
        {"t": "@1", "n": 1, "what": "a", "tags": ["x", "y"], "gate": "C7", "more": {"k": [1]}},
        {"t": "@2", "n": 100},
        {"T": "@3", "extra": {"own": 1}, "gate": null},
        {"n": 4},
        {"t": "soon"},
        ["@6", 6, null, null, null],
        ["@7"],
        {"t": "@8", "t": "@9", "n": -1},
        5
    ]"#;
    let told = append(&mut client, &[], rows).unwrap();
    assert_eq!((told.accepted, told.rejected), (3, 6));
    assert_eq!(told.row_ids, [1, 0, 2, 0, 0, 3, 0, 0, 0]);
    let texts: Vec<String> =
        told.errors.iter().map(|(at, c, m, _)| format!("{at} {c} {m}")).collect();
    let expected = [
        "2 constraint_violated ",
        "4 constraint_violated field \"t\" must not be null",
        "5 invalid_request field \"t\": ",
        "7 invalid_request expected 5 values, found 1",
        "8 invalid_request field \"n\": ",
        "9 invalid_request expected an event as a map or an array, found an integer",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (found, expected) in texts.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}, expected {expected}");
    }
    assert!(told.errors.iter().all(|error| !error.3));
    let found = events(&database);
    assert_eq!(found.len(), 3);
    assert!(found[0].ends_with(r#"|1|a|{x,y}|{"gate":"C7","more":{"k":[1]}}"#), "{found:?}");
    assert!(found[1].ends_with(r#"|null|none|null|{"gate":null,"own":1}"#), "{found:?}");
    assert!(found[2].ends_with("|6|null|null|null"), "{found:?}");
    let some = [("fields", Member::Names(&["n", "t"]))];
    assert_eq!(append(&mut client, &some, r#"[[7, "@7"], [8, "@8"]]"#).unwrap().row_ids, [4, 5]);
    assert!(events(&database)[4].ends_with("|8|none|null|null"));
    let stream = database.stream("events").unwrap();
    assert!(stream.get(EventId::new(8, 5)).unwrap().is_some());
}

#[test]
fn what_is_whole_is_stored_whole_or_not() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let whole = [("each", Member::Flag(false))];
    let (code, message) =
        append(&mut client, &whole, r#"[{"t": "@1"}, {"t": "@2", "n": 500}]"#).unwrap_err();
    assert!(code == "constraint_violated" && message.starts_with("event 2: "), "{message}");
    assert!(events(&database).is_empty());
    assert_eq!(append(&mut client, &whole, r#"[{"t": "@1"}, {"t": "@2"}]"#).unwrap().accepted, 2);
    let minimal = [("minimal", Member::Flag(true))];
    let rows = r#"[{"t": "@1"}, 1, {"t": "@2"}, {"t": "@3"}]"#;
    let told = append(&mut client, &minimal, rows).unwrap();
    assert_eq!((told.accepted, told.rejected, told.row_ids), (3, 1, vec![3, 5]));
    assert!(append(&mut client, &[], "[]").unwrap().row_ids.is_empty());
    let cases: [(&[(&str, Member<'_>)], &str); 4] = [
        (&[("durability", Member::Text("soon"))], "durability: expected sync or async"),
        (&[("eahc", Member::Flag(true))], "how: expected durability, each, minimal"),
        (&[("fields", Member::Names(&["t", "m"]))], "m"),
        (&[("fields", Member::Names(&["t", "T"]))], "fields: a name comes twice"),
    ];
    for (how, expected) in cases {
        let (code, message) = append(&mut client, how, r#"[{"t": "@1"}]"#).unwrap_err();
        assert!(code == "invalid_request" && message.contains(expected), "{message}");
    }
    assert_eq!(events(&database).len(), 5);
}

fn times(values: &[i64]) -> Column {
    let values: Vec<Value> = values.iter().map(|at| Value::Timestamp(*at)).collect();
    columns::column_of(DataType::Timestamp, &values).unwrap()
}

fn ints(values: &[i64]) -> Column {
    let values: Vec<Value> = values.iter().map(|n| Value::Int(*n)).collect();
    columns::column_of(DataType::I64, &values).unwrap()
}

#[test]
fn columns_are_events() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let texts = columns::column_of(DataType::Text, &["a".into(), Value::Null]).unwrap();
    let all = [("t", times(&[1, 2])), ("n", ints(&[7, 8])), ("what", texts)];
    let told = append_columns(&mut client, &[], &all).unwrap();
    assert_eq!((told.accepted, told.row_ids), (2, vec![1, 2]));
    let found = events(&database);
    assert!(found[0].ends_with("|7|a|null|null") && found[1].ends_with("|8|null|null|null"));
    // What a column says nothing about gets its default, and an event that is wrong is alone.
    let told = append_columns(&mut client, &[], &[("t", times(&[3, 4])), ("n", ints(&[500, 5]))]);
    let told = told.unwrap();
    assert_eq!((told.accepted, told.rejected, told.row_ids), (1, 1, vec![0, 3]));
    assert!(events(&database)[2].ends_with("|5|none|null|null"));
    let cases: [(&[(&str, Column)], &str); 6] = [
        (&[("t", times(&[1, 2])), ("n", ints(&[1, -1]))], "column \"n\": row 2: field \"n\": "),
        (&[("t", times(&[1])), ("m", ints(&[1]))], "m"),
        (&[("t", times(&[1])), ("T", times(&[1]))], "column \"T\" comes twice"),
        (&[("t", times(&[1])), ("n", ints(&[1, 2]))], "column \"n\": expected 1 values of 8 bytes"),
        (&[("t", ints(&[1]))], "column \"t\": row 1: field \"t\": "),
        (&[], "columns: expected one at least"),
    ];
    for (all, expected) in cases {
        let (code, message) = append_columns(&mut client, &[], all).unwrap_err();
        assert!(code == "invalid_request" && message.contains(expected), "{message}");
    }
    assert_eq!(events(&database).len(), 3);
}

#[test]
fn requests_that_are_long_are_stored_beside_others() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let many: Vec<i64> = (0..12_000).collect();
    let told = append_columns(&mut client, &[], &[("t", times(&many))]).unwrap();
    // Of so many, the first and the last are told.
    assert_eq!((told.accepted, told.row_ids), (12_000, vec![1, 12_000]));
    for how in [("each", Member::Flag(false)), ("producer", Member::Producer("p", 1, 0))] {
        let (_, message) = append_columns(&mut client, &[how], &[("t", times(&many))]).unwrap_err();
        assert_eq!(message, "expected at most 10000 events in one commit, found 12000");
    }
    let row = format!(r#"{{"t": "@5", "what": "{}"}}"#, "x".repeat(100));
    let told = append(&mut client, &[], &format!("[{row}{}]", format!(", {row}").repeat(1_999)));
    assert_eq!(told.unwrap().row_ids.last(), Some(&14_000));
    assert_eq!(database.table("events").unwrap().count().unwrap(), 14_000);
}

#[test]
fn requests_of_many_share_commits_in_their_order() {
    let database = database();
    let server = Running::serve(&database);
    let mut clients: Vec<Client> = (0..4).map(|_| server.binary()).collect();
    let before = database.published_commit();
    for (at, client) in clients.iter_mut().enumerate() {
        for id in 0..200u32 {
            send(client, id, &[], &format!(r#"[{{"t": "@{id}", "n": {at}}}]"#));
        }
    }
    for client in &mut clients {
        let mut row_ids = vec![0; 200];
        for _ in 0..200 {
            let (id, kind, payload) = client.receive();
            assert_eq!(kind, Kind::Done);
            row_ids[id as usize] = Told::of(&payload).row_ids[0];
        }
        assert!(row_ids.windows(2).all(|pair| pair[0] < pair[1]), "{row_ids:?}");
    }
    let commits = database.published_commit() - before;
    assert!(commits < 800, "{commits} commits");
    assert_eq!(database.table("events").unwrap().count().unwrap(), 800);
}

#[test]
fn a_producer_stores_each_event_once() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let of = |epoch, seq| [("producer", Member::Producer("agent", epoch, seq))];
    let rows = r#"[{"t": "@1"}, {"t": "no"}, {"t": "@2"}]"#;
    let first = append(&mut client, &of(1, 0), rows).unwrap();
    assert_eq!((first.accepted, first.rejected, first.is_duplicate), (2, 1, false));
    let again = append(&mut client, &of(1, 0), rows).unwrap();
    assert!(again.is_duplicate && again.row_ids == first.row_ids, "{again:?}");
    assert_eq!(append(&mut client, &of(1, 3), r#"[{"t": "@3"}]"#).unwrap().accepted, 1);
    let old = append(&mut client, &of(1, 0), rows).unwrap();
    assert!(old.is_duplicate && old.row_ids.is_empty() && old.accepted == 3, "{old:?}");
    let (code, message) = append(&mut client, &of(1, 9), r#"[{"t": "@3"}]"#).unwrap_err();
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("sequence_gap", "sequence_gap: expected event 4, found 9")
    );
    assert_eq!(append(&mut client, &of(2, 0), r#"[{"t": "@3"}]"#).unwrap().accepted, 1);
    assert_eq!(append(&mut client, &of(1, 4), r#"[{"t": "@3"}]"#).unwrap_err().0, "fenced");
    assert_eq!(events(&database).len(), 4);
}

fn append_once(client: &mut Client, key: &str, rows: &str) -> Result<Told, (String, String)> {
    send_once(client, key, rows);
    answer(client)
}

fn send_once(client: &mut Client, key: &str, rows: &str) {
    let rows: serde_json::Value = serde_json::from_str(rows).unwrap();
    client.send(7, Kind::Once, |out| {
        pack::array(out, 3);
        pack::text(out, key);
        pack::uint(out, Kind::Append.code().into());
        pack::array(out, 3);
        pack::text(out, "events");
        pack::nil(out);
        write_json(out, &rows);
    });
}

#[test]
fn a_key_stores_events_once() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let rows = r#"[{"t": "@1"}, {"t": "no"}, {"t": "@2"}]"#;
    let first = append_once(&mut client, "k", rows).unwrap();
    assert_eq!((first.accepted, first.rejected), (2, 1));
    let again = append_once(&mut client, "k", rows).unwrap();
    assert_eq!((again.row_ids, again.errors), (first.row_ids, first.errors));
    let (code, message) = append_once(&mut client, "k", r#"[{"t": "@1"}]"#).unwrap_err();
    assert!(code == "invalid_request" && message.contains("with another body"), "{message}");
    assert_eq!(append_once(&mut client, "other", rows).unwrap().accepted, 2);
    // Nothing that is stored: the answer is kept all the same.
    for _ in 0..2 {
        assert_eq!(append_once(&mut client, "none", r#"[{"t": "no"}]"#).unwrap().rejected, 1);
    }
    let many = vec![r#"{"t": "@5"}"#; 501].join(",");
    let first = append_once(&mut client, "many", &format!("[{many}]")).unwrap();
    let again = append_once(&mut client, "many", &format!("[{many}]")).unwrap();
    assert_eq!((first.row_ids.len(), again.accepted), (501, 501));
    assert_eq!(again.row_ids, [first.row_ids[0], first.row_ids[500]]);
    // Many long errors are not kept.
    let wrong = vec![format!(r#"{{"t": "{}"}}"#, "x".repeat(150)); 400].join(",");
    let first = append_once(&mut client, "wrong", &format!("[{wrong}]")).unwrap();
    assert_eq!((first.rejected, first.errors.len()), (400, 400));
    let again = append_once(&mut client, "wrong", &format!("[{wrong}]")).unwrap();
    assert_eq!((again.rejected, again.errors.len()), (400, 0));
    let too_many = vec!["{}"; 10_001].join(",");
    let (_, message) = append_once(&mut client, "too", &format!("[{too_many}]")).unwrap_err();
    assert_eq!(message, "expected at most 10000 events in one commit, found 10001");
    client.send(7, Kind::Once, |out| {
        pack::array(out, 3);
        pack::text(out, "p");
        pack::uint(out, Kind::Append.code().into());
        pack::array(out, 3);
        pack::text(out, "events");
        write_how(out, &[("producer", Member::Producer("p", 1, 0))]);
        write_json(out, &serde_json::json!([{"t": "@1"}]));
    });
    let (_, message) = answer(&mut client).unwrap_err();
    assert!(message.contains("not beside a producer"), "{message}");
    assert_eq!(events(&database).len(), 4 + 501);
}

#[test]
fn one_key_of_many_connections_stores_events_once() {
    let database = database();
    let server = Running::serve(&database);
    let mut clients: Vec<Client> = (0..8).map(|_| server.binary()).collect();
    for key in 0..20 {
        let text = key.to_string();
        for client in &mut clients {
            send_once(client, &text, r#"[{"t": "@1"}]"#);
        }
        for client in &mut clients {
            assert_eq!(answer(client).unwrap().accepted, 1);
        }
    }
    assert_eq!(events(&database).len(), 20);
}

#[test]
fn what_is_answered_is_on_the_disk_or_will_be() {
    let directory = Directory::new("wire-events");
    let database = Options::new().durability(Durability::Sync).open(&directory.0).unwrap();
    run(&database, TABLE);
    let server = Running::serve(&database);
    let mut client = server.binary();
    for how in [&[][..], &[("durability", Member::Text("sync"))]] {
        let told = append(&mut client, how, r#"[{"t": "@1"}]"#).unwrap();
        assert_eq!((told.accepted, told.within_ms), (1, None));
        assert!(database.is_on_disk(database.published_commit()));
    }
    let how = [("durability", Member::Text("async"))];
    let told = append(&mut client, &how, r#"[{"t": "@1"}]"#).unwrap();
    assert_eq!((told.accepted, told.within_ms), (1, Some(10)));
    assert_eq!(database.table("events").unwrap().count().unwrap(), 3);
    for id in 0..100 {
        send(&mut client, id, &[], r#"[{"t": "@1"}]"#);
    }
    for _ in 0..100 {
        assert_eq!(answer(&mut client).unwrap().accepted, 1);
    }
}

#[test]
fn events_are_for_whoever_may_write_them_and_no_transaction() {
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    run(&shop.database, TABLE);
    run(&shop.database, "CREATE TABLE plain (id i64 PRIMARY KEY)");
    let server = serve(&access_control);
    let (_, reads) = token(&access_control, "read:shop", None);
    let (_, writes) = token(&access_control, "write:shop", None);
    let mut client = server.binary();
    let rows = r#"[{"t": "@1"}]"#;
    assert_eq!(append(&mut client, &[], rows).unwrap_err().0, "unauthenticated");
    assert_eq!(hello(&mut client, Some(&reads), Some("shop")), None);
    assert_eq!(append(&mut client, &[], rows).unwrap_err().0, "forbidden");
    assert_eq!(hello(&mut client, Some(&writes), Some("shop")), None);
    assert_eq!(append(&mut client, &[], rows).unwrap().accepted, 1);
    client.send(1, Kind::Append, |out| {
        pack::array(out, 3);
        pack::text(out, "plain");
        pack::nil(out);
        pack::array(out, 0);
    });
    let (code, message) = answer(&mut client).unwrap_err();
    assert!(code == "invalid_request" && message.contains("is no stream"), "{message}");
    client.sql(2, "BEGIN");
    client.receive();
    let (code, message) = append(&mut client, &[], rows).unwrap_err();
    assert!(code == "invalid_request" && message.contains("end the transaction"), "{message}");
    client.sql(3, "ROLLBACK");
    client.receive();
    let limits = TenantLimits { events_per_second: Some(1), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    let codes: Vec<_> = (0..10).map(|_| append(&mut client, &[], rows).map_err(|e| e.0)).collect();
    assert!(codes.contains(&Err("limit_exceeded".to_owned())), "{codes:?}");
    let (stored, _) = shop.usage.event_counts();
    assert_eq!(stored, shop.database.table("events").unwrap().count().unwrap());
}

/// What a request claims takes no memory before it is there.
#[test]
fn what_a_request_claims_is_not_believed() {
    let database = database();
    let server = Running::serve(&database);
    let mut client = server.binary();
    let count = 1u64 << 60;
    client.send(7, Kind::AppendColumns, |out| {
        pack::array(out, 4);
        pack::text(out, "events");
        pack::nil(out);
        pack::uint(out, count);
        pack::array(out, 1);
        pack::array(out, 4);
        pack::text(out, "what");
        pack::text(out, "uuid");
        pack::nil(out);
        pack::bytes(out, &[]);
    });
    let (_, kind, payload) = client.receive();
    let message = String::from_utf8_lossy(&payload).into_owned();
    assert!(kind == Kind::Failed && message.contains("rows, found"), "{message}");
    // Lists of lists of lists.
    let mut value = vec![0xc0];
    for _ in 0..5_000 {
        let mut list = Vec::new();
        pack::text(&mut list, "i64");
        pack::array(&mut list, 1);
        list.extend_from_slice(&value);
        let mut outer = Vec::new();
        pack::extension(&mut outer, 10, &list);
        value = outer;
    }
    client.send(8, Kind::Append, |out| {
        pack::array(out, 3);
        pack::text(out, "events");
        pack::nil(out);
        pack::array(out, 1);
        pack::map(out, 1);
        pack::text(out, "n");
        out.extend_from_slice(&value);
    });
    let (_, _, payload) = client.receive();
    let message = String::from_utf8_lossy(&payload).into_owned();
    assert!(message.contains("no lists") || message.contains("list"), "{message}");
    assert_eq!(events(&database).len(), 0);
}
