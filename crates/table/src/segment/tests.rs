//! Columns side by side read as those that lie by themselves.

use std::borrow::Cow;

use esker_arena::{Arena, ArenaOptions};
use esker_format::schema::RowOrder;
use esker_format::segment::{Encoding, Packing};
use esker_format::{Column, DataType, Field, Room, Schema, TableId, Value, ValueRef};
use esker_vfs::Mapping;

use super::{FinishedSegment, Segment, SegmentSpec, SegmentWriter, SinkTarget};

const ROWS: usize = 10_000;

fn schema() -> Schema {
    let schema = Schema::builder()
        .field("key", DataType::Bytes)
        .field("value", DataType::Bytes)
        .nullable("until", DataType::Timestamp);
    schema.primary_key(["key"]).ordered_by_key().build().unwrap()
}

fn column(value: impl Fn(usize) -> Option<Vec<u8>>) -> Column {
    let mut column = Column::empty(DataType::Bytes);
    for row in 0..ROWS {
        let value = value(row);
        column.push(value.as_deref().map_or(ValueRef::Null, ValueRef::Bytes)).unwrap();
    }
    column
}

fn segment(schema: &Schema, columns: &[&Column]) -> Segment {
    let spec = SegmentSpec {
        database: 1,
        table: TableId(1),
        segment: 7,
        schema_version: schema.version(),
        rows: u32::try_from(ROWS).unwrap(),
        order: RowOrder::Key,
        side_by_side: schema.side_by_side(),
        key: schema.key_field(),
        packing: Packing::None,
    };
    let mut writer = SegmentWriter::new(spec, SinkTarget::Memory(Vec::new())).unwrap();
    for (field, column) in schema.fields().iter().zip(columns) {
        writer.field(field.id, Cow::Borrowed(column), Vec::new()).unwrap();
    }
    let ids: Vec<u64> = (0..ROWS as u64).collect();
    let FinishedSegment { target, .. } = writer.finish(&ids, None).unwrap();
    let SinkTarget::Memory(bytes) = target else { panic!("a segment in memory") };
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    Segment::in_memory(Mapping::copy_of(&bytes), &arena, 0).unwrap()
}

/// Every way to read gives what was written.
fn expect(segment: &Segment, field: &Field, column: &Column) {
    for rows in [0..ROWS, 0..0, 1..2, 8_190..8_195, ROWS - 1..ROWS, ROWS..ROWS] {
        let room = Room::default();
        let slice = segment.column(field, rows.clone(), &room).unwrap();
        let mut copy = Column::empty(DataType::Bytes);
        copy.append(&slice).unwrap();
        assert_eq!(copy.len(), rows.len());
        for (i, row) in rows.enumerate() {
            assert_eq!(slice.value(i).as_bytes(), column.value(row).as_bytes(), "row {row}");
            assert_eq!(copy.value(i).as_bytes(), column.value(row).as_bytes(), "row {row}, copied");
        }
    }
    let mut bytes = 0;
    for row in 0..ROWS {
        segment.touch(row);
        let value = column.value(row);
        bytes += value.as_bytes().map_or(0, <[u8]>::len) as u64;
        if let Some((_, near)) = segment.in_place_bytes(field, row).unwrap() {
            assert_eq!(Some(near), value.as_bytes(), "row {row}");
        }
        assert_eq!(
            segment.value(field, row, &Room::default()).unwrap().as_bytes(),
            value.as_bytes(),
            "row {row}"
        );
        if let Some(near) = segment.in_place_value(field, row) {
            assert_eq!(near.as_bytes(), value.as_bytes(), "row {row}");
        }
        if let Some(cell) = segment.cell(field, row) {
            assert_eq!(Some(cell), value.as_bytes(), "row {row}");
        }
    }
    assert_eq!(segment.decoded_bytes(field).unwrap(), bytes);
}

