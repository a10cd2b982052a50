//! Scenarios that chance finds too seldom: each is the shortest way to one kind of trouble.

use esker::{DataType, Database, ErrorKind, Options, Schema, Value};
use esker_vfs::sim::{
    CallKind, CrashChoice, CrashImage, FaultKind, Options as SimOptions, Repeat, Script, Simulation,
};

use super::{
    Report, bucket_scenarios, computed_indexes, erasures, feeds, full_disk, generated_fields,
    held_snapshots, key_updates, namespaces, quietly, reference_changes, rollup_history,
    stream_dedupe, stream_packing, stream_requests, stream_retention, streams, table_changes,
    temporary_tables, transaction_tables, unique_values, view_changes,
};

pub(super) type Outcome = Result<(), String>;

pub(super) type Scenario = (&'static str, fn() -> Outcome);

const SCENARIOS: [Scenario; 4] = [
    ("blocks of a segment that change places", swapped_blocks),
    ("a checkpoint that is in the page cache only", checkpoint_in_cache),
    ("rows that die after the newest was added", late_deletes),
    ("values of a sequence before a crash", values_of_a_sequence),
];

/// Runs every scenario.
#[must_use]
pub fn directed(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let all = SCENARIOS.into_iter().chain(table_changes::SCENARIOS);
    let all = all.chain(unique_values::SCENARIOS).chain(bucket_scenarios::SCENARIOS);
    let all = all.chain(transaction_tables::SCENARIOS).chain(held_snapshots::SCENARIOS);
    let all = all.chain(full_disk::SCENARIOS).chain(view_changes::SCENARIOS);
    let all = all.chain(reference_changes::SCENARIOS).chain(generated_fields::SCENARIOS);
    let all = all.chain(temporary_tables::SCENARIOS).chain(computed_indexes::SCENARIOS);
    let all = all.chain(key_updates::SCENARIOS).chain(namespaces::SCENARIOS);
    let all = all.chain(streams::SCENARIOS).chain(stream_retention::SCENARIOS);
    let all = all.chain(stream_packing::SCENARIOS).chain(stream_dedupe::SCENARIOS);
    let all = all.chain(stream_requests::SCENARIOS);
    let all = all.chain(erasures::SCENARIOS).chain(feeds::SCENARIOS);
    let all = all.chain(rollup_history::SCENARIOS);
    for (name, scenario) in all {
        report.images += 1;
        if let Err(why) = quietly(scenario) {
            report.fail(format!("{name}: {why}"), format!("--directed {seed}"), Vec::new());
        }
    }
    report
}

/// As many as go to a segment of their own.
const LOADED_ROWS: u64 = 70_000;

pub(super) fn machine() -> Simulation {
    Simulation::new(7, SimOptions::default())
}

/// A machine that lets others run whenever it can.
pub(super) fn busy_machine() -> Simulation {
    Simulation::new(7, SimOptions { pause_probability: 1_000_000, ..SimOptions::default() })
}

pub(super) fn revived(image: &CrashImage) -> Simulation {
    Simulation::from_image(image, 8, SimOptions::default())
}

pub(super) fn open(options: Options, machine: &Simulation) -> Result<Database, String> {
    options.environment(machine.environment()).open("db").map_err(said)
}

pub(super) fn said(error: esker::Error) -> String {
    format!("{:?}: {error}", error.kind())
}

fn schema() -> Result<Schema, String> {
    let fields = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
    fields.primary_key(["id"]).build().map_err(|e| e.to_string())
}

pub(super) fn row(id: u64) -> Vec<Value> {
    vec![Value::Uint(id), Value::Text(format!("{id:0200}"))]
}

pub(super) fn insert(db: &Database, name: &str, rows: u64) -> Outcome {
    let table = match db.table(name) {
        Ok(table) => table,
        Err(_) => db.create_table(name, schema()?).map_err(said)?,
    };
    let rows: Vec<Vec<Value>> = (0..rows).map(row).collect();
    table.insert_many(&rows).map_err(said)
}

fn load(db: &Database, name: &str) -> Outcome {
    let table = db.create_table(name, schema()?).map_err(said)?;
    let mut load = table.load().map_err(said)?;
    for id in 0..LOADED_ROWS {
        load.push_row(&row(id)).map_err(said)?;
    }
    load.finish().map(drop).map_err(said)
}

pub(super) fn count(db: &Database, name: &str) -> Result<u64, String> {
    db.table(name).and_then(|table| table.count()).map_err(said)
}

pub(super) fn expect(what: &str, found: u64, expected: u64) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found}, expected {expected}")) }
}

