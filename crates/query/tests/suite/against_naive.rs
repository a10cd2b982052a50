//! Random queries over random tables: the engine agrees with an evaluator that looks at one row
//! at a time, in every encoding, with zone maps and without, and with itself to the last bit.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::cast_possible_truncation, reason = "tests fail by panicking")]

use crate::generate::Dice;
use crate::memory_source::{Encoding, Layout, MemorySource, NullForm, RunLayout};
use esker_format::Value;
use esker_query::{ErrorKind, IndexUse, NullsOrder, Options, Query, Semantics, execute};
use esker_vfs::Environment;
use proptest::prelude::*;

/// How the same rows and the same parts are laid out and read.
#[derive(Clone, Debug)]
struct Setting {
    layout: Layout,
    indexes: IndexUse,
    /// Every other part has no runs.
    some_parts: bool,
}

fn settings() -> Vec<Setting> {
    let layout = |encoding, nulls, chunk_rows, has_zones, runs| Layout {
        encoding,
        nulls,
        chunk_rows,
        visible: None,
        has_zones,
        runs,
    };
    let setting = |layout| Setting { layout, indexes: IndexUse::Always, some_parts: false };
    let compact = |runs| layout(Encoding::Compact, NullForm::Bits(5), 8_192, true, runs);
    let plain = setting(layout(Encoding::Plain, NullForm::Bytes, 8_192, false, Vec::new()));
    let never = Setting { indexes: IndexUse::Never, ..setting(compact(several_runs())) };
    let cheaper = Setting { indexes: IndexUse::WhenCheaper, ..setting(compact(single_runs(None))) };
    let fixed_width = layout(Encoding::FixedWidth, NullForm::Bits(1), 8_192, true, several_runs());
    let interleaved = layout(Encoding::Interleaved, NullForm::Bits(1), 8_192, true, several_runs());
    let scattered = layout(Encoding::Scattered, NullForm::Bytes, 1_000, true, single_runs(Some(1)));
    vec![
        plain,
        never,
        cheaper,
        setting(layout(Encoding::Plain, NullForm::Bits(0), 100, true, single_runs(None))),
        setting(layout(Encoding::Compact, NullForm::Bytes, 64, false, Vec::new())),
        Setting { some_parts: true, ..setting(fixed_width) },
        setting(interleaved),
        setting(scattered),
    ]
}

/// A run for each field, or, where they are cut, for each field that can be.
fn single_runs(cut_bytes: Option<usize>) -> Vec<RunLayout> {
    let schema = crate::generate::schema();
    let can_be =
        |field: &usize| cut_bytes.is_none() || schema.fields()[*field].data_type.is_variable();
    let run = |field| RunLayout {
        name: format!("by_{field}"),
        fields: vec![(field, field % 2 == 1)],
        cut_bytes,
    };
    (0..schema.fields().len()).filter(can_be).map(run).collect()
}

/// Runs of several fields in both directions.
fn several_runs() -> Vec<RunLayout> {
    let run = |cut_bytes, fields: &[(usize, bool)]| RunLayout {
        name: format!("{fields:?}"),
        fields: fields.to_vec(),
        cut_bytes,
    };
    vec![
        run(None, &[(0, false), (3, true), (1, false)]),
        run(None, &[(7, true), (8, false)]),
        run(Some(2), &[(8, false), (7, true), (2, false)]),
        run(None, &[(5, true), (6, true)]),
        run(None, &[(2, true)]),
        run(None, &[(9, false), (16, true)]),
    ]
}

type Rows = Vec<Vec<Value>>;

/// A table: rows by part, and which of them are visible.
struct Table {
    parts: Vec<(Rows, Option<Vec<bool>>)>,
}

