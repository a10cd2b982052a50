//! What groups keep, where that is less than they show: the same answers and the same errors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::{Batch, DataType, Decimal, Schema, Value};
use esker_query::model::{Aggregate, Expr, Operator};
use esker_query::{Error, Options, Query, TemporaryFiles, execute, plan};
use esker_vfs::Environment;

const ROWS: i64 = 30_000;

fn layout(encoding: Encoding, has_zones: bool) -> Layout {
    Layout { encoding, has_zones, ..Layout::default() }
}

/// A wide, a narrow number and a decimal, of three groups.
fn row(i: i64) -> [Value; 4] {
    let known = |value: Value| if i % 7 == 0 { Value::Null } else { value };
    let price = Decimal::new((i * 31 % 20_000 - 9_000).into(), 2).unwrap();
    [
        Value::Int(i % 3),
        known(Value::Int(i64::MAX / 2 - i * 1_000)),
        known(Value::Int(i % 200 - 100)),
        known(Value::Decimal(price)),
    ]
}

fn source(layout: &Layout) -> MemorySource {
    let schema = Schema::builder()
        .field("g", DataType::I64)
        .nullable("w", DataType::I64)
        .nullable("n", DataType::I8)
        .nullable("d", DataType::Decimal { precision: 8, scale: 2 })
        .build()
        .unwrap();
    let mut source = MemorySource::new(schema.clone());
    for part in 0..2 {
        let mut batch = Batch::empty(&schema);
        for i in part * ROWS / 2..(part + 1) * ROWS / 2 {
            batch.push_row(&schema, &row(i)).unwrap();
        }
        source = source.with_part(&batch, layout);
    }
    source
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::Int(v) => Some((*v).into()),
        Value::Decimal(v) => Some(v.mantissa()),
        _ => None,
    }
}

fn field(name: &str) -> Expr {
    Expr::field(name)
}

fn plus(name: &str, more: impl Into<Value>) -> Expr {
    field(name).binary(Operator::Add, Expr::literal(more))
}

fn minus(name: &str, less: impl Into<Value>) -> Expr {
    field(name).binary(Operator::Subtract, Expr::literal(less))
}

fn sum(of: Expr) -> Expr {
    Expr::aggregate(Aggregate::Sum, of)
}

fn options() -> Options {
    Options::new(&Environment::os())
}

/// The steps, but for the last, which shows what they make.
fn told(query: &Query, source: &MemorySource) -> String {
    plan(query, source, &options()).unwrap().steps[0].what.clone()
}

fn rows(query: &Query, source: &MemorySource) -> Result<Vec<Vec<Value>>, Error> {
    execute(query, source, &options()).map(|answer| answer.to_rows())
}

#[test]
fn constants_are_added_to_sums_at_the_end() {
    let cents = |cents: i64| Value::Decimal(Decimal::new(cents.into(), 2).unwrap());
    let mut query = Query::table("t");
    query.select(field("g"));
    for of in [field("n"), plus("n", 5i64), minus("n", 7i64), minus("w", i64::MAX / 2)] {
        query.select(sum(of));
    }
    query.select(Expr::aggregate(Aggregate::Avg, plus("n", 100i64)));
    query.select(Expr::aggregate(Aggregate::Count, field("n")));
    query.select(sum(plus("d", cents(125))));
    query.group_by.push(field("g"));
    let mut expected = Vec::new();
    for group in 0..3 {
        let numbers: Vec<[Value; 4]> =
            (0..ROWS).map(row).filter(|r| r[0] == group.into()).collect();
        let known = |at: usize| numbers.iter().filter(move |row| !row[at].is_null());
        let of = |at: usize| known(at).map(move |row| whole(&row[at]).unwrap());
        let count = known(2).count() as i128;
        let all: i128 = of(2).sum();
        let less: i128 = of(1).map(|w| w - i128::from(i64::MAX / 2)).sum();
        let price: i128 = of(3).map(|d| d + 125).sum();
        expected.push(vec![
            group.into(),
            Value::Int(all as i64),
            Value::Int((all + 5 * count) as i64),
            Value::Int((all - 7 * count) as i64),
            Value::Int(less as i64),
            Value::Float((all + 100 * count) as f64 / count as f64),
            Value::Int(count as i64),
            Value::Decimal(Decimal::new(price, 2).unwrap()),
        ]);
    }
    for encoding in [Encoding::Plain, Encoding::Compact] {
        for (has_zones, kept) in [(true, 3), (false, 3)] {
            let source = source(&layout(encoding, has_zones));
            assert_eq!(rows(&query, &source).unwrap(), expected, "{encoding:?} {has_zones}");
            let what = format!("by g, keeping {kept} of 7 aggregates, constants added at the end");
            assert_eq!(told(&query, &source), what);
        }
    }
}

