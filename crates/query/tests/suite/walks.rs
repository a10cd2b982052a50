//! The first rows of an order out of runs of several parts: the rows that a scan finds, in its
//! order, and few are looked at.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::memory_source::{Layout, MemorySource, RunLayout};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Expr, Operator, OrderBy};
use esker_query::{IndexUse, Options, Query, execute};
use esker_vfs::Environment;

const PARTS: i64 = 7;
const PART_ROWS: i64 = 6_000;

/// A key of its own for each row, one of many ties, and one that is mostly the same.
fn row(i: i64) -> Vec<Value> {
    let or_null = |is_null: bool, value: i64| if is_null { Value::Null } else { value.into() };
    vec![
        Value::Int(i * 7_919 % (PARTS * PART_ROWS)),
        or_null(i % 11 == 0, i % 60),
        or_null(i % 3 == 0, i64::from(i % 1_000 == 7)),
        Value::Int(i),
        Value::Int(i * 7_919 % (PARTS * PART_ROWS) / 400),
    ]
}

fn source() -> MemorySource {
    let schema = Schema::builder()
        .field("one", DataType::I64)
        .nullable("ties", DataType::I64)
        .nullable("same", DataType::I64)
        .field("i", DataType::I64)
        .field("coarse", DataType::I64)
        .build()
        .unwrap();
    let mut source = MemorySource::new(schema.clone());
    for part in 0..PARTS {
        let mut batch = Batch::empty(&schema);
        let rows = part * PART_ROWS..(part + 1) * PART_ROWS;
        rows.clone().for_each(|i| batch.push_row(&schema, &row(i)).unwrap());
        let visible = (part % 2 == 1).then(|| rows.map(|i| i % 5 != 0).collect());
        let run = |fields: &[(usize, bool)]| RunLayout {
            name: format!("by {fields:?}"),
            fields: fields.to_vec(),
            cut_bytes: None,
        };
        let runs = vec![
            run(&[(0, false)]),
            run(&[(1, false)]),
            run(&[(2, true)]),
            run(&[(4, false)]),
            run(&[(4, true), (3, true)]),
        ];
        source = source.with_part(&batch, &Layout { visible, runs, ..Layout::default() });
    }
    source
}

/// Few rows are as quickly scanned: that a run is walked is said.
fn walking() -> Options {
    Options { indexes: IndexUse::Always, ..Options::new(&Environment::os()) }
}

#[test]
fn walks_side_by_side_find_what_a_scan_finds() {
    let source = source();
    let options = walking();
    let scanning = Options { indexes: IndexUse::Never, ..options.clone() };
    for key in ["one", "ties", "same"] {
        for (descending, nulls_first) in [(false, true), (true, false), (false, false)] {
            let by = |field| OrderBy {
                expr: Expr::field(field),
                descending,
                nulls_first: Some(nulls_first),
            };
            for (order_by, limit) in [
                (vec![by(key)], 1u64),
                (vec![by(key)], 100),
                (vec![by(key), by("one")], 100),
                (vec![by(key)], 2_000),
            ] {
                for filter in [None, Some(("ties", 17)), Some(("i", 27_000))] {
                    let filter = filter.map(|(field, least)| {
                        let operands = vec![Expr::field(field), Expr::Literal(Value::Int(least))];
                        Expr::Apply(Operator::Gte, operands)
                    });
                    let order_by = order_by.clone();
                    let limit = Some(limit.into());
                    let query = Query { order_by, limit, filter, ..Query::default() };
                    let found = execute(&query, &source, &options).unwrap().to_rows();
                    let wanted = execute(&query, &source, &scanning).unwrap().to_rows();
                    assert_eq!(found, wanted, "{query:?}");
                }
            }
        }
    }
}

/// With an offset, entries are passed over: whatever the ties, the order and the rows that no one
/// sees.
#[test]
fn what_lies_before_an_offset_is_passed_over() {
    let source = source();
    let options = walking();
    let scanning = Options { indexes: IndexUse::Never, ..options.clone() };
    let by =
        |field, descending| OrderBy { expr: Expr::field(field), descending, nulls_first: None };
    let orders = [
        vec![by("one", false)],
        vec![by("one", true)],
        vec![by("coarse", false)],
        vec![by("coarse", true)],
        vec![by("coarse", false), by("one", false)],
        vec![by("coarse", true), by("i", true)],
        vec![by("ties", false)],
    ];
    for order_by in orders {
        for offset in [0u64, 255, 1_000, 12_345, 37_000, 60_000] {
            for least in [None, Some(9_000)] {
                let filter = least.map(|least| {
                    let least = Expr::Literal(Value::Int(least));
                    Expr::field("one").binary(Operator::Gte, least)
                });
                let (order_by, limit) = (order_by.clone(), Some(20.into()));
                let offset = offset.into();
                let query = Query { order_by, limit, offset, filter, ..Query::default() };
                let found = execute(&query, &source, &options).unwrap().to_rows();
                let wanted = execute(&query, &source, &scanning).unwrap().to_rows();
                assert_eq!(found, wanted, "{query:?}");
            }
        }
    }
    for descending in [false, true] {
        let (order_by, limit) = (vec![by("one", descending)], Some(20.into()));
        let query = Query { order_by, limit, offset: 30_000.into(), ..Query::default() };
        let found = execute(&query, &source, &options).unwrap();
        assert!(found.statistics.rows_scanned < 1_500, "{:?}", found.statistics);
    }
}

#[test]
fn walks_look_at_few_rows() {
    let options = walking();
    let order_by = vec![OrderBy { expr: Expr::field("one"), descending: false, nulls_first: None }];
    let query = Query { order_by, limit: Some(100.into()), ..Query::default() };
    let found = execute(&query, &source(), &options).unwrap();
    // Each part alone would give a hundred.
    assert!(found.statistics.rows_scanned < 300, "{:?}", found.statistics);
}
