//! Rows and parameters by name.

use esker::Value;
use esker_wire::{Kind, Reader, pack, value};

use super::safety::code_of;
use super::tests::{Client, Running};

const TABLE: &str = "CREATE TABLE t (id i64 PRIMARY KEY, name text NOT NULL DEFAULT 'x', n i64)";

type Named<'a> = &'a [(&'a str, Value)];

fn map(out: &mut Vec<u8>, members: Named<'_>) {
    pack::map(out, members.len());
    for (name, member) in members {
        pack::text(out, name);
        value::write(out, member.as_ref());
    }
}

fn begun(server: &Running) -> Client {
    let mut client = server.binary();
    client.sql(1, TABLE);
    assert_eq!(client.receive().1, Kind::Done);
    client
}

/// The answer to an insert: its kind, and what it says.
fn insert(client: &mut Client, rows: &[Named<'_>]) -> (Kind, String) {
    client.send(2, Kind::Insert, |out| {
        pack::array(out, 3);
        pack::text(out, "t");
        pack::bool(out, false);
        pack::array(out, rows.len());
        rows.iter().for_each(|row| map(out, row));
    });
    let (_, kind, payload) = client.receive();
    (kind, String::from_utf8_lossy(&payload).into_owned())
}

/// The rows of the table, each as one text.
fn rows(client: &mut Client) -> Vec<String> {
    client.sql(3, "SELECT id || ':' || name || ':' || coalesce(n, 0) FROM t ORDER BY id");
    let mut shown = Vec::new();
    loop {
        let (_, kind, payload) = client.receive();
        let mut reader = Reader::new(&payload);
        match kind {
            Kind::Rows => {
                for _ in 0..reader.array().unwrap() {
                    reader.array_of(1).unwrap();
                    shown.push(reader.text().unwrap().to_owned());
                }
            }
            Kind::Columns => {}
            _ => {
                assert_eq!(kind, Kind::Done, "{}", String::from_utf8_lossy(&payload));
                return shown;
            }
        }
    }
}

#[test]
fn rows_by_name_get_defaults_and_unknown_names_are_refused() {
    let server = Running::empty();
    let mut client = begun(&server);
    let (id, name, n) = (|v: i64| ("id", v.into()), ("name", "y".into()), ("n", 5i64.into()));
    let stored = insert(&mut client, &[&[id(1)], &[n.clone(), id(2)], &[name, id(3), n]]);
    assert_eq!(stored.0, Kind::Done, "{stored:?}");
    assert_eq!(rows(&mut client), ["1:x:0", "2:x:5", "3:y:5"]);
    for (wrong, message) in [
        (("nmae", "y".into()), "row 2: unknown field \"nmae\"; did you mean \"name\"?"),
        (("name", Value::Null), "must not be null"),
        (("n", "y".into()), "field \"n\""),
        (("ID", 6i64.into()), "twice"),
    ] {
        let (kind, said) = insert(&mut client, &[&[id(4)], &[id(5), wrong]]);
        assert_eq!(kind, Kind::Failed);
        assert!(said.contains(message), "{said}");
    }
    client.send(2, Kind::Insert, |out| {
        pack::array(out, 3);
        pack::text(out, "t");
        pack::bool(out, false);
        pack::array(out, 2);
        map(out, &[id(4)]);
        value::write_values(
            out,
            [Value::Int(5), "y".into(), Value::Null].iter().map(Value::as_ref),
        );
    });
    assert_eq!(client.receive().1, Kind::Failed);
    assert_eq!(rows(&mut client), ["1:x:0", "2:x:5", "3:y:5"]);
}

#[test]
fn parameters_by_name_are_placed_by_the_text() {
    let server = Running::empty();
    let mut client = begun(&server);
    let mut ask = |text: &str, parameters: Named<'_>| {
        client.send(2, Kind::Sql, |out| {
            pack::array(out, 2);
            pack::text(out, text);
            map(out, parameters);
        });
        loop {
            let (_, kind, payload) = client.receive();
            if matches!(kind, Kind::Done | Kind::Failed) {
                return (kind, String::from_utf8_lossy(&payload).into_owned());
            }
        }
    };
    let text = "INSERT INTO t (id, n, name) VALUES (:id, :n + :id, ':n') -- :x";
    let (id, n) = (("id", 1i64.into()), ("n", 2i64.into()));
    assert_eq!(ask(text, &[n.clone(), id.clone()]).0, Kind::Done);
    for (parameters, message) in [
        (vec![n.clone()], "parameter :id has no value"),
        (vec![n.clone(), id.clone(), ("x", Value::Null)], "unknown parameter :x"),
        (vec![n.clone(), id.clone(), n], "parameter :n is given twice"),
    ] {
        let (kind, said) = ask(text, &parameters);
        assert_eq!(kind, Kind::Failed);
        assert!(said.contains(message), "{said}");
    }
    assert_eq!(ask("SELECT ?", &[id]).0, Kind::Failed);
    assert_eq!(rows(&mut client), ["1::n:3"]);
    client.send(3, Kind::Sql, |out| {
        pack::array(out, 2);
        pack::text(out, "DELETE FROM t");
        value::write_values(out, [Value::Int(7)].iter().map(Value::as_ref));
    });
    let (_, kind, payload) = client.receive();
    assert_eq!((kind, code_of(&payload).as_str()), (Kind::Failed, "invalid_request"));
    assert_eq!(rows(&mut client), ["1::n:3"], "a value too many is not passed over");
}

/// Loads rows that come as maps, or as NDJSON, under a key perhaps.
fn load(client: &mut Client, format: &str, key: Option<&str>, write: impl FnOnce(&mut Vec<u8>)) {
    client.send(4, Kind::BulkBegin, |out| {
        pack::array(out, 3 + usize::from(key.is_some()));
        ["t", format, "error"].into_iter().chain(key).for_each(|text| pack::text(out, text));
    });
    client.send(4, Kind::BulkChunk, write);
    client.send(4, Kind::BulkEnd, |_| ());
    let (_, kind, payload) = client.receive();
    assert_eq!(kind, Kind::Done, "{}", String::from_utf8_lossy(&payload));
}

#[test]
fn loads_by_name_get_defaults_with_and_without_a_key() {
    let server = Running::empty();
    let mut client = begun(&server);
    for (id, key) in [(1i64, None), (2, Some("packed"))] {
        load(&mut client, "messagepack", key, |out| map(out, &[("id", id.into())]));
    }
    for (id, key) in [(3, None), (4, Some("text"))] {
        let line = format!("{{\"id\": {id}}}\n");
        load(&mut client, "ndjson", key, |out| out.extend_from_slice(line.as_bytes()));
    }
    assert_eq!(rows(&mut client), ["1:x:0", "2:x:0", "3:x:0", "4:x:0"]);
}
