//! What log frames say: changes of rows, and edits of the catalogue.
//!
//! Both are logical and idempotent: they name tables, row ids and resulting values, never a
//! segment and row, and never "increment".
//!
//! # Invariants
//!
//! The writer of an edit upholds them. [`Edit::decode`] asserts the first three; replay asserts the
//! others, which speak of the commit or of the table.
//! 1. An edit names no segment twice, and a merge none of its inputs as a result. Numbers are those
//!    of [`SegmentEntry`], which are never used again.
//! 2. A segment of a seal holds at least the commits that are sealed.
//! 3. `Atomic` has no other `Atomic` in it, and its rows are changes. A truncated table is replaced
//!    by a younger one.
//! 4. A segment, and a checkpoint, holds only commits before the frame that names it.
//! 5. The elapsed time of the clock never falls from one record to the next.

use std::collections::BTreeSet;

use crate::codec::{Reader, Writer};
use crate::{
    ClockRecord, Error, Namespace, Result, Schema, Sequence, TableId, View, comment, invariant,
};

/// The frame kind of row changes.
pub const ROWS_FRAME: u16 = 0;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// One change of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChange<'a> {
    /// The row now has these values (in the form of [`crate::row`]); an older version is dead.
    Put {
        /// The table.
        table: TableId,
        /// The row.
        row_id: u64,
        /// The stored form of the values.
        row: &'a [u8],
    },
    /// The row is gone.
    Delete {
        /// The table.
        table: TableId,
        /// The row.
        row_id: u64,
    },
}

impl<'a> RowChange<'a> {
    /// The table.
    #[must_use]
    pub fn table(&self) -> TableId {
        let (Self::Put { table, .. } | Self::Delete { table, .. }) = self;
        *table
    }

    /// Appends the stored form of a put whose row `write` appends.
    pub fn encode_put(
        out: &mut Writer,
        table: TableId,
        row_id: u64,
        write: impl FnOnce(&mut Writer),
    ) {
        out.u8(PUT);
        out.varint(table.0.into());
        out.varint(row_id);
        // A row of 4 GiB fits no frame of the log, and so it is in no group either.
        out.counted(write);
    }

    /// Appends the stored form of a delete.
    pub fn encode_delete(out: &mut Writer, table: TableId, row_id: u64) {
        out.u8(DELETE);
        out.varint(table.0.into());
        out.varint(row_id);
    }

    /// The changes of a frame, one after another; nothing follows an error.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not changes.
    pub fn decode(bytes: &'a [u8]) -> impl Iterator<Item = Result<Self>> {
        let mut input = Reader::new(bytes);
        let mut failed = false;
        std::iter::from_fn(move || {
            if failed || input.remaining() == 0 {
                return None;
            }
            let change = Self::decode_one(&mut input);
            failed = change.is_err();
            Some(change)
        })
    }

    fn decode_one(input: &mut Reader<'a>) -> Result<Self> {
        let kind = input.u8()?;
        let table = table_id(input)?;
        let row_id = input.varint()?;
        match kind {
            PUT => {
                let len = input.u32()? as usize;
                Ok(Self::Put { table, row_id, row: input.raw(len)? })
            }
            DELETE => Ok(Self::Delete { table, row_id }),
            other => Err(Error::corrupt(format!("unknown row change {other}"))),
        }
    }
}

/// The comment behind a sequence or a view. Before version 16 of the log the frame ends there.
fn decode_comment(input: &mut Reader<'_>) -> Result<Option<String>> {
    if input.remaining() == 0 { Ok(None) } else { comment::decode(input) }
}

fn table_id(input: &mut Reader<'_>) -> Result<TableId> {
    let id = input.varint()?;
    u32::try_from(id).map(TableId).map_err(|_| Error::corrupt(format!("table number {id}")))
}

/// A segment as the catalogue knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its number, which names its file.
    pub id: u64,
    /// How many rows it has.
    pub rows: u32,
    /// The length of its file.
    pub file_bytes: u64,
    /// It holds the effects of all commits up to this one: replay applies only later deletes.
    pub holds_through: u64,
    /// What is to be added to the row ids in its file. Rows of a stream have their ids from the
    /// commit that makes them real, which comes after the file.
    pub row_id_shift: u64,
}

/// Marks the number of rows of an entry behind which the shift of its row ids follows: from version
/// 15 of the log and 14 of checkpoints on. No segment has so many rows.
const SHIFTED: u32 = 1 << 31;

