//! Whole numbers that a window function takes of each row.

use esker_format::Values;

use super::arrangement::Chunk;
use crate::bind::window::Argument;
use crate::{Error, Result};

/// The numbers of the rows of a chunk.
pub(super) enum Arguments {
    Constant(Option<i64>),
    Rows(Vec<Option<i64>>),
}

impl Arguments {
    /// # Errors
    /// `InvalidQuery` for a column of another type.
    pub(super) fn of(chunk: &Chunk<'_>, argument: &Argument<usize>) -> Result<Self> {
        let column = match argument {
            Argument::Constant(number) => return Ok(Self::Constant(*number)),
            Argument::Column(column) => chunk.column(*column)?,
        };
        let Values::I64(values) = &column.values else {
            let found = column.data_type;
            return Err(Error::invalid(format!("expected whole numbers, found {found}")));
        };
        let number = |(i, value): (usize, &i64)| (!column.is_null(i)).then_some(*value);
        Ok(Self::Rows(values.iter().enumerate().map(number).collect()))
    }

    /// That of a row; `None` for NULL.
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Constant(number) => *number,
            Self::Rows(numbers) => numbers.get(row).copied().flatten(),
        }
    }
}
