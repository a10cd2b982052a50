//! Partial aggregates: what is kept of a rollup for the rows of one segment.
//!
//! They are of *all* rows of the segment, the dead and the invisible included, so that they are a
//! function of segment and definition alone: a query takes away what its reader does not see. They
//! are grouped as queries group rows.

use std::collections::BTreeSet;
use std::ops::Range;

use esker_format::schema::{Index, RollupOperand, RowExpression};
use esker_format::{Column, ColumnSlice, DataType, FieldId, Room, Schema};

use crate::bind::{Stage, bind_condition, bind_row};
use crate::bound::{Bound, BoundAggregate};
use crate::evaluate::{Mask, Picked, Rows};
use crate::exec::aggregate::group::Groups;
use crate::exec::aggregate::partials::misfit;
use crate::filter::{CodeTables, keep};
use crate::index_expression::decoded;
use crate::model::{Aggregate, Expr};
use crate::predicate::Predicate;
use crate::source::rollup_layout::RollupLayout;
use crate::source::rollup_run::RollupShape;
use crate::source::slices_at_hand::SlicesAtHand;
use crate::{Error, ErrorKind, Inputs, Limits, Result, ZONE_ROWS, row_expression};

/// Of groups that take more, nothing is kept.
const BYTES_MAX: usize = 64 << 20;

/// Which rows of a range are wanted: a bit for each, or `None` for all.
pub type WantedRows<'a> = dyn Fn(Range<usize>) -> Option<Vec<u64>> + 'a;

/// What computes the partial aggregates of one rollup.
#[derive(Clone, Debug)]
pub struct PartialAggregates {
    reads: Vec<FieldId>,
    stage: Stage,
    filter: Option<Bound>,
    operands: Vec<(usize, RollupOperand)>,
    layout: RollupLayout,
}

impl PartialAggregates {
    /// Those of what a table keeps of a rollup.
    ///
    /// # Errors
    /// `Corrupt` when an expression cannot be read, `InvalidQuery` when one does not fit the
    /// schema.
    pub fn of(index: &Index, schema: &Schema) -> Result<Self> {
        let plain = index.fields.iter().filter(|part| part.expression.is_none());
        let mut reads: BTreeSet<FieldId> = plain.map(|part| part.field).collect();
        reads.extend(index.reads());
        reads.extend(index.operands.iter().map(|operand| operand.field));
        let reads: Vec<FieldId> = reads.into_iter().collect();
        let field = |id: &FieldId| {
            let missing = || {
                let (name, id) = (&index.name, id.0);
                Error::new(ErrorKind::Corrupt, format!("rollup {name:?}: no field number {id}"))
            };
            let mut field = schema.field_of(*id).ok_or_else(missing)?.clone();
            field.name = RowExpression::name_of(*id);
            Ok::<_, Error>(field)
        };
        let fields = reads.iter().map(field).collect::<Result<Vec<_>>>()?;
        let fields = Schema::of_fields(fields);
        let bind = |expr: &Expr| bind_row(expr, &fields, &Inputs::default());
        let mut keys = Vec::with_capacity(index.fields.len());
        for part in &index.fields {
            keys.push(match &part.expression {
                Some(of) => bind(&row_expression::decode(&of.expression)?)?,
                None => bind(&Expr::Field(RowExpression::name_of(part.field)))?,
            });
        }
        let filter = match &index.filter {
            None => None,
            Some(of) => {
                let condition = row_expression::decode(&of.expression)?;
                Some(bind_condition("WHERE of a rollup", &condition, &fields)?)
            }
        };
        let (mut aggregates, mut operands, mut types) = (vec![count(None)], Vec::new(), Vec::new());
        for operand in &index.operands {
            let bound = bind(&Expr::Field(RowExpression::name_of(operand.field)))?;
            let data_type = bound.data_type();
            let position = reads.iter().position(|id| *id == operand.field);
            // default: it is among the fields that are read
            operands.push((position.unwrap_or(usize::MAX), *operand));
            types.push((*operand, data_type));
            let of = |function: Aggregate| BoundAggregate {
                function,
                operand: Some(bound.clone()),
                distinct: false,
                data_type,
            };
            let counting = if operand.sum { Aggregate::Sum } else { Aggregate::Count };
            aggregates.push(of(counting));
            aggregates.extend(operand.least.then(|| of(Aggregate::Min)));
            aggregates.extend(operand.greatest.then(|| of(Aggregate::Max)));
        }
        let key_types: Vec<DataType> = keys.iter().map(Bound::data_type).collect();
        let layout = RollupLayout::new(&key_types, &types);
        let stage = Stage { keys, aggregates, ..Stage::default() };
        Ok(Self { reads, stage, filter, operands, layout })
    }

