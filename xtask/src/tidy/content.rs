//! No large file, and no path of the machine that somebody happened to work on.

use super::{Project, Violation};

/// The most bytes of a tracked file.
pub const FILE_BYTES_MAX: usize = 9 << 20;

/// Directories that exist on one machine only, in any text; written in two halves, so that this
/// file has none of them.
const ANYWHERE: [&str; 3] = [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];

/// The same in documents, where a reader would take them for advice.
const IN_DOCUMENTS: [&str; 1] = [concat!("/", "tmp/")];

/// The rule about size.
#[must_use]
pub fn check_sizes(project: &Project) -> Vec<Violation> {
    let large = project.files().filter(|(_, bytes)| bytes.len() > FILE_BYTES_MAX);
    large
        .map(|(path, bytes)| {
            let message = format!("{} bytes, expected at most {FILE_BYTES_MAX}", bytes.len());
            Violation::new(path, 0, message)
        })
        .collect()
}

/// The rule about paths.
#[must_use]
pub fn check_paths(project: &Project) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in project.texts(&[]) {
        let documents = IN_DOCUMENTS.iter().filter(|_| path.ends_with(".md"));
        let banned: Vec<_> = ANYWHERE.iter().chain(documents).collect();
        for (number, line) in (1..).zip(text.lines()) {
            for start in banned.iter().filter(|start| starts_path(line, start)) {
                let message = format!("path of one machine: `{start}`");
                found.push(Violation::new(path, number, message));
            }
        }
    }
    found
}

/// True when `start` stands in the line with no name before it.
fn starts_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-~}".contains(c))
    })
}
