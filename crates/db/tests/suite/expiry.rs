//! Tables whose rows expire: from the moment on that a field names, a row is absent on every path,
//! and nothing that is not a new row brings it back.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use crate::fixture::hand_clock::HandClock;
use esker::{
    DataType, Database, ErrorKind, Isolation, Modified, NewIndex, Options, Query, Schema, Table,
    Transaction, TransactionOptions, Update, Value,
};
use esker_query::model::{self, Change, Delete, Expr, Operator};

const START: i64 = 1_000_000_000_000;
const END: i64 = START + 10;
const LATER: i64 = START + 20;

struct Simulated {
    db: Database,
    table: Table,
    clock: Arc<HandClock>,
}

impl Simulated {
    /// With row 1, which stays, and row 2, which expires; sealed or not.
    fn new(sealed: bool) -> Self {
        let clock = HandClock::new(START);
        let environment = clock.environment();
        let rows_max = if sealed { 1 } else { 1 << 20 };
        let options = Options::new().group_limit(rows_max, 1 << 20).environment(environment);
        let db = options.memory().unwrap();
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("n", DataType::I64)
            .nullable("until", DataType::Timestamp)
            .nullable("doc", DataType::Json)
            .primary_key(["id"])
            .expires_by("until");
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        db.create_index("t", NewIndex::new("by_n", ["n"])).unwrap();
        table.insert(&row(1, 7, Value::Null)).unwrap();
        table.insert(&row(2, 7, Value::Timestamp(END))).unwrap();
        db.wait_idle().unwrap();
        Self { db, table, clock }
    }

    fn set_time(&self, us: i64) {
        self.clock.set(us);
    }

    /// The clock shows `us` from its reading of this number on.
    fn jump_after(&self, readings: i64, us: i64) {
        self.clock.jump_after(readings, us);
    }
}

fn row(id: i64, n: i64, until: Value) -> Vec<Value> {
    vec![id.into(), n.into(), until, Value::Null]
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

fn query(condition: Option<Expr>) -> Query {
    let mut query = Query::table("t");
    query.select(Expr::field("id"));
    query.filter = condition;
    query
}

fn n_is_7() -> Option<Expr> {
    Some(Expr::field("n").binary(Operator::Eq, Expr::literal(7)))
}

/// Extends the life of every row that matches.
fn revive() -> Change {
    Change::Update(model::Update {
        table: "t".into(),
        set: vec![("until".into(), Expr::literal(Value::Timestamp(START * 2)))],
        filter: n_is_7(),
        ..model::Update::default()
    })
}

/// Each case with the row in a group and in a segment.
fn each(case: impl Fn(&Simulated)) {
    for sealed in [false, true] {
        case(&Simulated::new(sealed));
    }
}

#[test]
fn queries_see_a_row_until_it_expires_and_no_longer() {
    each(|s| {
        for (us, wanted) in [(END - 1, vec![1, 2]), (END, vec![1])] {
            s.set_time(us);
            assert_eq!(ids(&s.db.query(&query(None)).unwrap().to_rows()), wanted);
        }
    });
}

#[test]
fn indexes_find_no_expired_row() {
    each(|s| {
        for (us, wanted) in [(END - 1, vec![1, 2]), (END, vec![1])] {
            s.set_time(us);
            assert_eq!(ids(&s.db.query(&query(n_is_7())).unwrap().to_rows()), wanted);
        }
    });
}

#[test]
fn counts_and_groups_leave_expired_rows_out() {
    each(|s| {
        s.set_time(END);
        assert_eq!(s.table.count().unwrap(), 1);
        let text = r#"{"table": "t", "aggregates": [{"fn": "count"}]}"#;
        assert_eq!(s.db.query_json(text).unwrap().to_rows(), [[Value::Int(1)]]);
    });
}

#[test]
fn joins_and_subqueries_leave_expired_rows_out() {
    each(|s| {
        let text = r#"{"table": "t", "as": "a", "select": ["a.id"],
            "join": [{"table": "t", "as": "b", "using": ["n"]}]}"#;
        s.set_time(END - 1);
        let Ok(before) = s.db.query_json(text) else { panic!("the join is understood") };
        assert_eq!(before.row_count(), 4);
        s.set_time(END);
        assert_eq!(ids(&s.db.query_json(text).unwrap().to_rows()), [1]);
    });
}

