//! Visibility by prefix, row ids by run, values by chunk.

use esker_arena::{Arena, ArenaOptions};
use esker_format::{Batch, BytesReader, DataType, Schema, Value, ValueRef};

use super::GroupWriter;

fn schema() -> Schema {
    let schema = Schema::builder().field("a", DataType::I32).nullable("b", DataType::Text);
    schema.build().unwrap()
}

fn writer() -> GroupWriter {
    let arena = Arena::new(ArenaOptions::default()).unwrap();
    GroupWriter::create(&arena, 7, &schema()).unwrap()
}

fn row(a: i64, b: Option<&str>) -> Vec<Value> {
    vec![Value::Int(a), b.into()]
}

#[test]
fn rows_visible_at_a_commit_are_a_prefix() {
    let mut writer = writer();
    for commit in 10..60u64 {
        for i in 0..commit % 3 {
            writer.push((&row(i as i64, None), &[]), commit * 10 + i, true, commit, None).unwrap();
        }
    }
    let group = writer.group();
    for at in 0..70 {
        let expected = (10..60).filter(|c| *c <= at).map(|c| c % 3).sum::<u64>();
        assert_eq!(group.rows_at(at) as u64, expected, "at {at}");
    }
    for r in 0..group.row_count() {
        assert!(group.is_created_at(r, group.created(r)));
        assert!(!group.is_created_at(r, group.created(r) - 1));
    }
}

#[test]
fn row_ids_survive_breaks_and_updates() {
    let mut writer = writer();
    for id in [1, 2, 3, 9, 10] {
        writer.push((&row(0, None), &[]), id, true, 5, None).unwrap();
    }
    writer.push((&row(0, None), &[]), 2, false, 6, None).unwrap();
    writer.push((&row(0, None), &[]), 11, true, 7, None).unwrap();
    let group = writer.group();
    let ids: Vec<u64> = (0..7).map(|r| group.row_id(r)).collect();
    assert_eq!(ids, [1, 2, 3, 9, 10, 2, 11]);
    assert_eq!(group.fresh_row(2), Some(1));
    assert_eq!(group.fresh_row(10), Some(4));
    assert_eq!(group.fresh_row(11), Some(6));
    assert_eq!((group.fresh_row(4), group.fresh_row(12), group.fresh_row(0)), (None, None, None));
}

/// Long runs beside short ones: where a run is cannot be told from how many there are.
#[test]
fn rows_are_found_in_runs_of_any_length() {
    let mut writer = writer();
    let mut wanted = Vec::new();
    for commit in 1..200u64 {
        let rows = if commit % 50 == 1 { 300 } else { commit % 4 };
        for i in 0..rows {
            let row_id = if commit % 2 == 0 { 10_000 - commit * 7 } else { commit * 10_000 + i };
            writer.push((&row(0, None), &[]), row_id, commit % 2 == 1, commit, None).unwrap();
            wanted.push((row_id, commit));
        }
    }
    let group = writer.group();
    let found: Vec<_> =
        (0..group.row_count()).map(|row| (group.row_id(row), group.created(row))).collect();
    assert_eq!(found, wanted);
}

/// An update between two inserts with consecutive row ids breaks the run of rows.
#[test]
fn a_fresh_row_is_found_behind_an_update() {
    let mut writer = writer();
    writer.push((&row(0, None), &[]), 1, true, 5, None).unwrap();
    writer.push((&row(0, None), &[]), 1, false, 6, None).unwrap();
    writer.push((&row(0, None), &[]), 2, true, 7, None).unwrap();
    assert_eq!(writer.group().fresh_row(1), Some(0));
    assert_eq!(writer.group().fresh_row(2), Some(2));
    assert!(!writer.takes_fresh(2) && writer.takes_fresh(3));
}

#[test]
fn values_read_back_across_chunks() {
    let mut writer = writer();
    let schema = Schema::builder().field("a", DataType::I32).nullable("b", DataType::Text);
    let schema = schema.build().unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..1000 {
        let text = format!("text {i}");
        batch.push_row(&schema, &row(i, (i % 3 > 0).then_some(text.as_str()))).unwrap();
    }
    writer.push_batch((&batch, &[]), 1, 3).unwrap();
    let group = writer.group();
    let mut start = 0;
    while start < 1000 {
        let end = group.chunk_end(start).min(1000);
        let column = |p: usize| group.column(&schema.fields()[p], start, end).unwrap();
        let (a, b) = (column(0), column(1));
        for i in start..end {
            assert_eq!(a.value(i - start), ValueRef::Int(i as i64));
            let text = format!("text {i}");
            let expected = if i % 3 > 0 { ValueRef::Text(&text) } else { ValueRef::Null };
            assert_eq!(
                (b.value(i - start), group.value(&schema.fields()[1], i).unwrap()),
                (expected, expected)
            );
        }
        start = end;
    }
}

/// Whatever order they are asked for in, and as more are written.
#[test]
fn a_reader_of_bytes_reads_what_the_column_has() {
    let mut writer = writer();
    let text = |i: usize| "é".repeat(i * 37 % 2_900);
    for i in 0..2_000usize {
        let row = row(0, (i % 5 > 0).then_some(text(i).as_str()));
        writer.push((&row, &[]), i as u64 + 1, true, 5, None).unwrap();
        if i % 400 < 399 {
            continue;
        }
        let (group, schema) = (writer.group(), schema());
        let mut start = 0;
        while start <= i {
            let end = group.chunk_end(start).min(i + 1);
            let column = group.column(&schema.fields()[1], start, end).unwrap();
            let mut reader = BytesReader::new(&column);
            let rows = 0..end - start;
            let orders = [rows.clone().rev().collect::<Vec<_>>(), rows.clone().collect()];
            for row in orders.concat().into_iter().chain(rows.map(|r| r * 7 % (end - start))) {
                let wanted = if (start + row) % 5 > 0 { text(start + row) } else { String::new() };
                assert_eq!(reader.bytes(row), wanted.as_bytes(), "row {}", start + row);
                assert_eq!(column.bytes(row), wanted.as_bytes());
            }
            assert_eq!(reader.bytes(end - start), b"");
            start = end;
        }
    }
}

/// Rows visible at a commit would not be a prefix any more.
#[test]
fn rows_of_an_older_commit_are_refused() {
    let mut writer = writer();
    writer.push((&row(0, None), &[]), 1, true, 5, None).unwrap();
    writer.push((&row(0, None), &[]), 2, true, 5, None).unwrap();
    let refused = writer.push((&row(0, None), &[]), 3, true, 4, None).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Corrupt);
    assert!(refused.to_string().contains("rows of commit 4 after those of 5"), "{refused}");
    assert_eq!(writer.group().row_count(), 2);
}
