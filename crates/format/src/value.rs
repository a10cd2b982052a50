//! Values, owned and borrowed, and the one order that storage, queries and protocols share.
//!
//! Order: numbers compare exactly across integers, decimals and floating-point types (never through
//! a rounded double); NaN equals itself and is greater than every number; `-0.0` equals `0.0`;
//! text, bytes, UUIDs and addresses compare by bytes, labels of enums in their declared order, JSON
//! as [`json`], intervals as [`Interval`] and lists of one type as [`list`] says. NULL sorts before
//! everything; that is the *sort* order, and predicates treat NULL by three-valued logic before
//! they get here. Values of kinds that do not compare (a text and a number) are ordered by kind, so
//! that sorting is total.

use std::cmp::Ordering;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::interval::{self, INTERVAL_BYTES, Interval};
use crate::list::List;
use crate::{DataType, Decimal, Error, Result, ShortText, calendar, decimal, json, labels, list};

/// An owned value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    Uint(u64),
    /// A 32-bit floating-point number.
    Float32(f32),
    /// A 64-bit floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// Microseconds since midnight.
    Time(i64),
    /// A UUID, most significant byte first.
    Uuid([u8; 16]),
    /// An IPv4 address, the first number in the highest byte.
    Ipv4(u32),
    /// An IPv6 address, most significant byte first.
    Ipv6([u8; 16]),
    /// A decimal number.
    Decimal(Decimal),
    /// A label of an enum field, in its stored form: see [`labels`].
    Enum(Vec<u8>),
    /// A JSON document, in its stored form: see [`json`].
    Json(Vec<u8>),
    /// A span of time.
    Interval(Interval),
    /// A list, in its stored form: see [`list`].
    List(Vec<u8>),
}

