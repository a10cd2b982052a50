//! Queries that pass their budget answer from temporary files what they answer from memory, to the
//! order of rows and the last bit.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, dead_code)]
#![allow(clippy::cast_possible_truncation, reason = "tests fail by panicking")]

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::generate::Dice;
use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Aggregate, Expr, Function, Operator, OrderBy, SelectItem};
use esker_query::{ErrorKind, Options, Query, Source, TemporaryFiles, stream};
use esker_vfs::Environment;
use proptest::prelude::*;

type Rows = Vec<Vec<Value>>;

/// With so many bytes, and files for the rest.
fn within(bytes: usize) -> Options {
    within_at(bytes, PathBuf::from(env!("CARGO_TARGET_TMPDIR")))
}

/// The same, with the files in a directory.
fn within_at(bytes: usize, dir: PathBuf) -> Options {
    let environment = Environment::os();
    let temporary = Some(TemporaryFiles::new(&environment, dir));
    Options { temporary, ..Options::new(&environment) }.with_memory(bytes)
}

fn answer(
    query: &Query,
    source: &dyn Source,
    options: &Options,
) -> Result<Rows, esker_query::Error> {
    let mut rows = Vec::new();
    stream(query, source, options, &mut |batch: Batch| {
        for i in 0..batch.len() {
            rows.push(batch.columns.iter().map(|column| column.value(i).to_owned()).collect());
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// The values with their bits, so that zeros and NaNs are told apart.
fn bits(rows: &Rows) -> Vec<String> {
    let value = |v: &Value| match v {
        Value::Float(v) => format!("{:x}", v.to_bits()),
        Value::Float32(v) => format!("{:x}", v.to_bits()),
        other => format!("{other:?}"),
    };
    rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join(",")).collect()
}

/// An outcome of groups that fails for some of them: an overflow, a cast.
fn fallible(dice: &mut Dice) -> Expr {
    let (number, count) = (Expr::literal(dice.below(4) as i64), Expr::count());
    let great = Expr::literal(i64::MAX).binary(Operator::Subtract, number);
    let note = Expr::aggregate(Aggregate::Max, Expr::field("note"));
    match dice.below(3) {
        0 => great.binary(Operator::Add, count),
        1 => Expr::Cast(Box::new(note), DataType::I64),
        _ => great.binary(Operator::Multiply, count),
    }
}

/// Makes groups show, pass by or be ordered by what fails for some of them.
fn make_fallible(dice: &mut Dice, query: &mut Query) {
    if query.group_by.is_empty() {
        return;
    }
    if dice.chance(50) {
        query.select(fallible(dice));
    }
    if dice.chance(15) {
        query.having = Some(fallible(dice).binary(Operator::Gt, Expr::literal(0i64)));
    }
    if dice.chance(15) && !query.distinct {
        query.order_by.push(OrderBy {
            expr: fallible(dice),
            descending: dice.chance(50),
            nulls_first: None,
        });
    }
}

fn check_random(seed: u64) -> Result<(), TestCaseError> {
    let mut dice = Dice(seed);
    let schema = crate::generate::schema();
    let mut source = MemorySource::new(schema.clone());
    for _ in 0..dice.below(4) {
        let count = dice.below(120) as i64;
        let rows = crate::generate::rows(&mut dice, &schema, count);
        source = source.with_part(&crate::generate::batch(&schema, &rows), &Layout::default());
    }
    for _ in 0..12 {
        let mut query = crate::generate::query(&mut dice);
        make_fallible(&mut dice, &mut query);
        let wanted = answer(&query, &source, &within(1 << 30));
        match (answer(&query, &source, &within(1)), wanted) {
            (Ok(found), Ok(wanted)) => {
                prop_assert_eq!(bits(&found), bits(&wanted), "{}", query);
            }
            // One group, or the rows of a scan, cannot lie in files.
            (Err(e), _) if e.kind() == ErrorKind::OverBudget => {
                prop_assert!(query.group_by.is_empty(), "{query}: {e}");
                prop_assert!(query.is_grouped() || query.order_by.is_empty(), "{query}: {e}");
            }
            (found, wanted) => {
                let kinds = [found.err(), wanted.err()].map(|e| e.map(|e| e.kind()));
                prop_assert_eq!(&kinds[0], &kinds[1], "{}", query);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_queries(seed in any::<u64>()) {
        check_random(seed)?;
    }
}

/// Rows and groups that take some ten times the largest budget of the tests.
fn many() -> MemorySource {
    parts(3, 9_000, 4_500)
}

/// Parts of so many rows, each with so many names that the one before has not.
fn parts(count: i64, rows: i64, fresh: i64) -> MemorySource {
    let schema = Schema::builder()
        .field("name", DataType::Text)
        .field("few", DataType::I32)
        .nullable("score", DataType::F64);
    let schema = schema.build().unwrap();
    let mut source = MemorySource::new(schema.clone());
    for part in 0..count {
        let mut batch = Batch::empty(&schema);
        for i in 0..rows {
            let name = format!("name {}", (part * fresh + i) * 7_919 % 70_001);
            let score = if i % 11 == 0 { Value::Null } else { Value::Float(i as f64 / 7.0) };
            let few = Value::Int(i * 31 % 977);
            batch.push_row(&schema, &[name.into(), few, score]).unwrap();
        }
        source = source.with_part(&batch, &Layout::default());
    }
    source
}

fn aggregate(function: Aggregate, field: &str) -> SelectItem {
    let operand = Some(Box::new(Expr::field(field)));
    SelectItem {
        expr: Expr::Aggregate { function, operand, distinct: false, order: Vec::new() },
        alias: None,
    }
}

/// What is shown of groups was computed for all of them, those a limit or an offset leaves out
/// included.
#[test]
fn groups_that_are_not_shown_fail_nothing() {
    let source = parts(3, 25_000, 12_000);
    let by = |expr: Expr, descending| OrderBy { expr, descending, nulls_first: None };
    let field = |name| SelectItem { expr: Expr::field(name), alias: None };
    // Groups above 900 overflow: numbers 30 and 31 are the first.
    let least = Expr::aggregate(Aggregate::Min, Expr::field("few"));
    let sum = Expr::literal(i64::MAX - 900).binary(Operator::Add, least.clone());
    let shown = SelectItem { expr: sum.clone(), alias: None };
    let grouped = Query {
        group_by: vec![Expr::field("few"), Expr::field("name")],
        select: vec![field("name"), shown],
        ..Query::table("")
    };
    let having = Some(sum.binary(Operator::Gt, Expr::literal(0i64)));
    let few = |query: &Query, limit: u64, offset: u64| Query {
        limit: Some(limit.into()),
        offset: offset.into(),
        ..query.clone()
    };
    let ordered =
        |descending| Query { order_by: vec![by(least.clone(), descending)], ..grouped.clone() };
    let queries = [
        (few(&grouped, 25, 0), true),
        (few(&grouped, 31, 0), false),
        (few(&grouped, 20, 32), true),
        (few(&ordered(false), 2_000, 0), true),
        (few(&ordered(true), 500, 6_000), true),
        (few(&ordered(true), 500, 0), false),
        (few(&Query { having: having.clone(), ..grouped.clone() }, 20, 0), true),
        (few(&Query { having, ..ordered(false) }, 20, 0), false),
        (grouped, false),
    ];
    for (query, answers) in queries {
        let wanted = answer(&query, &source, &within(1 << 30));
        assert_eq!(wanted.is_ok(), answers, "{query}: {wanted:?}");
        let found = answer(&query, &source, &within(1 << 16));
        match (wanted, found) {
            (Ok(wanted), Ok(found)) => assert!(bits(&found) == bits(&wanted), "{query}"),
            (wanted, found) => assert_eq!(
                found.map_err(|e| e.to_string()),
                wanted.map_err(|e| e.to_string()),
                "{query}"
            ),
        }
    }
}

/// Each aggregate, merged between parts, and again from files.
#[test]
fn every_aggregate_of_files_is_that_of_memory() {
    let source = parts(30, 2_500, 1_200);
    let by = |name: &str| OrderBy { expr: Expr::field(name), descending: false, nulls_first: None };
    for function in Aggregate::ALL {
        let field = match function {
            Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor => Expr::field("few"),
            Aggregate::BoolAnd | Aggregate::BoolOr | Aggregate::CountIf => {
                Expr::field("few").binary(Operator::Gt, Expr::literal(400i64))
            }
            Aggregate::ArrayConcatAgg => Expr::call(Function::ListValue, [Expr::field("score")]),
            _ => Expr::field("score"),
        };
        let order = match function {
            Aggregate::StringAgg | Aggregate::ArrayAgg | Aggregate::ArrayConcatAgg => {
                vec![by("name"), by("few")]
            }
            _ if function.takes_second() => vec![by("few")],
            _ => Vec::new(),
        };
        let expr = Expr::aggregate(function, field).in_order(order);
        let select = vec![SelectItem { expr, alias: None }];
        let group_by = vec![Expr::field("name")];
        let grouped = Query { group_by, select, ..Query::table("") };
        let wanted = answer(&grouped, &source, &within(1 << 30)).unwrap();
        assert!(wanted.len() > 30_000, "{grouped}: {}", wanted.len());
        let found = answer(&grouped, &source, &within(3 << 19));
        let found = found.unwrap_or_else(|e| panic!("{grouped}: {e}"));
        assert!(bits(&found) == bits(&wanted), "{grouped}");
    }
}

#[test]
fn many_groups_and_long_sorts_take_their_budget_only() {
    // Nobody else's, so that what stays behind can be seen.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("budget-only");
    let files = Environment::os().files;
    let _ = files.remove_dir_all(&dir);
    files.create_dir_all(&dir).unwrap();
    let source = many();
    let field = |name| SelectItem { expr: Expr::field(name), alias: None };
    let by = |expr: Expr, descending| OrderBy { expr, descending, nulls_first: None };
    let sum = aggregate(Aggregate::Sum, "score");
    let grouped = Query {
        group_by: vec![Expr::field("name")],
        select: vec![field("name"), aggregate(Aggregate::Avg, "score"), sum.clone()],
        ..Query::table("")
    };
    let having = Some(Expr::count().binary(Operator::Gt, Expr::literal(1i64)));
    let limit = Some(70.into());
    let top = vec![by(sum.expr.clone(), true), by(Expr::field("name"), false)];
    let distinct = vec![field("few"), field("score")];
    let twice = Query { distinct: true, select: vec![sum], ..grouped.clone() };
    let queries = [
        Query { having, ..grouped.clone() },
        Query { order_by: top, limit, offset: 5.into(), ..grouped.clone() },
        grouped,
        twice,
        Query { distinct: true, select: distinct, ..Query::table("") },
        Query { order_by: vec![by(Expr::field("few"), true)], ..Query::table("") },
        Query { order_by: vec![by(Expr::field("name"), false)], ..Query::table("") },
    ];
    for query in queries {
        let wanted = answer(&query, &source, &within(1 << 30)).unwrap();
        let none = Options { temporary: None, ..within(1 << 18) };
        let error = answer(&query, &source, &none).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{query}: {error}");
        assert!(error.to_string().contains("needs more than"), "{error}");
        for bytes in [1 << 18, 1 << 16] {
            let found = answer(&query, &source, &within_at(bytes, dir.clone())).unwrap();
            assert!(bits(&found) == bits(&wanted), "{query} with {bytes} bytes");
        }
    }
    let left = files.list(&dir).unwrap();
    assert!(left.is_empty(), "files have kept their names: {left:?}");
}
