//! Values are found again, damage is named, files go when nobody holds them.

use std::sync::Arc;
use std::time::Duration;

use esker_format::ValueReference;
use esker_vfs::sync::Mutex;
use esker_vfs::{Environment, Event, Task, TaskHandle, Tasks};

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
        self.values_of(Environment::os(), copies)
    }

    fn values_of(&self, environment: Environment, copies: bool) -> ValueFiles {
        let limits = ValueLimits { long_bytes: 100, file_bytes_max: 4_096 };
        let (dir, owned) = (self.0.clone(), Arc::new(Mutex::new(true)));
        ValueFiles::new(environment, dir, 7, copies, limits, owned)
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

type Late = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// Does something late as soon as somebody waits.
struct LateTasks(Arc<dyn Tasks>, Late);

impl std::fmt::Debug for LateTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LateTasks").field(&self.0).finish()
    }
}

impl Tasks for LateTasks {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        self.0.spawn(name, task)
    }

    fn wait(&self, event: &Event, seen: u32) {
        let late = self.1.lock().unwrap().take();
        late.expect("a wait that nothing ends")();
        self.0.wait(event, seen);
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        self.0.wait_timeout(event, seen, timeout);
    }

    fn signal(&self, event: &Event, count: usize) {
        self.0.signal(event, count);
    }

    fn pause(&self) {}

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        self.0.parallel(count, job);
    }

    fn parallelism(&self) -> usize {
        1
    }
}

/// A backup that did not wait would copy a hole, and take the copy for the whole file later.
#[test]
fn who_copies_a_file_waits_for_writes_below_its_end() {
    let dir = Directory::new("late");
    let tasks = Arc::new(LateTasks(Environment::os().tasks, Late::default()));
    let environment = Environment { tasks: Arc::clone(&tasks) as _, ..Environment::os() };
    let values = dir.values_of(environment, false);
    let first = values.store(&[1; 300], &mut || 1).unwrap();
    let file = Arc::clone(&first.file);
    file.wait_written();
    let (late, failed) = (file.reserve(300).unwrap(), file.reserve(300).unwrap());
    let last = values.store(&[3; 300], &mut || 2).unwrap();
    assert_eq!(last.file.id(), 1, "it lies behind the late one");
    values.finish_current();
    let between = (first.reference.offset + last.reference.offset) / 2;
    let offset = (first.reference.end()..between).find(|at| at % 512 == 0).unwrap();
    let reference = ValueReference::new(7, 1, offset, &[2; 300]);
    assert!(file.verify(&reference).is_err(), "a hole");
    drop(failed);
    *tasks.1.lock().unwrap() = Some(Box::new(move || drop(late.write(&[2; 300]).unwrap())));
    file.wait_written();
    assert!(tasks.1.lock().unwrap().is_none(), "it has waited");
    file.verify(&reference).unwrap();
    file.verify(&last.reference).unwrap();
}
