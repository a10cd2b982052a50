//! Unique indexes of tables whose rows expire: a row that has expired holds no value, whoever asks
//! for it, and does not come back where another one has taken it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use crate::fixture::hand_clock::HandClock;
use esker::{
    Alteration, DataType, Database, ErrorKind, NewIndex, Options, Schema, Table, Update, Value,
};
use esker_query::model::{self, Change, ConflictUpdate, Expr, Insert, OnConflict, Operator};
use esker_vfs::Environment;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const START: i64 = 1_000_000_000_000;
const END: i64 = START + 10;

struct Case {
    db: Database,
    table: Table,
    clock: Arc<HandClock>,
    machine: Simulation,
}

fn row(id: i64, mail: &str, until: Option<i64>) -> Vec<Value> {
    vec![id.into(), mail.into(), until.map_or(Value::Null, Value::Timestamp)]
}

fn open(clock: &Arc<HandClock>, machine: &Simulation) -> Database {
    let environment = Environment { clock: Arc::clone(clock) as _, ..machine.environment() };
    let options = Options::new().background(false).environment(environment);
    options.small_group_limit(0).segment_limit(64).open("db").unwrap()
}

impl Case {
    /// Row 1 stays, rows 2 and 3 expire at `END`; in a segment or in a group.
    fn new(is_sealed: bool) -> Self {
        let clock = HandClock::new(START);
        let machine = Simulation::new(1, SimOptions::default());
        let db = open(&clock, &machine);
        let schema = Schema::builder()
            .field("id", DataType::I64)
            .field("mail", DataType::Text)
            .nullable("until", DataType::Timestamp)
            .primary_key(["id"])
            .add_index(NewIndex::new("by_mail", ["mail"]).unique())
            .expires_by("until");
        let table = db.create_table("t", schema.build().unwrap()).unwrap();
        table.insert(&row(1, "stays", None)).unwrap();
        table.insert(&row(2, "two", Some(END))).unwrap();
        table.insert(&row(3, "three", Some(END))).unwrap();
        if is_sealed {
            db.compact(true, &mut |_, _| {}).unwrap();
        }
        Self { db, table, clock, machine }
    }

