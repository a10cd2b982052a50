//! `cargo xtask tsan`: concurrent tests under the thread sanitizer.
//!
//! `RUSTC_BOOTSTRAP=1` lets the pinned compiler take the flag. The standard library stays as it is,
//! since its sources are not part of an ordinary toolchain, and so the sanitizer does not see what
//! the library orders. Four measures mend that:
//!
//! * `standard_library.c`, linked in by `--wrap`, announces what a contended mutex, a read-write
//!   lock, a condition variable, a `Once`, the end of a scope's thread and the last `Arc` order;
//! * `-Zshare-generics=no` compiles what is generic in the library anew, with the sanitizer;
//! * tests run one after the other, so that a report belongs to the test it follows;
//! * what remains, all of it between threads and libtest, is in `suppressions`.
//!
//! The target is named, so that build scripts and macros, which run inside the compiler, stay as
//! they are.

use crate::program::{Program, host, root, target_directory};
use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The tests of one package that share memory between threads.
#[derive(Debug)]
struct Tests {
    package: &'static str,
    /// Which of its test programs.
    programs: &'static [&'static str],
    /// Parts of the tests' names; all tests without one.
    names: &'static [&'static str],
}

/// Every such test, from the bottom up. Tests on the simulator, which is one thread, are left out:
/// they take the sanitizer long and show it nothing.
const TESTS: [Tests; 8] = [
    Tests { package: "esker-vfs", programs: &["--lib"], names: &["os::"] },
    Tests { package: "esker-arena", programs: &["--lib"], names: ARENA_TESTS },
    Tests { package: "esker-log", programs: &["--lib"], names: &["basics::", "clients::threads"] },
    Tests { package: "esker-query", programs: &["--lib"], names: &[] },
    Tests { package: "esker", programs: &["--lib"], names: &[] },
    Tests { package: "esker", programs: &["--test", "suite"], names: ENGINE_TESTS },
    Tests { package: "esker-import", programs: &["--lib"], names: &["pipeline::", "reader::"] },
    Tests { package: "esker-testkit", programs: &["--test", "concurrent"], names: &[] },
];

/// The integration tests of the engine of which some have several threads.
const ENGINE_TESTS: &[&str] = &[
    "load::",
    "rows::",
    "buckets::",
    "bucket_reads::",
    "bucket_threads::",
    "emdb_bugs::",
    "merging::",
    "transactions::",
];

/// A writer beside readers, in each container.
const ARENA_TESTS: &[&str] =
    &["::readers_", "by_any_thread", "no_reader_is_overtaken", "sets_are_seen_in_order"];

/// What `standard_library.c` calls a function, and how the compiler's name of it ends.
const WRAPPED: [(&str, &str); 7] = [
    ("MUTEX_LOCK", "5Mutex14lock_contended"),
    ("RWLOCK_READ", "6RwLock14read_contended"),
    ("RWLOCK_WRITE", "6RwLock15write_contended"),
    ("CONDVAR_WAIT", "7Condvar4wait"),
    ("CONDVAR_WAIT_TIMEOUT", "7Condvar12wait_timeout"),
    ("ONCE_CALL", "4Once4call"),
    ("SCOPE_THREAD_END", "9ScopeData29decrement_num_running_threads"),
];

/// Runs the tests of the named packages, or of all packages with shared memory. Arguments after
/// `--` go to the tests.
///
/// # Errors
/// When a package has no such tests, a test fails, or the sanitizer reports a race.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let (packages, filters) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
    let chosen = chosen(packages)?;
    let target = target_directory("tsan");
    let named: Vec<&str> = filters.iter().map(String::as_str).collect();
    let (flags, host) = (flags(&target)?, host()?);
    let options = format!("suppressions={} halt_on_error=1", source("suppressions").display());
    for Tests { package, programs, names } in &chosen {
        Program::cargo(&["test", "--target", &host, "--target-dir", &target.to_string_lossy()])
            .arguments(&["--package", package])
            .arguments(programs)
            .arguments(&["--", "--test-threads=1"])
            .arguments(if filters.is_empty() { names } else { &named })
            .environment("RUSTC_BOOTSTRAP", "1")
            .environment("RUSTFLAGS", &flags)
            .environment("TSAN_OPTIONS", &options)
            .run()?;
    }
    println!("tsan: {} packages, no race", chosen.len());
    Ok(())
}

