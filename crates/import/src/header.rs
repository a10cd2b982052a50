//! Names of columns, made good where a file has bad ones.

use std::collections::BTreeSet;

/// The names of the columns of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) names: Vec<String>,
    /// What is not as the file has it, in words.
    pub(crate) changes: Vec<String>,
    /// Whether the last had no name: the column may be what follows the last delimiter, nothing.
    pub(crate) last_is_unnamed: bool,
}

impl Header {
    /// An empty name becomes `column1`, by its place; a repeated one `a_2`; a line break within a
    /// name, and any other control character, a space.
    pub(crate) fn of(names: Vec<String>) -> Self {
        let last_is_unnamed = names.len() > 1 && names.last().is_some_and(String::is_empty);
        // No name that is made up may be one that the file has.
        let given: BTreeSet<String> = names.iter().cloned().collect();
        let mut used = BTreeSet::new();
        let mut header = Self { last_is_unnamed, ..Self::default() };
        for (position, written) in names.into_iter().enumerate() {
            let number = position + 1;
            let mut name = one_line(&written);
            if name != written {
                let change = format!("column {number}: the line break in its name is a space");
                header.changes.push(format!("{change}, {name:?}"));
            }
            if name.is_empty() {
                name = free(format!("column{number}"), |name| {
                    used.contains(name) || given.contains(name)
                });
                header.changes.push(format!("column {number} has no name: {name}"));
            } else if used.contains(&name) {
                let repeated = name;
                name = free(repeated.clone(), |name| used.contains(name) || given.contains(name));
                header.changes.push(format!("column {number} repeats {repeated:?}: {name}"));
            }
            used.insert(name.clone());
            header.names.push(name);
        }
        header
    }
}

/// The name itself, or with the least number behind it, from 2, that makes it free.
fn free(name: String, is_used: impl Fn(&str) -> bool) -> String {
    if !is_used(&name) {
        return name;
    }
    let mut number = 2;
    loop {
        let other = format!("{name}_{number}");
        if !is_used(&other) {
            return other;
        }
        number += 1;
    }
}

/// A name without control characters; each run of them is a space.
fn one_line(name: &str) -> String {
    if !name.contains(char::is_control) {
        return name.to_owned();
    }
    let parts = name.split(char::is_control).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> String {
        Header::of(names.iter().map(|name| (*name).to_owned()).collect()).names.join("|")
    }

    /// Each of these was refused, with the advice to take the names for a row.
    #[test]
    fn bad_names_become_good_ones() {
        assert_eq!(named(&["", "name", "score"]), "column1|name|score");
        assert_eq!(named(&["a", "a", "c", "a"]), "a|a_2|c|a_3");
        assert_eq!(named(&["a", "a", "a_2"]), "a|a_3|a_2");
        assert_eq!(named(&["column2", ""]), "column2|column2_2");
        assert_eq!(named(&["", "", "column1"]), "column1_2|column2|column1");
        assert_eq!(named(&["a\r\nx", "a\nx", "\n"]), "a x|a x_2|column3");
        let header = Header::of(vec!["a".into(), "a".into(), String::new()]);
        assert!(header.last_is_unnamed);
        assert_eq!(
            header.changes,
            ["column 2 repeats \"a\": a_2", "column 3 has no name: column3"]
        );
        assert!(Header::of(vec!["a".into()]).changes.is_empty());
    }
}
