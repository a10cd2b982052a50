//! Transactions beside a model: random changes, questions and conflicts, while others commit and
//! rows are sealed and merged.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use esker::{
    DataType, Database, ErrorKind, IndexUse, Isolation, NewIndex, Options, Query, Schema, Table,
    Transaction, TransactionOptions, Value,
};
use esker_query::model::{Aggregate, Change, Delete, Expr, Operator, OrderBy, Update};
use esker_vfs::sim::{Generator, Options as SimOptions, Simulation};

type Rows = BTreeMap<i64, (i64, String)>;

const KEYS: i64 = 60;

fn row(id: i64, (n, name): &(i64, String)) -> Vec<Value> {
    vec![id.into(), (*n).into(), name.as_str().into()]
}

fn draw(generator: &mut Generator) -> (i64, String) {
    (i64::try_from(generator.below(8)).unwrap(), ["ada", "bob", "eve"][generator.index(3)].into())
}

fn key(generator: &mut Generator) -> i64 {
    i64::try_from(generator.below(KEYS.unsigned_abs())).unwrap()
}

fn found(rows: &[Vec<Value>]) -> Rows {
    let value = |row: &Vec<Value>| match (&row[0], &row[1], &row[2]) {
        (Value::Int(id), Value::Int(n), Value::Text(name)) => (*id, (*n, name.clone())),
        other => panic!("{other:?}"),
    };
    rows.iter().map(value).collect()
}

/// Asks in several ways, and compares with the model.
fn ask(transaction: &Transaction, model: &Rows, generator: &mut Generator) {
    let within = transaction.table("t").unwrap();
    assert_eq!(within.count().unwrap(), model.len() as u64);
    let id = key(generator);
    let there = within.get(&[id.into()]).unwrap().map(|row| found(&[row.values().to_vec()]));
    assert_eq!(there.and_then(|rows| rows.get(&id).cloned()), model.get(&id).cloned());
    let in_range: Vec<Vec<Value>> = within
        .range((Bound::Included(vec![id.into()]), Bound::Unbounded))
        .unwrap()
        .map(|row| row.unwrap().values().to_vec())
        .collect();
    assert!(in_range.is_sorted());
    assert_eq!(found(&in_range), model.range(id..).map(|(k, v)| (*k, v.clone())).collect());
    let n = i64::try_from(generator.below(8)).unwrap();
    let operator = [Operator::Eq, Operator::Lt, Operator::Gte, Operator::Neq][generator.index(4)];
    let keeps = |v: i64| match operator {
        Operator::Eq => v == n,
        Operator::Lt => v < n,
        Operator::Gte => v >= n,
        _ => v != n,
    };
    let matching: Rows =
        model.iter().filter(|(_, v)| keeps(v.0)).map(|(k, v)| (*k, v.clone())).collect();
    let filter = Expr::field("n").binary(operator, Expr::literal(n));
    let mut query = Query::table("t");
    query.filter = Some(filter.clone());
    assert_eq!(found(&transaction.query(&query).unwrap().to_rows()), matching, "{query}");
    query.select(Expr::count()).select(Expr::aggregate(Aggregate::Max, Expr::field("n")));
    let max = matching.values().map(|v| Value::Int(v.0)).max().unwrap_or_default();
    let answer = transaction.query(&query).unwrap().to_rows();
    assert_eq!(answer, [[Value::Uint(matching.len() as u64), max]], "{query}");
    let mut query = Query::table("t");
    query.select(Expr::field("name")).select(Expr::count());
    query.group_by = vec![Expr::field("name")];
    query.filter = Some(filter);
    query.order_by =
        vec![OrderBy { expr: Expr::field("name"), descending: false, nulls_first: None }];
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    matching.values().for_each(|v| *groups.entry(&v.1).or_default() += 1);
    let groups: Vec<Vec<Value>> =
        groups.into_iter().map(|(name, n)| vec![name.into(), n.into()]).collect();
    assert_eq!(transaction.query(&query).unwrap().to_rows(), groups, "{query}");
    let mut query = Query::table("t");
    query.select(Expr::aggregate(Aggregate::Min, Expr::field("n")));
    let min = model.values().map(|v| Value::Int(v.0)).min().unwrap_or_default();
    assert_eq!(transaction.query(&query).unwrap().to_rows(), [[min]]);
}

