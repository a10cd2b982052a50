//! Every link to a local file or heading resolves.

use super::project::{directory, join};
use super::{Project, Violation};

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in project.texts(&[".md"]) {
        for (line, target) in links(text) {
            if let Some(message) = broken(project, path, target) {
                found.push(Violation::new(path, line, message));
            }
        }
    }
    found
}

fn broken(project: &Project, path: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let resolved = match file {
        "" => Some(path.to_owned()),
        file => join(directory(path), file),
    };
    let Some(resolved) = resolved.filter(|path| project.has(path)) else {
        return Some(format!("link to `{target}`: no such file"));
    };
    let text = project.text(&resolved).filter(|_| resolved.ends_with(".md") && !heading.is_empty());
    let has_heading = text.is_none_or(|text| headings(text).any(|slug| slug == heading));
    (!has_heading).then(|| format!("link to `{target}`: no such heading"))
}

/// The lines outside code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of `[text](target)` and `[name]: target`, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second piece between back quotes is code.
        for piece in line.split('`').step_by(2) {
            let targets = piece.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(|target| (number, target)));
        }
        // A link whose text is code has its target in the piece behind it, which starts with `](`.
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(definition.map(|(_, target)| (number, target.trim())));
    }
    // A title may follow the target.
    for (_, target) in &mut found {
        *target = target.split_whitespace().next().unwrap_or_default();
    }
    found.retain(|(_, target)| !target.is_empty());
    found
}

/// The names that headings can be linked by.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}
