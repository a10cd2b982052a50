//! Columns that are packed: unpacked for a batch of rows, as what they would be otherwise.
//!
//! | encoding | reads as |
//! |---|---|
//! | packed | narrowed of the least width for these rows; plain where they are wide |
//! | packed deltas | plain |
//! | packed dictionary | dictionary |
//! | packed offsets; compressed heap | variable, or of one width |

use std::ops::Range;

use esker_format::segment::packed::{DeltaReader, First, PACKED_ROWS, PackedReader, lines_of};
use esker_format::segment::{Encoding, Extent, HeapPlaces, PackedExtent};
use esker_format::{Codes, Data, DataType, Dictionary, Field, Room, ValueRef};
use esker_log::sabotage::Bug;

use super::Segment;
use super::plain::{byte, plain};
use crate::{Error, Result};

impl Segment {
    /// Rows of a packed column, of the type that is stored.
    pub(super) fn packed<'a>(
        &'a self,
        (column, stored): (usize, DataType),
        encoding: &'a Encoding,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<Data<'a>> {
        let at = |e: Error| e.at(format!("segment {}", self.id()));
        match encoding {
            Encoding::Packed { base, span, numbers } => {
                let reader = self.packed_reader(numbers, &rows)?;
                let bounds = reader.bounds(&rows)?;
                let number =
                    Numbers { stored, base: *base, bounds: (bounds.0, bounds.1.min(*span)) };
                number.unpacked(&reader, rows, room).map_err(at)
            }
            Encoding::PackedDeltas { base, numbers, .. } => {
                let numbers = self.delta_reader(numbers, &rows)?.unpack(rows, *base)?;
                of_deltas(stored, numbers, room).map_err(at)
            }
            Encoding::PackedDictionary { width, codes, offsets, heap } => {
                let reader = self.packed_reader(codes, &rows)?;
                let codes = match width {
                    1 => Codes::U8(room.bytes(reader.unpack(rows, 0)?)),
                    2 => Codes::U16(room.u16s(reader.unpack(rows, 0)?)),
                    _ => Codes::U32(room.u32s(reader.unpack(rows, 0)?)),
                };
                let dictionary = Dictionary {
                    offsets: self.typed(*offsets, 0..byte(offsets.len / 4))?,
                    heap: self.bytes(*heap, 0..byte(heap.len))?,
                };
                Ok(Data::Dictionary { codes, dictionary })
            }
            Encoding::PackedVariable { offsets, heap } => {
                let offsets = self.unpacked_offsets(offsets, rows, room)?;
                let (start, end) = self.ends(offsets)?;
                let heap = self.bytes(*heap, start as usize..end as usize)?;
                Ok(Data::Variable { offsets, start, heap })
            }
            Encoding::Compressed { places: HeapPlaces::Width(width), heap } => {
                let width = *width as usize;
                let range = rows.start * width..rows.end * width;
                let heap = self.compressed_bytes(column, heap, range, room)?;
                Ok(Data::FixedWidth { width, stride: width, heap })
            }
            Encoding::Compressed { places, heap } => {
                let offsets = match places {
                    HeapPlaces::Packed(offsets) => self.unpacked_offsets(offsets, rows, room)?,
                    HeapPlaces::Offsets(offsets) => {
                        self.typed(*offsets, rows.start..rows.end + 1)?
                    }
                    HeapPlaces::Width(_) => &[],
                };
                let (start, end) = self.ends(offsets)?;
                let range = start as usize..end as usize;
                let heap = self.compressed_bytes(column, heap, range, room)?;
                Ok(Data::Variable { offsets, start, heap })
            }
            _ => Err(at(Error::corrupt("a column that is not packed"))),
        }
    }