    /// The fields that are read, in the order in which [`PartialAggregates::compute`] takes them.
    #[must_use]
    pub fn reads(&self) -> &[FieldId] {
        &self.reads
    }

    /// The columns that are made.
    #[must_use]
    pub fn layout(&self) -> &RollupLayout {
        &self.layout
    }

    /// The same as queries see it, by the positions that fields have there.
    #[must_use]
    pub fn shape(&self, to: &dyn Fn(FieldId) -> usize) -> RollupShape {
        let positions: Vec<usize> = self.reads.iter().map(|id| to(*id)).collect();
        // default: it reads these fields alone
        let at = |read: usize| positions.get(read).copied().unwrap_or(usize::MAX);
        let moved = |bound: &Bound| {
            let mut bound = bound.clone();
            bound.map_fields(&at);
            bound
        };
        RollupShape {
            keys: self.stage.keys.iter().map(moved).collect(),
            filter: self.filter.as_ref().map(moved),
            operands: self.operands.iter().map(|(read, _)| at(*read)).collect(),
            layout: self.layout.clone(),
        }
    }

    /// The columns, given those that are read; `None` where there are more than `groups_max`
    /// groups, or very long ones, or a key cannot be computed of some row.
    ///
    /// # Errors
    /// `Corrupt` when a column cannot be read.
    pub fn compute(
        &self,
        columns: &[ColumnSlice<'_>],
        rows: usize,
        groups_max: usize,
    ) -> Result<Option<Vec<Column>>> {
        self.compute_of(columns, (rows, &|_| None), groups_max)
    }

    /// The same of some of the rows: `wanted` has a bit for each of a range, as
    /// [`Fragment::visible`](crate::Fragment::visible) has; `None` where it wants all of it.
    ///
    /// # Errors
    /// As for [`PartialAggregates::compute`].
    pub fn compute_of(
        &self,
        columns: &[ColumnSlice<'_>],
        (rows, wanted): (usize, &WantedRows<'_>),
        groups_max: usize,
    ) -> Result<Option<Vec<Column>>> {
        let decoded = columns.iter().map(decoded).collect::<Result<Vec<_>>>()?;
        let plain = columns.iter().zip(&decoded).map(|(column, decoded)| match decoded {
            Some(decoded) => ColumnSlice::from(decoded),
            None => *column,
        });
        let plain: Vec<_> = plain.collect();
        let part = SlicesAtHand { columns: &plain, rows };
        let (limits, tables) = (Limits::default(), CodeTables::default());
        let predicate = Predicate::compile(self.filter.as_ref());
        let (mut groups, mut firsts) = (Groups::new(&self.stage), Vec::new());
        for start in (0..rows).step_by(ZONE_ROWS) {
            let range = start..rows.min(start + ZONE_ROWS);
            let room = Room::default();
            let mut mask = match wanted(range.clone()) {
                Some(words) => Mask::from_words(&words, range.len()),
                None => Mask::all(range.len()),
            };
            let rows = Rows::new(&part, range, &limits, &room);
            let added = keep(&predicate, &rows, &mut mask, &tables);
            match added.and_then(|()| self.add(&mut groups, &mut firsts, (&rows, &mask))) {
                Err(e) if e.kind() == ErrorKind::Corrupt => return Err(e),
                Err(_) => return Ok(None),
                Ok(()) if groups.len() > groups_max => return Ok(None),
                Ok(()) if groups.bytes() > BYTES_MAX => return Ok(None),
                Ok(()) => {}
            }
        }
        groups.partial_columns(&self.layout, &firsts).map(Some)
    }

    /// Adds rows, and notes the first row of each new group.
    fn add<'s: 'r, 'r>(
        &'s self,
        groups: &mut Groups<'s>,
        firsts: &mut Vec<u32>,
        (rows, mask): (&Rows<'r>, &Mask),
    ) -> Result<()> {
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let ids = groups.ids(&self.stage.keys, rows, selection)?;
        // Groups are numbered in the order in which they are met.
        for (place, group) in ids.iter().flat_map(|ids| ids.numbers()).enumerate() {
            if *group as usize == firsts.len() {
                let row = rows.start() + selection.row(place) as usize;
                firsts.push(u32::try_from(row).map_err(|_| misfit())?);
            }
        }
        groups.update_in(&ids, rows, selection)
    }
}

fn count(operand: Option<Bound>) -> BoundAggregate {
    let (function, data_type) = (Aggregate::Count, DataType::I64);
    BoundAggregate { function, operand, distinct: false, data_type }
}
