//! `cargo xtask bench NAME`: a benchmark of `esker-bench`, built optimised.

use crate::program::Program;
use crate::{Error, Result};

/// Runs a benchmark; the name and every argument go to it unchanged.
///
/// # Errors
/// Without a name, and when the benchmark does not build or fails.
pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.is_empty() {
        return Err(Error::usage("expected the name of a benchmark: cargo xtask bench NAME"));
    }
    match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("kv", rest)) => return run_kv(&[], rest),
        Some(("txn-peers", rest)) => return run_kv(&["txn"], rest),
        Some(("tpch" | "hits" | "windows" | "joins", _)) => return run_analytics(arguments),
        _ => {}
    }
    Program::cargo(&["run", "--release", "--package", "esker-bench", "--"])
        .arguments(arguments)
        .run()
}

/// Buckets, or transactions, beside other stores, which are built for this alone.
fn run_kv(command: &[&str], arguments: &[String]) -> Result<()> {
    let features = std::env::var("ESKER_BENCH_KV_FEATURES").unwrap_or_else(|_| "rocksdb".into());
    let manifest = "bench/kv/Cargo.toml";
    let mut build =
        vec!["run", "--release", "--manifest-path", manifest, "--target-dir", "target/kv"];
    build.extend(["--no-default-features", "--features", features.as_str(), "--"]);
    build.extend(command);
    Program::cargo(&build).arguments(arguments).run()
}

/// Questions over many rows beside DuckDB and SQLite, whose data is made by what this alone needs.
fn run_analytics(arguments: &[String]) -> Result<()> {
    let manifest = "bench/analytics/Cargo.toml";
    let build =
        ["run", "--release", "--manifest-path", manifest, "--target-dir", "target/analytics", "--"];
    Program::cargo(&build).arguments(arguments).run()
}
