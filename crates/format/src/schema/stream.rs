//! Streams: tables of events, which are in the order in which they were committed.
//!
//! ```text
//!  CREATE TABLE events (t timestamp NOT NULL DEFAULT now(), model text, extra json)
//!  WITH (stream = 't', late = '1 day', ahead = '10 minutes', rest = 'extra')
//!                 │            │                │                    └ unknown members go there
//!                 │            └────────────────┴ how far t may be from now
//!                 └ the time of an event
//! ```
//!
//! Invariants:
//! 1. The key is generated, and rises with the commits: no index on an unique value, and no
//!    reference of another table, asks that a row is there.
//! 2. The field of the time is a timestamp that every row has, and that stays what it was.

use std::fmt;

use super::dedupe::{self, Dedupe};
use super::retention::{self, Retention, RowClass, RowClasses};
use super::{Field, FieldId, PrimaryKey, Profile, Reference, ReferenceAction, Schema};
use crate::codec::{Reader, Writer};
use crate::{DataType, Error, Interval, Result, Value};

/// What a table is that has a stream's profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The field of the time.
    pub time: FieldId,
    /// By how many microseconds a time may be before now; `None`: by any.
    pub late_us: Option<u64>,
    /// By how many microseconds a time may be behind now; `None`: by any.
    pub ahead_us: Option<u64>,
    /// The field, of JSON, for members of an event that no field is called after.
    pub rest: Option<FieldId>,
    /// How long events are kept.
    pub retention: Retention,
    /// Which events are stored once.
    pub dedupe: Option<Dedupe>,
}

impl Stream {
    /// What a field says of an event that stays as it was written; `None`: it may change.
    fn fixed(&self, field: FieldId) -> Option<&'static str> {
        if self.time == field {
            return Some("time");
        }
        if self.dedupe.is_some_and(|dedupe| dedupe.field == field) {
            return Some("dedupe value");
        }
        let classes = self.retention.classes.as_ref()?;
        (classes.field == field).then_some("class")
    }
}

/// One property of a stream, as it is declared: by names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamOption {
    /// By how many microseconds a time may be before now.
    Late(Option<u64>),
    /// By how many microseconds a time may be behind now.
    Ahead(Option<u64>),
    /// The field for members that no field is called after.
    Rest(Option<String>),
    /// For how many microseconds events are kept.
    Retention(Option<u64>),
    /// The classes that are kept for another time, by the values of a field.
    RetentionBy(Option<(String, Vec<RowClass>)>),
    /// The length of a window in microseconds.
    Window(Option<u64>),
    /// The field whose values come once within so many microseconds.
    Dedupe(Option<(String, u64)>),
}

/// The names of options, as statements have them.
const NAMES: [&str; 7] = ["late", "ahead", "rest", "retention", "retention_by", "window", "dedupe"];

/// What a block says: which parts follow.
const LATE: u8 = 1;
const AHEAD: u8 = 1 << 1;
const REST: u8 = 1 << 2;

impl StreamOption {
    /// Whether an option has this name, in any case.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The option of a name, in any case, with a text as its value: an interval such as `1 day`, or
    /// the name of a field. `None`: the option is taken back.
    ///
    /// ```
    /// use esker_format::schema::StreamOption;
    ///
    /// let option = StreamOption::read("late", Some("2 hours"))?;
    /// assert_eq!(option, StreamOption::Late(Some(7_200_000_000)));
    /// assert!(StreamOption::read("late", Some("2 months")).is_err());
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for another name, or for a value that the option does not take.
    pub fn read(name: &str, value: Option<&str>) -> Result<Self> {
        let span = || value.map(|text| span_us(name, text)).transpose();
        match name.to_ascii_lowercase().as_str() {
            "late" => Ok(Self::Late(span()?)),
            "ahead" => Ok(Self::Ahead(span()?)),
            "rest" => Ok(Self::Rest(value.map(str::to_owned))),
            "retention" => {
                let keep = value.map(|text| retention::keep_us(name, text));
                Ok(Self::Retention(keep.transpose()?))
            }
            "retention_by" => {
                Ok(Self::RetentionBy(value.map(retention::read_classes).transpose()?))
            }
            "window" => Ok(Self::Window(value.map(retention::window_us).transpose()?)),
            "dedupe" => Ok(Self::Dedupe(value.map(dedupe::read).transpose()?)),
            _ => {
                let known = NAMES.join(", ");
                Err(Error::invalid(format!("option {name} of a stream: expected {known}")))
            }
        }
    }
}

