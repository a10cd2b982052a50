//! Rows that are taken one by one while what they are read from changes, is taken away or closed.

use esker::{Alteration, Database, Options, Query, Record, ResultRow, Rows, TableRows, TypedRows};

use crate::fixture::Directory;

/// More than one batch, and than one page.
const COUNT: i64 = 100_000;

#[derive(Clone, Debug, PartialEq, Record)]
struct Item {
    #[esker(key)]
    id: i64,
    #[esker(unique)]
    name: String,
    /// Every hundredth lies in a value file.
    text: Option<String>,
}

fn item(id: i64) -> Item {
    let text = (id % 1_000 == 0).then(|| format!("{id}").repeat(70_000 / id.to_string().len()));
    Item { id, name: format!("name {id}"), text }
}

fn fill(db: &Database) {
    let items = db.create_table_of::<Item>("items").unwrap();
    // Segments and an open group.
    let loaded: Vec<_> = (0..COUNT - 1_000).map(item).collect();
    for part in loaded.chunks(30_000) {
        items.insert_many(part).unwrap();
        db.checkpoint().unwrap();
    }
    items.insert_many(&(COUNT - 1_000..COUNT).map(item).collect::<Vec<_>>()).unwrap();
}

/// All the ways to take rows one by one, each with one row taken.
struct Held {
    answer: Rows<Item>,
    ids: Rows<i64>,
    rows: TableRows,
    records: TypedRows<Item>,
}

impl Held {
    fn of(db: &Database) -> Self {
        let mut ids = Query::table("items");
        ids.select(esker_query::model::Expr::field("id"));
        let answer = db.query_rows(&Query::table("items")).unwrap().records().unwrap();
        let ids = db.query_rows(&ids).unwrap().records().unwrap();
        let items = db.table_of::<Item>("items").unwrap();
        let (rows, records) = (items.table().iter().unwrap(), items.iter().unwrap());
        let mut held = Self { answer, ids, rows, records };
        assert!(held.answer.next().unwrap().is_ok() && held.ids.next().unwrap().is_ok());
        assert!(held.rows.next().unwrap().is_ok() && held.records.next().unwrap().is_ok());
        held
    }

    /// The rest of them is what was there.
    fn expect_rest(self) {
        let expected = || (1..COUNT).map(item);
        assert!(self.answer.map(Result::unwrap).eq(expected()));
        assert!(self.ids.map(Result::unwrap).eq(1..COUNT));
        assert!(self.rows.map(|row| row.unwrap().to_record::<Item>().unwrap()).eq(expected()));
        assert!(self.records.map(Result::unwrap).eq(expected()));
    }
}

fn change_everything(db: &Database) {
    let items = db.table_of::<Item>("items").unwrap();
    items.delete_many((0..COUNT).step_by(2)).unwrap();
    let renamed = |id| Item { name: format!("new {id}"), text: None, ..item(id) };
    items.upsert_many(&(1..COUNT).step_by(2).map(renamed).collect::<Vec<_>>()).unwrap();
    db.alter_table("items", &[Alteration::DropField("text".into())]).unwrap();
    db.checkpoint().unwrap();
    db.compact(false, &mut |_, _| {}).unwrap();
}

#[test]
fn rows_are_those_of_their_commit_whatever_becomes_of_the_table() {
    let dir = Directory::new("held-rows");
    let db = Options::new().open(&dir.0).unwrap();
    fill(&db);
    let (changed, cleared, dropped) = (Held::of(&db), Held::of(&db), Held::of(&db));
    change_everything(&db);
    changed.expect_rest();
    db.table("items").unwrap().clear().unwrap();
    db.checkpoint().unwrap();
    cleared.expect_rest();
    db.drop_table("items").unwrap();
    db.checkpoint().unwrap();
    db.wait_idle().unwrap();
    dropped.expect_rest();
    assert!(db.snapshots().is_empty(), "{:?}", db.snapshots());
}

#[test]
fn rows_are_those_of_their_commit_though_the_database_is_closed_and_opened_again() {
    let dir = Directory::new("held-rows");
    let db = Options::new().open(&dir.0).unwrap();
    fill(&db);
    let (closed, let_go) = (Held::of(&db), Held::of(&db));
    let table = db.table("items").unwrap();
    db.close().unwrap();
    closed.expect_rest();
    assert!(table.insert(&[1i64.into(), "x".into(), "y".into()]).is_err());
    drop(table);
    let db = Options::new().open(&dir.0).unwrap();
    change_everything(&db);
    db.drop_table("items").unwrap();
    db.checkpoint().unwrap();
    db.wait_idle().unwrap();
    drop(db);
    let_go.expect_rest();
}

#[test]
fn rows_of_a_large_transaction_are_those_of_its_moment_though_it_is_rolled_back() {
    let dir = Directory::new("held-rows");
    let db = Options::new().background(false).transaction_limit(40_000).open(&dir.0).unwrap();
    db.create_table_of::<Item>("items").unwrap();
    let transaction = db.begin().unwrap();
    let items = transaction.table_of::<Item>("items").unwrap();
    let all: Vec<_> = (0..20_000).map(item).collect();
    items.insert_many(&all).unwrap();
    let mut rows = transaction.query_rows(&Query::table("items")).unwrap().records().unwrap();
    let mut records = items.iter().unwrap();
    let mut table_rows = items.table().iter().unwrap();
    assert_eq!(rows.next().unwrap().unwrap(), item(0));
    assert_eq!(records.next().unwrap().unwrap(), item(0));
    assert_eq!(table_rows.next().unwrap().unwrap().to_record::<Item>().unwrap(), item(0));
    assert_eq!(items.clear().unwrap(), 20_000);
    transaction.rollback();
    db.checkpoint().unwrap();
    // Rows come in storage order: that of a transaction in segments is not the order of inserting.
    let expect_rest = |mut found: Vec<Item>| {
        found.sort_by_key(|item| item.id);
        assert!(found == all[1..]);
    };
    expect_rest(rows.map(|row: esker::Result<Item>| row.unwrap()).collect());
    expect_rest(records.map(Result::unwrap).collect());
    assert_eq!(table_rows.map(Result::unwrap).count(), all.len() - 1);
    assert_eq!(db.table("items").unwrap().count().unwrap(), 0);
}

/// Rows can be taken on another thread than the one that asked for them.
#[test]
fn rows_go_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Rows<Item>>();
    is_send::<Rows<ResultRow>>();
    is_send::<TableRows>();
    is_send::<TypedRows<Item>>();
    is_send::<esker::CancelRows>();
}
