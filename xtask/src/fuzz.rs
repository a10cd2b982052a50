//! `cargo xtask fuzz`: the targets in `fuzz/`, each for a bounded time, under libFuzzer.
//!
//! libFuzzer comes as a crate with its sources; what it needs to see of the program the compiler
//! puts in by flags of its code generator, so that no other compiler and no other tool is needed.
//! `RUSTC_BOOTSTRAP=1` lets the pinned one take the address sanitizer, too.

use std::path::PathBuf;

use crate::program::{Program, host, root, target_directory};
use crate::{Error, ErrorKind, Result};

/// How long each target runs unless told.
const SECONDS: u64 = 60;

/// The most memory a target may take, so that a length read from damaged bytes cannot pass as a
/// capacity.
const MEMORY_MIB: u64 = 1024;

/// Counters at the edges of control flow, where they are, and what is compared; memory is watched,
/// and assertions are on. The standard library is not built anew.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer \
    -Cdebug-assertions --cfg fuzzing";

/// Runs the named targets, or all of them, one after the other.
///
/// # Errors
/// When a target is unknown, does not build, or finds a failure.
pub fn run(arguments: &[String]) -> Result<()> {
    let (seconds, named) = parse(arguments)?;
    let known = targets()?;
    for name in &named {
        if !known.contains(name) {
            let known = known.join(", ");
            return Err(Error::usage(format!("unknown target {name:?}; targets: {known}")));
        }
    }
    let chosen = if named.is_empty() { known } else { named };
    let built = build(&chosen)?;
    for target in &chosen {
        // The last directory is read, never written: found inputs go to the ignored corpus.
        let (corpus, found) = (format!("fuzz/corpus/{target}"), format!("fuzz/artifacts/{target}"));
        for directory in [&corpus, &found] {
            std::fs::create_dir_all(root().join(directory)).map_err(|e| io(directory, &e))?;
        }
        let regressions = format!("fuzz/regressions/{target}");
        let mut arguments = vec![
            format!("-max_total_time={seconds}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            "-timeout=10".to_owned(),
            "-print_final_stats=1".to_owned(),
            format!("-artifact_prefix={found}/"),
            corpus,
        ];
        arguments.extend(root().join(&regressions).is_dir().then_some(regressions));
        Program::new(&built.join(target).to_string_lossy()).arguments(&arguments).run()?;
    }
    println!("fuzz: {} targets, {seconds} s each, no failure", chosen.len());
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(u64, Vec<String>)> {
    let (mut seconds, mut named) = (SECONDS, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let value = rest.next().map(String::as_str).unwrap_or_default();
                seconds = value.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
                    Error::usage(format!("--seconds expects a number above 0, found {value:?}"))
                })?;
            }
            flag if flag.starts_with('-') => {
                return Err(Error::usage(format!("unknown option {flag:?}; there is --seconds")));
            }
            target => named.push(target.to_owned()),
        }
    }
    Ok((seconds, named))
}

/// The names of all targets, which are the files of `fuzz/fuzz_targets`, sorted.
fn targets() -> Result<Vec<String>> {
    let directory = root().join("fuzz").join("fuzz_targets");
    let shown = directory.to_string_lossy().into_owned();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(|e| io(&shown, &e))? {
        let name = entry.map_err(|e| io(&shown, &e))?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Builds targets; where their programs are. The machine's kind is named, so that build scripts and
/// macros, which run inside the compiler, stay as they are.
fn build(targets: &[String]) -> Result<PathBuf> {
    let (host, directory) = (host()?, target_directory("fuzz"));
    let directory_name = directory.to_string_lossy();
    Program::cargo(&["build", "--release", "--manifest-path", "fuzz/fuzz_targets/Cargo.toml"])
        .arguments(&["--target", &host, "--target-dir", &directory_name])
        .arguments(&targets.iter().flat_map(|name| ["--bin", name]).collect::<Vec<_>>())
        .environment("RUSTC_BOOTSTRAP", "1")
        .environment("RUSTFLAGS", FLAGS)
        .run()?;
    Ok(directory.join(host).join("release"))
}

fn io(path: &str, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::CheckFailed, format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn seconds_and_targets_come_in_any_order() {
        let (seconds, named) = parse(&words("row --seconds 20 schema")).unwrap();
        assert_eq!((seconds, named), (20, words("row schema")));
        assert_eq!(parse(&[]).unwrap(), (SECONDS, vec![]));
    }

    #[test]
    fn bad_arguments_say_what_was_expected() {
        for bad in ["--seconds", "--seconds 0", "--seconds x", "--second 5"] {
            assert_eq!(parse(&words(bad)).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
        }
    }
}
