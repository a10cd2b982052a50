use std::sync::Arc;

use esker_format::{Schema, Value};

use super::*;
use crate::commit::write_set::TableWrites;
use crate::table_version::TableVersion;
use crate::{DataType, Error, Options, Result, Table};

/// Writes into a feed how many rows of another table each commit puts.
struct Feed {
    to: TableVersion,
    refuses: i64,
}

impl CommitHook for Feed {
    fn extend_write_set(&self, catalogue: &mut Catalogue, set: &mut WriteSet<'_>) -> Result<()> {
        let id = self.to.core.id();
        let mut added = TableWrites::new(self.to.clone());
        for writes in set.as_slice().iter().filter(|writes| writes.current.core.id() != id) {
            let count = i64::try_from(writes.staged.put_count()).unwrap();
            if count == self.refuses {
                return Err(Error::invalid("the feed refuses it"));
            }
            let name = Value::Text(writes.current.core.name().to_string());
            let row = vec![Value::Int(count), name];
            let prepared = catalogue.entry(id)?.writer.prepare_put(&row, false)?;
            added.staged.put(row, prepared);
        }
        set.push(added);
        Ok(())
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