fn written(key: &Column, value: &Column) -> [Encoding; 2] {
    let schema = schema();
    let segment = segment(&schema, &[key, value]);
    let [first, second, _] = schema.fields() else { panic!("three fields") };
    expect(&segment, first, key);
    expect(&segment, second, value);
    [first, second].map(|field| segment.layout(field).unwrap().encoding.clone())
}

#[test]
fn keys_and_values_lie_side_by_side() {
    let fixed = column(|row| Some(format!("{row:08}").into_bytes()));
    let wide = column(|row| Some(format!("{row:032}").into_bytes()));
    let texts = column(|row| Some(vec![b'v'; row * 7_919 % 300]));
    let unlike = column(|row| Some([format!("{row}").as_bytes(), &vec![0; row % 17]].concat()));
    let encodings = written(&fixed, &wide);
    assert!(
        matches!(
            encodings,
            [
                Encoding::Strided { width: 8, stride: 40, at: 0, heap: first },
                Encoding::Strided { width: 32, stride: 40, at: 8, heap: second },
            ] if first == second && first.len == 40 * ROWS as u64
        ),
        "{encodings:?}"
    );
    for (key, value) in [(&fixed, &unlike), (&unlike, &fixed), (&unlike, &unlike)] {
        let encodings = written(key, value);
        assert!(
            matches!(
                encodings,
                [
                    Encoding::Lined { part: 0, lines: own, heap: first },
                    Encoding::Lined { part: 1, lines: others, heap: second },
                ] if first == second && own == others && own.len == 64 * 667
            ),
            "{encodings:?}"
        );
    }
    // Fifteen of these have more than 64 KiB.
    let long = column(|row| {
        let len = if row > 9_900 && row.is_multiple_of(20) { 70_000 } else { row % 29 };
        Some([format!("{row}").as_bytes(), &vec![0; len]].concat())
    });
    let encodings = written(&unlike, &long);
    assert!(
        matches!(
            encodings,
            [
                Encoding::Interleaved { part: 0, heap: first, .. },
                Encoding::Interleaved { part: 1, heap: second, .. },
            ] if first == second
        ),
        "{encodings:?}"
    );
    // Few distinct values take less room by themselves; what may be NULL has more to look at.
    let encodings = written(&fixed, &texts);
    let is_apart = matches!(encodings, [Encoding::FixedWidth { .. }, Encoding::Dictionary { .. }]);
    assert!(is_apart, "{encodings:?}");
    let nulls = column(|row| (row % 3 > 0).then(|| format!("{row}").into_bytes()));
    let encodings = written(&fixed, &nulls);
    let is_apart = matches!(encodings, [Encoding::FixedWidth { .. }, Encoding::Variable { .. }]);
    assert!(is_apart, "{encodings:?}");
    let encodings = written(&fixed, &column(|_| Some(Vec::new())));
    let is_apart = matches!(encodings, [Encoding::FixedWidth { .. }, Encoding::Constant(_)]);
    assert!(is_apart, "{encodings:?}");
}

/// A segment of version 5, with offsets of 32 bits where lines are now.
#[test]
fn segments_of_the_version_before_are_read() {
    let bytes = include_bytes!("fixtures/interleaved_5.segment");
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    let segment = Segment::in_memory(Mapping::copy_of(bytes), &arena, 0).unwrap();
    let schema = schema();
    let [key, value, _] = schema.fields() else { panic!("three fields") };
    for field in [key, value] {
        let encoding = &segment.layout(field).unwrap().encoding;
        assert!(matches!(encoding, Encoding::Interleaved { .. }), "{encoding:?}");
    }
    assert_eq!(segment.row_count(), 100);
    for row in 0..100 {
        let written = format!("{}", row * row).into_bytes();
        assert_eq!(segment.value(key, row, &Room::default()).unwrap(), ValueRef::Bytes(&written));
        let written = [format!("{row}").as_bytes(), &vec![b'.'; row % 5]].concat();
        assert_eq!(segment.value(value, row, &Room::default()).unwrap(), ValueRef::Bytes(&written));
    }
}

