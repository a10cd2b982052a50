//! Scenarios of feeds: whatever a crash leaves, a feed tells the changes of the commits that are
//! there, each once, and of no others.

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{
    Alteration, ChangeKind, ChangedRows, Changes, ChangesFrom, CommitChanges, DataType, Database,
    Durability, Options, Schema, Value,
};
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

use super::directed::{Outcome, Scenario, expect, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 3] = [
    ("changes of tables with feeds, and a crash at every I/O", crash_at_every_io),
    ("rows that expire in a table with a feed", expired),
    ("a follower that goes on behind a truncation", truncated),
];

const TABLES: [&str; 2] = ["one", "two"];
const WORKLOADS: u64 = 4;
const STEPS: u64 = 24;
const KEYS: u64 = 6;

fn options(seed: u64) -> Options {
    let options = Options::new().background(false).group_limit(8, 1 << 20).small_group_limit(0);
    let options = options.commit_limit(6_000).transaction_limit(1 << 20);
    match seed % 2 {
        0 => options,
        _ => options.durability(Durability::Async { at_most: Duration::from_secs(3_600) }),
    }
}

fn create(db: &Database, name: &str) -> Outcome {
    let fields = Schema::builder().field("id", DataType::U64).nullable("v", DataType::Text);
    let fields = fields.nullable("until", DataType::Timestamp).expires_by("until");
    let kept = Changes::Kept { keep_us: 86_400_000_000, rows: ChangedRows::Old };
    let schema = fields.primary_key(["id"]).changes(kept).build().map_err(|e| e.to_string())?;
    db.create_table(name, schema).map(drop).map_err(said)
}

fn row(id: u64, v: &str) -> Vec<Value> {
    vec![Value::Uint(id), Value::Text(v.to_owned()), Value::Null]
}

fn told(db: &Database, name: &str, from: ChangesFrom) -> Result<Vec<CommitChanges>, String> {
    let mut reader = db.changes(name, from).map_err(said)?;
    let mut all = Vec::new();
    loop {
        let commits = reader.next_commits(3, Duration::ZERO).map_err(said)?;
        if commits.is_empty() {
            return Ok(all);
        }
        all.extend(commits);
    }
}

/// The rows of a table as its feed has them, by their keys.
fn replayed(commits: &[CommitChanges]) -> Result<BTreeMap<String, String>, String> {
    let mut rows = BTreeMap::new();
    for change in commits.iter().flat_map(|commit| &commit.changes) {
        let text = |value: &Value| value.as_ref().to_string();
        let (key, new, old) = (text(&change.key), text(&change.new), text(&change.old));
        let before = match change.kind {
            ChangeKind::Truncate => {
                rows.clear();
                continue;
            }
            ChangeKind::Insert | ChangeKind::Update => rows.insert(key.clone(), new),
            ChangeKind::Delete | ChangeKind::Expire => rows.remove(&key),
        };
        let is_fit = match change.kind {
            ChangeKind::Insert => before.is_none(),
            _ => before.as_ref() == Some(&old),
        };
        if !is_fit {
            return Err(format!("{} of {key} where the row was {before:?}", change.kind));
        }
    }
    Ok(rows)
}

/// The rows of a table as a feed would have them.
fn stored(db: &Database, name: &str) -> Result<BTreeMap<String, String>, String> {
    let table = db.table(name).map_err(said)?;
    let rows = table.snapshot().and_then(|snapshot| snapshot.rows()).map_err(said)?;
    let shown = |(_, row): (u64, Vec<Value>)| match row.as_slice() {
        [Value::Uint(id), v, Value::Null] => {
            let v = match v {
                Value::Text(v) => format!("{v:?}"),
                _ => "null".to_owned(),
            };
            Ok((format!("{{\"id\":{id}}}"), format!("{{\"id\":{id},\"until\":null,\"v\":{v}}}")))
        }
        other => Err(format!("a row {other:?}")),
    };
    rows.into_iter().map(shown).collect()
}

/// One step of a workload.
fn step(db: &Database, generator: &mut Generator, number: u64) -> esker::Result<()> {
    let name = generator.pick(TABLES);
    let table = db.table(name)?;
    // Some are longer than what a torn write leaves whole, some too long for a frame.
    let v = format!("{number:0width$}", width = generator.pick([4, 900, 4_000]));
    let key = generator.below(KEYS);
    match generator.below(10) {
        0..=2 => table.upsert(&row(key, &v)).map(drop),
        3 => table.upsert_many(&[row(key, &v), row(key + 1, &v), row(key + 2, &v)]),
        4 => table.delete(&[Value::Uint(key)]).map(drop),
        5 | 6 => db.transact(|within| {
            for name in TABLES {
                let table = within.table(name)?;
                table.upsert(&row(key, &v))?;
                table.delete(&[Value::Uint((key + 1) % KEYS)])?;
            }
            Ok(())
        }),
        7 => db.truncate_table(name),
        8 => db.transact(|within| {
            within.truncate_table(name)?;
            within.rename_table(name, "moved")?;
            within.table("moved")?.insert(&row(key, &v))?;
            within.rename_table("moved", name)
        }),
        _ => match generator.below(3) {
            0 => db.checkpoint(),
            1 => db.sync(),
            _ => db.wait_idle(),
        },
    }
}

