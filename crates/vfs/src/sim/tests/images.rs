//! Crash images: subsets, tears, and what they leave.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{CrashChoice, CrashImage, FaultKind, Options, PendingKind, Simulation};
use super::{contents, create, durable, files, machine, names};
use crate::OpenMode;

/// All images of random crashes, and the faults they count.
fn random_images(machine: &Simulation, count: u64) -> (Vec<CrashImage>, BTreeMap<FaultKind, u64>) {
    let images: Vec<_> =
        (0..count).map(|seed| machine.crash_image(CrashChoice::Random(seed))).collect();
    let mut total = BTreeMap::new();
    for image in &images {
        for (kind, count) in image.faults_fired() {
            *total.entry(kind).or_default() += count;
        }
    }
    (images, total)
}

#[test]
fn a_subset_keeps_exactly_its_bits() {
    let machine = machine(1);
    let a = durable(&machine, "/a", b"....");
    let b = durable(&machine, "/b", b"....");
    a.write_all_at(b"1", 0).unwrap();
    b.write_all_at(b"2", 1).unwrap();
    a.write_all_at(b"3", 2).unwrap();
    create(&machine, "/c");
    b.set_len(2).unwrap();

    let pending = machine.pending();
    let words: Vec<_> = pending.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        ["write /a 1 at 0", "write /b 1 at 1", "write /a 1 at 2", "create /c", "set length /b 2"]
    );
    assert_eq!(pending[3].kind, PendingKind::Create);
    assert_eq!(machine.pending_count(), 5);
    let mut images = BTreeSet::new();
    for mask in 0..32_u64 {
        let bit = |i: u32, yes: u8| if mask >> i & 1 == 1 { yes } else { b'.' };
        let image = machine.crash_image(CrashChoice::Subset(mask));
        assert_eq!(image.read("/a").unwrap(), [bit(0, b'1'), b'.', bit(2, b'3'), b'.']);
        let mut b = vec![b'.', bit(1, b'2'), b'.', b'.'];
        b.truncate(if mask & 16 == 0 { 4 } else { 2 });
        assert_eq!(image.read("/b").unwrap(), b);
        assert_eq!(image.file_len("/c").is_some(), mask & 8 != 0);
        images.insert(image.fingerprint());
    }
    assert_eq!(images.len(), 32, "the fingerprint tells all of them apart");
    let all = machine.crash_image(CrashChoice::KeepAll);
    assert_eq!(all.fingerprint(), machine.crash_image(CrashChoice::Subset(31)).fingerprint());
}

#[test]
fn an_image_is_durable_through_and_through() {
    let first = machine(1);
    durable(&first, "/a", b"old").write_all_at(b"new", 0).unwrap();
    let image = first.crash_image(CrashChoice::KeepAll);
    let after = Simulation::from_image(&image, 2, Options::default());
    assert_eq!(after.pending_count(), 0);
    let again = after.crash_image(CrashChoice::KeepNone);
    assert_eq!(again.fingerprint(), image.fingerprint());
    let file = files(&after).open("/a".as_ref(), OpenMode::Read).unwrap();
    assert_eq!(contents(&*file).unwrap(), b"new");
}

#[test]
fn torn_writes_keep_some_sectors() {
    let machine = machine(1);
    durable(&machine, "/a", &[1; 8_192]).write_all_at(&[2; 8_192], 0).unwrap();
    let (mut sectors, mut bytes) = (false, false);
    for seed in 0..200 {
        let choice = CrashChoice::TornSubset { mask: 1, seed };
        let image = machine.crash_image(choice);
        let found = image.read("/a").unwrap();
        assert_eq!(found.len(), 8_192);
        assert!(found.iter().any(|b| *b != 2), "a tear loses something");
        assert_eq!(image.faults_fired()[&FaultKind::TornWrite], 1);
        let edges: Vec<_> =
            (1..found.len()).filter(|i| (found[*i] == 2) != (found[i - 1] == 2)).collect();
        sectors |= edges.len() > 1 && edges.iter().all(|edge| edge % 512 == 0);
        bytes |= edges.len() == 1 && edges[0] % 512 != 0;
        assert_eq!(image.fingerprint(), machine.crash_image(choice).fingerprint(), "repeatable");
    }
    assert!(sectors && bytes, "tears at sectors and at any byte");
}

#[test]
fn a_torn_append_leaves_missing_zero_or_garbage_tails() {
    let machine = machine(1);
    durable(&machine, "/a", &[1; 100]).write_all_at(&[2; 3_000], 100).unwrap();
    let (mut short, mut zeros, mut garbage) = (0, 0, 0);
    for seed in 0..300 {
        let image = machine.crash_image(CrashChoice::TornSubset { mask: 1, seed });
        let found = image.read("/a").unwrap();
        assert_eq!(found[..100], [1; 100], "bytes not written to stay");
        let tail = &found[100..];
        short += usize::from(tail.len() < 3_000);
        zeros += usize::from(tail.len() == 3_000 && tail.ends_with(&[0; 40]));
        garbage += usize::from(image.faults_fired().contains_key(&FaultKind::GarbageTail));
    }
    assert!(short > 30 && zeros > 30 && garbage > 30, "{short} {zeros} {garbage}");
}

