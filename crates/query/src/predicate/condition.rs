//! What one field is tested for: a condition with constants that a kernel can check on encoded
//! values, and that a zone map can decide for 8,192 rows at once. NULL passes no condition but
//! `IS NULL`.

use std::ops::{Bound as End, RangeBounds, RangeInclusive};
use std::sync::Arc;

use esker_format::{DataType, Value, ValueRef};

use super::Verdict;
use crate::bound::Comparison;
use crate::meter::Meter;
use crate::pattern::Pattern;
use crate::{Result, Zone, pieces};
use esker_format::order_key::{Key, around, bounds, key};

/// A condition on the values of one type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// NULL, or with `negated` not NULL.
    Null { negated: bool },
    /// A key from `least` to `greatest`, or with `negated` outside.
    Range { least: Key, greatest: Key, negated: bool },
    /// One of these keys (sorted), or with `negated` none.
    Set { keys: Vec<Key>, negated: bool },
    /// Text or bytes between two ends, or with `negated` outside.
    TextRange { least: End<Vec<u8>>, greatest: End<Vec<u8>>, negated: bool },
    /// One of these texts (sorted), or with `negated` none.
    TextSet { values: Vec<Vec<u8>>, negated: bool },
    /// Text like a pattern, or with `negated` unlike it.
    Match { pattern: Arc<Pattern>, negated: bool },
    /// As many characters (bytes of what is no text), or with `negated` fewer or more.
    Length { least: Key, greatest: Key, negated: bool, in_characters: bool },
}

impl Condition {
    pub(crate) const NOT_NULL: Self = Self::Null { negated: true };

    /// The condition of a comparison with a constant that is not NULL; `None` when a value of
    /// `data_type` does not compare with it.
    pub(crate) fn compare(
        comparison: Comparison,
        data_type: DataType,
        constant: ValueRef<'_>,
    ) -> Option<Self> {
        if let Some(text) = constant.as_bytes() {
            return Some(Self::compare_text(comparison, text.to_vec()));
        }
        let (floor, ceiling) = around(data_type, constant)?;
        let (type_least, type_greatest) = bounds(data_type);
        let negated = comparison == Comparison::Neq;
        let (least, greatest) = match comparison {
            Comparison::Eq | Comparison::Neq => (ceiling, floor),
            Comparison::Lt => (type_least, ceiling - 1),
            Comparison::Lte => (type_least, floor),
            Comparison::Gt => (floor + 1, type_greatest),
            Comparison::Gte => (ceiling, type_greatest),
        };
        Some(Self::range(data_type, least, greatest, negated))
    }

    /// The condition of a comparison of the length of a text or byte string with a constant.
    pub(crate) fn length(
        comparison: Comparison,
        in_characters: bool,
        constant: ValueRef<'_>,
    ) -> Option<Self> {
        Some(match Self::compare(comparison, DataType::I64, constant)? {
            Self::Range { least, greatest, negated } => {
                Self::Length { least, greatest, negated, in_characters }
            }
            other => other,
        })
    }

    /// A range of keys, cut to the type's bounds.
    pub(crate) fn range(data_type: DataType, least: Key, greatest: Key, negated: bool) -> Self {
        let (type_least, type_greatest) = bounds(data_type);
        let (least, greatest) = (least.max(type_least), greatest.min(type_greatest));
        let covers_all = least == type_least && greatest == type_greatest;
        match (negated, least > greatest, covers_all) {
            (true, true, _) | (false, _, true) => Self::NOT_NULL,
            (true, _, true) => Self::Range { least: 1, greatest: 0, negated: false },
            _ => Self::Range { least, greatest, negated },
        }
    }

    fn compare_text(comparison: Comparison, text: Vec<u8>) -> Self {
        let negated = comparison == Comparison::Neq;
        let (least, greatest) = match comparison {
            Comparison::Eq | Comparison::Neq => (End::Included(text.clone()), End::Included(text)),
            Comparison::Lt => (End::Unbounded, End::Excluded(text)),
            Comparison::Lte => (End::Unbounded, End::Included(text)),
            Comparison::Gt => (End::Excluded(text), End::Unbounded),
            Comparison::Gte => (End::Included(text), End::Unbounded),
        };
        Self::TextRange { least, greatest, negated }
    }

