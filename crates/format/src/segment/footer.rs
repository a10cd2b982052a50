//! The header, footer and trailer of a segment file.

use std::collections::BTreeSet;

use super::encoding::{Encoding, Extent};
use super::{FieldSketch, Packing, ZONE_ROWS, ZoneEntry};
use crate::checksum::{Place, checksum};
use crate::codec::{Reader, Writer};
use crate::schema::{FIELDS_MAX, RowOrder};
use crate::value_file::ALIGN_BYTES;
use crate::{DataType, Error, ErrorKind, FieldId, Result, TableId, invariant};

/// The first bytes of every segment file.
pub const MAGIC: [u8; 8] = *b"ESKERSEG";
/// The version of the layout.
pub const VERSION: u32 = 8;
/// The oldest version that is read: without columns in lines, which came with version 6.
pub const VERSION_MIN: u32 = 5;
/// The version with which sketches came.
const VERSION_OF_SKETCHES: u32 = 7;
/// The version with which packed columns came.
const VERSION_OF_PACKED: u32 = 8;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the trailer.
pub const TRAILER_BYTES: usize = 64;
/// Bytes of the file under one checksum.
pub const BLOCK_BYTES: usize = 64 << 10;
/// The most rows of a segment.
pub const SEGMENT_ROWS_MAX: usize = 1 << 22;
/// The most bytes of a footer.
pub const FOOTER_BYTES_MAX: u64 = 256 << 20;

/// What a segment has in a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueFileUse {
    /// The number of the file.
    pub file: u64,
    /// Bytes of it that the values of rows, dead ones included, take: each up to where the next
    /// may begin.
    pub bytes: u64,
}

/// One column of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    /// The field it belongs to.
    pub field: FieldId,
    /// What it holds.
    pub data_type: DataType,
    /// How the values are stored.
    pub encoding: Encoding,
    /// One bit per row, 1 where valid; absent when no row is NULL or the column is constant.
    pub validity: Option<Extent>,
    /// One entry per zone.
    pub zones: Vec<ZoneEntry>,
    /// About which values it has, dead rows included, where the segment has sketches.
    pub sketch: Option<FieldSketch>,
}

/// The row ids of a segment: rising where rows lie as they came. `first` and `last` are the least
/// and the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields repeat the variant's description")]
pub enum RowIds {
    /// Row `i` has id `first + i`.
    Dense { first: u64 },
    /// Row `i` has id `first + codes[i]`, codes of 32 bits.
    Narrowed { first: u64, last: u64, codes: Extent },
    /// One id of 64 bits per row.
    Plain { first: u64, last: u64, values: Extent },
}

/// What a segment file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The table.
    pub table: TableId,
    /// The segment's own number.
    pub segment: u64,
    /// The version of the schema it was written with.
    pub schema_version: u32,
    /// How many rows it has.
    pub rows: u32,
    /// In which order its rows lie.
    pub order: RowOrder,
    /// How far its columns were packed where that pays.
    pub packing: Packing,
    /// The row ids.
    pub row_ids: RowIds,
    /// The rows that were dead already when the segment was written, kept for open snapshots:
    /// one bit per row, 1 where dead.
    pub dead: Option<Extent>,
    /// The columns.
    pub columns: Vec<ColumnLayout>,
    /// The value files that columns refer to, by rising number.
    pub value_files: Vec<ValueFileUse>,
    /// One checksum per [`BLOCK_BYTES`] before the footer.
    pub block_checksums: Vec<u64>,
}

/// The first [`HEADER_BYTES`] of a segment file.
#[must_use]
pub fn header(database: u128, table: TableId, segment: u64) -> [u8; HEADER_BYTES] {
    let mut out = Writer::new();
    out.raw(&MAGIC);
    out.u32(VERSION);
    out.u32(table.0);
    out.u64(segment);
    out.raw(&database.to_le_bytes());
    let mut bytes = [0; HEADER_BYTES];
    for (to, from) in bytes.iter_mut().zip(out.as_bytes()) {
        *to = *from;
    }
    bytes
}

impl RowIds {
    /// The least row id.
    #[must_use]
    pub fn first(&self) -> u64 {
        match self {
            Self::Dense { first } | Self::Narrowed { first, .. } | Self::Plain { first, .. } => {
                *first
            }
        }
    }

    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Dense { first } => {
                out.u8(0);
                out.u64(*first);
            }
            Self::Narrowed { first, last, codes } => {
                out.u8(1);
                out.u64(*first);
                out.u64(*last);
                codes.encode(out);
            }
            Self::Plain { first, last, values } => {
                out.u8(2);
                out.u64(*first);
                out.u64(*last);
                values.encode(out);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        Ok(match input.u8()? {
            0 => Self::Dense { first: input.u64()? },
            1 => Self::Narrowed {
                first: input.u64()?,
                last: input.u64()?,
                codes: Extent::decode(input)?,
            },
            2 => Self::Plain {
                first: input.u64()?,
                last: input.u64()?,
                values: Extent::decode(input)?,
            },
            other => return Err(Error::corrupt(format!("unknown row id encoding {other}"))),
        })
    }
}