    fn rows(&self) -> Vec<(i64, String)> {
        let rows = self.table.snapshot().unwrap().rows().unwrap();
        let mut rows: Vec<_> = rows
            .into_iter()
            .map(|(_, row)| match &row[..2] {
                [Value::Int(id), Value::Text(mail)] => (*id, mail.clone()),
                other => panic!("{other:?}"),
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    fn is_sound(&self) {
        assert_eq!(self.db.check().unwrap().problems, []);
        assert_eq!(self.db.recount(true).unwrap(), []);
    }

    /// The rows are these, now, after a crash, and after all has been merged.
    fn expect(mut self, wanted: &[(i64, &str)]) {
        let wanted: Vec<_> = wanted.iter().map(|(id, mail)| (*id, (*mail).to_owned())).collect();
        assert_eq!(self.rows(), wanted);
        self.is_sound();
        let image = self.machine.crash_image(CrashChoice::KeepNone);
        self.machine = Simulation::from_image(&image, 2, SimOptions::default());
        self.db = open(&self.clock, &self.machine);
        self.table = self.db.table("t").unwrap();
        assert_eq!(self.rows(), wanted, "after a crash");
        self.is_sound();
        self.db.compact(true, &mut |_, _| {}).unwrap();
        assert_eq!(self.rows(), wanted, "merged");
        self.is_sound();
        for (_, mail) in &wanted {
            let again = self.table.insert(&row(99, mail, None));
            assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
        }
    }
}

/// Each case with the rows in a group and in a segment; before their end the value is taken.
fn each(put: impl Fn(&Case) -> esker::Result<()>, wanted: &[(i64, &str)]) {
    for is_sealed in [false, true] {
        let case = Case::new(is_sealed);
        case.clock.set(END - 1);
        let e = put(&case).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
        assert_eq!(case.rows().len(), 3);
        case.clock.set(END);
        put(&case).unwrap();
        case.expect(wanted);
    }
}

#[test]
fn an_insert_takes_the_value_of_an_expired_row() {
    each(|case| case.table.insert(&row(4, "two", None)).map(drop), &[(1, "stays"), (4, "two")]);
}

#[test]
fn many_inserts_take_values_of_expired_rows() {
    let rows = [row(4, "two", None), row(5, "three", None), row(6, "new", None)];
    let wanted = [(1, "stays"), (4, "two"), (5, "three"), (6, "new")];
    each(|case| case.table.insert_many(&rows).map(drop), &wanted);
}

#[test]
fn an_update_takes_the_value_of_an_expired_row() {
    each(|case| case.table.update(&[1.into()], &[("mail", "two".into())]).map(drop), &[(1, "two")]);
    each(
        |case| case.table.apply(&[1.into()], &Update::new().set("mail", "two")).map(drop),
        &[(1, "two")],
    );
    each(|case| case.table.upsert(&row(1, "two", None)).map(drop), &[(1, "two")]);
}

#[test]
fn an_expired_row_whose_key_and_value_are_put_again_is_ended_once() {
    for is_sealed in [false, true] {
        let case = Case::new(is_sealed);
        case.clock.set(END);
        case.table.insert_many(&[row(2, "three", None), row(3, "two", None)]).unwrap();
        case.table.insert(&row(4, "four", None)).unwrap();
        case.expect(&[(1, "stays"), (2, "three"), (3, "two"), (4, "four")]);
    }
}

#[test]
fn a_statement_with_on_conflict_inserts_beside_an_expired_row() {
    for is_sealed in [false, true] {
        for within in [false, true] {
            let case = Case::new(is_sealed);
            let put = |id: i64, mail: &str| {
                let values = row(id, mail, None).into_iter().map(Expr::literal).collect();
                let set = vec![("until".into(), Expr::literal(Value::Null))];
                let on_conflict = OnConflict::Update(ConflictUpdate { set, filter: None });
                let conflict_key = vec!["mail".into()];
                let insert = Insert::values("t", vec![values]);
                let change = Change::Insert(Insert { on_conflict, conflict_key, ..insert });
                match within {
                    false => case.db.change(&change).unwrap(),
                    true => case.db.transact(|t| t.change(&change)).unwrap(),
                };
            };
            put(7, "three");
            case.clock.set(END);
            put(8, "two");
            put(9, "three");
            // Row 3 has no end any more.
            case.expect(&[(1, "stays"), (3, "three"), (8, "two")]);
        }
    }
}

#[test]
fn a_load_takes_values_of_expired_rows() {
    for count in [1, 100] {
        let mut wanted: Vec<(i64, String)> = vec![(1, "stays".into()), (4, "two".into())];
        wanted.extend((10..10 + count).map(|id| (id, format!("mail {id}"))));
        let wanted: Vec<_> = wanted.iter().map(|(id, mail)| (*id, mail.as_str())).collect();
        each(
            |case| {
                let mut load = case.table.load()?;
                load.push_row(&row(4, "two", None))?;
                (10..10 + count)
                    .try_for_each(|id| load.push_row(&row(id, &format!("mail {id}"), None)))?;
                load.finish().map(drop)
            },
            &wanted,
        );
    }
}

#[test]
fn a_transaction_takes_the_value_of_an_expired_row() {
    each(
        |case| case.db.transact(|t| t.table("t")?.insert(&row(4, "two", None)).map(drop)),
        &[(1, "stays"), (4, "two")],
    );
    // It has expired since the transaction began.
    let case = Case::new(true);
    let transaction = case.db.begin().unwrap();
    transaction.table("t").unwrap().insert(&row(4, "two", None)).unwrap();
    case.clock.set(END);
    transaction.commit().unwrap();
    case.expect(&[(1, "stays"), (4, "two")]);
}

#[test]
fn an_older_snapshot_goes_on_seeing_the_row_that_has_lost_its_value() {
    for is_sealed in [false, true] {
        let case = Case::new(is_sealed);
        let before = case.db.snapshot().unwrap();
        case.clock.set(END);
        case.table.insert(&row(4, "two", None)).unwrap();
        case.db.compact(true, &mut |_, _| {}).unwrap();
        assert_eq!(before.table("t").unwrap().count().unwrap(), 3);
        let is_two = Expr::field("mail").binary(Operator::Eq, Expr::literal("two"));
        let query = model::Query { filter: Some(is_two), ..model::Query::table("t") };
        let found = before.query(&query).unwrap().to_rows();
        assert_eq!(found, [row(2, "two", Some(END))]);
        drop(before);
        case.expect(&[(1, "stays"), (4, "two")]);
    }
}

#[test]
fn an_index_that_is_made_later_is_not_disturbed_by_expired_rows() {
    for is_sealed in [false, true] {
        let case = Case::new(is_sealed);
        case.db.drop_index("t", "by_mail").unwrap();
        case.table.insert(&row(4, "two", None)).unwrap();
        let unique = || NewIndex::new("by_mail", ["mail"]).unique();
        let e = case.db.create_index("t", unique()).unwrap_err();
        assert!(e.to_string().contains("is in two rows"), "{e}");
        case.clock.set(END);
        case.db.create_index("t", unique()).unwrap();
        case.db.alter_table("t", &[Alteration::SetExpiry(None)]).unwrap();
        case.expect(&[(1, "stays"), (4, "two")]);
    }
}
