//! Segments: immutable files of columns.
//!
//! ```text
//! 0        64                                   data end          footer            file end
//! ├────────┼────────────┬────────────┬─────┬────┼─────────────────┼─────────────────┤
//! │ header │ buffer     │ buffer     │ …   │ pad│ footer          │ trailer (64 B)  │
//! └────────┴────────────┴────────────┴─────┴────┴─────────────────┴─────────────────┘
//!          each buffer starts at a multiple of 64
//! ```
//!
//! * The bytes before `data end` are covered by one checksum per [`BLOCK_BYTES`], kept in the
//!   footer; the footer and the trailer carry their own.
//! * Buffers have the Arrow memory layout: little-endian values, bit-packed validity with 1 for
//!   valid, 32-bit offsets.
//! * Rows stand in the order of their row ids, so that a row id is found by arithmetic or by
//!   binary search; or in the order of the key, where the table says so.
//! * Key and value of such a table may lie side by side: two columns in one heap, row by row.
//!
//! # Invariants
//!
//! The writer (`SegmentWriter` of `esker_table`) upholds them. Every segment is opened before a
//! frame names it, and at each start, so what `Footer::decode` asserts is asserted then.
//! 1. A file has the length that the catalogue has; its footer ends at the trailer, names the
//!    segment and its rows: asserted by `Segment::open`. It is of the table that names it: asserted
//!    by recovery, which also asserts that the table gives out greater row ids than it has.
//! 2. Every buffer has the length that the rows need, starts at a multiple of 64 and lies in the
//!    data; there is one checksum a block: `Footer::decode`.
//! 3. A field has one column. A column has a zone for each 8,192 rows, or none; a zone has no more
//!    NULLs than rows, and its least value is not above its greatest: `Footer::decode`.
//! 4. Rows that lie as they came have rising row ids: asserted by `SegmentWriter::finish`, which
//!    sees all; that the greatest is not below the least by `Footer::decode`.
//! 5. Value files are named by rising number, each with whole places of its values:
//!    `Footer::decode`. They are there: asserted by `Segment::open`.
//! 6. A row lies in the order of the key where the footer says so: `Database::check`.
//! 7. A sketch of a field has seen at least one value where there is one, and no more than there
//!    are rows: `Footer::decode`. It has seen each value of its rows, dead ones included:
//!    `Database::check`.

mod encode;
mod encoding;
mod field_sketch;
mod footer;
mod interleaved;
pub mod packed;
mod packed_extent;
mod packing;
mod reorder;
mod zone;

pub use encode::{
    Buffer, Encoded, EncodedColumn, encode_column, encode_long_column, encode_row_ids,
};
pub use encoding::{Encoding, Extent};
pub use field_sketch::{FieldSketch, SKETCH_ROWS_MIN, add_values, sketch_of_column};
pub use footer::{
    BLOCK_BYTES, ColumnLayout, FOOTER_BYTES_MAX, Footer, HEADER_BYTES, MAGIC, RowIds,
    SEGMENT_ROWS_MAX, TRAILER_BYTES, Trailer, VERSION, VERSION_MIN, ValueFileUse, header,
};
pub use interleaved::{Interleaved, Places};
pub use packed_extent::{CompressedExtent, HeapPlaces, PackedExtent};
pub use packing::{EncodedPlaces, Packing};
pub use reorder::Reordered;
pub use zone::{ZONE_ROWS, ZoneEntry};

#[cfg(test)]
mod tests;
