//! How long events of a stream are kept, and by which windows of time they are stored.
//!
//! ```text
//! retention = '90 days', retention_by = 'tier: free 7 days, vip forever', window = '1 day'
//!              │                         │     └ events of this class end sooner
//!              │                         └ the field that says which class an event is of
//!              └ for how long events of any other class are kept
//! ```
//!
//! A window is a span of time that begins at a multiple of its length since 1970. Segments are cut
//! by class and window, so that whole segments end when a window does.

use std::fmt::Write as _;

use super::stream::{Span, Stream, span_us};
use super::{Field, FieldId, Schema};
use crate::codec::{Reader, Writer};
use crate::{DataType, Error, Result, ValueRef, labels};

/// Classes of one stream at the most.
pub const CLASSES_MAX: usize = 16;
/// The shortest window.
const WINDOW_MIN_US: u64 = 60_000_000;
/// The shortest time for which events are kept.
const KEEP_MIN_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60_000_000;
/// What a window is rounded to that follows from how long events are kept.
const WINDOWS_US: [u64; 5] =
    [15 * MINUTE_US, 60 * MINUTE_US, 360 * MINUTE_US, 1_440 * MINUTE_US, 10_080 * MINUTE_US];
/// The window of a stream whose events are kept for ever.
const WINDOW_US: u64 = 1_440 * MINUTE_US;
/// About how many windows there are of what is kept.
const WINDOWS_KEPT: u64 = 100;

/// How long events are kept, and the length of a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// For how many microseconds events are kept that are of no class; `None`: for ever.
    pub keep_us: Option<u64>,
    /// The classes that are kept for another time.
    pub classes: Option<RowClasses>,
    /// The length of a window in microseconds, where it is declared.
    pub window_us: Option<u64>,
}

/// Classes of events, by the value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowClasses {
    /// The field, of text or an enum.
    pub field: FieldId,
    /// The classes.
    pub classes: Vec<RowClass>,
}

/// Events that have one value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowClass {
    /// The value.
    pub value: String,
    /// For how many microseconds they are kept; `None`: for ever.
    pub keep_us: Option<u64>,
}

impl Stream {
    /// The class of an event by the value of the field that says so: the place among the classes,
    /// or how many there are for one that is of none.
    #[must_use]
    pub fn class_of(&self, value: ValueRef<'_>) -> usize {
        let classes = self.retention.classes.iter().flat_map(|of| &of.classes);
        let text = match value {
            ValueRef::Enum(stored) => Some(labels::label(stored).as_bytes()),
            other => other.as_bytes(),
        };
        let is_of = |class: &RowClass| text == Some(class.value.as_bytes());
        let count = classes.clone().count();
        // default: it is of none
        classes.clone().position(is_of).filter(|_| !value.is_null()).unwrap_or(count)
    }

    /// The values of the field that make an event one of a class.
    pub fn class_values(&self) -> impl Iterator<Item = &str> {
        let classes = self.retention.classes.iter().flat_map(|of| &of.classes);
        classes.map(|class| class.value.as_str())
    }

    /// How many classes there are, those of no class being one.
    #[must_use]
    pub fn class_count(&self) -> usize {
        self.retention.classes.iter().map(|of| of.classes.len()).sum::<usize>() + 1
    }

    /// For how many microseconds events of a class are kept; `None`: for ever.
    #[must_use]
    pub fn keep_us_of(&self, class: usize) -> Option<u64> {
        let mut classes = self.retention.classes.iter().flat_map(|of| &of.classes);
        match classes.nth(class) {
            Some(class) => class.keep_us,
            None => self.retention.keep_us,
        }
    }

    /// Whether events of some class end.
    #[must_use]
    pub fn ends_events(&self) -> bool {
        (0..self.class_count()).any(|class| self.keep_us_of(class).is_some())
    }

