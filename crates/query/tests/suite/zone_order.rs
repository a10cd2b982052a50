//! The first rows of an order, and the least and greatest values, out of the zones that may have
//! them: what a scan finds, in its order, and few rows are looked at.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Aggregate, Expr, Operator, OrderBy, SelectItem};
use esker_query::{IndexUse, Options, Query, Reading, execute, explain};
use esker_vfs::Environment;

const PART_ROWS: i64 = 20_000;
const PARTS: i64 = 3;
const ROWS: i64 = PART_ROWS * PARTS;

/// Keys that rise, fall, lie anywhere, come in steps that overlap, and have many ties and NULLs.
fn row(i: i64) -> Vec<Value> {
    let or_null = |is_null: bool, value: Value| if is_null { Value::Null } else { value };
    let anywhere = i * 7_919 % ROWS;
    vec![
        Value::Int(i),
        Value::Int(-i / 2),
        Value::Int(anywhere),
        or_null(i % 7 == 0, Value::Int(i / 9_000 - i % 3)),
        or_null(i % 5_000 < 4_000, Value::Int(i / 20_000)),
        Value::Text(format!("a text that is longer than what zone maps have of it, {anywhere:06}")),
        Value::Float(if i % 1_000 == 1 { f64::NAN } else { (i % 999) as f64 / 8.0 }),
    ]
}

const FIELDS: [&str; 7] = ["up", "down", "anywhere", "steps", "few", "text", "float"];

/// What tells which rows are visible.
type IsVisible = fn(i64) -> bool;

fn source(is_visible: Option<IsVisible>) -> MemorySource {
    let schema = Schema::builder()
        .field("up", DataType::I64)
        .field("down", DataType::I64)
        .field("anywhere", DataType::I64)
        .nullable("steps", DataType::I64)
        .nullable("few", DataType::I64)
        .field("text", DataType::Text)
        .field("float", DataType::F64)
        .build()
        .unwrap();
    let mut source = MemorySource::new(schema.clone());
    for part in 0..PARTS {
        let mut batch = Batch::empty(&schema);
        let rows = part * PART_ROWS..(part + 1) * PART_ROWS;
        rows.clone().for_each(|i| batch.push_row(&schema, &row(i)).unwrap());
        let visible = is_visible.map(|is_visible| rows.map(is_visible).collect());
        // A part without zone maps, as an open group is.
        let has_zones = part != 1;
        source = source.with_part(&batch, &Layout { visible, has_zones, ..Layout::default() });
    }
    source
}

fn options() -> Options {
    Options::new(&Environment::os())
}

fn by(field: &str, descending: bool) -> OrderBy {
    OrderBy { expr: Expr::field(field), descending, nulls_first: None }
}

fn rows_read(query: &Query, source: &MemorySource) -> u64 {
    execute(query, source, &options()).unwrap().statistics.rows_scanned
}

#[test]
fn zones_in_their_order_find_what_a_scan_finds() {
    let scanning = Options { indexes: IndexUse::Never, ..options() };
    let sparse: IsVisible = |i| i % 13 == 5 || i > 50_000;
    for source in [source(None), source(Some(sparse))] {
        for (number, field) in (0usize..).zip(FIELDS) {
            for (descending, nulls_first) in [(false, None), (true, None), (false, Some(false))] {
                let first = OrderBy { nulls_first, ..by(field, descending) };
                let second = by(FIELDS[(number + 2) % FIELDS.len()], number % 2 == 0);
                let at_least = Expr::field("anywhere").binary(Operator::Gte, Expr::literal(30_000));
                let rare = Expr::field("anywhere").binary(Operator::Lt, Expr::literal(40));
                for (order_by, limit, offset, filter) in [
                    (vec![first.clone()], 1u64, 0u64, None),
                    (vec![first.clone(), second.clone()], 7, 9_000, Some(at_least.clone())),
                    (vec![first.clone(), second], 300, 0, None),
                    (vec![first.clone()], 50, 3, Some(rare)),
                    (vec![first], 11_000, 0, Some(at_least)),
                ] {
                    let (limit, offset) = (Some(limit.into()), offset.into());
                    let query = Query { order_by, limit, offset, filter, ..Query::default() };
                    let found = execute(&query, &source, &options()).unwrap().to_rows();
                    let wanted = execute(&query, &source, &scanning).unwrap().to_rows();
                    assert!(found == wanted, "{query:?}");
                }
            }
        }
    }
}