/// A borrowed value.
#[derive(Clone, Copy, Debug, Default)]
pub enum ValueRef<'a> {
    /// No value.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer of any width.
    Int(i64),
    /// An unsigned integer of any width.
    Uint(u64),
    /// A 32-bit floating-point number.
    Float32(f32),
    /// A 64-bit floating-point number.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// Microseconds since midnight.
    Time(i64),
    /// A UUID, most significant byte first.
    Uuid(&'a [u8; 16]),
    /// An IPv4 address, the first number in the highest byte.
    Ipv4(u32),
    /// An IPv6 address, most significant byte first.
    Ipv6(&'a [u8; 16]),
    /// A decimal number.
    Decimal(Decimal),
    /// A label of an enum field, in its stored form: see [`labels`].
    Enum(&'a [u8]),
    /// A JSON document, in its stored form: see [`json`].
    Json(&'a [u8]),
    /// A span of time, in its stored form: see [`Interval::of_bytes`].
    Interval(&'a [u8; INTERVAL_BYTES]),
    /// A list, in its stored form: see [`list`].
    List(&'a [u8]),
}

impl Value {
    /// Borrows the value.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(v) => ValueRef::Bool(*v),
            Self::Int(v) => ValueRef::Int(*v),
            Self::Uint(v) => ValueRef::Uint(*v),
            Self::Float32(v) => ValueRef::Float32(*v),
            Self::Float(v) => ValueRef::Float(*v),
            Self::Text(v) => ValueRef::Text(v),
            Self::Bytes(v) => ValueRef::Bytes(v),
            Self::Date(v) => ValueRef::Date(*v),
            Self::Timestamp(v) => ValueRef::Timestamp(*v),
            Self::Time(v) => ValueRef::Time(*v),
            Self::Uuid(v) => ValueRef::Uuid(v),
            Self::Ipv4(v) => ValueRef::Ipv4(*v),
            Self::Ipv6(v) => ValueRef::Ipv6(v),
            Self::Decimal(v) => ValueRef::Decimal(*v),
            Self::Enum(v) => ValueRef::Enum(v),
            Self::Json(v) => ValueRef::Json(v),
            Self::Interval(v) => ValueRef::Interval(v.stored()),
            Self::List(v) => ValueRef::List(v),
        }
    }

    /// A JSON text as a value.
    ///
    /// # Errors
    /// `InvalidInput` with the place of what is not JSON.
    pub fn json(text: &str) -> Result<Self> {
        json::parse(text).map(Self::Json)
    }

    /// True for NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl<'a> ValueRef<'a> {
    /// Copies the value.
    #[must_use]
    pub fn to_owned(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(v),
            Self::Int(v) => Value::Int(v),
            Self::Uint(v) => Value::Uint(v),
            Self::Float32(v) => Value::Float32(v),
            Self::Float(v) => Value::Float(v),
            Self::Text(v) => Value::Text(v.to_owned()),
            Self::Bytes(v) => Value::Bytes(v.to_vec()),
            Self::Date(v) => Value::Date(v),
            Self::Timestamp(v) => Value::Timestamp(v),
            Self::Time(v) => Value::Time(v),
            Self::Uuid(v) => Value::Uuid(*v),
            Self::Ipv4(v) => Value::Ipv4(v),
            Self::Ipv6(v) => Value::Ipv6(*v),
            Self::Decimal(v) => Value::Decimal(v),
            Self::Enum(v) => Value::Enum(v.to_vec()),
            Self::Json(v) => Value::Json(v.to_vec()),
            Self::Interval(v) => Value::Interval(Interval::of_bytes(v)),
            Self::List(v) => Value::List(v.to_vec()),
        }
    }

    /// True for NULL.
    #[must_use]
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    /// The bytes of a value that is stored as a byte string (see [`DataType::is_variable`]).
    #[must_use]
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Text(v) => Some(v.as_bytes()),
            Self::Bytes(v) | Self::Enum(v) | Self::Json(v) | Self::List(v) => Some(v),
            Self::Uuid(v) | Self::Ipv6(v) => Some(v),
            Self::Interval(v) => Some(v),
            _ => None,
        }
    }

    /// The beginning of a longer text or byte string, of at most `bytes_max` bytes and whole
    /// characters; any other value as it is.
    ///
    /// ```
    /// use esker_format::ValueRef;
    /// assert_eq!(ValueRef::Text("näh").shortened(2), ValueRef::Text("n"));
    /// assert_eq!(ValueRef::Int(1_000).shortened(2), ValueRef::Int(1_000));
    /// ```
    #[must_use]
    pub fn shortened(self, bytes_max: usize) -> Self {
        match self {
            Self::Text(text) => {
                let (start, _) = text.split_at(text.floor_char_boundary(bytes_max));
                Self::Text(start)
            }
            // default: a shorter one stays whole.
            Self::Bytes(bytes) => Self::Bytes(bytes.get(..bytes_max).unwrap_or(bytes)),
            other => other,
        }
    }

    /// The value that a column of type `data_type` stores as these bytes. Bytes that are no such
    /// value (which a checksum would have to miss first) read as an empty or zero one.
    #[must_use]
    #[inline]
    pub fn from_bytes(data_type: DataType, bytes: &'a [u8]) -> Self {
        const ZERO: &[u8; 16] = &[0; 16];
        const NO_TIME: &[u8; INTERVAL_BYTES] = &interval::NO_TIME;
        match data_type {
            // default: other bytes read so, as said above; the same below.
            DataType::Text => Self::Text(std::str::from_utf8(bytes).unwrap_or_default()),
            DataType::Uuid => Self::Uuid(bytes.as_array().unwrap_or(ZERO)), // default: see above.
            DataType::Ipv6 => Self::Ipv6(bytes.as_array().unwrap_or(ZERO)), // default: see above.
            DataType::Enum => Self::Enum(bytes),
            DataType::Json => Self::Json(bytes),
            DataType::List(_) => Self::List(bytes),
            // default: see above.
            DataType::Interval => Self::Interval(bytes.as_array().unwrap_or(NO_TIME)),
            _ => Self::Bytes(bytes),
        }
    }

    /// The number that a value is stored as, in 64 bits of two's complement; `None` for floats,
    /// byte strings and decimals that need more.
    #[must_use]
    #[inline]
    pub fn as_word(self) -> Option<i64> {
        Some(match self {
            Self::Int(v) | Self::Timestamp(v) | Self::Time(v) => v,
            Self::Uint(v) => v.cast_signed(),
            Self::Date(v) => v.into(),
            Self::Ipv4(v) => v.into(),
            Self::Bool(v) => v.into(),
            Self::Decimal(v) => return i64::try_from(v.mantissa()).ok(),
            _ => return None,
        })
    }

    /// The decimal that a column of type `data_type` stores as this mantissa. A mantissa that has
    /// too many digits (which a checksum would have to miss first) reads as zero.
    #[must_use]
    #[inline]
    pub fn from_mantissa(data_type: DataType, mantissa: i128) -> Self {
        let scale = match data_type {
            DataType::Decimal { scale, .. } => scale,
            _ => 0,
        };
        // default: a mantissa with too many digits reads so, as said above.
        Self::Decimal(Decimal::new(mantissa, scale).unwrap_or_default())
    }

    /// The mantissa of a decimal.
    #[must_use]
    #[inline]
    pub fn mantissa(self) -> Option<i128> {
        match self {
            Self::Decimal(v) => Some(v.mantissa()),
            _ => None,
        }
    }

    /// The value that a column of type `data_type` stores as this number: see
    /// [`ValueRef::as_word`].
    #[must_use]
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the number was stored by this type")]
    #[allow(clippy::cast_sign_loss, reason = "two's complement is meant")]
    pub fn from_word(data_type: DataType, word: i64) -> Self {
        match data_type {
            DataType::Bool => Self::Bool(word != 0),
            DataType::U8 | DataType::U16 | DataType::U32 | DataType::U64 => {
                Self::Uint(word.cast_unsigned())
            }
            DataType::Date => Self::Date(word as i32),
            DataType::Timestamp => Self::Timestamp(word),
            DataType::Time => Self::Time(word),
            DataType::Ipv4 => Self::Ipv4(word as u32),
            DataType::Decimal { .. } => Self::from_mantissa(data_type, word.into()),
            _ => Self::Int(word),
        }
    }

    /// What kind of value this is, for error messages.
    #[must_use]
    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "integer",
            Self::Uint(_) => "unsigned integer",
            Self::Float32(_) | Self::Float(_) => "floating-point number",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Date(_) => "date",
            Self::Timestamp(_) => "timestamp",
            Self::Time(_) => "time",
            Self::Uuid(_) => "uuid",
            Self::Ipv4(_) => "ipv4 address",
            Self::Ipv6(_) => "ipv6 address",
            Self::Decimal(_) => "decimal",
            Self::Enum(_) => "enum",
            Self::Json(_) => "json",
            Self::Interval(_) => "interval",
            Self::List(_) => "list",
        }
    }

    /// True when both are one type and are stored as the same bytes: numbers that are equal, like
    /// 1 and 1.0 or 1.5 and 1.50, need not be.
    #[must_use]
    pub fn is_identical(self, other: ValueRef<'_>) -> bool {
        match (self, other) {
            (Self::Null, ValueRef::Null) => true,
            (Self::Bool(a), ValueRef::Bool(b)) => a == b,
            (Self::Int(a), ValueRef::Int(b))
            | (Self::Timestamp(a), ValueRef::Timestamp(b))
            | (Self::Time(a), ValueRef::Time(b)) => a == b,
            (Self::Uint(a), ValueRef::Uint(b)) => a == b,
            (Self::Float32(a), ValueRef::Float32(b)) => a.to_bits() == b.to_bits(),
            (Self::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), ValueRef::Text(b)) => same_bytes(a.as_bytes(), b.as_bytes()),
            (Self::Bytes(a), ValueRef::Bytes(b))
            | (Self::Enum(a), ValueRef::Enum(b))
            | (Self::Json(a), ValueRef::Json(b))
            | (Self::List(a), ValueRef::List(b)) => same_bytes(a, b),
            (Self::Interval(a), ValueRef::Interval(b)) => a == b,
            (Self::Date(a), ValueRef::Date(b)) => a == b,
            (Self::Ipv4(a), ValueRef::Ipv4(b)) => a == b,
            (Self::Uuid(a), ValueRef::Uuid(b)) | (Self::Ipv6(a), ValueRef::Ipv6(b)) => a == b,
            (Self::Decimal(a), ValueRef::Decimal(b)) => {
                (a.mantissa(), a.scale()) == (b.mantissa(), b.scale())
            }
            _ => false,
        }
    }

    /// The value as a field of type `data_type` stores it. Integers and decimals change width and
    /// scale, and become each other, only when nothing is lost; so do integers that become floats.
    /// A decimal becomes the nearest float, and a float never a decimal; an f64 is rounded to the
    /// nearest f32, and refused when it is too large for one.
    ///
    /// # Errors
    /// `InvalidInput` when the value does not fit; the message has the value and the type.
    pub fn coerce(self, data_type: DataType) -> Result<Self> {
        if self.is_null() {
            return Ok(self);
        }
        let coerced = match data_type {
            DataType::Bool => matches!(self, Self::Bool(_)).then_some(self),
            DataType::I8 => self.as_int_in(i8::MIN.into(), i8::MAX.into()),
            DataType::I16 => self.as_int_in(i16::MIN.into(), i16::MAX.into()),
            DataType::I32 => self.as_int_in(i32::MIN.into(), i32::MAX.into()),
            DataType::I64 => self.as_int_in(i64::MIN, i64::MAX),
            DataType::U8 => self.as_uint_up_to(u8::MAX.into()),
            DataType::U16 => self.as_uint_up_to(u16::MAX.into()),
            DataType::U32 => self.as_uint_up_to(u32::MAX.into()),
            DataType::U64 => self.as_uint_up_to(u64::MAX),
            DataType::F32 => self.as_float32(),
            DataType::F64 => self.as_float(),
            DataType::Text => matches!(self, Self::Text(_)).then_some(self),
            DataType::Bytes => matches!(self, Self::Bytes(_)).then_some(self),
            DataType::Date => matches!(self, Self::Date(_)).then_some(self),
            DataType::Timestamp => matches!(self, Self::Timestamp(_)).then_some(self),
            DataType::Time => {
                matches!(self, Self::Time(v) if (0..calendar::DAY_US).contains(&v)).then_some(self)
            }
            DataType::Uuid => matches!(self, Self::Uuid(_)).then_some(self),
            DataType::Ipv4 => matches!(self, Self::Ipv4(_)).then_some(self),
            DataType::Ipv6 => matches!(self, Self::Ipv6(_)).then_some(self),
            DataType::Decimal { precision, scale } => self.as_decimal(precision, scale),
            DataType::Enum => matches!(self, Self::Enum(_)).then_some(self),
            DataType::Json => {
                matches!(self, Self::Json(v) if json::check(v).is_ok()).then_some(self)
            }
            DataType::Interval => matches!(self, Self::Interval(_)).then_some(self),
            DataType::List(element) => {
                matches!(self, Self::List(v) if List::check(v, element).is_ok()).then_some(self)
            }
        };
        coerced.ok_or_else(|| {
            let kind = self.kind_name();
            Error::invalid(format!("expected {data_type}, found {kind} {self}"))
        })
    }

    fn as_int_in(self, least: i64, most: i64) -> Option<Self> {
        let v = match self {
            Self::Int(v) => v,
            Self::Uint(v) => i64::try_from(v).ok()?,
            Self::Decimal(v) => i64::try_from(v.rescale(0)?.mantissa()).ok()?,
            _ => return None,
        };
        (least..=most).contains(&v).then_some(Self::Int(v))
    }

    fn as_uint_up_to(self, most: u64) -> Option<Self> {
        let v = match self {
            Self::Int(v) => u64::try_from(v).ok()?,
            Self::Uint(v) => v,
            Self::Decimal(v) => u64::try_from(v.rescale(0)?.mantissa()).ok()?,
            _ => return None,
        };
        (v <= most).then_some(Self::Uint(v))
    }

    fn as_decimal(self, precision: u8, scale: u8) -> Option<Self> {
        let v = match self {
            Self::Decimal(v) => v,
            other => Decimal::whole(integer(other)?)?,
        };
        let v = v.rescale(scale)?;
        let fits = v.mantissa().unsigned_abs() < decimal::limit(precision).unsigned_abs();
        fits.then_some(Self::Decimal(v))
    }

    #[allow(clippy::cast_possible_truncation, reason = "the round trip is checked")]
    #[allow(clippy::float_cmp, reason = "exactness is the question")]
    fn as_float32(self) -> Option<Self> {
        match self {
            Self::Float32(v) => Some(Self::Float32(v)),
            Self::Float(v) if v.is_nan() => Some(Self::Float32(f32::NAN)),
            Self::Float(v) => {
                let narrow = v as f32;
                (narrow.is_finite() || v.is_infinite()).then_some(Self::Float32(narrow))
            }
            Self::Int(v) => (v as f32 as i128 == i128::from(v)).then_some(Self::Float32(v as f32)),
            Self::Uint(v) => (v as f32 as i128 == i128::from(v)).then_some(Self::Float32(v as f32)),
            Self::Decimal(v) => Self::Float(v.to_f64()).as_float32(),
            _ => None,
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the round trip is checked")]
    fn as_float(self) -> Option<Self> {
        match self {
            Self::Float(v) => Some(Self::Float(v)),
            Self::Float32(v) => Some(Self::Float(v.into())),
            Self::Int(v) => (v as f64 as i128 == i128::from(v)).then_some(Self::Float(v as f64)),
            Self::Uint(v) => (v as f64 as i128 == i128::from(v)).then_some(Self::Float(v as f64)),
            Self::Decimal(v) => Some(Self::Float(v.to_f64())),
            _ => None,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) | Self::Uint(_) | Self::Float32(_) | Self::Float(_) | Self::Decimal(_) => {
                2
            }
            Self::Date(_) => 3,
            Self::Timestamp(_) => 4,
            Self::Time(_) => 5,
            Self::Text(_) => 6,
            Self::Bytes(_) => 7,
            Self::Uuid(_) => 8,
            Self::Ipv4(_) => 9,
            Self::Ipv6(_) => 10,
            Self::Enum(_) => 11,
            Self::Json(_) => 12,
            Self::Interval(_) => 13,
            Self::List(_) => 14,
        }
    }

    /// The sort order described at the top of this module.
    #[must_use]
    pub fn compare(self, other: ValueRef<'_>) -> Ordering {
        match (self, other) {
            (Self::Bool(a), ValueRef::Bool(b)) => a.cmp(&b),
            (Self::Text(a), ValueRef::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bytes(a), ValueRef::Bytes(b))
            | (Self::Enum(a), ValueRef::Enum(b))
            | (Self::Json(a), ValueRef::Json(b))
            | (Self::List(a), ValueRef::List(b)) => a.cmp(b),
            (Self::Interval(a), ValueRef::Interval(b)) => a.cmp(b),
            (Self::Date(a), ValueRef::Date(b)) => a.cmp(&b),
            (Self::Timestamp(a), ValueRef::Timestamp(b)) => a.cmp(&b),
            (Self::Time(a), ValueRef::Time(b)) => a.cmp(&b),
            (Self::Ipv4(a), ValueRef::Ipv4(b)) => a.cmp(&b),
            (Self::Uuid(a), ValueRef::Uuid(b)) | (Self::Ipv6(a), ValueRef::Ipv6(b)) => a.cmp(b),
            (a, b) if a.rank() == 2 && b.rank() == 2 => compare_numbers(a, b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

/// Compares two numbers exactly.
fn compare_numbers(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (a, b) {
        (ValueRef::Decimal(a), ValueRef::Decimal(b)) => return a.compare(b),
        (ValueRef::Decimal(a), b) => return compare_decimal(a, b),
        (a, ValueRef::Decimal(b)) => return compare_decimal(b, a).reverse(),
        _ => {}
    }
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_integer_float(a, float(b)),
        (None, Some(b)) => compare_integer_float(b, float(a)).reverse(),
        (None, None) => compare_floats(float(a), float(b)),
    }
}

fn compare_decimal(a: Decimal, b: ValueRef<'_>) -> Ordering {
    match integer(b).and_then(Decimal::whole) {
        Some(b) => a.compare(b),
        None => a.compare_float(float(b)),
    }
}

fn integer(v: ValueRef<'_>) -> Option<i128> {
    match v {
        ValueRef::Int(v) => Some(v.into()),
        ValueRef::Uint(v) => Some(v.into()),
        _ => None,
    }
}

fn float(v: ValueRef<'_>) -> f64 {
    match v {
        ValueRef::Float32(v) => v.into(),
        ValueRef::Float(v) => v,
        _ => f64::NAN,
    }
}

/// The total order of floats: `-0.0` equals `0.0`, NaN equals NaN and is the greatest.
#[must_use]
pub fn compare_floats(a: f64, b: f64) -> Ordering {
    // default: NaN alone has no order of its own.
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

#[allow(clippy::cast_possible_truncation, reason = "the range is checked first")]
fn compare_integer_float(a: i128, b: f64) -> Ordering {
    if b.is_nan() || b >= 2f64.powi(100) {
        return Ordering::Less;
    }
    if b <= -(2f64.powi(100)) {
        return Ordering::Greater;
    }
    // Here b fits an i128, and its whole part is exact.
    let whole = b.trunc();
    a.cmp(&(whole as i128)).then_with(|| compare_floats(0.0, b - whole))
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Ordering::Equal
    }
}

impl Eq for ValueRef<'_> {}

impl PartialOrd for ValueRef<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ValueRef<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(*other)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_ref().compare(other.as_ref())
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        value.as_ref()
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(v: $from) -> Self {
                Self::$variant(v.into())
            }
        })*
    };
}