    /// The length of a window in microseconds: as declared, or about a hundredth of the longest
    /// time for which events are kept.
    #[must_use]
    pub fn window_us(&self) -> u64 {
        if let Some(declared) = self.retention.window_us {
            return declared;
        }
        let kept = (0..self.class_count()).filter_map(|class| self.keep_us_of(class)).max();
        let Some(kept) = kept else { return WINDOW_US };
        let least = |window: &u64| *window >= kept / WINDOWS_KEPT;
        let [.., longest] = WINDOWS_US;
        WINDOWS_US.into_iter().find(least).unwrap_or(longest) // default: the longest there is
    }

    /// The number of the window that a time lies in.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("t", DataType::Timestamp).stream("t", []).build()?;
    /// let stream = schema.stream().unwrap();
    /// assert_eq!((stream.window_of(-1), stream.window_of(0)), (-1, 0));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn window_of(&self, time_us: i64) -> i64 {
        // default: a window longer than all times
        time_us.div_euclid(i64::try_from(self.window_us()).unwrap_or(i64::MAX))
    }

    /// Events of a class whose times are before this one have ended at a date: whole windows.
    /// `None`: none has.
    #[must_use]
    pub fn ended_before(&self, class: usize, date_us: i64) -> Option<i64> {
        let keep_us = i64::try_from(self.keep_us_of(class)?).ok()?;
        let window_us = i64::try_from(self.window_us()).ok()?;
        let bound = date_us.checked_sub(keep_us)?;
        self.window_of(bound).checked_mul(window_us)
    }
}

/// Reads `tier: free 7 days, pro 90 days, vip forever`.
pub(super) fn read_classes(text: &str) -> Result<(String, Vec<RowClass>)> {
    let invalid = |what: &str| {
        let expected = "expected 'field: value length, value length', such as 'tier: free 7 days'";
        Error::invalid(format!("option retention_by of a stream: {expected}, found {what}"))
    };
    let (field, mut rest) = text.split_once(':').ok_or_else(|| invalid(&format!("{text:?}")))?;
    let mut classes: Vec<RowClass> = Vec::new();
    loop {
        let (value, behind) = read_value(rest.trim_start()).ok_or_else(|| invalid(rest.trim()))?;
        let (length, more) = match behind.split_once(',') {
            Some((length, more)) => (length.trim(), Some(more)),
            None => (behind.trim(), None),
        };
        let keep_us = match length {
            "forever" => None,
            "" => return Err(invalid(&format!("{value:?} without a length of time"))),
            length => Some(keep_us("retention_by", length)?),
        };
        if classes.iter().any(|class| class.value == value) {
            return Err(invalid(&format!("{value:?} twice")));
        }
        classes.push(RowClass { value, keep_us });
        match more {
            Some(more) => rest = more,
            None => return Ok((field.trim().to_owned(), classes)),
        }
    }
}

/// A word, or a text in double quotes, and what follows.
fn read_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', ',', '"']).unwrap_or(text.len()); // default: it is the last
        let (value, behind) = text.split_at_checked(end).filter(|(value, _)| !value.is_empty())?;
        return Some((value.to_owned(), behind));
    };
    let (mut value, mut rest) = (String::new(), quoted);
    loop {
        let (part, behind) = rest.split_once('"')?;
        value.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                value.push('"');
                rest = more;
            }
            None => return Some((value, behind)),
        }
    }
}

/// Classes as a statement has them.
fn classes_text(field: &str, classes: &[RowClass]) -> String {
    let mut text = format!("{field}:");
    for (at, RowClass { value, keep_us }) in classes.iter().enumerate() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let value = match !value.is_empty() && value.chars().all(is_word) {
            true => value.clone(),
            false => format!("\"{}\"", value.replace('"', "\"\"")),
        };
        // default: it is said so
        let length = keep_us.map_or("forever".to_owned(), |us| Span(us).to_string());
        let comma = if at == 0 { "" } else { "," };
        // Writing to a text does not fail.
        let _ = write!(text, "{comma} {value} {length}");
    }
    text
}

/// For how long events are kept.
pub(super) fn keep_us(name: &str, text: &str) -> Result<u64> {
    at_least(name, text, KEEP_MIN_US, "a second")
}

