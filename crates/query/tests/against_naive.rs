//! Random queries over random tables: the engine agrees with an evaluator that looks at one row
//! at a time, in every encoding, with zone maps and without, and with itself to the last bit.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_truncation, reason = "tests fail by panicking")]

mod generate;
mod naive;

use esker_format::Value;
use esker_query::testing::{Encoding, Layout, MemorySource, NullForm};
use esker_query::{ErrorKind, Options, Query, execute};
use esker_vfs::Environment;
use generate::Dice;
use proptest::prelude::*;

/// The same rows and the same parts, laid out in different ways.
fn layouts() -> Vec<Layout> {
    let layout = |encoding, nulls, chunk_rows, has_zones| Layout {
        encoding,
        nulls,
        chunk_rows,
        visible: None,
        has_zones,
    };
    vec![
        layout(Encoding::Plain, NullForm::Bytes, 8_192, false),
        layout(Encoding::Plain, NullForm::Bits(0), 100, true),
        layout(Encoding::Compact, NullForm::Bits(5), 8_192, true),
        layout(Encoding::Compact, NullForm::Bytes, 64, false),
        layout(Encoding::FixedWidth, NullForm::Bits(1), 8_192, true),
        layout(Encoding::Scattered, NullForm::Bytes, 1_000, true),
    ]
}

type Rows = Vec<Vec<Value>>;

/// A table: rows by part, and which of them are visible.
struct Table {
    parts: Vec<(Rows, Option<Vec<bool>>)>,
}

impl Table {
    fn new(dice: &mut Dice, rows_max: u64) -> Self {
        let schema = generate::schema();
        let part = |dice: &mut Dice| {
            let count = dice.below(rows_max + 1) as i64;
            let rows = generate::rows(dice, &schema, count);
            let hides = dice.chance(50);
            let visible = hides.then(|| (0..count).map(|_| dice.chance(80)).collect());
            (rows, visible)
        };
        Self { parts: (0..dice.below(4)).map(|_| part(dice)).collect() }
    }

    fn visible(&self) -> Rows {
        let of = |(rows, visible): &(Rows, Option<Vec<bool>>)| -> Rows {
            let seen = |i: &usize| visible.as_ref().is_none_or(|v| v[*i]);
            (0..rows.len()).filter(seen).map(|i| rows[i].clone()).collect()
        };
        self.parts.iter().flat_map(of).collect()
    }

    fn source(&self, layout: &Layout) -> MemorySource {
        let schema = generate::schema();
        let mut source = MemorySource::new(schema.clone());
        for (rows, visible) in &self.parts {
            let layout = Layout { visible: visible.clone(), ..layout.clone() };
            source = source.with_part(&generate::batch(&schema, rows), &layout);
        }
        source
    }
}

/// Equal, or, for floats that were added up, nearly so.
fn near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
        }
        _ => a == b,
    }
}

/// The values with their bits, so that zeros and NaNs are told apart.
fn bits(rows: &Rows) -> String {
    let value = |v: &Value| match v {
        Value::Float(v) => format!("{:x}", v.to_bits()),
        Value::Float32(v) => format!("{:x}", v.to_bits()),
        other => format!("{other:?}"),
    };
    let row = |row: &Vec<Value>| row.iter().map(value).collect::<Vec<_>>().join(",");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

fn check(query: &Query, table: &Table) -> Result<(), TestCaseError> {
    let options = Options::new(&Environment::os());
    let expected = naive::answer(query, &generate::schema(), &table.visible());
    let mut first: Option<Result<String, String>> = None;
    for layout in layouts() {
        let answer = execute(query, &table.source(&layout), &options);
        let answer = match answer {
            Ok(result) => {
                for (column, values) in result.columns.iter().zip(columns(&result.to_rows())) {
                    for value in values {
                        let fits = value.as_ref().coerce(column.data_type).is_ok();
                        prop_assert!(fits, "{query}: {value} is no {}", column.data_type);
                    }
                }
                Ok(result.to_rows())
            }
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::OutOfRange, "{}: {}", query, error);
                Err(error.to_string())
            }
        };
        // A condition that would fail need not be computed for a row that others exclude, so
        // the engine may answer where the plain evaluator fails; never the other way round.
        match (&answer, &expected) {
            (Ok(found), Ok(expected)) => {
                let same = found.len() == expected.len()
                    && found.iter().zip(expected).all(|(a, b)| {
                        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b))
                    });
                prop_assert!(same, "{query}\n{layout:?}\nfound {found:?}\nexpected {expected:?}");
            }
            (Err(error), Ok(_)) => prop_assert!(false, "{query}\n{layout:?}\n{error}"),
            _ => {}
        }
        let found = answer.as_ref().map(bits).map_err(Clone::clone);
        match &first {
            None => first = Some(found),
            Some(first) => prop_assert_eq!(first, &found, "{} {:?}", query, layout),
        }
    }
    Ok(())
}

fn columns(rows: &Rows) -> Vec<Vec<Value>> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width).map(|i| rows.iter().map(|row| row[i].clone()).collect()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn small_tables(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let table = Table::new(&mut dice, 120);
        for _ in 0..8 {
            check(&generate::query(&mut dice), &table)?;
        }
    }
}

/// Queries on a table of several zones.
fn check_several_zones(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let table = Table::new(&mut dice, 20_000);
    for _ in 0..4 {
        let mut query = generate::query(&mut dice);
        // The plain evaluator compares every group with every other.
        if query.group_by.len() + usize::from(query.distinct) > 1 {
            query.group_by.clear();
            query.distinct = false;
            query.order_by.clear();
            query.select.retain(|item| item.expr.has_aggregate());
        }
        check(&query, &table)?;
    }
    Ok(())
}

/// The greatest value was NaN, with bits that told which kernel had found it.
#[test]
fn the_greatest_nan_is_spelled_the_same_by_every_plan() {
    check_several_zones(1_953_258_167_502_037_962).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn tables_of_several_zones(seed in any::<u64>()) {
        check_several_zones(seed)?;
    }
}