fn crash_at_every_io() -> Outcome {
    for seed in 0..WORKLOADS {
        let machine = Simulation::new(seed, SimOptions { record: true, ..SimOptions::default() });
        let db = open(options(seed), &machine)?;
        TABLES.iter().try_for_each(|name| create(&db, name))?;
        let mut generator = Generator::new(seed, 61);
        for number in 0..STEPS {
            step(&db, &mut generator, number).map_err(said)?;
        }
        db.sync().map_err(said)?;
        let mut all = Vec::new();
        for name in TABLES {
            all.push((name, told(&db, name, ChangesFrom::Start)?));
        }
        drop(db);
        let journal = machine.journal().ok_or("a machine that records nothing")?;
        let mut cursor = journal.cursor();
        let mut image = 0;
        loop {
            image += 1;
            let torn = |seed| CrashChoice::TornSubset { mask: u64::MAX, seed };
            let whole = [CrashChoice::KeepNone, CrashChoice::KeepAll, CrashChoice::Random(image)];
            for choice in whole.into_iter().chain([torn(image), torn(image + 1_000)]) {
                let db = open(options(seed), &revived(&cursor.crash_image(choice)))?;
                for (name, expected) in &all {
                    expect_alike(&db, name, expected)
                        .map_err(|why| format!("workload {seed}, image {image}, {name}: {why}"))?;
                }
            }
            if !cursor.advance() {
                break;
            }
        }
    }
    Ok(())
}

/// A feed has the first of all changes that there were, and rows are as it tells.
fn expect_alike(db: &Database, name: &str, all: &[CommitChanges]) -> Outcome {
    if db.table(name).is_err() {
        return Ok(());
    }
    let there = told(db, name, ChangesFrom::Start)?;
    if all.get(..there.len()) != Some(&*there) {
        return Err(format!("a feed tells {there:?}, expected the first of {all:?}"));
    }
    let (rows, stored) = (replayed(&there)?, stored(db, name)?);
    if rows != stored {
        return Err(format!("the feed has the rows {rows:?}, the table {stored:?}"));
    }
    let Some(middle) = there.get(there.len() / 2) else { return Ok(()) };
    let rest = told(db, name, ChangesFrom::After(middle.cursor))?;
    match there.get(there.len() / 2 + 1..) == Some(&*rest) {
        true => Ok(()),
        false => Err(format!("behind {}: {rest:?}", middle.cursor)),
    }
}

fn expired() -> Outcome {
    let machine = machine();
    let db = open(options(0), &machine)?;
    create(&db, "one")?;
    let table = db.table("one").map_err(said)?;
    let until = Value::Timestamp(machine.environment().clock.wall_us() + 60_000_000);
    for id in 0..5u64 {
        table.insert(&[Value::Uint(id), Value::Null, until.clone()]).map_err(said)?;
    }
    machine.advance_clock(Duration::from_secs(120));
    // The place is taken, and the rest ends before the field tells no more.
    table.insert(&row(3, "again")).map_err(said)?;
    db.alter_table("one", &[Alteration::SetExpiry(None)]).map_err(said)?;
    let commits = told(&db, "one", ChangesFrom::Start)?;
    let kinds = commits.iter().flat_map(|commit| &commit.changes).map(|change| change.kind);
    let count = kinds.filter(|kind| *kind == ChangeKind::Expire).count() as u64;
    expect("rows that are told to have expired", count, 5)?;
    expect_alike(&db, "one", &commits)?;
    let db = open(options(0), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect_alike(&db, "one", &commits)
}

fn truncated() -> Outcome {
    let machine = machine();
    let db = open(options(0), &machine)?;
    create(&db, "one")?;
    let table = db.table("one").map_err(said)?;
    table.insert_many(&[row(1, "a"), row(2, "b")]).map_err(said)?;
    let mut reader = db.changes("one", ChangesFrom::Start).map_err(said)?;
    let mut followed = reader.next_commits(9, Duration::ZERO).map_err(said)?;
    db.truncate_table("one").map_err(said)?;
    db.table("one").and_then(|table| table.insert(&row(2, "c"))).map_err(said)?;
    let db = open(options(0), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    followed.extend(told(&db, "one", ChangesFrom::After(reader.cursor()))?);
    expect("commits that are told", followed.len() as u64, 3)?;
    expect_alike(&db, "one", &followed)
}