from! {
    bool => Bool, i8 => Int, i16 => Int, i32 => Int, i64 => Int,
    u8 => Uint, u16 => Uint, u32 => Uint, u64 => Uint,
    f32 => Float32, f64 => Float, Decimal => Decimal, Interval => Interval,
    &str => Text, String => Text, Vec<u8> => Bytes, &[u8] => Bytes,
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Self::Null, Into::into) // default: what is none is NULL.
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl fmt::Display for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(v) => v.fmt(f),
            Self::Int(v) => v.fmt(f),
            Self::Uint(v) => v.fmt(f),
            Self::Float32(v) => write!(f, "{v:?}"),
            Self::Float(v) => write!(f, "{v:?}"),
            Self::Text(v) => f.write_str(v),
            Self::Bytes(v) => v.iter().try_for_each(|b| write!(f, "{b:02x}")),
            Self::Date(_) | Self::Timestamp(_) | Self::Time(_) => {
                f.write_str(ShortText::of(*self).ok_or(fmt::Error)?.as_str())
            }
            Self::Uuid(v) => write_uuid(f, v),
            Self::Ipv4(v) => Ipv4Addr::from_bits(*v).fmt(f),
            Self::Ipv6(v) => Ipv6Addr::from(**v).fmt(f),
            Self::Decimal(v) => v.fmt(f),
            Self::Enum(v) => f.write_str(labels::label(v)),
            Self::Json(v) => json::Json::document(v).fmt(f),
            Self::Interval(v) => Interval::of_bytes(*v).fmt(f),
            Self::List(v) => list::write(f, v),
        }
    }
}

/// True of equal bytes, which need not be compared when they lie in one place.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    (a.as_ptr() == b.as_ptr() && a.len() == b.len()) || a == b
}

/// Groups of 8, 4, 4, 4 and 12 digits.
fn write_uuid(f: &mut fmt::Formatter<'_>, bytes: &[u8; 16]) -> fmt::Result {
    for (i, byte) in bytes.iter().enumerate() {
        f.write_str(if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" })?;
        write!(f, "{byte:02x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
