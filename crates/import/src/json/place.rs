//! Where the rows of a file are, found out from its start.

use super::scan::{name, skip_space, value_end};
use super::unescaped;

/// Where rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowsPlace {
    /// In an array, or the members of an object, as the first bracket says.
    Document,
    /// One a line.
    Lines,
    /// The document is a row.
    One,
    /// Within an object, in the arrays with these names.
    Within(Vec<String>),
}

/// Looks at the start of a file; `is_whole` says that this is all of it.
pub(crate) fn find(sample: &[u8], is_whole: bool) -> RowsPlace {
    let start = skip_space(sample, 0);
    if sample.get(start) != Some(&b'{') {
        return RowsPlace::Document;
    }
    let mut members = Members { objects: 0, others: 0, arrays: Vec::new() };
    match members.read(sample, start) {
        Some(end) => {
            let after = skip_space(sample, end);
            let first = sample.get(start..end).unwrap_or_default(); // default: never beyond.
            let is_line = !first.contains(&b'\n');
            match sample.get(after) {
                Some(b'{') if is_line => RowsPlace::Lines,
                Some(_) => RowsPlace::Document,
                // One line of JSON, and more may follow.
                None if !is_whole => RowsPlace::Lines,
                None if members.others == 0 && members.objects > 0 => RowsPlace::Document,
                None if !members.arrays.is_empty() => RowsPlace::Within(members.arrays),
                None => RowsPlace::One,
            }
        }
        // What is wrong there, the reader says.
        None if is_whole || members.others == 0 => RowsPlace::Document,
        None => RowsPlace::Within(members.arrays),
    }
}

/// The members of an object, as far as they are there.
struct Members {
    objects: usize,
    others: usize,
    /// The names of arrays of objects.
    arrays: Vec<String>,
}

impl Members {
    /// Where the object ends that starts at `start`; `None` when it goes on beyond the sample.
    fn read(&mut self, sample: &[u8], start: usize) -> Option<usize> {
        let mut at = skip_space(sample, start + 1);
        loop {
            if sample.get(at) == Some(&b'}') {
                return Some(at + 1);
            }
            let (name, value) = name(sample, at).ok()?;
            match sample.get(value)? {
                b'{' => self.objects += 1,
                b'[' => {
                    self.others += 1;
                    let first = skip_space(sample, value + 1);
                    if sample.get(first) == Some(&b'{') {
                        let quoted = name.of(sample);
                        let inner = quoted.get(1..quoted.len().saturating_sub(1))?;
                        self.arrays.push(String::from_utf8_lossy(&unescaped(inner)?).into_owned());
                    }
                }
                _ => self.others += 1,
            }
            at = skip_space(sample, value_end(sample, value).ok()?);
            if sample.get(at) == Some(&b',') {
                at = skip_space(sample, at + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found() {
        let of = |text: &str| find(text.as_bytes(), true);
        assert_eq!(of("[{\"a\":1}]"), RowsPlace::Document);
        assert_eq!(of("{\"a\":{},\"b\":{}}\n"), RowsPlace::Document);
        assert_eq!(of("{\"a\":1}\n{\"a\":2}"), RowsPlace::Lines);
        assert_eq!(of("{\"a\":{}}\n{\"a\":{}}"), RowsPlace::Lines);
        assert_eq!(of("{\"a\":1,\n\"b\":[1]}"), RowsPlace::One);
        let features = RowsPlace::Within(vec!["features".to_owned()]);
        let text = "{\"type\":\"FeatureCollection\",\"features\":[{\"a\":1},{\"a\":2}]}";
        assert_eq!(of(text), features);
        assert_eq!(find(&text.as_bytes()[..50], false), features);
        assert_eq!(find(b"{\"a\":{\"b\":1},\"c\":{\"d\"", false), RowsPlace::Document);
    }
}
