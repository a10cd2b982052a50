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

mod encode;
mod footer;
mod interleaved;
mod reorder;
mod zone;

pub use encode::{
    Buffer, Encoded, EncodedColumn, encode_column, encode_long_column, encode_row_ids,
};
pub use footer::{
    BLOCK_BYTES, ColumnLayout, Encoding, Extent, FOOTER_BYTES_MAX, Footer, HEADER_BYTES, MAGIC,
    RowIds, SEGMENT_ROWS_MAX, TRAILER_BYTES, Trailer, VERSION, VERSION_MIN, ValueFileUse, header,
};
pub use interleaved::{Interleaved, Places};
pub use reorder::Reordered;
pub use zone::{ZONE_ROWS, ZoneEntry};

#[cfg(test)]
mod tests;
