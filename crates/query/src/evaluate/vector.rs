//! Values of an expression for the selected rows of a batch.

use std::borrow::Cow;

use esker_format::{DataType, Value, ValueRef};

use crate::evaluate::Mask;
use crate::meter::{Meter, Reservation};

/// Which rows of a batch an expression is computed for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection<'s> {
    /// The first so many.
    All(usize),
    /// These, ascending.
    Rows(&'s [u32]),
}

impl Selection<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::All(len) => *len,
            Self::Rows(rows) => rows.len(),
        }
    }

    /// The row of the batch that lies at `i` in the selection.
    pub(crate) fn row(&self, i: usize) -> u32 {
        match self {
            Self::All(_) => u32::try_from(i).unwrap_or(u32::MAX),
            Self::Rows(rows) => rows.get(i).copied().unwrap_or_default(),
        }
    }
}

/// The rows of a mask, listed unless they are all rows.
pub(crate) enum Picked {
    All(usize),
    Rows(Vec<u32>),
}

impl Picked {
    pub(crate) fn of(mask: &Mask) -> Self {
        if mask.is_all() { Self::All(mask.len()) } else { Self::Rows(mask.rows()) }
    }

    pub(crate) fn selection(&self) -> Selection<'_> {
        match self {
            Self::All(len) => Selection::All(*len),
            Self::Rows(rows) => Selection::Rows(rows),
        }
    }
}

/// One value per selected row. Rows that are NULL hold zero or nothing when they were read, and
/// anything when they were computed.
#[derive(Debug)]
pub(crate) struct Vector<'a> {
    pub(crate) data_type: DataType,
    pub(crate) lanes: Lanes<'a>,
    /// True where NULL; `None` when no row is.
    pub(crate) nulls: Option<Vec<bool>>,
    /// The memory that the values take, where they were computed.
    room: Option<Reservation<'a>>,
}

