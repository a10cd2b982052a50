//! Rows in memory, as the source of the next step.

use std::ops::Range;

use esker_format::{
    Batch, Column, ColumnSlice, Data, DataType, Field, Room, Schema, Validity, Value, Values,
};

use crate::bind::Projection;
use crate::bound::Node;
use crate::exec::output::Sink;
use crate::exec::scan::ScanCounts;
use crate::{Error, Fragment, Options, Result, Source, ZONE_ROWS, Zone};

/// Batches of [`ZONE_ROWS`] rows each, but for the last.
#[derive(Debug)]
pub(crate) struct Materialised {
    schema: Schema,
    part: Batches,
}

#[derive(Debug)]
struct Batches {
    batches: Vec<Batch>,
    row_count: usize,
}

impl Materialised {
    /// `batches` are full but for the last and have columns of these types.
    pub(crate) fn new(types: &[DataType], batches: Vec<Batch>) -> Result<Self> {
        let types = if types.is_empty() { &[DataType::Bool] } else { types };
        let schema = Schema::of_types(types);
        let row_count = batches.iter().map(Batch::len).sum();
        Ok(Self { schema, part: Batches { batches, row_count } })
    }

    /// `batches` are full but for the last and have the columns of the schema.
    pub(crate) fn of(schema: Schema, batches: Vec<Batch>) -> Self {
        let row_count = batches.iter().map(Batch::len).sum();
        Self { schema, part: Batches { batches, row_count } }
    }

    /// The same rows, their columns by other names.
    pub(crate) fn with_schema(self, schema: Schema) -> Self {
        Self { schema, ..self }
    }

    /// The same rows with one more column, of which there are values for each batch.
    pub(crate) fn with_column(self, field: Field, columns: Vec<Column>) -> Result<Self> {
        let Self { schema, part: Batches { mut batches, row_count } } = self;
        for (batch, column) in batches.iter_mut().zip(columns) {
            if column.len() != batch.len() {
                let name = &field.name;
                return Err(Error::invalid(format!("column {name}: another number of rows")));
            }
            batch.columns.push(column);
        }
        let fields = schema.fields().iter().cloned().chain([field]).collect();
        Ok(Self { schema: Schema::of_fields(fields), part: Batches { batches, row_count } })
    }

    /// The rows, in batches that are full but for the last.
    pub(crate) fn batches(&self) -> &[Batch] {
        &self.part.batches
    }

    pub(crate) fn row_count(&self) -> usize {
        self.part.row_count
    }

    /// About how many bytes of memory they take.
    pub(crate) fn byte_count(&self) -> usize {
        self.part.batches.iter().map(crate::result::batch_bytes).sum()
    }

    /// Hands over the rows of a projection that [shows fields only], as they lie in memory.
    ///
    /// [shows fields only]: Projection::shows_fields_only
    ///
    /// # Errors
    /// What the sink fails with; when the query is to end.
    pub(crate) fn show_fields(
        self,
        projection: &Projection,
        options: &Options,
        sink: Sink<'_>,
    ) -> Result<ScanCounts> {
        let mut counts = ScanCounts::default();
        for mut batch in self.part.batches {
            options.expect_time_left()?;
            let rows = batch.len() as u64;
            counts += ScanCounts {
                zones: 1,
                rows_scanned: rows,
                rows_passed: rows,
                ..ScanCounts::default()
            };
            let mut left: Vec<Option<Column>> = batch.columns.drain(..).map(Some).collect();
            let mut shown = Vec::with_capacity(projection.outputs.len());
            for output in &projection.outputs {
                let Node::Field(position) = output.node else { continue };
                let column = left.get_mut(position).and_then(Option::take);
                shown.push(column.ok_or_else(|| Error::invalid(format!("no column {position}")))?);
            }
            if sink(Batch { columns: shown })?.is_break() {
                break;
            }
        }
        Ok(counts)
    }

    /// The values of a column.
    pub(crate) fn values(&self, position: usize) -> Vec<Value> {
        let columns = self.part.batches.iter().filter_map(|batch| batch.columns.get(position));
        let values = columns.flat_map(|c| (0..c.len()).map(|i| c.value(i).to_owned()));
        values.collect()
    }
}

impl Source for Materialised {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn part_count(&self) -> usize {
        1
    }

    fn part(&self, _index: usize) -> &dyn Fragment {
        &self.part
    }
}

impl Fragment for Batches {
    fn row_count(&self) -> usize {
        self.row_count
    }

    fn visible_count(&self) -> Option<usize> {
        Some(self.row_count)
    }

    fn batch_end(&self, start: usize, rows_max: usize) -> usize {
        let zone_end = (start / ZONE_ROWS + 1) * ZONE_ROWS;
        zone_end.min(start.saturating_add(rows_max)).min(self.row_count)
    }

    fn column<'a>(
        &'a self,
        position: usize,
        rows: Range<usize>,
        _: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        let column = self.batches.get(rows.start / ZONE_ROWS).and_then(|b| b.columns.get(position));
        let column = column.ok_or_else(|| Error::invalid(format!("no column {position}")))?;
        let start = rows.start % ZONE_ROWS;
        slice(column, start..start + rows.len())
            .ok_or_else(|| Error::invalid(format!("rows {rows:?} are past the end")))
    }

    fn visible(&self, _rows: Range<usize>) -> Option<Vec<u64>> {
        None
    }

    fn zone(&self, _position: usize, _zone: usize) -> Option<Zone<'_>> {
        None
    }
}

/// Some rows of an owned column.
pub(crate) fn slice(column: &Column, rows: Range<usize>) -> Option<ColumnSlice<'_>> {
    let data = match &column.values {
        Values::U8(v) => Data::U8(v.get(rows.clone())?),
        Values::U16(v) => Data::U16(v.get(rows.clone())?),
        Values::U32(v) => Data::U32(v.get(rows.clone())?),
        Values::U64(v) => Data::U64(v.get(rows.clone())?),
        Values::I8(v) => Data::I8(v.get(rows.clone())?),
        Values::I16(v) => Data::I16(v.get(rows.clone())?),
        Values::I32(v) => Data::I32(v.get(rows.clone())?),
        Values::I64(v) => Data::I64(v.get(rows.clone())?),
        Values::I128(v) => Data::I128(v.get(rows.clone())?),
        Values::F32(v) => Data::F32(v.get(rows.clone())?),
        Values::F64(v) => Data::F64(v.get(rows.clone())?),
        Values::Variable(v) => Data::Variable {
            offsets: v.offsets.get(rows.start..=rows.end)?,
            start: 0,
            heap: &v.heap,
        },
    };
    let validity = match &column.nulls {
        None => Validity::AllValid,
        Some(nulls) => Validity::NullBytes(nulls.get(rows.clone())?),
    };
    Some(ColumnSlice { data_type: column.data_type, len: rows.len(), validity, data })
}