#[test]
fn a_half_whose_other_half_does_not_come_is_written_by_itself() {
    let schema = schema();
    let key = column(|row| Some(format!("{row:08}").into_bytes()));
    let segment = segment(&schema, &[&key]);
    assert_eq!(
        segment.value(&schema.fields()[0], 77, &Room::default()).unwrap(),
        ValueRef::Bytes(b"00000077")
    );
}

/// A value of a type for a number: numbers that are far apart, or near each other.
fn value_of(data_type: DataType, row: usize, is_far: bool) -> Option<Value> {
    let far = (row as i64).wrapping_mul(0x0123_4567_89ab_cdef) & i64::MAX;
    let word = if is_far { far } else { (row % 100) as i64 };
    let bytes = format!("{:016}", row % if is_far { ROWS } else { 7 }).into_bytes();
    let column = |value: ValueRef<'_>| {
        let mut column = Column::empty(data_type);
        column.push(value).ok().map(|()| column.value(0).to_owned())
    };
    match data_type {
        DataType::F32 => column(ValueRef::Float32(row as f32 / 3.0)),
        DataType::F64 => column(ValueRef::Float(row as f64 / 3.0)),
        DataType::Decimal { .. } => {
            column(ValueRef::from_mantissa(data_type, i128::from(word % 1_000_000_000_000)))
        }
        DataType::Bool => column(ValueRef::Bool(word % 2 == 0)),
        DataType::Time => column(ValueRef::Time(word.rem_euclid(86_400_000_000))),
        DataType::Interval => {
            let days = i32::try_from(word % 1_000).ok()?;
            Some(Value::Interval(esker_format::Interval::new(3, days, word)))
        }
        DataType::List(esker_format::ListElement::I64) => {
            esker_format::text::parse_value(&format!("{{{word},NULL}}"), data_type).ok()
        }
        DataType::List(_) => {
            esker_format::text::parse_value(&format!("{{x{word}}}"), data_type).ok()
        }
        _ if data_type.width().is_none() => column(ValueRef::from_bytes(data_type, &bytes)),
        _ => {
            let bits = data_type.width().unwrap() * 8;
            let word = if is_far { word >> (64 - bits) } else { word };
            column(ValueRef::from_word(data_type, word))
        }
    }
}

/// Values that are told by a few steps are those of the columns, for every type.
#[test]
fn a_value_is_told_as_its_column_tells_it() {
    for data_type in DataType::ALL {
        if matches!(data_type, DataType::Enum | DataType::Json) {
            continue;
        }
        for (is_far, has_nulls) in [(false, false), (false, true), (true, false), (true, true)] {
            let schema = Schema::builder().field("key", DataType::Bytes);
            let schema = if has_nulls {
                schema.nullable("value", data_type)
            } else {
                schema.field("value", data_type)
            };
            let schema = schema.primary_key(["key"]).build().unwrap();
            let key = column(|row| Some(format!("{row}").into_bytes()));
            let mut values = Column::empty(data_type);
            for row in 0..ROWS {
                let value = value_of(data_type, row, is_far).unwrap();
                let is_null = has_nulls && row % 3 == 0;
                values.push(if is_null { ValueRef::Null } else { value.as_ref() }).unwrap();
            }
            let segment = segment(&schema, &[&key, &values]);
            let field = &schema.fields()[1];
            let encoding = segment.layout(field).unwrap().encoding.clone();
            let context = format!("{data_type}, {encoding:?}, {has_nulls}");
            for row in 0..ROWS {
                let room = Room::default();
                let column = segment.column(field, row..row + 1, &room).unwrap();
                assert_eq!(column.value(0), values.value(row), "{context}");
                let near = segment.in_place_value(field, row);
                assert_eq!(near, Some(column.value(0)), "row {row} of {context}");
                assert_eq!(
                    segment.value(field, row, &Room::default()).unwrap(),
                    column.value(0),
                    "{context}"
                );
            }
        }
    }
}

