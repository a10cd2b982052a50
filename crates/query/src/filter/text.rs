//! Conditions on text, tested on dictionary codes. The dictionary is sorted, so a range of texts
//! is a range of codes and a set of texts a set of codes; a pattern is tried once per distinct
//! value, and the outcomes are looked up.

use std::ops::Bound as End;

use esker_format::{Codes, Dictionary};

use super::{CodeTables, as_data, range, runs, search, set};
use crate::Result;
use crate::evaluate::Mask;
use crate::meter::Meter;
use crate::predicate::{Condition, Key, Test};

/// With more distinct values than so many for each row, trying them all would not pay.
const DICTIONARY_PER_ROW: usize = 16;
/// The same where all of them are searched at once.
const SEARCHED_PER_ROW: usize = 128;
/// The most distinct values of which the runs that pass are looked for, to count by them.
const COUNTED_CODES_MAX: usize = 1 << 12;

/// Removes the rows whose code stands for a text that fails.
pub(super) fn keep_codes(
    test: &Test,
    (codes, dictionary): (Codes<'_>, Dictionary<'_>),
    mask: &mut Mask,
    tables: &CodeTables,
    meter: &Meter<'_>,
) -> Result<()> {
    match &test.condition {
        Condition::TextRange { least, greatest, negated } => {
            let (from, to) = code_range(dictionary, least, greatest);
            range::keep(as_data(codes), (from, to - 1), *negated, mask);
        }
        Condition::TextSet { values, negated } => {
            let code = |text: &Vec<u8>| {
                let at = first_code(dictionary, |known| known >= text.as_slice());
                (at < dictionary.len() && dictionary.get(at) == text.as_slice())
                    .then_some(at as Key)
            };
            let mut keys: Vec<Key> = values.iter().filter_map(code).collect();
            keys.dedup();
            set::keep(as_data(codes), &keys, *negated, mask);
        }
        condition if dictionary.len() / dictionary_per_row(condition) > mask.count() => {
            let text = |row| dictionary.get(codes.get(row) as usize);
            if let Condition::Match { pattern, negated } = condition {
                let mut matcher = pattern.matcher();
                let passes = |row| Ok(matcher.matches_within(text(row), meter)? != *negated);
                mask.try_retain_rows(passes)?;
                return Ok(());
            }
            mask.try_retain_rows(|row| condition.matches_within(text(row), meter))?;
        }
        _ => {
            let table = tables.get(test, dictionary, meter)?;
            let table = table.as_slice();
            let (runs, negated) = runs_of(table);
            if runs::keep(as_data(codes), &runs, negated, mask) {
                return Ok(());
            }
            let passes = |code: usize| table.get(code).copied().unwrap_or_default();
            match codes {
                Codes::U8(v) => mask.retain(v, |code| passes(code.into())),
                Codes::U16(v) => mask.retain(v, |code| passes(code.into())),
                Codes::U32(v) => mask.retain(v, |code| passes(code as usize)),
            }
        }
    }
    Ok(())
}

/// How many distinct values for each row are tried, and not the text of each row.
fn dictionary_per_row(condition: &Condition) -> usize {
    match condition {
        Condition::Match { pattern, .. } if pattern.needle().is_some() => SEARCHED_PER_ROW,
        _ => DICTIONARY_PER_ROW,
    }
}

/// Whether the text of each code passes.
///
/// # Errors
/// When the statement is to end.
pub(super) fn outcomes(
    condition: &Condition,
    dictionary: Dictionary<'_>,
    meter: &Meter<'_>,
) -> Result<Vec<bool>> {
    if let Condition::Match { pattern, negated } = condition
        && let Some(mut found) = search::outcomes(pattern, dictionary, meter)?
    {
        if *negated {
            found.iter_mut().for_each(|found| *found = !*found);
        }
        return Ok(found);
    }
    let texts = (0..dictionary.len()).map(|code| dictionary.get(code));
    if let Condition::Match { pattern, negated } = condition {
        let mut matcher = pattern.matcher();
        return texts.map(|text| Ok(matcher.matches_within(text, meter)? != *negated)).collect();
    }
    texts.map(|text| condition.matches_within(text, meter)).collect()
}

/// The runs of neighbours among codes that pass, or among those that do not where these are fewer.
fn runs_of(table: &[bool]) -> (Vec<(Key, Key)>, bool) {
    let (mut passing, mut failing) = (Vec::new(), Vec::new());
    let mut code = 0;
    for same in table.chunk_by(|a, b| a == b) {
        let run = (code as Key, (code + same.len()) as Key - 1);
        match same.first() {
            Some(true) => passing.push(run),
            _ => failing.push(run),
        }
        code += same.len();
    }
    if passing.len() <= failing.len() { (passing, false) } else { (failing, true) }
}

/// How many rows have a code that stands for a text that passes, where that is known faster than
/// which rows they are.
pub(super) fn count_codes(
    test: &Test,
    (codes, dictionary): (Codes<'_>, Dictionary<'_>),
    rows: usize,
    (tables, meter): (&CodeTables, &Meter<'_>),
) -> Result<Option<usize>> {
    let (runs, negated) = match &test.condition {
        Condition::TextRange { least, greatest, negated } => {
            let (from, to) = code_range(dictionary, least, greatest);
            (if from < to { vec![(from, to - 1)] } else { Vec::new() }, *negated)
        }
        Condition::Match { .. } if dictionary.len() <= COUNTED_CODES_MAX => {
            let table = tables.get(test, dictionary, meter)?;
            runs_of(&table)
        }
        _ => return Ok(None),
    };
    let inside = runs::count(as_data(codes), &runs);
    Ok(inside.map(|inside| if negated { rows - inside } else { inside }))
}

/// The codes of the texts between two ends: from the first up to, not including, the second.
fn code_range(
    dictionary: Dictionary<'_>,
    least: &End<Vec<u8>>,
    greatest: &End<Vec<u8>>,
) -> (Key, Key) {
    let from = match least {
        End::Unbounded => 0,
        End::Included(least) => first_code(dictionary, |text| text >= least.as_slice()),
        End::Excluded(least) => first_code(dictionary, |text| text > least.as_slice()),
    };
    let to = match greatest {
        End::Unbounded => dictionary.len(),
        End::Included(greatest) => first_code(dictionary, |text| text > greatest.as_slice()),
        End::Excluded(greatest) => first_code(dictionary, |text| text >= greatest.as_slice()),
    };
    (from as Key, to as Key)
}

/// The first code whose text is past a point; `is_past` is false and then true along the codes.
fn first_code(dictionary: Dictionary<'_>, is_past: impl Fn(&[u8]) -> bool) -> usize {
    let (mut from, mut to) = (0, dictionary.len());
    while from < to {
        let middle = from.midpoint(to);
        if is_past(dictionary.get(middle)) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}
