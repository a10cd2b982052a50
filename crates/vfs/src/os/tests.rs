//! The real machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::ThreadPool;
use crate::conformance::{self, Steps};
use crate::{Environment, ErrorKind, Event, FileSystem, OpenMode, Step, Tasks};

/// A directory of its own for one test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esker-vfs-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        super::directory::OsFiles.create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn conforms() {
    let scratch = Scratch::new("conforms");
    conformance::run(&Environment::os(), &scratch.0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf8_is_not_listed() {
    use std::os::unix::ffi::OsStrExt;

    let scratch = Scratch::new("foreign-name");
    std::fs::write(scratch.0.join("ours"), "").unwrap();
    std::fs::write(scratch.0.join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    assert_eq!(Environment::os().files.list(&scratch.0).unwrap(), ["ours"]);
}

#[test]
fn a_mapping_is_unmapped_with_its_last_clone() {
    let scratch = Scratch::new("unmapped");
    let path = scratch.0.join("mapped");
    let file = Environment::os().files.open(&path, OpenMode::CreateNew).unwrap();
    file.write_all_at(&[3; 70_000], 0).unwrap();
    let is_mapped =
        || std::fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap());
    let map = file.map(70_000).unwrap();
    let clone = map.clone();
    drop(map);
    assert!(is_mapped());
    assert!(clone.iter().all(|b| *b == 3));
    drop(clone);
    assert!(!is_mapped());
}

#[test]
fn a_mapping_that_was_released_reads_the_same() {
    let scratch = Scratch::new("released");
    let file = Environment::os().files.open(&scratch.0.join("f"), OpenMode::CreateNew).unwrap();
    let bytes: Vec<u8> = (0..=250).cycle().take(300_000).collect();
    file.write_all_at(&bytes, 0).unwrap();
    file.start_writeback(0, 300_000);
    let map = file.map(300_000).unwrap();
    let before = map.get(100_000..200_000).unwrap();
    assert_eq!(before, &bytes[100_000..200_000]);
    map.release();
    assert_eq!(before, &bytes[100_000..200_000]);
    assert_eq!(&*map, bytes.as_slice());
    file.map(0).unwrap().release();
}

#[test]
fn a_growing_mapping_shows_what_was_written_since() {
    let scratch = Scratch::new("growing");
    let file = Environment::os().files.open(&scratch.0.join("f"), OpenMode::CreateNew).unwrap();
    let map = file.map_growing(1 << 20).unwrap().unwrap();
    for start in [0, 70_000, (1 << 20) - 3] {
        file.write_all_at(&[7; 3], start as u64).unwrap();
        assert_eq!(map.get(start, 3), Some(&[7; 3][..]));
    }
    assert_eq!((map.get((1 << 20) - 3, 4), map.get(usize::MAX, 2)), (None, None));
}

#[test]
fn a_mapping_is_read_by_many_threads() {
    let scratch = Scratch::new("threads");
    let file = Environment::os().files.open(&scratch.0.join("f"), OpenMode::CreateNew).unwrap();
    file.write_all_at(&[5; 10_000], 0).unwrap();
    let map = file.map(10_000).unwrap();
    Environment::os().tasks.parallel(8, &|_| assert!(map.iter().all(|b| *b == 5)));
}

#[test]
fn an_error_names_operation_and_path() {
    let error =
        Environment::os().files.open("/nowhere/at/all".as_ref(), OpenMode::Read).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with("open /nowhere/at/all: "), "{error}");
}

/// Sixty-four threads wait; each signal frees exactly as many as it says, all are freed at last.
#[test]
fn a_signal_wakes_as_many_as_it_says() {
    let pool = ThreadPool::new(2);
    let (event, release) = (Event::new(), AtomicBool::new(false));
    let (asleep, awake) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let until = |condition: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < Duration::from_secs(20), "waited for too long");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                asleep.fetch_add(1, Ordering::SeqCst);
                pool.wait(&event, 0);
                awake.fetch_add(1, Ordering::SeqCst);
                while !release.load(Ordering::SeqCst) {
                    let seen = event.generation();
                    if !release.load(Ordering::SeqCst) {
                        pool.wait(&event, seen);
                    }
                }
            });
        }
        until(&|| asleep.load(Ordering::SeqCst) == 64);
        // They have announced themselves; now let the kernel put them to sleep.
        until(&|| event.waiters().load(Ordering::SeqCst) == 64);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(awake.load(Ordering::SeqCst), 0);
        pool.signal(&event, 1);
        until(&|| awake.load(Ordering::SeqCst) == 1);
        pool.signal(&event, 0);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(awake.load(Ordering::SeqCst), 1, "one, and no more");
        release.store(true, Ordering::SeqCst);
        pool.signal(&event, usize::MAX);
    });
    assert_eq!(awake.load(Ordering::SeqCst), 64);
    assert_eq!(event.waiters().load(Ordering::SeqCst), 0);
}

/// Two threads hand a turn back and forth: a lost wake-up would hang.
#[test]
fn no_wake_up_is_lost() {
    const TURNS: u64 = 50_000;
    let pool = ThreadPool::new(2);
    let (turn, event) = (AtomicU64::new(0), Event::new());
    let play = |parity: u64| {
        loop {
            let seen = event.generation();
            let now = turn.load(Ordering::SeqCst);
            if now >= TURNS {
                return;
            }
            if now % 2 == parity {
                turn.fetch_add(1, Ordering::SeqCst);
                pool.signal(&event, usize::MAX);
            } else {
                pool.wait(&event, seen);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play(0));
        scope.spawn(|| play(1));
    });
    assert_eq!(turn.load(Ordering::SeqCst), TURNS);
}