/// The values, by how they are computed with.
#[derive(Clone, Debug)]
pub(crate) enum Lanes<'a> {
    /// What is stored as a number (see [`ValueRef::as_word`]) but `u64` and bools.
    Ints(Cow<'a, [i64]>),
    /// Decimals of more than 18 digits: their mantissas.
    Wides(Cow<'a, [i128]>),
    /// `u64`.
    Uints(Cow<'a, [u64]>),
    /// Both types of floats.
    Floats(Cow<'a, [f64]>),
    Bools(Vec<bool>),
    /// What is stored as byte strings.
    Bytes(Vec<Cow<'a, [u8]>>),
}

impl<'a> Lanes<'a> {
    /// A value that is not NULL, `len` times.
    pub(crate) fn repeat(value: ValueRef<'a>, data_type: DataType, len: usize) -> Self {
        match value {
            ValueRef::Bool(v) => Self::Bools(vec![v; len]),
            ValueRef::Decimal(v) if data_type.is_wide() => {
                Self::Wides(vec![v.mantissa(); len].into())
            }
            ValueRef::Uint(v) if data_type == DataType::U64 => Self::Uints(vec![v; len].into()),
            ValueRef::Float(v) => Self::Floats(vec![v; len].into()),
            ValueRef::Float32(v) => Self::Floats(vec![f64::from(v); len].into()),
            other => match other.as_word() {
                Some(word) => Self::Ints(vec![word; len].into()),
                None => {
                    let bytes = other.as_bytes().unwrap_or_default();
                    Self::Bytes(vec![Cow::Borrowed(bytes); len])
                }
            },
        }
    }

    /// The bytes of what is stored as a byte string, in a row; none past the end.
    pub(crate) fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Self::Bytes(values) => values.get(row).map(AsRef::as_ref).unwrap_or_default(),
            _ => &[],
        }
    }

    /// About how many bytes the lanes of so many rows take, without what byte strings point to.
    pub(crate) fn size(data_type: DataType, len: usize) -> usize {
        let each = match data_type {
            DataType::Bool => size_of::<bool>(),
            other if other.is_wide() => size_of::<i128>(),
            other if other.is_variable() => size_of::<Cow<'_, [u8]>>(),
            _ => size_of::<u64>(),
        };
        len.saturating_mul(each)
    }

    fn len(&self) -> usize {
        match self {
            Self::Ints(v) => v.len(),
            Self::Wides(v) => v.len(),
            Self::Uints(v) => v.len(),
            Self::Floats(v) => v.len(),
            Self::Bools(v) => v.len(),
            Self::Bytes(v) => v.len(),
        }
    }
}

impl<'a> Vector<'a> {
    pub(crate) fn new(data_type: DataType, lanes: Lanes<'a>, nulls: Option<Vec<bool>>) -> Self {
        Self { data_type, lanes, nulls, room: None }
    }

    pub(crate) fn bools(values: Vec<bool>, nulls: Option<Vec<bool>>) -> Self {
        Self::new(DataType::Bool, Lanes::Bools(values), nulls)
    }

    /// The same value `len` times.
    pub(crate) fn repeat(value: &'a Value, data_type: DataType, len: usize) -> Self {
        let lanes = match value {
            Value::Null => return Self::nulls(data_type, len),
            other => Lanes::repeat(other.as_ref(), data_type, len),
        };
        Self::new(data_type, lanes, None)
    }

    /// NULL `len` times.
    pub(crate) fn nulls(data_type: DataType, len: usize) -> Self {
        let lanes = match data_type {
            DataType::Bool => Lanes::Bools(vec![false; len]),
            DataType::U64 => Lanes::Uints(vec![0; len].into()),
            DataType::F32 | DataType::F64 => Lanes::Floats(vec![0.0; len].into()),
            other if other.is_wide() => Lanes::Wides(vec![0; len].into()),
            other if other.is_variable() => Lanes::Bytes(vec![Cow::Borrowed(&[]); len]),
            _ => Lanes::Ints(vec![0; len].into()),
        };
        Self::new(data_type, lanes, Some(vec![true; len]))
    }

    /// The same, with the room that was requested before it was made.
    pub(crate) fn within(mut self, room: Reservation<'a>) -> Self {
        match &mut self.room {
            Some(own) => own.merge(room),
            None => self.room = Some(room),
        }
        self
    }

    /// The room that the values take, to be held by what they become.
    pub(crate) fn take_room(&mut self) -> Option<Reservation<'a>> {
        self.room.take()
    }

    /// The bytes of the byte strings that were made, not borrowed.
    pub(crate) fn made_bytes(&self) -> usize {
        let Lanes::Bytes(values) = &self.lanes else { return 0 };
        let made = values.iter().filter(|value| matches!(value, Cow::Owned(_)));
        made.map(|value| value.len()).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.get(i).copied().unwrap_or(true))
    }

    /// Some of the rows, which there are.
    pub(crate) fn part(&self, rows: std::ops::Range<usize>) -> Vector<'_> {
        fn of<T>(values: &[T], rows: std::ops::Range<usize>) -> &[T] {
            values.get(rows).unwrap_or_default()
        }
        let nulls = self.nulls.as_ref().map(|nulls| of(nulls, rows.clone()).to_vec());
        let lanes = match &self.lanes {
            Lanes::Ints(v) => Lanes::Ints(of(v, rows).into()),
            Lanes::Wides(v) => Lanes::Wides(of(v, rows).into()),
            Lanes::Uints(v) => Lanes::Uints(of(v, rows).into()),
            Lanes::Floats(v) => Lanes::Floats(of(v, rows).into()),
            Lanes::Bools(v) => Lanes::Bools(of(v, rows).to_vec()),
            Lanes::Bytes(v) => {
                Lanes::Bytes(of(v, rows).iter().map(|v| Cow::Borrowed(v.as_ref())).collect())
            }
        };
        Vector::new(self.data_type, lanes, nulls)
    }

    /// The value of row `i`; NULL past the end.
    #[allow(clippy::cast_possible_truncation, reason = "lanes hold what the type can")]
    pub(crate) fn value(&self, i: usize) -> ValueRef<'_> {
        if self.is_null(i) {
            return ValueRef::Null;
        }
        let found = match &self.lanes {
            Lanes::Ints(v) => v.get(i).map(|v| ValueRef::from_word(self.data_type, *v)),
            Lanes::Wides(v) => v.get(i).map(|v| ValueRef::from_mantissa(self.data_type, *v)),
            Lanes::Uints(v) => v.get(i).map(|v| ValueRef::Uint(*v)),
            Lanes::Floats(v) => v.get(i).map(|v| match self.data_type {
                DataType::F32 => ValueRef::Float32(*v as f32),
                _ => ValueRef::Float(*v),
            }),
            Lanes::Bools(v) => v.get(i).map(|v| ValueRef::Bool(*v)),
            Lanes::Bytes(v) => v.get(i).map(|v| ValueRef::from_bytes(self.data_type, v)),
        };
        found.unwrap_or_default()
    }
}

/// NULL where either is.
pub(crate) fn either_null(a: Option<&Vec<bool>>, b: Option<&Vec<bool>>) -> Option<Vec<bool>> {
    match (a, b) {
        (None, None) => None,
        (Some(nulls), None) | (None, Some(nulls)) => Some(nulls.clone()),
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| *a || *b).collect()),
    }
}

impl<'a> Meter<'a> {
    /// Room for a copy of what was made of each of some vectors.
    ///
    /// # Errors
    /// As [`Reservation::take`].
    pub(crate) fn room_for_copies(&self, vectors: &[Vector<'_>]) -> crate::Result<Reservation<'a>> {
        let mut room = self.room("an expression");
        room.take(vectors.iter().map(Vector::made_bytes).sum())?;
        Ok(room)
    }
}