#[test]
fn random_images_show_every_kind_of_loss() {
    let machine = machine(1);
    let a = durable(&machine, "/a", &[1; 2_000]);
    durable(&machine, "/doomed", b"x");
    durable(&machine, "/from", b"x");
    a.write_all_at(&[2; 2_000], 0).unwrap();
    a.write_all_at(&[3; 2_000], 2_000).unwrap();
    let files = files(&machine);
    files.remove("/doomed".as_ref()).unwrap();
    files.rename("/from".as_ref(), "/to".as_ref()).unwrap();
    create(&machine, "/new").write_all_at(&[4; 700], 0).unwrap();
    let (images, total) = random_images(&machine, 2_000);
    for kind in [
        FaultKind::LostWrite,
        FaultKind::ReorderedWrite,
        FaultKind::TornWrite,
        FaultKind::GarbageTail,
        FaultKind::SizeWithoutData,
        FaultKind::DataWithoutSize,
        FaultKind::LostCreate,
        FaultKind::LostRename,
        FaultKind::LostRemove,
    ] {
        assert!(total.get(&kind).copied().unwrap_or_default() >= 20, "{kind:?}: {total:?}");
    }
    let distinct: BTreeSet<_> = images.iter().map(CrashImage::fingerprint).collect();
    assert!(distinct.len() > 500, "{} distinct images", distinct.len());
    for image in &images {
        let a = image.read("/a").unwrap();
        assert!(a.len() >= 2_000, "the synced length stays");
        assert!(image.file_len("/from").is_some() != image.file_len("/to").is_some());
        assert!(image.read("/new").is_none_or(|bytes| bytes.len() <= 700));
    }
}

#[test]
fn size_without_data_and_data_without_size() {
    let machine = machine(1);
    durable(&machine, "/a", &[1; 100]).write_all_at(&[2; 100], 50).unwrap();
    let (images, _) = random_images(&machine, 1_000);
    let with = |kind| images.iter().filter(move |i| i.faults_fired().contains_key(&kind));
    for image in with(FaultKind::SizeWithoutData) {
        let bytes = image.read("/a").unwrap();
        assert_eq!(bytes[..100], [1; 100]);
        assert_eq!(bytes.len(), 150);
        assert!(bytes[100..].iter().any(|b| *b != 2));
    }
    for image in with(FaultKind::DataWithoutSize) {
        assert_eq!(image.read("/a").unwrap(), [[1; 50], [2; 50]].concat());
    }
    assert!(with(FaultKind::SizeWithoutData).count() > 5);
    assert!(with(FaultKind::DataWithoutSize).count() > 5);
}

#[test]
fn synced_data_survives_every_random_crash() {
    let machine = machine(1);
    let file = durable(&machine, "/a", &[7; 9_000]);
    file.write_all_at(&[8; 5_000], 9_000).unwrap();
    create(&machine, "/b").write_all_at(&[9; 5_000], 0).unwrap();
    for image in random_images(&machine, 500).0 {
        assert_eq!(image.read("/a").unwrap()[..9_000], [7; 9_000]);
    }
}

#[test]
fn images_can_be_damaged() {
    let machine = machine(1);
    durable(&machine, "/a", &[0; 10]);
    let mut image = machine.crash_image(CrashChoice::KeepNone);
    let sound = image.fingerprint();
    assert!(image.flip_bit("/a", 9, 3));
    assert!(!image.flip_bit("/a", 10, 3), "past the end");
    assert!(!image.flip_bit("/b", 0, 0), "no such file");
    assert_eq!(image.read("/a").unwrap(), [0, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
    assert_eq!(image.faults_fired()[&FaultKind::BitFlip], 1);
    assert!(image.flip_bit("/a", 9, 3));
    assert_eq!(image.fingerprint(), sound);
    assert!(image.overwrite("/a", 8, b"abc") && image.truncate("/a", 10));
    assert_eq!(image.read("/a").unwrap(), b"\0\0\0\0\0\0\0\0ab");
    let after = Simulation::from_image(&image, 2, Options::default());
    let file = files(&after).open("/a".as_ref(), OpenMode::Read).unwrap();
    assert_eq!(contents(&*file).unwrap(), b"\0\0\0\0\0\0\0\0ab");
    assert!(names(&CrashImage::empty()).is_empty());
}

#[test]
fn images_can_be_made_by_hand_and_copied_out() {
    let mut image = CrashImage::empty();
    assert!(image.insert("/db/deep/a", &[7; 5_000]));
    assert!(image.insert("db/b", b"first") && image.insert("/db/b", b"2nd"));
    assert!(!image.insert("/db", b"") && !image.insert("/db/b/c", b""), "something is in the way");
    assert_eq!(names(&image), ["/db/b", "/db/deep/a"]);
    assert_eq!(image.read("/db/b").unwrap(), b"2nd");

    let target = machine(1);
    image.copy_to(&*files(&target), "/copy".as_ref()).unwrap();
    let copy = target.crash_image(CrashChoice::KeepAll);
    assert_eq!(names(&copy), ["/copy/db/b", "/copy/db/deep/a"]);
    assert_eq!(copy.read("/copy/db/deep/a").unwrap(), [7; 5_000]);
    assert!(image.copy_to(&*files(&target), "/copy".as_ref()).is_err(), "nothing is replaced");
}
