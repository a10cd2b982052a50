//! Tasks, timers and waits on one thread.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Options, Simulation};
use super::machine;
use crate::conformance::Steps;
use crate::{Environment, Event, Step, TaskHandle};

fn spawn(
    environment: &Environment,
    name: &str,
    step: impl FnMut() -> Step + Send + 'static,
) -> Arc<dyn TaskHandle> {
    environment.tasks.spawn(name, Box::new(Steps(step)))
}

#[test]
fn orders_come_from_the_seed() {
    let order = |seed| {
        let machine = machine(seed);
        let environment = machine.environment();
        let order = Arc::new(Mutex::new(Vec::new()));
        let handles: Vec<_> = (0..4)
            .map(|i| {
                let order = Arc::clone(&order);
                spawn(&environment, "task", move || {
                    order.lock().unwrap().push(i);
                    Step::Done
                })
            })
            .collect();
        assert!(order.lock().unwrap().is_empty(), "spawning runs nothing");
        handles.iter().for_each(|handle| handle.join());
        environment.tasks.parallel(4, &|i| order.lock().unwrap().push(i + 4));
        Arc::into_inner(order).unwrap().into_inner().unwrap()
    };
    let orders: BTreeSet<_> = (0..8_000).map(order).collect();
    assert_eq!(orders.len(), 24 * 24, "every order of tasks, and of jobs, comes up");
    assert_eq!(order(5), order(5));
}

#[test]
fn a_step_may_wait_and_others_run_inside_it() {
    for seed in 0..100 {
        let machine = machine(seed);
        let environment = machine.environment();
        let (inner, outer) = (Arc::new(Event::new()), Arc::new(Event::new()));
        let entered = Arc::new(AtomicUsize::new(0));
        {
            let (environment, entered) = (environment.clone(), Arc::clone(&entered));
            let (inner, outer) = (Arc::clone(&inner), Arc::clone(&outer));
            spawn(&environment.clone(), "waits", move || {
                assert_eq!(entered.fetch_add(1, Ordering::SeqCst), 0, "entered while on the stack");
                environment.tasks.wait(&inner, 0);
                environment.tasks.signal(&outer, usize::MAX);
                entered.fetch_sub(1, Ordering::SeqCst);
                Step::Done
            })
            .wake();
        }
        let mut steps = 0;
        let tasks = Arc::downgrade(&environment.tasks);
        spawn(&environment, "signals", move || {
            steps += 1;
            if steps < 5 {
                return Step::Again;
            }
            tasks.upgrade().unwrap().signal(&inner, 1);
            Step::Done
        });
        environment.tasks.wait(&outer, 0);
        assert_eq!(outer.generation(), 1);
    }
}

#[test]
fn the_clock_jumps_to_the_next_timer() {
    let machine = machine(1);
    let environment = machine.environment();
    let event = Arc::new(Event::new());
    let (signal, tasks) = (Arc::clone(&event), Arc::downgrade(&environment.tasks));
    let mut naps = 0;
    spawn(&environment, "hourly", move || {
        naps += 1;
        if naps < 4 {
            return Step::After(Duration::from_secs(3_600));
        }
        tasks.upgrade().unwrap().signal(&signal, usize::MAX);
        Step::Done
    });
    let start = environment.clock.monotonic_ns();
    environment.tasks.wait(&event, 0);
    let passed = environment.clock.monotonic_ns() - start;
    assert!((3 * 3_600_000_000_000..3 * 3_600_000_100_000).contains(&passed), "{passed}");

    let start = environment.clock.monotonic_ns();
    environment.tasks.wait_timeout(&event, 1, Duration::from_millis(7));
    let passed = environment.clock.monotonic_ns() - start;
    assert!((7_000_000..7_001_000).contains(&passed), "{passed}");
}

#[test]
fn a_busy_task_does_not_keep_a_timeout_from_passing() {
    let machine = machine(1);
    let environment = machine.environment();
    spawn(&environment, "busy", || Step::Again);
    environment.tasks.wait_timeout(&Event::new(), 0, Duration::from_millis(1));
}

