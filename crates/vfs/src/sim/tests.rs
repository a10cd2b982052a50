//! The simulated machine.

use std::path::Path;

use super::{Options, Simulation};
use crate::conformance;

#[test]
fn conforms() {
    for seed in 0..50 {
        let machine = Simulation::new(seed, Options::default());
        let environment = machine.environment();
        environment.files.create_dir_all(Path::new("/base")).unwrap();
        conformance::run(&environment, Path::new("/base"));
    }
}