#[test]
fn a_row_that_is_too_large_is_an_error_though_the_sum_is_not() {
    // The greatest value is MAX / 2 - 1000: so much more fits, and one more does not.
    let most = i64::MAX - (i64::MAX / 2 - 1_000);
    let query = |more: i64| {
        let mut query = Query::table("t");
        query.select(sum(plus("w", more).binary(Operator::Subtract, Expr::literal(1i64))));
        query
    };
    for has_zones in [true, false] {
        let source = source(&layout(Encoding::Plain, has_zones));
        let message = rows(&query(most + 1), &source).unwrap_err().to_string();
        assert!(message.contains(" + ") && message.ends_with("does not fit i64"), "{message}");
        let message = rows(&query(most), &source).unwrap_err().to_string();
        assert!(message.starts_with("sum "), "{message}");
        assert!(!told(&query(most + 1), &source).contains("keeping"));
        // Only zones say that a constant is small enough.
        assert_eq!(told(&query(most), &source).contains("keeping"), has_zones);
    }
}

#[test]
fn keys_that_others_tell_are_computed_for_groups() {
    let source = source(&layout(Encoding::Plain, true));
    let mut query = Query::table("t");
    let key = |more: i64| plus("n", more).binary(Operator::Multiply, field("g"));
    for shown in [key(1), field("n"), field("g"), key(2), Expr::count(), sum(plus("n", 1i64))] {
        query.select(shown);
    }
    query.group_by = vec![key(1), field("n"), field("g"), key(2)];
    let what = ", keeping 2 of 4 keys, keeping 1 of 2 aggregates";
    assert!(!told(&query, &source).contains(what), "the count of rows is kept, too");
    assert!(
        told(&query, &source).ends_with(
            ", keeping 2 of 4 keys, keeping 2 of 2 aggregates, constants added at the end"
        )
    );
    let found = rows(&query, &source).unwrap();
    let met: BTreeSet<String> = found.iter().map(|row| format!("{row:?}")).collect();
    assert_eq!((found.len(), met.len()), (3 * 201, 3 * 201));
    let int = |value: &Value| match value {
        Value::Int(v) => Some(*v),
        _ => None,
    };
    for row in &found {
        let (n, g) = (int(&row[1]), int(&row[2]).unwrap());
        assert_eq!(int(&row[0]), n.map(|n| (n + 1) * g), "{row:?}");
        assert_eq!(int(&row[3]), n.map(|n| (n + 2) * g), "{row:?}");
        assert_eq!(int(&row[5]), n.map(|n| (n + 1) * int(&row[4]).unwrap()), "{row:?}");
    }
    // The same from temporary files.
    let environment = Environment::os();
    let files = TemporaryFiles::new(&environment, PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let spilling = Options { temporary: Some(files), ..Options::new(&environment) };
    let again = execute(&query, &source, &spilling.with_memory(48 << 10));
    assert_eq!(again.unwrap().to_rows(), found);
    // What fails for a row fails for its group.
    let mut query = Query::table("t");
    query.select(Expr::count());
    query.group_by = vec![field("w"), plus("w", i64::MAX)];
    let message = rows(&query, &source).unwrap_err().to_string();
    assert!(message.ends_with("does not fit i64"), "{message}");
}

#[test]
fn distinct_words_are_counted_however_they_are_stored() {
    let mut expected: Vec<[BTreeSet<i128>; 3]> = Vec::new();
    for group in 0..3 {
        let of = |at: usize| {
            let rows = (0..ROWS).map(row).filter(move |r| r[0] == Value::Int(group));
            rows.filter_map(move |r| whole(&r[at])).collect()
        };
        expected.push([of(1), of(2), of(3)]);
    }
    let distinct = |name: &str| match Expr::aggregate(Aggregate::Count, field(name)) {
        Expr::Aggregate { function, operand, order, .. } => {
            Expr::Aggregate { function, operand, order, distinct: true }
        }
        other => other,
    };
    for encoding in [Encoding::Plain, Encoding::Compact] {
        let source = source(&layout(encoding, true));
        let mut query = Query::table("t");
        ["w", "n", "d"].iter().for_each(|name| _ = query.select(distinct(name)));
        let union = |at: usize| {
            expected.iter().flat_map(|sets| &sets[at]).collect::<BTreeSet<_>>().len() as i64
        };
        let all = [0, 1, 2].map(|at| Value::Int(union(at))).to_vec();
        assert_eq!(rows(&query, &source).unwrap(), [all]);
        query.group_by = vec![field("g")];
        let of_groups = expected.iter().map(|sets| sets.each_ref().map(|s| s.len() as i64));
        let of_groups: Vec<_> = of_groups.map(|row| row.map(Value::Int).to_vec()).collect();
        assert_eq!(rows(&query, &source).unwrap(), of_groups);
    }
}
