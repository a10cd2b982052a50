//! The modules of a crate as files: which file a module lies in, and which one a path leads to.
//!
//! An inline module belongs to the file it is written in. Files that only tests have are left out.

use super::Project;
use super::import::{Import, imports};
use super::product::{Product, is_test};
use std::collections::{BTreeMap, BTreeSet};

/// How many re-exports a name is followed through: a cycle of them ends here.
const REEXPORTS_MAX: usize = 16;

/// A file of a crate.
#[derive(Clone, Debug)]
pub struct ModuleFile<'a> {
    /// From the root of the repository.
    pub path: &'a str,
    /// The module, from the root of the crate, as `a::b`; empty for the root.
    pub module: String,
    /// What it holds, without tests.
    pub product: Product<'a>,
    /// What it names with `use`.
    pub imports: Vec<Import<'a>>,
    parent: Option<usize>,
    children: BTreeMap<&'a str, usize>,
}

/// A crate's files. The first is its root.
#[derive(Clone, Debug, Default)]
pub struct ModuleTree<'a> {
    files: Vec<ModuleFile<'a>>,
}

impl<'a> ModuleTree<'a> {
    /// The tree below a root file, such as `crates/db/src/lib.rs`.
    #[must_use]
    pub fn load(project: &'a Project, root: &str) -> Self {
        let mut tree = Self::default();
        tree.add(project, root, String::new(), None);
        tree
    }

    /// Its files.
    #[must_use]
    pub fn files(&self) -> &[ModuleFile<'a>] {
        &self.files
    }

    fn add(
        &mut self,
        project: &'a Project,
        path: &str,
        module: String,
        parent: Option<usize>,
    ) -> Option<usize> {
        let source = project.source(path).filter(|source| !is_test(source.path))?;
        let product = Product::of(&source);
        let code = product.code();
        let at = self.files.len();
        let (imports, children) = (imports(&code), BTreeMap::new());
        let path = source.path;
        self.files.push(ModuleFile { path, module, product, imports, parent, children });
        for child in child_modules(&code) {
            let inside = own_directory(path);
            let places = [format!("{inside}/{child}.rs"), format!("{inside}/{child}/mod.rs")];
            let Some(place) = places.iter().find(|place| project.has(place)) else { continue };
            let parent = self.files.get(at).map_or("", |file| file.module.as_str());
            let module = join(parent, child);
            if let Some(number) = self.add(project, place, module, Some(at)) {
                self.files.get_mut(at).map(|file| file.children.insert(child, number));
            }
        }
        Some(at)
    }

    /// For each file the others that it names, by `use` or by a path. What is named through a
    /// re-export leads to the file that has it; a re-export alone is no use.
    #[must_use]
    pub fn edges(&self) -> Vec<BTreeSet<usize>> {
        (0..self.files.len()).map(|at| self.uses(at)).collect()
    }

    fn uses(&self, at: usize) -> BTreeSet<usize> {
        let Some(file) = self.files.get(at) else { return BTreeSet::new() };
        let code = file.product.code();
        let named = |import: &&Import<'_>| {
            !import.is_public || code.iter().filter(|token| token.is(import.name)).count() > 1
        };
        let mut found = BTreeSet::new();
        for import in file.imports.iter().filter(named) {
            found.extend(self.resolve(at, &import.path, 0));
        }
        for path in super::import::paths(&code) {
            found.extend(self.resolve(at, &path, 0));
        }
        found.remove(&at);
        found
    }

    /// The file that has what `path` names, as written in the file `at`; none for what is outside
    /// of the crate.
    fn resolve(&self, at: usize, path: &[&str], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        match *first {
            "crate" => self.item(0, rest, depth),
            "self" => self.item(at, rest, depth),
            "super" => self.item(self.files.get(at)?.parent?, rest, depth),
            child => {
                let child = *self.files.get(at)?.children.get(child)?;
                self.item(child, rest, depth)
            }
        }
    }

    /// The same within the module `at`.
    fn item(&self, at: usize, path: &[&str], depth: usize) -> Option<usize> {
        let file = self.files.get(at)?;
        let Some((first, rest)) = path.split_first() else { return Some(at) };
        if let Some(child) = file.children.get(first) {
            return self.item(*child, rest, depth);
        }
        if *first == "super" {
            return self.item(file.parent?, rest, depth);
        }
        if depth == REEXPORTS_MAX {
            return Some(at);
        }
        if let Some(import) = file.imports.iter().find(|import| import.name == *first) {
            let path = [&import.path[..], rest].concat();
            return self.resolve(at, &path, depth + 1);
        }
        if declares(file, first) {
            return Some(at);
        }
        let globs = file.imports.iter().filter(|import| import.name == "*");
        let mut found = globs.filter_map(|glob| {
            let module = self.resolve(at, &glob.path, depth + 1)?;
            declares(self.files.get(module)?, first).then_some(module)
        });
        Some(found.next().unwrap_or(at))
    }
}

/// True when a file declares this name itself.
fn declares(file: &ModuleFile<'_>, name: &str) -> bool {
    const WORDS: [&str; 9] =
        ["fn", "mod", "struct", "enum", "trait", "const", "static", "type", "macro_rules"];
    let code = file.product.code();
    code.windows(2).any(|pair| match pair {
        [word, declared] => declared.is(name) && WORDS.iter().any(|known| word.is(known)),
        _ => false,
    })
}

/// Where the modules of a file lie: beside a crate's root and a `mod.rs`, else in a directory that
/// has the file's name.
fn own_directory(path: &str) -> &str {
    let roots = ["/lib.rs", "/main.rs", "/mod.rs"];
    let directory = roots.iter().find_map(|root| path.strip_suffix(root));
    directory.or_else(|| path.strip_suffix(".rs")).unwrap_or(path)
}

fn child_modules<'a>(code: &[super::lexer::Token<'a>]) -> Vec<&'a str> {
    let lines = code.windows(3).filter_map(|window| match window {
        [word, name, end] if word.is("mod") && end.is(";") => Some(name.text),
        _ => None,
    });
    lines.collect()
}

fn join(module: &str, child: &str) -> String {
    if module.is_empty() { child.to_owned() } else { format!("{module}::{child}") }
}
