//! Figures about the sources, a line for each crate.
//!
//! | column | what it counts |
//! |---|---|
//! | code | lines with code: no comments, blanks, tests, assertions |
//! | files | source files without tests; lines of them: median, of ten the ninth, most |
//! | functions | the same of functions |
//! | circle | files of the largest circle of imports, and how many there are |
//! | defaults | `unwrap_or` and its kind without a reason: [`super::silent_default`] |
//! | archaic | lines of comments with a banned word ([`word`](super::word)) |
//! | unsafe | blocks |
//! | asserts | assertions outside tests, those of debug builds included |

use super::circle::circles;
use super::module_tree::ModuleTree;
use super::product::is_test;
use super::silent_default::silent_defaults;
use super::word::archaic_lines;
use super::{Project, Source, length};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What one crate, or all of them, come to.
#[derive(Clone, Debug, Default)]
struct Figures {
    code: usize,
    files: Vec<usize>,
    functions: Vec<usize>,
    circles: Vec<usize>,
    defaults: usize,
    archaic: usize,
    unsafe_blocks: usize,
    assertions: usize,
}

/// The roots of the programs and libraries that are the product: each crate's name and a file.
#[must_use]
pub fn roots(project: &Project) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (directory, _) in project.crates() {
        let Some(name) = directory.strip_prefix("crates/") else { continue };
        let source = format!("{directory}/src/");
        let is_root = |path: &str| {
            let inner = path.strip_prefix(&source).unwrap_or_default();
            ["lib.rs", "main.rs"].contains(&inner) || inner.starts_with("bin/")
        };
        let paths = project.sources().map(|source| source.path).filter(|path| is_root(path));
        found.extend(paths.map(|path| (name.to_owned(), path.to_owned())));
    }
    found
}

/// A line for each crate, and one for all.
#[must_use]
pub fn report(project: &Project) -> String {
    let mut text = format!(
        "{:<13}{:>7} {:>5} {:>15} {:>9} {:>13} {:>9} {:>8} {:>7} {:>6} {:>7}\n",
        "crate",
        "code",
        "files",
        "lines of them",
        "functions",
        "lines of them",
        "circle",
        "defaults",
        "archaic",
        "unsafe",
        "asserts"
    );
    let mut all = Figures::default();
    let mut names: Vec<_> = roots(project).into_iter().map(|(name, _)| name).collect();
    names.dedup();
    for name in names {
        let figures = of_crate(project, &name);
        text.push_str(&figures.line(&name));
        all.add(figures);
    }
    text.push_str(&all.line("all"));
    let tests = project.sources().map(|source| tests(&source)).sum::<usize>();
    let lines = |source: Source<'_>| source.text.lines().count();
    let test_lines =
        project.sources().filter(|source| is_test(source.path)).map(lines).sum::<usize>();
    _ = writeln!(text, "{tests} tests, {test_lines} lines in files of tests");
    text
}

fn tests(source: &Source<'_>) -> usize {
    let code = source.code();
    let expected = ["#", "[", "test", "]"];
    code.windows(4).filter(|window| window.iter().map(|token| token.text).eq(expected)).count()
}

fn of_crate(project: &Project, name: &str) -> Figures {
    let mut figures = Figures::default();
    let mut seen = BTreeSet::new();
    for (_, root) in roots(project).into_iter().filter(|(other, _)| other == name) {
        let tree = ModuleTree::load(project, &root);
        for file in tree.files().iter().filter(|file| seen.insert(file.path)) {
            let Some(source) = project.source(file.path) else { continue };
            figures.code += file.product.code_lines();
            figures.files.push(source.text.lines().count());
            figures.defaults += silent_defaults(&file.product).len();
            figures.archaic += archaic_lines(&file.product).len();
            let functions = length::functions_in(&file.product.code());
            figures.functions.extend(functions.iter().map(|function| function.lines));
            let code = file.product.code();
            let pairs = || code.iter().zip(code.iter().skip(1));
            figures.unsafe_blocks += pairs().filter(|(a, b)| a.is("unsafe") && b.is("{")).count();
            let is_assertion =
                |word: &str| word.starts_with("assert") || word.starts_with("debug_assert");
            figures.assertions +=
                pairs().filter(|(a, b)| is_assertion(a.text) && b.is("!")).count();
        }
        figures.circles.extend(circles(&tree.edges()).iter().map(Vec::len));
    }
    figures
}

impl Figures {
    fn add(&mut self, other: Self) {
        self.code += other.code;
        self.files.extend(other.files);
        self.functions.extend(other.functions);
        self.circles.extend(other.circles);
        self.defaults += other.defaults;
        self.archaic += other.archaic;
        self.unsafe_blocks += other.unsafe_blocks;
        self.assertions += other.assertions;
    }

    fn line(&self, name: &str) -> String {
        let circle = self.circles.iter().max().copied().unwrap_or_default();
        format!(
            "{name:<13}{:>7} {:>5} {:>15} {:>9} {:>13} {:>9} {:>8} {:>7} {:>6} {:>7}\n",
            self.code,
            self.files.len(),
            quantiles(&self.files),
            self.functions.len(),
            quantiles(&self.functions),
            format!("{circle} of {}", self.circles.len()),
            self.defaults,
            self.archaic,
            self.unsafe_blocks,
            self.assertions,
        )
    }
}

/// Median, the ninth of ten, and the most.
fn quantiles(figures: &[usize]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| {
        let position = sorted.len().saturating_sub(1) * percent / 100;
        sorted.get(position).copied().unwrap_or_default()
    };
    format!("{}/{}/{}", at(50), at(90), at(100))
}

/// The files of each circle of imports of a crate, each with what it names within the circle.
#[must_use]
pub fn circles_of(project: &Project, name: &str) -> String {
    let mut text = String::new();
    for (_, root) in roots(project).into_iter().filter(|(other, _)| other == name) {
        let tree = ModuleTree::load(project, &root);
        let edges = tree.edges();
        let module = |at: &usize| tree.files().get(*at).map_or("", |file| file.module.as_str());
        for circle in circles(&edges) {
            _ = writeln!(text, "{root}: a circle of {} files", circle.len());
            for file in &circle {
                let within = edges.get(*file).into_iter().flatten();
                let named: Vec<_> =
                    within.filter(|other| circle.contains(other)).map(module).collect();
                _ = writeln!(text, "  {} → {}", module(file), named.join(", "));
            }
        }
    }
    text
}
