//! Tables that a transaction of a connection has made, and buckets that are altered, by frames and
//! by lines of JSON.

use std::io::{BufRead, BufReader, Write};

use esker_wire::{Kind, pack};

use super::tests::{Running, get, insert};

/// The answers to lines.
fn lines(server: &Running, lines: &[&str]) -> Vec<String> {
    let mut stream = server.connect();
    stream.write_all(format!("{}\n", lines.join("\n")).as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    BufReader::new(stream).lines().map(Result::unwrap).collect()
}

#[test]
fn a_table_created_in_a_transaction_is_found_by_frames() {
    let server = Running::empty();
    let mut client = server.binary();
    for (id, text) in
        ["BEGIN", "CREATE TABLE people (id i64 PRIMARY KEY, name text)"].into_iter().enumerate()
    {
        client.sql(u32::try_from(id).unwrap(), text);
        assert_ne!(client.receive().1, Kind::Failed, "{text}");
    }
    client.send(7, Kind::Insert, |out| insert(out, &[(1, "Ada")]));
    let (_, kind, payload) = client.receive();
    assert_ne!(kind, Kind::Failed, "{}", String::from_utf8_lossy(&payload));
    client.send(8, Kind::Get, |out| get(out, &[1]));
    let (_, kind, payload) = client.receive();
    assert!(kind != Kind::Failed && contains(&payload, "Ada"), "{kind:?}");
}

fn contains(payload: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(payload).contains(text)
}

#[test]
fn a_table_created_in_a_transaction_is_found_by_lines() {
    let answers = lines(
        &Running::empty(),
        &[
            r#"{"op":"begin"}"#,
            r#"{"op":"sql","sql":"CREATE TABLE b (id i64 PRIMARY KEY)"}"#,
            r#"{"op":"insert","table":"b","row":{"id":1}}"#,
            r#"{"op":"get","table":"b","keys":[1]}"#,
            r#"{"op":"schema","table":"b"}"#,
            r#"{"op":"query","query":{"table":"b"}}"#,
            r#"{"op":"sql","sql":"SELECT count(*) FROM b"}"#,
        ],
    );
    assert!(answers.iter().all(|answer| answer.contains("\"ok\":true")), "{answers:?}");
    assert!(answers[3].contains(r#""id":1"#), "{}", answers[3]);
}

#[test]
fn a_put_in_a_transaction_makes_the_bucket_by_lines_and_frames() {
    let put = r#"{"op":"bucket_put","bucket":"b","key":"k","value":"v"}"#;
    let answers = lines(&Running::empty(), &[r#"{"op":"begin"}"#, put]);
    assert!(answers[1].contains("\"ok\":true"), "{answers:?}");
    let server = Running::empty();
    let mut client = server.binary();
    client.sql(1, "BEGIN");
    client.receive();
    client.send(2, Kind::BucketPut, |out| {
        pack::array(out, 3);
        pack::text(out, "b");
        pack::nil(out);
        pack::array(out, 2);
        pack::bytes(out, b"k");
        pack::bytes(out, b"v");
    });
    let (_, kind, payload) = client.receive();
    let text = String::from_utf8_lossy(&payload).into_owned();
    assert_ne!(kind, Kind::Failed, "{text}");
}

#[test]
fn a_change_of_a_bucket_is_refused_by_lines_and_frames() {
    let server = Running::empty();
    let put = r#"{"op":"bucket_put","bucket":"b","key":"k","value":"v"}"#;
    let alter = r#"{"op":"sql","sql":"ALTER TABLE b ADD COLUMN x i64"}"#;
    let answers = lines(&server, &[put, alter, put]);
    assert!(answers[1].contains(r#"\"b\" is a bucket: "#), "{answers:?}");
    assert!(answers[2].contains("\"ok\":true"), "{answers:?}");
    let mut client = server.binary();
    client.sql(1, "ALTER TABLE b DROP COLUMN expires_at");
    let (_, kind, payload) = client.receive();
    let text = String::from_utf8_lossy(&payload).into_owned();
    assert!(kind == Kind::Failed && text.contains("\"b\" is a bucket: "), "{kind:?}: {text}");
}