#[test]
fn a_wake_during_a_step_is_not_lost() {
    let machine = machine(1);
    let environment = machine.environment();
    let handle: Arc<Mutex<Option<Arc<dyn TaskHandle>>>> = Arc::default();
    let (own, mut steps) = (Arc::clone(&handle), 0);
    let spawned = spawn(&environment, "wakes itself", move || {
        steps += 1;
        if steps == 3 {
            return Step::Done;
        }
        own.lock().unwrap().as_ref().unwrap().wake();
        if steps == 1 { Step::Idle } else { Step::After(Duration::MAX) }
    });
    *handle.lock().unwrap() = Some(Arc::clone(&spawned));
    spawned.join();
    handle.lock().unwrap().take();
}

#[test]
#[should_panic(expected = "deadlock: nothing is runnable")]
fn a_deadlock_panics_and_lists_the_tasks() {
    let machine = machine(1);
    let environment = machine.environment();
    spawn(&environment, "flusher", || Step::Idle);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        environment.tasks.wait(&Event::new(), 0);
    }));
    let panic = result.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("0 flusher: Idle"), "{message}");
    std::panic::resume_unwind(panic);
}

#[test]
#[should_panic(expected = "livelock")]
fn a_livelock_panics() {
    let machine = Simulation::new(1, Options { max_steps: 1_000, ..Options::default() });
    let environment = machine.environment();
    spawn(&environment, "spins", || Step::Again);
    environment.tasks.wait(&Event::new(), 0);
}

#[test]
fn pauses_run_others_at_the_given_odds_and_depth() {
    let options = |pause_probability, max_pause_depth| Options {
        pause_probability,
        max_pause_depth,
        ..Options::default()
    };
    let count = |options: Options| {
        let machine = Simulation::new(1, options);
        let environment = machine.environment();
        let steps = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&steps);
        spawn(&environment, "counts", move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Step::Again
        });
        (0..1_000).for_each(|_| environment.tasks.pause());
        steps.load(Ordering::Relaxed)
    };
    assert_eq!(count(options(0, 8)), 0);
    assert_eq!(count(options(1_000_000, 0)), 0);
    assert_eq!(count(options(1_000_000, 1)), 1_000);
    assert!((150..250).contains(&count(options(200_000, 8))));

    // Tasks that pause nest, up to the limit.
    for limit in [1, 3] {
        let machine = Simulation::new(2, options(1_000_000, limit));
        let environment = machine.environment();
        let (depth, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..6 {
            let tasks = Arc::downgrade(&environment.tasks);
            let (depth, most) = (Arc::clone(&depth), Arc::clone(&most));
            spawn(&environment, "nests", move || {
                let now = depth.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                tasks.upgrade().unwrap().pause();
                depth.fetch_sub(1, Ordering::Relaxed);
                Step::Again
            });
        }
        (0..50).for_each(|_| environment.tasks.pause());
        assert_eq!(most.load(Ordering::Relaxed), limit);
    }
}

#[test]
fn the_last_handle_drops_the_tasks() {
    let held = Arc::new(());
    let machine = machine(1);
    let environment = machine.environment();
    let (clone, kept) = (Arc::clone(&held), environment.clone());
    let handle = spawn(&environment, "holds", move || {
        let _holds = (&clone, &kept);
        Step::Idle
    });
    let other = machine.clone();
    drop(machine);
    assert_eq!(Arc::strong_count(&held), 2);
    drop(other);
    assert_eq!(Arc::strong_count(&held), 1);
    handle.wake();
    handle.join();
    assert!(!environment.files.exists("/a".as_ref()).unwrap(), "the rest goes on to work");
}

#[test]
fn killed_tasks_count_as_done() {
    let machine = machine(1);
    let environment = machine.environment();
    let handle = spawn(&environment, "killed", || Step::Idle);
    machine.kill_tasks();
    handle.wake();
    handle.join();
    assert!(format!("{handle:?}").contains("killed"));
}