    /// The condition of being one of some constants, none of them NULL.
    pub(crate) fn one_of(data_type: DataType, values: &[Value], negated: bool) -> Self {
        if data_type.is_variable() {
            let texts = values.iter().filter_map(|v| v.as_ref().as_bytes().map(<[u8]>::to_vec));
            let mut values: Vec<_> = texts.collect();
            values.sort();
            return Self::TextSet { values, negated };
        }
        let (least, greatest) = bounds(data_type);
        let exact = values.iter().filter_map(|v| around(data_type, v.as_ref()));
        let exact = exact.filter(|(floor, ceiling)| floor == ceiling).map(|(floor, _)| floor);
        let mut keys: Vec<_> = exact.filter(|k| (least..=greatest).contains(k)).collect();
        keys.sort_unstable();
        keys.dedup();
        match keys.as_slice() {
            [] => Self::range(data_type, 1, 0, negated),
            [only] => Self::range(data_type, *only, *only, negated),
            [first, .., last] if last.saturating_sub(*first) == keys.len() as Key - 1 => {
                Self::range(data_type, *first, *last, negated)
            }
            _ => Self::Set { keys, negated },
        }
    }

    /// The condition of a pattern, as a range where the pattern is one.
    pub(crate) fn pattern(pattern: &Arc<Pattern>, negated: bool) -> Self {
        let (least, greatest) = if let Some(text) = pattern.as_exact() {
            (End::Included(text.to_vec()), End::Included(text.to_vec()))
        } else if let Some(prefix) = pattern.as_prefix() {
            (End::Included(prefix.to_vec()), after_prefix(prefix))
        } else {
            return Self::Match { pattern: Arc::clone(pattern), negated };
        };
        Self::TextRange { least, greatest, negated }
    }

    /// Both conditions as one, where that is one range.
    pub(crate) fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (
                Self::Range { least: a, greatest: b, negated: false },
                Self::Range { least: c, greatest: d, negated: false },
            ) => Some(Self::Range { least: *a.max(c), greatest: *b.min(d), negated: false }),
            (
                Self::Length { least: a, greatest: b, negated: false, in_characters },
                Self::Length { least: c, greatest: d, negated: false, in_characters: same },
            ) if in_characters == same => Some(Self::Length {
                least: *a.max(c),
                greatest: *b.min(d),
                negated: false,
                in_characters: *same,
            }),
            (
                Self::TextRange { least: a, greatest: b, negated: false },
                Self::TextRange { least: c, greatest: d, negated: false },
            ) => {
                let least = if start_order(a) > start_order(c) { a } else { c }.clone();
                let greatest = if end_order(b) < end_order(d) { b } else { d }.clone();
                Some(Self::TextRange { least, greatest, negated: false })
            }
            (Self::Null { negated: true }, other) if !matches!(other, Self::Null { .. }) => {
                Some(other.clone())
            }
            (one, Self::Null { negated: true }) if *one != (Self::Null { negated: false }) => {
                Some(one.clone())
            }
            _ => None,
        }
    }

    /// Whether a value passes.
    pub(crate) fn matches(&self, value: ValueRef<'_>) -> bool {
        if let Self::Null { negated } = self {
            return value.is_null() != *negated;
        }
        if value.is_null() {
            return false;
        }
        match value.as_bytes() {
            Some(text) => self.matches_text(text),
            None => self.matches_key(key(value)),
        }
    }

    /// Whether a key passes.
    pub(crate) fn matches_key(&self, key: Key) -> bool {
        match self {
            Self::Range { least, greatest, negated } => {
                (*least..=*greatest).contains(&key) != *negated
            }
            Self::Set { keys, negated } => keys.binary_search(&key).is_ok() != *negated,
            Self::Null { negated } => *negated,
            _ => false,
        }
    }

    /// Whether a text or byte string passes.
    pub(crate) fn matches_text(&self, text: &[u8]) -> bool {
        match self {
            Self::TextRange { least, greatest, negated } => {
                (starts_by(least, text) && ends_after(greatest, text)) != *negated
            }
            Self::TextSet { values, negated } => {
                values.binary_search_by(|v| v.as_slice().cmp(text)).is_ok() != *negated
            }
            Self::Match { pattern, negated } => pattern.matches(text) != *negated,
            Self::Length { least, greatest, negated, in_characters } => {
                let length =
                    if *in_characters { pieces::character_count(text) } else { text.len() };
                (*least..=*greatest).contains(&(length as Key)) != *negated
            }
            Self::Null { negated } => *negated,
            _ => false,
        }
    }

    /// The same for a text of any length.
    ///
    /// # Errors
    /// When the statement is to end.
    pub(crate) fn matches_within(&self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        match self {
            Self::Match { pattern, negated } => {
                Ok(pattern.matches_within(text, meter)? != *negated)
            }
            Self::Length { in_characters: true, .. } => {
                meter.work(text.len())?;
                Ok(self.matches_text(text))
            }
            _ => Ok(self.matches_text(text)),
        }
    }

    /// What can be said of `rows` rows from the bounds on their values, or from what is known
    /// otherwise of all that are not NULL.
    pub(crate) fn verdict(
        &self,
        data_type: DataType,
        zone: &Zone<'_>,
        known: Option<Verdict>,
        rows: usize,
    ) -> Verdict {
        if let Self::Null { negated } = self {
            let verdict = match zone.null_count {
                0 => Verdict::Never,
                n if n >= rows => Verdict::Always,
                _ => Verdict::Sometimes,
            };
            return if *negated { verdict.opposite() } else { verdict };
        }
        if zone.least.is_null() {
            // Every row is NULL, unless the zone map says too little.
            return if zone.null_count >= rows { Verdict::Never } else { Verdict::Sometimes };
        }
        let verdict = known.unwrap_or_else(|| self.verdict_of_values(data_type, zone));
        if verdict == Verdict::Always && zone.null_count > 0 { Verdict::Sometimes } else { verdict }
    }

    /// What can be said of values that are not NULL from bounds on their lengths, in characters of
    /// texts and in bytes of others.
    pub(crate) fn verdict_of_lengths(
        &self,
        data_type: DataType,
        known: &RangeInclusive<u32>,
    ) -> Verdict {
        let Self::Length { least, greatest, negated, in_characters } = self else {
            return Verdict::Sometimes;
        };
        let (shortest, mut longest) = (Key::from(*known.start()), Key::from(*known.end()));
        if !in_characters && data_type == DataType::Text {
            longest *= CHARACTER_BYTES_MAX;
        }
        let is_bounded = *known.end() < u32::MAX;
        let verdict = Verdict::of(
            shortest > *greatest || (is_bounded && longest < *least),
            shortest >= *least && is_bounded && longest <= *greatest,
        );
        if *negated { verdict.opposite() } else { verdict }
    }

    fn verdict_of_values(&self, data_type: DataType, zone: &Zone<'_>) -> Verdict {
        let (verdict, negated) = match self {
            Self::Range { least, greatest, negated } => {
                let low = key(zone.least);
                let high = zone.greatest.map_or(bounds(data_type).1, key);
                let is_within = low >= *least && high <= *greatest;
                (Verdict::of(high < *least || low > *greatest, is_within), *negated)
            }
            Self::Set { keys, negated } => {
                let low = key(zone.least);
                let high = zone.greatest.map_or(bounds(data_type).1, key);
                let from = keys.partition_point(|k| *k < low);
                let none = keys.get(from).is_none_or(|k| *k > high);
                (Verdict::of(none, !none && low == high), *negated)
            }
            Self::TextRange { least, greatest, negated } => {
                let low = zone.least.as_bytes().unwrap_or_default();
                let high = zone.greatest.and_then(ValueRef::as_bytes);
                let never =
                    !ends_after(greatest, low) || high.is_some_and(|h| !starts_by(least, h));
                let always = starts_by(least, low) && high.is_some_and(|h| ends_after(greatest, h));
                (Verdict::of(never, always), *negated)
            }
            Self::TextSet { values, negated: false } => {
                let low = zone.least.as_bytes().unwrap_or_default();
                let from = values.partition_point(|v| v.as_slice() < low);
                let next = values.get(from);
                let high = zone.greatest.and_then(ValueRef::as_bytes);
                let never = next.is_none_or(|v| high.is_some_and(|h| v.as_slice() > h));
                (Verdict::of(never, false), false)
            }
            _ => return Verdict::Sometimes,
        };
        if negated { verdict.opposite() } else { verdict }
    }
}

