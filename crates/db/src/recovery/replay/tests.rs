//! Frames that are applied again, of a log of random work.

use std::collections::BTreeMap;
use std::path::Path;

use esker_format::schema::{Alteration, NewIndex};
use esker_format::{DataType, Field, FieldId, Schema, Value};
use esker_log::RecoveredFrame;
use esker_vfs::sim::{Generator, Options as SimOptions, Simulation};

use super::*;
use crate::recovery::{choose_checkpoint, replay_with, whole_checkpoints};
use crate::{Database, ErrorKind, Options, Table, Transaction};

const DIR: &str = "db";
const TABLES: [&str; 4] = ["a", "b", "c", "d"];
const KEYS: u64 = 60;

fn options(machine: &Simulation) -> Options {
    let options = Options::new().environment(machine.environment()).background(false);
    options.group_limit(24, 1 << 20).segment_limit(16).commit_limit(1 << 10).log_reserve(0)
}

/// What a table holds: its schema, how many rows it says it has, and these, by row id.
type Rows = (Schema, u64, Vec<(u64, Vec<Value>)>);

/// What a database holds.
#[derive(Debug, PartialEq)]
struct Contents {
    tables: BTreeMap<String, Rows>,
    sequences: Vec<crate::SequenceInfo>,
}

fn contents(db: &Database) -> Contents {
    let snapshot = db.snapshot().unwrap();
    let rows_of = |name: String| {
        let table = snapshot.table(&name).unwrap();
        let mut rows = table.rows().unwrap();
        rows.sort_by_key(|(row_id, _)| *row_id);
        let count = db.table(&name).unwrap().count().unwrap();
        let schema = (**table.schema()).clone();
        (name, (schema, count, rows))
    };
    Contents { tables: db.tables().into_iter().map(rows_of).collect(), sequences: db.sequences() }
}

/// The database of a closed directory, its frames applied in some way.
fn replayed(
    machine: &Simulation,
    apply: impl FnOnce(&mut Replay<'_>, &[RecoveredFrame<'_>]) -> Result<()>,
) -> Database {
    let (environment, dir) = (machine.environment(), Path::new(DIR));
    let (whole, _) = whole_checkpoints(&environment, dir).unwrap();
    let (checkpoint, scan) = choose_checkpoint(&environment, dir, whole).unwrap();
    let frames = scan.frames().collect::<esker_log::Result<Vec<_>>>().unwrap();
    let options = options(machine).read_only(true);
    let found = (checkpoint, &scan);
    let replay = |replay: &mut Replay<'_>| apply(replay, &frames);
    Database::of(Arc::new(replay_with((environment, options, dir), None, found, replay).unwrap()))
}

/// Applies frames once, each twice, all twice, and some again over a newer state.
fn expect_same_however_applied(machine: &Simulation, random: &mut Generator) -> Contents {
    let once = contents(&replayed(machine, |replay, frames| {
        frames.iter().try_for_each(|frame| replay.apply(frame))
    }));
    let again_from = random.next_u64();
    for way in 0..3 {
        let db = replayed(machine, |replay, frames| {
            for frame in frames {
                replay.apply(frame)?;
                if way == 0 {
                    replay.apply(frame)?;
                }
            }
            let from = match way {
                0 => return Ok(()),
                1 => 0,
                _ => usize::try_from(again_from % (frames.len() as u64 + 1)).unwrap(),
            };
            frames.iter().skip(from).try_for_each(|frame| replay.apply(frame))
        });
        assert_eq!(contents(&db), once, "way {way}");
        let report = db.check().unwrap();
        assert!(report.problems.is_empty(), "way {way}: {:?}", report.problems);
    }
    once
}

fn schema(random: &mut Generator) -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).nullable("text", DataType::Text);
    let schema = schema.nullable("n", DataType::I32);
    let schema = if random.chance(700_000) { schema.primary_key(["id"]) } else { schema };
    let schema = schema.build().unwrap();
    match random.chance(500_000) {
        true => schema.alter(&[index(random)]).unwrap(),
        false => schema,
    }
}

