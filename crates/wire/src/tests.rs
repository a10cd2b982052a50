use esker_format::{DataType, Value};
use proptest::prelude::*;

use crate::frame::{self, Frame, FrameWriter, Kind};
use crate::pack::Token;
use crate::{MORE, Reader, golden, pack, value};

fn round(value: &Value) -> Value {
    let mut out = Vec::new();
    value::write(&mut out, value.as_ref());
    let mut reader = Reader::new(&out);
    let read = value::read_owned(&mut reader).unwrap();
    reader.finish().unwrap();
    read
}

#[test]
fn values_of_every_kind_come_back() {
    let decimal = Value::Decimal("-12345678901234567890.125".parse().unwrap());
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::Int(i64::MIN),
        Value::Uint(u64::MAX),
        Value::Float32(1.5),
        Value::Float(-0.1),
        Value::Text("é".repeat(300)),
        Value::Bytes(vec![0; 70_000]),
        Value::Date(-1),
        Value::Timestamp(i64::MAX),
        Value::Time(5),
        Value::Uuid([7; 16]),
        Value::Ipv4(0x7f00_0001),
        Value::Ipv6([1; 16]),
        decimal,
        Value::json("{\"a\": [1, 2.50]}").unwrap(),
        Value::Interval(esker_format::Interval::new(-14, 3, 5_000_001)),
        esker_format::text::parse_value("{1,NULL}", DataType::list(DataType::U8).unwrap()).unwrap(),
        esker_format::text::parse_value("{}", DataType::list(DataType::Date).unwrap()).unwrap(),
        esker_format::text::parse_value("{1 mon}", DataType::list(DataType::Interval).unwrap())
            .unwrap(),
    ];
    for value in &values {
        assert!(round(value).as_ref().is_identical(value.as_ref()), "{value:?}");
    }
    assert_eq!(DataType::ALL.len(), 26, "a new type needs a form here");
}

#[test]
fn frames_come_in_parts() {
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes, 7, Kind::Get, MORE);
    pack::text(writer.payload(), "people");
    writer.finish();
    for cut in 0..bytes.len() {
        assert_eq!(Frame::parse(&bytes[..cut], 100), Ok(None), "{cut}");
    }
    let (frame, length) = Frame::parse(&bytes, 100).unwrap().unwrap();
    assert_eq!((frame.id, frame.kind(), frame.is_last()), (7, Ok(Kind::Get), false));
    assert_eq!(length, bytes.len());
    let error = Frame::parse(&bytes, 6).unwrap_err();
    assert_eq!(error.to_string(), "a frame of 7 bytes, expected at most 6");
    assert!(Frame::parse(&[5, 0, 0, 0], 6).is_err(), "it is known before the frame is whole");
}

#[test]
fn kinds_have_their_codes_and_greetings_their_versions() {
    for kind in Kind::ALL {
        assert_eq!(Kind::of(kind.code()), Some(*kind));
    }
    assert_eq!(frame::parse_greeting(frame::greeting()), Ok(frame::VERSION));
    let error = frame::parse_greeting(*b"ESKR\x02\x00").unwrap_err();
    assert_eq!(error.to_string(), "version 2.0: expected 1.x, such as 1.0");
}

#[test]
fn every_kind_and_every_extension_has_a_golden_frame() {
    let (mut kinds, mut extensions) = ([[false; 256]; 2], [[false; 256]; 2]);
    for step in golden::steps() {
        for (is_sent, bytes) in &step.lines {
            if bytes.starts_with(&frame::MAGIC) {
                continue;
            }
            let (frame, length) = Frame::parse(bytes, bytes.len()).unwrap().unwrap();
            assert_eq!(length, bytes.len(), "{}: {}", step.name, golden::digits(bytes));
            kinds[usize::from(*is_sent)][usize::from(frame.code)] = true;
            let mut reader = Reader::new(frame.payload);
            while let Ok(token) = reader.token() {
                if let Token::Extension(code, _) = token {
                    extensions[usize::from(*is_sent)][usize::from(code)] = true;
                }
            }
        }
    }
    for kind in Kind::ALL {
        let is_request = kind.code() < Kind::Done.code();
        let found = kinds[usize::from(is_request)][usize::from(kind.code())];
        assert!(found, "{kind:?} has no golden frame in docs/reference/wire.md");
    }
    for code in 1..=8 {
        let is_there = extensions.map(|found| found[code]);
        assert_eq!(is_there, [true; 2], "extension {code} is neither sent nor received");
    }
}

proptest! {
    #[test]
    fn integers_come_back(v in any::<i64>(), shift in 0u32..64) {
        let v = v >> shift;
        let Ok(expected) = u64::try_from(v) else {
            prop_assert!(round(&Value::Int(v)).as_ref().is_identical(Value::Int(v).as_ref()));
            return Ok(());
        };
        prop_assert!(round(&Value::Int(v)).as_ref().is_identical(Value::Uint(expected).as_ref()));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        while value::read_owned(&mut reader).is_ok() {}
        let _ = Frame::parse(&bytes, 1000);
    }
}
