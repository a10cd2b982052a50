//! What one side of a join says of the other before that is read.

use crate::join_order::{Many, all, equal, field, from};
use crate::memory_source::{Encoding, Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Expr, JoinKind, Operator, Query};
use esker_query::{ExplainedInput, IndexUse, Options, Resolved};
use esker_vfs::Environment;

const FACTS: i64 = 60_000;

/// A table of whole numbers, two of them NULL now and then.
fn table(rows: i64, encoding: Encoding, row: &dyn Fn(i64) -> [i64; 3]) -> MemorySource {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("a", DataType::I64)
        .nullable("b", DataType::I32)
        .build()
        .unwrap();
    let mut source = MemorySource::new(schema.clone());
    for start in (0..rows).step_by(25_000) {
        let mut batch = Batch::empty(&schema);
        for id in start..rows.min(start + 25_000) {
            let [id, a, b] = row(id);
            let or_null = |n: i64, every: i64| match id % every {
                0 => Value::Null,
                _ => Value::Int(n),
            };
            batch.push_row(&schema, &[Value::Int(id), or_null(a, 97), or_null(b, 89)]).unwrap();
        }
        source = source.with_part(&batch, &Layout { encoding, ..Layout::default() });
    }
    source
}

/// `facts` of 60,000 rows beside `few` of 300, whose `a` are some of those of `facts`: `apart` says
/// how far these lie from each other.
fn tables(encoding: Encoding, apart: i64) -> Many {
    let mut many = Many::default();
    let facts = |n: i64| [n, n * 7_919 % 20_000 * apart, n % 4];
    let few = |n: i64| [n, n * 67 * apart, n % 3];
    many.0.insert("facts".to_owned(), table(FACTS, encoding, &facts));
    many.0.insert("few".to_owned(), table(300, Encoding::Plain, &few));
    many
}

fn options(indexes: IndexUse) -> Options {
    Options { indexes, ..Options::new(&Environment::os()) }
}

fn rows(query: &Query, tables: &Many, options: &Options) -> Vec<Vec<Value>> {
    Resolved::run(query, tables, options).and_then(|found| found.execute()).unwrap().to_rows()
}

/// What was asked of `facts`, and how many rows that removed.
fn asked(query: &Query, tables: &Many, options: &Options) -> (Option<String>, Option<u64>) {
    fn facts(input: &ExplainedInput) -> Option<&ExplainedInput> {
        match input.what.as_str() {
            "facts" => Some(input),
            _ => input.inputs.iter().find_map(facts),
        }
    }
    let plan = Resolved::run(query, tables, options).unwrap().explain().unwrap();
    let found = facts(plan.input.as_ref().unwrap()).unwrap();
    (found.runtime_filter.clone(), found.rows_removed)
}

fn joined(conditions: Vec<Expr>) -> Query {
    let mut query = from(&[("facts", "facts"), ("few", "few")], all(conditions));
    query.select(field("facts.id"));
    query.select(field("few.id"));
    query
}

#[test]
fn many_keys_are_a_set_and_far_ones_a_bloom_filter() {
    for encoding in [Encoding::Plain, Encoding::Compact] {
        for (apart, name) in [(1, "a in a set of"), (1_000_003, "a in a Bloom filter of")] {
            let tables = tables(encoding, apart);
            let query = joined(vec![equal("facts.a", "few.a")]);
            let wanted = rows(&query, &tables, &options(IndexUse::Never));
            assert!(wanted.len() > 500, "{}", wanted.len());
            let (shown, removed) = asked(&query, &tables, &options(IndexUse::WhenCheaper));
            assert!(shown.as_ref().unwrap().contains(name), "{shown:?}");
            let most = FACTS as u64 - wanted.len() as u64;
            assert!((most * 9 / 10..=most).contains(&removed.unwrap()), "{removed:?} of {most}");
            assert_eq!(rows(&query, &tables, &options(IndexUse::WhenCheaper)), wanted);
            assert_eq!(asked(&query, &tables, &options(IndexUse::Never)), (None, None));
        }
    }
}

#[test]
fn of_several_keys_those_that_remove_rows_are_looked_up() {
    let tables = tables(Encoding::Compact, 1);
    let query = joined(vec![equal("facts.b", "few.b"), equal("facts.a", "few.a")]);
    let wanted = rows(&query, &tables, &options(IndexUse::Never));
    assert!(!wanted.is_empty());
    let (shown, removed) = asked(&query, &tables, &options(IndexUse::WhenCheaper));
    // There are four different `b` of both, and some hundred `a` of some thousand.
    let shown = shown.unwrap();
    assert!(shown.contains("a in a set of") && !shown.contains("b in"), "{shown}");
    assert!(removed.unwrap() > 50_000, "{removed:?}");
    assert_eq!(rows(&query, &tables, &options(IndexUse::WhenCheaper)), wanted);
    // To test them, all are looked up.
    let (shown, _) = asked(&query, &tables, &options(IndexUse::Always));
    assert!(shown.unwrap().contains("b in a set of"));
    assert_eq!(rows(&query, &tables, &options(IndexUse::Always)), wanted);
}

#[test]
fn other_joins_and_filters_have_the_same_rows() {
    let tables = tables(Encoding::Compact, 1);
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        for (left, right) in [("facts", "few"), ("few", "facts")] {
            let mut query = Query::table(left);
            let on = equal("facts.a", "few.a");
            let right = esker_query::model::Relation::table(right);
            query.joins.push(esker_query::model::Join::on(kind, right, on));
            query.select(field(&format!("{left}.id")));
            query.filter = Some(field(&format!("{left}.id")).binary(Operator::Gte, 7i64.into()));
            let wanted = rows(&query, &tables, &options(IndexUse::Never));
            for indexes in [IndexUse::WhenCheaper, IndexUse::Always] {
                let found = rows(&query, &tables, &options(indexes));
                assert!(found == wanted, "{query}: {} of {}", found.len(), wanted.len());
            }
        }
    }
}

#[test]
fn a_filter_that_removes_nothing_is_not_made() {
    let mut tables = tables(Encoding::Plain, 1);
    tables.0.insert("few".to_owned(), table(20_000, Encoding::Plain, &|n| [n, n, 0]));
    let query = joined(vec![equal("facts.a", "few.a")]);
    assert_eq!(asked(&query, &tables, &options(IndexUse::WhenCheaper)), (None, None));
}

#[test]
fn a_filter_takes_memory_of_the_query() {
    // As much as the join needs, and one byte less until it is too little: the filter gives way.
    let tables = tables(Encoding::Plain, 1);
    let query = joined(vec![equal("facts.a", "few.a")]);
    let wanted = rows(&query, &tables, &options(IndexUse::Never));
    let ran = |limit: usize, indexes: IndexUse| {
        let options = Options { temporary: None, ..options(indexes).with_memory(limit) };
        Resolved::run(&query, &tables, &options).and_then(|found| found.execute()).ok()
    };
    let enough = (10..).map(|n| n * 1_024).find(|n| ran(*n, IndexUse::Never).is_some()).unwrap();
    let found = ran(enough, IndexUse::WhenCheaper).unwrap();
    assert_eq!(found.to_rows(), wanted);
}
