//! What is durable, and what only seems so.

use std::path::Path;

use super::super::contents::{Contents, MAX_LEN};
use super::super::{CrashChoice, Generator, Options, Simulation};
use super::{contents, create, durable, files, machine, names};
use crate::{ErrorKind, LockMode, OpenMode};

#[test]
fn an_unsynced_name_is_lost_with_its_synced_contents() {
    let machine = machine(1);
    let file = create(&machine, "/a");
    file.write_all_at(b"synced", 0).unwrap();
    file.sync_data().unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    assert!(names(&image).is_empty(), "syncing a file does not sync its name");
    let image = machine.crash_image(CrashChoice::KeepAll);
    assert_eq!(image.read("/a").unwrap(), b"synced");
}

#[test]
fn a_synced_name_does_not_sync_contents() {
    let machine = machine(1);
    create(&machine, "/a").write_all_at(b"unsynced", 0).unwrap();
    files(&machine).sync_dir(Path::new("/")).unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    assert_eq!(image.read("/a").unwrap(), b"");
    assert_eq!(image.read("a").unwrap(), b"", "paths start from the root");
}

#[test]
fn sync_makes_writes_and_length_durable() {
    let machine = machine(1);
    let file = durable(&machine, "/a", b"0123456789");
    file.write_all_at(b"new", 2).unwrap();
    file.set_len(6).unwrap();
    assert_eq!(contents(&*file).unwrap(), b"01new5");
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).read("/a").unwrap(), b"0123456789");
    file.sync_data().unwrap();
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).read("/a").unwrap(), b"01new5");
    assert_eq!(machine.pending_count(), 0);
}

#[test]
fn a_rename_is_lost_or_kept_as_one() {
    let machine = machine(1);
    durable(&machine, "/old", b"old");
    let new = create(&machine, "/new");
    new.write_all_at(b"new", 0).unwrap();
    new.sync_data().unwrap();
    files(&machine).sync_dir(Path::new("/")).unwrap();
    files(&machine).rename(Path::new("/new"), Path::new("/old")).unwrap();
    assert_eq!(machine.pending_count(), 1);

    let lost = machine.crash_image(CrashChoice::KeepNone);
    assert_eq!(names(&lost), ["/new", "/old"]);
    assert_eq!(lost.read("/old").unwrap(), b"old");
    let kept = machine.crash_image(CrashChoice::Subset(1));
    assert_eq!(names(&kept), ["/old"]);
    assert_eq!(kept.read("/old").unwrap(), b"new");
}

#[test]
fn a_rename_survives_the_loss_of_the_creation() {
    let machine = machine(1);
    create(&machine, "/a").sync_data().unwrap();
    files(&machine).rename(Path::new("/a"), Path::new("/b")).unwrap();
    let image = |mask| names(&machine.crash_image(CrashChoice::Subset(mask)));
    assert_eq!(image(0b00), [""; 0]);
    assert_eq!(image(0b01), ["/a"]);
    assert_eq!(image(0b10), ["/b"]);
    assert_eq!(image(0b11), ["/b"]);
}

#[test]
fn a_rename_between_directories_is_durable_with_either() {
    for synced in ["/one", "/two"] {
        let machine = machine(1);
        let files = files(&machine);
        files.create_dir_all(Path::new("/one")).unwrap();
        files.create_dir_all(Path::new("/two")).unwrap();
        durable(&machine, "/one/a", b"x");
        files.sync_dir(Path::new("/one")).unwrap();
        files.rename(Path::new("/one/a"), Path::new("/two/b")).unwrap();
        assert_eq!(names(&machine.crash_image(CrashChoice::KeepNone)), ["/one/a"]);
        files.sync_dir(Path::new(synced)).unwrap();
        assert_eq!(names(&machine.crash_image(CrashChoice::KeepNone)), ["/two/b"]);
    }
}

#[test]
fn an_unsynced_removal_comes_back() {
    let machine = machine(1);
    let file = durable(&machine, "/a", b"x");
    file.write_all_at(b"y", 0).unwrap();
    files(&machine).remove(Path::new("/a")).unwrap();
    assert_eq!(machine.pending_count(), 2);
    let image = machine.crash_image(CrashChoice::Subset(0b01));
    assert_eq!(image.read("/a").unwrap(), b"y", "removed, back, and written to");
    files(&machine).sync_dir(Path::new("/")).unwrap();
    assert_eq!(machine.pending_count(), 0, "nobody can see the write any more");
    assert_eq!(contents(&*file).unwrap(), b"y", "except through the open handle");
}

#[test]
fn a_removed_directory_takes_two_syncs() {
    let machine = machine(1);
    let files = files(&machine);
    files.create_dir_all(Path::new("/db/sub")).unwrap();
    durable(&machine, "/db/sub/a", b"x");
    files.sync_dir(Path::new("/db/sub")).unwrap();
    files.remove_dir_all(Path::new("/db")).unwrap();
    assert_eq!(names(&machine.crash_image(CrashChoice::KeepNone)), ["/db/sub/a"]);
    files.sync_dir(Path::new("/")).unwrap();
    assert_eq!(machine.crash_image(CrashChoice::KeepNone).paths().len(), 0);
}

