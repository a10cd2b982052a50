//! Figures about the sources: sizes, tests, unsafe blocks.

use super::{Project, Source, length};
use std::fmt::Write;

/// One line for each figure.
#[must_use]
pub fn report(project: &Project) -> String {
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    let (mut source_lines, mut test_lines, mut tests, mut unsafe_blocks) = (0, 0, 0, 0);
    let mut assertions = 0;
    for source in project.sources() {
        let lines = source.text.lines().count();
        let code = source.code();
        tests += code
            .windows(4)
            .filter(|w| w.iter().map(|t| t.text).eq(["#", "[", "test", "]"]))
            .count();
        unsafe_blocks += count_pairs(&source, |first, second| first == "unsafe" && second == "{");
        assertions += count_pairs(&source, |first, second| {
            second == "!" && (first.starts_with("assert") || first.starts_with("debug_assert"))
        });
        if is_test(source.path) {
            test_lines += lines;
            continue;
        }
        source_lines += lines;
        files.push(lines);
        functions.extend(length::functions(&source).iter().map(|function| function.lines));
    }
    let mut text = String::new();
    for (name, figure) in [("source lines", source_lines), ("test lines", test_lines)] {
        _ = writeln!(text, "{name:<24}{figure:>8}");
    }
    quantiles(&mut text, "lines of a file", &mut files);
    quantiles(&mut text, "lines of a function", &mut functions);
    for (name, figure) in
        [("tests", tests), ("assertions", assertions), ("unsafe blocks", unsafe_blocks)]
    {
        _ = writeln!(text, "{name:<24}{figure:>8}");
    }
    text
}

fn is_test(path: &str) -> bool {
    let directories = ["/tests/", "/benches/", "/examples/", "/fuzz_targets/"];
    path.ends_with("/tests.rs") || directories.iter().any(|directory| path.contains(directory))
}

fn count_pairs(source: &Source<'_>, is_match: impl Fn(&str, &str) -> bool) -> usize {
    let code = source.code();
    let pairs = code.iter().zip(code.iter().skip(1));
    pairs.filter(|(first, second)| first.is_word() && is_match(first.text, second.text)).count()
}

fn quantiles(text: &mut String, name: &str, figures: &mut [usize]) {
    figures.sort_unstable();
    let at = |percent: usize| {
        let position = figures.len().saturating_sub(1) * percent / 100;
        figures.get(position).copied().unwrap_or_default()
    };
    let (median, p90, p95, most) = (at(50), at(90), at(95), at(100));
    let count = figures.len();
    _ = writeln!(
        text,
        "{name:<24}{median:>8} median {p90:>6} p90 {p95:>6} p95 {most:>6} most ({count})"
    );
}