fn chosen(packages: &[String]) -> Result<Vec<&'static Tests>> {
    let is_of = |tests: &&Tests, package: &String| tests.package == package;
    if let Some(unknown) = packages.iter().find(|p| !TESTS.iter().any(|t| is_of(&t, p))) {
        let mut known: Vec<_> = TESTS.iter().map(|tests| tests.package).collect();
        known.dedup();
        let known = known.join(", ");
        let message = format!("no concurrent tests in {unknown:?}; packages: {known}");
        return Err(Error::usage(message));
    }
    let is_chosen = |t: &&Tests| packages.is_empty() || packages.iter().any(|p| is_of(t, p));
    Ok(TESTS.iter().filter(is_chosen).collect())
}

fn source(name: &str) -> PathBuf {
    root().join("xtask").join("src").join("tsan").join(name)
}

/// Compiles `standard_library.c` and returns the compiler's flags that link it in.
fn flags(target: &Path) -> Result<String> {
    let library = standard_library()?;
    let object = target.join("standard_library.o");
    let mut compile = Program::new("cc").arguments(&["-O1", "-fPIC", "-c"]).arguments(&[
        source("standard_library.c").to_string_lossy(),
        "-o".into(),
        object.to_string_lossy(),
    ]);
    let object = object.to_string_lossy();
    let mut flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -Zshare-generics=no \
         -Clink-arg=-Wl,--wrap=__tsan_atomic64_fetch_sub"
        .to_owned();
    flags.push_str(&format!(" -Clink-arg={object}"));
    for (name, ending) in WRAPPED {
        let symbol = symbol(&library, ending).ok_or_else(|| {
            let message = format!("the standard library has no function named …{ending}");
            Error::new(ErrorKind::NotStarted, message)
        })?;
        flags.push_str(&format!(" -Clink-arg=-Wl,--wrap={symbol}"));
        compile = compile.arguments(&[format!("-D{name}={symbol}")]);
    }
    std::fs::create_dir_all(target).map_err(|e| unreadable(target, &e))?;
    compile.run()?;
    Ok(flags)
}

/// The archive of the standard library, whole.
fn standard_library() -> Result<Vec<u8>> {
    let printed = Program::new("rustc").arguments(&["--print", "target-libdir"]).output()?;
    let directory = PathBuf::from(String::from_utf8_lossy(&printed).trim());
    let entries = std::fs::read_dir(&directory).map_err(|e| unreadable(&directory, &e))?;
    let archive = entries.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    });
    let archive = archive.ok_or_else(|| {
        let message = format!("no libstd-*.rlib in {}", directory.display());
        Error::new(ErrorKind::NotStarted, message)
    })?;
    std::fs::read(&archive).map_err(|e| unreadable(&archive, &e))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::NotStarted, format!("{}: {error}", path.display()))
}

/// The name of a function among the symbols of an archive: text between zero bytes that starts as
/// the compiler's names do and has a certain ending.
fn symbol(archive: &[u8], ending: &str) -> Option<String> {
    let names = archive.split(|byte| *byte == 0).filter(|name| name.starts_with(b"_RNvM"));
    let mut names = names.filter_map(|name| std::str::from_utf8(name).ok());
    names.find(|name| name.ends_with(ending) && name.contains("3std")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_concurrent_tests_is_refused() {
        assert_eq!(chosen(&[]).unwrap().len(), TESTS.len());
        assert_eq!(chosen(&["esker".to_owned()]).unwrap()[0].package, "esker");
        let error = chosen(&["esker-sql".to_owned()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("esker-testkit"), "{error}");
    }

    #[test]
    fn a_symbol_is_a_whole_name() {
        let archive =
            b"x\0_RNvMs_3stdB2_4Once4callee\0y_RNvM3std4Once4call\0_RNvMs_3std4Once4call\0";
        assert_eq!(symbol(archive, "4Once4call").as_deref(), Some("_RNvMs_3std4Once4call"));
        assert_eq!(symbol(archive, "5Mutex14lock_contended"), None);
    }

    #[test]
    fn the_pinned_standard_library_has_every_wrapped_function() {
        let library = standard_library().unwrap();
        for (name, ending) in WRAPPED {
            assert!(symbol(&library, ending).is_some(), "{name}");
        }
    }
}
