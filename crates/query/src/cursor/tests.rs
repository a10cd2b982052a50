use super::*;
use crate::ErrorKind;

fn identity(text: &str) -> Identity {
    let schema = Schema::builder().field("a", DataType::I64).build().unwrap();
    Identity::new(&Query::table(text), &schema, 7, &Inputs::default()).unwrap()
}

fn cursor(snapshot: Option<u128>) -> Cursor {
    let keys = [
        (DataType::I64, ValueRef::Int(-5)),
        (DataType::Text, ValueRef::Null),
        (DataType::Text, ValueRef::Text("größer\0")),
        (DataType::F64, ValueRef::Float(-0.0)),
        (DataType::U64, ValueRef::Uint(u64::MAX)),
    ];
    Cursor::new(identity("t"), snapshot, true, &keys)
}

#[test]
fn a_cursor_comes_back_from_its_text() {
    for snapshot in [None, Some(u128::MAX - 3)] {
        let cursor = cursor(snapshot);
        let text = cursor.to_text();
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        let read = Cursor::parse(&text).unwrap();
        assert_eq!((&read, read.snapshot()), (&cursor, snapshot));
        use DataType as T;
        let types = [T::I64, T::Text, T::Text, T::F64, T::U64].into_iter();
        let values = read.values(identity("t"), types).unwrap();
        assert_eq!(values[..3], [(-5i64).into(), Value::Null, "größer\0".into()]);
        assert!(matches!(values[3], Value::Float(v) if v.to_bits() == (-0.0f64).to_bits()));
    }
}

#[test]
fn any_change_of_a_letter_is_damage() {
    let text = cursor(Some(9)).to_text();
    for at in 0..text.len() {
        for letter in ["A", "b", "_", "=", "é"] {
            let mut changed = text.clone();
            changed.replace_range(at..=at, letter);
            if changed != text {
                let error = Cursor::parse(&changed).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidQuery);
                assert!(error.to_string().starts_with("cursor: damaged"), "{error}");
            }
        }
        assert!(Cursor::parse(&text[..at]).is_err());
    }
}

#[test]
fn a_cursor_is_of_one_query_on_one_schema() {
    let cursor = cursor(None);
    cursor.expect(identity("t")).unwrap();
    let error = cursor.expect(identity("u")).unwrap_err();
    assert!(error.to_string().starts_with("cursor: of another query"), "{error}");
    let schema = Schema::builder().field("a", DataType::I32).build().unwrap();
    let other = Identity::new(&Query::table("t"), &schema, 7, &Inputs::default()).unwrap();
    let error = cursor.expect(other).unwrap_err();
    assert!(error.to_string().contains("have changed since"), "{error}");
    let table = Schema::builder().field("a", DataType::I64).build().unwrap();
    let other = Identity::new(&Query::table("t"), &table, 8, &Inputs::default()).unwrap();
    assert!(cursor.expect(other).is_err());
}