/// Changes something, in the model and in the transaction.
fn act(
    transaction: &Transaction,
    model: &mut Rows,
    changed: &mut BTreeSet<i64>,
    generator: &mut Generator,
) {
    let within = transaction.table("t").unwrap();
    let (id, value) = (key(generator), draw(generator));
    match generator.below(7) {
        0 | 1 => {
            let outcome = within.insert(&row(id, &value)).map_err(|e| e.kind());
            assert_eq!(outcome.is_ok(), !model.contains_key(&id), "{outcome:?}");
            if outcome.is_ok() {
                changed.insert(id);
            }
            model.entry(id).or_insert(value);
        }
        2 => {
            within.upsert(&row(id, &value)).unwrap();
            changed.insert(id);
            model.insert(id, value);
        }
        3 => {
            let updated = within.update(&[id.into()], &[("n", value.0.into())]).unwrap();
            assert_eq!(updated, model.contains_key(&id));
            if let Some(there) = model.get_mut(&id) {
                there.0 = value.0;
                changed.insert(id);
            }
        }
        4 => {
            let deleted = within.delete(&[id.into()]).unwrap();
            assert_eq!(deleted, model.remove(&id).is_some());
            if deleted {
                changed.insert(id);
            }
        }
        5 => {
            let filter = Some(Expr::field("n").binary(Operator::Eq, Expr::literal(value.0)));
            let delete = Delete { table: "t".into(), filter, ..Delete::default() };
            let rows = transaction.change(&Change::Delete(delete)).unwrap();
            let gone: Vec<i64> =
                model.iter().filter(|(_, v)| v.0 == value.0).map(|(k, _)| *k).collect();
            assert_eq!(rows, gone.len() as u64);
            gone.iter().for_each(|id| drop(model.remove(id)));
            changed.extend(gone);
        }
        _ => {
            let filter = Some(Expr::field("id").binary(Operator::Lt, Expr::literal(id / 4)));
            let more = Expr::field("n").binary(Operator::Add, Expr::literal(1i64));
            let set = vec![("n".to_owned(), more)];
            let update = Update { table: "t".into(), set, filter, ..Update::default() };
            let rows = transaction.change(&Change::Update(update)).unwrap();
            let mut updated = 0;
            for (_, v) in model.range_mut(..id / 4) {
                v.0 += 1;
                updated += 1;
            }
            assert_eq!(rows, updated);
            changed.extend(model.range(..id / 4).map(|(k, _)| *k));
        }
    }
}

fn open(generator: &mut Generator, spills: bool) -> (Simulation, Database, Table) {
    let machine = Simulation::new(3, SimOptions::default());
    let uses = [IndexUse::Always, IndexUse::WhenCheaper, IndexUse::Never];
    let options = Options::new().background(false).environment(machine.environment());
    let options = options.index_use(uses[generator.index(3)]);
    // A row takes some two hundred bytes.
    let options = match spills {
        true => options.transaction_limit(1 + generator.index(2_000)),
        false => options,
    };
    let rows = 4 + generator.index(30);
    let options = options.group_limit(rows, 1 << 30).small_group_limit(0).segment_limit(2 * rows);
    let db = options.open("db").unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = schema.field("name", DataType::Text).primary_key(["id"]);
    let schema = if generator.chance(300_000) { schema.ordered_by_key() } else { schema };
    let t = db.create_table("t", schema.build().unwrap()).unwrap();
    if generator.chance(700_000) {
        db.create_index("t", NewIndex::new("by n", ["n"])).unwrap();
        db.create_index("t", NewIndex::new("by name", ["name", "n"])).unwrap();
    }
    (machine, db, t)
}

