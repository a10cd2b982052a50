//! `cargo xtask loom`: the models of `esker-arena`, which loom runs through every schedule of up to
//! three preemptions.
//!
//! They build with `--cfg loom` into a target directory of their own, since that flag changes every
//! crate.

use crate::Result;
use crate::program::{Program, target_directory};

/// How many times loom may take the processor away in one schedule, unless the caller's
/// environment says otherwise.
const PREEMPTIONS_MAX: &str = "3";

/// Runs the models whose names contain a filter; all of them (`loom_`) without one.
///
/// # Errors
/// When the models do not build or one of them fails.
pub fn run(filters: &[String]) -> Result<()> {
    let all = ["loom_".to_owned()];
    let filters = if filters.is_empty() { &all } else { filters };
    let preemptions =
        std::env::var("LOOM_MAX_PREEMPTIONS").unwrap_or_else(|_| PREEMPTIONS_MAX.to_owned());
    let target = target_directory("loom");
    Program::cargo(&["test", "--release", "--package", "esker-arena", "--lib", "--tests"])
        .arguments(&["--target-dir", &target.to_string_lossy(), "--"])
        .arguments(filters)
        .environment("RUSTFLAGS", "--cfg loom")
        .environment("LOOM_MAX_PREEMPTIONS", &preemptions)
        .run()
}
