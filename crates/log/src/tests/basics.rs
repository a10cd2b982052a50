use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use esker_format::frame::{PAYLOAD_BYTES_MAX, kind};

use super::*;
use crate::{ErrorKind, unused};

#[test]
fn what_was_appended_survives() {
    let directory = Directory::new();
    let log = directory.create();
    assert_eq!((log.next_commit(), log.durable(), log.epoch()), (2, 1, 1));
    append_each(&log, 10);
    drop(log);
    let scan = directory.scan(0).unwrap();
    assert_eq!(commits(&scan), (1..=11).collect::<Vec<_>>());
    assert_eq!((scan.last_commit(), scan.proven(), scan.settled()), (11, 10, 10));
    assert_eq!(scan.torn_tail(), None);
    let frames: Vec<_> = scan.frames().map(Result::unwrap).collect();
    assert_eq!((frames[0].kind, frames[1].kind), (kind::EPOCH_START, kind::ROWS));
    assert_eq!(commits(&directory.scan(5).unwrap()), (6..=11).collect::<Vec<_>>());
    assert_eq!(commits(&directory.scan(11).unwrap()), [0; 0]);
}

#[test]
fn epochs_follow_one_another_and_files_stay_few() {
    let directory = Directory::new();
    append_each(&directory.create(), 3);
    for epoch in 2..8 {
        let log = directory.reopen(0);
        assert_eq!(log.epoch(), epoch);
        assert_eq!(log.durable(), log.next_commit() - 1);
        append_each(&log, 3);
        assert_eq!(directory.names().len(), 1, "{:?}", directory.names());
    }
    let scan = directory.scan(0).unwrap();
    assert_eq!(scan.last_commit(), 7 * 4);
    assert_eq!(commits(&scan).len(), 7 * 4);
    let starts = scan.frames().filter(|f| f.as_ref().unwrap().kind == kind::EPOCH_START);
    assert_eq!(starts.count(), 7);
}

#[test]
fn files_rotate_and_go_with_the_checkpoint() {
    let directory = Directory::new();
    let log = directory.create();
    for _ in 0..4 {
        append_each(&log, 5);
        log.rotate().unwrap();
        log.rotate().unwrap();
    }
    assert_eq!(directory.names().len(), 5, "an empty file is not left for another");
    append_each(&log, 5);
    assert_eq!(commits(&directory.scan(0).unwrap()), (1..=26).collect::<Vec<_>>());
    let bytes = log.bytes();
    log.remove_through(10).unwrap();
    assert_eq!(directory.names().len(), 4, "commit 11 is needed");
    log.remove_through(11).unwrap();
    assert_eq!(directory.names().len(), 3);
    assert!(log.bytes() < bytes);
    assert_eq!(commits(&directory.scan(11).unwrap()), (12..=26).collect::<Vec<_>>());
    log.remove_through(u64::MAX).unwrap();
    assert_eq!(directory.names().len(), 1, "the current file stays");
    drop(log);
    let log = directory.reopen(26);
    assert_eq!(log.next_commit(), 28);
    assert_eq!(directory.names().len(), 1);
}

#[test]
fn a_long_log_is_not_copied() {
    let directory = Directory::new();
    let log = directory.create();
    let payload = vec![7; 1 << 20];
    for _ in 0..6 {
        let ticket = log.append(kind::FIRST_EDIT, &payload).unwrap();
        log.wait_durable(ticket).unwrap();
    }
    drop(log);
    let log = directory.reopen(0);
    let names = directory.names();
    assert_eq!(names.len(), 2);
    assert!(directory.read(&names[1]).len() < 2 << 20, "only what is not settled");
    append_each(&log, 2);
    log.remove_through(5).unwrap();
    assert_eq!(directory.names().len(), 2);
    drop(log);
    for _ in 0..3 {
        let log = directory.reopen(0);
        append_each(&log, 1);
        assert!(log.bytes() > 6 << 20);
    }
    let scan = directory.scan(0).unwrap();
    let frames: Vec<_> = scan.frames().map(Result::unwrap).collect();
    assert_eq!(frames.len() as u64, scan.last_commit());
    assert!(frames[1..7].iter().all(|f| f.payload == payload));
    let log = directory.reopen(7);
    assert_eq!(directory.names().len(), 1);
    drop(log);
    assert_eq!(commits(&directory.scan(7).unwrap())[0], 8);
}

