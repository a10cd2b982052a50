//! 241 queries on 100,000 users, each with the answer that was computed apart from this code.
//!
//! `queries.ndjson` has a line for each: the query as JSON, and of its answer the `rows` (in any
//! order), `some` of them, their number (`row_count`), a `column` in order, the `sum` of the last
//! column, or the `count` of rows that meet its conditions. Users are made of their number alone.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use crate::user_rows as users;
use esker::{Batch, Database, Options, Value};
use esker_query::json::JsonQuery;
use esker_query::model::{Expr, Query};
use serde_json::Value as Json;

const USERS: i64 = 100_000;
const QUERIES: &str = include_str!("shard_db_241/queries.ndjson");

fn database() -> Database {
    let database = Options::new().memory().unwrap();
    let table = database.create_table("users", users::schema().unwrap()).unwrap();
    let mut load = table.load().unwrap();
    for first in (0..USERS).step_by(10_000) {
        let mut batch = Batch::empty(&table.schema());
        for i in first..first + 10_000 {
            batch.push_row(&table.schema(), &users::row(i)).unwrap();
        }
        load.push(batch).unwrap();
    }
    assert_eq!(load.finish().unwrap().rows, USERS.unsigned_abs());
    database
}

/// Whether a value is what JSON says; sums and means of floats may differ in their last digits.
fn is_same(found: &Value, wanted: &Json) -> bool {
    let text = found.to_string();
    match (found, wanted) {
        (Value::Float(found), Json::Number(wanted)) => {
            let wanted = wanted.as_f64().unwrap();
            (found - wanted).abs() <= wanted.abs() * 1e-12
        }
        (_, Json::String(wanted)) => text == *wanted,
        (_, wanted) => text == format!("{wanted}"),
    }
}

fn is_same_row(found: &[Value], wanted: &Json) -> bool {
    let wanted = wanted.as_array().unwrap();
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| is_same(f, w))
}

/// What is wrong with the answer to a query, if anything is.
fn fault(database: &Database, line: &Json) -> Option<String> {
    let text = line["query"].to_string();
    let result = match database.query_json(&text) {
        Ok(result) => result,
        Err(error) => return Some(error.to_string()),
    };
    let rows = result.to_rows();
    if let Some(wanted) = line["rows"].as_array() {
        let all = wanted.iter().all(|w| rows.iter().any(|row| is_same_row(row, w)));
        if !all || rows.len() != wanted.len() {
            return Some(format!("found {:?}", rows.iter().take(3).collect::<Vec<_>>()));
        }
    }
    if let Some(missing) = line["some"].as_array().and_then(|some| {
        some.iter().find(|wanted| !rows.iter().any(|row| is_same_row(row, wanted)))
    }) {
        return Some(format!("no row {missing}"));
    }
    if let Some(count) = line["row_count"].as_u64()
        && count != rows.len() as u64
    {
        return Some(format!("found {} rows", rows.len()));
    }
    if let Some(column) = line["column"].as_array() {
        let order = line["query"]["order"][0].clone();
        let name = order.as_str().or_else(|| order["field"].as_str()).unwrap().to_owned();
        let at = result.columns.iter().position(|c| c.name == name).unwrap();
        let found = rows.iter().map(|row| &row[at]);
        if rows.len() != column.len() || !found.zip(column).all(|(f, w)| is_same(f, w)) {
            return Some(format!("the column {name} is not in this order"));
        }
    }
    if !line["sum"].is_null() {
        let sum = rows.iter().map(|row| row.last().unwrap().to_string().replace('.', ""));
        let sum: i64 = sum.map(|mantissa| mantissa.parse::<i64>().unwrap()).sum();
        let wanted = line["sum"].to_string().replace(['.', '"'], "");
        if sum.to_string() != wanted {
            return Some(format!("the sum is {sum}"));
        }
    }
    let count = line["count"].as_u64()?;
    let schema = database.table("users").unwrap().schema();
    let shown = JsonQuery::parse(&text).unwrap().bind(&schema).unwrap();
    let mut counted = Query { filter: shown.filter.clone(), ..Query::table("users") };
    counted.select(Expr::count());
    let found = database.query(&counted).unwrap().to_rows()[0][0].to_string();
    if found != count.to_string() {
        return Some(format!("found {found}"));
    }
    let limit = shown.limit.as_ref().map_or(u64::MAX, |limit| limit.number().unwrap());
    let most = limit.min(count.saturating_sub(shown.offset.number().unwrap()));
    (most != rows.len() as u64).then(|| format!("{} rows for {most}", rows.len()))
}

#[test]
fn every_query_has_the_exact_answer() {
    let database = database();
    let (mut asked, mut faults) = (0, Vec::new());
    for line in QUERIES.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        asked += 1;
        if let Some(fault) = fault(&database, &line) {
            faults.push(format!("{}: {}\n    {fault}", line["number"], line["query"]));
        }
    }
    assert_eq!(asked, 241);
    assert!(faults.is_empty(), "{} wrong:\n{}", faults.len(), faults.join("\n"));
}
