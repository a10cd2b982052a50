//! Conditions on text, tested on dictionary codes. The dictionary is sorted, so a range of texts
//! is a range of codes and a set of texts a set of codes; a pattern is tried once per distinct
//! value, and the outcomes are looked up.

use std::ops::Bound as End;

use esker_format::{Codes, Data, Dictionary};

use super::{CodeTables, as_data, range, set};
use crate::exec::mask::Mask;
use crate::predicate::{Condition, Key, Test};

/// With more distinct values than so many for each row, trying them all would not pay.
const DICTIONARY_PER_ROW: usize = 16;

/// Removes the rows whose code stands for a text that fails.
pub(super) fn keep_codes(
    test: &Test,
    codes: Codes<'_>,
    dictionary: Dictionary<'_>,
    mask: &mut Mask,
    tables: &CodeTables,
) {
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
        condition if dictionary.len() / DICTIONARY_PER_ROW > mask.count() => {
            mask.retain_rows(|row| condition.matches_text(dictionary.get(codes.get(row) as usize)));
        }
        condition => {
            let table = tables.get(test, dictionary, |text| condition.matches_text(text));
            let table = table.as_slice();
            if keep_runs(as_data(codes), table, mask) {
                return;
            }
            let passes = |code: usize| table.get(code).copied().unwrap_or_default();
            match codes {
                Codes::U8(v) => mask.retain(v, |code| passes(code.into())),
                Codes::U16(v) => mask.retain(v, |code| passes(code.into())),
                Codes::U32(v) => mask.retain(v, |code| passes(code as usize)),
            }
        }
    }
}

/// Removes the rows whose code fails, where the codes that pass, or those that do not, are few runs
/// of neighbours: comparing with those takes less than a look at the table.
fn keep_runs(codes: Data<'_>, table: &[bool], mask: &mut Mask) -> bool {
    const RUNS_MAX: usize = 4;
    let runs = |wanted: bool| {
        let mut runs: Vec<(Key, Key)> = Vec::new();
        let mut code = 0;
        for same in table.chunk_by(|a, b| a == b) {
            if same.first() == Some(&wanted) {
                runs.push((code as Key, (code + same.len()) as Key - 1));
            }
            code += same.len();
        }
        runs
    };
    let (passing, failing) = (runs(true), runs(false));
    if passing.len() <= failing.len() && passing.len() <= RUNS_MAX {
        let mut kept = Mask::none(mask.len());
        for run in passing {
            let mut one = mask.clone();
            range::keep(codes, run, false, &mut one);
            kept.or(&one);
        }
        *mask = kept;
        return true;
    }
    if failing.len() <= RUNS_MAX {
        failing.into_iter().for_each(|run| range::keep(codes, run, true, mask));
        return true;
    }
    false
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
