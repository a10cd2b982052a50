//! Columns of a segment: rows of one, decoded only as far as a reader needs them.

use std::ops::Range;

use esker_format::part_lines::{LINE_BYTES, Line};
use esker_format::segment::{ColumnLayout, Encoding, Extent};
use esker_format::{
    ColumnSlice, Data, DataType, Dictionary, Field, PartLines, Room, Validity, ValueRef,
};

use super::Segment;
use super::plain::{byte, plain};
use crate::column_map::{initial_column, is_readable_as};
use crate::{Error, Result};

impl Segment {
    /// Rows of a column, as the field's type; its initial value where the field is younger.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn column<'a>(
        &'a self,
        field: &'a Field,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<ColumnSlice<'a>> {
        self.column_in(field, rows, Some(room))
    }

    /// The same where nothing is packed, as in runs.
    ///
    /// # Errors
    /// `Corrupt` as well when the column is packed.
    pub fn column_as_stored<'a>(
        &'a self,
        field: &'a Field,
        rows: Range<usize>,
    ) -> Result<ColumnSlice<'a>> {
        self.column_in(field, rows, None)
    }

    fn column_in<'a>(
        &'a self,
        field: &'a Field,
        rows: Range<usize>,
        room: Option<&'a Room>,
    ) -> Result<ColumnSlice<'a>> {
        let Some((index, layout)) = self.indexed_layout(field) else {
            return Ok(initial_column(field, rows.len()));
        };
        let (stored, data_type) = (layout.data_type, field.data_type);
        if !is_readable_as(stored, data_type) {
            let (id, name) = (self.id, &field.name);
            let message = format!("segment {id}: field {name:?} is {stored}, not {data_type}");
            return Err(Error::corrupt(message));
        }
        let len = rows.len();
        let validity = match layout.validity {
            None => Validity::AllValid,
            Some(extent) => {
                let bits = self.bytes(extent, rows.start / 8..rows.end.div_ceil(8))?;
                Validity::ValidBits { bits, offset: rows.start % 8 }
            }
        };
        let data = match &layout.encoding {
            Encoding::Constant(value) if stored == data_type => Data::Constant(value.as_ref()),
            Encoding::Constant(value) => {
                // default: one that does not fit is of rows that this reader cannot see
                Data::Constant(value.as_ref().coerce(data_type).unwrap_or(ValueRef::Null))
            }
            Encoding::Plain { values } => self.plain(stored, *values, rows)?,
            Encoding::Narrowed { base, width, codes } => {
                Data::Narrowed { base: *base, codes: self.codes(*width, *codes, rows)? }
            }
            Encoding::Dictionary { width, codes, offsets, heap } => Data::Dictionary {
                codes: self.codes(*width, *codes, rows)?,
                dictionary: Dictionary {
                    offsets: self.typed(*offsets, 0..byte(offsets.len / 4))?,
                    heap: self.bytes(*heap, 0..byte(heap.len))?,
                },
            },
            Encoding::Variable { offsets, heap } => self.variable(*offsets, *heap, rows)?,
            Encoding::FixedWidth { width, heap } => {
                self.fixed_width(*heap, (*width, *width, 0), rows)?
            }
            Encoding::Strided { width, stride, at, heap } => {
                self.fixed_width(*heap, (*width, *stride, *at), rows)?
            }
            Encoding::Interleaved { part, offsets, heap } => {
                self.interleaved(*part, *offsets, *heap, rows)?
            }
            Encoding::Lined { part, lines, heap } => self.lined(*part, *lines, *heap, rows)?,
            Encoding::Scattered { words, heap, long } => {
                self.scattered(index, (*words, *heap, *long), rows)?
            }
            packed @ (Encoding::Packed { .. }
            | Encoding::PackedDeltas { .. }
            | Encoding::Compressed { .. }
            | Encoding::PackedDictionary { .. }
            | Encoding::PackedVariable { .. }) => {
                let (id, name) = (self.id, &field.name);
                let refused = || format!("segment {id}: field {name:?} is packed, in a run");
                let room = room.ok_or_else(|| Error::corrupt(refused()))?;
                self.packed((index, stored), packed, rows, room)?
            }
        };
        Ok(ColumnSlice { data_type, len, validity, data })
    }

    fn plain(&self, data_type: DataType, values: Extent, rows: Range<usize>) -> Result<Data<'_>> {
        let Some(width) = data_type.width() else {
            return Err(Error::corrupt(format!("segment {}: plain {data_type}", self.id)));
        };
        let bytes = self.bytes(values, rows.start * width..rows.end * width)?;
        plain(data_type, bytes).map_err(|e| e.at(format!("segment {}", self.id)))
    }

    /// Bytes that the values of a column of text or bytes take when they are not encoded; 0 for
    /// other columns.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn decoded_bytes(&self, field: &Field) -> Result<u64> {
        if self.decoded.get().is_none() {
            let all = self.footer.columns.iter().map(|layout| self.count_decoded(layout));
            let _ = self.decoded.set(all.collect::<Result<_>>()?);
            // A merge needs this of all segments of a table.
            self.release();
        }
        let Some(column) = self.column_map.get(field.id) else {
            // default: what is no text or byte string counts nothing
            let each = field.initial.as_ref().as_bytes().map_or(0, <[u8]>::len) as u64;
            return Ok(each * self.row_count() as u64);
        };
        let bytes = self.decoded.get().and_then(|all| all.get(column)).copied();
        bytes.ok_or_else(|| {
            let (id, name) = (self.id, &field.name);
            Error::corrupt(format!("segment {id}: the bytes of field {name:?} were not counted"))
        })
    }

    fn count_decoded(&self, layout: &ColumnLayout) -> Result<u64> {
        let rows = self.row_count() as u64;
        Ok(match &layout.encoding {
            Encoding::Constant(value) => {
                // default: what is no text or byte string counts nothing
                value.as_ref().as_bytes().map_or(0, |bytes| bytes.len() as u64 * rows)
            }
            Encoding::Variable { heap, .. }
            | Encoding::FixedWidth { heap, .. }
            | Encoding::Scattered { heap, .. } => heap.len,
            Encoding::Dictionary { width, codes, offsets, .. } => {
                let offsets: &[u32] = self.typed(*offsets, 0..byte(offsets.len / 4))?;
                let lengths: Vec<u64> = offsets.windows(2).map(length_between).collect();
                let codes = self.codes(*width, *codes, 0..self.row_count())?;
                let length = |row| lengths.get(codes.get(row) as usize).copied();
                (0..self.row_count()).filter_map(length).sum()
            }
            Encoding::Strided { width, .. } => u64::from(*width) * rows,
            Encoding::Interleaved { part, offsets, .. } => {
                let offsets: &[u32] = self.typed(*offsets, 0..byte(offsets.len / 4))?;
                let Some(parts) = offsets.get(usize::from(*part)..) else {
                    return Err(Error::corrupt(format!("segment {}: no offsets", self.id)));
                };
                parts.chunks_exact(2).map(length_between).sum()
            }
            Encoding::Lined { part, lines, .. } => {
                let lines: &[Line] = self.typed(*lines, 0..byte(lines.len) / LINE_BYTES)?;
                let lines = PartLines::new(lines, 0, usize::from(*part));
                let places = (0..self.row_count()).filter_map(|row| lines.place(row));
                places.map(|(start, end)| u64::from(end.saturating_sub(start))).sum()
            }
            Encoding::Plain { .. } | Encoding::Narrowed { .. } => 0,
            packed => self.count_unpacked(packed)?,
        })
    }

    /// One value.
    ///
    /// # Errors
    /// `Corrupt` when its block does not fit its checksum.
    pub fn value<'a>(
        &'a self,
        field: &'a Field,
        row: usize,
        room: &'a Room,
    ) -> Result<ValueRef<'a>> {
        match self.value_in_place(field, row)? {
            Some(value) => Ok(value),
            None => Ok(self.column(field, row..row + 1, room)?.value(0)),
        }
    }

    /// The same where nothing is packed.
    ///
    /// # Errors
    /// As [`Segment::column_as_stored`].
    pub fn value_as_stored<'a>(&'a self, field: &'a Field, row: usize) -> Result<ValueRef<'a>> {
        match self.value_in_place(field, row)? {
            Some(value) => Ok(value),
            None => Ok(self.column_as_stored(field, row..row + 1)?.value(0)),
        }
    }

    fn value_in_place(&self, field: &Field, row: usize) -> Result<Option<ValueRef<'_>>> {
        if let Some(value) = self.in_place_value(field, row) {
            return Ok(Some(value));
        }
        // Most bytes lie in the file as they are read: no column has to be made of them.
        if let Some((_, bytes)) = self.in_place_bytes(field, row)? {
            return Ok(Some(ValueRef::from_bytes(field.data_type, bytes)));
        }
        self.packed_number(field, row)
    }
}

fn length_between(offsets: &[u32]) -> u64 {
    match offsets {
        [start, end] => u64::from(end.saturating_sub(*start)),
        _ => 0,
    }
}
