//! Answers row by row.

use std::sync::Arc;
use std::time::Duration;

use esker::{DataType, Database, ErrorKind, Options, Query, Schema, Value};
use esker_query::model::{Expr, Operator, OrderBy};
use esker_vfs::{Environment, Event, Task, TaskHandle, Tasks, sim};

const COUNT: i64 = 600_000;

/// A machine with one core: a query reads 262,144 rows for each at a time.
#[derive(Debug)]
struct OneCore(Arc<dyn Tasks>);

impl Tasks for OneCore {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        self.0.spawn(name, task)
    }

    fn spawn_thread(
        &self,
        name: &str,
        job: Box<dyn FnOnce() + Send>,
    ) -> Option<Arc<dyn TaskHandle>> {
        self.0.spawn_thread(name, job)
    }

    fn wait(&self, event: &Event, seen: u32) {
        self.0.wait(event, seen);
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        self.0.wait_timeout(event, seen, timeout);
    }

    fn signal(&self, event: &Event, count: usize) {
        self.0.signal(event, count);
    }

    fn pause(&self) {}

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        self.0.parallel(count, job);
    }

    fn parallelism(&self) -> usize {
        1
    }
}

fn one_core() -> Environment {
    let machine = Environment::os();
    Environment { tasks: Arc::new(OneCore(machine.tasks)), ..machine }
}

/// A table of 19 MB, of which a query holds no more than 12.
fn numbers() -> Database {
    let options = Options::new().environment(one_core()).query_memory_limit(12 << 20);
    let db = options.memory().unwrap();
    fill(&db);
    db
}

fn fill(db: &Database) {
    let schema = Schema::builder().field("n", DataType::I64).field("word", DataType::Text);
    let table = db.create_table("t", schema.primary_key(["n"]).build().unwrap()).unwrap();
    let rows: Vec<_> = (0..COUNT).map(|n| vec![n.into(), format!("{n:0>20}").into()]).collect();
    table.insert_many(&rows).unwrap();
}

#[test]
fn an_answer_larger_than_a_query_may_hold_comes_row_by_row() {
    let db = numbers();
    let query = Query::table("t");
    assert_eq!(db.query(&query).unwrap_err().kind(), ErrorKind::OverBudget);
    let (mut count, mut sum) = (0, 0);
    for row in db.query_rows(&query).unwrap() {
        let row = row.unwrap();
        let Some(Value::Int(n)) = row.get("n") else { panic!("{row:?}") };
        (count, sum) = (count + 1, sum + n);
    }
    assert_eq!((count, sum), (COUNT, COUNT * (COUNT - 1) / 2));
    let pairs = db.query_rows(&query).unwrap().records::<(i64, String)>().unwrap();
    assert_eq!(pairs.columns().len(), 2);
    assert!(pairs.map(Result::unwrap).all(|(n, word)| word.parse() == Ok(n)));
}

#[test]
fn rows_are_as_of_the_commit_at_which_they_were_asked_for() {
    let db = numbers();
    let mut query = Query::table("t");
    query.select(Expr::field("n"));
    let mut rows = db.query_rows(&query).unwrap().records::<i64>().unwrap();
    let first = rows.next().unwrap().unwrap();
    assert_eq!(first, 0);
    db.truncate_table("t").unwrap();
    assert_eq!(rows.map(Result::unwrap).count() as i64, COUNT - 1);
    assert_eq!(db.query_rows(&query).unwrap().count(), 0);
    let transaction = db.begin().unwrap();
    transaction.table("t").unwrap().insert(&[1i64.into(), "one".into()]).unwrap();
    let rows = transaction.query_rows(&query).unwrap();
    transaction.rollback();
    assert_eq!(rows.records::<i64>().unwrap().map(Result::unwrap).collect::<Vec<_>>(), [1]);
}

#[test]
fn rows_that_are_dropped_end_their_query() {
    let db = numbers();
    for taken in [0, 1, 10_000] {
        let mut rows = db.query_rows(&Query::table("t")).unwrap();
        assert!(rows.by_ref().take(taken).all(|row| row.is_ok()));
        assert_eq!(db.snapshots().len(), 1);
        drop(rows);
        assert_eq!(db.snapshots().len(), 0, "the query and its snapshot are gone");
    }
    let mut rows = db.query_rows(&Query::table("t")).unwrap();
    assert_eq!(rows.by_ref().count() as i64, COUNT);
    assert!(rows.next().is_none());
    assert_eq!(db.snapshots().len(), 0, "at the end, too");
}

#[test]
fn an_error_comes_at_once_or_in_place_of_a_row() {
    let db = numbers();
    let mut query = Query::table("t");
    query.select(Expr::field("m"));
    assert_eq!(db.query_rows(&query).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(db.query_rows(&Query::table("u")).unwrap_err().kind(), ErrorKind::NotFound);

    // Past the greatest i64 from row 50,000 on.
    let mut query = Query::table("t");
    let most = Expr::literal(i64::MAX - 50_000);
    query.select(Expr::field("n").binary(Operator::Add, most));
    let rows: Vec<_> = db.query_rows(&query).unwrap().collect();
    let (last, before) = rows.split_last().unwrap();
    assert!(before.len() <= 50_001 && before.iter().all(Result::is_ok));
    assert_eq!(last.as_ref().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(db.snapshots().len(), 0);
}

#[test]
fn sorted_rows_come_from_temporary_files_beyond_the_budget() {
    let machine = sim::Simulation::new(1, sim::Options::default()).environment();
    let files = Environment { files: machine.files, ..one_core() };
    let options = Options::new().environment(files).query_memory_limit(12 << 20);
    let db = options.open("database").unwrap();
    fill(&db);
    let mut query = Query::table("t");
    let expr = Expr::field("word");
    query.order_by.push(OrderBy { expr, descending: true, nulls_first: None });
    let rows = db.query_rows(&query).unwrap().records::<(i64, String)>().unwrap();
    assert!(rows.map(|row| row.unwrap().0).eq((0..COUNT).rev()));
}

#[test]
fn without_a_thread_the_answer_is_held() {
    let machine = sim::Simulation::new(1, sim::Options::default()).environment();
    let db = Options::new().environment(machine).open("database").unwrap();
    fill(&db);
    assert_eq!(db.query_rows(&Query::table("t")).unwrap().count() as i64, COUNT);
}
