//! Set operations of random rows, compared with counting them; from memory and from files.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::generate::Dice;
use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Expr, OrderBy, Query, SetBranch, SetOperator};
use esker_query::{Error, Options, Resolved, Result, Source, Tables, TemporaryFiles};
use esker_vfs::Environment;

const OPERATORS: [SetOperator; 3] =
    [SetOperator::Union, SetOperator::Intersect, SetOperator::Except];

type Row = Vec<Value>;

struct Three([MemorySource; 3]);

impl Tables for Three {
    fn table(&self, name: &str) -> Result<&dyn Source> {
        let at = name.strip_prefix('t').and_then(|at| at.parse::<usize>().ok());
        let source = at.and_then(|at| self.0.get(at));
        source
            .map(|source| source as &dyn Source)
            .ok_or_else(|| Error::invalid(format!("no table {name:?}")))
    }
}

fn table(dice: &mut Dice) -> (MemorySource, Vec<Row>) {
    let schema = Schema::builder().nullable("k", DataType::I64).nullable("t", DataType::Text);
    let schema = schema.build().unwrap();
    let mut source = MemorySource::new(schema.clone());
    let mut rows = Vec::new();
    for _ in 0..dice.below(4) {
        let mut batch = Batch::empty(&schema);
        for _ in 0..dice.below(60) {
            let null = |dice: &mut Dice, value: Value| {
                if dice.chance(15) { Value::Null } else { value }
            };
            let number = Value::Int(i64::try_from(dice.below(6)).unwrap());
            let text = Value::Text(format!("t{}", dice.below(4)));
            let row = vec![null(dice, number), null(dice, text)];
            batch.push_row(&schema, &row).unwrap();
            rows.push(row);
        }
        source = source.with_part(&batch, &Layout::default());
    }
    (source, rows)
}

/// The rows of a table, with a filter, in groups, or cut.
fn branch(dice: &mut Dice, at: usize, rows: &[Row]) -> (Query, Vec<Row>) {
    let mut query = Query::table(format!("t{at}"));
    let (mut rows, form) = (rows.to_vec(), dice.below(4));
    if form == 1 {
        query.filter = Some(Expr::field("k").gt(2i64));
        rows.retain(|row| row[0] > Value::Int(2));
    }
    if form == 2 {
        query.distinct = true;
        rows.sort();
        rows.dedup();
    }
    query.select(Expr::field("k")).select(Expr::field("t"));
    if form == 3 {
        let by = |name| OrderBy { expr: Expr::field(name), descending: false, nulls_first: None };
        query.order_by = vec![by("k"), by("t")];
        query.limit = Some(7.into());
        rows.sort();
        rows.truncate(7);
    }
    (query, rows)
}

fn counted(rows: &[Row]) -> BTreeMap<Row, usize> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row.clone()).or_default() += 1);
    counts
}

/// What becomes of rows on the left and on the right.
fn combined(left: &[Row], (operator, all): (SetOperator, bool), right: &[Row]) -> Vec<Row> {
    let both = [left, right].concat();
    let (left, right) = (counted(left), counted(right));
    let mut rows = Vec::new();
    for row in counted(&both).into_keys() {
        let count = |rows: &BTreeMap<Row, usize>| rows.get(&row).copied().unwrap_or_default();
        let (left, right) = (count(&left), count(&right));
        let times = match (operator, all) {
            (SetOperator::Union, true) => left + right,
            (SetOperator::Union, false) => 1,
            (SetOperator::Intersect, true) => left.min(right),
            (SetOperator::Intersect, false) => usize::from(left > 0 && right > 0),
            (SetOperator::Except, true) => left.saturating_sub(right),
            (SetOperator::Except, false) => usize::from(left > 0 && right == 0),
        };
        rows.extend(std::iter::repeat_n(row.clone(), times));
    }
    rows
}

fn answer(query: &Query, tables: &Three, memory: usize) -> Vec<Row> {
    let environment = Environment::os();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let temporary = Some(TemporaryFiles::new(&environment, directory));
    let options = Options { temporary, ..Options::new(&environment) }.with_memory(memory);
    let mut rows = Vec::new();
    let resolved = Resolved::run(query, tables, &options).unwrap();
    resolved
        .stream(&mut |batch: Batch| {
            for i in 0..batch.len() {
                rows.push(batch.columns.iter().map(|c| c.value(i).to_owned()).collect());
            }
            Ok(ControlFlow::Continue(()))
        })
        .unwrap_or_else(|e| panic!("{query}: {e}"));
    rows
}

#[test]
fn set_operations_are_what_counting_finds() {
    let mut dice = Dice(41);
    for _ in 0..200 {
        let made = [table(&mut dice), table(&mut dice), table(&mut dice)];
        let (sources, rows): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let tables = Three(sources.try_into().ok().unwrap());
        let (mut query, mut wanted) = branch(&mut dice, 0, &rows[0]);
        for _ in 0..1 + dice.below(3) {
            let at = usize::try_from(dice.below(3)).unwrap();
            let (next, more) = branch(&mut dice, at, &rows[at]);
            let (operator, all) = (*dice.pick(&OPERATORS), dice.chance(40));
            if dice.chance(20) {
                let (before, rows) = (next.combined(operator, all, query), more);
                wanted = combined(&rows, (operator, all), &wanted);
                query = before;
            } else {
                query = query.combined(operator, all, next);
                wanted = combined(&wanted, (operator, all), &more);
            }
        }
        for memory in [1 << 30, 1] {
            // What lies in memory as a part of another has to fit, and so has a few rows' order.
            let is_small = |q: &Query| q.set.is_none() && q.limit.is_none();
            let is_flat = query.set.iter().flat_map(|set| set.queries()).all(is_small);
            // Rows that are not grouped are found in parts that have to fit, as in any query.
            let last = query.set.as_ref().and_then(|set| set.rest.last());
            let is_stream = |last: &SetBranch| last.all && last.operator == SetOperator::Union;
            let is_flat = is_flat && !last.is_some_and(is_stream);
            if memory == 1 && !is_flat {
                continue;
            }
            let mut found = answer(&query, &tables, memory);
            found.sort();
            assert_eq!(found, wanted, "{query}");
        }
    }
}
