//! Tests of requests that come together.

use std::io::Write;
use std::time::Duration;

use esker::{Database, Options, Value, ValueRef};
use esker_wire::{FrameWriter, Kind, pack, value};

use super::replay::answer_frames;
use super::safety::{access_control, code_of, hello, serve, sql, token};
use super::tests::{Client, Running};
use crate::session::Session;
use crate::tenant::TenantLimits;

/// A request as bytes.
fn frame(id: u32, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = FrameWriter::new(&mut out, id, kind, 0);
    write(frame.payload());
    frame.finish();
    out
}

fn update(id: u32, key: i64, fields: &[(&str, ValueRef<'_>)]) -> Vec<u8> {
    frame(id, Kind::Update, |out| {
        pack::array(out, 3);
        pack::text(out, "t");
        pack::int(out, key);
        pack::map(out, fields.len());
        for (name, field) in fields {
            pack::text(out, name);
            value::write(out, *field);
        }
    })
}

fn of_keys(id: u32, kind: Kind, keys: &[i64]) -> Vec<u8> {
    frame(id, kind, |out| {
        pack::array(out, 2);
        pack::text(out, "t");
        pack::array(out, keys.len());
        keys.iter().for_each(|key| pack::int(out, *key));
    })
}

fn insert(id: u32, key: i64) -> Vec<u8> {
    frame(id, Kind::Insert, |out| {
        pack::array(out, 3);
        pack::text(out, "t");
        pack::bool(out, true);
        pack::array(out, 1);
        let row = [Value::Int(key), Value::Int(0), Value::Int(100 + key), Value::Null];
        value::write_values(out, row.iter().map(Value::as_ref));
    })
}

/// Sends all in one write; what comes back, by rising id.
fn together(client: &mut Client, frames: &[Vec<u8>]) -> Vec<(u32, Kind, Vec<u8>)> {
    client.stream.write_all(&frames.concat()).unwrap();
    let mut told: Vec<_> = frames.iter().map(|_| client.receive()).collect();
    told.sort_by_key(|(id, ..)| *id);
    told
}

/// How many rows a request has changed, or the code of its error.
fn outcomes(told: &[(u32, Kind, Vec<u8>)]) -> Vec<String> {
    let outcome = |(_, kind, payload): &(u32, Kind, Vec<u8>)| match kind {
        Kind::Done => format!("{payload:?}"),
        _ => code_of(payload),
    };
    told.iter().map(outcome).collect()
}

/// A table `t` with rows 0 to 9.
fn database(rest: &str) -> Database {
    let database = Options::new().memory().unwrap();
    let columns = "id BIGINT PRIMARY KEY, n BIGINT, u BIGINT, until TIMESTAMP";
    let mut session = Session::new(&database);
    for text in [
        format!("CREATE TABLE t ({columns}{rest}"),
        "INSERT INTO t (id, n, u) VALUES (0, 0, 100), (1, 0, 101), (2, 0, 102), (3, 0, 103), \
         (4, 0, 104), (5, 0, 105), (6, 0, 106), (7, 0, 107), (8, 0, 108), (9, 0, 109)"
            .to_owned(),
    ] {
        let parameters = Vec::new();
        session.run(crate::Request::Sql { text: text.into(), parameters }).unwrap();
    }
    database
}

fn number(n: i64) -> ValueRef<'static> {
    ValueRef::Int(n)
}

#[test]
fn changes_that_come_together_are_one_commit() {
    let database = database(")");
    let server = Running::serve(&database);
    let mut client = server.binary();
    let before = database.published_commit();
    let updates: Vec<_> = (0..12).map(|i| update(i, i.into(), &[("n", number(7))])).collect();
    let told = outcomes(&together(&mut client, &updates));
    let expected: Vec<_> = (0..12).map(|i| format!("[{}]", u8::from(i < 10))).collect();
    assert_eq!(told, expected);
    assert_eq!(database.published_commit(), before + 1);
    let deletes: Vec<_> = (0..12).map(|i| of_keys(i, Kind::Delete, &[(i / 2).into()])).collect();
    let told = outcomes(&together(&mut client, &deletes));
    assert_eq!(told, ["[1]", "[0]"].repeat(6));
    assert_eq!(database.published_commit(), before + 2);
    assert_eq!(database.table("t").unwrap().count().unwrap(), 4);
}

#[test]
fn one_that_fails_fails_alone() {
    let server = Running::serve(&database(", CHECK (n < 5))"));
    let mut client = server.binary();
    let told = together(
        &mut client,
        &[
            update(1, 1, &[("n", number(1))]),
            update(2, 2, &[("m", number(1))]),
            update(3, 3, &[("n", number(9))]),
            update(4, 1, &[("n", number(6))]),
            update(5, 1, &[("n", number(3)), ("u", number(4))]),
            update(6, 99, &[("n", number(3))]),
            update(7, 4, &[("n", ValueRef::Text("x"))]),
            update(8, 5, &[("n", number(4))]),
        ],
    );
    let [invalid, violated] = ["invalid_request", "constraint_violated"].map(str::to_owned);
    let [done, none] = ["[1]".to_owned(), "[0]".to_owned()];
    let expected = [&done, &invalid, &violated, &violated, &done, &none, &invalid, &done];
    assert_eq!(outcomes(&told), expected.map(String::clone));
    let found = together(&mut client, &[of_keys(9, Kind::Get, &[1, 3, 5])]);
    let row = |id: u8, n: u8, u: u8| [0x94, id, n, u, 0xc0];
    assert_eq!(found[0].2, [&[0x93][..], &row(1, 3, 4), &row(3, 0, 103), &row(5, 4, 105)].concat());
}

#[test]
fn transactions_and_keyed_writes_may_come_between() {
    let server = Running::serve(&database(")"));
    let mut client = server.binary();
    let once = |id, key: i64| {
        frame(id, Kind::Once, |out| {
            pack::array(out, 3);
            pack::text(out, "a key");
            pack::uint(out, u64::from(Kind::Update.code()));
            out.extend_from_slice(&update(0, key, &[("n", number(2))])[10..]);
        })
    };
    let frames = [
        update(1, 1, &[("n", number(1))]),
        update(2, 2, &[("n", number(1))]),
        frame(3, Kind::Begin, |out| {
            pack::array(out, 2);
            pack::bool(out, false);
            pack::bool(out, false);
        }),
        update(4, 1, &[("n", number(5))]),
        update(5, 2, &[("n", number(5))]),
        frame(6, Kind::Rollback, |_| ()),
        update(7, 3, &[("n", number(1))]),
        update(8, 4, &[("n", number(1))]),
    ];
    let told = together(&mut client, &frames);
    assert!(told.iter().all(|(_, kind, _)| *kind == Kind::Done), "{told:?}");
    let frames = [update(1, 5, &[("n", number(1))]), once(2, 6), of_keys(3, Kind::Delete, &[9])];
    assert_eq!(outcomes(&together(&mut client, &frames)), ["[1]", "[1]", "[1]"]);
    let found = together(&mut client, &[of_keys(9, Kind::Get, &[1, 2, 3, 4, 5, 6, 9])]);
    let numbers: Vec<u8> = (0..6).map(|i| found[0].2[1 + i * 5 + 2]).collect();
    assert_eq!(numbers, [1, 1, 1, 1, 1, 2]);
    assert_eq!(found[0].2.last(), Some(&0xc0), "row 9 is gone");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "requests a second are counted in real time")]