#[test]
fn close_proves_everything() {
    let directory = Directory::new();
    let log = directory.create();
    append_each(&log, 4);
    log.close().unwrap();
    let scan = directory.scan(0).unwrap();
    assert_eq!((scan.last_commit(), scan.proven()), (6, 5));
    assert_eq!(scan.frames().last().unwrap().unwrap().kind, kind::CLOSE);
}

#[test]
fn queued_frames_are_one_batch() {
    let directory = Directory::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let on_durable = {
        let seen = Arc::clone(&seen);
        Arc::new(move |commit, frames: &[u8]| {
            let numbers = frames.windows(8).filter(|bytes| bytes[1..] == [0; 7] && bytes[0] > 1);
            let payloads =
                (2..=commit).filter(|n: &u64| numbers.clone().any(|b| *b == n.to_le_bytes()));
            seen.lock().unwrap().push((commit, payloads.count()));
        })
    };
    let options = Options { on_durable: Some(on_durable), ..Options::default() };
    let log = Log::create(&directory.environment, &directory.path, DATABASE, options).unwrap();
    let tickets: Vec<_> =
        (2..=9_u64).map(|commit| log.append(kind::ROWS, &commit.to_le_bytes()).unwrap()).collect();
    assert!(log.queued_bytes() > 0);
    assert_eq!(log.durable(), 1);
    for ticket in tickets {
        log.wait_durable(ticket).unwrap();
    }
    assert_eq!(*seen.lock().unwrap(), [(9, 8)], "the frames of a batch come with it");
    assert_eq!(log.queued_bytes(), 0);
    log.append(kind::ROWS, &10_u64.to_le_bytes()).unwrap();
    log.flush().unwrap();
    assert_eq!(seen.lock().unwrap()[1].0, 10);
    log.flush().unwrap();
    assert_eq!(commits(&directory.scan(0).unwrap()).len(), 10);
}

#[test]
fn too_long_a_payload_takes_no_number() {
    let directory = Directory::new();
    let log = directory.create();
    let error = log.append(kind::ROWS, &vec![0; PAYLOAD_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let ticket = log.append(kind::FIRST_EDIT, &vec![0; PAYLOAD_BYTES_MAX]).unwrap();
    assert_eq!(ticket.commit, 2);
    log.wait_durable(ticket).unwrap();
    append_each(&log, 1);
    assert_eq!(directory.scan(0).unwrap().last_commit(), 3);
}

#[test]
fn creation_replaces_only_its_own_leftovers() {
    let directory = Directory::new();
    assert!(unused(&directory.environment, &directory.path).unwrap());
    let create =
        || Log::create(&directory.environment, &directory.path, DATABASE + 1, Options::default());
    for cut in [0, 10, 100, 152] {
        drop(directory.create());
        let name = directory.names()[0].clone();
        let bytes = directory.read(&name);
        directory.write(&name, &bytes[..cut]);
        assert!(unused(&directory.environment, &directory.path).unwrap());
        append_each(&create().unwrap(), 1);
        assert!(!unused(&directory.environment, &directory.path).unwrap());
        assert_eq!(create().unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::NotOurs);
        directory.environment.files.remove(&directory.path.join(&name)).unwrap();
    }
    let error = directory.scan(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

#[test]
fn threads_share_batches() {
    let directory = Directory::new();
    let highest = Arc::new(AtomicU64::new(0));
    let on_durable = {
        let highest = Arc::clone(&highest);
        Arc::new(move |commit, _: &[u8]| {
            assert!(highest.swap(commit, Ordering::SeqCst) < commit, "calls come in order");
        })
    };
    let options = Options { on_durable: Some(on_durable), ..Options::default() };
    let log = Log::create(&directory.environment, &directory.path, DATABASE, options).unwrap();
    let numbering = Mutex::new(());
    directory.environment.tasks.parallel(8, &|thread| {
        for turn in 0..300 {
            let guard = numbering.lock().unwrap();
            let payload = log.next_commit().to_le_bytes();
            let ticket = log.append(kind::ROWS, &payload).unwrap();
            drop(guard);
            log.wait_durable(ticket).unwrap();
            assert!(highest.load(Ordering::SeqCst) >= ticket.commit);
            if thread == 3 && turn % 50 == 0 {
                log.rotate().unwrap();
            }
        }
    });
    let scan = directory.scan(0).unwrap();
    assert_eq!(commits(&scan).len(), 8 * 300 + 1);
    log.close().unwrap();
}
