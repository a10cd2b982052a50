//! Disks that lie, and files that rot: an error or the right answer, never a wrong one.

use esker::ErrorKind;
use esker_vfs::sim::{
    CallKind, CrashImage, FaultKind, FaultPlan, Generator, Options as SimOptions, Repeat, Script,
    Simulation,
};

use super::images::says_damaged;
use super::{Checker, Report, crash_everywhere, quietly};
use crate::history::History;
use crate::oracle::{self, Depth};
use crate::workload::{self, Config, Opened, Plan};

/// Faults that no program can tell from success.
const LIES: [FaultKind; 5] = [
    FaultKind::LyingSync,
    FaultKind::LyingSyncDirectory,
    FaultKind::SyncErrorExt4Data,
    FaultKind::MisdirectedWrite,
    FaultKind::PhantomWrite,
];

/// Runs one workload on a disk that lies, and crashes it everywhere.
#[must_use]
pub fn lying_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut operations = Vec::new();
    let outcome = quietly(|| {
        let config = Config { clients: 0, ..Config::draw(seed) };
        let mut generator = Generator::new(seed, 62);
        let kinds = match generator.below(3) {
            0 => LIES.get(..2).unwrap_or_default(),
            1 => LIES.get(..3).unwrap_or_default(),
            _ => LIES.as_slice(),
        };
        let plan = Plan {
            operations: 30,
            lives: 1,
            plan: FaultPlan::swarm(seed, kinds, 200_000),
            expect_faults: true,
            ..Plan::default()
        };
        let lives = workload::run(seed, &config, &plan).map_err(|failure| {
            operations = failure.operations;
            format!("while it ran: {}", failure.why)
        })?;
        let checker = Checker { config, crash_again: 0, lied: true };
        for life in &lives {
            report.add_faults(&life.faults);
            crash_everywhere(&checker, life, seed, 1, &mut report).map_err(|failure| {
                operations = failure.operations;
                failure.why
            })?;
        }
        Ok(())
    });
    if let Err(why) = outcome {
        report.fail(why, format!("--lying-workload {seed}"), operations);
    }
    report
}

/// How many damaged images are made of one database.
const DAMAGED_EACH: u64 = 200;
/// How many of them, in a million, are sound, and read wrongly once.
const FLIPPED_READS: u32 = 150_000;
/// Which of the first reads it is.
const FLIPPED_AMONG: u64 = 40;

/// Runs one workload to a clean close, damages its files, and reads them.
#[must_use]
pub fn rot_workload(seed: u64) -> Report {
    let mut report = Report { workloads: 1, ..Report::default() };
    let mut generator = Generator::new(seed, 63);
    let config = Config { clients: 0, ..Config::draw(seed) };
    let plan = Plan { operations: 30, lives: 1, close: true, record: false, ..Plan::default() };
    let life = match quietly(|| {
        workload::run(seed, &config, &plan).map_err(|failure| failure.why).map(|mut l| l.pop())
    }) {
        Ok(Some(life)) => life,
        Ok(None) => return report,
        Err(why) => {
            report.fail(why, format!("--rot-workload {seed}"), Vec::new());
            return report;
        }
    };
    let words = || (format!("--rot-workload {seed}"), life.operations_until(u64::MAX));
    let read = |machine: &Simulation, wide| read_damaged(&config, machine, &life.history, wide);
    damage_often(&life.end, &mut generator, &mut report, (words, read));
    report
}

