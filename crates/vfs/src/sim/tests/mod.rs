//! The simulated machine.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test code: a panic is the report"
)]

mod disk;
mod faults;
mod images;
mod replay;
mod scheduling;
mod sync_errors;

use std::path::Path;
use std::sync::Arc;

use super::{CallKind, CrashImage, FaultKind, FaultPlan, Options, Repeat, Script, Simulation};
use crate::{File, FileSystem, OpenMode, Result, conformance};

#[test]
fn conforms() {
    for seed in 0..50 {
        let machine = machine(seed);
        let environment = machine.environment();
        environment.files.create_dir_all(Path::new("/base")).unwrap();
        conformance::run(&environment, Path::new("/base"));
    }
}

/// A machine without faults.
fn machine(seed: u64) -> Simulation {
    Simulation::new(seed, Options::default())
}

/// A machine on which call `k` of its kind meets a fault.
fn faulty(seed: u64, call: CallKind, k: u64, fault: FaultKind) -> Simulation {
    let faults = FaultPlan::none().script(Script::fault(call, k, fault, Repeat::Once));
    Simulation::new(seed, Options { faults, ..Options::default() })
}

fn files(machine: &Simulation) -> Arc<dyn FileSystem> {
    machine.environment().files
}

fn create(machine: &Simulation, path: &str) -> Arc<dyn File> {
    files(machine).open(Path::new(path), OpenMode::CreateNew).unwrap()
}

/// A file of some bytes, durable with its name.
fn durable(machine: &Simulation, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = create(machine, path);
    file.write_all_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    files(machine).sync_dir(Path::new("/")).unwrap();
    file
}

fn contents(file: &dyn File) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn names(image: &CrashImage) -> Vec<String> {
    image.paths().iter().map(|path| path.display().to_string()).collect()
}

fn fired(machine: &Simulation, kind: FaultKind) -> u64 {
    machine.faults_fired().get(&kind).copied().unwrap_or_default()
}
