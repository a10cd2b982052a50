//! The checkpoint file: the catalogue, the delete vectors and the rows of small groups, exactly
//! as of one commit.
//!
//! ```text
//! header (64 B): magic, version, database, number, body length, checksum
//! body: pieces of at most 64 KiB: bytes, then their checksum (8 B), bound to their position
//! ```
//!
//! # Invariants
//!
//! [`Checkpoint::check`] asserts them before a file is written, and when one is opened; `decode`
//! asserts the last.
//! 1. Tables come by rising number, below the next, and each has a name of its own.
//! 2. A segment is named once in all, with a number below the next; and so are index files.
//! 3. Nothing is newer than the checkpoint's commit: no segment, no group, no seal.
//! 4. A sequence is named once, and so is a namespace; so is a view, and no table has its name.
//! 5. Dead rows rise, and are rows of their segment.
//!
//! That a checkpoint holds all commits up to its own is upheld where the tables are pinned
//! (`maintenance/checkpoint.rs` of `esker`); that it is trusted only once a frame names it, by
//! recovery.

use std::collections::BTreeSet;

use crate::checksum::{Place, checksum};
use crate::codec::{Reader, Writer};
use crate::edit::SegmentEntry;
use crate::namespace::NAMESPACES_MAX;
use crate::sequence::SEQUENCES_MAX;
use crate::view::VIEWS_MAX;
use crate::{
    ClockRecord, Error, ErrorKind, Namespace, Result, Schema, Sequence, TableId, View, comment,
    invariant,
};

/// The first bytes of every checkpoint file.
pub const MAGIC: [u8; 8] = *b"ESKERCKP";
/// The version of the layout that is written.
pub const VERSION: u32 = 17;
/// The oldest that is read.
pub const VERSION_MIN: u32 = 7;
/// The first with views.
const VERSION_WITH_VIEWS: u32 = 10;
/// The first with namespaces.
const VERSION_WITH_NAMESPACES: u32 = 13;
/// The first with comments on sequences and views.
const VERSION_WITH_COMMENTS: u32 = 15;
/// The first that says up to which row id events of a stream have ended.
const VERSION_WITH_ENDED_EVENTS: u32 = 16;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the body under one checksum.
pub const PIECE_BYTES: usize = 64 << 10;
/// The tag of checkpoint files in checksums.
const FILE_TAG: u64 = 2 << 56;
const TABLES_MAX: usize = 1 << 24;

/// Everything a checkpoint holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Checkpoint {
    /// The database's random identity.
    pub database: u128,
    /// The file's own number.
    pub number: u64,
    /// It holds exactly the effects of the commits up to this one.
    pub commit: u64,
    /// The key of the primary indexes' hash.
    pub hash_key: [u64; 2],
    /// The next table number.
    pub next_table: u32,
    /// The next segment number.
    pub next_segment: u64,
    /// The tables, by rising number.
    pub tables: Vec<TableState>,
    /// The sequences, by name.
    pub sequences: Vec<(String, Sequence)>,
    /// What is known of time, where that was ever needed.
    pub clock: Option<ClockRecord>,
    /// The views, by name.
    pub views: Vec<(String, View)>,
    /// The namespaces, by name.
    pub namespaces: Vec<(String, Namespace)>,
}

/// One table in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// Its number.
    pub table: TableId,
    /// Its name.
    pub name: String,
    /// Its schema.
    pub schema: Schema,
    /// The next row id.
    pub next_row_id: u64,
    /// Versions created up to this commit are in segments, in [`TableState::groups`], or dead.
    pub sealed_through: u64,
    /// Its segments.
    pub segments: Vec<SegmentState>,
    /// The number of the index checkpoint file; 0 when there is none.
    pub index_file: u64,
    /// The rows that are in no segment, group by group.
    pub groups: Vec<GroupState>,
    /// The greatest row id of an event of a stream that ended for its age; 0 for none.
    pub ended_row_id: u64,
}

