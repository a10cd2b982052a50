//! What every implementation of the seam must do. The production and the simulated environment
//! both run these.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code: a panic is the report"
)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::{Environment, ErrorKind, Event, LockMode, OpenMode, Step, Task};

/// Runs the whole suite under `dir`, which exists.
pub(crate) fn run(environment: &Environment, dir: &Path) {
    reads_and_writes(environment, &dir.join("contents"));
    lengths(environment, &dir.join("lengths"));
    names(environment, &dir.join("names"));
    mappings(environment, &dir.join("mappings"));
    locks(environment, &dir.join("locks"));
    tasks_run_to_the_end(environment);
    tasks_wake_and_sleep(environment);
    waiting_has_limits(environment);
    parallel_runs_each_job_once(environment);
    clocks_and_bits(environment);
}

fn reads_and_writes(environment: &Environment, dir: &Path) {
    let files = &environment.files;
    files.create_dir_all(dir).unwrap();
    let path = dir.join("file");
    let file = files.open(&path, OpenMode::CreateNew).unwrap();
    assert!(file.is_empty().unwrap());
    file.write_all_at(b"hello", 0).unwrap();
    file.write_all_at(b"world", 9_000).unwrap();
    assert_eq!(file.len().unwrap(), 9_005);
    file.sync_data().unwrap();
    file.start_writeback(0, 5);

    let reader = files.open(&path, OpenMode::Read).unwrap();
    let mut bytes = vec![1; 9_005];
    reader.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes[..5], b"hello");
    assert!(bytes[5..9_000].iter().all(|b| *b == 0), "a hole reads as zeros");
    assert_eq!(&bytes[9_000..], b"world");
    assert_eq!(reader.read_at(&mut bytes, 9_005).unwrap(), 0, "nothing past the end");
    assert_eq!(reader.read_at(&mut bytes, 9_003).unwrap(), 2, "short at the end");
    let error = reader.read_exact_at(&mut bytes, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEnd);
    assert!(reader.write_at(b"x", 0).is_err(), "opened for reading");
    assert_eq!(
        files.open(&path, OpenMode::CreateNew).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );

    let writer = files.open(&path, OpenMode::Write).unwrap();
    writer.write_all_at(b"J", 0).unwrap();
    reader.read_exact_at(&mut bytes[..5], 0).unwrap();
    assert_eq!(&bytes[..5], b"Jello", "a write is seen at once through every handle");
}

fn lengths(environment: &Environment, dir: &Path) {
    let files = &environment.files;
    files.create_dir_all(dir).unwrap();
    let file = files.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    file.write_all_at(&[7; 10_000], 0).unwrap();
    file.set_len(5_000).unwrap();
    file.set_len(20_000).unwrap();
    let mut bytes = vec![1; 20_000];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes[..5_000].iter().all(|b| *b == 7));
    assert!(bytes[5_000..].iter().all(|b| *b == 0), "what was cut off does not come back");
    file.set_len(0).unwrap();
    assert!(file.is_empty().unwrap());
}