fn each_counts_as_a_request_and_needs_the_right() {
    let access_control = access_control(TenantLimits::default());
    let shop = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
    let server = serve(&access_control);
    let (_, text) = token(&access_control, "admin", None);
    let mut client = server.binary();
    assert_eq!(hello(&mut client, Some(&text), Some("shop")), None);
    let table = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)";
    assert_eq!(sql(&mut client, table), None);
    let limits = TenantLimits { requests_per_second: Some(5), ..TenantLimits::default() };
    access_control.tenants.set_limits(&shop, limits).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let updates: Vec<_> = (0..100).map(|i| update(i, 1, &[("n", number(7))])).collect();
    let told = outcomes(&together(&mut client, &updates));
    let passed = told.iter().filter(|told| *told == "[0]").count();
    let refused = told.iter().filter(|told| *told == "limit_exceeded").count();
    assert!((1..40).contains(&passed) && passed + refused == 100, "{told:?}");
    access_control.tenants.set_limits(&shop, TenantLimits::default()).unwrap();
    let (_, text) = token(&access_control, "read:shop", None);
    assert_eq!(hello(&mut client, Some(&text), Some("shop")), None);
    let told = outcomes(&together(&mut client, &updates));
    assert_eq!(told, ["forbidden"].repeat(100));
    let text = access_control.metrics.text(&access_control.tenants);
    let wanted = "esker_request_duration_seconds_count{protocol=\"wire\",operation=\"update\"} 200";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn rows_of_many_bytes_are_changed_one_by_one() {
    let database = Options::new().memory().unwrap();
    let mut session = Session::new(&database);
    let text = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, text TEXT)".to_owned();
    session.run(crate::Request::Sql { text: text.into(), parameters: Vec::new() }).unwrap();
    let table = database.table("t").unwrap();
    let long = "x".repeat(600 << 10);
    for id in 0..4i64 {
        table.insert(&[id.into(), 0i64.into(), long.as_str().into()]).unwrap();
    }
    let server = Running::serve(&database);
    let before = database.published_commit();
    let updates: Vec<_> = (0..4).map(|i| update(i, i.into(), &[("n", number(7))])).collect();
    let told = outcomes(&together(&mut server.binary(), &updates));
    assert_eq!((told, database.published_commit()), (vec!["[1]".to_owned(); 4], before + 4));
    let row = table.get(&[3i64.into()]).unwrap().unwrap();
    assert_eq!(row.values()[1..], [Value::Int(7), Value::from(long.as_str())]);
}