/// One group in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupState {
    /// The newest commit that created one of its rows: a seal through this or later has them.
    pub newest_commit: u64,
    /// The rows, as changes (see [`crate::edit::RowChange`]).
    pub rows: Vec<u8>,
}

/// One segment in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentState {
    /// The segment.
    pub entry: SegmentEntry,
    /// Rows that died since the segment was written, rising.
    pub dead: Vec<u32>,
}

impl Checkpoint {
    /// The whole file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Writer::new();
        body.u64(self.commit);
        self.hash_key.iter().for_each(|k| body.u64(*k));
        body.u32(self.next_table);
        body.u64(self.next_segment);
        body.count(self.tables.len());
        self.tables.iter().for_each(|table| table.encode(&mut body));
        body.count(self.sequences.len());
        for (name, sequence) in &self.sequences {
            body.text(name);
            sequence.encode(&mut body);
            comment::encode(sequence.comment.as_deref(), &mut body);
        }
        body.u8(self.clock.is_some().into());
        if let Some(clock) = &self.clock {
            clock.encode(&mut body);
        }
        body.count(self.views.len());
        for (name, view) in &self.views {
            body.text(name);
            view.encode(&mut body);
            comment::encode(view.comment.as_deref(), &mut body);
        }
        body.count(self.namespaces.len());
        for (name, namespace) in &self.namespaces {
            body.text(name);
            namespace.encode(&mut body);
        }
        let body = body.into_bytes();
        let mut out = Writer::new();
        out.raw(&MAGIC);
        out.u32(VERSION);
        out.u32(0);
        out.raw(&self.database.to_le_bytes());
        out.u64(self.number);
        out.u64(body.len() as u64);
        out.u64(0);
        let sum = checksum(self.place(0), out.as_bytes());
        out.u64(sum);
        for piece in body.chunks(PIECE_BYTES) {
            let sum = checksum(self.place(out.len() as u64), piece);
            out.raw(piece);
            out.u64(sum);
        }
        out.into_bytes()
    }

    fn place(&self, position: u64) -> Place {
        Place { database: self.database, file: FILE_TAG | self.number, position }
    }

    /// Reads a whole file that is known to be number `number`.
    ///
    /// # Errors
    /// `Corrupt` with the offset when a checksum does not fit, `UnknownVersion` for a newer
    /// layout.
    pub fn decode(bytes: &[u8], number: u64) -> Result<Self> {
        let mut input = Reader::new(bytes);
        if input.raw(8)? != MAGIC {
            return Err(Error::corrupt("offset 0: not a checkpoint file"));
        }
        let version = input.u32()?;
        let _reserved = input.u32()?;
        let mut database = [0; 16];
        database.copy_from_slice(input.raw(16)?);
        let mut state = Self { database: u128::from_le_bytes(database), ..Self::default() };
        state.number = input.u64()?;
        let body_len = input.u64()?;
        let _reserved = input.u64()?;
        let covered = input.read_since(0)?;
        if input.u64()? != checksum(state.place(0), covered) || state.number != number {
            return Err(Error::corrupt("offset 0: the checkpoint header's checksum does not fit"));
        }
        if !(VERSION_MIN..=VERSION).contains(&version) {
            let known = format!("{VERSION_MIN} to {VERSION}");
            let message = format!("checkpoint version {version}, this program knows {known}");
            return Err(Error::new(ErrorKind::UnknownVersion, message));
        }
        let mut body = Vec::new();
        // default: what no memory holds is longer than the file, which ends early below.
        let mut left = usize::try_from(body_len).unwrap_or(usize::MAX);
        while left > 0 {
            let position = input.position() as u64;
            let piece = input.raw(left.min(PIECE_BYTES))?;
            if input.u64()? != checksum(state.place(position), piece) {
                return Err(Error::corrupt(format!("offset {position}: checksum does not fit")));
            }
            body.extend_from_slice(piece);
            left -= piece.len();
        }
        input.finish()?;
        state.decode_body(&body, version)?;
        Ok(state)
    }

    /// Refuses what no writer can have meant.
    ///
    /// # Errors
    /// `Corrupt` naming checkpoint, table and segment.
    pub fn check(&self) -> Result<()> {
        let number = self.number;
        let (mut names, mut files, mut last) = (BTreeSet::new(), BTreeSet::new(), None);
        for state in &self.tables {
            let id = state.table.0;
            let place = || format!("checkpoint {number}, table {id}");
            let (rises, is_below) = (last.is_none_or(|last| last < id), id < self.next_table);
            invariant!(rises && is_below, place(), "expected tables by rising number, each once");
            let is_own = names.insert(state.name.as_str());
            invariant!(is_own, place(), "another table is named {:?}", state.name);
            let segments = state.segments.iter().map(|segment| segment.entry.id);
            for file in segments.chain((state.index_file > 0).then_some(state.index_file)) {
                let is_own = file < self.next_segment && files.insert(file);
                invariant!(is_own, place(), "file {file} is named twice, or to come");
            }
            let held = state.segments.iter().map(|segment| segment.entry.holds_through);
            let groups = state.groups.iter().map(|group| group.newest_commit);
            let newest = held.chain(groups).fold(state.sealed_through, u64::max);
            let commit = self.commit;
            invariant!(newest <= commit, place(), "it has commit {newest}, past {commit}");
            last = Some(id);
        }
        let mut sequences = BTreeSet::new();
        for (name, _) in &self.sequences {
            let is_own = sequences.insert(name.as_str());
            invariant!(is_own, format_args!("checkpoint {number}"), "two sequences {name:?}");
        }
        for (name, _) in &self.views {
            let is_own = names.insert(name.as_str());
            invariant!(is_own, format_args!("checkpoint {number}"), "two of the name {name:?}");
        }
        let mut namespaces = BTreeSet::new();
        for (name, _) in &self.namespaces {
            let is_own = namespaces.insert(name.as_str());
            invariant!(is_own, format_args!("checkpoint {number}"), "two schemas {name:?}");
        }
        Ok(())
    }

    /// Reads what the checksums cover, without them: for fuzzing, which could not guess them.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not the body of a checkpoint.
    #[doc(hidden)]
    pub fn decode_body(&mut self, body: &[u8], version: u32) -> Result<()> {
        let mut input = Reader::new(body);
        self.commit = input.u64()?;
        self.hash_key = [input.u64()?, input.u64()?];
        self.next_table = input.u32()?;
        self.next_segment = input.u64()?;
        let count = input.count(TABLES_MAX)?;
        for _ in 0..count {
            self.tables.push(TableState::decode(&mut input, version)?);
        }
        for _ in 0..input.count(SEQUENCES_MAX)? {
            let (name, sequence) = (input.text()?.to_owned(), Sequence::decode(&mut input)?);
            let comment = decode_comment(&mut input, version)?.map(Into::into);
            self.sequences.push((name, Sequence { comment, ..sequence }));
        }
        self.clock = match version {
            VERSION_MIN => match input.u64()?.cast_signed() {
                // The time had not been needed.
                i64::MIN..=0 => None,
                now_us => Some(ClockRecord::of_time(now_us)),
            },
            _ => match input.u8()? {
                0 => None,
                1 => Some(ClockRecord::decode(&mut input)?),
                other => return Err(Error::corrupt(format!("flag {other} of a clock"))),
            },
        };
        let views = match version >= VERSION_WITH_VIEWS {
            true => input.count(VIEWS_MAX)?,
            false => 0,
        };
        for _ in 0..views {
            let (name, view) = (input.text()?.to_owned(), View::decode(&mut input)?);
            let comment = decode_comment(&mut input, version)?;
            self.views.push((name, View { comment, ..view }));
        }
        let namespaces = match version >= VERSION_WITH_NAMESPACES {
            true => input.count(NAMESPACES_MAX)?,
            false => 0,
        };
        for _ in 0..namespaces {
            let name = input.text()?.to_owned();
            self.namespaces.push((name, Namespace::decode(&mut input)?));
        }
        input.finish()
    }
}

