//! Log files damaged by hand: what is a torn tail, what is damage, and that neither is modified.

use esker_format::frame::{
    FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FileHeader, decode_unchecked, frame_bytes, place,
    seal_frame,
};

use super::*;
use crate::ErrorKind;

/// The size of a frame made by `append_each`.
const FRAME: usize = FRAME_HEADER_BYTES + 8;
/// Where the frames of `append_each` start in the first file.
const FIRST: usize = FILE_HEADER_BYTES + FRAME_HEADER_BYTES + 16;

/// A directory with one log of commits 1..=`count` + 1, the name of its file, and its bytes.
fn one_file(count: u64) -> (Directory, String, Vec<u8>) {
    let directory = Directory::new();
    append_each(&directory.create(), count);
    let name = directory.names()[0].clone();
    let mut bytes = directory.read(&name);
    let frames = usize::try_from(count).unwrap() * FRAME;
    assert!(bytes.split_off(FIRST + frames).iter().all(|b| *b == 0), "space for more");
    directory.write(&name, &bytes);
    (directory, name, bytes)
}

/// Scans, expecting an error that names the file and the offset; nothing may be modified.
fn damage(directory: &Directory, checkpoint_commit: u64, file: &str, offset: usize) {
    let names = directory.names();
    let before: Vec<_> = names.iter().map(|name| directory.read(name)).collect();
    let error = directory.scan(checkpoint_commit).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let text = error.to_string();
    assert!(text.contains(file), "{text} names {file}");
    assert!(text.contains(&format!("offset {offset}:")), "{text} names {offset}");
    assert_eq!(directory.names(), names);
    for (name, bytes) in names.iter().zip(before) {
        assert_eq!(directory.read(name), bytes);
    }
}

#[test]
fn any_damage_to_the_last_batch_is_a_torn_tail() {
    let (directory, name, bytes) = one_file(4);
    let last = FIRST + 3 * FRAME;
    for byte in last..last + FRAME {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 0x10;
        directory.write(&name, &damaged);
        let scan = directory.scan(0).unwrap();
        assert_eq!(commits(&scan), [1, 2, 3, 4], "byte {byte}");
        let tail = scan.torn_tail().unwrap();
        assert_eq!((tail.offset, tail.bytes), (last as u64, FRAME as u64));
        assert_eq!(tail.path, directory.path.join(&name));
    }
    for len in last..last + FRAME {
        directory.write(&name, &bytes[..len]);
        assert_eq!(commits(&directory.scan(0).unwrap()), [1, 2, 3, 4], "cut to {len}");
    }
}

#[test]
fn any_damage_before_the_last_batch_is_an_error() {
    let (directory, name, bytes) = one_file(4);
    for frame in 0..3 {
        let start = FIRST + frame * FRAME;
        for byte in start..start + FRAME {
            let mut damaged = bytes.clone();
            damaged[byte] ^= 0x10;
            directory.write(&name, &damaged);
            damage(&directory, 0, &name, start);
        }
    }
    for byte in FILE_HEADER_BYTES..FIRST {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 0x10;
        directory.write(&name, &damaged);
        assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    for byte in 0..FILE_HEADER_BYTES {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 0x10;
        directory.write(&name, &damaged);
        assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt, "byte {byte}");
    }
}

#[test]
fn what_the_checkpoint_holds_may_be_damaged() {
    let (directory, name, mut bytes) = one_file(4);
    bytes[FIRST + 4] ^= 1;
    directory.write(&name, &bytes);
    damage(&directory, 1, &name, FIRST);
    // The run ends at commit 2, but a checkpoint at 5 needs nothing of it.
    assert_eq!(directory.scan(5).unwrap().last_commit(), 5);
}