/// The length of a window.
pub(super) fn window_us(text: &str) -> Result<u64> {
    at_least("window", text, WINDOW_MIN_US, "a minute")
}

fn at_least(name: &str, text: &str, least_us: u64, least: &str) -> Result<u64> {
    let us = span_us(name, text)?;
    match us >= least_us {
        true => Ok(us),
        false => {
            let message = format!("option {name} of a stream: expected {least} at least");
            Err(Error::invalid(format!("{message}, found {text:?}")))
        }
    }
}

/// Refuses windows that are longer than events are kept: these would be kept for much longer.
fn expect_window(window_us: u64, kept: impl IntoIterator<Item = Option<u64>>) -> Result<()> {
    match kept.into_iter().flatten().find(|kept_us| *kept_us < window_us) {
        None => Ok(()),
        Some(kept_us) => Err(Error::invalid(format!(
            "option window of a stream: {} is longer than events are kept, {}",
            Span(window_us),
            Span(kept_us)
        ))),
    }
}

/// What a block says: which parts follow.
pub(super) const WINDOW: u8 = 1 << 4;
pub(super) const RETENTION: u8 = 1 << 5;
pub(super) const CLASSES: u8 = 1 << 6;

impl Retention {
    pub(super) fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.window_us.is_some(), WINDOW)
            | flag(self.keep_us.is_some(), RETENTION)
            | flag(self.classes.is_some(), CLASSES)
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        [self.window_us, self.keep_us].into_iter().flatten().for_each(|us| out.u64(us));
        let Some(RowClasses { field, classes }) = &self.classes else { return };
        out.u16(field.0);
        out.count(classes.len());
        for RowClass { value, keep_us } in classes {
            out.text(value);
            out.u64(keep_us.unwrap_or(0)); // default: for ever, since nothing is kept for no time
        }
    }

    pub(super) fn decode(flags: u8, input: &mut Reader<'_>) -> Result<Self> {
        let mut span =
            |flag| Ok::<_, Error>(if flags & flag == 0 { None } else { Some(input.u64()?) });
        let (window_us, keep_us) = (span(WINDOW)?, span(RETENTION)?);
        let classes = match flags & CLASSES {
            0 => None,
            _ => {
                let field = FieldId(input.u16()?);
                let mut classes = Vec::new();
                for _ in 0..input.count(CLASSES_MAX)? {
                    let value = input.text()?.to_owned();
                    classes
                        .push(RowClass { value, keep_us: Some(input.u64()?).filter(|us| *us > 0) });
                }
                Some(RowClasses { field, classes })
            }
        };
        if window_us == Some(0) {
            return Err(Error::corrupt("a stream with windows of no time"));
        }
        Ok(Self { keep_us, classes, window_us })
    }
}

impl Schema {
    /// The field that says of which class an event is.
    #[must_use]
    pub fn class_field(&self) -> Option<&Field> {
        self.field_of(self.stream()?.retention.classes.as_ref()?.field)
    }

    /// What is said of retention, as a statement has it.
    pub(super) fn retention_options(&self, retention: &Retention) -> Vec<(&'static str, String)> {
        let span = |name, us: Option<u64>| us.map(|us| (name, Span(us).to_string()));
        let mut options: Vec<_> = span("retention", retention.keep_us).into_iter().collect();
        if let (Some(of), Some(field)) = (&retention.classes, self.class_field()) {
            options.push(("retention_by", classes_text(&field.name, &of.classes)));
        }
        options.extend(span("window", retention.window_us));
        options
    }

