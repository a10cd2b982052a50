//! A statement's time is looked at in every long loop: a clock that moves with each look tells.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::looks::Looks;
use crate::memory_source::{Layout, MemorySource, RunLayout};
use esker_format::{Batch, DataType, Schema};
use esker_query::model::{
    Aggregate, Expr, Join, JoinKind, Operator, OrderBy, Relation, SelectItem, Window,
    WindowFunction,
};
use esker_query::{ErrorKind, IndexUse, Options, Query, Resolved, Source, Tables, execute};
use esker_vfs::{Clock, Environment};

const ROWS: i64 = 200_000;

fn source() -> MemorySource {
    let schema = Schema::builder().field("a", DataType::I64).field("b", DataType::Text);
    let schema = schema.build().unwrap();
    let mut batch = Batch::empty(&schema);
    for i in 0..ROWS {
        let b = format!("{}", i * 7_919 % 100_003);
        batch.push_row(&schema, &[(i * 31 % 1_000).into(), b.into()]).unwrap();
    }
    let run = RunLayout { name: "by_b".into(), fields: vec![(1, false)], cut_bytes: None };
    let layout = Layout { runs: vec![run], ..Layout::default() };
    MemorySource::new(schema).with_part(&batch, &layout)
}

fn order(field: &str) -> Vec<OrderBy> {
    vec![OrderBy { expr: Expr::field(field), descending: false, nulls_first: None }]
}

/// A query of each kind of work, and whether indexes are for it.
fn queries() -> Vec<(&'static str, IndexUse, Query)> {
    let table = Query::table("");
    let count = vec![SelectItem { expr: Expr::count(), alias: None }];
    let filter = Some(Expr::field("a").binary(Operator::Gt, Expr::literal(500i64)));
    let nothing = Some(Expr::field("a").binary(Operator::Eq, Expr::literal(-1i64)));
    let limit = Some(10.into());
    let scan = Query { select: count.clone(), filter, ..table.clone() };
    let group = Query { select: count, group_by: vec![Expr::field("b")], ..table.clone() };
    let sort = Query { order_by: order("b"), ..table.clone() };
    let over = Window { order_by: order("a"), ..Window::default() };
    let running = Expr::aggregate(Aggregate::Max, Expr::field("b")).over(over.clone());
    let rank = Expr::window(WindowFunction::Rank, [], over);
    let select = [running, rank].map(|expr| SelectItem { expr, alias: None });
    let window = Query { select: select.into(), ..table.clone() };
    let walk = Query { order_by: order("b"), filter: nothing, limit, ..table.clone() };
    vec![
        ("rows", IndexUse::Never, table),
        ("scan", IndexUse::Never, scan),
        ("group", IndexUse::Never, group),
        ("sort", IndexUse::Never, sort),
        ("window", IndexUse::Never, window),
        ("walk", IndexUse::Always, walk),
    ]
}

#[test]
fn every_kind_of_work_looks_at_the_time_and_ends() {
    let source = source();
    for (name, indexes, query) in queries() {
        let clock = Arc::new(Looks::default());
        let mut options = Options::new(&Environment::os());
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        options.indexes = indexes;
        let long = options.clone().with_timeout(Duration::from_secs(3_600));
        execute(&query, &source, &long).unwrap();
        let looks = clock.count();
        // At least once for each 8,192 rows.
        assert!(looks > ROWS.unsigned_abs() / 8_192, "{name}: {looks} looks");
        for share in [4, 2] {
            let short = options.clone().with_timeout(Duration::from_micros(looks / share));
            let before = clock.count();
            let error = execute(&query, &source, &short).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{name}: {error}");
            assert!(error.to_string().ends_with("try again with more time"), "{error}");
            let took = clock.count() - before;
            // Each thread looks once more at most.
            assert!(took <= looks / share + 64, "{name}: {took} of {looks} looks");
        }
    }
}

#[test]
fn a_flag_ends_a_query() {
    let source = source();
    for (name, indexes, query) in queries() {
        // Set before the query begins, and while it runs.
        for after in [0, ROWS.unsigned_abs() / 16_384] {
            let cancel = Arc::new(AtomicBool::new(after == 0));
            let clock = Arc::new(Looks::cancelling(after, &cancel));
            let mut options = Options::new(&Environment::os());
            options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
            options.indexes = indexes;
            options.inputs.limits.cancel = cancel;
            let options = options.with_timeout(Duration::from_secs(3_600));
            let error = execute(&query, &source, &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}: {error}");
            assert!(clock.count() <= after + 64, "{name}: {} looks", clock.count());
        }
    }
}

struct One(MemorySource);

impl Tables for One {
    fn table(&self, _: &str) -> esker_query::Result<&dyn Source> {
        Ok(&self.0)
    }
}

#[test]
fn a_nested_loop_looks_at_the_time_and_ends() {
    let schema = Schema::builder().field("a", DataType::I64).build().unwrap();
    let mut batch = Batch::empty(&schema);
    (0..1_000i64).for_each(|i| batch.push_row(&schema, &[i.into()]).unwrap());
    let tables = One(MemorySource::new(schema).with_part(&batch, &Layout::default()));
    let sum = Expr::field("x.a").binary(Operator::Add, Expr::field("y.a"));
    let on = sum.binary(Operator::Eq, Expr::literal(-1i64));
    for kind in [JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti] {
        let mut query = Query::table("t").aliased("x");
        query.joins.push(Join::on(kind, Relation::table("t").aliased("y"), on.clone()));
        query.select(Expr::count());
        let clock = Arc::new(Looks::default());
        let mut options = Options::new(&Environment::os());
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let run = |options: &Options| Resolved::run(&query, &tables, options)?.execute();
        run(&options.clone().with_timeout(Duration::from_secs(3_600))).unwrap();
        let looks = clock.count();
        // A million pairs, at least one look for each 8,192 of them.
        assert!(looks > 1_000_000 / 8_192, "{kind:?}: {looks} looks");
        let before = clock.count();
        let error = run(&options.with_timeout(Duration::from_micros(looks / 3))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{kind:?}: {error}");
        let took = clock.count() - before;
        assert!(took <= looks / 3 + 64, "{kind:?}: {took} of {looks} looks");
    }
}