impl Footer {
    /// The stored form, of the newest [`VERSION`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u32(self.table.0);
        out.u64(self.segment);
        out.u32(self.schema_version);
        out.u32(self.rows);
        self.order.encode(&mut out);
        out.u8(self.packing.code());
        self.row_ids.encode(&mut out);
        out.u8(u8::from(self.dead.is_some()));
        self.dead.unwrap_or_default().encode(&mut out); // default: the flag says that it is none.
        out.count(self.columns.len());
        for column in &self.columns {
            out.u16(column.field.0);
            column.data_type.encode(&mut out);
            column.encoding.encode(&mut out, column.data_type);
            out.u8(u8::from(column.validity.is_some()));
            column.validity.unwrap_or_default().encode(&mut out); // default: as above.
            out.count(column.zones.len());
            column.zones.iter().for_each(|zone| zone.encode(&mut out, column.data_type));
            out.u8(u8::from(column.sketch.is_some()));
            column.sketch.iter().for_each(|sketch| sketch.encode(&mut out));
        }
        out.count(self.value_files.len());
        for used in &self.value_files {
            out.u64(used.file);
            out.u64(used.bytes);
        }
        out.count(self.block_checksums.len());
        self.block_checksums.iter().for_each(|sum| out.u64(*sum));
        out.into_bytes()
    }

    /// Reads the stored form of a version that [`Trailer::decode`] let pass, and checks every
    /// extent against the row count and `data_end`.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a footer.
    pub fn decode(bytes: &[u8], data_end: u64, version: u32) -> Result<Self> {
        let mut input = Reader::new(bytes);
        let table = TableId(input.u32()?);
        let segment = input.u64()?;
        let schema_version = input.u32()?;
        let rows = input.u32()?;
        if rows as usize > SEGMENT_ROWS_MAX {
            return Err(Error::corrupt(format!("{rows} rows, at most {SEGMENT_ROWS_MAX}")));
        }
        let order = RowOrder::decode(&mut input)?;
        let packing = match version >= VERSION_OF_PACKED {
            true => Packing::of_code(input.u8()?)?,
            false => Packing::None,
        };
        let row_ids = RowIds::decode(&mut input)?;
        let has_dead = input.u8()? == 1;
        let dead = Some(Extent::decode(&mut input)?).filter(|_| has_dead);
        let column_count = input.count(FIELDS_MAX)?;
        let mut columns = Vec::with_capacity(column_count);
        for _ in 0..column_count {
            columns.push(decode_column(&mut input, rows, version)?);
        }
        let mut value_files = Vec::new();
        for _ in 0..input.count(input.remaining() / 16)? {
            value_files.push(ValueFileUse { file: input.u64()?, bytes: input.u64()? });
        }
        let block_count = input.count(input.remaining() / 8)?;
        let mut block_checksums = Vec::with_capacity(block_count);
        for _ in 0..block_count {
            block_checksums.push(input.u64()?);
        }
        input.finish()?;
        let footer = Self {
            table,
            segment,
            schema_version,
            rows,
            order,
            packing,
            row_ids,
            dead,
            columns,
            value_files,
            block_checksums,
        };
        footer.check(data_end)?;
        Ok(footer)
    }

    fn check(&self, data_end: u64) -> Result<()> {
        let rows = u64::from(self.rows);
        match self.row_ids {
            RowIds::Dense { .. } => {}
            RowIds::Narrowed { codes, .. } => codes.check("row ids", rows * 4, data_end)?,
            RowIds::Plain { values, .. } => values.check("row ids", rows * 8, data_end)?,
        }
        if let Some(dead) = self.dead {
            dead.check("dead rows", rows.div_ceil(64) * 8, data_end)?;
        }
        for column in &self.columns {
            let at = |e: Error| e.at(format_args!("field {}", column.field.0));
            column.encoding.check(column.data_type, rows, data_end).map_err(at)?;
            if let Some(validity) = column.validity {
                validity.check("validity", rows.div_ceil(64) * 8, data_end).map_err(at)?;
            }
        }
        self.check_rows()?;
        let blocks = data_end.div_ceil(BLOCK_BYTES as u64);
        if self.block_checksums.len() as u64 != blocks {
            let got = self.block_checksums.len();
            return Err(Error::corrupt(format!("{got} block checksums, expected {blocks}")));
        }
        Ok(())
    }
}