/// The most bytes of a character of a text.
const CHARACTER_BYTES_MAX: Key = 4;

/// The same end, without a copy of its text.
pub(crate) fn borrowed(end: &End<Vec<u8>>) -> End<&[u8]> {
    end.as_ref().map(Vec::as_slice)
}

/// True when the text does not lie before the range's start.
fn starts_by(least: &End<Vec<u8>>, text: &[u8]) -> bool {
    (borrowed(least), End::Unbounded).contains(text)
}

/// True when the text does not lie past the range's end.
fn ends_after(greatest: &End<Vec<u8>>, text: &[u8]) -> bool {
    (End::Unbounded, borrowed(greatest)).contains(text)
}

/// What ranges that start there are sorted by.
fn start_order(least: &End<Vec<u8>>) -> Option<(&[u8], bool)> {
    match least {
        End::Unbounded => None,
        End::Included(text) => Some((text, false)),
        End::Excluded(text) => Some((text, true)),
    }
}

/// What ranges that end there are sorted by.
fn end_order(greatest: &End<Vec<u8>>) -> (bool, &[u8], bool) {
    match greatest {
        End::Unbounded => (true, &[], true),
        End::Included(text) => (false, text, true),
        End::Excluded(text) => (false, text, false),
    }
}

/// Where texts with a prefix end: before the least text that is greater than all of them.
fn after_prefix(prefix: &[u8]) -> End<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return End::Excluded(end);
        }
    }
    End::Unbounded
}