/// The blocks are whole, but not where they were written.
fn swapped_blocks() -> Outcome {
    const BLOCK: usize = 64 << 10;
    let machine = machine();
    let db = open(Options::new(), &machine)?;
    load(&db, "rows")?;
    db.close().map_err(said)?;
    let mut image = machine.crash_image(CrashChoice::KeepAll);
    let is_segment = |path: &std::path::PathBuf| path.to_string_lossy().contains("segment-");
    let path = image.paths().into_iter().find(is_segment).ok_or("no segment")?;
    let bytes = image.read(&path).ok_or("no bytes")?;
    let block = |number: usize| {
        bytes.get(number * BLOCK..(number + 1) * BLOCK).map(<[u8]>::to_vec).ok_or("no block")
    };
    let (third, fourth) = (block(20)?, block(21)?);
    image.overwrite(&path, 20 * BLOCK as u64, &fourth);
    image.overwrite(&path, 21 * BLOCK as u64, &third);
    let db = open(Options::new(), &revived(&image))?;
    let table = db.snapshot().and_then(|s| s.table("rows")).map_err(said)?;
    match table.for_each(|_, _| Ok(())) {
        Err(e) if e.kind() == ErrorKind::Corrupt => Ok(()),
        Err(e) => Err(said(e)),
        Ok(()) => Err("the rows are read as if nothing had happened".to_owned()),
    }
}

/// The syncs of two checkpoints fail, the cache keeps the files whole, and neither is removed.
fn checkpoint_in_cache() -> Outcome {
    let machine = machine();
    let options = || Options::new().background(false);
    let db = open(options(), &machine)?;
    insert(&db, "rows", 1)?;
    db.checkpoint().map_err(said)?;
    insert(&db, "more", 1)?;
    for _ in 0..2 {
        let sync = Script::fault(CallKind::Sync, 0, FaultKind::SyncErrorExt4Ordered, Repeat::Once);
        machine.add_script(sync.on_paths_with("checkpoint-"));
        let stay = Script::fault(CallKind::Remove, 0, FaultKind::NameError, Repeat::Once);
        machine.add_script(stay.on_paths_with("checkpoint-"));
        if db.checkpoint().is_ok() {
            return Err("a checkpoint whose sync failed was made".to_owned());
        }
    }
    db.close().map_err(said)?;
    let db = open(options(), &machine)?;
    expect("rows after the next open", count(&db, "more")?, 1)?;
    // What the open removed is gone for good once the directory is synced.
    load(&db, "others")?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    expect("rows after a power failure", count(&db, "more")?, 1)
}

/// A checkpoint takes deletes in, so that the log forgets them; then the group is sealed.
fn late_deletes() -> Outcome {
    let machine = machine();
    let options = || Options::new().memory_limit(16 << 20);
    let db = open(options(), &machine)?;
    insert(&db, "rows", 4_000)?;
    let table = db.table("rows").map_err(said)?;
    // It keeps the versions that are about to die.
    let _snapshot = db.snapshot().map_err(said)?;
    for id in 0..10 {
        table.delete(&[Value::Uint(id)]).map_err(said)?;
    }
    db.checkpoint().map_err(said)?;
    // Memory runs short, and the largest group is sealed first.
    for number in 0..12 {
        insert(&db, &format!("other{number}"), 3_000)?;
    }
    let segments = db.info().tables.iter().filter(|t| t.name == "rows").map(|t| t.segments).sum();
    let segments: usize = segments;
    if segments == 0 {
        return Err("the group was not sealed".to_owned());
    }
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepAll)))?;
    expect("rows after a crash", count(&db, "rows")?, 3_990)
}

/// None comes again, whether the machine died or the database was closed.
fn values_of_a_sequence() -> Outcome {
    let machine = machine();
    let db = open(Options::new(), &machine)?;
    db.create_sequence("tickets", 1, 1).map_err(said)?;
    for expected in 1..=40 {
        let value = db.next_value("tickets").map_err(said)?;
        if value != expected {
            return Err(format!("the sequence gave {value}, expected {expected}"));
        }
    }
    for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
        let db = open(Options::new(), &revived(&machine.crash_image(choice)))?;
        let value = db.next_value("tickets").map_err(said)?;
        if value <= 40 {
            return Err(format!("after a crash the sequence gave {value} again"));
        }
    }
    db.close().map_err(said)?;
    let db = open(Options::new(), &machine)?;
    let value = db.next_value("tickets").map_err(said)?;
    if value == 41 { Ok(()) } else { Err(format!("after a close the sequence gave {value}")) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn directed_scenarios_end_well() {
        let report = super::directed(1);
        assert!(report.failures.is_empty(), "{report}");
    }
}