#[test]
fn a_hole_is_damage_only_when_something_proves_it() {
    let directory = Directory::new();
    let log = directory.create();
    append_each(&log, 1);
    for commit in 3..=6_u64 {
        log.append(kind::ROWS, &commit.to_le_bytes()).unwrap();
    }
    log.flush().unwrap();
    let name = directory.names()[0].clone();
    let bytes = directory.read(&name);
    // One frame of the last batch is lost, the ones behind it are not: nobody was told.
    let mut holed = bytes.clone();
    let hole = FIRST + 2 * FRAME;
    holed[hole..hole + FRAME].fill(0);
    directory.write(&name, &holed);
    assert_eq!(commits(&directory.scan(0).unwrap()), [1, 2, 3]);
    // One more batch, and the hole is proven.
    directory.write(&name, &bytes);
    let log = directory.reopen(0);
    append_each(&log, 1);
    let name = directory.names()[0].clone();
    let mut holed = directory.read(&name);
    holed[hole..hole + FRAME].fill(0);
    directory.write(&name, &holed);
    assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn close_proves_the_last_batch() {
    let directory = Directory::new();
    let log = directory.create();
    append_each(&log, 2);
    log.close().unwrap();
    let name = directory.names()[0].clone();
    let mut bytes = directory.read(&name);
    bytes[FIRST + FRAME] ^= 1;
    directory.write(&name, &bytes);
    damage(&directory, 0, &name, FIRST + FRAME);
}

#[test]
fn a_missing_file_is_damage() {
    let directory = Directory::new();
    let log = directory.create();
    for _ in 0..3 {
        append_each(&log, 3);
        log.rotate().unwrap();
    }
    append_each(&log, 3);
    let names = directory.names();
    assert_eq!(names.len(), 4);
    let ends = [FIRST + 3 * FRAME, FILE_HEADER_BYTES + 3 * FRAME, FILE_HEADER_BYTES + 3 * FRAME];
    for missing in 0..3 {
        let bytes = directory.read(&names[missing]);
        directory.environment.files.remove(&directory.path.join(&names[missing])).unwrap();
        match missing {
            0 => assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt),
            _ => damage(&directory, 0, &names[missing - 1], ends[missing - 1]),
        }
        directory.write(&names[missing], &bytes);
    }
    assert_eq!(directory.scan(0).unwrap().last_commit(), 13);
    // The newest file is proven by nothing, and an empty one follows each full one anyway.
    directory.environment.files.remove(&directory.path.join(&names[3])).unwrap();
    assert_eq!(directory.scan(0).unwrap().last_commit(), 10);
}

#[test]
fn a_rotated_file_goes_on_with_the_chain() {
    let directory = Directory::new();
    let log = directory.create();
    append_each(&log, 3);
    log.rotate().unwrap();
    append_each(&log, 3);
    log.rotate().unwrap();
    append_each(&log, 3);
    let names = directory.names();
    // A file of the same numbers from another history of the same epoch.
    let other = Directory::new();
    let log = other.create();
    append_each(&log, 2);
    log.append(kind::FIRST_EDIT, b"another past").unwrap();
    log.flush().unwrap();
    log.rotate().unwrap();
    append_each(&log, 3);
    let stray = other.read(&other.names()[1]);
    assert_eq!(FileHeader::decode(&stray).unwrap().first_commit, 5);
    directory.write(&names[1], &stray);
    assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn files_of_others_are_left_alone() {
    let (directory, name, bytes) = one_file(2);
    let error = scan(&directory.environment, &directory.path, DATABASE + 1, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotOurs);
    assert!(error.to_string().contains(&name), "{error}");

    let mut newer = bytes.clone();
    newer[8] = 99;
    let sum = esker_format::checksum::checksum(place(DATABASE, 1, 0), &newer[..72]);
    newer[72..80].copy_from_slice(&sum.to_le_bytes());
    directory.write(&name, &newer);
    let error = directory.scan(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownVersion);
    assert!(error.to_string().contains("version is 99"), "{error}");

    directory.write(&name, &bytes);
    for other in ["log-", "log-1", "log-00000000000000001", "log-000000000000000G", "LOG-1", "data"]
    {
        directory.write(other, b"not a log file");
    }
    directory.write("log-00000000000000AB", b"upper case");
    append_each(&directory.reopen(0), 1);
    assert_eq!(directory.names().len(), 8, "{:?}", directory.names());
    assert_eq!(directory.read("log-1"), b"not a log file");

    let name = directory.names().into_iter().find(|n| n.ends_with("02")).unwrap();
    let bytes = directory.read(&name);
    directory.write("log-0000000000000007", &bytes);
    let error = directory.scan(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("under another name"), "{error}");
}

#[test]
fn an_unfinished_recovery_does_not_count() {
    let (directory, old_name, old) = one_file(5);
    drop(directory.reopen(0));
    let name = directory.names()[0].clone();
    assert_ne!(name, old_name);
    let bytes = directory.read(&name);
    assert_eq!(directory.scan(0).unwrap().last_commit(), 7);
    directory.write(&old_name, &old);
    assert_eq!(directory.scan(0).unwrap().last_commit(), 7, "a removed file came back");
    for byte in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[byte] ^= 0x40;
        directory.write(&name, &damaged);
        let scan = directory.scan(0).unwrap();
        assert_eq!(commits(&scan), [1, 2, 3, 4, 5, 6], "byte {byte}");
    }
    // With nothing older it was finished, so it is damaged.
    directory.environment.files.remove(&directory.path.join(&old_name)).unwrap();
    assert_eq!(directory.scan(0).unwrap_err().kind(), ErrorKind::Corrupt);
    // Recovery after an unfinished one takes a higher epoch and clears up.
    directory.write(&old_name, &old);
    let log = directory.reopen(0);
    assert_eq!((log.epoch(), log.next_commit()), (3, 8));
    assert_eq!(directory.names().len(), 1);
}