fn names(environment: &Environment, dir: &Path) {
    let files = &environment.files;
    let deep = dir.join("a/b/c");
    assert_eq!(files.list(&deep).unwrap_err().kind(), ErrorKind::NotFound);
    files.create_dir_all(&deep).unwrap();
    files.create_dir_all(&deep).unwrap();
    assert!(files.list(&deep).unwrap().is_empty());
    for name in ["two", "one", "three"] {
        files.open(&deep.join(name), OpenMode::CreateNew).unwrap();
    }
    assert_eq!(files.list(&deep).unwrap(), ["one", "three", "two"]);
    files.sync_dir(&deep).unwrap();

    let one = files.open(&deep.join("one"), OpenMode::Write).unwrap();
    one.write_all_at(b"1", 0).unwrap();
    files.rename(&deep.join("one"), &deep.join("two")).unwrap();
    assert_eq!(files.list(&deep).unwrap(), ["three", "two"]);
    let mut byte = [0];
    files.open(&deep.join("two"), OpenMode::Read).unwrap().read_exact_at(&mut byte, 0).unwrap();
    assert_eq!(&byte, b"1");
    files.rename(&deep.join("two"), &dir.join("moved")).unwrap();
    assert_eq!(files.list(dir).unwrap(), ["a", "moved"]);

    files.link(&dir.join("moved"), &deep.join("linked")).unwrap();
    let again = files.link(&dir.join("moved"), &deep.join("linked")).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    let none = files.link(&dir.join("none"), &deep.join("other")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);

    files.remove(&dir.join("moved")).unwrap();
    let linked = files.open(&deep.join("linked"), OpenMode::Read).unwrap();
    linked.read_exact_at(&mut byte, 0).unwrap();
    assert_eq!(&byte, b"1");
    one.read_exact_at(&mut byte, 0).unwrap();
    assert!(!files.exists(&dir.join("moved")).unwrap());
    assert!(files.exists(&deep).unwrap());
    for missing in [dir.join("moved"), dir.join("none/file")] {
        let kinds = [
            files.remove(&missing).unwrap_err().kind(),
            files.rename(&missing, &dir.join("x")).unwrap_err().kind(),
            files.open(&missing, OpenMode::Read).unwrap_err().kind(),
            files.open(&missing, OpenMode::Write).unwrap_err().kind(),
        ];
        assert_eq!(kinds, [ErrorKind::NotFound; 4]);
    }
    let error = files.open(&dir.join("none/file"), OpenMode::CreateNew).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("none/file"), "{error}");
    assert_eq!(files.sync_dir(&dir.join("none")).unwrap_err().kind(), ErrorKind::NotFound);

    files.remove_dir_all(&dir.join("a")).unwrap();
    assert!(!files.exists(&deep).unwrap());
    assert!(!files.exists(&dir.join("a")).unwrap());
    assert_eq!(files.remove_dir_all(&dir.join("a")).unwrap_err().kind(), ErrorKind::NotFound);
}

fn mappings(environment: &Environment, dir: &Path) {
    let files = &environment.files;
    files.create_dir_all(dir).unwrap();
    let file = files.open(&dir.join("file"), OpenMode::CreateNew).unwrap();
    assert!(file.map(0).unwrap().is_empty());
    let bytes: Vec<u8> = (0..10_000_u32).map(|i| (i % 251) as u8).collect();
    file.write_all_at(&bytes, 0).unwrap();
    let map = file.map(9_999).unwrap();
    assert_eq!(&map[..], &bytes[..9_999]);
    assert_eq!(map.as_ptr().align_offset(8), 0, "aligned to 8 bytes");
    assert_eq!(file.map(10_001).unwrap_err().kind(), ErrorKind::UnexpectedEnd);
    files.remove(&dir.join("file")).unwrap();
    drop(file);
    assert_eq!(&map.clone()[..], &bytes[..9_999], "a mapping outlives name and handle");
}

fn locks(environment: &Environment, dir: &Path) {
    let files = &environment.files;
    files.create_dir_all(dir).unwrap();
    let path = dir.join("LOCK");
    let lock = |mode, holder| files.lock(&path, mode, holder);
    let missing = lock(LockMode::Shared, "").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound, "a shared lock creates nothing");

    let exclusive = lock(LockMode::Exclusive, "process 12").unwrap();
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let error = lock(mode, "process 13").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("process 12"), "{error}");
    }
    exclusive.describe("process 12, which serves").unwrap();
    let error = lock(LockMode::Shared, "").unwrap_err();
    assert!(error.to_string().contains("which serves"), "{error}");
    drop(exclusive);
    let shared = [lock(LockMode::Shared, "").unwrap(), lock(LockMode::Shared, "").unwrap()];
    let error = lock(LockMode::Exclusive, "process 14").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(!error.to_string().contains("process 12"), "gone already: {error}");
    drop(shared);
    lock(LockMode::Exclusive, "process 15").unwrap();
    assert_eq!(files.list(dir).unwrap(), ["LOCK"]);
}

/// A task made of a closure.
pub(crate) struct Steps<F>(pub F);

impl<F: FnMut() -> Step + Send> Task for Steps<F> {
    fn step(&mut self) -> Step {
        (self.0)()
    }
}

fn tasks_run_to_the_end(environment: &Environment) {
    let total = Arc::new(AtomicU64::new(0));
    let handles: Vec<_> = (0..20)
        .map(|_| {
            let (total, mut left) = (Arc::clone(&total), 100);
            let steps = Steps(move || {
                total.fetch_add(1, Ordering::Relaxed);
                left -= 1;
                if left == 0 { Step::Done } else { Step::Again }
            });
            environment.tasks.spawn("count", Box::new(steps))
        })
        .collect();
    for handle in &handles {
        handle.join();
        handle.join();
        handle.wake();
    }
    assert_eq!(total.load(Ordering::Relaxed), 2_000);
    assert_eq!(Arc::strong_count(&total), 1, "finished tasks are dropped before join returns");
}

