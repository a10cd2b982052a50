//! Syncs that fail, in the four ways of real file systems, and syncs that lie.

use std::path::Path;
use std::sync::Arc;

use super::super::{
    CallKind, CrashChoice, FaultKind, FaultPlan, Options, Repeat, Script, Simulation, SyncReport,
};
use super::{contents, durable, faulty, files, fired};
use crate::{ErrorKind, File, OpenMode};

/// A file of 1s on which one appended and one overwriting write meet a failing sync. Call 0 is
/// the sync that made the file durable.
fn after_failed_sync(seed: u64, fault: FaultKind) -> (Simulation, Arc<dyn File>, bool) {
    let machine = faulty(seed, CallKind::Sync, 1, fault);
    let file = durable(&machine, "/a", &[1; 100]);
    file.write_all_at(&[2; 10], 0).unwrap();
    file.write_all_at(&[3; 100], 100).unwrap();
    let reported = match file.sync_data() {
        Ok(()) => false,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Io);
            assert!(e.to_string().contains("sync /a"), "{e}");
            true
        }
    };
    assert_eq!(fired(&machine, fault), 1);
    assert_eq!(machine.pending_count(), 0, "pages are clean after a failed sync");
    (machine, file, reported)
}

fn on_disk(machine: &Simulation) -> Vec<u8> {
    machine.crash_image(CrashChoice::KeepAll).read("/a").unwrap()
}

fn with_both() -> Vec<u8> {
    [vec![2; 10], vec![1; 90], vec![3; 100]].concat()
}

#[test]
fn ext4_ordered_keeps_the_cache_and_the_length() {
    let mut lost_both = false;
    for seed in 0..20 {
        let (machine, file, reported) = after_failed_sync(seed, FaultKind::SyncErrorExt4Ordered);
        assert!(reported, "at once");
        assert_eq!(contents(&*file).unwrap(), with_both(), "the cache keeps what was written");
        file.sync_data().unwrap();
        let disk = on_disk(&machine);
        assert_eq!(disk.len(), 200, "the length made it");
        assert_ne!(disk, with_both(), "the second sync succeeds and saves nothing");
        lost_both |= disk == [vec![1; 100], vec![0; 100]].concat();
    }
    assert!(lost_both);
}

#[test]
fn ext4_data_reports_at_the_next_sync() {
    for seed in 0..20 {
        let (machine, file, reported) = after_failed_sync(seed, FaultKind::SyncErrorExt4Data);
        assert!(!reported, "too late");
        assert_eq!(contents(&*file).unwrap(), with_both());
        assert_ne!(on_disk(&machine), with_both());
        assert_eq!(file.sync_data().unwrap_err().kind(), ErrorKind::Io);
        file.sync_data().unwrap();
        assert_ne!(on_disk(&machine), with_both());
    }
}

#[test]
fn xfs_keeps_the_cache_and_not_the_length() {
    let mut short = false;
    for seed in 0..20 {
        let (machine, file, reported) = after_failed_sync(seed, FaultKind::SyncErrorXfs);
        assert!(reported);
        assert_eq!(contents(&*file).unwrap(), with_both());
        assert_ne!(on_disk(&machine), with_both());
        short |= on_disk(&machine).len() == 100;
        machine.drop_page_cache();
        assert_eq!(contents(&*file).unwrap(), on_disk(&machine), "until the cache is dropped");
    }
    assert!(short);
}

#[test]
fn btrfs_reverts_the_cache() {
    let (machine, file, reported) = after_failed_sync(1, FaultKind::SyncErrorBtrfs);
    assert!(reported);
    assert_eq!(contents(&*file).unwrap(), [1; 100], "what was written is gone");
    assert_eq!(on_disk(&machine), [1; 100]);
    file.write_all_at(&[4; 10], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(on_disk(&machine)[..11], [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]);
}

#[test]
fn a_failed_sync_is_reported_to_each_handle_or_once() {
    for (report, others_hear) in [(SyncReport::EachHandle, true), (SyncReport::Once, false)] {
        let script = Script::fault(CallKind::Sync, 1, FaultKind::SyncErrorXfs, Repeat::Once);
        let faults = FaultPlan::none().script(script).report(report);
        let machine = Simulation::new(1, Options { faults, ..Options::default() });
        let one = durable(&machine, "/a", b"x");
        let open = || files(&machine).open(Path::new("/a"), OpenMode::Write).unwrap();
        let two = open();
        one.write_all_at(b"y", 0).unwrap();
        assert!(one.sync_data().is_err());
        let late = open();
        assert_eq!(two.sync_data().is_err(), others_hear);
        assert!(two.sync_data().is_ok(), "once each");
        assert!(one.sync_data().is_ok());
        assert!(late.sync_data().is_ok(), "opened when it had been reported");
        assert_eq!(fired(&machine, FaultKind::SyncErrorXfs), 1);
    }
}

#[test]
fn a_lying_sync_leaves_everything_pending() {
    let machine = faulty(1, CallKind::Sync, 1, FaultKind::LyingSync);
    let file = durable(&machine, "/a", b"old");
    file.write_all_at(b"new", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(fired(&machine, FaultKind::LyingSync), 1);
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).read("/a").unwrap(), b"old");
    file.sync_data().unwrap();
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).read("/a").unwrap(), b"new");
}

#[test]
fn a_directory_sync_fails_or_lies() {
    for fault in [FaultKind::SyncDirectoryError, FaultKind::LyingSyncDirectory] {
        let machine = faulty(1, CallKind::SyncDirectory, 0, fault);
        super::create(&machine, "/a");
        let result = files(&machine).sync_dir(Path::new("/"));
        assert_eq!(result.is_err(), fault == FaultKind::SyncDirectoryError);
        assert_eq!(fired(&machine, fault), 1);
        assert_eq!(machine.crash_image(CrashChoice::KeepNone).paths().len(), 0);
        files(&machine).sync_dir(Path::new("/")).unwrap();
        assert_eq!(machine.crash_image(CrashChoice::KeepNone).paths().len(), 1);
    }
}