/// Makes damaged images of what a closed database left, and reads each; `words` say how to repeat
/// it, and what had been done.
pub(super) fn damage_often(
    sound: &CrashImage,
    generator: &mut Generator,
    report: &mut Report,
    (words, read): (
        impl Fn() -> (String, Vec<String>),
        impl Fn(&Simulation, bool) -> Result<bool, String>,
    ),
) {
    for _ in 0..DAMAGED_EACH {
        let mut image = sound.clone();
        let flipped = generator.chance(FLIPPED_READS).then(|| flipped_read(generator));
        let damaged = match flipped {
            Some((what, script)) => Some((what, false, FaultPlan::none().script(script))),
            None => damage(&mut image, generator).map(|(w, d)| (w, d, FaultPlan::none())),
        };
        let Some((what, wide, faults)) = damaged else { continue };
        report.images += 1;
        let machine =
            Simulation::from_image(&image, 9, SimOptions { faults, ..Default::default() });
        let outcome = quietly(|| read(&machine, wide));
        report.add_faults(&machine.faults_fired());
        report.add_faults(&image.faults_fired());
        match outcome {
            Ok(refused) => report.refused += u64::from(refused),
            Err(why) => {
                let (arguments, operations) = words();
                report.fail(format!("{what}: {why}"), arguments, operations);
                return;
            }
        }
    }
}

/// A read that brings a wrong bit, though the disk is sound; says which.
fn flipped_read(generator: &mut Generator) -> (String, Script) {
    let number = generator.below(FLIPPED_AMONG);
    let script = Script::fault(CallKind::Read, number, FaultKind::ReadFlip, Repeat::Once);
    (format!("flip a bit of what read {number} brings"), script)
}

/// Flips a bit, or moves bytes to where they do not belong; says what it did, and whether that may
/// have hit all frames of the last batch and the frame of the close that proves them: then what is
/// left looks like a torn tail (a limit that `format.md` states).
fn damage(image: &mut CrashImage, generator: &mut Generator) -> Option<(String, bool)> {
    let paths = image.paths();
    let path = paths.get(generator.index(paths.len()))?.clone();
    let bytes = image.read(&path)?;
    let used = bytes.iter().rposition(|b| *b != 0)? + 1;
    let name = path.display();
    if generator.chance(850_000) {
        let (byte, bit) = (generator.index(used) as u64, generator.pick([0, 1, 2, 3, 4, 5, 6, 7]));
        let what = format!("flip bit {bit} of byte {byte} of {name}");
        return image.flip_bit(&path, byte, bit).then_some((what, false));
    }
    // A misdirected write: a piece of this or another file lands here.
    let from = paths.get(generator.index(paths.len()))?.clone();
    let source = image.read(&from)?;
    let unit = generator.pick([8, 64, 512]);
    let (start, to) =
        (generator.index(source.len() / unit) * unit, generator.index(used / unit) * unit);
    let piece = source.get(start..source.len().min(start + unit * 2))?.to_vec();
    let end = bytes.len().min(to + piece.len());
    let room = piece.get(..end.saturating_sub(to))?;
    let what = format!("{} bytes at {start} of {} over {to} of {name}", room.len(), from.display());
    let log = path.to_string_lossy().contains("log-");
    image.overwrite(&path, to as u64, room).then_some((what, log))
}

/// Opens a damaged database, unless it is refused; then nothing has been written.
pub(super) fn open_damaged(
    config: &Config,
    machine: &Simulation,
) -> Result<Option<Opened>, String> {
    match workload::open(config, machine, false) {
        Ok(db) => Ok(Some(db)),
        Err(e) if e.kind() == ErrorKind::Corrupt => match machine.io_count() {
            0 => Ok(None),
            ios => Err(format!("refused, after {ios} I/Os: {e}")),
        },
        Err(e) => Err(format!("refused as {}", oracle::said(&e))),
    }
}

/// Reads a damaged database: true when it was refused.
fn read_damaged(
    config: &Config,
    machine: &Simulation,
    history: &History,
    wide: bool,
) -> Result<bool, String> {
    let Some(db) = open_damaged(config, machine)? else { return Ok(true) };
    let commit = if wide { oracle::recovered_commit(&db, false)? } else { u64::MAX };
    let looks = [Depth { check: false, ..Depth::FULL }, Depth::FULL];
    for look in looks {
        match oracle::compare(&db, history, commit, look) {
            Ok(_) => {}
            Err(why) if says_damaged(&why) => return Ok(true),
            Err(why) => return Err(why),
        }
    }
    Ok(false)
}