impl Table {
    fn new(dice: &mut Dice, rows_max: u64) -> Self {
        let schema = crate::generate::schema();
        let part = |dice: &mut Dice| {
            let count = dice.below(rows_max + 1) as i64;
            let rows = crate::generate::rows(dice, &schema, count);
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

    /// The table in every setting.
    fn sources(&self) -> Vec<(MemorySource, Setting)> {
        settings().into_iter().map(|setting| (self.source(&setting), setting)).collect()
    }

    fn source(&self, setting: &Setting) -> MemorySource {
        let schema = crate::generate::schema();
        let mut source = MemorySource::new(schema.clone());
        for (i, (rows, visible)) in self.parts.iter().enumerate() {
            let mut layout = Layout { visible: visible.clone(), ..setting.layout.clone() };
            if setting.some_parts && i % 2 == 1 {
                layout.runs.clear();
            }
            source = source.with_part(&crate::generate::batch(&schema, rows), &layout);
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

const NULLS_ORDERS: [NullsOrder; 4] =
    [NullsOrder::Smallest, NullsOrder::Greatest, NullsOrder::First, NullsOrder::Last];

/// The query with where NULLs go written behind each key.
fn with_nulls(query: &Query, nulls_order: NullsOrder) -> Query {
    let mut query = query.clone();
    for key in &mut query.order_by {
        key.nulls_first.get_or_insert(match nulls_order {
            NullsOrder::Smallest => !key.descending,
            NullsOrder::Greatest => key.descending,
            NullsOrder::First => true,
            NullsOrder::Last => false,
        });
    }
    query
}

fn check(
    query: &Query,
    table: &Table,
    sources: &[(MemorySource, Setting)],
) -> Result<(), TestCaseError> {
    // Where NULLs go is chosen by the rows, so that it is the same when a seed is run again.
    let nulls_order = NULLS_ORDERS[table.visible().len() % NULLS_ORDERS.len()];
    let semantics = Semantics { nulls_order: Some(nulls_order), ..Semantics::default() };
    let written = with_nulls(query, nulls_order);
    let expected = crate::naive::answer(&written, &crate::generate::schema(), &table.visible());
    let mut first: Option<Result<String, ErrorKind>> = None;
    for (source, setting) in sources {
        let mut options = Options { indexes: setting.indexes, ..Options::new(&Environment::os()) };
        options.inputs.semantics = semantics;
        let answer = execute(query, source, &options);
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
                // Which of several failures comes first, the plan decides.
                Err(error.kind())
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
                prop_assert!(same, "{query}\n{setting:?}\nfound {found:?}\nexpected {expected:?}");
            }
            (Err(kind), Ok(_)) => prop_assert!(false, "{query}\n{setting:?}\n{kind:?}"),
            _ => {}
        }
        let found = answer.as_ref().map(bits).map_err(|kind| *kind);
        match &first {
            None => first = Some(found),
            Some(first) => prop_assert_eq!(first, &found, "{} {:?}", query, setting),
        }
    }
    Ok(())
}

fn columns(rows: &Rows) -> Vec<Vec<Value>> {
    let width = rows.first().map_or(0, Vec::len);
    (0..width).map(|i| rows.iter().map(|row| row[i].clone()).collect()).collect()
}

fn check_small_table(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let table = Table::new(&mut dice, 120);
    let sources = table.sources();
    (0..8).try_for_each(|_| check(&crate::generate::query(&mut dice), &table, &sources))
}

/// Candidates were taken from a condition that may fail, so that another such was not tested on
/// rows on which it fails.
#[test]
fn conditions_that_may_fail_fail_by_every_plan() {
    check_small_table(11_829_341_012_285_554_741).unwrap();
}

/// Only rows of the groups that are shown were tested, so that a condition did not meet the rows on
/// which it fails.
#[test]
fn conditions_that_may_fail_fail_where_few_groups_are_shown() {
    check_small_table(3_812_163_375_914_571_052).unwrap();
}

/// Two conditions failed, each in its own way, and the plan decided which was told.
#[test]
fn one_of_several_failures_is_told() {
    check_small_table(8_435_716_015_667_074_728).unwrap();
    check_several_zones(4_685_985_329_838_713_539).unwrap();
}

/// Every float was one of those that equal NaN.
#[test]
fn only_nan_equals_nan_by_every_plan() {
    check_small_table(13_376_367_450_379_242_975).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn small_tables(seed in any::<u64>()) {
        check_small_table(seed)?;
    }
}

/// Queries on a table of several zones.
fn check_several_zones(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let table = Table::new(&mut dice, 20_000);
    let sources = table.sources();
    for _ in 0..4 {
        let mut query = crate::generate::query(&mut dice);
        // The plain evaluator compares every group with every other.
        if query.group_by.len() + usize::from(query.distinct) > 1 {
            query.group_by.clear();
            query.distinct = false;
            query.order_by.clear();
            query.select.retain(|item| item.expr.has_aggregate());
        }
        check(&query, &table, &sources)?;
    }
    Ok(())
}

/// The greatest value was NaN, with bits that told which kernel had found it.
#[test]
fn the_greatest_nan_is_spelled_the_same_by_every_plan() {
    check_several_zones(1_953_258_167_502_037_962).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn tables_of_several_zones(seed in any::<u64>()) {
        check_several_zones(seed)?;
    }
}
