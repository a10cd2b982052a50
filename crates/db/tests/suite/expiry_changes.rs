//! Tables of which the field by which rows expire is set, changed and dropped: what has expired
//! does not come back, and older readers see what they saw.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use crate::fixture::Directory;
use crate::fixture::hand_clock::HandClock;
use esker::{
    Alteration, DataType, Database, ErrorKind, NewIndex, Options, Query, Schema, Snapshot, Value,
};
use esker_query::model::{Aggregate, Expr, Operator};

const START: i64 = 1_000_000_000_000;
const END: i64 = START + 10;
const LATER: i64 = START + 20;

/// A table with two fields of times, whose rows do not expire.
struct Case {
    db: Database,
    clock: Arc<HandClock>,
    directory: Directory,
}

fn open(clock: &Arc<HandClock>, directory: &Directory) -> Database {
    let options = Options::new().background(false).environment(clock.environment());
    options.group_limit(4, 1 << 30).small_group_limit(0).open(&directory.0).unwrap()
}

fn row(id: i64, a: Option<i64>, b: Option<i64>) -> Vec<Value> {
    let time = |us: Option<i64>| us.map_or(Value::Null, Value::Timestamp);
    vec![id.into(), (id % 2).into(), time(a), time(b)]
}

impl Case {
    /// Rows of which the even ones have their end in `a` at `END`, and the odd ones in `b`: in a
    /// segment, in a frozen group and in the open one.
    fn new(name: &str, expires: Option<&str>) -> Self {
        let (clock, directory) = (HandClock::new(START), Directory::new(name));
        let db = open(&clock, &directory);
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("n", DataType::I64)
            .nullable("a", DataType::Timestamp)
            .nullable("b", DataType::Timestamp)
            .primary_key(["id"]);
        let schema = expires.into_iter().fold(schema, |schema, field| schema.expires_by(field));
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        db.create_index("t", NewIndex::new("by_n", ["n"])).unwrap();
        for id in 0..14 {
            let (a, b) = if id % 2 == 0 { (Some(END), None) } else { (None, Some(END)) };
            table.insert(&row(id, a, b)).unwrap();
            if id == 3 {
                db.wait_idle().unwrap();
            }
        }
        Self { db, clock, directory }
    }

    fn set_expiry(&self, field: Option<&str>) {
        self.db.alter_table("t", &[Alteration::SetExpiry(field.map(str::to_owned))]).unwrap();
    }

    fn reopen(&mut self) {
        let other = Options::new().memory().unwrap();
        std::mem::replace(&mut self.db, other).close().unwrap();
        self.db = open(&self.clock, &self.directory);
    }

    /// Asserts what every path finds, of groups, of segments, and after all else that there is.
    fn expect(mut self, ids: &[i64]) {
        for stage in ["changed", "reopened", "sealed", "compacted", "reopened again"] {
            match stage {
                "changed" => {}
                "sealed" => self.db.wait_idle().unwrap(),
                "compacted" => drop(self.db.compact(false, &mut |_, _| {}).unwrap()),
                _ => self.reopen(),
            }
            assert_eq!(every_path(&self.db.snapshot().unwrap()), ids, "{stage}");
            let table = self.db.table("t").unwrap();
            for id in 0..14 {
                let found = table.get(&[id.into()]).unwrap().is_some();
                assert_eq!(found, ids.contains(&id), "{stage}: {id}");
            }
            assert_eq!(self.db.check().unwrap().problems, [], "{stage}");
            assert_eq!(self.db.recount(true).unwrap(), [], "{stage}");
        }
    }
}

