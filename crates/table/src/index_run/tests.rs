use std::ops::Bound;
use std::sync::Arc;

use esker_arena::{Arena, ArenaOptions};
use esker_format::edit::SegmentEntry;
use esker_format::order_key::{KeyRange, key};
use esker_format::schema::{Alteration, Index, IndexKind, NewIndex, RowOrder};
use esker_format::segment::{Packing, encode_column};
use esker_format::{
    Batch, Column, ColumnSlice, DataType, Decimal, Schema, TableId, Value, ValueRef,
};
use esker_vfs::Mapping;
use proptest::prelude::*;

use super::sorted::expect_sorted;
use super::{IndexRun, NewRun, write_run};
use crate::segment::sink::SegmentSink;
use crate::segment::{FinishedSegment, Segment, SegmentSpec, SegmentWriter, SinkTarget};
use crate::value_file::StoredValue;

/// Segments in memory.
struct Memory(Arc<Arena>);

impl SegmentSink for Memory {
    fn next_id(&mut self) -> u64 {
        1
    }

    fn create(&mut self, _: u64) -> crate::Result<SinkTarget> {
        Ok(SinkTarget::Memory(Vec::new()))
    }

    fn long_bytes(&self) -> usize {
        usize::MAX
    }

    fn store(&mut self, _: &[u8]) -> crate::Result<StoredValue> {
        unreachable!("no value is long")
    }

    fn finish(&mut self, _: SegmentEntry, target: SinkTarget) -> crate::Result<Segment> {
        let SinkTarget::Memory(bytes) = target else { unreachable!() };
        Segment::in_memory(Mapping::copy_of(&bytes), &self.0, 0)
    }

    fn pause(&mut self) {}
}

const TYPES: [DataType; 7] = [
    DataType::U8,
    DataType::I64,
    DataType::F64,
    DataType::Text,
    DataType::Bytes,
    DataType::Decimal { precision: 38, scale: 2 },
    DataType::Timestamp,
];

fn schema() -> Schema {
    let mut builder = Schema::builder();
    for (i, data_type) in TYPES.iter().enumerate() {
        builder = builder.nullable(format!("f{i}"), *data_type);
    }
    builder.build().unwrap()
}

fn value(data_type: DataType, seed: u64) -> Value {
    let texts = ["", "a", "ab", "ü", "z"];
    let long = |n: u64| format!("{}{}", "wide ".repeat(13), n % 4);
    match (data_type, seed % 8) {
        (_, 0) => Value::Null,
        (DataType::U8, _) => Value::Uint(seed % 256),
        (DataType::I64, 1) => Value::Int(i64::MIN),
        (DataType::I64, 2) => Value::Int(i64::MAX),
        (DataType::I64, _) => Value::Int((seed % 20).cast_signed() - 10),
        (DataType::F64, 1) => Value::Float(f64::NAN),
        (DataType::F64, 2) => Value::Float(-0.0),
        (DataType::F64, 3) => Value::Float(f64::NEG_INFINITY),
        (DataType::F64, _) => Value::Float((seed % 9) as f64 - 4.0),
        (DataType::Text, 1..=3) => long(seed / 8).into(),
        (DataType::Text, _) => texts[(seed / 8 % 5) as usize].into(),
        (DataType::Bytes, 1..=3) => {
            Value::Bytes([vec![255; 66], vec![(seed % 3).to_le_bytes()[0]]].concat())
        }
        (DataType::Bytes, _) => Value::Bytes(vec![0; (seed % 5) as usize]),
        (DataType::Timestamp, _) => Value::Timestamp((seed % 50).cast_signed()),
        (_, _) => {
            let most = 10i128.pow(38) - 1;
            let mantissa = if seed.is_multiple_of(3) { most } else { -i128::from(seed) };
            Value::Decimal(Decimal::new(mantissa, 2).unwrap())
        }
    }
}

fn build(rows: &[Vec<Value>], fields: &[(usize, bool)]) -> (Segment, IndexRun, Schema) {
    let names = fields.iter().map(|(field, descending)| (format!("f{field}"), *descending));
    let new = NewIndex { name: "x".into(), ..NewIndex::on(names.collect()) };
    let schema = schema().alter(&[Alteration::AddIndex(new)]).unwrap();
    let mut batch = Batch::empty(&schema);
    rows.iter().for_each(|row| batch.push_row(&schema, row).unwrap());
    let mut sink = Memory(Arena::new(ArenaOptions::default()).unwrap());
    let count = u32::try_from(rows.len()).unwrap();
    let (table, schema_version) = (TableId(1), schema.version());
    let spec = SegmentSpec {
        database: 1,
        table,
        segment: 7,
        schema_version,
        rows: count,
        order: RowOrder::Arrival,
        side_by_side: None,
        key: None,
        packing: Packing::None,
    };
    let mut writer = SegmentWriter::new(spec, SinkTarget::Memory(Vec::new())).unwrap();
    for (field, column) in schema.fields().iter().zip(&batch.columns) {
        writer.column(&encode_column(field.id, column)).unwrap();
    }
    let ids: Vec<u64> = (0..u64::from(count)).collect();
    let FinishedSegment { file_bytes, target, .. } = writer.finish(&ids, None).unwrap();
    let entry = SegmentEntry { id: 7, rows: count, file_bytes, holds_through: 0, row_id_shift: 0 };
    let segment = sink.finish(entry, target).unwrap();
    let index = &schema.indexes()[0];
    let new = NewRun { database: 1, table, segment: 7, schema: &schema, index, values: None };
    let run = write_run(new, &segment, &mut sink).unwrap();
    (segment, run, schema)
}

