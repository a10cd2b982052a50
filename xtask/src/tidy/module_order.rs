//! Modules within a crate point down a declared list, as crates do.

use super::module_tree::ModuleTree;
use super::{Project, Violation};

/// The crates whose modules have an order, each with its modules from the bottom up. What is not
/// in the list is below all that is: an error, say, or above it, as the root of the crate is.
const ORDERS: &[(&str, &[&str])] = &[(
    "crates/query/src/lib.rs",
    &[
        "error",
        "time_zone",
        "budget",
        "limits",
        "temporary_file",
        "meter",
        "pieces",
        "pattern",
        "model",
        "semantics",
        "operator",
        "result",
        "view",
        "bound",
        "source",
        "activity",
        "options",
        "evaluate",
        "bind",
        "predicate",
        "filter",
        "access_path",
        "exec",
        "explain",
        "run",
        "computed",
        "row_expression",
        "looked_up",
        "constraint",
        "row_filter",
        "generated",
        "computed_default",
        "index_expression",
        "logical",
        "rollup",
        "json",
        "cursor",
        "page",
    ],
)];

/// The rule.
#[must_use]
pub fn check(project: &Project) -> Vec<Violation> {
    ORDERS.iter().flat_map(|(root, order)| check_crate(project, root, order)).collect()
}

/// The rule for one crate.
#[must_use]
pub fn check_crate(project: &Project, root: &str, order: &[&str]) -> Vec<Violation> {
    let tree = ModuleTree::load(project, root);
    let top = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
    let place = |name: &str| order.iter().position(|known| *known == name);
    let mut found = Vec::new();
    for (file, edges) in tree.files().iter().zip(tree.edges()) {
        let own = top(&file.module);
        if own.is_empty() {
            continue;
        }
        let Some(own_place) = place(&own) else {
            let message = format!("module `{own}` has no place in the order of {root}");
            found.push(Violation::new(file.path, 0, message));
            continue;
        };
        for other in edges.iter().filter_map(|at| tree.files().get(*at)) {
            let above = top(&other.module);
            if place(&above).is_some_and(|above| above > own_place) {
                let message = format!("`{own}` must not use `{}`, which is above it", other.module);
                found.push(Violation::new(file.path, 0, message));
            }
        }
    }
    found
}