#[test]
fn look_ups_and_ranges_find_no_expired_row() {
    each(|s| {
        s.set_time(END);
        assert!(s.table.get(&[2.into()]).unwrap().is_none());
        assert!(!s.table.exists(&[2.into()]).unwrap());
        let both = s.table.get_many(&[vec![1.into()], vec![2.into()]]).unwrap();
        assert!(both[0].is_some() && both[1].is_none());
        assert_eq!(s.table.snapshot().unwrap().range(..).unwrap().count(), 1);
    });
}

#[test]
fn a_snapshot_keeps_the_time_at_which_it_was_taken() {
    each(|s| {
        let snapshot = s.db.snapshot().unwrap();
        s.set_time(LATER);
        s.db.compact(false, &mut |_, _| {}).unwrap();
        assert_eq!(snapshot.table("t").unwrap().count().unwrap(), 2);
        assert_eq!(ids(&snapshot.query(&query(n_is_7())).unwrap().to_rows()), [1, 2]);
    });
}

#[test]
fn transactions_find_no_expired_row() {
    each(|s| {
        s.set_time(END);
        let transaction = s.db.begin().unwrap();
        let table = transaction.table("t").unwrap();
        assert!(table.get(&[2.into()]).unwrap().is_none());
        assert_eq!(table.count().unwrap(), 1);
        assert_eq!(ids(&transaction.query(&query(n_is_7())).unwrap().to_rows()), [1]);
        assert!(!table.update(&[2.into()], &[("n", 8.into())]).unwrap());
        assert!(!table.delete(&[2.into()]).unwrap());
        let update = Update::new().increment("n", 1);
        assert_eq!(table.apply(&[2.into()], &update).unwrap(), Modified::Absent);
        assert_eq!(transaction.change(&revive()).unwrap(), 1);
    });
}

#[test]
fn nothing_but_a_new_row_takes_the_place_of_an_expired_one() {
    each(|s| {
        s.set_time(END);
        let (key, far) = ([2.into()], Value::Timestamp(START * 2));
        assert!(!s.table.update(&key, &[("until", far.clone())]).unwrap());
        assert!(!s.table.delete(&key).unwrap());
        let update = Update::new().set("until", far.clone());
        assert_eq!(s.table.apply(&key, &update).unwrap(), Modified::Absent);
        let always = Expr::literal(true);
        let modified = s.table.update_if(&key, &[("until", far.clone())], &always).unwrap();
        assert_eq!(modified, Modified::Absent);
        assert_eq!(s.db.apply_where("t", None, &update).unwrap(), 1);
        assert_eq!(s.db.change(&revive()).unwrap(), 1);
        let delete = Delete { table: "t".into(), filter: n_is_7(), ..Delete::default() };
        assert_eq!(s.db.change(&Change::Delete(delete)).unwrap(), 1);
        assert_eq!(s.table.count().unwrap(), 0);
        s.table.insert(&row(2, 1, far)).unwrap();
        let there = s.table.get(&key).unwrap().unwrap();
        assert_eq!(there.values()[1], 1.into(), "nothing of the expired row is left");
    });
}

#[test]
fn an_upsert_makes_a_new_row_of_an_expired_one() {
    each(|s| {
        s.set_time(END);
        s.table.upsert(&row(2, 3, Value::Null)).unwrap();
        assert_eq!(ids(&s.db.query(&query(n_is_7())).unwrap().to_rows()), [1]);
        assert_eq!(s.table.count().unwrap(), 2);
        s.db.compact(false, &mut |_, _| {}).unwrap();
        assert_eq!(s.table.count().unwrap(), 2);
    });
}

