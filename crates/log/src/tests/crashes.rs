//! The power goes after every I/O, in workloads and in the recovery from that, to depth 3.

use std::collections::BTreeSet;

use esker_vfs::sim::{
    CallKind, CrashChoice, CrashImage, FaultKind, Options as SimOptions, Repeat, Script, Simulation,
};

use super::history::{Driver, Event, Model};

/// How many workloads each test runs: more in a campaign.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("ESKER_LOG_SEEDS").ok().and_then(|n| n.parse().ok());
    0..asked.unwrap_or(usual)
}

/// A recorded machine, and how to get there again.
pub(crate) struct Recording {
    pub machine: Simulation,
    /// What the disk held at the start.
    pub base: Model,
    pub events: Vec<Event>,
}

/// What to do with each image of a crash.
struct Campaign {
    seed: u64,
    /// How deep crashes nest.
    depth: u32,
    /// How many images were checked.
    images: u64,
    seen: BTreeSet<(u64, u64, u64)>,
}

impl Campaign {
    /// Crashes after every I/O, in several ways each.
    fn crash_everywhere(&mut self, recording: &Recording, depth: u32, path: &str) {
        let journal = recording.machine.journal().unwrap();
        let mut cursor = journal.cursor();
        let mut model = recording.base.clone();
        let mut events = recording.events.iter().peekable();
        loop {
            let io = cursor.position();
            while let Some(event) = events.next_if(|event| event.io <= io) {
                model.apply(&event.what);
            }
            if model.promised > 0 {
                for choice in self.choices(cursor.pending_count(), depth, io) {
                    let image = cursor.crash_image(choice);
                    if !self.seen.insert((image.fingerprint(), model.promised, model.checkpoint)) {
                        continue;
                    }
                    let path = || {
                        let (seed, what) = (self.seed, cursor.describe());
                        format!("{path}seed {seed}: crash {choice:?} after {what}")
                    };
                    self.recover(&image, &model, depth, &path());
                }
            }
            if !cursor.advance() {
                break;
            }
        }
    }

    fn choices(&self, pending: usize, depth: u32, io: u64) -> Vec<CrashChoice> {
        let random = |n: u64| CrashChoice::Random(self.seed * 1_000_003 + io * 101 + n);
        let mut choices = vec![CrashChoice::KeepNone, CrashChoice::KeepAll];
        let limit = [5, 3, 2][depth as usize];
        if pending <= limit {
            choices.extend((0..1 << pending).map(CrashChoice::Subset));
        }
        choices.extend((0..[6, 2, 1][depth as usize]).map(random));
        choices
    }

    /// Checks an image, opens it, uses it, and crashes all over that.
    fn recover(&mut self, image: &CrashImage, model: &Model, depth: u32, path: &str) {
        self.images += 1;
        let machine = Simulation::from_image(image, self.seed, SimOptions::default());
        let last = model.check(&machine.environment(), &|| path.to_owned());
        let mut base = model.clone();
        base.frames.truncate(usize::try_from(last).unwrap());
        if depth + 1 >= self.depth {
            return;
        }
        let options = SimOptions { record: true, ..SimOptions::default() };
        let machine = Simulation::from_image(image, self.seed + 1, options);
        let mut driver =
            Driver::new(machine.clone(), self.seed + u64::from(depth) * 31, base.clone());
        driver.reopen().unwrap_or_else(|e| panic!("{path}: {e}"));
        if depth == 0 {
            driver.append().unwrap();
            driver.wait().unwrap();
        }
        let recording = Recording { machine, base, events: events(&driver) };
        self.crash_everywhere(&recording, depth + 1, &format!("{path}, then "));
    }
}

pub(crate) fn events(driver: &Driver) -> Vec<Event> {
    driver.history.lock().unwrap().events.clone()
}

/// Crashes after every I/O of a recording, and in the recovery from that, to `depth`. Returns how
/// many images were checked.
pub(crate) fn crash(recording: &Recording, seed: u64, depth: u32) -> u64 {
    let mut campaign = Campaign { seed, depth, images: 0, seen: BTreeSet::new() };
    campaign.crash_everywhere(recording, 0, "");
    campaign.images
}

fn workload(seed: u64, steps: u32, failed_syncs: bool) -> Recording {
    let options = SimOptions { record: true, ..SimOptions::default() };
    let machine = Simulation::new(seed, options);
    let mut driver = Driver::new(machine.clone(), seed, Model::default());
    driver.create().unwrap();
    for step in 0..steps {
        if failed_syncs && step % 7 == 6 {
            fail_a_sync(&mut driver);
        }
        driver.step().unwrap();
    }
    Recording { machine, base: Model::default(), events: events(&driver) }
}

/// A sync fails, the process gives up, the next one opens what the page cache shows.
fn fail_a_sync(driver: &mut Driver) {
    let kinds =
        [FaultKind::SyncErrorExt4Ordered, FaultKind::SyncErrorXfs, FaultKind::SyncErrorBtrfs];
    let kind = kinds[driver.generator.index(kinds.len())];
    driver.append().unwrap();
    driver.machine.add_script(Script::fault(CallKind::Sync, 0, kind, Repeat::Once));
    let error = driver.wait().unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::OutcomeUnknown);
    assert!(driver.log().is_poisoned());
    driver.reopen().unwrap();
}

fn campaign(seeds: std::ops::Range<u64>, steps: u32, depth: u32, failed_syncs: bool) -> u64 {
    let mut images = 0;
    for seed in seeds {
        images += crash(&workload(seed, steps, failed_syncs), seed, depth);
    }
    images
}

#[test]
fn a_crash_after_any_io_keeps_what_was_promised() {
    let images = campaign(seeds(25), 60, 1, false);
    assert!(images > 1_000, "{images} images");
}

#[test]
fn a_crash_after_a_failed_sync_keeps_what_was_promised() {
    let images = campaign(seeds(25), 40, 1, true);
    assert!(images > 1_000, "{images} images");
}

#[test]
fn recovery_may_crash_to_depth_three() {
    let images = campaign(seeds(3), 14, 3, false);
    assert!(images > 3_000, "{images} images");
}

#[test]
fn recovery_after_failed_syncs_may_crash_to_depth_three() {
    let images = campaign(seeds(2), 14, 3, true);
    assert!(images > 3_000, "{images} images");
}
