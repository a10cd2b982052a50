//! The changelog is for users: what comes next on top, in three buckets, then dated releases.

use super::{Project, Violation};

const PATH: &str = "CHANGELOG.md";
const BUCKETS: [&str; 3] = ["Safety and performance", "Features", "Internals"];

/// The rule: what is not released first, as `## Unreleased` or `## 1.2.3 (unreleased)`, then
/// `## 1.2.3 (2026-01-31)`, each with buckets of known names in their order, the first with all.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let Some(text) = project.text(PATH) else {
        return vec![Violation::new(PATH, 0, "expected a changelog")];
    };
    let mut found = Vec::new();
    let mut releases: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(release) = line.strip_prefix("## ") {
            releases.push((number, release, Vec::new()));
        } else if let Some(bucket) = line.strip_prefix("### ") {
            releases.last_mut().into_iter().for_each(|release| release.2.push(bucket));
        }
    }
    let is_open = |name: &str| name == "Unreleased" || name.ends_with(" (unreleased)");
    if releases.first().is_none_or(|(_, name, _)| !is_open(name)) {
        found.push(Violation::new(PATH, 1, "expected `## Unreleased` as the first release"));
    }
    for (at, (line, name, buckets)) in releases.iter().enumerate() {
        if at > 0 && !is_release(name) {
            let message = format!("release {name:?}, expected `1.2.3 (2026-01-31)`");
            found.push(Violation::new(PATH, *line, message));
        }
        let in_order: Vec<_> = BUCKETS.into_iter().filter(|b| buckets.contains(b)).collect();
        if *buckets != in_order || (at == 0 && buckets.len() < BUCKETS.len()) {
            let message = format!("buckets {buckets:?}, expected {BUCKETS:?} in this order");
            found.push(Violation::new(PATH, *line, message));
        }
    }
    found
}

fn is_release(name: &str) -> bool {
    let digits = |text: &str, separator: char, widths: &[usize]| {
        let parts: Vec<_> = text.split(separator).collect();
        parts.len() == widths.len()
            && parts.iter().zip(widths).all(|(part, width)| {
                part.len() >= *width && part.bytes().all(|b| b.is_ascii_digit())
            })
    };
    name.split_once(" (").is_some_and(|(version, date)| {
        let date = date.strip_suffix(')').unwrap_or_default();
        digits(version, '.', &[1, 1, 1]) && digits(date, '-', &[4, 2, 2])
    })
}