#[test]
fn a_statement_does_not_revive_a_row_that_expires_under_it() {
    let mut updated = [0, 0];
    for readings in 0..12 {
        each(|s| {
            s.set_time(END - 1);
            s.jump_after(readings, LATER);
            let revived = s.db.change(&revive()).unwrap();
            s.set_time(LATER);
            assert_eq!(s.table.count().unwrap(), revived, "after {readings} readings");
            // The snapshot and the commit read the clock, at the least.
            assert!(revived == 1 || readings >= 2, "after {readings} readings");
        });
        let s = Simulated::new(false);
        s.set_time(END - 1);
        s.jump_after(readings, LATER);
        updated[usize::from(s.db.change(&revive()).unwrap() == 2)] += 1;
    }
    assert!(updated[0] > 1 && updated[1] > 1, "{updated:?}");
}

#[test]
fn a_transaction_does_not_revive_a_row_that_has_expired_since_it_began() {
    let attempts: [fn(&Transaction) -> esker::Result<()>; 3] = [
        |t| t.table("t")?.update(&[2.into()], &[("until", Value::Null)]).map(drop),
        |t| t.table("t")?.apply(&[2.into()], &Update::new().unset("until")).map(drop),
        |t| t.change(&revive()).map(drop),
    ];
    for attempt in attempts {
        each(|s| {
            s.set_time(END - 1);
            let transaction = s.db.begin().unwrap();
            attempt(&transaction).unwrap();
            s.set_time(LATER);
            let e = transaction.commit().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
            assert!(e.to_string().contains("has expired since the transaction began"), "{e}");
            assert_eq!(s.table.count().unwrap(), 1);
            s.db.transact(attempt).unwrap();
            assert_eq!(s.table.count().unwrap(), 1);
        });
    }
}

/// Beside an older snapshot, maintenance deletes what has expired: transactions take no notice.
#[test]
fn transactions_do_not_notice_that_expired_rows_are_deleted() {
    type Attempt = (Isolation, fn(&Transaction));
    let attempts: [Attempt; 3] = [
        (Isolation::Snapshot, |t| {
            assert!(t.table("t").unwrap().get(&[3.into()]).unwrap().is_none());
            t.table("t").unwrap().upsert(&row(3, 8, Value::Null)).unwrap();
        }),
        (Isolation::Serializable, |t| {
            assert!(t.table("t").unwrap().get(&[3.into()]).unwrap().is_none());
            t.table("t").unwrap().insert(&row(4, 8, Value::Null)).unwrap();
        }),
        (Isolation::Serializable, |t| {
            assert_eq!(ids(&t.query(&query(n_is_7())).unwrap().to_rows()), [1]);
            t.table("t").unwrap().insert(&row(4, 8, Value::Null)).unwrap();
        }),
    ];
    for (isolation, attempt) in attempts {
        let s = Simulated::new(true);
        let older = s.db.snapshot().unwrap();
        s.table.insert(&row(3, 7, Value::Timestamp(END))).unwrap();
        s.db.wait_idle().unwrap();
        s.set_time(LATER);
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = s.db.begin_with(options).unwrap();
        attempt(&transaction);
        s.db.wait_idle().unwrap();
        assert_eq!(s.db.info().tables[0].live_rows, 1, "they are deleted");
        transaction.commit().unwrap();
        assert_eq!(s.table.count().unwrap(), 2);
        assert_eq!(older.table("t").unwrap().count().unwrap(), 2);
    }
}

#[test]
fn operators_move_the_end_of_a_row() {
    each(|s| {
        s.table.apply(&[2.into()], &Update::new().max("until", Value::Timestamp(LATER))).unwrap();
        s.set_time(END);
        assert_eq!(s.table.count().unwrap(), 2);
        s.table.apply(&[2.into()], &Update::new().current_time("until")).unwrap();
        assert_eq!(s.table.count().unwrap(), 1);
    });
}
