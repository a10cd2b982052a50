//! Groups too many for one table: the same groups, in the order in which rows met them, as a loop
//! over the rows makes.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value};
use esker_query::model::{Aggregate, Expr, SelectItem};
use esker_query::{Options, Query, execute};
use esker_vfs::Environment;

/// How many rows each part has.
const PARTS: [i64; 3] = [150_000, 1_000, 90_000];

/// The key and the number of a row: some keys come again in the same morsel, some much later.
fn row(i: i64) -> (Value, i64) {
    let key = match i % 5 {
        0 => (i / 70_000) * 1_000 + i % 1_000,
        1 => i % 60_000 + 1_000_000,
        _ => i + 2_000_000,
    };
    let key = if i % 977 == 0 { Value::Null } else { format!("key {key}").into() };
    (key, (i * 7_919) % 1_000 - 500)
}

/// What is kept of a group: when it was first met, its rows, their sum and greatest number.
type Kept = (usize, i64, i64, i64);

fn aggregate(function: Aggregate, field: Option<&str>) -> SelectItem {
    let operand = field.map(|name| Box::new(Expr::field(name)));
    let expr = Expr::Aggregate { function, operand, distinct: false, order: Vec::new() };
    SelectItem { expr, alias: None }
}

#[test]
fn many_groups_are_those_of_a_loop_in_its_order() {
    let schema = Schema::builder()
        .nullable("name", DataType::Text)
        .field("number", DataType::I64)
        .build()
        .unwrap();
    let mut source = MemorySource::new(schema.clone());
    let mut expected: BTreeMap<Option<String>, Kept> = BTreeMap::new();
    let mut first = 0;
    for rows in PARTS {
        let mut batch = Batch::empty(&schema);
        for i in first..first + rows {
            let (key, number) = row(i);
            let met = expected.len();
            let name = (!key.is_null()).then(|| key.to_string());
            let kept = expected.entry(name).or_insert((met, 0, 0, i64::MIN));
            *kept = (kept.0, kept.1 + 1, kept.2 + number, kept.3.max(number));
            batch.push_row(&schema, &[key, number.into()]).unwrap();
        }
        first += rows;
        source = source.with_part(&batch, &Layout::default());
    }
    let mut expected: Vec<_> = expected.into_iter().collect();
    expected.sort_by_key(|(_, kept)| kept.0);
    let query = Query {
        select: vec![
            SelectItem { expr: Expr::field("name"), alias: None },
            aggregate(Aggregate::Count, None),
            aggregate(Aggregate::Sum, Some("number")),
            aggregate(Aggregate::Max, Some("number")),
        ],
        group_by: vec![Expr::field("name")],
        ..Query::default()
    };
    let found = execute(&query, &source, &Options::new(&Environment::os())).unwrap();
    assert_eq!(found.row_count(), expected.len());
    for (row, (name, (_, count, sum, greatest))) in found.to_rows().iter().zip(&expected) {
        let shown = (!row[0].is_null()).then(|| row[0].to_string());
        assert_eq!(&shown, name);
        let numbers = [(*count).into(), (*sum).into(), (*greatest).into()];
        assert_eq!(row[1..], numbers, "{name:?}");
    }
}
