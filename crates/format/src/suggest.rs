//! Names near to one that is unknown.

/// The name among `names` that is nearest to `name`, if one is near: equal but for case, or within
/// an edit for every three characters, where exchanging two neighbours is one edit.
///
/// ```
/// use esker_format::suggest::nearest;
///
/// assert_eq!(nearest("dep_dealy", ["dep_delay", "arr_delay"]), Some("dep_delay"));
/// assert_eq!(nearest("colour", ["dep_delay", "arr_delay"]), None);
/// ```
#[must_use]
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let most = wanted.len().div_ceil(3).min(4);
    let near = names.into_iter().filter_map(|candidate| {
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        let distance = distance(&wanted, &letters, most)?;
        (distance < wanted.len().max(letters.len())).then_some((distance, candidate))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The end of a message about an unknown name: `; did you mean "dep_delay"?`, or nothing.
#[must_use]
pub fn did_you_mean<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, names) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}

/// The same, or all names there are when none is near: `; fields: a, b`, `; fields: none`.
#[must_use]
pub fn near_or_all<'a>(
    name: &str,
    what: &str,
    names: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let near = did_you_mean(name, names.clone());
    if !near.is_empty() {
        return near;
    }
    let names: Vec<&str> = names.into_iter().collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("; {what}: {known}")
}

/// How many letters have to be added, dropped, replaced or exchanged with their neighbour to make
/// one word of the other; `None` when more than `most`.
fn distance(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            // default: a row has a cell for each letter, and one more.
            let at = |row: &[usize], column: usize| row.get(column).copied().unwrap_or(most);
            let replaced = at(&last, j) + usize::from(x != y);
            let mut best = replaced.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let exchanged = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if exchanged {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found() {
        let names = ["id", "name", "dep_delay", "dep_time", "Größe"];
        assert_eq!(nearest("nme", names), Some("name"));
        assert_eq!(nearest("NAME", names), Some("name"));
        assert_eq!(nearest("dep_dleay", names), Some("dep_delay"));
        assert_eq!(nearest("dep_tme", names), Some("dep_time"));
        assert_eq!(nearest("grösse", names), Some("Größe"));
        assert_eq!(nearest("di", names), Some("id"));
        assert_eq!(nearest("x", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(nearest("total", names), None);
        assert_eq!(did_you_mean("nam", names), "; did you mean \"name\"?");
        assert_eq!(did_you_mean("zzz", names), "");
    }
}
