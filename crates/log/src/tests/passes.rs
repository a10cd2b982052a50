//! Passing over the log again and again, as an open does: the files are read once.

use esker_vfs::sim::{Options as SimOptions, Simulation};

use super::*;
use crate::{ErrorKind, LogFiles, RecoveredFrame};

const DIR: &str = "db";

/// Five files with an edit after every fourth commit of rows, some larger than what is marked.
fn long_log(machine: &Simulation) -> Vec<(u64, u16, Vec<u8>)> {
    let environment = machine.environment();
    environment.files.create_dir_all(Path::new(DIR)).unwrap();
    let log = Log::create(&environment, Path::new(DIR), DATABASE, Options::default()).unwrap();
    let start = EpochStart { previous_epoch: 0, ended_at_commit: 0 };
    let mut written = vec![(1, kind::EPOCH_START, start.encode())];
    for turn in 0..100_u8 {
        let kind = if turn % 5 == 4 { kind::FIRST_EDIT } else { kind::ROWS };
        let payload = vec![turn; if turn % 3 == 0 { 90_000 } else { usize::from(turn) }];
        let ticket = log.append(kind, &payload).unwrap();
        written.push((ticket.commit, kind, payload));
        if turn % 20 == 19 {
            log.flush().unwrap();
            log.rotate().unwrap();
        }
    }
    written
}

fn owned(frame: crate::Result<RecoveredFrame<'_>>) -> (u64, u16, Vec<u8>) {
    let frame = frame.unwrap();
    (frame.commit, frame.kind, frame.payload.to_vec())
}

#[test]
fn frames_are_found_in_memory() {
    let machine = Simulation::new(1, SimOptions::default());
    let written = long_log(&machine);
    let is_edit = |frame: &&(u64, u16, Vec<u8>)| frame.1 >= kind::FIRST_EDIT;
    for checkpoint in [0, 1, 5, 20, 21, 22, 59, 100, 101] {
        let rest = &written[usize::try_from(checkpoint).unwrap()..];
        let environment = machine.environment();
        let scan = scan(&environment, Path::new(DIR), DATABASE, checkpoint).unwrap();
        let calls = machine.call_count();
        for _ in 0..2 {
            assert_eq!(scan.frames().map(owned).collect::<Vec<_>>(), rest);
            let edits: Vec<_> = rest.iter().filter(is_edit).cloned().collect();
            assert_eq!(scan.edits().map(owned).collect::<Vec<_>>(), edits);
        }
        assert_eq!(machine.call_count(), calls, "a pass called the file system");
    }
}

#[test]
fn another_checkpoint_reads_no_file() {
    let machine = Simulation::new(2, SimOptions::default());
    let written = long_log(&machine);
    let environment = machine.environment();
    let files = LogFiles::read(&environment, Path::new(DIR), DATABASE, 20).unwrap();
    let calls = machine.call_count();
    for checkpoint in (20..=101).rev() {
        let scan = files.scan(checkpoint).unwrap();
        let rest = &written[usize::try_from(checkpoint).unwrap()..];
        assert_eq!(scan.frames().map(owned).collect::<Vec<_>>(), rest);
    }
    assert_eq!(machine.call_count(), calls);
    assert_eq!(files.scan(19).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn only_files_of_the_chain_stay_in_memory() {
    let machine = Simulation::new(3, SimOptions::default());
    long_log(&machine);
    let environment = machine.environment();
    let files = LogFiles::read(&environment, Path::new(DIR), DATABASE, 21).unwrap();
    let kept = |files: &LogFiles| -> Vec<_> {
        files.files.iter().map(|file| file.bytes.as_ref().map(Arc::downgrade)).collect()
    };
    let bytes = kept(&files);
    let held: Vec<_> = bytes.iter().map(Option::is_some).collect();
    assert_eq!(held, [false, true, true, true, true, false], "commits 22 to 101 are in four files");
    let scan = files.scan(70).unwrap();
    drop(files);
    let alive = || bytes.iter().flatten().filter(|bytes| bytes.upgrade().is_some()).count();
    assert_eq!(alive(), 2);
    drop(scan);
    assert_eq!(alive(), 0);
}

#[test]
fn a_start_finds_the_first_frame_it_copies() {
    let machine = Simulation::new(4, SimOptions::default());
    let written = long_log(&machine);
    let environment = machine.environment();
    for settled in [0, 3, 30] {
        let scan = scan(&environment, Path::new(DIR), DATABASE, 0).unwrap();
        let frames = crate::Frames::new(&scan, settled, false).map(owned);
        assert_eq!(
            frames.collect::<Vec<_>>(),
            &written[usize::try_from(settled).unwrap()..],
            "above {settled}"
        );
    }
}
