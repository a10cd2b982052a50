//! Both directions of the golden frames.

use std::time::Duration;

use esker_format::Value;
use esker_wire::{Frame, Kind, columns};

use crate::{
    AppendOptions, Call, DataType, Duplicates, Format, KeyRange, ProducerTurn, Reply, golden,
};

fn int(value: i64) -> Vec<Value> {
    vec![Value::Int(value)]
}

/// What goes in one direction.
fn frames(step: &golden::Step, are_sent: bool) -> Vec<&[u8]> {
    let lines = step.lines.iter().filter(|(is_sent, _)| *is_sent == are_sent);
    lines.map(|(_, bytes)| bytes.as_slice()).collect()
}

/// A value of every type, as the reference has them.
fn every_type() -> Vec<Value> {
    let at = i64::from(19_782) * 86_400_000_000;
    vec![
        Value::Int(1),
        Value::Date(19_782),
        Value::Timestamp(at + ((12 * 60 + 30) * 60 + 1) * 1_000_000 + 5),
        Value::Time(86_400_000_000 - 1),
        Value::Uuid(*b"\x67\xe5\x50\x44\x10\xb1\x42\x6f\x92\x47\xbb\x68\x0e\x5f\xe0\xc8"),
        Value::Ipv4(0xc000_0201),
        Value::Ipv6([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        Value::Decimal("-12.50".parse().unwrap()),
        Value::json("[1]").unwrap(),
        Value::Float(-0.5),
        Value::Bytes(vec![0, 255]),
        Value::Bool(true),
        Value::Uint(u64::MAX),
        Value::Int(i64::MIN),
    ]
}

const TABLE: &str = "CREATE TABLE v (id i64 PRIMARY KEY, day date, at timestamp, clock time, \
    tag uuid, four ipv4, six ipv6, price decimal(9,2), doc json, rate f64, raw bytes, flag bool, \
    most u64, least i64)";

const STREAM: &str = "CREATE TABLE e (t timestamp NOT NULL, n i64, what text) WITH (stream = 't')";
/// The time of the first event.
const EVENT_US: i64 = 1_767_323_045_123_456;

/// What the client sends in all steps, but for expiries of entries and chunks of loads, which it
/// has no call for.
fn calls(name: &str) -> Vec<Call> {
    let named = |text: &str| Value::from(text);
    vec![match name {
        "Ping" => Call::ping(),
        "Sql: CREATE TABLE t (id i64 PRIMARY KEY, name text)" => {
            Call::sql("CREATE TABLE t (id i64 PRIMARY KEY, name text)", &[])
        }
        "Insert two rows" => {
            let rows = [vec![Value::Int(1), named("Ada")], vec![Value::Int(2), Value::Null]];
            Call::insert("t", &rows)
        }
        // A key may be an array of its only value; this client sends the value.
        "Get keys 1 and 9" => return Vec::new(),
        "Exists" => Call::exists("t", &[int(2), int(3)]),
        "Update key 2" => Call::update("t", &int(2), &[("name", named("Bob"))]),
        "Sql with a parameter: columns, rows, end" => {
            Call::sql("SELECT id, name FROM t WHERE id > ?", &int(1))
        }
        "Delete" => Call::delete("t", &[int(1)]),
        "BucketPut, BucketGet" => {
            return vec![Call::bucket_put("b", &[("k", "v")]), Call::bucket_get("b", &["k", "x"])];
        }
        "a bulk load of MessagePack" => {
            Call::bulk_begin("t", Format::MessagePack, Duplicates::Error, None)
        }
        "a bulk load of CSV that is sent twice, and done once" => {
            return vec![Call::bulk_begin("t", Format::Csv, Duplicates::Error, Some("k2"))];
        }
        "Hello: no token, the only database" => Call::hello(None, None),
        "Cancel of what is not under way: no answer" => Call::cancel(1),
        "Tables" => Call::tables(),
        "Schema" => Call::schema("t"),
        "UpdateMany: key 2 is there, key 9 is not" => {
            let updates =
                [("Eva", 2), ("x", 9)].map(|(v, key)| (int(key), vec![("name", v.into())]));
            Call::update_many("t", &updates)
        }
        "Query: columns, rows, end" => Call::query("{\"table\": \"t\", \"limit\": 2}"),
        "Explain of a table that there is not: a plan has times in it" => {
            Call::explain("{\"table\": \"x\"}")
        }
        "Begin, Rollback" => return vec![Call::begin(false, false), Call::rollback()],
        "Begin a serializable one, read only, and Commit" => {
            return vec![Call::begin(true, true), Call::commit()];
        }
        "Buckets" => Call::buckets(),
        "BucketIncrement, from nothing" => Call::bucket_increment("b", b"n", 5),
        "BucketRange: two from the last back" => {
            let range =
                KeyRange { to: Some(b"z"), limit: Some(2), reverse: true, ..KeyRange::default() };
            Call::bucket_range("b", &range)
        }
        "BucketRemove" => Call::bucket_remove("b", &["k", "x"]),
        "Sql: a table with the types that are extensions" => Call::sql(TABLE, &[]),
        "Insert a value of every type" => Call::insert("v", &[every_type()]),
        "Get it" => Call::get("v", &[int(1)]),
        "an error" => Call::schema("x"),
        "Admin: a bucket is made" => {
            Call::admin("{\"task\": \"create_bucket\", \"bucket\": \"c\"}")
        }
        "Once: a BucketIncrement that is sent twice, and done once" => {
            let once = Call::bucket_increment("b", b"n", 5).once("k1");
            return vec![once.clone(), once];
        }
        _ => return event_calls(name),
    }]
}

/// The same of streams.
fn event_calls(name: &str) -> Vec<Call> {
    let named = |text: &str| Value::from(text);
    vec![match name {
        "Sql: a stream" => Call::sql(STREAM, &[]),
        "Append: values of two fields, all or none, as a producer" => {
            let producer = Some(ProducerTurn { name: "p", epoch: 1, seq: 0 });
            let how = AppendOptions { is_whole: true, producer, ..AppendOptions::default() };
            let how = AppendOptions { fields: Some(&["n", "t"]), ..how };
            Call::append_rows("e", &[[Value::Int(8), Value::Timestamp(EVENT_US + 2)]], &how)
        }
        "AppendColumns: two events, only counted" => {
            let times = [3, 4].map(|us| Value::Timestamp(EVENT_US + us));
            let all = [
                ("t", DataType::Timestamp, times),
                ("n", DataType::I64, [Value::Int(-1), Value::Null]),
                ("what", DataType::Text, [named("a"), named("bc")]),
            ];
            let column =
                |data_type, values: &[Value]| columns::column_of(data_type, values).unwrap();
            let all = all.map(|(name, data_type, values)| (name, column(data_type, &values)));
            let how = AppendOptions { is_minimal: true, ..AppendOptions::default() };
            Call::append_columns("e", &all, &how)
        }
        "Tail from the start, for one event; a credit of one more, and its end" => {
            let filter = "{\"field\": \"n\", \"op\": \"lt\", \"value\": 8}";
            return vec![
                Call::tail("e", "start", Some(filter), 1),
                Call::credit(1),
                Call::cancel(0x2a),
            ];
        }
        _ => return Vec::new(),
    }]
}

#[test]
fn what_is_sent_is_what_the_reference_says() {
    let mut sent = Vec::new();
    for step in golden::steps() {
        for (call, frame) in calls(step.name).iter().zip(frames(&step, true)) {
            let id = Frame::parse(frame, frame.len()).unwrap().unwrap().0.id;
            let mut out = Vec::new();
            call.frame(&mut out, id);
            assert_eq!(golden::digits(&out), golden::digits(frame), "{}", step.name);
            sent.push(call.kind);
        }
    }
    // Chunks are written to the socket as they fill; a get is left out above.
    let loads = [Kind::BulkChunk, Kind::BulkEnd, Kind::Get];
    for kind in Kind::ALL.iter().filter(|kind| kind.code() < Kind::Done.code()) {
        assert!(sent.contains(kind) || loads.contains(kind), "{kind:?} is not sent");
    }
}

/// The answer in a step, of the last request.
fn reply(name: &str) -> crate::Result<Reply> {
    let steps = golden::steps();
    let step = steps.iter().find(|step| step.name == name).unwrap();
    let mut reply = Reply::default();
    for bytes in frames(step, false) {
        reply.take(&Frame::parse(bytes, bytes.len()).unwrap().unwrap().0)?;
    }
    Ok(reply)
}

#[test]
fn what_is_answered_is_read_as_the_reference_says() {
    let of = |name| reply(name).unwrap();
    assert_eq!(of("Get it").found().unwrap(), [Some(every_type())].map(wire_form));
    assert_eq!(of("Tables").names().unwrap(), ["t"]);
    assert_eq!(of("Buckets").names().unwrap(), ["b"]);
    assert!(of("Schema").text().unwrap().contains("name text"));
    assert_eq!(of("Admin: a bucket is made").text(), Some("{\"bucket\":\"c\"}"));
    assert_eq!(of("UpdateMany: key 2 is there, key 9 is not").changed(), 1);
    assert_eq!(of("BucketIncrement, from nothing").number(), Some(5));
    let entries = of("BucketRange: two from the last back").entries().unwrap();
    let count = [128, 0, 0, 0, 0, 0, 0, 5].to_vec();
    assert_eq!(entries, [(b"n".to_vec(), count), (b"k".to_vec(), b"v".to_vec())]);
    assert_eq!(of("BucketRemove").changed(), 1);
    let page = of("Query: columns, rows, end");
    assert_eq!(page.rows.len(), 2);
    assert_eq!(of("Exists").flags().unwrap(), [true, false]);
    let told = of("Append: an event as a map, one as an array, and one that is refused");
    let told = told.appended().unwrap();
    assert_eq!((told.accepted, told.rejected, told.ids.len()), (2, 1, 3));
    assert_eq!(told.ids[1].unwrap().to_string(), "01KDYAK3830000000000000002");
    assert_eq!((told.errors[0].item, told.ids[2]), (3, None));
    assert_eq!(of("AppendColumns: two events, only counted").appended().unwrap().ids.len(), 2);
    let error = reply("an error").unwrap_err();
    assert_eq!(error.code(), Some(crate::Code::NotFound));
}

/// Numbers that have no sign come without one.
fn wire_form(row: Option<Vec<Value>>) -> Option<Vec<Value>> {
    let unsigned = |value| match value {
        Value::Int(v) => u64::try_from(v).map_or(Value::Int(v), Value::Uint),
        other => other,
    };
    row.map(|row| row.into_iter().map(unsigned).collect())
}

/// Half a millisecond became none at all.
#[test]
fn a_time_to_live_is_rounded_up() {
    let sent = |us| {
        let call = Call::bucket_put_for("b", Some(Duration::from_micros(us)), &[("k", "v")]);
        let mut reader = esker_wire::Reader::new(&call.payload);
        (reader.array_of(3).unwrap(), reader.text().unwrap(), reader.uint().unwrap()).2
    };
    assert_eq!([0, 1, 500, 1_000, 1_001].map(sent), [0, 1, 1, 1, 2]);
}