#[test]
fn void_frames_stay_void() {
    let (directory, old_name, old) = one_file(5);
    // The last frame is torn when the log is opened again …
    directory.write(&old_name, &old[..old.len() - FRAME]);
    let log = directory.reopen(0);
    append_each(&log, 3);
    let scan = directory.scan(0).unwrap();
    let expected: Vec<_> = scan.frames().map(Result::unwrap).collect();
    assert_eq!(expected.len(), 9);
    // … and the whole file is back later.
    directory.write(&old_name, &old);
    let again = directory.scan(0).unwrap();
    let frames: Vec<_> = again.frames().map(Result::unwrap).collect();
    assert_eq!(frames, expected);
}

#[test]
fn a_frame_elsewhere_proves_nothing() {
    let (directory, name, bytes) = one_file(5);
    let frame = bytes[FIRST + 4 * FRAME..FIRST + 5 * FRAME].to_vec();
    let log = directory.reopen(0);
    // The payload is a frame that says that commit 5 was durable; then its own frame is torn.
    let ticket = log.append(kind::FIRST_EDIT, &frame).unwrap();
    log.wait_durable(ticket).unwrap();
    drop(log);
    let newer = directory.names()[0].clone();
    let whole = directory.read(&newer);
    let end = whole.len() - whole.iter().rev().position(|b| *b != 0).unwrap();
    let start = end.next_multiple_of(8) - frame_bytes(frame.len());
    let mut torn = bytes[..FIRST].to_vec();
    torn.extend_from_slice(&whole[start + FRAME_HEADER_BYTES..]);
    directory.environment.files.remove(&directory.path.join(&newer)).unwrap();
    directory.write(&name, &torn);
    let scan = directory.scan(0).unwrap();
    assert_eq!(scan.last_commit(), 1);
    assert!(scan.torn_tail().is_some());
}

#[test]
fn nothing_is_read_behind_an_error() {
    let (directory, name, _) = one_file(3);
    let mut scan = directory.scan(0).unwrap();
    let last = scan.last_commit();
    // Memory that is not what was verified.
    scan.chain[0].last_commit = last + 1;
    let mut frames = scan.frames();
    for commit in 1..=last {
        assert_eq!(frames.next().unwrap().unwrap().commit, commit);
    }
    let error = frames.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(&name) && error.to_string().contains("offset"), "{error}");
    assert!(frames.next().is_none());
}

#[test]
fn a_frame_that_claims_itself_durable_is_a_broken_invariant() {
    let (directory, name, bytes) = one_file(4);
    let (last, commit) = (FIRST + 3 * FRAME, 5);
    let before = decode_unchecked(&bytes[last - FRAME..]).unwrap().checksum;
    let claims = |durable_through| {
        let mut bytes = bytes.clone();
        let place = place(DATABASE, 1, last as u64);
        seal_frame(&mut bytes[last..], place, before, durable_through).unwrap();
        directory.write(&name, &bytes);
    };
    claims(commit - 1);
    assert_eq!(directory.scan(0).unwrap().last_commit(), commit);
    claims(commit);
    damage(&directory, 0, &name, last);
    let text = directory.scan(0).unwrap_err().to_string();
    assert!(text.contains("broken invariant: the frame of commit 5 claims"), "{text}");
}
