//! What a table is for, in which order its rows are stored, and when they expire.

use super::{FieldId, PrimaryKey, Schema};
use crate::codec::{Reader, Writer};
use crate::{DataType, Error, ExpiryClock, Field, Result, comment};

/// The order of the rows of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowOrder {
    /// As they came: by row id.
    #[default]
    Arrival,
    /// By the primary key: rows with near keys lie side by side.
    Key,
    /// By the time of events, and those of one time by row id.
    Time,
}

impl RowOrder {
    pub(crate) fn encode(self, out: &mut Writer) {
        out.u8(match self {
            Self::Arrival => 0,
            Self::Key => 1,
            Self::Time => 2,
        });
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(match input.u8()? {
            0 => Self::Arrival,
            1 => Self::Key,
            2 => Self::Time,
            other => return Err(Error::corrupt(format!("unknown order of rows {other}"))),
        })
    }
}

/// What a table is for. It is stored with the table, never guessed from its fields, and decides
/// which of its parts are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// Rows of any fields: order of rows, key, checks, indexes and expiry are the user's.
    #[default]
    Table,
    /// Entries: keys and values of bytes in the order of the keys, which live for an elapsed time.
    Bucket,
    /// Events in the order of their commits, each with a time.
    Stream,
}

/// The fields of a bucket: keys and values of bytes, and when a time to live is over.
pub const BUCKET_FIELDS: [(&str, DataType); 3] =
    [("key", DataType::Bytes), ("value", DataType::Bytes), ("expires_at", DataType::Timestamp)];

/// The order of rows.
const BY_KEY: u8 = 1;
/// By which time they expire: 0 where they do not, or where that is not said.
const CLOCK: u8 = 3 << 1;
const BY_DATE: u8 = 1 << 1;
const BY_ELAPSED: u8 = 2 << 1;
/// The profile: 0 where that is not said.
const PROFILE: u8 = 3 << 3;
const TABLE: u8 = 1 << 3;
const BUCKET: u8 = 2 << 3;
/// From version 15 of the log on; what the stream is follows the references.
const STREAM: u8 = 3 << 3;
/// A comment on the table follows: from version 12 of the log on.
const COMMENTED: u8 = 1 << 5;
/// References follow, from the same version on.
const BOUND: u8 = 1 << 6;
/// What is said of changes follows the comment: from version 18 of the log and 17 of checkpoints
/// on.
const CHANGES: u8 = 1 << 7;

impl Schema {
    /// In which order the rows of segments lie. It never changes.
    #[must_use]
    pub fn row_order(&self) -> RowOrder {
        match self.profile {
            Profile::Stream => RowOrder::Time,
            Profile::Table | Profile::Bucket => self.row_order,
        }
    }

    /// The order of rows in a segment that is written as they come, for want of a number that the
    /// commit gives: those of a stream are sorted when the segment is merged.
    #[must_use]
    pub fn row_order_as_they_come(&self) -> RowOrder {
        match self.row_order() {
            RowOrder::Time => RowOrder::Arrival,
            other => other,
        }
    }

    /// The fields that the rows of segments are sorted by, where they are not in the order in which
    /// they came: those of the key, or the time of events.
    pub fn sort_fields(&self) -> impl Iterator<Item = &Field> {
        let time = self.stream().and_then(|stream| self.field_of(stream.time));
        self.key_fields().chain(time)
    }

    /// True when the rows of segments lie in the order of the key.
    #[must_use]
    pub fn is_ordered_by_key(&self) -> bool {
        self.row_order == RowOrder::Key
    }

    /// The key and the other field that segments store side by side, row by row: of a table whose
    /// rows lie in the order of a key that is one text or byte string, and that has one other field
    /// of text, bytes or JSON, as a bucket has. A look-up of a row reads both.
    #[must_use]
    pub fn side_by_side(&self) -> Option<(FieldId, FieldId)> {
        let is_bytes = |field: &&Field| field.data_type.may_be_long();
        let mut keys = self.key_fields();
        let (Some(key), None) = (keys.next().filter(is_bytes), keys.next()) else { return None };
        let mut others = self.fields.iter().filter(is_bytes).filter(|field| field.id != key.id);
        let (Some(other), None) = (others.next(), others.next()) else { return None };
        self.is_ordered_by_key().then_some((key.id, other.id))
    }

    /// The field that is the key by itself.
    #[must_use]
    pub fn key_field(&self) -> Option<FieldId> {
        let mut keys = self.key_fields();
        let (Some(key), None) = (keys.next(), keys.next()) else { return None };
        Some(key.id)
    }

    /// The field that says when a row expires: from that moment on it is absent. NULL means never.
    #[must_use]
    pub fn expiry_field(&self) -> Option<&Field> {
        self.field_of(self.expiry?)
    }

    /// The position of [`Schema::expiry_field`].
    #[must_use]
    pub fn expiry_position(&self) -> Option<usize> {
        let expiry = self.expiry?;
        self.fields.iter().position(|field| field.id == expiry)
    }

    /// By which time rows expire.
    #[must_use]
    #[inline]
    pub fn expiry_clock(&self) -> ExpiryClock {
        self.expiry_clock
    }