/// A random request.
fn any(id: u32, random: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let key = i64::try_from(random(11)).unwrap();
    let small = i64::try_from(random(8)).unwrap();
    match random(14) {
        0..=3 => update(id, key, &[("n", number(small))]),
        4..=5 => update(id, key, &[("u", number(100 + small))]),
        6 => {
            let until = if small < 4 { 1 } else { 4_000_000_000_000_000 };
            update(id, key, &[("until", ValueRef::Timestamp(until)), ("n", number(1))])
        }
        7 if small == 0 => update(id, key, &[("id", number(1))]),
        7..=9 => of_keys(id, Kind::Delete, &[key]),
        10 => of_keys(id, Kind::Delete, &[key, small]),
        11 => of_keys(id, Kind::Get, &[key, small]),
        _ => insert(id, key),
    }
}

#[test]
fn answers_are_those_of_requests_one_by_one() {
    let mut state = 7u64;
    let mut random = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % most
    };
    for rest in [")", ", CHECK (n < 6))", ", UNIQUE (u))", ") WITH (expires = 'until')"] {
        let server = Running::serve(&database(rest));
        let (mut client, alone) = (server.binary(), database(rest));
        let mut session = Session::new(&alone);
        for round in 0..100 {
            let frames: Vec<_> = (0..1 + round % 40).map(|id| any(id, &mut random)).collect();
            let told = together(&mut client, &frames);
            let mut expected = answer_frames(&mut session, &frames.concat());
            let mut by_itself = Client { input: std::mem::take(&mut expected), ..server.binary() };
            let expected: Vec<_> = frames.iter().map(|_| by_itself.receive()).collect();
            assert_eq!(told, expected, "table {rest}, round {round}");
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "an answer is waited for")]
fn a_change_without_another_behind_it_is_answered_at_once() {
    let server = Running::serve(&database(")"));
    let mut client = server.binary();
    let whole = [update(1, 1, &[("n", number(1))]), update(2, 2, &[("n", number(1))])].concat();
    client.stream.write_all(&whole[..whole.len() - 3]).unwrap();
    assert_eq!(client.receive().0, 1);
    std::thread::sleep(Duration::from_millis(20));
    client.stream.write_all(&whole[whole.len() - 3..]).unwrap();
    assert_eq!(client.receive().0, 2);
}