    pub(super) fn validate_retention(&self, retention: &Retention) -> Result<()> {
        let Some(RowClasses { field, classes }) = &retention.classes else {
            return match retention.window_us {
                Some(window_us) => expect_window(window_us, [retention.keep_us]),
                None => Ok(()),
            };
        };
        let refuse = |message: String| Err(Error::invalid(message));
        let Some(field) = self.field_of(*field) else {
            return refuse(format!(
                "the field {} of the classes of a stream is not there",
                field.0
            ));
        };
        let (name, found) = (&field.name, field.type_text());
        if !matches!(field.data_type, DataType::Text | DataType::Enum) {
            return refuse(format!("classes by {name:?}: expected text or an enum, found {found}"));
        }
        if field.generated.is_some() {
            return refuse(format!("classes by {name:?}: expected a field that is given"));
        }
        if classes.is_empty() || classes.len() > CLASSES_MAX {
            let found = classes.len();
            return refuse(format!(
                "classes by {name:?}: expected 1 to {CLASSES_MAX}, found {found}"
            ));
        }
        for RowClass { value, .. } in classes {
            if let Some(labels) = &field.labels
                && labels.find(value).is_none()
            {
                return refuse(format!("classes by {name:?}: {value:?} is none of its labels"));
            }
        }
        if let Some(window_us) = retention.window_us {
            let kept = classes.iter().map(|class| class.keep_us);
            expect_window(window_us, kept.chain([retention.keep_us]))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::StreamOption;

    const DAY_US: i64 = 86_400_000_000;

    fn schema(options: &[(&str, &str)]) -> Result<Schema> {
        let options: Result<Vec<_>> =
            options.iter().map(|(name, value)| StreamOption::read(name, Some(value))).collect();
        let schema = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
        schema.field("tier", DataType::Text).stream("t", options?).build()
    }

    #[test]
    fn classes_are_read_and_shown() {
        let text = "tier: free 7 days, \"a, \"\"b\"\"\" 90 minutes, vip forever";
        let options = [("retention", "30 days"), ("retention_by", text), ("window", "1 hour")];
        let made = schema(&options).unwrap();
        let shown = made.stream_options().unwrap();
        let shown: Vec<_> = shown.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(shown[0], ("stream", "t"));
        assert_eq!(shown[1..], options);
        let stream = made.stream().unwrap();
        let of = |text: &str| stream.class_of(ValueRef::Text(text));
        assert_eq!((of("free"), of("a, \"b\""), of("vip"), of("x")), (0, 1, 2, 3));
        assert_eq!(stream.class_of(ValueRef::Null), 3);
        assert_eq!((stream.keep_us_of(2), stream.keep_us_of(3)), (None, Some(30 * 86_400_000_000)));
        let mut out = Writer::new();
        made.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Schema::decode(&mut Reader::new(&bytes)).unwrap(), made);
    }

    #[test]
    fn what_are_no_classes_is_refused() {
        for text in [
            "",
            "tier",
            "tier:",
            "tier: free",
            "tier: free 7 days,",
            "tier: free 7 days, free 8 days",
            "tier: \"free 7 days",
            "tier: free 0 days",
            "tier: free 2 months",
            "n: 1 7 days",
            "t: a 7 days",
            "no: a 7 days",
        ] {
            assert!(schema(&[("retention_by", text)]).is_err(), "{text}");
        }
        assert!(schema(&[("window", "1 second")]).is_err());
        assert!(schema(&[("retention", "0 seconds")]).is_err());
    }

    #[test]
    fn whole_windows_end() {
        let made = schema(&[("retention", "7 days"), ("window", "1 day")]).unwrap();
        let stream = made.stream().unwrap();
        assert_eq!(stream.ended_before(0, 10 * DAY_US + 5), Some(3 * DAY_US));
        assert_eq!(stream.ended_before(0, 10 * DAY_US - 5), Some(2 * DAY_US));
        assert_eq!(stream.ended_before(0, DAY_US / 2), Some(-7 * DAY_US));
        let windows = [("1 day", 900), ("10 days", 3_600 * 6), ("90 days", 86_400), ("9 years", 0)];
        for (kept, seconds) in windows.into_iter().filter(|(_, seconds)| *seconds > 0) {
            let made = schema(&[("retention", kept)]).unwrap();
            assert_eq!(made.stream().unwrap().window_us(), seconds * 1_000_000, "{kept}");
        }
        assert_eq!(schema(&[]).unwrap().stream().unwrap().window_us(), WINDOW_US);
        assert!(!schema(&[]).unwrap().stream().unwrap().ends_events());
    }
}
