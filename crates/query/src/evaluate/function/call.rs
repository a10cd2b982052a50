//! A call of a function: its operands, and the vector that it makes.

use std::borrow::Cow;

use esker_format::DataType;

use super::{letters, list, text};
use crate::evaluate::{Lanes, Vector};
use crate::meter::{Meter, Reservation};
use crate::model::{Family, Function, FunctionEntry, Makes};
use crate::{Error, Result};

/// A function and the values of its operands.
pub(super) struct Call<'c, 'a> {
    pub function: Function,
    pub entry: &'static FunctionEntry,
    pub vectors: Vec<Vector<'a>>,
    pub data_type: DataType,
    pub meter: &'c Meter<'a>,
}

impl<'a> Call<'_, 'a> {
    pub fn undefined(&self) -> Error {
        let name = self.entry.name;
        let types: Vec<_> = self.vectors.iter().map(|v| v.data_type.to_string()).collect();
        Error::invalid(format!("{name} is not defined for {}", types.join(", ")))
    }

    pub fn operand(&self, i: usize) -> Result<&Vector<'a>> {
        self.vectors.get(i).ok_or_else(|| self.undefined())
    }

    pub fn has(&self, i: usize) -> bool {
        i < self.vectors.len()
    }

    pub fn ints(&self, i: usize) -> Result<&[i64]> {
        match &self.operand(i)?.lanes {
            Lanes::Ints(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    pub fn floats(&self, i: usize) -> Result<&[f64]> {
        match &self.operand(i)?.lanes {
            Lanes::Floats(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    pub fn texts(&self, i: usize) -> Result<&[Cow<'a, [u8]>]> {
        match &self.operand(i)?.lanes {
            Lanes::Bytes(values) => Ok(values),
            _ => Err(self.undefined()),
        }
    }

    /// The operand's value of a row, or what it is without one.
    pub fn int(&self, i: usize, row: usize, otherwise: i64) -> Result<i64> {
        if !self.has(i) {
            return Ok(otherwise);
        }
        Ok(self.ints(i)?.get(row).copied().unwrap_or(otherwise))
    }

    pub fn error(&self, message: impl std::fmt::Display) -> Error {
        Error::out_of_range(format!("{}: {message}", self.entry.name))
    }

    /// How many bytes the operands of a row have.
    pub fn operand_bytes(&self, row: usize) -> usize {
        self.vectors.iter().map(|v| v.lanes.bytes(row).len()).fold(0, usize::saturating_add)
    }

    /// True when a row has all operands that the function needs.
    pub fn is_known(&self, row: usize) -> bool {
        !self.entry.is_strict || !self.vectors.iter().any(|v| v.is_null(row))
    }

    /// The most bytes that the function makes of the operands of a row, as its table has it.
    pub fn made_max(&self, row: usize) -> Result<usize> {
        Ok(match self.entry.makes {
            Makes::Fixed => 0,
            Makes::Operands { times, more } => {
                let more = more.saturating_mul(self.vectors.len());
                self.operand_bytes(row).saturating_mul(times).saturating_add(more)
            }
            Makes::Repeated => text::repeated_len(self, row)?,
            Makes::Replaced => text::replaced_len(self, row)?,
            Makes::Counted if self.entry.family == Family::List => list::made_len(self, row)?,
            Makes::Counted => letters::made_len(self, row)?,
            // A letter is `September` in three bytes of each, or a full date.
            Makes::Templated => self.operand_bytes(row).saturating_mul(16),
        })
    }

    /// One value of a fixed size for each row that has the operands it needs; the others, and those
    /// that `one` gives none, are NULL.
    pub fn map<T: Copy + Default>(
        &self,
        len: usize,
        lanes: impl FnOnce(Vec<T>) -> Lanes<'a>,
        mut one: impl FnMut(usize) -> Result<Option<T>>,
    ) -> Result<Vector<'a>> {
        let mut nulls = vec![false; len];
        let mut values = Vec::with_capacity(len);
        for (row, null) in nulls.iter_mut().enumerate() {
            let value = match self.is_known(row) {
                true => {
                    self.meter.work(self.operand_bytes(row))?;
                    one(row)?
                }
                false => None,
            };
            *null = value.is_none();
            values.push(value.unwrap_or_default());
        }
        let nulls = nulls.contains(&true).then_some(nulls);
        Ok(Vector::new(self.data_type, lanes(values), nulls))
    }

    /// As [`Call::map`] for bytes, of which there may be any number: `one` is called when there is
    /// room for the most that the table says the function makes of the row.
    pub fn map_bytes(
        &self,
        len: usize,
        mut one: impl FnMut(usize, &mut Reservation<'a>) -> Result<Option<Cow<'a, [u8]>>>,
    ) -> Result<Vector<'a>> {
        let mut nulls = vec![false; len];
        let (mut values, mut room) = (Vec::with_capacity(len), self.meter.room(self.entry.name));
        for (row, null) in nulls.iter_mut().enumerate() {
            let mut value = None;
            if self.is_known(row) {
                let most = self.made_max(row)?;
                self.meter.work(self.operand_bytes(row))?;
                room.take(most)?;
                value = one(row, &mut room)?;
                let made = match &value {
                    Some(Cow::Owned(bytes)) => bytes.capacity(),
                    _ => 0,
                };
                room.give_back(most.saturating_sub(made));
            }
            *null = value.is_none();
            values.push(value.unwrap_or(Cow::Borrowed(&[])));
        }
        let nulls = nulls.contains(&true).then_some(nulls);
        Ok(Vector::new(self.data_type, Lanes::Bytes(values), nulls).within(room))
    }
}