#[test]
fn created_directories_are_durable_at_once() {
    let machine = machine(1);
    files(&machine).create_dir_all(Path::new("/a/b")).unwrap();
    let image = machine.crash_image(CrashChoice::KeepNone);
    let after = Simulation::from_image(&image, 2, Options::default());
    assert!(files(&after).exists(Path::new("/a/b")).unwrap());
}

#[test]
fn a_crash_releases_locks() {
    let machine = machine(1);
    let held = files(&machine).lock(Path::new("/LOCK"), LockMode::Exclusive, "me").unwrap();
    assert_eq!(machine.pending_count(), 0, "a lock file adds nothing to crashes");
    let image = machine.crash_image(CrashChoice::KeepNone);
    let after = Simulation::from_image(&image, 2, Options::default());
    files(&after).lock(Path::new("/LOCK"), LockMode::Exclusive, "you").unwrap();
    drop(held);
}

#[test]
fn images_and_machines_do_not_share_what_they_write() {
    let machine = machine(1);
    let file = durable(&machine, "/a", &[1; 5_000]);
    let image = machine.crash_image(CrashChoice::KeepNone);
    let after = Simulation::from_image(&image, 2, Options::default());
    let other = files(&after).open(Path::new("/a"), OpenMode::Write).unwrap();
    other.write_all_at(&[2; 10], 0).unwrap();
    other.sync_data().unwrap();
    file.write_all_at(&[3; 10], 100).unwrap();
    file.sync_data().unwrap();
    assert_eq!(image.read("/a").unwrap(), [1; 5_000]);
    assert_eq!(contents(&*other).unwrap()[..10], [2; 10]);
    assert_eq!(contents(&*other).unwrap()[10..], [1; 4_990]);
    assert_eq!(contents(&*file).unwrap()[..10], [1; 10]);
    assert_eq!(contents(&*file).unwrap()[100..110], [3; 10]);
}

#[test]
fn files_without_names_and_handles_are_forgotten() {
    let machine = machine(1);
    for _ in 0..3 {
        let file = durable(&machine, "/a", &[1; 5_000]);
        files(&machine).remove(Path::new("/a")).unwrap();
        files(&machine).sync_dir(Path::new("/")).unwrap();
        assert_eq!(contents(&*file).unwrap().len(), 5_000);
    }
    assert_eq!(machine.world().lock().disk.nodes.iter().flatten().count(), 1, "the root");
}

#[test]
fn a_full_disk_refuses_growth_and_recovers_when_space_is_freed() {
    let machine = Simulation::new(1, Options { capacity_bytes: 100, ..Options::default() });
    let file = create(&machine, "/a");
    file.write_all_at(&[1; 90], 0).unwrap();
    let error = file.write_at(&[1; 20], 90).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert_eq!(file.set_len(101).unwrap_err().kind(), ErrorKind::NoSpace);
    file.write_all_at(&[2; 90], 0).unwrap();
    file.set_len(10).unwrap();
    file.write_all_at(&[1; 90], 10).unwrap();
    let error = files(&machine).open(Path::new("/b"), OpenMode::CreateNew).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
}

#[test]
fn a_wild_offset_is_refused() {
    let file = create(&machine(1), "/a");
    for offset in [u64::MAX, u64::MAX - 1, MAX_LEN] {
        assert_eq!(file.write_at(b"xx", offset).unwrap_err().kind(), ErrorKind::NoSpace);
    }
    assert_eq!(file.set_len(u64::MAX).unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(file.read_at(&mut [0], u64::MAX).unwrap(), 0);
    assert!(file.is_empty().unwrap());
}

/// Pages against a plain vector, under random writes, cuts and extensions.
#[test]
fn contents_behave_like_a_vector() {
    let mut generator = Generator::new(3, 0);
    for _ in 0..200 {
        let (mut contents, mut model) = (Contents::default(), Vec::new());
        let mut copies = Vec::new();
        for _ in 0..30 {
            let at = generator.index(20_000);
            if generator.chance(300_000) {
                contents.set_len(at as u64);
                model.resize(at, 0);
            } else {
                let mut bytes = vec![0; generator.index(9_000)];
                generator.fill(&mut bytes);
                if !bytes.is_empty() && model.len() < at + bytes.len() {
                    model.resize(at + bytes.len(), 0);
                }
                contents.write(&bytes, at as u64);
                if !bytes.is_empty() {
                    model[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
            assert_eq!(contents.to_vec(), model);
            copies.push((contents.clone(), model.clone()));
        }
        for (copy, model) in copies {
            assert_eq!(copy.to_vec(), model, "copies do not change");
        }
    }
}
