//! Rows of other tables that the rows of a load name: looked for as segments are handed out, so
//! that an error tells the row, and once more at the commit, since they may go meanwhile.

use esker_arena::{Category, Reservation};
use esker_format::schema::Reference;
use esker_format::{Batch, ValueRef};

use crate::bulk_load::seen_numbers::SeenNumbers;
use crate::catalog::reference_target::ReferenceTarget;
use crate::catalogue::Catalogue;
use crate::commit::named_rows::{NamedRowsOf, named_by};
use crate::commit::reference_check::note;
use crate::engine::Engine;
use crate::table_version::TableVersion;
use crate::{ErrorKind, Result};

/// New values that are looked for under one hold of the commit lock.
const LOOKED_FOR_AT_ONCE: usize = 1_024;

/// The references of the table of a load.
pub(super) struct LoadReferences {
    all: Vec<LoadReference>,
    held: Reservation,
}

struct LoadReference {
    /// The positions of its fields.
    positions: Vec<usize>,
    /// Rows of the load may be named by others of it.
    is_own: bool,
    rows: NamedRowsOf,
    /// Numbers that were noted, where the reference has one field. Most rows name what another one
    /// has named, and are done by one look here.
    numbers: SeenNumbers,
}

impl LoadReferences {
    /// Of a table that a load begins for.
    pub fn new(engine: &Engine, current: &TableVersion) -> Result<Self> {
        let of = |reference: &Reference| {
            let table = &reference.table;
            let target = engine.target_of(current, table, &reference.columns)?;
            Ok(LoadReference {
                positions: current.schema.positions_of(&reference.fields)?,
                is_own: target.core.id() == current.core.id(),
                rows: NamedRowsOf::new(&current.core.name(), reference, &target),
                numbers: SeenNumbers::default(),
            })
        };
        let all = current.schema.references().iter().map(of).collect::<Result<_>>()?;
        Ok(Self { all, held: Reservation::new(&engine.arena, Category::Load) })
    }

    /// Refuses rows that name rows that are not there; the first has a number. What may come with
    /// the load itself is looked for at its end.
    ///
    /// # Errors
    /// `ConstraintViolated` naming the row; `OverBudget` without memory for what they refer to.
    pub fn test(&mut self, engine: &Engine, batch: &Batch, first_row: u64) -> Result<()> {
        self.all.iter_mut().try_for_each(|of| of.test(engine, batch, first_row))?;
        let bytes: usize = self.all.iter().map(LoadReference::byte_count).sum();
        let bytes = bytes as u64;
        if bytes <= self.held.bytes() || engine.seal_for_load(&mut self.held, bytes + bytes / 4)? {
            return Ok(());
        }
        Err(engine.refuse_load(&self.held, bytes))
    }

    /// Refuses a row that is not there any more. Under the commit lock.
    pub fn expect_there(&self, catalogue: &mut Catalogue) -> Result<()> {
        let kind = ErrorKind::ConstraintViolated;
        self.all.iter().try_for_each(|of| of.rows.expect_there(catalogue, kind))
    }
}

impl LoadReference {
    fn test(&mut self, engine: &Engine, batch: &Batch, first_row: u64) -> Result<()> {
        let mut looked_for = self.rows.values.len();
        // The row that was the first to name each value that is new.
        let mut first_named = Vec::new();
        for row in 0..batch.len() {
            let value = |at: usize| batch.columns.get(at).map(|column| column.value(row));
            let in_row = |e: crate::Error| e.in_row(first_row + row as u64);
            let number = self.number(value);
            if !number.is_some_and(|number| self.numbers.contains(number)) {
                if note(&mut self.rows, named_by(&self.positions, value)).map_err(in_row)? {
                    first_named.push(row);
                }
                number.into_iter().for_each(|number| self.numbers.insert(number));
            }
            if self.is_own {
                note_coming(&mut self.rows, batch, row);
            } else if first_named.len() >= LOOKED_FOR_AT_ONCE || row + 1 == batch.len() {
                self.look_for(engine, looked_for, (&first_named, first_row))?;
                looked_for = self.rows.values.len();
                first_named.clear();
            }
        }
        Ok(())
    }

    /// The number that a row has in the one field.
    fn number<'r>(&self, value: impl Fn(usize) -> Option<ValueRef<'r>>) -> Option<u64> {
        let [at] = self.positions.as_slice() else { return None };
        number(value(*at)?)
    }

    fn byte_count(&self) -> usize {
        self.rows.byte_count() + self.numbers.byte_count()
    }

    /// Looks for values, from one on, that some rows were the first to name.
    fn look_for(
        &self,
        engine: &Engine,
        first: usize,
        (named_in, first_row): (&[usize], u64),
    ) -> Result<()> {
        if named_in.is_empty() {
            return Ok(());
        }
        let mut catalogue = engine.lock();
        for (number, row) in named_in.iter().enumerate() {
            let (at, kind) = (first + number, ErrorKind::ConstraintViolated);
            self.rows
                .expect_one(&mut catalogue, at, kind)
                .map_err(|e| e.in_row(first_row + *row as u64))?;
        }
        Ok(())
    }
}

/// The bits of a number; the values of one field have one type.
fn number(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(number) | ValueRef::Timestamp(number) => Some(number.cast_unsigned()),
        ValueRef::Uint(number) => Some(number),
        _ => None,
    }
}

fn note_coming(rows: &mut NamedRowsOf, batch: &Batch, row: usize) {
    let ReferenceTarget { positions, .. } = &rows.target;
    let value = |at: usize| batch.columns.get(at).map(|column| column.value(row));
    if let Some(values) = named_by(positions, value) {
        rows.note_coming(&values);
    }
}
