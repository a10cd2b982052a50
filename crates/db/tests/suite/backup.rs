//! Backups are databases, as of one commit; compaction and recounting change no answer.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fixture::{Directory, people, person};
use esker::{BackupOptions, BackupReport, Database, ErrorKind, Options, PutOptions, Ttl, Value};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

fn backup(db: &Database, dir: &Path, options: &BackupOptions) -> BackupReport {
    let mut last = (0, 0);
    let report = db.backup(dir, options, &mut |done, total| last = (done, total)).unwrap();
    assert_eq!(last.0, last.1, "the progress ends at its end");
    report
}

fn count(dir: &Path) -> u64 {
    let db = Options::new().read_only(true).open(dir).unwrap();
    assert_eq!(db.check().unwrap().problems, []);
    db.table("people").unwrap().count().unwrap()
}

/// Two segments, dead rows in them, and rows in memory.
fn populated(dir: &Directory) -> Database {
    let db = Options::new().open(dir.0.join("db")).unwrap();
    let t = db.create_table("people", people()).unwrap();
    for part in 0..2 {
        let mut load = t.load().unwrap();
        for i in 0..70_000 {
            load.push_row(&person(&format!("{part} {i}"), i % 100)).unwrap();
        }
        load.finish().unwrap();
    }
    for i in 0..100 {
        assert!(t.delete(&[format!("0 {i}").into()]).unwrap());
    }
    t.insert(&person("last", 1)).unwrap();
    db
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let dir = Directory::new("backup");
    let db = populated(&dir);
    let (first, second) = (dir.0.join("first"), dir.0.join("second"));
    let report = backup(&db, &first, &BackupOptions::default());
    assert_eq!((report.linked, report.copied), (2, 0));
    let t = db.table("people").unwrap();
    t.insert(&person("later", 1)).unwrap();
    let based = BackupOptions { base: Some(first.clone()), copy: true, ..Default::default() };
    let report = backup(&db, &second, &based);
    assert_eq!((report.linked, report.copied), (2, 0), "the base has them");
    db.compact(false, &mut |_, _| {}).unwrap();
    let third = dir.0.join("third");
    let report = backup(&db, &third, &BackupOptions { copy: true, ..Default::default() });
    assert!(report.copied > 0 && report.linked == 0, "{report:?}");
    // The database goes; the backups stay, and can be written.
    drop((t, db));
    std::fs::remove_dir_all(dir.0.join("db")).unwrap();
    assert_eq!((count(&first), count(&second), count(&third)), (139_901, 139_902, 139_902));
    let db = Options::new().open(&first).unwrap();
    db.table("people").unwrap().insert(&person("restored", 1)).unwrap();
    db.close().unwrap();
    assert_eq!((count(&first), count(&second)), (139_902, 139_902));
    // Restoring is a backup of the backup.
    let restored = dir.0.join("restored");
    let db = Options::new().read_only(true).open(&second).unwrap();
    backup(&db, &restored, &BackupOptions::default());
    drop(db);
    let db = Options::new().open(&restored).unwrap();
    db.table("people").unwrap().insert(&person("again", 1)).unwrap();
    assert_eq!(db.check().unwrap().problems, []);
}

/// Ends the writer, also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_backup_beside_writers_is_of_one_commit() {
    let dir = Directory::new("backup-writers");
    let db = populated(&dir);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _guard = Stop(&stop);
        scope.spawn(|| {
            // Two rows, always both.
            let t = db.table("people").unwrap();
            for i in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let rows = [person(&format!("a {i}"), 1), person(&format!("b {i}"), 1)];
                t.insert_many(&rows).unwrap();
                t.delete(&[format!("0 {}", 100 + i).into()]).unwrap();
            }
        });
        for i in 0..5 {
            let path = dir.0.join(format!("copy {i}"));
            backup(&db, &path, &BackupOptions::default());
            let copy = Options::new().read_only(true).open(&path).unwrap();
            let rows = copy.snapshot().unwrap().table("people").unwrap().rows().unwrap();
            let of = |letter: &str| {
                let starts = |row: &[Value]| row[0].to_string().starts_with(letter);
                rows.iter().filter(|(_, row)| starts(row)).count()
            };
            assert_eq!(of("a "), of("b "));
        }
    });
}

#[test]
fn what_is_no_place_for_a_backup_is_left_alone() {
    if crate::is_on_disk() {
        return; // Of databases in memory.
    }
    let dir = Directory::new("backup-refused");
    let db = populated(&dir);
    let used = dir.0.join("used");
    std::fs::create_dir_all(&used).unwrap();
    std::fs::write(used.join("diary.txt"), "dear diary").unwrap();
    let options = BackupOptions::default();
    let e = db.backup(&used, &options, &mut |_, _| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput);
    assert!(e.to_string().contains("expected an empty directory"), "{e}");
    let itself = db.backup(dir.0.join("db"), &options, &mut |_, _| {}).unwrap_err();
    assert_eq!(itself.kind(), ErrorKind::InvalidInput);
    let dry = dir.0.join("dry");
    let options = BackupOptions { dry_run: true, ..options };
    assert_eq!(backup(&db, &dry, &options).linked, 2);
    assert!(!dry.exists());
    let memory = Options::new().memory().unwrap();
    assert!(memory.backup(&dry, &options, &mut |_, _| {}).is_err());
}