impl SegmentEntry {
    /// Appends the stored form.
    pub fn encode(&self, out: &mut Writer) {
        out.varint(self.id);
        out.u32(self.rows | if self.row_id_shift == 0 { 0 } else { SHIFTED });
        out.varint(self.file_bytes);
        out.varint(self.holds_through);
        if self.row_id_shift != 0 {
            out.varint(self.row_id_shift);
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a segment entry.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let (id, rows) = (input.varint()?, input.u32()?);
        let (file_bytes, holds_through) = (input.varint()?, input.varint()?);
        let row_id_shift = if rows & SHIFTED == 0 { 0 } else { input.varint()? };
        if rows & SHIFTED != 0 && row_id_shift == 0 {
            return Err(Error::corrupt(format!("segment {id}: row ids shifted by nothing")));
        }
        Ok(Self { id, rows: rows & !SHIFTED, file_bytes, holds_through, row_id_shift })
    }
}

/// An edit of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields repeat the variant's description")]
pub enum Edit {
    /// A new table.
    CreateTable { table: TableId, name: String, schema: Schema },
    /// A table is gone, with all it held.
    DropTable { table: TableId },
    /// A bulk load, or a commit too large for a frame: these segments are rows of the table from
    /// this commit on, and older versions of the rows `replaced` are dead. So are those of the
    /// segments' own rows that later ones of them replace, `superseded`.
    Load {
        table: TableId,
        segments: Vec<SegmentEntry>,
        next_row_id: u64,
        replaced: Vec<u64>,
        superseded: Vec<u64>,
    },
    /// Every version created up to `through` that is not in a segment yet is in these, or dead.
    Seal { table: TableId, through: u64, segments: Vec<SegmentEntry> },
    /// These segments take the place of `inputs`.
    Merge { table: TableId, inputs: Vec<u64>, segments: Vec<SegmentEntry> },
    /// These segments of a stream have ended: each row that lived is dead from this commit on.
    /// `through_row_id` is the greatest row id of what ends with this commit.
    EndSegments { table: TableId, segments: Vec<u64>, through_row_id: u64 },
    /// The checkpoint file of this number holds exactly the commits up to `commit`.
    Checkpoint { number: u64, commit: u64 },
    /// From this commit on, a table has this name and this schema.
    AlterTable { table: TableId, name: String, schema: Schema },
    /// A table is gone, with all it held; an empty one takes its name and its schema.
    TruncateTable { table: TableId, replacement: TableId },
    /// A sequence is like this: it is new, or more of its values may be given out from now on.
    SetSequence { name: String, sequence: Sequence },
    /// A sequence is gone.
    DropSequence { name: String },
    /// A view is like this: it is new, or another query has its name.
    SetView { name: String, view: View },
    /// A view is gone.
    DropView { name: String },
    /// A namespace is there, like this.
    SetNamespace { name: String, namespace: Namespace },
    /// A namespace is gone.
    DropNamespace { name: String },
    /// What is known of time: the times by which rows have expired are never earlier, but for a
    /// date that a later one of these takes back.
    Clock(ClockRecord),
    /// One commit of these edits, none of which is another `Atomic`, and of changes of rows in
    /// the form of a frame of [`ROWS_FRAME`].
    Atomic { edits: Vec<Edit>, rows: Vec<u8> },
}

const CREATE_TABLE: u16 = 16;
const DROP_TABLE: u16 = 17;
const LOAD: u16 = 18;
const SEAL: u16 = 19;
const MERGE: u16 = 20;
const CHECKPOINT: u16 = 21;
const ALTER_TABLE: u16 = 22;
const TRUNCATE_TABLE: u16 = 23;
const SET_SEQUENCE: u16 = 24;
const DROP_SEQUENCE: u16 = 25;
/// Before version 9 of the log: the latest time that a reader or a commit had.
const TIME: u16 = 26;
const ATOMIC: u16 = 27;
const CLOCK: u16 = 28;
const SET_VIEW: u16 = 29;
const DROP_VIEW: u16 = 30;
const SET_NAMESPACE: u16 = 31;
const DROP_NAMESPACE: u16 = 32;
/// From version 17 of the log on.
const END_SEGMENTS: u16 = 33;
const SEGMENTS_MAX: usize = 1 << 20;
const REPLACED_MAX: usize = 1 << 26;
const EDITS_MAX: usize = 1 << 16;

impl Edit {
    /// The kind of the frame that carries this edit.
    #[must_use]
    pub fn frame_kind(&self) -> u16 {
        match self {
            Self::CreateTable { .. } => CREATE_TABLE,
            Self::DropTable { .. } => DROP_TABLE,
            Self::Load { .. } => LOAD,
            Self::Seal { .. } => SEAL,
            Self::Merge { .. } => MERGE,
            Self::Checkpoint { .. } => CHECKPOINT,
            Self::AlterTable { .. } => ALTER_TABLE,
            Self::TruncateTable { .. } => TRUNCATE_TABLE,
            Self::SetSequence { .. } => SET_SEQUENCE,
            Self::DropSequence { .. } => DROP_SEQUENCE,
            Self::SetView { .. } => SET_VIEW,
            Self::DropView { .. } => DROP_VIEW,
            Self::SetNamespace { .. } => SET_NAMESPACE,
            Self::DropNamespace { .. } => DROP_NAMESPACE,
            Self::EndSegments { .. } => END_SEGMENTS,
            Self::Clock(_) => CLOCK,
            Self::Atomic { .. } => ATOMIC,
        }
    }

