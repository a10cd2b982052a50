//! The clock of a database on a machine whose clocks are wrong: durations go by elapsed time, dates
//! by a date that is not moved by a wall clock that is wrong for a while.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::time::Duration;

use crate::fixture::Directory;
use esker::{
    Alteration, BucketOptions, DataType, Database, DefaultValue, ErrorKind, Options, Schema, Table,
    Ttl, Value,
};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;
/// No ids.
const NONE: [i64; 0] = [];

fn machine() -> Simulation {
    Simulation::new(1, SimOptions { pause_probability: 0, latency_ns: 0, ..SimOptions::default() })
}

fn options(machine: &Simulation) -> Options {
    Options::new().background(false).environment(machine.environment())
}

fn open(machine: &Simulation) -> Database {
    options(machine).open("db").unwrap()
}

/// Time passes, and the database is asked for it every ten seconds, as by a server that is in use.
fn pass(machine: &Simulation, db: &Database, seconds: u64) {
    for _ in 0..seconds.div_ceil(10) {
        machine.advance_clock(Duration::from_secs(10));
        let _ = db.clock();
        db.wait_idle().unwrap();
    }
}

fn leases(db: &Database) -> Table {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("until", DataType::Timestamp)
        .primary_key(["id"])
        .expires_by("until");
    db.create_table("leases", schema.build().unwrap()).unwrap()
}

fn add(table: &Table, id: i64, until_us: i64) {
    table.insert(&[id.into(), Value::Timestamp(until_us)]).unwrap();
}

