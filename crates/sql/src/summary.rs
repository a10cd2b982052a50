//! `SUMMARIZE`: what there is in each column of a question's answer.

use esker::{Batch, Column, QueryOptions, QueryResult, Scope, ValueRef};
use esker_format::DataType;
use esker_query::model::{Query, Relation};
use esker_query::{ResultColumn, Statistics};

use crate::statement::parse;
use crate::{Error, Result};

/// What the answer has for each column.
const COLUMNS: [(&str, DataType); 8] = [
    ("column_name", DataType::Text),
    ("column_type", DataType::Text),
    ("min", DataType::Text),
    ("max", DataType::Text),
    ("approx_distinct", DataType::I64),
    ("avg", DataType::F64),
    ("count", DataType::I64),
    ("null_share", DataType::F64),
];

/// How many of them are aggregates of the column: all behind its name and type.
const AGGREGATES: usize = COLUMNS.len() - 2;

/// Answers what there is in each column of a query's answer: a row for each.
pub(crate) fn summarize(
    scope: &dyn Scope,
    query: &Query,
    options: &QueryOptions,
) -> esker::Result<QueryResult> {
    let snapshot = scope.snapshot_for(query)?;
    let columns = snapshot.columns_with(query, options)?;
    let asked = aggregates(query, &columns)?;
    let found = snapshot.query_with(&asked, options)?;
    let row = found.rows().next().unwrap_or_default();
    let mut all: Vec<Column> = COLUMNS.iter().map(|(_, of)| Column::empty(*of)).collect();
    for (column, values) in columns.iter().zip(row.chunks(AGGREGATES)) {
        let data_type = column.data_type.to_string();
        let names = [ValueRef::Text(&column.name), ValueRef::Text(&data_type)];
        for (to, value) in all.iter_mut().zip(names.into_iter().chain(values.iter().copied())) {
            to.push(value)?;
        }
    }
    let shown = COLUMNS.map(|(name, data_type)| ResultColumn { name: name.to_owned(), data_type });
    let statistics = Statistics { ..found.statistics };
    Ok(QueryResult { columns: shown.into(), batches: vec![Batch { columns: all }], statistics })
}

/// The aggregates of all columns, in one query: one walk over the rows.
fn aggregates(query: &Query, columns: &[ResultColumn]) -> Result<Query> {
    let names = (1..=columns.len()).map(|number| format!("c{number}")).collect();
    let mut relation = Relation::query(query.clone(), "s");
    relation.columns = names;
    let mut asked = Query::from(relation);
    for (i, column) in columns.iter().enumerate() {
        let name = format!("c{}", i + 1);
        // Bytes need not be text, and documents have no order.
        let is_shown = !matches!(column.data_type, DataType::Bytes | DataType::Json);
        let is_number = column.data_type.is_integer()
            || column.data_type.is_float()
            || column.data_type.is_decimal();
        let text = |function: &str| match is_shown {
            true => format!("CAST({function}({name}) AS text)"),
            false => "CAST(NULL AS text)".to_owned(),
        };
        let (least, most) = (text("min"), text("max"));
        let distinct = match column.data_type {
            DataType::Json => "CAST(NULL AS i64)".to_owned(),
            _ => format!("CAST(approx_count_distinct({name}) AS i64)"),
        };
        let mean = match is_number {
            true => format!("CAST(avg({name}) AS f64)"),
            false => "CAST(NULL AS f64)".to_owned(),
        };
        let items = parse(&format!(
            "SELECT {least}, {most}, {distinct}, {mean}, CAST(count(*) AS i64), \
             CAST(count(*) - count({name}) AS f64) / nullif(count(*), 0) FROM s"
        ))?;
        for (at, item) in items.select.into_iter().enumerate() {
            asked.select_as(item.expr, format!("{name} {at}"));
        }
    }
    match asked.select.is_empty() {
        true => Err(Error::invalid("SUMMARIZE: expected a query with columns")),
        false => Ok(asked),
    }
}