#[test]
fn rising_keys_are_read_from_the_zone_that_has_them() {
    let schema = Schema::builder().field("id", DataType::I64).field("other", DataType::I64);
    let schema = schema.build().unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..ROWS {
        batch.push_row(&schema, &[i.into(), (i * 7_919 % ROWS).into()]).unwrap();
    }
    let dead = |from: i64, to: i64| Some((0..ROWS).map(|i| i < from || i >= to).collect());
    let of = |visible| {
        let layout = Layout { visible, ..Layout::default() };
        MemorySource::new(schema.clone()).with_part(&batch, &layout)
    };
    let first = |descending, limit: u64, offset: u64, filter| Query {
        order_by: vec![by("id", descending)],
        limit: Some(limit.into()),
        offset: offset.into(),
        filter,
        ..Query::table("t")
    };
    let above = |value: i64| Some(Expr::field("id").binary(Operator::Gt, Expr::literal(value)));
    let zone = 8_192;
    for source in [of(None), of(dead(100, 300)), of(dead(20_000, 20_001))] {
        assert_eq!(rows_read(&first(false, 1, 0, None), &source), zone);
        assert_eq!(rows_read(&first(true, 5, 0, None), &source), 60_000 % zone);
        assert!(rows_read(&first(false, 100, 0, above(30_000)), &source) <= 2 * zone);
        assert!(rows_read(&first(false, 10, 20_000, None), &source) <= 4 * zone);
    }
    // All rows of the first three zones are gone.
    assert!(rows_read(&first(false, 1, 0, None), &of(dead(0, 30_000))) <= 7 * zone);
    // Of keys that lie anywhere, each of the first may lie in a zone of its own.
    let anywhere = Query { order_by: vec![by("other", false)], ..first(false, 1, 0, None) };
    assert_eq!(rows_read(&anywhere, &of(None)), zone);
    let told = explain(&first(false, 1, 0, None), &of(None), &options()).unwrap();
    assert!(told.parts.iter().all(|part| part.reading == Reading::Zones), "{told}");
    let met = told.met.unwrap();
    assert_eq!((met.zones, met.zones_pruned, met.rows_read), (8, 7, zone), "{told}");
}

#[test]
fn what_may_fail_meets_all_rows() {
    let source = source(None);
    // The row with which it fails comes last in the order.
    let fails = Expr::literal(i64::MAX).binary(Operator::Subtract, Expr::literal(59_998));
    let fails = Expr::field("up").binary(Operator::Add, fails);
    let filter = Some(fails.binary(Operator::Gt, Expr::literal(0)));
    let limit = Some(1.into());
    let query = Query { order_by: vec![by("up", false)], limit, filter, ..Query::default() };
    assert!(execute(&query, &source, &options()).is_err());
}

#[test]
fn the_least_and_the_greatest_value_lie_in_one_zone() {
    let scanning = Options { indexes: IndexUse::Never, ..options() };
    let ends: IsVisible = |i| i % 20_000 > 12_000 && i % 20_000 < 19_990;
    let none: IsVisible = |_| false;
    for source in [source(None), source(Some(ends)), source(Some(none))] {
        for field in FIELDS {
            let of = |function| SelectItem {
                expr: Expr::aggregate(function, Expr::field(field)),
                alias: None,
            };
            let select = vec![of(Aggregate::Min), of(Aggregate::Max)];
            let query = Query { select, ..Query::default() };
            let found = execute(&query, &source, &options()).unwrap().to_rows();
            let wanted = execute(&query, &source, &scanning).unwrap().to_rows();
            // NaN is equal to no value of its type but by its text.
            assert_eq!(format!("{found:?}"), format!("{wanted:?}"), "{field}");
        }
    }
}