fn index(random: &mut Generator) -> Alteration {
    let index = NewIndex::new(random.pick(["one", "two"]), [random.pick(["text", "n"])]);
    Alteration::AddIndex(if random.chance(700_000) { index.unique() } else { index })
}

fn alteration(random: &mut Generator) -> Alteration {
    let name = random.pick(["x", "y"]);
    match random.below(6) {
        0 => Alteration::AddField(Field::new(FieldId(0), name.into(), DataType::I64, true)),
        1 => Alteration::DropField(name.into()),
        2 => {
            let (field, data_type) = ("n".to_owned(), DataType::I64);
            Alteration::Widen { field, data_type, length_max: None }
        }
        3 => Alteration::DropIndex(random.pick(["one", "two"]).into()),
        4 => Alteration::RenameField { from: random.pick(["x", "y"]).into(), to: name.into() },
        _ => index(random),
    }
}

fn row(random: &mut Generator, schema: &Schema) -> Vec<Value> {
    let value = |field: &Field| match (field.data_type, field.name.as_str()) {
        (DataType::I64, "id") => Value::Int(i64::try_from(random.below(KEYS)).unwrap()),
        _ if random.chance(300_000) => Value::Null,
        (DataType::Text, _) => {
            let length = usize::try_from(random.below(60)).unwrap();
            format!("{}{}", random.below(40), "x".repeat(length)).into()
        }
        (DataType::I32, _) => Value::Int(i64::try_from(random.below(1_000)).unwrap()),
        _ => Value::Int(random.next_u64().cast_signed() >> 20),
    };
    schema.fields().iter().map(value).collect()
}

fn rows(random: &mut Generator, schema: &Schema, most: u64) -> Vec<Vec<Value>> {
    (0..=random.below(most)).map(|_| row(random, schema)).collect()
}

/// The key of a row, or a row id.
fn key(random: &mut Generator, schema: &Schema) -> Vec<Value> {
    let id = random.below(KEYS);
    match schema.key_positions() {
        [] => vec![Value::Uint(id)],
        _ => vec![Value::Int(id.cast_signed())],
    }
}

/// What is refused is no commit; damage and half a commit fail the test.
fn tolerate<R>(result: Result<R>) -> Option<R> {
    result
        .inspect_err(|e| {
            let bad = [ErrorKind::Corrupt, ErrorKind::OutcomeUnknown, ErrorKind::Poisoned];
            assert!(!bad.contains(&e.kind()), "{e}");
        })
        .ok()
}

fn change_rows(random: &mut Generator, table: &Table) {
    let schema = table.schema();
    match random.below(7) {
        0 => drop(tolerate(table.insert(&row(random, &schema)))),
        1 | 2 => drop(tolerate(table.upsert(&row(random, &schema)))),
        3 => {
            let change = [("text", row(random, &schema).swap_remove(1))];
            tolerate(table.update(&key(random, &schema), &change));
        }
        4 => drop(tolerate(table.delete(&key(random, &schema)))),
        5 => drop(tolerate(table.upsert_many(&rows(random, &schema, 40)))),
        _ => {
            let Some(mut load) = tolerate(table.load()) else { return };
            if random.chance(700_000) {
                load.replace_existing().unwrap();
            }
            for row in rows(random, &schema, 70) {
                if tolerate(load.push_row(&row)).is_none() {
                    return;
                }
            }
            tolerate(load.finish());
        }
    }
}

fn change_in_transaction(random: &mut Generator, transaction: &Transaction) -> Result<()> {
    for _ in 0..=random.below(6) {
        let name = random.pick(TABLES);
        match random.below(8) {
            0 => drop(transaction.create_table(name, schema(random))?),
            1 => transaction.drop_table(name)?,
            2 => transaction.truncate_table(name)?,
            3 => transaction.rename_table(name, random.pick(TABLES))?,
            4 => transaction.alter_table(name, &[alteration(random)])?,
            5 => {
                let table = transaction.table(name)?;
                let key = key(random, table.schema());
                table.delete(&key)?;
            }
            _ => {
                let table = transaction.table(name)?;
                let rows = rows(random, table.schema(), 30);
                table.upsert_many(&rows)?;
            }
        }
    }
    Ok(())
}