    /// What the table is for.
    #[must_use]
    #[inline]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// True for the table of a bucket.
    #[must_use]
    #[inline]
    pub fn is_bucket(&self) -> bool {
        self.profile == Profile::Bucket
    }

    /// True for the fields, the key and the order of rows that buckets have.
    fn has_bucket_shape(&self) -> bool {
        let fields = self.fields.iter().map(|field| (field.name.as_str(), field.data_type));
        self.is_ordered_by_key()
            && self.key_positions() == [0]
            && self.expiry_position() == Some(2)
            && fields.eq(BUCKET_FIELDS)
    }

    /// Rows expire by a field, which says a date; `None`: they do not expire.
    pub(super) fn set_expiry(&mut self, name: Option<&str>) -> Result<()> {
        let expiry = match name {
            None => None,
            Some(name) => self.fields.get(self.resolve(name)?).map(|field| field.id),
        };
        if expiry != self.expiry {
            (self.expiry, self.expiry_clock) = (expiry, ExpiryClock::Date);
        }
        Ok(())
    }

    pub(super) fn encode_profile(&self, out: &mut Writer) {
        let order = if self.is_ordered_by_key() { BY_KEY } else { 0 };
        let clock = match (self.expiry, self.expiry_clock) {
            (None, _) => 0,
            (Some(_), ExpiryClock::Date) => BY_DATE,
            (Some(_), ExpiryClock::Elapsed) => BY_ELAPSED,
        };
        let profile = match self.profile {
            Profile::Table => TABLE,
            Profile::Bucket => BUCKET,
            Profile::Stream => STREAM,
        };
        let commented = if self.comment.is_some() { COMMENTED } else { 0 };
        let bound = if self.is_bound() { BOUND } else { 0 };
        let changes = if self.changes.is_some() { CHANGES } else { 0 };
        out.u8(order | clock | profile | commented | bound | changes);
        // default: no field has number 0.
        out.u16(self.expiry.map_or(0, |field| field.0));
        self.comment.iter().for_each(|comment| out.text(comment));
        self.encode_changes(out);
    }

    pub(super) fn decode_profile(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let flags = input.u8()?;
        self.row_order = if flags & BY_KEY == 0 { RowOrder::Arrival } else { RowOrder::Key };
        self.expiry = Some(FieldId(input.u16()?)).filter(|field| field.0 != 0);
        let unknown = || Error::corrupt(format!("unknown profile of a table: {flags:#04x}"));
        if flags & COMMENTED != 0 {
            self.comment = Some(input.text()?.into());
        }
        if flags & CHANGES != 0 {
            self.decode_changes(input)?;
        }
        self.expiry_clock = match flags & CLOCK {
            // Before version 9 of the log nothing said so, and buckets were known by their shape.
            0 if flags & PROFILE == 0 && self.has_bucket_shape() => ExpiryClock::Elapsed,
            0 | BY_DATE => ExpiryClock::Date,
            BY_ELAPSED => ExpiryClock::Elapsed,
            _ => return Err(unknown()),
        };
        if self.expiry.is_none() {
            self.expiry_clock = ExpiryClock::Date;
        }
        self.profile = match flags & PROFILE {
            // Before version 10 of the log nothing said so: buckets were known by shape and clock.
            0 if self.is_bucket_by_shape() => Profile::Bucket,
            0 | TABLE => Profile::Table,
            BUCKET => Profile::Bucket,
            STREAM => Profile::Stream,
            _ => return Err(unknown()),
        };
        if flags & BOUND != 0 {
            self.decode_references(input)?;
        }
        match self.profile {
            Profile::Stream => self.decode_stream(input),
            Profile::Table | Profile::Bucket => Ok(()),
        }
    }

    fn is_bucket_by_shape(&self) -> bool {
        self.has_bucket_shape() && self.expiry_clock == ExpiryClock::Elapsed
    }

    pub(super) fn validate_profile(&self) -> Result<()> {
        if self.is_ordered_by_key() && self.primary_key == PrimaryKey::Generated {
            let message = "rows in the order of the key: expected a primary key of fields";
            return Err(Error::invalid(message));
        }
        if self.is_bucket() && !self.is_bucket_by_shape() {
            let message = "a bucket has other fields, another key or another expiry than buckets";
            return Err(Error::invalid(message));
        }
        comment::expect_short("a table", self.comment())?;
        let Some(expiry) = self.expiry else { return Ok(()) };
        let Some(field) = self.field_of(expiry) else {
            return Err(Error::invalid("the field by which rows expire is not there"));
        };
        if field.data_type != DataType::Timestamp {
            let (name, found) = (&field.name, field.type_text());
            let message = format!("rows expire by field {name:?}: expected a timestamp");
            return Err(Error::invalid(format!("{message}, found {found}")));
        }
        if self.key_fields().any(|key| key.id == expiry) {
            let name = &field.name;
            let message = format!("rows expire by field {name:?}, which is part of the key");
            return Err(Error::invalid(message));
        }
        Ok(())
    }
}
