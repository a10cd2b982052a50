//! Dependencies between crates point down one list, and each crate says in a short README whether
//! to use it.

use super::{Project, Violation};

/// Every package, from the bottom up. A package may depend only on those before it.
pub const LAYERS: &[&str] = &[
    "esker-vfs",
    "esker-arena",
    "esker-format",
    "esker-derive",
    "esker-log",
    "esker-table",
    "esker-query",
    "esker",
    "esker-sql",
    "esker-import",
    "esker-wire",
    "esker-server",
    "esker-client",
    "esker-cli",
    "accounting",
    "esker-testkit",
    "esker-differential",
    "esker-bench",
    "esker-bench-analytics",
    "esker-bench-kv",
    "esker-fuzz",
    "esker-fuzz-targets",
    "xtask",
];

/// The most lines of a crate's README.
pub const README_LINES_MAX: usize = 25;

const README_QUESTION: &str = "should i use this crate?";

/// The rule about dependencies, those for tests included.
#[must_use]
pub fn check_layers(project: &Project) -> Vec<Violation> {
    let mut found = Vec::new();
    for (directory, manifest) in project.crates() {
        let path = format!("{directory}/Cargo.toml");
        let name = package_name(manifest).unwrap_or_default();
        let Some(layer) = layer(name) else {
            let message = format!("package {name:?} has no place in the list of layers");
            found.push(Violation::new(&path, 0, message));
            continue;
        };
        for (line, section, dependency) in dependencies(manifest) {
            let Some(other) = self::layer(dependency) else { continue };
            // Tests of a package may ask for its features.
            let is_own = dependency == name && section == "dev-dependencies";
            if other >= layer && !is_own {
                let message = format!("{name} must not depend on {dependency}, which is above it");
                found.push(Violation::new(&path, line, message));
            }
        }
    }
    found
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|package| *package == name)
}

/// The lines of a manifest with their section, numbered from 1.
fn sections(manifest: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    let mut section = "";
    (1..).zip(manifest.lines().map(str::trim)).filter_map(move |(number, line)| {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
            return Some((number, section, ""));
        }
        (!line.is_empty() && !line.starts_with('#')).then_some((number, section, line))
    })
}

fn package_name(manifest: &str) -> Option<&str> {
    let name = sections(manifest).find_map(|(_, section, line)| {
        let value = line.strip_prefix("name").filter(|_| section == "package")?;
        value.trim_start().strip_prefix('=')
    })?;
    Some(name.trim().trim_matches('"'))
}

/// What a manifest depends on, and in which section: `name = …` and `name.workspace = true` in one
/// that ends with `dependencies`, and sections `[dependencies.name]`.
fn dependencies(manifest: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    for (number, section, line) in sections(manifest) {
        let name = if line.is_empty() {
            let (kind, name) = section.rsplit_once('.').unwrap_or_default();
            kind.ends_with("dependencies").then_some(name)
        } else {
            let name = line.split(['.', '=', ' ']).next();
            name.filter(|_| section.ends_with("dependencies"))
        };
        found.extend(name.map(|name| (number, section, name.trim_matches('"'))));
    }
    found
}

/// The rule about READMEs.
#[must_use]
pub fn check_readmes(project: &Project) -> Vec<Violation> {
    let mut found = Vec::new();
    for (directory, _) in project.crates() {
        let path = format!("{directory}/README.md");
        let Some(text) = project.text(&path) else {
            found.push(Violation::new(&path, 0, "expected a README for this crate"));
            continue;
        };
        let lines = text.lines().count();
        if lines > README_LINES_MAX {
            let message = format!("{lines} lines, expected at most {README_LINES_MAX}");
            found.push(Violation::new(&path, 0, message));
        }
        if !text.to_lowercase().contains(README_QUESTION) {
            let message = "expected an answer to \"Should I use this crate?\"";
            found.push(Violation::new(&path, 0, message));
        }
    }
    found
}
