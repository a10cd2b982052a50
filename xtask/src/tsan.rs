//! `cargo xtask tsan`: concurrent tests under the thread sanitizer.
//!
//! The sanitizer needs no rebuilt standard library: `RUSTC_BOOTSTRAP=1` lets the pinned compiler
//! take the flag, and the one false report this causes (a fence inside the standard channel) is
//! silenced in `tsan.suppressions`. The target is named so that build scripts and macros, which run
//! inside the compiler, stay as they are.

use crate::program::{Program, root, target_directory};
use crate::{Error, ErrorKind, Result};

/// The packages with threads that share memory, from the bottom up.
const PACKAGES: [&str; 5] = ["esker-vfs", "esker-arena", "esker-log", "esker-table", "esker"];

const FLAGS: &str = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";

/// Runs the tests of the named packages, or of all packages with shared memory. Arguments after
/// `--` go to the tests.
///
/// # Errors
/// When a test fails or the sanitizer reports a race.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let (packages, filters) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
    let target = target_directory("tsan");
    let mut program = Program::cargo(&["test", "--lib", "--tests", "--target", &host()?])
        .arguments(&["--target-dir", &target.to_string_lossy()]);
    if packages.is_empty() {
        program = PACKAGES.iter().fold(program, |p, name| p.arguments(&["--package", name]));
    }
    for name in packages {
        program = program.arguments(&["--package", name]);
    }
    let suppressions = root().join("xtask").join("tsan.suppressions");
    let options = format!("suppressions={} halt_on_error=1", suppressions.display());
    program
        .arguments(&["--"])
        .arguments(filters)
        .environment("RUSTC_BOOTSTRAP", "1")
        .environment("RUSTFLAGS", FLAGS)
        .environment("TSAN_OPTIONS", &options)
        .run()
}

/// The target triple of this machine, as the compiler names it.
fn host() -> Result<String> {
    let output = Program::new("rustc").arguments(&["--version", "--verbose"]).output()?;
    let text = String::from_utf8_lossy(&output);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| {
        Error::new(ErrorKind::NotStarted, "`rustc --version --verbose` names no host")
    })
}
