//! `cargo xtask fuzz`: the targets in `fuzz/`, each for a bounded time.

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result};

/// How long each target runs unless told.
const SECONDS: u64 = 60;

/// The most memory a target may take, so that a length read from damaged bytes cannot pass as a
/// capacity.
const MEMORY_MIB: u64 = 1024;

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
    install()?;
    let limits = [
        format!("-max_total_time={seconds}"),
        format!("-rss_limit_mb={MEMORY_MIB}"),
        "-timeout=10".to_owned(),
    ];
    for target in &chosen {
        // The last directory is read, never written: found inputs go to the ignored corpus.
        let corpus = format!("fuzz/corpus/{target}");
        let regressions = format!("fuzz/regressions/{target}");
        let mut inputs = vec![corpus.as_str()];
        std::fs::create_dir_all(root().join(&corpus)).map_err(|e| io(&corpus, &e))?;
        if root().join(&regressions).is_dir() {
            inputs.push(&regressions);
        }
        Program::cargo(&["+nightly", "fuzz", "run", target])
            .arguments(&inputs)
            .arguments(&["--"])
            .arguments(&limits)
            .run()?;
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

fn install() -> Result<()> {
    if Program::cargo(&["fuzz", "--version"]).succeeds() {
        return Ok(());
    }
    Program::cargo(&["install", "cargo-fuzz", "--locked"]).run()
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