fn is_in(value: ValueRef<'_>, range: &KeyRange<'_>) -> bool {
    match range {
        KeyRange::Null => value.is_null(),
        KeyRange::NotNull => !value.is_null(),
        KeyRange::Keys(a, b) => !value.is_null() && (*a..=*b).contains(&key(value)),
        KeyRange::Bytes(a, b) => value.as_bytes().is_some_and(|v| {
            let least = match a {
                Bound::Included(a) => v >= *a,
                Bound::Excluded(a) => v > *a,
                Bound::Unbounded => true,
            };
            let greatest = match b {
                Bound::Included(b) => v <= *b,
                Bound::Excluded(b) => v < *b,
                Bound::Unbounded => true,
            };
            least && greatest
        }),
    }
}

fn range<'a>(kind: u8, a: &'a Value, b: &'a Value) -> KeyRange<'a> {
    let bound = |included: bool, bytes: &'a [u8]| match included {
        true => Bound::Included(bytes),
        false => Bound::Excluded(bytes),
    };
    match (kind, a.as_ref().as_bytes(), b.as_ref().as_bytes()) {
        (0, ..) => KeyRange::Null,
        (1, ..) => KeyRange::NotNull,
        (2, Some(_), Some(b)) => KeyRange::Bytes(Bound::Unbounded, bound(true, b)),
        (kind, Some(a), Some(b)) => {
            KeyRange::Bytes(bound(kind & 1 == 0, a), bound(kind & 2 == 0, b))
        }
        _ if a.is_null() || b.is_null() => KeyRange::NotNull,
        _ => KeyRange::Keys(key(a.as_ref()), key(b.as_ref())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Each row comes once, in order; a search finds what a look at every row finds.
    #[test]
    fn a_run_is_the_rows_in_order(
        seeds in prop::collection::vec(any::<[u64; 7]>(), 0..120),
        first in (0usize..7, any::<bool>()),
        second in (0usize..7, any::<bool>()),
        searches in prop::collection::vec((0u8..8, any::<u64>(), any::<u64>(), 0u8..8), 1..12),
    ) {
        let row = |seeds: &[u64; 7]| TYPES.iter().zip(seeds).map(|(t, s)| value(*t, *s)).collect();
        let rows: Vec<Vec<Value>> = seeds.iter().map(row).collect();
        let mut fields = vec![first];
        fields.extend((second.0 != first.0).then_some(second));
        let (segment, run, schema) = build(&rows, &fields);
        run.verify(&segment, &schema).unwrap();
        for (kind, a, b, then) in searches {
            let (a1, b1) = (value(TYPES[first.0], a), value(TYPES[first.0], b));
            let by = range(kind, &a1, &b1);
            let found = run.find(&segment, &schema, 0..run.len(), 0, &by).unwrap();
            let mut entries = run.rows(found.clone()).unwrap().to_vec();
            entries.sort_unstable();
            let wanted = |field: usize, by: &KeyRange<'_>, row: u32| {
                is_in(rows[row as usize][field].as_ref(), by)
            };
            let all = 0..u32::try_from(rows.len()).unwrap();
            let expected: Vec<u32> = all.clone().filter(|row| wanted(first.0, &by, *row)).collect();
            prop_assert_eq!(&entries, &expected);
            prop_assert_eq!(run.count_visible(&segment, found, 5).unwrap(), expected.len());
            // Among the entries of one value, by the second field.
            let point = range(4, &a1, &a1);
            let same = run.find(&segment, &schema, 0..run.len(), 0, &point).unwrap();
            if fields.len() == 2 && !a1.is_null() {
                let (a2, b2) = (value(TYPES[second.0], b), value(TYPES[second.0], a));
                let by = range(then, &a2, &b2);
                let found = run.find(&segment, &schema, same, 1, &by).unwrap();
                let mut entries = run.rows(found).unwrap().to_vec();
                entries.sort_unstable();
                let expected: Vec<u32> = all
                    .filter(|row| wanted(first.0, &point, *row) && wanted(second.0, &by, *row))
                    .collect();
                prop_assert_eq!(entries, expected);
            }
        }
    }
}

