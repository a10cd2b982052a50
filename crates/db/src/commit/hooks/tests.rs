use std::sync::Arc;
use std::time::Duration;

use esker_format::{Schema, Value};

use super::*;
use crate::table_version::TableVersion;
use crate::{
    Alteration, DataType, Durability, Error, ErrorKind, Field, FieldId, Options, PutOptions,
    Result, Table,
};

/// Writes into a feed how many rows of another table each commit puts.
struct Feed {
    to: TableVersion,
    refuses: i64,
}

impl CommitHook for Feed {
    fn extend_write_set(&self, commit: &mut dyn StagedCommit<'_>) -> Result<()> {
        let mut rows = Vec::new();
        for writes in commit.writes() {
            let count = i64::try_from(writes.staged.put_count()).unwrap();
            if count == self.refuses {
                return Err(Error::invalid("the feed refuses it"));
            }
            rows.push(vec![Value::Int(count), Value::Text(writes.current.core.name().to_string())]);
        }
        commit.add(self.to.clone(), &mut |writer, added| {
            for row in rows.drain(..) {
                let prepared = writer.prepare_put(&row, false)?;
                added.staged.put(row, prepared);
            }
            Ok(())
        })
    }
}

/// Adds a row that must be new, until five seconds have passed.
struct Mark(TableVersion);

impl CommitHook for Mark {
    fn extend_write_set(&self, commit: &mut dyn StagedCommit<'_>) -> Result<()> {
        let end = Value::Timestamp(commit.now().date_us + 5_000_000);
        commit.add(self.0.clone(), &mut |writer, added| {
            let row = vec![Value::Int(1), end.clone()];
            let prepared = writer.prepare_put(&row, true)?;
            added.staged.put(row, prepared);
            Ok(())
        })
    }
}

fn table(db: &crate::Database, name: &str) -> Table {
    let schema = Schema::builder().field("id", DataType::I64).nullable("v", DataType::Text);
    db.create_table(name, schema.primary_key(["id"]).build().unwrap()).unwrap()
}

fn fed(db: &crate::Database) -> Vec<Vec<Value>> {
    let snapshot = db.table("feed").unwrap().snapshot().unwrap();
    snapshot.rows().unwrap().into_iter().map(|(_, row)| row).collect()
}

#[test]
fn what_a_hook_adds_is_in_the_same_commit() {
    let machine = esker_vfs::sim::Simulation::new(1, esker_vfs::sim::Options::default());
    let options = || Options::new().environment(machine.environment()).background(false);
    {
        let db = options().commit_limit(4 << 10).open("db").unwrap();
        let (feed, orders) = (table(&db, "feed"), table(&db, "orders"));
        let hook = Feed { to: feed.current(), refuses: 7 };
        db.engine().hooks.register(Arc::new(hook));
        let row = |id: i64| vec![Value::Int(id), Value::Null];
        let rows = |ids: std::ops::Range<i64>| ids.map(row).collect::<Vec<_>>();
        let commits = || db.info().published_commit;
        let before = commits();
        orders.insert(&row(1)).unwrap();
        assert_eq!(commits(), before + 1, "one frame has both");
        orders.insert_many(&rows(10..12)).unwrap();
        // By way of segments.
        orders.insert_many(&rows(1_000..2_000)).unwrap();
        let mut batch = db.batch();
        for id in 20..23 {
            batch.upsert(&orders, &row(id)).unwrap();
        }
        batch.commit().unwrap();
        let transaction = db.begin().unwrap();
        let within = transaction.table("orders").unwrap();
        for row in rows(30..34) {
            within.insert(&row).unwrap();
        }
        transaction.commit().unwrap();
        assert_eq!(fed(&db).len(), 5);
        let before = commits();
        let refused = orders.insert_many(&rows(40..47)).unwrap_err();
        assert!(refused.to_string().contains("the feed refuses it"), "{refused}");
        assert_eq!((commits(), fed(&db).len()), (before, 5), "nothing is changed");
        assert!(orders.get(&[Value::Int(40)]).unwrap().is_none());
    }
    let db = options().open("db").unwrap();
    let counts: Vec<Value> = fed(&db).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(counts, [1, 2, 1_000, 3, 4].map(Value::Int));
    assert_eq!(db.check().unwrap().problems, []);
}

/// A put was as durable as the database once a hook had added to its commit.
#[test]
fn a_put_is_as_durable_as_it_asks_whatever_hooks_add() {
    let machine = esker_vfs::sim::Simulation::new(1, esker_vfs::sim::Options::default());
    let at_most = Duration::from_secs(3_600);
    for (durability, sync) in [(Durability::Sync, false), (Durability::Async { at_most }, true)] {
        let options = Options::new().environment(machine.environment()).background(false);
        let name = if sync { "async" } else { "sync" };
        let db = options.durability(durability).open(name).unwrap();
        let (feed, bucket) = (table(&db, "feed"), db.bucket("b").unwrap());
        db.sync().unwrap();
        db.engine().hooks.register(Arc::new(Feed { to: feed.current(), refuses: 7 }));
        bucket.with(PutOptions::new().sync(sync)).put("k", "v").unwrap();
        let durable = db.engine().journal.log().unwrap().durable();
        assert_eq!(durable >= db.info().published_commit, sync, "{name}");
        assert_eq!(fed(&db).len(), 1, "{name}");
    }
}

/// A table whose rows are there for a time.
fn marks(db: &crate::Database) -> Table {
    let schema = Schema::builder().field("id", DataType::I64);
    let schema = schema.nullable("until", DataType::Timestamp).primary_key(["id"]);
    db.create_table("marks", schema.expires_by("until").build().unwrap()).unwrap()
}

/// Rows were staged for a schema that had changed, and at no time.
#[test]
fn what_a_hook_adds_is_staged_as_all_else() {
    let machine = esker_vfs::sim::Simulation::new(1, esker_vfs::sim::Options::default());
    let options = || Options::new().environment(machine.environment()).background(false);
    let put = |orders: &Table, id: i64| orders.insert(&[Value::Int(id), Value::Null]);
    let add = || {
        let field = Field::new(FieldId(0), "more".into(), DataType::I64, true);
        [Alteration::AddField(field)]
    };
    let db = options().open("marks").unwrap();
    let (marks_table, orders) = (marks(&db), table(&db, "orders"));
    db.engine().hooks.register(Arc::new(Mark(marks_table.current())));
    put(&orders, 1).unwrap();
    let e = put(&orders, 2).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "the mark is there");
    machine.advance_clock(Duration::from_secs(10));
    put(&orders, 3).unwrap();
    machine.advance_clock(Duration::from_secs(10));
    // A table that the commit changes gets no second part, and no rows of another schema.
    let e = marks_table.upsert(&[Value::Int(2), Value::Null]).unwrap_err();
    assert!(e.to_string().contains("a hook adds what is changed already"), "{e}");
    assert_eq!(db.alter_table("marks", &add()).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(db.drop_table("marks").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((marks_table.count().unwrap(), orders.count().unwrap()), (0, 2));

    let db = options().open("stale").unwrap();
    let (marks_table, orders) = (marks(&db), table(&db, "orders"));
    let stale = marks_table.current();
    db.alter_table("marks", &add()).unwrap();
    db.engine().hooks.register(Arc::new(Mark(stale)));
    assert_eq!(put(&orders, 1).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((marks_table.count().unwrap(), orders.count().unwrap()), (0, 0));
}