fn work(random: &mut Generator, db: &Database) {
    let name = random.pick(TABLES);
    match random.below(40) {
        0 | 1 => drop(tolerate(db.create_table(name, schema(random)))),
        2 if random.chance(300_000) => drop(tolerate(db.drop_table(name))),
        3 if random.chance(300_000) => drop(tolerate(db.truncate_table(name))),
        4 => drop(tolerate(db.rename_table(name, random.pick(TABLES)))),
        5 | 6 => drop(tolerate(db.alter_table(name, &[alteration(random)]))),
        7 => drop(tolerate(db.create_sequence(name, 1, 1))),
        8 | 9 => drop(tolerate(db.next_value(name))),
        10 if random.chance(300_000) => drop(tolerate(db.drop_sequence(name))),
        11..=16 => drop(tolerate(db.engine().maintain(false))),
        17..=20 => {
            let transaction = db.begin().unwrap();
            if tolerate(change_in_transaction(random, &transaction)).is_some() {
                tolerate(transaction.commit());
            }
        }
        _ => {
            if let Some(table) = tolerate(db.table(name)) {
                change_rows(random, &table);
            }
        }
    }
}

#[test]
fn frames_that_are_applied_again_change_nothing() {
    for seed in 0..60 {
        let machine = Simulation::new(seed, SimOptions::default());
        let mut random = Generator::new(seed, 1);
        let db = options(&machine).open(DIR).unwrap();
        for name in TABLES {
            tolerate(db.create_table(name, schema(&mut random)));
        }
        let steps = 40 + random.below(200);
        for step in 0..steps {
            if step > 0 && random.chance(5_000) {
                db.checkpoint().unwrap();
            }
            work(&mut random, &db);
        }
        let before = contents(&db);
        db.close().unwrap();
        let after = expect_same_however_applied(&machine, &mut random);
        assert_eq!(after, before, "seed {seed}");
    }
}

/// How many rows the row groups of a table have.
fn row_counts(db: &Database, name: &str) -> Vec<usize> {
    let view = db.table(name).unwrap().core().view();
    view.row_groups.iter().map(RowGroup::row_count).collect()
}

#[test]
fn a_frame_that_is_replayed_in_pieces_goes_to_one_group() {
    const ROWS: u64 = 10_000;
    let machine = Simulation::new(1, SimOptions::default());
    let db = options(&machine).commit_limit(1 << 20).group_limit(4_500, 1 << 30).open(DIR).unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("n", DataType::I32);
    let table = db.create_table("a", schema.primary_key(["id"]).build().unwrap()).unwrap();
    let row = |id: u64, n: i64| vec![Value::Int(id.cast_signed()), Value::Int(n)];
    table.insert(&row(ROWS, 0)).unwrap();
    table.insert_many(&(0..ROWS).map(|id| row(id, 1)).collect::<Vec<_>>()).unwrap();
    let mut batch = db.batch();
    for id in 0..ROWS {
        match id % 2 {
            0 => batch.upsert(&table, &row(id, 2)).unwrap(),
            _ => batch.delete(&table, &[Value::Int(id.cast_signed())]).unwrap(),
        };
    }
    batch.commit().unwrap();
    let (before, counts) = (contents(&db), row_counts(&db, "a"));
    assert_eq!(counts, [10_001, 5_000]);
    drop(table);
    db.close().unwrap();
    for times in 1..=2 {
        let db = replayed(&machine, |replay, frames| {
            (0..times).try_for_each(|_| frames.iter().try_for_each(|frame| replay.apply(frame)))
        });
        assert_eq!(row_counts(&db, "a"), counts, "applied {times} times");
        assert_eq!(contents(&db), before, "applied {times} times");
    }
}
