//! No source file that the compiler never sees: each is a crate's root or named by a `mod` line
//! that is itself reached from one.

use super::lexer::Token;
use super::project::{directory, join};
use super::{Project, Source, Violation};
use std::collections::BTreeSet;

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    let (mut reached, mut owned) = (BTreeSet::new(), BTreeSet::new());
    for (crate_directory, manifest) in project.crates() {
        owned.insert(format!("{crate_directory}/"));
        let roots = crate_roots(project, crate_directory, manifest);
        let mut pending: Vec<_> = roots.into_iter().map(|root| (root, true)).collect();
        while let Some((path, is_root)) = pending.pop() {
            let Some(text) = project.text(&path).filter(|_| reached.insert(path.clone())) else {
                continue;
            };
            let source = Source { path: &path, text };
            let modules = modules(&source, is_root).into_iter();
            pending.extend(modules.flatten().map(|path| (path, false)));
        }
    }
    let is_owned = |path: &str| owned.iter().any(|directory| path.starts_with(directory));
    project
        .sources()
        .filter(|source| is_owned(source.path) && !reached.contains(source.path))
        .map(|s| {
            Violation::new(s.path, 0, "no `mod` line leads here: name it in one, or remove it")
        })
        .collect()
}

/// The files a crate is compiled from: its library, programs, tests, benchmarks, examples, and what
/// its manifest names with `path`.
#[must_use]
pub fn crate_roots(project: &Project, crate_directory: &str, manifest: &str) -> Vec<String> {
    let named: BTreeSet<_> = manifest
        .lines()
        .filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='))
        .filter_map(|value| join(crate_directory, value.trim().trim_matches('"')))
        .collect();
    let prefix = format!("{crate_directory}/");
    let is_root = |path: &str| {
        let inner = path.strip_prefix(&prefix).unwrap_or_default();
        let target = ["src/bin/", "tests/", "benches/", "examples/"]
            .iter()
            .find_map(|start| inner.strip_prefix(start))
            .is_some_and(|name| !name.contains('/') || name.ends_with("/main.rs"));
        target || ["src/lib.rs", "src/main.rs", "build.rs"].contains(&inner) || named.contains(path)
    };
    project.sources().map(|source| source.path.to_owned()).filter(|path| is_root(path)).collect()
}

/// For each `mod name;`, the paths where the compiler looks for it.
fn modules(source: &Source<'_>, is_root: bool) -> Vec<Vec<String>> {
    let here = directory(source.path);
    let own_directory = if is_root || source.path.ends_with("/mod.rs") {
        here.to_owned()
    } else {
        source.path.trim_end_matches(".rs").to_owned()
    };
    let (mut found, mut inside, mut path_attribute) = (Vec::new(), Vec::<&str>::new(), None);
    let code = source.code();
    for (at, token) in code.iter().enumerate() {
        let previous = |n: usize| at.checked_sub(n).and_then(|at| code.get(at));
        let name = previous(1).filter(|_| previous(2).is_some_and(|word| word.is("mod")));
        match (token.text, name) {
            ("{", name) if token.is("{") => {
                inside.push(name.map_or("", |name| name.text));
                path_attribute = None;
            }
            ("}", _) if token.is("}") => drop(inside.pop()),
            (";", name) if token.is(";") => {
                let attribute: Option<&str> = path_attribute.take();
                let Some(name) = name else { continue };
                found.push(match attribute {
                    Some(path) => join(here, path).into_iter().collect(),
                    None => candidates(&own_directory, &inside, name),
                });
            }
            _ if is_path_attribute(previous(2), previous(1)) => {
                path_attribute = Some(token.text.trim_matches('"'));
            }
            _ => {}
        }
    }
    found
}

fn is_path_attribute(word: Option<&Token<'_>>, equals: Option<&Token<'_>>) -> bool {
    word.is_some_and(|w| w.is("path")) && equals.is_some_and(|e| e.is("="))
}

fn candidates(own_directory: &str, inside: &[&str], name: &Token<'_>) -> Vec<String> {
    let names = inside.iter().filter(|name| !name.is_empty());
    let directory = names.fold(own_directory.to_owned(), |path, name| format!("{path}/{name}"));
    let name = name.text.trim_start_matches("r#");
    vec![format!("{directory}/{name}.rs"), format!("{directory}/{name}/mod.rs")]
}
