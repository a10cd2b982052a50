//! Files by patterns of their names, for where no shell has looked for them: `data/*.csv`.

use std::path::{Component, Path, PathBuf};

use esker_vfs::Environment;

use crate::failure::{Failure, Result, Status};

/// The files that are named: a name that is a pattern and no file stands for those that match, in
/// the order of their names.
pub(super) fn files(environment: &Environment, named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        let text = path.to_string_lossy();
        if !text.contains(['*', '?', '[']) || environment.files.exists(path)? {
            files.push(path.clone());
            continue;
        }
        let found = matching(environment, path)?;
        if found.is_empty() {
            return Err(Failure::new(Status::NotFound, format!("no file matches {text}")));
        }
        files.extend(found);
    }
    Ok(files)
}

/// The paths that match a pattern, part by part.
fn matching(environment: &Environment, pattern: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        let is_pattern = matches!(part, Component::Normal(_)) && name.contains(['*', '?', '[']);
        let mut next = Vec::new();
        for before in found {
            if !is_pattern {
                next.push(before.join(part));
                continue;
            }
            let directory = if before.as_os_str().is_empty() { Path::new(".") } else { &before };
            // What is no directory has nothing in it that matches.
            let Ok(names) = environment.files.list(directory) else { continue };
            let matching = names.into_iter().filter(|entry| is_match(&name, entry));
            next.extend(matching.map(|entry| before.join(entry)));
        }
        found = next;
    }
    found.retain(|path| environment.files.exists(path).unwrap_or(false)); // default: it is gone.
    Ok(found)
}

/// Whether a name is what a pattern stands for: `*` any letters, `?` one, `[a-c]` one of those,
/// `[!a-c]` none of them. A name that begins with a point needs one in the pattern.
fn is_match(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let is_hidden = name.first() == Some(&'.') && pattern.first() != Some(&'.');
    !is_hidden && matches_rest(&pattern, &name)
}

fn matches_rest(pattern: &[char], name: &[char]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some(('*', rest)) => {
            (0..=name.len()).any(|at| name.get(at..).is_some_and(|end| matches_rest(rest, end)))
        }
        Some((first, rest)) => {
            let Some((letter, end)) = name.split_first() else { return false };
            match first {
                '?' => matches_rest(rest, end),
                '[' => match rest.iter().skip(1).position(|c| *c == ']') {
                    Some(close) => {
                        let (inside, after) = (rest.get(..=close), rest.get(close + 2..));
                        inside.is_some_and(|inside| is_one_of(inside, *letter))
                            && after.is_some_and(|after| matches_rest(after, end))
                    }
                    None => *letter == '[' && matches_rest(rest, end),
                },
                other => other == letter && matches_rest(rest, end),
            }
        }
    }
}

/// Whether a letter is one of those within brackets.
fn is_one_of(inside: &[char], letter: char) -> bool {
    let (inside, negated) = match inside {
        ['!', rest @ ..] => (rest, true),
        all => (all, false),
    };
    let mut rest = inside;
    let mut found = false;
    loop {
        rest = match rest {
            [first, '-', last, after @ ..] => {
                found |= (*first..=*last).contains(&letter);
                after
            }
            [one, after @ ..] => {
                found |= *one == letter;
                after
            }
            [] => return found != negated,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn names_match_patterns() {
        for (pattern, name) in [
            ("*.csv", "a.csv"),
            ("*", "a"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("part-[0-9]*.gz", "part-12.csv.gz"),
            ("[.csv", "[.csv"),
            (".*", ".a"),
        ] {
            assert!(is_match(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.csv", "a.tsv"), ("a?c", "ac"), ("[a-c]x", "dx"), ("*", ".a"), ("", "a"), ("a", "")]
        {
            assert!(!is_match(pattern, name), "{pattern} {name}");
        }
    }
}
