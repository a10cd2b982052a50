//! Pages of answers: each row once, in any order, both ways, whatever is written between.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, Decimal, ErrorKind, NewIndex, Options, Page, PageOptions,
    Query, Schema, Table, Value,
};
use esker_query::model::{Expr, Operator, OrderBy, SelectItem};

const ROWS: i64 = 700;

fn schema() -> Schema {
    let decimal = DataType::Decimal { precision: 9, scale: 2 };
    Schema::builder()
        .field("id", DataType::I64)
        .nullable("few", DataType::I32)
        .nullable("float", DataType::F64)
        .nullable("text", DataType::Text)
        .nullable("money", decimal)
        .field("day", DataType::Date)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn row(i: i64) -> Vec<Value> {
    let mix = |by: i64, modulo: i64| (i * 7_919 + by).rem_euclid(10_007) % modulo;
    let float = match mix(1, 9) {
        0 => Value::Null,
        1 => Value::Float(-0.0),
        2 => Value::Float(0.0),
        3 => Value::Float(f64::NAN),
        4 => Value::Float(f64::NEG_INFINITY),
        n => Value::Float(n as f64 / 3.0 - 2.0),
    };
    let text = match mix(2, 8) {
        0 => Value::Null,
        1 => "".into(),
        2 => "a\0b".into(),
        3 => "ünïcode".into(),
        n => format!("{}{}", "long ".repeat(usize::try_from(n).unwrap() * 3), mix(3, 40)).into(),
    };
    let money = match mix(4, 6) {
        0 => Value::Null,
        n => Value::Decimal(Decimal::new(i128::from(n) * 100 - 300, 2).unwrap()),
    };
    let few = if mix(5, 5) == 0 { Value::Null } else { mix(5, 5).into() };
    let day = Value::Date(i32::try_from(mix(6, 90)).unwrap());
    vec![i.into(), few, float, text, money, day]
}

/// Rows in segments and in the open group, some of them changed or gone since.
fn database(indexes: bool) -> (Database, Table) {
    let options = Options::new().group_limit(150, 1 << 20).background(false);
    let db = options.memory().unwrap();
    let table = db.create_table("t", schema()).unwrap();
    if indexes {
        let index = |fields: &[(&str, bool)]| {
            NewIndex::on(fields.iter().map(|(name, down)| ((*name).to_owned(), *down)).collect())
        };
        let all = [
            index(&[("few", false)]),
            index(&[("float", false)]),
            index(&[("text", true)]),
            index(&[("few", false), ("float", true)]),
            index(&[("money", true), ("few", true)]),
        ];
        db.alter_table("t", &all.map(Alteration::AddIndex)).unwrap();
    }
    for i in 0..ROWS {
        table.insert(&row(i)).unwrap();
        if i % 200 == 199 {
            db.wait_idle().unwrap();
        }
    }
    for i in (0..ROWS).step_by(13) {
        table.delete(&[i.into()]).unwrap();
    }
    for i in (1..ROWS).step_by(29).filter(|i| i % 13 != 0) {
        let mut changed = row(i);
        changed[1] = Value::Int(3);
        table.upsert(&changed).unwrap();
    }
    (db, table)
}

fn by(field: &str, descending: bool, nulls_first: Option<bool>) -> OrderBy {
    OrderBy { expr: Expr::field(field), descending, nulls_first }
}

fn orders() -> Vec<Vec<OrderBy>> {
    let product = Expr::field("few").binary(Operator::Multiply, Expr::literal(-2i64));
    vec![
        vec![],
        vec![by("few", false, None)],
        vec![by("few", true, None)],
        vec![by("few", false, Some(false)), by("id", true, None)],
        vec![by("few", true, Some(true)), by("float", false, None)],
        vec![by("few", false, None), by("float", true, None)],
        vec![by("float", false, None)],
        vec![by("float", true, Some(true)), by("text", false, None)],
        vec![by("text", true, None)],
        vec![by("text", false, Some(false)), by("money", true, Some(true))],
        vec![by("money", true, None), by("few", true, None)],
        vec![by("money", false, None), by("few", true, None), by("day", false, None)],
        vec![OrderBy { expr: product, descending: false, nulls_first: None }],
        vec![by("id", true, None)],
    ]
}

fn filters() -> Vec<Option<Expr>> {
    let is = |field: &str, operator, value: i64| {
        Some(Expr::field(field).binary(operator, Expr::literal(value)))
    };
    vec![None, is("few", Operator::Eq, 3), is("id", Operator::Gt, 420), is("few", Operator::Gte, 2)]
}

fn cursor(cursor: Option<String>) -> PageOptions {
    PageOptions { cursor, ..PageOptions::default() }
}

/// All rows, page by page, and the pages back from the last one, in the same order.
fn walk(page: impl Fn(Option<String>) -> Page) -> (Vec<Vec<Value>>, Vec<Vec<Value>>) {
    let mut forward = Vec::new();
    let mut here = page(None);
    assert_eq!(here.previous, None);
    loop {
        forward.extend(here.result.to_rows());
        match here.next.clone() {
            Some(next) => here = page(Some(next)),
            None => break,
        }
    }
    let mut pages = vec![here.result.to_rows()];
    while let Some(previous) = here.previous {
        here = page(Some(previous));
        pages.push(here.result.to_rows());
    }
    pages.reverse();
    (forward, pages.concat())
}

fn same(a: &[Vec<Value>], b: &[Vec<Value>]) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

#[test]
fn pages_of_any_order_are_the_whole_answer() {
    for indexes in [false, true] {
        let (db, _) = database(indexes);
        for (order_by, filter) in
            orders().iter().flat_map(|order| filters().into_iter().map(move |f| (order, f)))
        {
            let mut whole = Query { filter, order_by: order_by.clone(), ..Query::table("t") };
            whole.order_by.push(by("id", false, None));
            let all = db.query(&whole).unwrap().to_rows();
            let mut query = Query { order_by: order_by.clone(), ..whole };
            for size in [23u64, 1_000] {
                query.limit = Some(size.into());
                let page = |at| db.page(&query, &cursor(at)).unwrap();
                let (forward, backward) = walk(page);
                assert!(same(&forward, &all), "{query} {indexes}: {forward:?} {all:?}");
                assert!(same(&backward, &all), "{query} {indexes}, backward");
            }
            let options = PageOptions { total: true, ..PageOptions::default() };
            let total = db.page(&query, &options).unwrap().total;
            assert_eq!(total, Some(all.len() as u64), "{query}");
        }
    }
}

#[test]
fn groups_and_distinct_rows_have_pages() {
    let (db, _) = database(false);
    let count = SelectItem { expr: Expr::count(), alias: Some("n".into()) };
    let field = |name| SelectItem { expr: Expr::field(name), alias: None };
    let mut grouped = Query::table("t");
    grouped.group_by = vec![Expr::field("few"), Expr::field("float")];
    grouped.select = vec![field("few"), field("float"), count];
    grouped.order_by = vec![by("n", true, None)];
    let mut distinct = Query { distinct: true, ..Query::table("t") };
    distinct.select = vec![field("text")];
    distinct.order_by = vec![by("text", true, Some(true))];
    for mut query in [grouped, distinct] {
        let all = db.query(&query).unwrap().to_rows();
        query.limit = Some(4.into());
        let (forward, backward) = walk(|at| db.page(&query, &cursor(at)).unwrap());
        assert!(same(&forward, &backward), "{query}");
        let sorted = |rows: &[Vec<Value>]| {
            let mut texts: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
            texts.sort();
            texts
        };
        assert_eq!(sorted(&forward), sorted(&all), "{query}");
        let options = PageOptions { total: true, ..PageOptions::default() };
        assert_eq!(db.page(&query, &options).unwrap().total, Some(all.len() as u64));
    }
}

#[test]
fn rows_that_stay_come_once_whatever_is_written_between() {
    for indexes in [false, true] {
        let (db, table) = database(indexes);
        let mut query = Query { order_by: vec![by("few", true, None)], ..Query::table("t") };
        query.limit = Some(20.into());
        let before = db.query(&Query::table("t")).unwrap().to_rows();
        let (mut seen, mut at, mut next_id) = (Vec::new(), None, 10_000i64);
        loop {
            let page = db.page(&query, &cursor(at)).unwrap();
            seen.extend(page.result.to_rows().into_iter().map(|row| row[0].clone()));
            let Some(next) = page.next else { break };
            at = Some(next);
            // New rows, values that are no keys, segments sealed and merged.
            table.insert(&row(next_id)).unwrap();
            table.delete(&[(next_id - 1).into()]).ok();
            let mut changed = before[usize::try_from(next_id % 500).unwrap()].clone();
            changed[5] = Value::Date(1);
            table.upsert(&changed).unwrap();
            next_id += 1;
            if next_id % 5 == 0 {
                db.wait_idle().unwrap();
            }
        }
        for row in before {
            let times = seen.iter().filter(|id| **id == row[0]).count();
            assert_eq!(times, 1, "{row:?} {indexes}");
        }
    }
}

#[test]
fn a_cursor_holds_after_a_restart_and_for_its_query_alone() {
    let dir = Directory::new("pages");
    let mut query = Query { order_by: vec![by("few", true, None)], ..Query::table("t") };
    query.limit = Some(10.into());
    let (first, all) = {
        let db = Options::new().open(&dir.0).unwrap();
        let table = db.create_table("t", schema()).unwrap();
        table.insert_many(&(0..100).map(row).collect::<Vec<_>>()).unwrap();
        let whole = Query { limit: None, ..query.clone() };
        let all = db.query(&whole).unwrap().to_rows();
        let first = db.page(&query, &cursor(None)).unwrap();
        db.close().unwrap();
        (first, all)
    };
    let db = Options::new().open(&dir.0).unwrap();
    let second = db.page(&query, &cursor(first.next.clone())).unwrap();
    assert!(same(&second.result.to_rows(), &all[10..20]));
    // Another number of rows is no other query.
    let wider = Query { limit: Some(25.into()), ..query.clone() };
    let rows = db.page(&wider, &cursor(first.next.clone())).unwrap().result.to_rows();
    assert!(same(&rows, &all[10..35]));
    let fails = |query: &Query, at: Option<String>| {
        let error = db.page(query, &cursor(at)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        error.to_string()
    };
    let other = Query { order_by: vec![by("few", false, None)], ..query.clone() };
    assert!(fails(&other, first.next.clone()).starts_with("cursor: of another query"));
    let mut text = first.next.clone().unwrap();
    text.replace_range(20..21, if &text[20..21] == "A" { "B" } else { "A" });
    assert!(fails(&query, Some(text)).starts_with("cursor: damaged"));
    assert!(fails(&Query { limit: None, ..query.clone() }, None).starts_with("LIMIT"));
    assert!(fails(&Query { offset: 5.into(), ..query.clone() }, None).starts_with("OFFSET"));
    let index = Alteration::AddIndex(NewIndex::new("by_few", ["few"]));
    db.alter_table("t", &[index]).unwrap();
    db.page(&query, &cursor(first.next.clone())).unwrap();
    db.alter_table("t", &[Alteration::DropField("day".into())]).unwrap();
    assert!(fails(&query, first.next).contains("have changed since"));
    db.close().unwrap();
}

#[test]
fn a_snapshot_gives_exact_pages_until_it_goes() {
    let (db, table) = database(true);
    let mut query = Query { order_by: vec![by("few", true, None)], ..Query::table("t") };
    let all = db.query(&query).unwrap().to_rows();
    query.limit = Some(50.into());
    let page = |at: Option<String>| {
        let options = PageOptions { snapshot: at.is_none(), cursor: at, ..PageOptions::default() };
        let page = db.page(&query, &options).unwrap();
        for i in 0..4 {
            table.delete(&[(i * 150 + page.result.row_count() as i64).into()]).ok();
            let mut changed = row(1);
            changed[1] = Value::Int(i);
            table.upsert(&changed).unwrap();
        }
        db.wait_idle().unwrap();
        page
    };
    let (forward, backward) = walk(page);
    let ids = |rows: &[Vec<Value>]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&forward).len(), all.len());
    assert!(same(&forward, &backward));

    let db = Options::new().cursor_hold(Duration::ZERO).memory().unwrap();
    let table = db.create_table("t", schema()).unwrap();
    table.insert_many(&(0..100).map(row).collect::<Vec<_>>()).unwrap();
    let options = PageOptions { snapshot: true, ..PageOptions::default() };
    let first = db.page(&query, &options).unwrap();
    let error = db.page(&query, &cursor(first.next)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotGone, "{error}");
}