/// By the list of dead entries and row by row, for readers of every age.
#[test]
fn dead_rows_are_not_counted() {
    let rows: Vec<Vec<Value>> = (0..3_000u64)
        .map(|i| TYPES.iter().map(|t| value(*t, i.wrapping_mul(0x9e37_79b9) >> 7)).collect())
        .collect();
    let (segment, run, _) = build(&rows, &[(0, false)]);
    for row in 0..3_000 {
        if row % 7 < 2 {
            segment.mark_deleted(row, 10 + row as u64 % 7).unwrap();
        }
        if row % 500 == 0 || row == 2_999 {
            for at in [9, 10, 11] {
                for (from, to) in [(0, 3_000), (5, 20), (1_000, 2_400), (2_999, 3_000), (7, 7)] {
                    let entries = run.rows(from..to).unwrap();
                    let dead = |row: &&u32| (1..=at).contains(&segment.deleted(**row as usize));
                    let expected = entries.len() - entries.iter().filter(dead).count();
                    assert_eq!(run.count_visible(&segment, from..to, at).unwrap(), expected);
                }
            }
        }
    }
}

/// The field was left out, and the run had entries without it.
#[test]
fn an_index_of_a_field_that_the_schema_lacks_is_an_error() {
    let (segment, _, schema) = build(&[vec![Value::Null; TYPES.len()]], &[(0, false), (1, false)]);
    let other = Schema::builder().nullable("f0", DataType::U8).build().unwrap();
    let mut sink = Memory(Arena::new(ArenaOptions::default()).unwrap());
    for kind in [IndexKind::Ordered, IndexKind::Trigram, IndexKind::Bitmap] {
        let mut index = Index { kind, ..schema.indexes()[0].clone() };
        index.fields.reverse();
        let (table, schema) = (TableId(1), &other);
        let new = NewRun { database: 1, table, segment: 7, schema, index: &index, values: None };
        let run = write_run(new, &segment, &mut sink);
        let error = run.map(drop).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
        assert!(error.to_string().contains("a field that the schema lacks"), "{error}");
    }
}

#[test]
fn the_run_of_other_rows_is_a_broken_invariant() {
    let rows = |count: u64| -> Vec<Vec<Value>> {
        (0..count).map(|seed| TYPES.map(|data_type| value(data_type, seed)).to_vec()).collect()
    };
    let (segment, run, _) = build(&rows(20), &[(1, false)]);
    let (_, other, _) = build(&rows(21), &[(1, false)]);
    let message = segment.add_run(Arc::new(other)).unwrap_err().to_string();
    assert!(message.starts_with("segment 7: broken invariant: "), "{message}");
    segment.add_run(Arc::new(run)).unwrap();
}

#[test]
fn entries_that_are_not_in_order_are_a_broken_invariant() {
    let mut column = Column::empty(DataType::U8);
    [3, 1, 2].into_iter().for_each(|number| column.push(ValueRef::Uint(number)).unwrap());
    let by = [(ColumnSlice::from(&column), false)];
    expect_sorted(&by, &[1, 2, 0]).unwrap();
    let message = expect_sorted(&by, &[2, 1, 0]).unwrap_err().to_string();
    assert!(message.contains("broken invariant: "), "{message}");
}

/// Whatever has died since the list was made, and for readers of every age.
#[test]
fn dead_entries_at_both_ends_are_left_out() {
    const ROWS: usize = 6_000;
    let rows: Vec<Vec<Value>> = (0..ROWS as u64)
        .map(|i| TYPES.iter().map(|t| value(*t, i.wrapping_mul(0x9e37_79b9) >> 7)).collect())
        .collect();
    let (segment, run, _) = build(&rows, &[(0, false)]);
    let order = run.rows(0..ROWS).unwrap().into_owned();
    let look = || {
        for at in [9, 10, 11] {
            let is_seen = |row: usize| !(1..=at).contains(&segment.deleted(row));
            for (from, to) in [(0, ROWS), (5, 20), (100, 2_900), (2_000, 5_500), (7, 7)] {
                let seen = |entry: &usize| is_seen(order[*entry] as usize);
                let first = (from..to).find(seen);
                let last = (from..to).rev().find(seen);
                let shown = run.shown(&segment, from..to, at, is_seen).unwrap();
                match first.zip(last) {
                    Some((first, last)) => assert_eq!(shown, first..last + 1),
                    None => assert!(shown.is_empty()),
                }
            }
        }
    };
    look();
    for (entry, row) in order.iter().enumerate() {
        if !(2_990..3_000).contains(&entry) {
            segment.mark_deleted(*row as usize, 10 + u64::from(entry % 500 == 0)).unwrap();
        }
        if entry % 700 == 0 || entry + 1 == ROWS {
            look();
        }
    }
}
