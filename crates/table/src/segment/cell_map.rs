//! The columns of a segment in which the place of a value follows from its row number.

use std::ops::Range;

use esker_format::segment::{ColumnLayout, Encoding};
use esker_format::{DataType, FieldId};

use super::by_field::ByField;
use super::plain::byte;

/// The columns in which the place of a value follows from its row number alone.
pub(crate) struct CellMap(ByField<Cells>);

/// Such a column.
#[derive(Clone, Copy, Debug)]
struct Cells {
    data_type: DataType,
    /// Where the first value begins.
    start: usize,
    width: usize,
    /// From where a value begins to where the next does.
    stride: usize,
}

impl CellMap {
    /// Of the columns of a segment.
    pub(super) fn of(columns: &[ColumnLayout]) -> Self {
        let cells = columns.iter().filter_map(|column| {
            let (start, width, stride) = match &column.encoding {
                Encoding::FixedWidth { width, heap } => (byte(heap.offset), *width, *width),
                Encoding::Strided { width, stride, at, heap } => {
                    (byte(heap.offset) + *at as usize, *width, *stride)
                }
                _ => return None,
            };
            let (width, stride) = (width as usize, stride as usize);
            let of = Cells { data_type: column.data_type, start, width, stride };
            column.validity.is_none().then_some((column.field, of))
        });
        Self(ByField::of(cells, columns.len()))
    }

    /// How many bytes the values of a field are apart, where that is the same for all.
    pub(super) fn stride(&self, field: FieldId) -> Option<usize> {
        self.0.get(field).map(|cells| cells.stride)
    }

    /// Where the value of a row lies in the file.
    #[inline]
    pub(super) fn place(
        &self,
        field: FieldId,
        data_type: DataType,
        row: usize,
    ) -> Option<Range<usize>> {
        let cells = self.0.get(field).filter(|cells| cells.data_type == data_type)?;
        let start = cells.start + row * cells.stride;
        Some(start..start + cells.width)
    }
}