    fn unpacked_offsets<'a>(
        &self,
        offsets: &PackedExtent,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<&'a [u32]> {
        let rows = rows.start..rows.end + 1;
        Ok(room.u32s(self.packed_reader(offsets, &rows)?.unpack(rows, 0)?))
    }

    fn ends(&self, offsets: &[u32]) -> Result<(u32, u32)> {
        match (offsets.first(), offsets.last()) {
            (Some(first), Some(last)) => Ok((*first, *last)),
            _ => Err(Error::corrupt(format!("segment {}: no offsets", self.id()))),
        }
    }

    /// Reads some packed numbers; no others are verified.
    pub(super) fn packed_reader(
        &self,
        numbers: &PackedExtent,
        rows: &Range<usize>,
    ) -> Result<PackedReader<'_>> {
        let (directory, first) = self.directory::<[u64; 2]>(numbers, rows)?;
        let places = (directory.first(), directory.last());
        let (Some([_, from]), Some([_, to])) = places else {
            return Ok(PackedReader::new(&[], &[], first));
        };
        let lines = lines_of(*from, *to, rows)?;
        let first = First { line: lines.start, ..first };
        Ok(PackedReader::new(directory, self.typed(numbers.words, lines)?, first))
    }

    /// The same of packed deltas.
    fn delta_reader(&self, numbers: &PackedExtent, rows: &Range<usize>) -> Result<DeltaReader<'_>> {
        let (directory, first) = self.directory::<[u64; 3]>(numbers, rows)?;
        let places = (directory.first(), directory.last());
        let (Some([_, _, from]), Some([_, _, to])) = places else {
            return Ok(DeltaReader::new(&[], &[], first));
        };
        let lines = lines_of(*from, *to, rows)?;
        let first = First { line: lines.start, ..first };
        Ok(DeltaReader::new(directory, self.typed(numbers.words, lines)?, first))
    }

    fn directory<T: bytemuck::Pod>(
        &self,
        numbers: &PackedExtent,
        rows: &Range<usize>,
    ) -> Result<(&[T], First)> {
        let blocks = match rows.is_empty() {
            true => 0..0,
            false => rows.start / PACKED_ROWS..rows.end.div_ceil(PACKED_ROWS),
        };
        let first = First { block: blocks.start, line: 0 };
        Ok((self.typed(numbers.directory, blocks)?, first))
    }

    /// One number of a packed column, found by itself.
    pub(super) fn packed_number(&self, field: &Field, row: usize) -> Result<Option<ValueRef<'_>>> {
        let Some((_, layout)) = self.indexed_layout(field) else { return Ok(None) };
        let (base, numbers, is_by_deltas) = match &layout.encoding {
            Encoding::Packed { base, numbers, .. } => (base, numbers, false),
            Encoding::PackedDeltas { base, numbers, .. } => (base, numbers, true),
            _ => return Ok(None),
        };
        if layout.data_type != field.data_type {
            return Ok(None);
        }
        if let Some(validity) = layout.validity {
            let bits = self.bytes(validity, row / 8..row / 8 + 1)?.first();
            if bits.is_some_and(|bits| bits >> (row % 8) & 1 == 0) {
                return Ok(Some(ValueRef::Null));
            }
        }
        let code = match is_by_deltas {
            false => self.packed_reader(numbers, &(row..row + 1))?.get(row)?,
            true => self.delta_reader(numbers, &(row..row + 1))?.get(row)?,
        };
        let word = base.wrapping_add(code).cast_signed();
        Ok(Some(ValueRef::from_word(field.data_type, word)))
    }

    /// The place of a value between two packed offsets, or in a dictionary.
    pub(super) fn packed_place(
        &self,
        encoding: &Encoding,
        row: usize,
    ) -> Result<Option<(Extent, Range<usize>)>> {
        Ok(match encoding {
            Encoding::PackedVariable { offsets, heap } => {
                let reader = self.packed_reader(offsets, &(row..row + 2))?;
                let (start, end) = (byte(reader.get(row)?), byte(reader.get(row + 1)?));
                Some((*heap, start..end))
            }
            Encoding::PackedDictionary { codes, offsets, heap, .. } => {
                let code = self.packed_reader(codes, &(row..row + 1))?.get(row)?;
                if code >= offsets.len / 4 {
                    return Err(self.no_row(row));
                }
                let code = byte(code);
                match self.typed::<u32>(*offsets, code..code.saturating_add(2))? {
                    [start, end] => Some((*heap, *start as usize..*end as usize)),
                    _ => return Err(self.no_row(row)),
                }
            }
            _ => None,
        })
    }

    /// Bytes that the values of a packed column take when they are not encoded.
    pub(super) fn count_unpacked(&self, encoding: &Encoding) -> Result<u64> {
        Ok(match encoding {
            Encoding::PackedVariable { heap, .. } => heap.len,
            Encoding::Compressed { heap, .. } => heap.len,
            Encoding::PackedDictionary { codes, offsets, .. } => {
                let offsets: &[u32] = self.typed(*offsets, 0..byte(offsets.len / 4))?;
                let length = |code: &u32| match offsets.get(*code as usize..*code as usize + 2) {
                    Some([start, end]) => u64::from(end.saturating_sub(*start)),
                    _ => 0,
                };
                let (mut sum, rows) = (0, self.row_count());
                for start in (0..rows).step_by(PACKED_ROWS) {
                    let rows = start..rows.min(start + PACKED_ROWS);
                    let codes: Vec<u32> = self.packed_reader(codes, &rows)?.unpack(rows, 0)?;
                    sum += codes.iter().map(length).sum::<u64>();
                }
                sum
            }
            _ => 0,
        })
    }
}

/// Packed numbers of some rows.
struct Numbers {
    stored: DataType,
    base: u64,
    /// The least and the greatest code that there may be.
    bounds: (u64, u64),
}

impl Numbers {
    fn unpacked<'a>(
        &self,
        reader: &PackedReader<'_>,
        rows: Range<usize>,
        room: &'a Room,
    ) -> Result<Data<'a>> {
        let (low, high) = self.bounds;
        let (base, width) = (self.base.wrapping_add(low), self.stored.width());
        let codes = match high.saturating_sub(low) {
            // Numbers of one byte are never narrowed.
            _ if width == Some(1) => {
                let bytes = reader.unpack(rows, self.base.wrapping_neg())?;
                return plain(self.stored, room.bytes(bytes));
            }
            span if span <= u8::MAX.into() => Codes::U8(room.bytes(reader.unpack(rows, low)?)),
            span if span <= u16::MAX.into() => Codes::U16(room.u16s(reader.unpack(rows, low)?)),
            span if span <= u32::MAX.into() => Codes::U32(room.u32s(reader.unpack(rows, low)?)),
            _ => {
                let numbers = reader.unpack(rows, self.base.wrapping_neg())?;
                return wide(self.stored, numbers, room);
            }
        };
        Ok(Data::Narrowed { base, codes })
    }
}

/// Numbers of eight bytes.
fn wide(stored: DataType, numbers: Vec<u64>, room: &Room) -> Result<Data<'_>> {
    if stored.width() != Some(8) {
        return Err(Error::corrupt(format!("packed {stored} of 8 bytes")));
    }
    plain(stored, bytemuck::cast_slice(room.u64s(numbers)))
}

/// Numbers that were deltas.
fn of_deltas(stored: DataType, mut numbers: Vec<u64>, room: &Room) -> Result<Data<'_>> {
    if Bug::PackedDeltaWraps.is_planted() {
        // default: no rows wrap nowhere
        let first = numbers.first().copied().unwrap_or_default();
        let cut = |number: u64| first.wrapping_add(number.wrapping_sub(first) % (1 << 16));
        numbers.iter_mut().for_each(|number| *number = cut(*number));
    }
    wide(stored, numbers, room)
}
