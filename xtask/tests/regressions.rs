//! Every input that a fuzz target once failed on, or starts from, is tried in every test run.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test of files in the repository, which no simulator schedules"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use xtask::program::root;

fn regressions() -> PathBuf {
    root().join("fuzz").join("regressions")
}

fn names(directory: &str, ending: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join("fuzz").join(directory)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
}

#[test]
fn every_regression_is_mended() {
    for (target, body) in esker_fuzz::TARGETS {
        let directory = regressions().join(target);
        let mut files = 0;
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            println!("{target} {}", path.display());
            body(&std::fs::read(&path).unwrap());
            files += 1;
        }
        assert!(files > 0, "{target} has no input to start from");
    }
}

#[test]
fn every_target_is_a_program_with_inputs() {
    let targets: BTreeSet<_> = esker_fuzz::TARGETS.iter().map(|t| t.0.to_owned()).collect();
    assert_eq!(names("fuzz_targets", ".rs"), targets);
    assert_eq!(names("regressions", ""), targets);
}

#[test]
fn short_and_cut_inputs_are_refused_quietly() {
    for (target, body) in esker_fuzz::TARGETS {
        body(&[]);
        let whole = std::fs::read(regressions().join(target).join("valid")).unwrap();
        for length in 0..whole.len() {
            body(&whole[..length]);
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            for byte in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                damaged[at] = byte;
                body(&damaged);
            }
        }
    }
}

/// Bytes that look random and are the same in every run (splitmix64).
fn scramble(seed: u64) -> [u8; 8] {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).to_le_bytes()
}

#[test]
fn a_database_survives_ten_thousand_damages() {
    for seed in 0..10_000u64 {
        let words = 1 + seed % 3;
        let damages = (0..words).flat_map(|word| scramble((seed * 3 + word + 1) * 0x9e37_79b9));
        let input: Vec<u8> = std::iter::once((seed & 1) as u8).chain(damages).collect();
        esker_fuzz::database::run(&input);
    }
}