impl Footer {
    /// Refuses what no writer can have meant of rows that it has.
    fn check_rows(&self) -> Result<()> {
        let place = format_args!("segment {}", self.segment);
        let rows = u64::from(self.rows);
        let (first, last) = match self.row_ids {
            RowIds::Dense { first } => (first, first.checked_add(rows)),
            RowIds::Narrowed { first, last, .. } | RowIds::Plain { first, last, .. } => {
                (first, Some(last))
            }
        };
        invariant!(last.is_some_and(|last| first <= last), place, "row ids {first} to {last:?}");
        let mut fields = BTreeSet::new();
        for column in &self.columns {
            let field = column.field.0;
            invariant!(fields.insert(field), place, "two columns of field {field}");
            let zones = column.zones.len();
            let is_whole = zones == 0 || zones == (self.rows as usize).div_ceil(ZONE_ROWS);
            invariant!(is_whole, place, "field {field} has {zones} zones for {rows} rows");
            for (number, zone) in column.zones.iter().enumerate() {
                let rows = (self.rows as usize - number * ZONE_ROWS).min(ZONE_ROWS);
                let in_order = zone.is_in_order() && zone.null_count as usize <= rows;
                invariant!(in_order, place, "zone {number} of field {field} is {zone:?}");
            }
            self.check_sketch(column)?;
        }
        let mut before = 0;
        for ValueFileUse { file, bytes } in &self.value_files {
            let is_whole = *file > before && bytes.is_multiple_of(ALIGN_BYTES);
            invariant!(is_whole, place, "{bytes} bytes of value file {file} after {before}");
            before = *file;
        }
        Ok(())
    }
}

impl Footer {
    /// A sketch has a value where a zone has one, and no more than rows.
    fn check_sketch(&self, column: &ColumnLayout) -> Result<()> {
        let Some(sketch) = &column.sketch else { return Ok(()) };
        let (least, rows, field) = (sketch.least_count(), self.rows, column.field.0);
        let has_values = column.zones.iter().any(|zone| !zone.least.is_null());
        let is_right = least <= rows as usize && (least > 0 || !has_values);
        let place = format_args!("segment {}", self.segment);
        invariant!(is_right, place, "the sketch of field {field} has {least} of {rows} rows");
        Ok(())
    }
}

fn decode_column(input: &mut Reader<'_>, rows: u32, version: u32) -> Result<ColumnLayout> {
    let field = FieldId(input.u16()?);
    let data_type = DataType::decode(input)?;
    let encoding = Encoding::decode(input, data_type)?;
    if version < VERSION_OF_PACKED && encoding.is_packed() {
        let message = format!("field {} is packed in version {version}", field.0);
        return Err(Error::corrupt(message));
    }
    let has_validity = input.u8()? == 1;
    let validity = Some(Extent::decode(input)?).filter(|_| has_validity);
    let zone_count = input.count((rows as usize).div_ceil(ZONE_ROWS))?;
    let mut zones = Vec::with_capacity(zone_count);
    for _ in 0..zone_count {
        zones.push(ZoneEntry::decode(input, data_type)?);
    }
    let at = |e: Error| e.at(format_args!("field {}", field.0));
    let form = if version >= VERSION_OF_SKETCHES { input.u8()? } else { 0 };
    let sketch = match form {
        0 => None,
        1 => Some(FieldSketch::decode(input).map_err(at)?),
        other => return Err(at(Error::corrupt(format!("0 or 1 sketches, found {other}")))),
    };
    Ok(ColumnLayout { field, data_type, encoding, validity, zones, sketch })
}

/// The last [`TRAILER_BYTES`] of a segment file: where the footer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The version of the layout: [`VERSION`] of what is written.
    pub version: u32,
    /// Where the footer starts: the end of the data.
    pub footer_offset: u64,
    /// Bytes of the footer.
    pub footer_len: u64,
    /// The footer's checksum.
    pub footer_checksum: u64,
}

impl Trailer {
    /// The stored form, for a trailer at `place`.
    #[must_use]
    pub fn encode(&self, place: Place) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(&MAGIC);
        out.u32(self.version);
        out.u32(0);
        out.u64(self.footer_offset);
        out.u64(self.footer_len);
        out.u64(self.footer_checksum);
        out.u64(0);
        out.u64(0);
        out.u64(checksum(place, out.as_bytes()));
        out.into_bytes()
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the checksum does not fit, `UnknownVersion` for a newer layout.
    pub fn decode(bytes: &[u8], place: Place) -> Result<Self> {
        let mut input = Reader::new(bytes);
        if input.raw(8)? != MAGIC {
            return Err(Error::corrupt("the segment trailer has another magic"));
        }
        let version = input.u32()?;
        let _reserved = input.u32()?;
        let trailer = Self {
            version,
            footer_offset: input.u64()?,
            footer_len: input.u64()?,
            footer_checksum: input.u64()?,
        };
        let _reserved = (input.u64()?, input.u64()?);
        let covered = input.read_since(0)?;
        if input.u64()? != checksum(place, covered) {
            return Err(Error::corrupt("the segment trailer's checksum does not fit"));
        }
        if !(VERSION_MIN..=VERSION).contains(&version) {
            let known = format!("{VERSION_MIN} to {VERSION}");
            let message = format!("segment version {version}, this program knows {known}");
            return Err(Error::new(ErrorKind::UnknownVersion, message));
        }
        if trailer.footer_len > FOOTER_BYTES_MAX {
            return Err(Error::corrupt(format!("a footer of {} bytes", trailer.footer_len)));
        }
        Ok(trailer)
    }
}
