//! The files of the repository, in memory.

use super::lexer::{Token, tokens};
use crate::program::Program;
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the root of the repository.
    pub path: String,
    /// The line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong and what is expected.
    pub message: String,
}

impl Violation {
    /// A violation at a line.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message } = self;
        match line {
            0 => write!(f, "{path}: {message}"),
            line => write!(f, "{path}:{line}: {message}"),
        }
    }
}

/// A Rust source file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// From the root of the repository.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Its tokens, comments included.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token<'a>> {
        tokens(self.text)
    }

    /// Its tokens, without comments.
    #[must_use]
    pub fn code(&self) -> Vec<Token<'a>> {
        let mut code = self.tokens();
        code.retain(|token| !token.is_comment());
        code
    }
}

/// Every file that is tracked or about to be, by path from the root with `/` between names.
#[derive(Clone, Debug, Default)]
pub struct Project {
    files: BTreeMap<String, Vec<u8>>,
}

impl Project {
    /// Reads the files that git tracks or would add.
    ///
    /// # Errors
    /// When git cannot list them, or one cannot be read.
    pub fn load(root: &Path) -> Result<Self> {
        let listed = Program::new("git")
            .directory(root)
            .arguments(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()?;
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&listed).split_terminator('\0') {
            let on_disk = root.join(path);
            // A tracked file may have been deleted, and a link may lead anywhere.
            if on_disk.symlink_metadata().is_ok_and(|m| m.is_file()) {
                let bytes = std::fs::read(&on_disk).map_err(|e| {
                    Error::new(ErrorKind::CheckFailed, format!("cannot read {path}: {e}"))
                })?;
                files.insert(path.to_owned(), bytes);
            }
        }
        Ok(Self { files })
    }

    /// Reads the Rust sources and manifests of a commit.
    ///
    /// # Errors
    /// When git does not know the commit.
    pub fn load_commit(root: &Path, commit: &str) -> Result<Self> {
        let git =
            |arguments: &[&str]| Program::new("git").directory(root).arguments(arguments).output();
        let listed = git(&["ls-tree", "-r", "-z", "--name-only", commit])?;
        let mut files = BTreeMap::new();
        for path in String::from_utf8_lossy(&listed).split_terminator('\0') {
            if path.ends_with(".rs") || path.ends_with("Cargo.toml") {
                files.insert(path.to_owned(), git(&["show", &format!("{commit}:{path}")])?);
            }
        }
        Ok(Self { files })
    }

    /// A project of these files, for tests.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let owned = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Self { files: owned.collect() }
    }

    /// All files, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The files that are text, whose names end in one of `endings` (any, when there are none).
    pub fn texts(&self, endings: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter(move |(path, _)| {
                endings.is_empty() || endings.iter().any(|e| path.ends_with(e))
            })
            .filter_map(|(path, bytes)| Some((path, std::str::from_utf8(bytes).ok()?)))
    }

    /// The Rust sources.
    pub fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        self.texts(&[".rs"]).map(|(path, text)| Source { path, text })
    }

    /// A Rust source.
    #[must_use]
    pub fn source(&self, path: &str) -> Option<Source<'_>> {
        let (path, bytes) = self.files.get_key_value(path)?;
        Some(Source { path, text: std::str::from_utf8(bytes).ok()? })
    }

    /// The text of one file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// True when there is such a file, or a directory with a file in it.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(inside.clone()..).next().is_some_and(|f| f.0.starts_with(&inside))
    }

    /// The directories with the manifest of a package, each with that manifest's text.
    pub fn crates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts(&["/Cargo.toml"])
            .filter(|(_, text)| text.lines().any(|line| line.trim() == "[package]"))
            .filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, text)))
    }
}

/// The directory of a path; empty at the root.
#[must_use]
pub fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// `path` read from `directory`, with `.` and `..` resolved; none when it leaves the repository.
#[must_use]
pub fn join(directory: &str, path: &str) -> Option<String> {
    let mut names: Vec<&str> = directory.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}
