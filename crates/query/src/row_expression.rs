//! Expressions that are stored with a table and computed for its rows before these are stored: what
//! they may be, and their stored form.

use std::ops::Range;

use esker_format::schema::EVENT_ID_NAME;
use esker_format::{Column, ColumnSlice, Room};

use crate::exec::output::materialised::slice;
use crate::model::Expr;
use crate::{Error, Fragment, Result, ZONE_ROWS, Zone};

/// The most levels of an expression: its stored form nests three times as deep.
pub(crate) const DEPTH_MAX: usize = 40;

/// The stored form of an expression; errors begin with what it is.
pub(crate) fn encode(what: &str, expr: &Expr) -> Result<String> {
    let (depth, most) = (expr.depth(), DEPTH_MAX);
    if depth > most {
        return Err(Error::invalid(format!(
            "{what} nests too deep: {depth} levels, at most {most}"
        )));
    }
    let text = serde_json::to_string(expr).map_err(|e| Error::invalid(e.to_string()))?;
    match decode(&text) {
        Ok(decoded) if decoded == *expr => Ok(text),
        _ => Err(Error::invalid(format!("{what}: {expr}: expected finite numbers"))),
    }
}

/// Reads the stored form of an expression.
pub(crate) fn decode(text: &str) -> Result<Expr> {
    let corrupt = |e: serde_json::Error| {
        Error::new(crate::ErrorKind::Corrupt, format!("a stored expression: {e}"))
    };
    serde_json::from_str(text).map_err(corrupt)
}

/// The part of an expression that is not the same for the same row at any time.
pub(crate) fn changing(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Parameter(_) => Some(expr),
        // A row has its id once it is stored.
        Expr::Field(name) if name.ends_with(EVENT_ID_NAME) => Some(expr),
        expr if expr.varies() => Some(expr),
        _ => expr.operands().into_iter().find_map(changing),
    }
}

/// A row of which a value cannot be computed.
#[derive(Debug)]
pub struct FailedRow {
    /// The row.
    pub row: usize,
    /// Why not.
    pub error: Error,
}

/// Appends values of rows to a column, some at a time, and tells which row has none.
pub(crate) fn for_each_part(
    rows: usize,
    made: &mut Column,
    append: impl Fn(Range<usize>, &mut Column) -> Result<()>,
) -> std::result::Result<(), FailedRow> {
    let mut start = 0;
    while start < rows {
        let end = rows.min(start + ZONE_ROWS);
        let before = made.len();
        if append(start..end, made).is_err() {
            // Which one it is.
            made.truncate(before);
            for row in start..end {
                append(row..row + 1, made).map_err(|error| FailedRow { row, error })?;
            }
        }
        start = end;
    }
    Ok(())
}

/// Rows at hand, by the columns of a schema. Those that nobody reads may be empty.
pub(crate) struct RowsAtHand<'a> {
    pub columns: &'a [Column],
    pub rows: usize,
    /// Columns behind the fields, and the position of the first.
    pub behind: (usize, &'a [Column]),
}

impl Fragment for RowsAtHand<'_> {
    fn row_count(&self) -> usize {
        self.rows
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.rows)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        self.rows.min(start.saturating_add(rows_max))
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let (first, behind) = self.behind;
        let column = match position.checked_sub(first) {
            Some(at) => behind.get(at),
            None => self.columns.get(position),
        };
        let column = column.ok_or_else(|| Error::invalid(format!("no column {position}")))?;
        slice(column, rows).ok_or_else(|| Error::invalid("rows past the end"))
    }

    fn visible(&self, _rows: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _position: usize, _zone: usize) -> Option<Zone<'_>> {
        None
    }
}
