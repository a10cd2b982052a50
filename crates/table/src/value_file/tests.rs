//! Values are found again, damage is named, files go when nobody holds them.

use std::sync::Arc;

use esker_vfs::Environment;
use esker_vfs::sync::Mutex;

use super::{ValueFiles, ValueLimits, value_file_path};
use crate::ErrorKind;

struct Directory(std::path::PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("esker-values-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        Environment::os().files.create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn values(&self, copies: bool) -> ValueFiles {
        let limits = ValueLimits { long_bytes: 100, file_bytes_max: 4_096 };
        let (dir, owned) = (self.0.clone(), Arc::new(Mutex::new(true)));
        ValueFiles::new(Environment::os(), dir, 7, copies, limits, owned)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = Environment::os().files.remove_dir_all(&self.0);
    }
}

#[test]
fn values_are_found_again_by_this_opening_and_the_next() {
    for copies in [false, true] {
        let dir = Directory::new(if copies { "copied" } else { "mapped" });
        let values = dir.values(copies);
        let mut next = 0;
        let mut new_id = || {
            next += 1;
            next
        };
        let value = |i: u8| vec![i; 300 + usize::from(i) * 250];
        let stored: Vec<_> =
            (0..20).map(|i| values.store(&value(i), &mut new_id).unwrap()).collect();
        stored.iter().try_for_each(super::StoredValue::sync).unwrap();
        assert!(stored[0].file.id() == stored[1].file.id(), "small values share a file");
        assert!(stored.iter().any(|s| s.file.id() != 1), "a file takes so much only");
        let reopened = dir.values(copies);
        for (i, stored) in (0..20).zip(&stored) {
            let reference = stored.reference;
            stored.file.ensure(&reference).unwrap();
            assert_eq!(stored.file.bytes(&reference), value(i));
            let file = reopened.open(reference.file).unwrap();
            file.ensure(&reference).unwrap();
            assert_eq!(file.bytes(&reference), value(i));
        }
    }
}

#[test]
fn damage_is_an_error_that_names_file_and_offset() {
    let dir = Directory::new("damage");
    let values = dir.values(false);
    let stored = values.store(&[3; 500], &mut || 9).unwrap();
    let path = value_file_path(&dir.0, 9);
    let files = Environment::os().files;
    let file = files.open(&path, esker_vfs::OpenMode::Write).unwrap();
    file.write_all_at(&[4], stored.reference.offset + 77).unwrap();
    let e = stored.file.ensure(&stored.reference).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    assert!(
        e.to_string().contains("values-0000000000000009: the value of 500 bytes at offset 512")
    );
    file.set_len(700).unwrap();
    assert_eq!(stored.file.verify(&stored.reference).unwrap_err().kind(), ErrorKind::Corrupt);
    let e = dir.values(false).open(8).err().unwrap();
    assert!(e.kind() == ErrorKind::Corrupt && e.to_string().contains("something refers to it"));
}

#[test]
fn a_file_that_is_held_or_current_is_not_unused() {
    let dir = Directory::new("unused");
    let values = dir.values(false);
    let stored = values.store(&[3; 500], &mut || 1).unwrap();
    values.finish_current();
    assert_eq!(values.unused(), []);
    let other = values.store(&[3; 500], &mut || 2).unwrap();
    drop((stored, other));
    assert_eq!(values.unused(), [1]);
    values.remove(&[1]);
    assert!(!Environment::os().files.exists(&value_file_path(&dir.0, 1)).unwrap());
    assert!(!values.contains(1) && values.contains(2));
}