/// A transaction under way.
struct Run<'a> {
    db: &'a Database,
    transaction: &'a Transaction,
    model: Rows,
    changed: BTreeSet<i64>,
    of_others: BTreeSet<i64>,
    put_by_others: Rows,
    asked: bool,
}

impl<'a> Run<'a> {
    fn new(db: &'a Database, transaction: &'a Transaction, committed: &Rows) -> Self {
        let (model, changed, of_others) = (committed.clone(), BTreeSet::new(), BTreeSet::new());
        let (put_by_others, asked) = (Rows::new(), false);
        Self { db, transaction, model, changed, of_others, put_by_others, asked }
    }

    fn step(&mut self, generator: &mut Generator) {
        let Self { db, transaction, model, changed, .. } = self;
        match generator.below(10) {
            0 => {
                let savepoint = transaction.savepoint();
                let before = (model.clone(), changed.clone());
                for _ in 0..generator.below(5) {
                    act(transaction, model, changed, generator);
                }
                if generator.chance(600_000) {
                    transaction.rollback_to(savepoint).unwrap();
                    (*model, *changed) = before;
                }
                if generator.chance(500_000) {
                    transaction.release(savepoint).unwrap();
                }
            }
            1 | 2 if generator.chance(400_000) => {
                let (id, value) = (key(generator), draw(generator));
                db.table("t").unwrap().upsert(&row(id, &value)).unwrap();
                self.put_by_others.insert(id, value);
                self.of_others.insert(id);
            }
            1 => db.wait_idle().unwrap(),
            2 => drop(db.compact(false, &mut |_, _| {}).unwrap()),
            3 | 4 => {
                ask(transaction, model, generator);
                self.asked = true;
            }
            _ => act(transaction, model, changed, generator),
        }
    }
}

fn check(seed: u64, spills: bool) {
    let mut generator = Generator::new(seed, 0);
    let (_machine, db, t) = open(&mut generator, spills);
    let mut committed = Rows::new();
    for _ in 0..12 {
        let isolation = match generator.chance(500_000) {
            true => Isolation::Serializable,
            false => Isolation::Snapshot,
        };
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = db.begin_with(options).unwrap();
        let mut run = Run::new(&db, &transaction, &committed);
        for _ in 0..generator.below(14) {
            run.step(&mut generator);
        }
        let Run { model, changed, of_others, put_by_others, asked, .. } = run;
        committed.extend(put_by_others);
        if generator.chance(200_000) {
            transaction.rollback();
            continue;
        }
        let is_unchanged = transaction.is_unchanged();
        match transaction.commit() {
            Ok(_) => {
                let is_lost = !is_unchanged && !changed.is_disjoint(&of_others);
                assert!(!is_lost, "seed {seed}: a lost update");
                let reads = isolation == Isolation::Serializable && asked && !is_unchanged;
                assert!(!reads || of_others.is_empty(), "seed {seed}: reads were not checked");
                for id in changed.difference(&of_others) {
                    match model.get(id) {
                        Some(value) => drop(committed.insert(*id, value.clone())),
                        None => drop(committed.remove(id)),
                    }
                }
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "seed {seed}: {e}");
                assert!(!of_others.is_empty(), "seed {seed}: nobody else was there: {e}");
                if isolation == Isolation::Snapshot {
                    // A row that came and went within the transaction counts as changed.
                    assert!(!changed.is_disjoint(&of_others), "seed {seed}: {e}");
                }
            }
        }
        let rows: Vec<Vec<Value>> =
            t.snapshot().unwrap().rows().unwrap().into_iter().map(|(_, row)| row).collect();
        assert_eq!(found(&rows), committed, "seed {seed}");
    }
}

#[test]
fn transactions_agree_with_a_model() {
    (0..300).for_each(|seed| check(seed, false));
}

#[test]
fn transactions_that_write_their_changes_to_files_agree_with_a_model() {
    (0..300).for_each(|seed| check(seed, true));
}