#[test]
fn a_page_of_an_indexed_order_reads_few_rows_at_any_depth() {
    const MANY: i64 = 60_000;
    let db = Options::new().memory().unwrap();
    let mut load = db.create_table("t", schema()).unwrap().load().unwrap();
    (0..MANY).for_each(|i| load.push_row(&row(i)).unwrap());
    load.finish().unwrap();
    let on = |fields: &[(&str, bool)]| {
        let fields = fields.iter().map(|(name, down)| ((*name).to_owned(), *down)).collect();
        Alteration::AddIndex(NewIndex::on(fields))
    };
    db.alter_table("t", &[on(&[("few", false)]), on(&[("text", false), ("float", true)])]).unwrap();
    db.wait_idle().unwrap();
    let orders = [
        vec![],
        vec![by("few", false, None)],
        vec![by("few", true, None)],
        vec![by("text", true, None), by("float", false, None)],
    ];
    for order_by in orders {
        let whole = Query { order_by, ..Query::table("t") };
        // From the middle and the end, where a page was skipped to in one large one.
        for depth in [1i64, MANY / 2, MANY - 200] {
            let far = Query { limit: Some(depth.unsigned_abs().into()), ..whole.clone() };
            let query = Query { limit: Some(100.into()), ..whole.clone() };
            let skipped = db.page(&far, &cursor(None)).unwrap();
            let page = db.page(&query, &cursor(skipped.next)).unwrap();
            assert_eq!(page.result.row_count(), 100);
            let scanned = page.result.statistics.rows_scanned;
            assert!(scanned <= 512, "{whole} at {depth}: {scanned} rows scanned");
            let back = db.page(&query, &cursor(page.previous)).unwrap();
            let scanned = back.result.statistics.rows_scanned;
            assert!(scanned <= 512, "{whole} back from {depth}: {scanned} rows scanned");
        }
    }
}