/// More tasks wait for the next one than the pool has threads.
#[test]
fn tasks_that_wait_do_not_use_up_the_pool() {
    let pool = Arc::new(ThreadPool::new(2));
    let events: Arc<Vec<Event>> = Arc::new((0..9).map(|_| Event::new()).collect());
    let handles: Vec<_> = (0..8)
        .map(|i| {
            let (weak, events) = (Arc::downgrade(&pool), Arc::clone(&events));
            let steps = Steps(move || {
                let pool = weak.upgrade().unwrap();
                while events[i + 1].generation() == 0 {
                    pool.wait(&events[i + 1], 0);
                }
                pool.signal(&events[i], usize::MAX);
                Step::Done
            });
            pool.spawn("link", Box::new(steps))
        })
        .collect();
    std::thread::sleep(Duration::from_millis(30));
    pool.signal(&events[8], usize::MAX);
    for handle in handles {
        handle.join();
    }
}

#[test]
fn a_task_that_panics_is_over() {
    let pool = ThreadPool::new(1);
    let held = Arc::new(());
    let clone = Arc::clone(&held);
    let steps = Steps(move || {
        let _held = &clone;
        panic!("on purpose")
    });
    pool.spawn("panics", Box::new(steps)).join();
    assert_eq!(Arc::strong_count(&held), 1);
    pool.spawn("goes on", Box::new(Steps(|| Step::Done))).join();
}

#[test]
fn wakes_from_many_threads_are_not_lost() {
    let pool = ThreadPool::new(2);
    let (sent, received) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let steps = {
        let (sent, received) = (Arc::clone(&sent), Arc::clone(&received));
        Steps(move || {
            let now = sent.load(Ordering::SeqCst);
            received.store(now, Ordering::SeqCst);
            if now == 4 * 5_000 { Step::Done } else { Step::Idle }
        })
    };
    let handle = pool.spawn("receiver", Box::new(steps));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    sent.fetch_add(1, Ordering::SeqCst);
                    handle.wake();
                }
            });
        }
    });
    handle.join();
    assert_eq!(received.load(Ordering::SeqCst), 4 * 5_000);
}

#[test]
fn parallel_uses_the_calling_thread_and_passes_panics_on() {
    let caller = std::thread::current().id();
    let mut here = Vec::new();
    let seen = std::sync::Mutex::new(&mut here);
    super::parallel::run(1, 8, &|_| seen.lock().unwrap().push(std::thread::current().id()));
    assert_eq!(here, [caller], "one job needs no thread");
    let result = std::panic::catch_unwind(|| {
        super::parallel::run(10, 3, &|i| assert_ne!(i, 7, "on purpose"));
    });
    assert!(result.is_err());
}

/// Tasks that nap, wait for one another and go on: nothing is left lying in the queue.
#[test]
fn naps_and_waits_mix() {
    let pool = Arc::new(ThreadPool::new(2));
    for _ in 0..20 {
        let ticks: Arc<Vec<Event>> = Arc::new((0..6).map(|_| Event::new()).collect());
        let handles: Vec<_> = (0..6)
            .map(|i| {
                let (weak, ticks, mut left) = (Arc::downgrade(&pool), Arc::clone(&ticks), 8_u64);
                let steps = Steps(move || {
                    let pool = weak.upgrade().unwrap();
                    pool.signal(&ticks[i], usize::MAX);
                    let other = &ticks[(i + 1) % ticks.len()];
                    pool.wait_timeout(other, other.generation(), Duration::from_micros(300));
                    left -= 1;
                    match left {
                        0 => Step::Done,
                        n if n % 2 == 0 => Step::After(Duration::from_micros(100 * n)),
                        _ => Step::Again,
                    }
                });
                pool.spawn("naps", Box::new(steps))
            })
            .collect();
        let start = Instant::now();
        handles.iter().for_each(|handle| handle.join());
        assert!(start.elapsed() < Duration::from_secs(5), "a task was left lying");
    }
}

#[test]
fn a_job_has_a_thread_of_its_own_which_is_joined() {
    let pool = Arc::new(ThreadPool::new(1));
    let (event, done) = (Arc::new(Event::new()), Arc::new(AtomicU32::new(0)));
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (pool, event, done) = (Arc::clone(&pool), Arc::clone(&event), Arc::clone(&done));
            let own = Arc::clone(&pool);
            let job = move || {
                while event.generation() == 0 {
                    own.wait(&event, 0);
                }
                done.fetch_add(1, Ordering::SeqCst);
            };
            pool.spawn_thread("waits", Box::new(job)).unwrap()
        })
        .collect();
    // Threads that wait keep no task of the pool waiting.
    pool.spawn("goes on", Box::new(Steps(|| Step::Done))).join();
    pool.signal(&event, usize::MAX);
    waiting.iter().for_each(|handle| handle.join());
    assert_eq!(done.load(Ordering::SeqCst), 8);
    let panics = pool.spawn_thread("panics", Box::new(|| panic!("on purpose"))).unwrap();
    panics.wake();
    panics.join();
    panics.join();
}
