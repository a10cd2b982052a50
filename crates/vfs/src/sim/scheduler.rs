//! Tasks on one thread, in seeded order.
//!
//! A task that waits lends its stack: while the event has not moved, one runnable task after
//! another is stepped, chosen by the seed; when none is runnable the clock jumps to the next timer.
//! A step may itself wait, so steps nest; a task whose step is on the stack is not entered again,
//! so they nest no deeper than there are tasks.
//!
//! A wait that nothing can end is a bug of the program under test, and a panic that lists the
//! tasks.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Options;
use super::clock::nanoseconds;
use super::random::Generator;
use super::world::World;
use crate::{Event, Step, Task, TaskHandle, Tasks};

/// The most that one step adds to the clock, in nanoseconds.
const STEP_NS: u64 = 2_000;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Runnable,
    /// On the stack; true when a wake came meanwhile.
    Running {
        woken: bool,
    },
    Idle,
    Sleeping {
        until_ns: u64,
    },
    Done,
}

/// All tasks of a simulated machine.
pub(crate) struct Scheduler {
    slots: Vec<Slot>,
    generator: Generator,
    depth: usize,
    max_pause_depth: usize,
    max_steps: u64,
    pause_probability: u32,
    parallelism: usize,
}

struct Slot {
    name: String,
    phase: Phase,
    /// Away while on the stack, and once done.
    task: Option<Box<dyn Task>>,
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Scheduler {
    pub(crate) fn new(seed: u64, options: &Options) -> Self {
        Self {
            slots: Vec::new(),
            generator: Generator::new(seed, 4),
            depth: 0,
            max_pause_depth: options.max_pause_depth,
            max_steps: options.max_steps,
            pause_probability: options.pause_probability,
            parallelism: options.parallelism.max(1),
        }
    }

    /// Takes all tasks out, as if their process had died. They count as done.
    pub(crate) fn kill_all(&mut self) -> Vec<Box<dyn Task>> {
        self.slots
            .iter_mut()
            .filter_map(|slot| {
                slot.phase = Phase::Done;
                slot.task.take()
            })
            .collect()
    }

    fn describe(&self) -> String {
        let slots = self.slots.iter().enumerate();
        let mut text = String::from("tasks:");
        for (id, slot) in slots.filter(|(_, slot)| slot.phase != Phase::Done) {
            text += &format!("\n  {id} {}: {:?}", slot.name, slot.phase);
        }
        text
    }

    fn wake(&mut self, id: usize) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        slot.phase = match slot.phase {
            Phase::Idle | Phase::Sleeping { .. } => Phase::Runnable,
            Phase::Running { .. } => Phase::Running { woken: true },
            phase => phase,
        };
    }

    /// Wakes sleepers whose time has come and picks a runnable task.
    fn pick(&mut self, now_ns: u64) -> Option<usize> {
        let mut runnable = 0;
        for slot in &mut self.slots {
            if matches!(slot.phase, Phase::Sleeping { until_ns } if until_ns <= now_ns) {
                slot.phase = Phase::Runnable;
            }
            runnable += usize::from(slot.phase == Phase::Runnable);
        }
        if runnable == 0 {
            return None;
        }
        let chosen = self.generator.index(runnable);
        let ready = self.slots.iter().enumerate().filter(|(_, s)| s.phase == Phase::Runnable);
        ready.map(|(id, _)| id).nth(chosen)
    }

    fn next_timer(&self) -> Option<u64> {
        let due = |slot: &Slot| match slot.phase {
            Phase::Sleeping { until_ns } => Some(until_ns),
            _ => None,
        };
        self.slots.iter().filter_map(due).min()
    }
}

/// What a wait waits for besides its event.
#[derive(Clone, Copy)]
enum Until<'a> {
    Moved { event: &'a Event, seen: u32, deadline_ns: u64 },
    Done { id: usize },
}

impl World {
    /// Steps one runnable task; false when there is none.
    fn step_one(&self) -> bool {
        let now = self.lock().time.now();
        let mut scheduler = self.scheduler();
        let Some(id) = scheduler.pick(now) else { return false };
        let Some(slot) = scheduler.slots.get_mut(id) else { return false };
        let Some(mut task) = slot.task.take() else { return false };
        slot.phase = Phase::Running { woken: false };
        let cost = 1 + scheduler.generator.below(STEP_NS);
        scheduler.depth += 1;
        drop(scheduler);
        {
            let mut state = self.lock();
            state.time.advance(cost);
            state.trace.record("step", &[id as u64]);
        }

        let step = task.step();

        let now = self.lock().time.now();
        let mut scheduler = self.scheduler();
        scheduler.depth -= 1;
        let Some(slot) = scheduler.slots.get_mut(id) else { return true };
        let woken = slot.phase == Phase::Running { woken: true };
        slot.phase = match step {
            // Killed meanwhile.
            _ if slot.phase == Phase::Done => Phase::Done,
            Step::Done => Phase::Done,
            Step::Again => Phase::Runnable,
            _ if woken => Phase::Runnable,
            Step::Idle => Phase::Idle,
            Step::After(delay) => {
                Phase::Sleeping { until_ns: now.saturating_add(nanoseconds(delay)) }
            }
        };
        if slot.phase == Phase::Done {
            drop(scheduler);
            drop(task); // without the lock: what it holds may wake others
        } else {
            slot.task = Some(task);
        }
        true
    }