/// What is damaged is told, and is no backup.
#[test]
fn a_copy_of_a_damaged_file_is_refused() {
    let dir = Directory::new("backup-damage");
    let db = populated(&dir);
    db.close().unwrap();
    let files = std::fs::read_dir(dir.0.join("db")).unwrap().map(|entry| entry.unwrap().path());
    let is_segment = |path: &std::path::PathBuf| path.display().to_string().contains("segment-");
    let path = files.into_iter().find(is_segment).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let db = Options::new().open(dir.0.join("db")).unwrap();
    let target = dir.0.join("copy");
    let options = BackupOptions { copy: true, ..Default::default() };
    let e = db.backup(&target, &options, &mut |_, _| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert!(Options::new().create(false).open(&target).is_err());
}

#[test]
fn compaction_gives_space_back_and_changes_no_answer() {
    let dir = Directory::new("compact");
    let db = populated(&dir);
    let t = db.table("people").unwrap();
    let before = t.count().unwrap();
    let dry = db.compact(true, &mut |_, _| {}).unwrap();
    assert_eq!(dry.bytes_before, dry.bytes_after);
    let report = db.compact(false, &mut |_, _| {}).unwrap();
    assert_eq!((dry.rewritten, report.rewritten), (2, 2));
    assert!(report.bytes_after < report.bytes_before, "{report:?}");
    assert_eq!(t.count().unwrap(), before);
    assert_eq!(db.recount(false).unwrap(), []);
    assert_eq!(db.compact(false, &mut |_, _| {}).unwrap().rewritten, 0);
    assert_eq!(db.check().unwrap().problems, []);
}

/// A directory of a backup that died opened as an empty database.
#[test]
fn a_backup_that_was_cut_short_is_no_database() {
    let machine = Simulation::new(3, SimOptions { record: true, ..SimOptions::default() });
    let options = Options::new().segment_limit(1_000).environment(machine.environment());
    let db = options.open("db").unwrap();
    let table = db.create_table("people", people()).unwrap();
    let mut load = table.load().unwrap();
    (0..1_500).for_each(|i| load.push_row(&person(&format!("{i}"), i % 100)).unwrap());
    load.finish().unwrap();
    let from = machine.io_count();
    let copy = BackupOptions { copy: true, ..BackupOptions::default() };
    db.backup("copy", &copy, &mut |_, _| {}).unwrap();
    let until = machine.io_count();
    let (mut refused, mut cursor) = (0, machine.journal().unwrap().cursor());
    while cursor.advance() {
        if cursor.position() <= from {
            continue;
        }
        for choice in [CrashChoice::KeepNone, CrashChoice::Random(1), CrashChoice::Random(2)] {
            let image = cursor.crash_image(choice);
            let after = Simulation::from_image(&image, 4, SimOptions::default());
            let environment = after.environment();
            let names = environment.files.list(Path::new("copy")).unwrap_or_default();
            match Options::new().environment(environment).open("copy") {
                Ok(db) if names.iter().any(|name| name.starts_with("checkpoint-")) => {
                    assert_eq!(db.table("people").unwrap().count().unwrap(), 1_500);
                }
                // Nothing but the lock file was there.
                Ok(_) => assert!(names.len() <= 1, "{names:?}: {}", cursor.describe()),
                Err(e) => {
                    assert!(cursor.position() < until, "{e}");
                    refused += u32::from(e.to_string().contains("remove it and make the backup"));
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
    let again = Options::new().environment(machine.environment());
    assert!(again.read_only(true).open("copy").is_ok());
}

/// Entries in segments, in the open group and in files of their own, and when they expire; somebody
/// goes on putting meanwhile.
#[test]
fn a_backup_has_the_buckets_of_one_commit() {
    const LATE_US: i64 = 4_000_000_000_000_000;
    let dir = Directory::new("backup-buckets");
    let db = Options::new().group_limit(600, 1 << 20).open(dir.0.join("db")).unwrap();
    let bucket = db.bucket("b").unwrap();
    let unsynced = bucket.with(PutOptions::new().sync(false));
    let value = |n: usize| vec![b'v'; if n.is_multiple_of(500) { 70_000 } else { n % 90 }];
    let entries = |n: usize| (format!("{n:05}").into_bytes(), value(n));
    for (key, value) in (0..1_500).map(entries) {
        unsynced.put(key, value).unwrap();
    }
    bucket.put_with("ends", "", Ttl::At(LATE_US)).unwrap();
    let stops = AtomicBool::new(false);
    let copy = dir.0.join("copy");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 10_000usize;
            while !stops.load(Ordering::Relaxed) {
                // Both or none.
                unsynced.put_many([(format!("x{n}"), ""), (format!("y{n}"), "")]).unwrap();
                n += 1;
            }
        });
        let _stop = Stop(&stops);
        backup(&db, &copy, &BackupOptions::default());
    });
    bucket.clear().unwrap();
    let db = Options::new().read_only(true).open(&copy).unwrap();
    assert_eq!(db.check().unwrap().problems, []);
    let bucket = db.bucket("b").unwrap();
    let found = bucket.range(.."a").unwrap().map(|entry| entry.unwrap().to_pair());
    assert!(found.eq((0..1_500).map(entries)));
    assert!(bucket.remaining("ends").unwrap().unwrap().is_some());
    let count = |prefix| bucket.prefix(prefix).unwrap().count();
    assert_eq!(count("x"), count("y"));
}