fn ids(table: &Table) -> Vec<i64> {
    let rows = table.snapshot().unwrap();
    let id = |(_, row): (u64, Vec<Value>)| match row.first() {
        Some(Value::Int(id)) => *id,
        _ => -1,
    };
    let mut ids: Vec<i64> = rows.rows().unwrap().into_iter().map(id).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn one_write_under_a_wrong_clock_ends_no_time_to_live() {
    for wrong_us in [12 * YEAR, DAY, 300 * SECOND, -DAY, -12 * YEAR] {
        let machine = machine();
        let db = open(&machine);
        let bucket = db.bucket("b").unwrap();
        let minute = Ttl::After(Duration::from_secs(60));
        bucket.put_with("before", "1", minute).unwrap();
        machine.shift_wall_clock(wrong_us);
        bucket.put_with("meanwhile", "2", minute).unwrap();
        machine.shift_wall_clock(-wrong_us);
        bucket.put_with("after", "3", minute).unwrap();
        let keys = ["before", "meanwhile", "after"];
        machine.advance_clock(Duration::from_secs(59));
        assert!(keys.iter().all(|key| bucket.contains(key).unwrap()), "{wrong_us}");
        machine.advance_clock(Duration::from_secs(2));
        assert!(keys.iter().all(|key| !bucket.contains(key).unwrap()), "{wrong_us}");
    }
}

#[test]
fn a_time_to_live_goes_on_through_restarts_whatever_the_wall_clock_shows() {
    for (wrong_us, is_crash) in [(12 * YEAR, false), (-12 * YEAR, true), (HOUR, true)] {
        let machine = machine();
        let mut db = open(&machine);
        let bucket = db.bucket("b").unwrap();
        bucket.put_with("k", "v", Ttl::After(Duration::from_secs(60))).unwrap();
        for _ in 0..3 {
            if is_crash {
                machine.crash_after_io(Some(0));
                drop(db);
                machine.crash_after_io(None);
            } else {
                db.close().unwrap();
            }
            machine.shift_wall_clock(wrong_us);
            machine.advance_clock(Duration::from_secs(15));
            db = open(&machine);
        }
        let bucket = db.bucket("b").unwrap();
        let left = bucket.remaining("k").unwrap().unwrap().unwrap();
        assert!((14..=15).contains(&left.as_secs()), "{wrong_us}: {left:?}");
        machine.advance_clock(Duration::from_secs(15));
        assert_eq!(bucket.get_copy("k").unwrap(), None, "{wrong_us}");
    }
}

/// The boot id is what tells that boot time may be compared.
#[test]
fn another_boot_goes_by_the_wall_clock() {
    let machine = machine();
    let db = open(&machine);
    let bucket = db.bucket("b").unwrap();
    bucket.put_with("short", "v", Ttl::After(Duration::from_secs(60))).unwrap();
    bucket.put_with("long", "v", Ttl::After(Duration::from_secs(7_200))).unwrap();
    db.close().unwrap();
    machine.advance_clock(Duration::from_secs(3_600));
    machine.reboot_clock();
    // It has been up for longer than at the record.
    machine.shift_boottime(5 * SECOND);
    let db = open(&machine);
    let bucket = db.bucket("b").unwrap();
    assert!(!bucket.contains("short").unwrap());
    let left = bucket.remaining("long").unwrap().unwrap().unwrap();
    assert!((3_590..=3_600).contains(&left.as_secs()), "{left:?}");
}

#[test]
fn what_has_expired_stays_expired_after_a_boot_with_a_clock_of_1970() {
    let machine = machine();
    let db = open(&machine);
    let bucket = db.bucket("b").unwrap();
    let date_us = db.moment().date_us;
    let table = leases(&db);
    add(&table, 1, date_us + 5 * SECOND);
    bucket.put_with("k", "v", Ttl::After(Duration::from_secs(5))).unwrap();
    machine.advance_clock(Duration::from_secs(6));
    bucket.put("seen", "").unwrap();
    assert!(!bucket.contains("k").unwrap());
    machine.crash_after_io(Some(0));
    drop((db, bucket, table));
    machine.crash_after_io(None);
    machine.reboot_clock();
    machine.shift_wall_clock(-56 * YEAR);
    let db = open(&machine);
    assert!(!db.bucket("b").unwrap().contains("k").unwrap());
    assert_eq!(ids(&db.table("leases").unwrap()), NONE);
    let clock = db.clock();
    assert!(clock.is_suspect && clock.warning().unwrap().contains("behind"), "{clock:?}");
    let notes = db.check().unwrap().notes;
    assert!(notes.iter().any(|note| note.place == "clock"), "{notes:?}");
}

#[test]
fn a_date_follows_a_wall_clock_that_stays_and_destroys_nothing_for_an_hour() {
    let machine = machine();
    let db = options(&machine).small_group_limit(1).open("db").unwrap();
    let (table, date_us) = (leases(&db), db.moment().date_us);
    for id in 0..100 {
        add(&table, id, date_us + 12 * HOUR);
    }
    let stored = |db: &Database| {
        db.compact(false, &mut |_, _| {}).unwrap();
        db.info().tables.first().map_or(0, |table| table.live_rows + table.dead_rows)
    };
    machine.shift_wall_clock(DAY);
    pass(&machine, &db, 590);
    assert_eq!(ids(&table).len(), 100, "the wall clock is suspect");
    assert!(db.clock().is_suspect);
    pass(&machine, &db, 40);
    assert_eq!(ids(&table), NONE, "the date has followed");
    let clock = db.clock();
    assert!(!clock.is_suspect && clock.held > Duration::from_secs(3_500), "{clock:?}");
    assert_eq!(stored(&db), 100, "nothing is destroyed");
    pass(&machine, &db, 3_700);
    assert_eq!(db.clock().held, Duration::ZERO);
    assert_eq!(stored(&db), 0, "an hour is over");
}

/// What the wrong date had ended does not come back with the right one.
#[test]
fn a_date_that_is_taken_back_brings_nothing_back() {
    for is_reset in [false, true] {
        let machine = machine();
        let db = open(&machine);
        let (table, date_us) = (leases(&db), db.moment().date_us);
        add(&table, 1, date_us + 12 * HOUR);
        add(&table, 2, date_us + 3 * DAY);
        machine.shift_wall_clock(DAY);
        pass(&machine, &db, 620);
        assert_eq!(ids(&table), [2]);
        machine.shift_wall_clock(-DAY);
        let old = table.snapshot().unwrap();
        if is_reset {
            assert_eq!(db.rows_ended_by_clock().unwrap(), 1);
            assert_eq!(db.reset_clock().unwrap(), 1);
        } else {
            pass(&machine, &db, 590);
            assert!(db.moment().date_us > date_us + DAY);
            pass(&machine, &db, 40);
        }
        assert!(db.moment().date_us < date_us + HOUR);
        assert_eq!(ids(&table), [2]);
        assert_eq!(old.count().unwrap(), 1);
        machine.crash_after_io(Some(0));
        drop((db, table, old));
        machine.crash_after_io(None);
        let db = open(&machine);
        assert_eq!(ids(&db.table("leases").unwrap()), [2]);
        assert!(!db.clock().is_suspect, "{:?}", db.clock());
    }
}

/// A snapshot has one moment, whatever happens to the date and to the field that tells.
#[test]
fn a_snapshot_keeps_its_date_when_rows_expire_by_another_field_after_a_move_back() {
    let machine = machine();
    let db = open(&machine);
    let (table, date_us) = (leases(&db), db.moment().date_us);
    add(&table, 1, date_us + 5 * SECOND);
    add(&table, 2, date_us + HOUR);
    machine.advance_clock(Duration::from_secs(10));
    let held = db.snapshot().unwrap();
    machine.shift_wall_clock(-YEAR);
    db.reset_clock().unwrap();
    let without = Alteration::SetExpiry(None);
    db.alter_table("leases", &[without]).unwrap();
    assert_eq!(held.table("leases").unwrap().count().unwrap(), 1);
    assert_eq!(ids(&table), [2]);
}

#[test]
fn a_move_of_the_date_can_be_taken_back_within_an_hour() {
    let machine = machine();
    let db = open(&machine);
    let (table, date_us) = (leases(&db), db.moment().date_us);
    add(&table, 1, date_us + 60 * SECOND);
    add(&table, 2, date_us + 12 * HOUR);
    add(&table, 3, date_us + 12 * HOUR);
    machine.advance_clock(Duration::from_secs(90));
    assert_eq!(ids(&table), [2, 3]);
    assert_eq!(db.restore_clock().unwrap_err().kind(), ErrorKind::InvalidInput);
    machine.shift_wall_clock(DAY);
    assert_eq!(db.reset_clock().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(db.rows_ended_by_clock().unwrap(), 0);
    db.confirm_clock().unwrap();
    assert_eq!(ids(&table), NONE);
    add(&table, 3, date_us + 9 * DAY);
    machine.shift_wall_clock(-DAY);
    db.restore_clock().unwrap();
    assert_eq!(ids(&table), [2, 3], "what expired by the move alone is back");
    let until = table.get(&[3i64.into()]).unwrap().unwrap().into_values().pop();
    assert_eq!(until, Some(Value::Timestamp(date_us + 9 * DAY)), "what took its place stays");
    machine.shift_wall_clock(DAY);
    db.confirm_clock().unwrap();
    pass(&machine, &db, 3_700);
    machine.shift_wall_clock(-DAY);
    assert_eq!(db.restore_clock().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(ids(&table), [3]);
}

#[test]
fn the_end_of_an_entry_is_shown_and_taken_as_a_date() {
    let machine = machine();
    let db = open(&machine);
    let bucket = db.bucket("b").unwrap();
    bucket.put_with("k", "v", Ttl::After(Duration::from_secs(60))).unwrap();
    machine.shift_wall_clock(30 * DAY);
    db.confirm_clock().unwrap();
    let end_us = |key: &str| {
        let mut entries = bucket.prefix(key).unwrap();
        entries.next().unwrap().unwrap().expires_at_us().unwrap().unwrap()
    };
    let now = db.moment();
    assert!(now.date_us - now.elapsed_us > 29 * DAY);
    assert!((end_us("k") - now.date_us - 60 * SECOND).abs() < SECOND);
    let date_us = now.date_us + 100 * SECOND;
    bucket.put_with("m", "v", Ttl::At(date_us)).unwrap();
    assert_eq!(end_us("m"), date_us);
    let left = bucket.remaining("m").unwrap().unwrap().unwrap();
    assert!((99..=100).contains(&left.as_secs()), "{left:?}");
    let kept = db.transact(|transaction| {
        let bucket = transaction.bucket("b")?;
        let (value, end) = bucket.get_with_expiry("m")?.unwrap();
        bucket.put_with("m", value, Ttl::At(end.unwrap()))?;
        bucket.get_with_expiry("m")
    });
    assert_eq!(kept.unwrap().unwrap().1, Some(date_us));
    assert_eq!(end_us("m"), date_us);
}

/// What decides about rows goes by the date of the database, what people look at by the wall clock.
#[test]
fn a_default_of_the_field_by_which_rows_expire_goes_by_the_date() {
    let machine = machine();
    let db = open(&machine);
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("until", DataType::Timestamp)
        .default_value(DefaultValue::After(3_600_000_000))
        .nullable("made", DataType::Timestamp)
        .default_value(DefaultValue::Now)
        .primary_key(["id"])
        .expires_by("until");
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    let bucket = db.create_bucket("b", &BucketOptions::new().ttl(Duration::from_secs(60))).unwrap();
    let now =
        Schema::builder().field("until", DataType::Timestamp).default_value(DefaultValue::Now);
    let ended = db.create_table("ended", now.expires_by("until").build().unwrap()).unwrap();
    machine.shift_wall_clock(YEAR);
    ended.insert_fields(&[]).unwrap();
    machine.advance_clock(Duration::from_secs(1));
    assert_eq!(ended.count().unwrap(), 0, "it ended when it was written");
    let date_us = db.moment().date_us;
    machine.shift_wall_clock(-2 * YEAR);
    table.insert_fields(&[("id", 1i64.into())]).unwrap();
    bucket.put("k", "v").unwrap();
    let row = table.get(&[1i64.into()]).unwrap().expect("it has an hour to go");
    let us = |name| match row.get(name) {
        Some(Value::Timestamp(us)) => *us,
        _ => 0,
    };
    assert!((us("until") - date_us - HOUR).abs() < SECOND);
    assert!((us("made") - date_us + YEAR).abs() < SECOND);
    assert!(bucket.contains("k").unwrap());
}

#[test]
fn reading_only_moves_and_writes_nothing() {
    let machine = machine();
    let db = open(&machine);
    let (table, date_us) = (leases(&db), db.moment().date_us);
    add(&table, 1, date_us + 12 * HOUR);
    db.close().unwrap();
    machine.shift_wall_clock(DAY);
    let ios = machine.io_count();
    let db = options(&machine).read_only(true).open("db").unwrap();
    for _ in 0..70 {
        machine.advance_clock(Duration::from_secs(10));
        assert!(db.clock().is_suspect);
    }
    assert_eq!(ids(&db.table("leases").unwrap()), [1]);
    assert_eq!(db.confirm_clock().unwrap_err().kind(), ErrorKind::ReadOnly);
    drop(db);
    assert_eq!(machine.io_count(), ios);
}

#[test]
fn a_checkpoint_and_a_saved_copy_know_the_time() {
    let machine = machine();
    let db = open(&machine);
    let bucket = db.bucket("b").unwrap();
    bucket.put_with("k", "v", Ttl::After(Duration::from_secs(60))).unwrap();
    machine.shift_wall_clock(30 * DAY);
    db.confirm_clock().unwrap();
    bucket.put_with("m", "v", Ttl::After(Duration::from_secs(60))).unwrap();
    db.checkpoint().unwrap();
    db.save("copy").unwrap();
    let clock = db.moment();
    machine.crash_after_io(Some(0));
    drop((db, bucket));
    machine.crash_after_io(None);
    machine.advance_clock(Duration::from_secs(30));
    for dir in ["db", "copy"] {
        let db = options(&machine).open(dir).unwrap();
        let now = db.moment();
        assert_eq!(now.date_us - now.elapsed_us, clock.date_us - clock.elapsed_us, "{dir}");
        let bucket = db.bucket("b").unwrap();
        for key in ["k", "m"] {
            let left = bucket.remaining(key).unwrap().unwrap().unwrap();
            assert!((28..=30).contains(&left.as_secs()), "{dir} {key}: {left:?}");
        }
    }
}

/// The time counted as logged, and what had expired before the next commit was back.
#[test]
fn a_time_that_a_full_disk_refused_is_logged_before_the_next_commit() {
    let machine = machine();
    let db = open(&machine);
    let (table, date_us) = (leases(&db), db.moment().date_us);
    add(&table, 1, date_us + 60 * SECOND);
    let mut id = 1;
    let mut put = || {
        id += 1;
        table.insert(&[id.into(), Value::Null])
    };
    let space = machine.used_bytes();
    machine.set_capacity_bytes(space);
    while put().is_ok() {}
    machine.advance_clock(Duration::from_secs(100));
    assert_eq!(put().unwrap_err().kind(), ErrorKind::NoSpace);
    machine.set_capacity_bytes(2 * space);
    machine.advance_clock(Duration::from_millis(100));
    put().unwrap();
    let there = ids(&table);
    assert!(!there.contains(&1));
    machine.crash_after_io(Some(0));
    drop((db, table));
    machine.crash_after_io(None);
    machine.reboot_clock();
    machine.shift_wall_clock(-56 * YEAR);
    assert_eq!(ids(&open(&machine).table("leases").unwrap()), there);
}

/// A crash anywhere in a move back leaves the date as it was, or the rows ended.
#[test]
fn a_crash_while_the_date_is_taken_back_brings_nothing_back() {
    let mut moved = 0;
    for ios in 0.. {
        let machine = machine();
        let db = open(&machine);
        let (table, date_us) = (leases(&db), db.moment().date_us);
        for id in 0..20 {
            add(&table, id, date_us + 12 * HOUR);
        }
        machine.shift_wall_clock(DAY);
        db.confirm_clock().unwrap();
        machine.shift_wall_clock(-DAY);
        machine.crash_after_io(Some(machine.io_count() + ios));
        let is_done = db.reset_clock().is_ok();
        let image = machine.crash_image(CrashChoice::Random(ios));
        drop((db, table));
        let again = Simulation::from_image(&image, 1, SimOptions::default());
        let db = options(&again).open("db").unwrap();
        assert_eq!(ids(&db.table("leases").unwrap()), NONE, "after {ios} I/Os");
        moved += u32::from(db.moment().date_us < date_us + HOUR);
        if is_done {
            break;
        }
    }
    assert!(moved > 0);
}

#[test]
fn what_version_8_wrote_opens() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/fixture/version_8");
    let dir = Directory::new("version-8");
    std::fs::create_dir_all(&dir.0).unwrap();
    for file in std::fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.0.join(file.file_name())).unwrap();
    }
    for _ in 0..2 {
        let db = Options::new().create(false).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        assert_eq!(bucket.get_copy("k").unwrap().as_deref(), Some(&b"v"[..]));
        assert!(bucket.remaining("k").unwrap().unwrap().unwrap() > Duration::from_secs(1 << 31));
        assert_eq!(bucket.remaining("n").unwrap(), Some(None));
        assert_eq!(ids(&db.table("leases").unwrap()), [1, 3]);
        assert!(db.check().unwrap().is_sound());
        bucket.put_with("new", "v", Ttl::After(Duration::from_secs(60))).unwrap();
        db.close().unwrap();
    }
}
