//! How large a circle of imports may get.
//!
//! Where expressions contain queries and queries contain expressions, what descends into them leads
//! back to itself: these modules have no limit.

use super::circle::circles;
use super::module_tree::ModuleTree;
use super::{Project, Violation};

/// A crate with a limit.
#[derive(Debug)]
pub struct Limit {
    /// The root of the crate.
    pub root: &'static str,
    /// So many files may lead back to each other.
    pub files_max: usize,
    /// Modules of recursive descent.
    pub recursive: &'static [&'static str],
}

const LIMITS: &[Limit] = &[
    Limit { root: "crates/db/src/lib.rs", files_max: 6, recursive: &[] },
    Limit { root: "crates/query/src/lib.rs", files_max: 6, recursive: &["bind", "model"] },
    Limit { root: "crates/server/src/lib.rs", files_max: 10, recursive: &[] },
    Limit { root: "crates/table/src/lib.rs", files_max: 6, recursive: &[] },
];

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    LIMITS.iter().flat_map(|limit| check_crate(project, limit)).collect()
}

/// The rule for one crate.
#[must_use]
pub fn check_crate(project: &Project, limit: &Limit) -> Vec<Violation> {
    let tree = ModuleTree::load(project, limit.root);
    let mut found = Vec::new();
    for circle in circles(&tree.edges()) {
        let files: Vec<_> = circle.iter().filter_map(|at| tree.files().get(*at)).collect();
        let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
        let is_recursive =
            files.iter().all(|file| limit.recursive.contains(&top(&file.module).as_str()));
        if files.len() > limit.files_max && !is_recursive {
            let modules: Vec<_> = files.iter().map(|file| file.module.as_str()).collect();
            let message = format!(
                "{} files lead back to each other, at most {} may: {}; move what they share down",
                files.len(),
                limit.files_max,
                modules.join(", ")
            );
            let path = files.first().map_or(limit.root, |file| file.path);
            found.push(Violation::new(path, 0, message));
        }
    }
    found
}