/// A length of time in microseconds.
pub(super) fn span_us(name: &str, text: &str) -> Result<u64> {
    let invalid = |found: &str| {
        let expected = "expected a length of time such as '1 day' or '90 minutes'";
        Error::invalid(format!("option {name} of a stream: {expected}, found {found}"))
    };
    let span: Interval = text.parse().map_err(|_| invalid(&format!("{text:?}")))?;
    if span.months() != 0 {
        return Err(invalid(&format!("{text:?}, and months have no fixed length")));
    }
    let us = u64::try_from(span.length_us()).ok().filter(|us| i64::try_from(*us).is_ok());
    us.ok_or_else(|| invalid(&format!("{text:?}, which is below zero or too long")))
}

/// A length of time as a statement has it.
pub(super) struct Span(pub(super) u64);

impl Span {
    /// In whole days, hours, minutes or seconds: the largest of which there are two.
    fn rounded(self) -> Self {
        let units = [86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000];
        let unit = units.into_iter().find(|unit| self.0 >= 2 * unit);
        unit.map_or(Self(self.0), |unit| Self(self.0 / unit * unit)) // default: below two seconds
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000_000;
        let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
        let whole = |(length, _): &&(u64, &str)| seconds.is_multiple_of(*length);
        match units.iter().find(whole).filter(|_| self.0 == seconds * 1_000_000) {
            Some((length, unit)) => {
                let count = seconds / length;
                write!(f, "{count} {unit}{}", if count == 1 { "" } else { "s" })
            }
            None => write!(f, "{}.{:06} seconds", seconds, self.0 % 1_000_000),
        }
    }
}