/// Rows behind the last were read from the bytes of the next column.
#[test]
fn a_column_ends_where_its_bytes_end() {
    let texts = column(|row| Some(vec![b'v'; row * 7_919 % 300]));
    let fixed = column(|row| Some(format!("{row:08}").into_bytes()));
    let schema = Schema::builder().field("a", DataType::Bytes).field("b", DataType::Bytes);
    let schema = schema.build().unwrap();
    for columns in [[&texts, &fixed], [&fixed, &texts]] {
        let segment = segment(&schema, &columns);
        for field in schema.fields() {
            let error = segment.column(field, 0..ROWS + 1, &Room::default()).map(drop).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Corrupt, "{error}");
        }
    }
}

/// A segment of version 6, which has no sketches.
#[test]
fn segments_without_sketches_are_read() {
    let bytes = include_bytes!("fixtures/numbers_6.segment");
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    let segment = Segment::in_memory(Mapping::copy_of(bytes), &arena, 0).unwrap();
    let schema = Schema::builder().field("n", DataType::I64).field("colour", DataType::Text);
    let schema = schema.nullable("share", DataType::F64).build().unwrap();
    let [n, colour, share] = schema.fields() else { panic!("three fields") };
    assert_eq!(segment.row_count(), 100);
    for row in 0..100u8 {
        let (at, number) = (usize::from(row), i64::from(row));
        assert_eq!(segment.value(n, at, &Room::default()).unwrap(), ValueRef::Int(number * number));
        let written = ["red", "green", "blue"][at % 3];
        assert_eq!(segment.value(colour, at, &Room::default()).unwrap(), ValueRef::Text(written));
        let written = ValueRef::Float(f64::from(row) / 4.0);
        let written = if row % 5 == 0 { ValueRef::Null } else { written };
        assert_eq!(segment.value(share, at, &Room::default()).unwrap(), written);
    }
    for field in schema.fields() {
        assert_eq!(segment.sketch(field), None);
    }
    segment.verify_sketches(schema.fields()).unwrap();
}

/// The sketch of a field sees its values, not those of NULL rows, whatever they are stored as.
#[test]
fn sketches_tell_how_many_values_there_are() {
    let wide = DataType::Decimal { precision: 38, scale: 2 };
    for data_type in DataType::ALL.into_iter().chain([wide]) {
        if matches!(data_type, DataType::Enum | DataType::Json) {
            continue;
        }
        for (is_far, has_nulls) in [(false, false), (false, true), (true, false), (true, true)] {
            let schema = Schema::builder().field("key", DataType::Bytes);
            let schema = schema.nullable("value", data_type).primary_key(["key"]).build().unwrap();
            let key = column(|row| Some(format!("{row}").into_bytes()));
            let mut values = Column::empty(data_type);
            let mut distinct = std::collections::BTreeSet::new();
            for row in 0..ROWS {
                let value = value_of(data_type, row, is_far).unwrap();
                let is_null = has_nulls && row % 3 == 0;
                values.push(if is_null { ValueRef::Null } else { value.as_ref() }).unwrap();
                if !is_null {
                    distinct.insert(format!("{value:?}"));
                }
            }
            let segment = segment(&schema, &[&key, &values]);
            let [key, field] = schema.fields() else { panic!("two fields") };
            assert_eq!(segment.sketch(key), None, "no two rows have the same");
            let found = segment.sketch(field).unwrap().count();
            let context = format!("{data_type} {is_far} {has_nulls}: {found}");
            let placeholder = u64::from(has_nulls && data_type.width().is_none());
            let off = distinct.len() as u64 / 10 + placeholder;
            assert!(found.abs_diff(distinct.len() as u64) <= off, "{context}");
            segment.verify_sketches(schema.fields()).unwrap();
        }
    }
}