fn tasks_wake_and_sleep(environment: &Environment) {
    let tasks = &environment.tasks;
    let event = Arc::new(Event::new());
    let inbox = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::new(AtomicU64::new(0));
    let steps = {
        let (event, inbox, seen) = (Arc::clone(&event), Arc::clone(&inbox), Arc::clone(&seen));
        let tasks = Arc::downgrade(tasks);
        Steps(move || {
            let messages: Vec<u64> = std::mem::take(&mut *inbox.lock().unwrap());
            let done = messages.contains(&0);
            seen.fetch_add(messages.iter().sum(), Ordering::SeqCst);
            if !messages.is_empty() {
                tasks.upgrade().unwrap().signal(&event, usize::MAX);
            }
            if done { Step::Done } else { Step::Idle }
        })
    };
    let handle = tasks.spawn("inbox", Box::new(steps));
    for message in 1..=200 {
        let before = event.generation();
        inbox.lock().unwrap().push(message);
        handle.wake();
        while event.generation() == before {
            tasks.wait(&event, before);
        }
    }
    assert_eq!(seen.load(Ordering::SeqCst), 200 * 201 / 2);
    inbox.lock().unwrap().push(0);
    handle.wake();
    handle.join();

    let start = environment.clock.monotonic_ns();
    let mut naps = 3;
    let nap = move || {
        naps -= 1;
        if naps == 0 { Step::Done } else { Step::After(Duration::from_millis(4)) }
    };
    tasks.spawn("nap", Box::new(Steps(nap))).join();
    assert!(environment.clock.monotonic_ns() - start >= 8_000_000);

    let stepped = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&stepped);
    let sleep = move || {
        if counter.fetch_add(1, Ordering::SeqCst) == 0 {
            Step::After(Duration::from_secs(3_600))
        } else {
            Step::Done
        }
    };
    let handle = tasks.spawn("woken before its time", Box::new(Steps(sleep)));
    while stepped.load(Ordering::SeqCst) == 0 {
        tasks.wait_timeout(&Event::new(), 0, Duration::from_millis(1));
    }
    handle.wake();
    handle.join();
    assert!(environment.clock.monotonic_ns() - start < 3_000_000_000_000);
}

fn waiting_has_limits(environment: &Environment) {
    let event = Event::new();
    let tasks = &environment.tasks;
    tasks.wait(&event, 1); // moved already
    let start = environment.clock.monotonic_ns();
    let timeout = Duration::from_millis(3);
    while environment.clock.monotonic_ns() - start < 3_000_000 {
        tasks.wait_timeout(&event, event.generation(), timeout);
    }
    for count in [0, 1, usize::MAX] {
        let before = event.generation();
        tasks.signal(&event, count);
        assert_eq!(event.generation(), before + 1);
        tasks.wait(&event, before);
    }
    tasks.pause();
}

fn parallel_runs_each_job_once(environment: &Environment) {
    let tasks = &environment.tasks;
    assert!(tasks.parallelism() >= 1);
    for count in [0, 1, 2, 100] {
        let runs: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        tasks.parallel(count, &|i| {
            runs[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(runs.iter().all(|n| n.load(Ordering::Relaxed) == 1));
    }
}

fn clocks_and_bits(environment: &Environment) {
    let clock = &environment.clock;
    let mut last = clock.monotonic_ns();
    for _ in 0..1_000 {
        let now = clock.monotonic_ns();
        assert!(now >= last, "a monotonic clock");
        last = now;
    }
    assert!(clock.wall_us() > 1_577_836_800_000_000, "after 2020");
    let (boottime, boot_id) = (clock.boottime_us(), clock.boot_id());
    assert!(boottime > 0 && clock.boottime_us() >= boottime, "boot time");
    assert!(boot_id.is_none_or(|id| id != 0) && clock.boot_id() == boot_id, "one boot");
    let mut draws: Vec<u64> = (0..10_000).map(|_| environment.random.next_u64()).collect();
    let ones: u32 = draws.iter().map(|d| d.count_ones()).sum();
    assert!((310_000..330_000).contains(&ones), "{ones} of 640,000 bits are set");
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws.len(), 10_000, "no draw repeats");
}