impl Schema {
    /// What the table is as a stream; `None`: it is none.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_deref()
    }

    /// The options of a stream as a statement has them: names and texts, `stream` first.
    ///
    /// # Errors
    /// `Corrupt` when a field is not there.
    pub fn stream_options(&self) -> Result<Vec<(&'static str, String)>> {
        let Some(stream) = self.stream() else { return Ok(Vec::new()) };
        let name = |id: FieldId| {
            let field = self.field_of(id).ok_or_else(|| missing(id))?;
            Ok::<_, Error>(field.name.clone())
        };
        let mut options = vec![("stream", name(stream.time)?)];
        options.extend(stream.late_us.map(|us| ("late", Span(us).to_string())));
        options.extend(stream.ahead_us.map(|us| ("ahead", Span(us).to_string())));
        if let Some(rest) = stream.rest {
            options.push(("rest", name(rest)?));
        }
        options.extend(self.retention_options(&stream.retention));
        if let Some(dedupe) = stream.dedupe {
            options.push(("dedupe", dedupe.text(&name(dedupe.field)?)));
        }
        Ok(options)
    }

    /// The position of the field for members that no field is called after.
    #[must_use]
    pub fn rest_position(&self) -> Option<usize> {
        let rest = self.stream()?.rest?;
        self.fields.iter().position(|field| field.id == rest)
    }

    /// Refuses another value for a field that stays as it was written: the time of an event, and
    /// what says of which class it is.
    ///
    /// # Errors
    /// `InvalidInput` naming the field.
    pub fn refuse_fixed(&self, field: &Field) -> Result<()> {
        let Some(what) = self.stream().and_then(|stream| stream.fixed(field.id)) else {
            return Ok(());
        };
        let name = &field.name;
        let message = "which stays: delete the event and insert it again";
        Err(Error::invalid(format!("field {name:?} is the {what} of an event, {message}")))
    }

    /// Refuses a time that is further from now than the stream takes, or than events of the class
    /// are kept.
    ///
    /// # Errors
    /// `InvalidInput` that says by how much.
    pub fn expect_in_bounds(
        &self,
        stream: &Stream,
        (time, class): (&Value, usize),
        now_us: i64,
    ) -> Result<()> {
        let Value::Timestamp(at_us) = time else { return Ok(()) };
        let behind = i128::from(now_us) - i128::from(*at_us);
        let kept_us = stream.keep_us_of(class);
        let is_kept_shorter = match (kept_us, stream.late_us) {
            (Some(kept_us), Some(late_us)) => kept_us < late_us,
            (kept_us, _) => kept_us.is_some(),
        };
        let (word, bound, distance) = match (behind >= 0, is_kept_shorter) {
            (true, true) => ("retention", kept_us, behind),
            (true, false) => ("late", stream.late_us, behind),
            (false, _) => ("ahead", stream.ahead_us, -behind),
        };
        let Some(bound) = bound.filter(|bound| distance > i128::from(*bound)) else {
            return Ok(());
        };
        // default: no time is further than this.
        let by = Span(u64::try_from(distance).unwrap_or(u64::MAX)).rounded();
        let side = if behind >= 0 { "before" } else { "after" };
        let field = self.field_of(stream.time).ok_or_else(|| missing(stream.time))?;
        let code = if behind >= 0 { "too_late" } else { "too_early" };
        let (name, at) = (&field.name, time.as_ref());
        let takes = match word {
            "retention" => format!("such events are kept for {}", Span(bound)),
            _ => format!("the stream takes events up to {word} = '{}'", Span(bound)),
        };
        Err(Error::invalid(format!("{code}: {name} = {at} is {by} {side} now; {takes}")))
    }

    /// Makes the table a stream of events, whose time a field has.
    pub(super) fn make_stream(&mut self, time: &str, options: &[StreamOption]) -> Result<()> {
        let position = self.resolve(time)?;
        let field = self.fields.get(position).ok_or_else(|| Error::invalid("unknown field"))?;
        let retention = Retention::default();
        let stream = Stream {
            time: field.id,
            late_us: None,
            ahead_us: None,
            rest: None,
            retention,
            dedupe: None,
        };
        (self.profile, self.stream) = (Profile::Stream, Some(Box::new(stream)));
        options.iter().try_for_each(|option| self.set_stream_option(option))
    }

    pub(super) fn set_stream_option(&mut self, option: &StreamOption) -> Result<()> {
        let rest = match option {
            StreamOption::Rest(Some(name)) => {
                self.fields.get(self.resolve(name)?).map(|field| field.id)
            }
            _ => None,
        };
        let classes = match option {
            StreamOption::RetentionBy(Some((name, classes))) => {
                let field = self.fields.get(self.resolve(name)?).map(|field| field.id);
                field.map(|field| RowClasses { field, classes: classes.clone() })
            }
            _ => None,
        };
        let dedupe = match option {
            StreamOption::Dedupe(Some((name, within_us))) => {
                let field = self.fields.get(self.resolve(name)?).map(|field| field.id);
                field.map(|field| Dedupe { field, within_us: *within_us })
            }
            _ => None,
        };
        let Some(stream) = self.stream.as_deref_mut() else {
            let message = "the table is no stream: stream = 'field' is said when it is created";
            return Err(Error::invalid(message));
        };
        match option {
            StreamOption::Late(late_us) => stream.late_us = *late_us,
            StreamOption::Ahead(ahead_us) => stream.ahead_us = *ahead_us,
            StreamOption::Rest(_) => stream.rest = rest,
            StreamOption::Retention(keep_us) => stream.retention.keep_us = *keep_us,
            StreamOption::RetentionBy(_) => stream.retention.classes = classes,
            StreamOption::Window(window_us) => stream.retention.window_us = *window_us,
            StreamOption::Dedupe(_) => stream.dedupe = dedupe,
        }
        Ok(())
    }

    /// Refuses to drop a field that the stream needs.
    pub(super) fn refuse_of_stream(&self, id: FieldId, what: &str) -> Result<()> {
        let Some(stream) = self.stream() else { return Ok(()) };
        let use_of_it = match (stream.time == id, stream.rest == Some(id)) {
            (true, _) => "has the times of the stream",
            (_, true) => "has the other members of events (RESET (rest) ends that)",
            _ if stream.dedupe.is_some_and(|dedupe| dedupe.field == id) => {
                "says which events are stored once (RESET (dedupe) ends that)"
            }
            _ if stream.fixed(id).is_some() => {
                "says of which class an event is (RESET (retention_by) ends that)"
            }
            _ => return Ok(()),
        };
        // default: a field that is not there is no field of the stream.
        let name = self.field_of(id).map_or("", |field| field.name.as_str());
        Err(Error::invalid(format!("field {name:?} {use_of_it} and cannot be {what}")))
    }

    pub(super) fn encode_stream(&self, out: &mut Writer) {
        let Some(stream) = self.stream() else { return };
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let spans = flag(stream.late_us.is_some(), LATE) | flag(stream.ahead_us.is_some(), AHEAD);
        let parts = flag(stream.rest.is_some(), REST) | flag(stream.dedupe.is_some(), dedupe::FLAG);
        out.u8(spans | parts | stream.retention.flags());
        out.u16(stream.time.0);
        [stream.late_us, stream.ahead_us].into_iter().flatten().for_each(|us| out.u64(us));
        stream.rest.iter().for_each(|field| out.u16(field.0));
        stream.retention.encode(out);
        stream.dedupe.iter().for_each(|dedupe| dedupe.encode(out));
    }

    pub(super) fn decode_stream(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let flags = input.u8()?;
        let of_retention = retention::WINDOW | retention::RETENTION | retention::CLASSES;
        let known = LATE | AHEAD | REST | dedupe::FLAG | of_retention;
        if flags & !known != 0 {
            return Err(Error::corrupt(format!("unknown parts of a stream: {flags:#04x}")));
        }
        let time = FieldId(input.u16()?);
        let mut span =
            |flag| Ok::<_, Error>(if flags & flag == 0 { None } else { Some(input.u64()?) });
        let (late_us, ahead_us) = (span(LATE)?, span(AHEAD)?);
        let rest = if flags & REST == 0 { None } else { Some(FieldId(input.u16()?)) };
        let retention = Retention::decode(flags, input)?;
        let dedupe = if flags & dedupe::FLAG == 0 { None } else { Some(Dedupe::decode(input)?) };
        let stream = Stream { time, late_us, ahead_us, rest, retention, dedupe };
        self.stream = Some(Box::new(stream));
        Ok(())
    }

    /// Refuses a reference that would give the time or the class of an event another value.
    fn expect_time_stays(&self, stream: &Stream) -> Result<()> {
        use ReferenceAction::{Cascade, SetDefault, SetNull};
        let fixed =
            |reference: &Reference| reference.fields.iter().find_map(|field| stream.fixed(*field));
        for reference in &self.references {
            let Some(what) = fixed(reference) else { continue };
            let on_delete = matches!(reference.on_delete, SetNull | SetDefault);
            if on_delete || matches!(reference.on_update, Cascade | SetNull | SetDefault) {
                let name = &reference.name;
                return Err(Error::invalid(format!(
                    "reference {name:?} would change the {what} of an event, which stays"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn validate_stream(&self) -> Result<()> {
        let Some(stream) = self.stream() else {
            return match self.profile {
                Profile::Stream => Err(Error::invalid("a stream without a field of times")),
                _ => Ok(()),
            };
        };
        let refuse = |message: String| Err(Error::invalid(message));
        if self.profile != Profile::Stream {
            return refuse("what is no stream has a field of times".to_owned());
        }
        if self.primary_key != PrimaryKey::Generated {
            return refuse(
                "a stream has no primary key of fields: its key is generated".to_owned(),
            );
        }
        if self.expiry.is_some() {
            return refuse("rows of a stream do not expire by a field".to_owned());
        }
        if let Some(index) = self.unique_indexes().next() {
            let message = "a stream has no unique indexes, which would have to know every event";
            return refuse(format!("index {:?}: {message}", index.name));
        }
        let field = self.field_of(stream.time).ok_or_else(|| missing(stream.time))?;
        let name = &field.name;
        if field.data_type != DataType::Timestamp {
            let found = field.type_text();
            return refuse(format!("time {name:?} of a stream: expected timestamp, found {found}"));
        }
        if field.nullable {
            return refuse(format!("time {name:?} of a stream: expected NOT NULL"));
        }
        if field.generated.is_some() {
            return refuse(format!("time {name:?} of a stream is generated: a time is given"));
        }
        self.expect_time_stays(stream)?;
        self.validate_retention(&stream.retention)?;
        self.validate_dedupe(stream)?;
        let Some(rest) = stream.rest else { return Ok(()) };
        let field = self.field_of(rest).ok_or_else(|| missing(rest))?;
        let (name, found) = (&field.name, field.type_text());
        if field.data_type != DataType::Json {
            return refuse(format!("rest {name:?} of a stream: expected json, found {found}"));
        }
        if !field.nullable || field.generated.is_some() {
            return refuse(format!("rest {name:?} of a stream: expected a field that may be NULL"));
        }
        Ok(())
    }
}

/// A field of the stream that is not there.
fn missing(id: FieldId) -> Error {
    Error::invalid(format!("the field of number {} of a stream is not there", id.0))
}