    /// True for the kinds of frames that carry an edit.
    #[must_use]
    pub fn is_edit(frame_kind: u16) -> bool {
        (CREATE_TABLE..=END_SEGMENTS).contains(&frame_kind)
    }

    /// The stored form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Self::CreateTable { table, name, schema }
            | Self::AlterTable { table, name, schema } => {
                out.varint(table.0.into());
                out.text(name);
                schema.encode(&mut out);
            }
            Self::DropTable { table } => out.varint(table.0.into()),
            Self::Load { table, segments, next_row_id, replaced, superseded } => {
                out.varint(table.0.into());
                encode_segments(&mut out, segments);
                out.varint(*next_row_id);
                encode_row_ids(&mut out, replaced);
                encode_row_ids(&mut out, superseded);
            }
            Self::Seal { table, through, segments } => {
                out.varint(table.0.into());
                out.varint(*through);
                encode_segments(&mut out, segments);
            }
            Self::Merge { table, inputs, segments } => {
                out.varint(table.0.into());
                encode_ids(&mut out, inputs);
                encode_segments(&mut out, segments);
            }
            Self::EndSegments { table, segments, through_row_id } => {
                out.varint(table.0.into());
                out.varint(*through_row_id);
                encode_ids(&mut out, segments);
            }
            Self::Checkpoint { number, commit } => {
                out.varint(*number);
                out.varint(*commit);
            }
            Self::TruncateTable { table, replacement } => {
                out.varint(table.0.into());
                out.varint(replacement.0.into());
            }
            Self::SetSequence { name, sequence } => {
                out.text(name);
                sequence.encode(&mut out);
                comment::encode(sequence.comment.as_deref(), &mut out);
            }
            Self::SetView { name, view } => {
                out.text(name);
                view.encode(&mut out);
                view.encode_rest(&mut out);
            }
            Self::SetNamespace { name, namespace } => {
                out.text(name);
                namespace.encode(&mut out);
            }
            Self::DropSequence { name }
            | Self::DropView { name }
            | Self::DropNamespace { name } => out.text(name),
            Self::Clock(record) => record.encode(&mut out),
            Self::Atomic { edits, rows } => {
                out.count(edits.len());
                for edit in edits {
                    out.u16(edit.frame_kind());
                    out.bytes(&edit.encode());
                }
                out.raw(rows);
            }
        }
        out.into_bytes()
    }

    /// Reads the stored form of a frame of `kind`.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not such an edit.
    pub fn decode(kind: u16, bytes: &[u8]) -> Result<Self> {
        let mut input = Reader::new(bytes);
        let edit = match kind {
            CREATE_TABLE => Self::CreateTable {
                table: table_id(&mut input)?,
                name: input.text()?.to_owned(),
                schema: Schema::decode(&mut input)?,
            },
            DROP_TABLE => Self::DropTable { table: table_id(&mut input)? },
            LOAD => {
                let table = table_id(&mut input)?;
                let segments = decode_segments(&mut input)?;
                let next_row_id = input.varint()?;
                let replaced = decode_row_ids(&mut input)?;
                let superseded = decode_row_ids(&mut input)?;
                Self::Load { table, segments, next_row_id, replaced, superseded }
            }
            SEAL => Self::Seal {
                table: table_id(&mut input)?,
                through: input.varint()?,
                segments: decode_segments(&mut input)?,
            },
            MERGE => {
                let (table, inputs) = (table_id(&mut input)?, decode_ids(&mut input)?);
                Self::Merge { table, inputs, segments: decode_segments(&mut input)? }
            }
            END_SEGMENTS => {
                let (table, through_row_id) = (table_id(&mut input)?, input.varint()?);
                Self::EndSegments { table, segments: decode_ids(&mut input)?, through_row_id }
            }
            CHECKPOINT => Self::Checkpoint { number: input.varint()?, commit: input.varint()? },
            ALTER_TABLE => Self::AlterTable {
                table: table_id(&mut input)?,
                name: input.text()?.to_owned(),
                schema: Schema::decode(&mut input)?,
            },
            TRUNCATE_TABLE => Self::TruncateTable {
                table: table_id(&mut input)?,
                replacement: table_id(&mut input)?,
            },
            SET_SEQUENCE => {
                let (name, sequence) = (input.text()?.to_owned(), Sequence::decode(&mut input)?);
                let comment = decode_comment(&mut input)?.map(Into::into);
                Self::SetSequence { name, sequence: Sequence { comment, ..sequence } }
            }
            DROP_SEQUENCE => Self::DropSequence { name: input.text()?.to_owned() },
            SET_VIEW => {
                let (name, view) = (input.text()?.to_owned(), View::decode(&mut input)?);
                let comment = decode_comment(&mut input)?;
                // Before version 18 of the log the frame ends there.
                let is_rollup = input.remaining() > 0 && View::decode_is_rollup(&mut input)?;
                Self::SetView { name, view: View { comment, is_rollup, ..view } }
            }
            DROP_VIEW => Self::DropView { name: input.text()?.to_owned() },
            SET_NAMESPACE => Self::SetNamespace {
                name: input.text()?.to_owned(),
                namespace: Namespace::decode(&mut input)?,
            },
            DROP_NAMESPACE => Self::DropNamespace { name: input.text()?.to_owned() },
            TIME => Self::Clock(ClockRecord::of_time(input.u64()?.cast_signed())),
            CLOCK => Self::Clock(ClockRecord::decode(&mut input)?),
            ATOMIC => decode_atomic(&mut input)?,
            other => return Err(Error::corrupt(format!("unknown edit {other}"))),
        };
        input.finish()?;
        edit.check()?;
        Ok(edit)
    }

    /// Refuses what no writer can have meant.
    fn check(&self) -> Result<()> {
        match self {
            Self::Load { table, segments, .. } => check_segments(*table, &[], segments),
            Self::Seal { table, through, segments } => {
                for SegmentEntry { id, holds_through, .. } in segments {
                    invariant!(
                        holds_through >= through,
                        format_args!("a seal of table {}", table.0),
                        "segment {id} holds commits through {holds_through}, not {through}"
                    );
                }
                check_segments(*table, &[], segments)
            }
            Self::Merge { table, inputs, segments } => check_segments(*table, inputs, segments),
            Self::EndSegments { table, segments, .. } => check_segments(*table, segments, &[]),
            Self::TruncateTable { table, replacement } => {
                invariant!(
                    replacement > table,
                    format_args!("a truncation of table {}", table.0),
                    "table {} takes its place",
                    replacement.0
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses what an edit of this commit cannot say.
    ///
    /// # Errors
    /// `Corrupt` naming table and segment.
    pub fn check_commit(&self, commit: u64) -> Result<()> {
        match self {
            Self::Seal { table, segments, .. } | Self::Merge { table, segments, .. } => {
                for SegmentEntry { id, holds_through, .. } in segments {
                    invariant!(
                        *holds_through < commit,
                        format_args!("table {}, segment {id}", table.0),
                        "it holds commits through {holds_through}, its frame is that of {commit}"
                    );
                }
                Ok(())
            }
            Self::Checkpoint { number, commit: held } => {
                invariant!(
                    *held < commit,
                    format_args!("checkpoint {number}"),
                    "it holds commits through {held}, its frame is that of {commit}"
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Refuses segments that are named twice.
fn check_segments(table: TableId, inputs: &[u64], segments: &[SegmentEntry]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for id in inputs.iter().copied().chain(segments.iter().map(|segment| segment.id)) {
        let place = format_args!("table {}", table.0);
        invariant!(id > 0 && seen.insert(id), place, "an edit names segment {id} twice, or none");
    }
    Ok(())
}

/// Appends a count and that many numbers of segments.
fn encode_ids(out: &mut Writer, ids: &[u64]) {
    out.count(ids.len());
    ids.iter().for_each(|id| out.varint(*id));
}

/// Reads what [`encode_ids`] wrote.
fn decode_ids(input: &mut Reader<'_>) -> Result<Vec<u64>> {
    let count = input.count(SEGMENTS_MAX)?;
    (0..count).map(|_| input.varint()).collect()
}

fn decode_atomic(input: &mut Reader<'_>) -> Result<Edit> {
    let mut edits = Vec::new();
    for _ in 0..input.count(EDITS_MAX)? {
        let kind = input.u16()?;
        if kind == ATOMIC {
            return Err(Error::corrupt("edits together within others"));
        }
        edits.push(Edit::decode(kind, input.bytes()?)?);
    }
    let rows = input.raw(input.remaining())?;
    RowChange::decode(rows).try_for_each(|change| change.map(drop))?;
    Ok(Edit::Atomic { edits, rows: rows.to_vec() })
}

/// Appends a count and that many row ids, rising, as distances.
fn encode_row_ids(out: &mut Writer, row_ids: &[u64]) {
    let mut sorted = row_ids.to_vec();
    sorted.sort_unstable();
    out.count(sorted.len());
    let mut before = 0;
    for row_id in sorted {
        out.varint(row_id - before);
        before = row_id;
    }
}

fn decode_row_ids(input: &mut Reader<'_>) -> Result<Vec<u64>> {
    let mut row_ids = Vec::new();
    let mut before = 0u64;
    for _ in 0..input.count(REPLACED_MAX)? {
        let row_id = before.checked_add(input.varint()?);
        before = row_id.ok_or_else(|| Error::corrupt("a row id past 64 bits"))?;
        row_ids.push(before);
    }
    Ok(row_ids)
}

/// Appends a count and that many segment entries.
pub fn encode_segments(out: &mut Writer, segments: &[SegmentEntry]) {
    out.count(segments.len());
    segments.iter().for_each(|s| s.encode(out));
}

/// Reads what [`encode_segments`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes are not segment entries.
pub fn decode_segments(input: &mut Reader<'_>) -> Result<Vec<SegmentEntry>> {
    let count = input.count(SEGMENTS_MAX)?;
    let mut segments = Vec::new();
    for _ in 0..count {
        segments.push(SegmentEntry::decode(input)?);
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(id: u64, holds_through: u64) -> SegmentEntry {
        SegmentEntry { id, rows: 3, file_bytes: 4_096, holds_through, row_id_shift: 0 }
    }

    fn decoded(edit: &Edit) -> Result<Edit> {
        Edit::decode(edit.frame_kind(), &edit.encode())
    }

    #[test]
    fn an_edit_that_names_a_segment_twice_is_a_broken_invariant() {
        let table = TableId(2);
        let merge = |inputs: &[u64], id| {
            let segments = vec![segment(id, 7)];
            Edit::Merge { table, inputs: inputs.to_vec(), segments }
        };
        assert_eq!(decoded(&merge(&[4, 5], 6)), Ok(merge(&[4, 5], 6)));
        for bad in [merge(&[4, 4], 6), merge(&[4, 5], 5), merge(&[4], 0)] {
            let message = decoded(&bad).unwrap_err().to_string();
            assert!(message.starts_with("table 2: broken invariant: "), "{message}");
        }
        let ended = |segments: &[u64]| {
            let (segments, through_row_id) = (segments.to_vec(), 1 << 40);
            Edit::EndSegments { table, segments, through_row_id }
        };
        assert_eq!(decoded(&ended(&[])), Ok(ended(&[])));
        assert_eq!(decoded(&ended(&[9, 4])), Ok(ended(&[9, 4])));
        assert!(decoded(&ended(&[4, 4])).is_err() && decoded(&ended(&[0])).is_err());
        let back = Edit::TruncateTable { table, replacement: TableId(1) };
        assert!(decoded(&back).is_err());
    }

    #[test]
    fn a_segment_holds_what_is_sealed_and_nothing_behind_its_frame() {
        let seal = |holds_through| {
            let segments = vec![segment(4, holds_through)];
            Edit::Seal { table: TableId(2), through: 7, segments }
        };
        assert!(decoded(&seal(6)).is_err());
        assert!(decoded(&seal(7)).is_ok());
        assert!(seal(8).check_commit(9).is_ok());
        let message = seal(9).check_commit(9).unwrap_err().to_string();
        assert!(message.starts_with("table 2, segment 4: broken invariant: "), "{message}");
        assert!(Edit::Checkpoint { number: 1, commit: 9 }.check_commit(9).is_err());
    }
}