    /// Runs tasks and moves the clock until the condition holds.
    fn run_until(&self, until: Until<'_>) {
        let max_steps = self.scheduler().max_steps;
        for _ in 0..max_steps {
            let deadline = match until {
                Until::Moved { event, seen, .. } if event.generation() != seen => return,
                Until::Moved { deadline_ns, .. } => deadline_ns,
                Until::Done { id } if self.is_done(id) => return,
                Until::Done { .. } => u64::MAX,
            };
            if self.lock().time.now() >= deadline {
                return;
            }
            if self.step_one() {
                continue;
            }
            let timer = self.scheduler().next_timer().unwrap_or(u64::MAX).min(deadline);
            if timer == u64::MAX {
                self.stuck("deadlock: nothing is runnable, no timer is set", until);
            }
            let mut state = self.lock();
            state.time.advance_to(timer);
            let now = state.time.now();
            state.trace.record("clock to", &[now]);
        }
        self.stuck("livelock: tasks go on without end", until);
    }

    fn is_done(&self, id: usize) -> bool {
        self.scheduler().slots.get(id).is_none_or(|slot| slot.phase == Phase::Done)
    }

    #[allow(
        clippy::panic,
        reason = "only in simulation, where a hang must become a report with a seed"
    )]
    fn stuck(&self, what: &str, until: Until<'_>) -> ! {
        let (tasks, depth) = {
            let scheduler = self.scheduler();
            (scheduler.describe(), scheduler.depth)
        };
        let waiting = match until {
            Until::Moved { .. } => "waits for an event",
            Until::Done { .. } => "joins a task",
        };
        let trace = self.lock().trace.lines().join("\n  ");
        panic!("{what}; somebody {waiting} below {depth} steps; {tasks}\n  {trace}");
    }
}

/// Tasks as the engine sees them.
#[derive(Debug)]
pub(crate) struct SimTasks(pub(crate) Arc<World>);

impl Tasks for SimTasks {
    fn spawn(&self, name: &str, task: Box<dyn Task>) -> Arc<dyn TaskHandle> {
        let mut scheduler = self.0.scheduler();
        let id = scheduler.slots.len();
        let (name, task) = (name.to_owned(), Some(task));
        scheduler.slots.push(Slot { name, phase: Phase::Runnable, task });
        drop(scheduler);
        self.0.lock().trace.record("spawn", &[id as u64]);
        Arc::new(SimTask { world: Arc::clone(&self.0), id })
    }

    fn wait(&self, event: &Event, seen: u32) {
        self.0.run_until(Until::Moved { event, seen, deadline_ns: u64::MAX });
    }

    fn wait_timeout(&self, event: &Event, seen: u32, timeout: Duration) {
        let now = self.0.lock().time.now();
        let deadline_ns = now.saturating_add(nanoseconds(timeout));
        self.0.run_until(Until::Moved { event, seen, deadline_ns });
    }

    fn signal(&self, event: &Event, _count: usize) {
        // Waiters look at the generation: there is none to wake.
        event.advance();
    }

    fn pause(&self) {
        let mut scheduler = self.0.scheduler();
        let chance = scheduler.pause_probability;
        let run = scheduler.depth < scheduler.max_pause_depth
            && chance > 0
            && scheduler.generator.chance(chance);
        drop(scheduler);
        if run {
            self.0.step_one();
        }
    }

    fn parallel(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let mut order: Vec<usize> = (0..count).collect();
        if count > 1 {
            let mut scheduler = self.0.scheduler();
            for i in (1..count).rev() {
                let j = scheduler.generator.index(i + 1);
                order.swap(i, j);
            }
        }
        for i in order {
            self.0.lock().trace.record("job", &[i as u64]);
            job(i);
        }
    }

    fn parallelism(&self) -> usize {
        self.0.scheduler().parallelism
    }
}

struct SimTask {
    world: Arc<World>,
    id: usize,
}

impl fmt::Debug for SimTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler = self.world.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        let name = scheduler.slots.get(self.id).map_or("", |slot| &slot.name);
        write!(f, "Task({name})")
    }
}

impl TaskHandle for SimTask {
    fn wake(&self) {
        self.world.scheduler().wake(self.id);
    }

    fn join(&self) {
        self.world.run_until(Until::Done { id: self.id });
    }
}