fn ids(rows: &[Vec<Value>]) -> Vec<i64> {
    let id = |row: &Vec<Value>| match row[0] {
        Value::Int(id) => id,
        ref other => panic!("{other:?}"),
    };
    let mut ids: Vec<i64> = rows.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

/// The keys that a scan, counts, an index and look-ups agree on.
fn every_path(snapshot: &Snapshot) -> Vec<i64> {
    let table = snapshot.table("t").unwrap();
    let rows: Vec<Vec<Value>> = table.rows().unwrap().into_iter().map(|(_, row)| row).collect();
    let found = ids(&rows);
    assert_eq!(table.count().unwrap(), found.len() as u64);
    let mut count = Query::table("t");
    count.select(Expr::aggregate(Aggregate::Count, Expr::field("id")));
    let by_count = snapshot.query(&count).unwrap().to_rows();
    assert_eq!(by_count, [[Value::Int(i64::try_from(found.len()).unwrap())]]);
    let mut by_index = Vec::new();
    for n in 0..2 {
        let mut query = Query::table("t");
        query.select(Expr::field("id"));
        query.filter = Some(Expr::field("n").binary(Operator::Eq, Expr::literal(n)));
        by_index.extend(snapshot.query(&query).unwrap().to_rows());
    }
    assert_eq!(ids(&by_index), found);
    for id in 0..20 {
        assert_eq!(table.get(&[id.into()]).unwrap().is_some(), found.contains(&id), "{id}");
    }
    found
}

fn even() -> Vec<i64> {
    (0..14).step_by(2).collect()
}

fn odd() -> Vec<i64> {
    (1..14).step_by(2).collect()
}

#[test]
fn rows_expire_from_the_commit_on_that_names_the_field() {
    let case = Case::new("expiry-set", None);
    case.clock.set(END);
    let before = case.db.snapshot().unwrap();
    assert_eq!(every_path(&before), (0..14).collect::<Vec<_>>());
    case.set_expiry(Some("a"));
    assert_eq!(every_path(&case.db.snapshot().unwrap()), odd());
    case.db.wait_idle().unwrap();
    case.db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!(every_path(&before), (0..14).collect::<Vec<_>>(), "an older reader sees them");
    drop(before);
    case.expect(&odd());
}

#[test]
fn rows_of_the_past_are_purged_once_no_reader_is_older_than_the_change() {
    let case = Case::new("expiry-purge", None);
    case.clock.set(LATER);
    case.db.wait_idle().unwrap();
    case.db.compact(false, &mut |_, _| {}).unwrap();
    let before = case.db.snapshot().unwrap();
    case.set_expiry(Some("a"));
    let stored = || {
        case.db.compact(false, &mut |_, _| {}).unwrap();
        case.db.info().tables[0].segment_bytes
    };
    let kept = stored();
    assert_eq!(every_path(&before).len(), 14);
    drop(before);
    case.db.compact(false, &mut |_, _| {}).unwrap();
    assert!(stored() < kept, "{} of {kept} bytes", stored());
    case.expect(&odd());
}

#[test]
fn what_has_expired_does_not_come_back_when_rows_do_so_no_more() {
    let case = Case::new("expiry-reset", Some("a"));
    let early = case.db.snapshot().unwrap();
    case.clock.set(END);
    let late = case.db.snapshot().unwrap();
    case.set_expiry(None);
    assert_eq!(every_path(&early), (0..14).collect::<Vec<_>>());
    assert_eq!(every_path(&late), odd());
    let table = case.db.table("t").unwrap();
    table.insert(&row(0, Some(START), None)).unwrap();
    drop((early, late));
    case.expect(&[&[0][..], &odd()].concat());
}

#[test]
fn rows_expire_by_another_field() {
    let case = Case::new("expiry-other", Some("a"));
    case.clock.set(END - 1);
    case.set_expiry(Some("b"));
    let before = case.db.snapshot().unwrap();
    case.clock.set(END);
    assert_eq!(every_path(&before), (0..14).collect::<Vec<_>>());
    assert_eq!(every_path(&case.db.snapshot().unwrap()), even());
    case.set_expiry(Some("a"));
    assert_eq!(every_path(&case.db.snapshot().unwrap()), [0; 0]);
    drop(before);
    case.expect(&[]);
}

#[test]
fn a_new_field_may_say_when_the_rows_there_are_expire() {
    for (initial, wanted) in [(Some(END), 0), (Some(LATER), 14), (None, 14)] {
        let case = Case::new("expiry-new-field", None);
        case.clock.set(END);
        let field = esker::Field::new(esker::FieldId(0), "c".into(), DataType::Timestamp, true);
        let initial = initial.map_or(Value::Null, Value::Timestamp);
        let add = Alteration::AddField(esker::Field { initial, ..field });
        case.db.alter_table("t", &[add, Alteration::SetExpiry(Some("c".into()))]).unwrap();
        case.expect(&(0..wanted).collect::<Vec<_>>());
    }
    let case = Case::new("expiry-drop-field", Some("a"));
    case.clock.set(END);
    let e = case.db.alter_table("t", &[Alteration::DropField("a".into())]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    let both = [Alteration::SetExpiry(None), Alteration::DropField("a".into())];
    case.db.alter_table("t", &both).unwrap();
    case.expect(&odd());
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    let case = Case::new("expiry-refused", Some("a"));
    case.clock.set(END);
    for (field, why) in [("x", "unknown field"), ("n", "expected a timestamp")] {
        let change = [Alteration::SetExpiry(Some(field.into()))];
        let e = case.db.alter_table("t", &change).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains(why), "{e}");
    }
    let transaction = case.db.begin().unwrap();
    let e = transaction.alter_table("t", &[Alteration::SetExpiry(None)]).unwrap_err();
    assert!(e.to_string().contains("outside of one"), "{e}");
    drop(transaction);
    case.expect(&odd());
}

#[test]
fn a_transaction_sets_it_for_a_table_of_its_own() {
    let clock = HandClock::new(END);
    let db = Options::new().environment(clock.environment()).memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("a", DataType::Timestamp);
    let transaction = db.begin().unwrap();
    let schema = schema.primary_key(["id"]).build().unwrap();
    transaction.create_table("t", schema).unwrap();
    transaction.alter_table("t", &[Alteration::SetExpiry(Some("a".into()))]).unwrap();
    let table = transaction.table("t").unwrap();
    table.insert(&[1.into(), Value::Timestamp(END)]).unwrap();
    table.insert(&[2.into(), Value::Timestamp(LATER)]).unwrap();
    transaction.commit().unwrap();
    let table = db.table("t").unwrap();
    assert_eq!(table.count().unwrap(), 1);
    clock.set(LATER);
    assert_eq!(table.count().unwrap(), 0);
}
