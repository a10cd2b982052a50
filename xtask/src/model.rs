//! `cargo xtask model`: the engine's own code under shuttle, which schedules its threads, and the
//! bugs that the models must find.
//!
//! The models build with `--cfg shuttle` into a target directory of their own, since that flag
//! changes every crate.

use crate::Result;
use crate::program::{Program, target_directory};

/// Runs the models whose names contain a filter; all of them, and the planted bugs, without one.
/// `ESKER_MODEL_SCHEDULES` says how many schedules of each model, `ESKER_MODEL_SEED` which.
///
/// # Errors
/// When the models do not build, one of them fails, or a planted bug is missed.
pub fn run(filters: &[String]) -> Result<()> {
    let target = target_directory("model");
    Program::cargo(&["test", "--package", "esker-testkit", "--features", "sabotage"])
        .arguments(&["--test", "publication", "--target-dir", &target.to_string_lossy(), "--"])
        .arguments(filters)
        .environment("RUSTFLAGS", "--cfg shuttle")
        .run()
}