/// The comment behind a sequence or a view.
fn decode_comment(input: &mut Reader<'_>, version: u32) -> Result<Option<String>> {
    if version >= VERSION_WITH_COMMENTS { comment::decode(input) } else { Ok(None) }
}

impl TableState {
    fn encode(&self, out: &mut Writer) {
        out.u32(self.table.0);
        out.text(&self.name);
        self.schema.encode(out);
        out.varint(self.next_row_id);
        out.varint(self.sealed_through);
        out.varint(self.index_file);
        out.count(self.segments.len());
        for segment in &self.segments {
            segment.entry.encode(out);
            out.count(segment.dead.len());
            let mut before = 0;
            for row in &segment.dead {
                out.varint(u64::from(row - before));
                before = *row;
            }
        }
        out.count(self.groups.len());
        for group in &self.groups {
            out.varint(group.newest_commit);
            out.bytes(&group.rows);
        }
        out.varint(self.ended_row_id);
    }

    fn decode(input: &mut Reader<'_>, version: u32) -> Result<Self> {
        let table = TableId(input.u32()?);
        let name = input.text()?.to_owned();
        let schema = Schema::decode(input)?;
        let next_row_id = input.varint()?;
        let sealed_through = input.varint()?;
        let index_file = input.varint()?;
        let count = input.count(1 << 20)?;
        let mut segments = Vec::new();
        for _ in 0..count {
            let entry = SegmentEntry::decode(input)?;
            let dead_count = input.count(input.remaining().min(entry.rows as usize))?;
            let mut dead = Vec::with_capacity(dead_count);
            let mut row = 0u64;
            for number in 0..dead_count {
                let distance = input.varint()?;
                row = row.saturating_add(distance);
                invariant!(
                    number == 0 || distance > 0,
                    format_args!("table {}, segment {}", table.0, entry.id),
                    "row {row} is dead twice"
                );
                let fits = u32::try_from(row).ok().filter(|row| *row < entry.rows);
                dead.push(fits.ok_or_else(|| {
                    Error::corrupt(format!("dead row {row} of {} rows", entry.rows))
                })?);
            }
            segments.push(SegmentState { entry, dead });
        }
        let count = input.count(1 << 20)?;
        let mut groups = Vec::new();
        for _ in 0..count {
            let newest_commit = input.varint()?;
            groups.push(GroupState { newest_commit, rows: input.bytes()?.to_vec() });
        }
        let ended_row_id = if version >= VERSION_WITH_ENDED_EVENTS { input.varint()? } else { 0 };
        Ok(Self {
            table,
            name,
            schema,
            next_row_id,
            sealed_through,
            segments,
            index_file,
            groups,
            ended_row_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;

    fn said(given: u64) -> Sequence {
        Sequence { start: 1, increment: 2, given, comment: Some("of orders".into()) }
    }

    #[test]
    fn survives_a_round_trip_and_refuses_every_flipped_bit() {
        let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build();
        let entry =
            SegmentEntry { id: 3, rows: 10, file_bytes: 4096, holds_through: 7, row_id_shift: 0 };
        let state = Checkpoint {
            database: 0x1234,
            number: 5,
            commit: 9,
            hash_key: [1, 2],
            next_table: 2,
            next_segment: 4,
            tables: vec![TableState {
                table: TableId(1),
                name: "people".into(),
                schema: schema.unwrap(),
                next_row_id: 11,
                sealed_through: 7,
                segments: vec![SegmentState { entry, dead: vec![0, 4, 9] }],
                index_file: 0,
                groups: vec![GroupState { newest_commit: 8, rows: vec![7; 100] }],
                ended_row_id: 6,
            }],
            sequences: vec![("orders".into(), said(33))],
            clock: Some(crate::clock_record::tests::full()),
            views: vec![
                ("adults".into(), crate::view::tests::full()),
                ("said".into(), View { comment: Some("who".into()), ..View::default() }),
            ],
            namespaces: vec![
                ("app".into(), Namespace::default()),
                ("shop".into(), Namespace { comment: Some("what is sold".into()) }),
            ],
        };
        let mut bytes = state.encode();
        assert_eq!(Checkpoint::decode(&bytes, 5).unwrap(), state);
        assert!(Checkpoint::decode(&bytes, 6).is_err(), "the number is part of the place");
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Checkpoint::decode(&bytes, 5).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_checkpoint_that_cannot_be_right_is_a_broken_invariant() {
        let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build();
        let entry =
            |id| SegmentEntry { id, rows: 10, file_bytes: 4096, holds_through: 7, row_id_shift: 0 };
        let table = |id, segment| TableState {
            table: TableId(id),
            name: format!("table{id}"),
            schema: schema.clone().unwrap(),
            next_row_id: 11,
            sealed_through: 7,
            segments: vec![SegmentState { entry: entry(segment), dead: vec![] }],
            index_file: 0,
            groups: vec![],
            ended_row_id: 0,
        };
        let with = |tables| Checkpoint {
            number: 5,
            commit: 7,
            next_table: 4,
            next_segment: 9,
            tables,
            ..Checkpoint::default()
        };
        assert_eq!(with(vec![table(1, 3), table(2, 4)]).check(), Ok(()));
        let same_name = TableState { name: "table1".to_owned(), ..table(2, 4) };
        let ahead = TableState { sealed_through: 8, ..table(1, 3) };
        let index = TableState { index_file: 3, ..table(1, 3) };
        for tables in [
            vec![table(1, 3), table(1, 4)],
            vec![table(2, 3), table(1, 4)],
            vec![table(4, 3)],
            vec![table(1, 3), table(2, 3)],
            vec![table(1, 9)],
            vec![table(1, 3), same_name],
            vec![ahead],
            vec![index],
        ] {
            let message = with(tables).check().unwrap_err().to_string();
            assert!(message.starts_with("checkpoint 5, table "), "{message}");
            assert!(message.contains("broken invariant: "), "{message}");
        }
        let mut twice = with(vec![table(1, 3)]);
        twice.sequences = vec![("s".into(), said(0)); 2];
        assert!(twice.check().is_err());
        let mut dead = with(vec![table(1, 3)]);
        dead.tables[0].segments[0].dead = vec![2, 2];
        assert!(Checkpoint::decode(&dead.encode(), 5).is_err());
    }

    /// A checkpoint of version 7 ends with the latest time that a reader or a commit had, or with
    /// 0.
    #[test]
    fn the_time_of_version_7_is_read() {
        let state = Checkpoint { next_table: 1, next_segment: 1, ..Checkpoint::default() };
        let bytes = state.encode();
        let body = |time_us: i64| {
            // Without what came later: the clock, views and namespaces, of which there are none.
            let mut body = bytes[HEADER_BYTES..bytes.len() - 8 - 3].to_vec();
            body.extend_from_slice(&time_us.to_le_bytes());
            body
        };
        let decode = |time_us: i64| {
            let mut decoded = Checkpoint::default();
            decoded.decode_body(&body(time_us), VERSION_MIN).unwrap();
            decoded.clock
        };
        assert_eq!((decode(0), decode(i64::MIN)), (None, None));
        assert_eq!(decode(70), Some(ClockRecord::of_time(70)));
        assert!(Checkpoint::default().decode_body(&body(70), VERSION).is_err());
    }
}
