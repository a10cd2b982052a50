//! Candidate pairs, tested some thousands at a time.

use esker_format::{Batch, DataType, Room, Schema};

use super::Input;
use super::build::Built;
use crate::evaluate::{Mask, Rows, Selection};
use crate::exec::output::{Materialised, Output, Shown};
use crate::filter::{CodeTables, keep};
use crate::predicate::Predicate;
use crate::{Limits, Result, Source, ZONE_ROWS};

/// What pairs are tested with.
pub(super) struct PairFilter<'p> {
    predicate: &'p Predicate,
    /// The fields of the probe side that are read, and their types.
    fields: Vec<(usize, DataType)>,
    built: &'p Built<'p>,
    is_left_built: bool,
}

impl<'p> PairFilter<'p> {
    pub(super) fn new(
        predicate: &'p Predicate,
        probe: &Input<'_>,
        built: &'p Built<'p>,
        is_left_built: bool,
    ) -> Self {
        let types = probe.source.schema().fields();
        let field = |position: &usize| Some((*position, types.get(*position)?.data_type));
        let fields = probe.pair_columns.iter().filter_map(field).collect();
        Self { predicate, fields, built, is_left_built }
    }

    /// Drops the pairs that do not pass; each is a place in the selection of the batch's rows and a
    /// row that was built.
    pub(super) fn keep(
        &self,
        rows: &Rows<'_>,
        selection: Selection<'_>,
        pairs: &mut Vec<(u32, u32)>,
    ) -> Result<()> {
        debug_assert!(pairs.len() <= ZONE_ROWS, "one mask holds them");
        if *self.predicate == Predicate::Constant(true) {
            return Ok(());
        }
        let places: Vec<u32> = pairs.iter().map(|(i, _)| selection.row(*i as usize)).collect();
        let built: Vec<u32> = pairs.iter().map(|(_, row)| *row).collect();
        let mut output = Output::new(self.fields.iter().map(|(_, data_type)| *data_type).collect());
        let shown = |(position, _): &(usize, DataType)| rows.column(*position).map(Shown::Field);
        let shown = self.fields.iter().map(shown).collect::<Result<Vec<_>>>()?;
        output.append(&shown, Selection::Rows(&places))?;
        let probed = output.into_batches().pop().unwrap_or_default();
        let built = self.built.pair_columns.take(&built)?;
        let (mut first, second) =
            if self.is_left_built { (built, probed) } else { (probed, built) };
        first.columns.extend(second.columns);
        test(self.predicate, first, pairs, rows.meter().limits())
    }
}

/// Drops the pairs that do not pass; the columns of each stand in a row of `batch`.
pub(super) fn test(
    predicate: &Predicate,
    batch: Batch,
    pairs: &mut Vec<(u32, u32)>,
    limits: &Limits,
) -> Result<()> {
    let types: Vec<_> = batch.columns.iter().map(|column| column.data_type).collect();
    let source = Materialised::of(Schema::of_types(&types), vec![batch]);
    let mut mask = Mask::all(pairs.len());
    let tables = CodeTables::default();
    let room = Room::default();
    let rows = Rows::new(source.part(0), 0..pairs.len(), limits, &room);
    keep(predicate, &rows, &mut mask, &tables)?;
    let mut kept = Vec::with_capacity(mask.count());
    mask.for_each(|i| kept.extend(pairs.get(i)));
    *pairs = kept;
    Ok(())
}
