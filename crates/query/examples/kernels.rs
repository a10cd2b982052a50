//! Measures kernels on one core against what a bare loop over the same memory reaches.
//!
//! `cargo run --release -p esker-query --example kernels [millions of rows [part of a query]]`
#![allow(missing_docs, dead_code, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use esker_format::{Batch, Column, DataType, Schema, Values, VariableValues};
use esker_query::model::{Aggregate, Expr, Operator, Query};
use esker_query::{Options, execute};
use esker_vfs::{Clock, Environment, Event, Task, TaskHandle, Tasks};

#[path = "../tests/memory_source/mod.rs"]
mod memory_source;
use memory_source::{Encoding, Layout, MemorySource};

/// One thread.
#[derive(Debug)]
struct Alone(Arc<dyn Tasks>);

impl Tasks for Alone {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        self.0.spawn(name, task)
    }

    fn wait(&self, event: &Event, seen: u32) {
        self.0.wait(event, seen);
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        self.0.wait_timeout(event, seen, timeout);
    }

    fn signal(&self, event: &Event, count: usize) {
        self.0.signal(event, count);
    }

    fn pause(&self) {}

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }

    fn parallelism(&self) -> usize {
        1
    }
}

fn schema() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .field("amount", DataType::I64)
        .field("ratio", DataType::F64)
        .field("code", DataType::Text)
        .field("day", DataType::I32)
        .build()
        .unwrap()
}

fn batch(rows: usize) -> Batch {
    let mut state = 1u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut id = Vec::with_capacity(rows);
    let (mut amount, mut ratio, mut day) = (id.clone(), Vec::with_capacity(rows), Vec::new());
    let mut code = VariableValues::default();
    for _ in 0..rows {
        let v = next();
        id.push((v % 1_000).cast_signed() << 32);
        amount.push((v / 7 % 10_000).cast_signed() - 5_000);
        ratio.push((v % 4_096) as f64 / 16.0);
        day.push(i32::try_from(v % 31).unwrap());
        code.push(
            ["AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"][usize::try_from(v % 8).unwrap()]
                .as_bytes(),
        );
    }
    let column = |data_type, values| Column { data_type, values, nulls: None };
    Batch {
        columns: vec![
            column(DataType::I64, Values::I64(id)),
            column(DataType::I64, Values::I64(amount)),
            column(DataType::F64, Values::F64(ratio)),
            column(DataType::Text, Values::Variable(code)),
            column(DataType::I32, Values::I32(day)),
        ],
    }
}

/// The least time of some runs, in nanoseconds.
fn best(clock: &dyn Clock, mut run: impl FnMut()) -> u64 {
    let mut time = || {
        let started = clock.monotonic_ns();
        run();
        clock.monotonic_ns() - started
    };
    (0..40).map(|_| time()).min().unwrap()
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(20usize);
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let rows = millions * 1_000_000;
    let environment = Environment::os();
    let clock = Arc::clone(&environment.clock);
    let batch = batch(rows);
    let rate = |ns: u64| rows as f64 / ns as f64;
    let Values::I64(plain) = &batch.columns[1].values else { return };
    let ns = best(&*clock, || {
        black_box(plain.iter().fold(0i64, |sum, v| sum.wrapping_add(*v)));
    });
    println!(
        "{:<58} {:6.2} G rows/s, {:5.1} GB/s",
        "bare loop: wrapping sum of i64",
        rate(ns),
        rate(ns) * 8.0
    );
    let field = |name: &str| Expr::field(name);
    let eq = |name: &str, v: Expr| field(name).binary(Operator::Eq, v);
    let lt = |name: &str, v: i64| field(name).binary(Operator::Lt, Expr::literal(v));
    let sum = |name: &str| Expr::aggregate(Aggregate::Sum, field(name));
    let one = |filter: Option<Expr>, keys: &[&str], shown: Vec<Expr>| {
        let mut query = Query::table("t");
        query.filter = filter;
        keys.iter().for_each(|key| query.group_by.push(field(key)));
        keys.iter().for_each(|key| {
            query.select(field(key));
        });
        shown.into_iter().for_each(|expr| {
            query.select(expr);
        });
        query
    };
    let of = |function, name: &str| Expr::aggregate(function, field(name));
    let queries = vec![
        one(Some(eq("id", Expr::literal(7i64 << 32))), &[], vec![Expr::count()]),
        one(Some(lt("amount", 0)), &[], vec![Expr::count()]),
        one(Some(eq("code", Expr::literal("UA"))), &[], vec![Expr::count()]),
        one(Some(lt("day", 3)), &[], vec![Expr::count()]),
        one(Some(lt("day", 3).and(eq("code", Expr::literal("UA")))), &[], vec![Expr::count()]),
        one(Some(lt("day", 3).or(lt("ratio", 9))), &[], vec![sum("amount")]),
        one(None, &[], vec![sum("amount")]),
        one(None, &[], vec![of(Aggregate::Avg, "amount")]),
        one(None, &[], vec![of(Aggregate::Min, "amount")]),
        one(None, &[], vec![of(Aggregate::Max, "amount")]),
        one(None, &[], vec![sum("ratio")]),
        one(None, &[], vec![of(Aggregate::Max, "ratio")]),
        one(None, &["code"], vec![Expr::count()]),
        one(None, &["code"], vec![Expr::count(), sum("amount")]),
        one(None, &["code"], vec![Expr::count(), sum("ratio")]),
        one(None, &["day"], vec![Expr::count(), sum("amount")]),
        one(Some(lt("amount", 0)), &["code"], vec![Expr::count(), sum("amount")]),
        one(None, &["code", "day"], vec![Expr::count(), sum("amount")]),
        one(None, &["id"], vec![Expr::count(), sum("amount")]),
    ];
    compare(&environment, &batch, &queries, &wanted);
}

/// Times every query on one core and on all.
fn compare(environment: &Environment, batch: &Batch, queries: &[Query], wanted: &str) {
    let clock = Arc::clone(&environment.clock);
    let rate = |ns: u64| batch.len() as f64 / ns as f64;
    let alone =
        Options { tasks: Arc::new(Alone(environment.tasks.clone())), ..Options::new(environment) };
    let all = Options::new(environment);
    for encoding in [Encoding::Plain, Encoding::Compact] {
        let source =
            MemorySource::new(schema()).with_part(batch, &Layout { encoding, ..Layout::default() });
        println!("\n{encoding:?}: G rows/s on one core, on {}", all.tasks.parallelism());
        for query in queries.iter().filter(|q| q.to_string().contains(wanted)) {
            let time = |options| {
                best(&*clock, || {
                    black_box(execute(query, &source, options).unwrap());
                })
            };
            let (one, many) = (time(&alone), time(&all));
            println!("{:<72} {:6.2} {:6.2}", query.to_string(), rate(one), rate(many));
        }
    }
}
