//! The run of a trigram index: for each gram of the texts of a segment, the rows that have it.
//!
//! ```text
//! segment-…2a      row   0      1        run-…2a-0002   gram   ana  ban  nan
//!                  name  anan   banana                  count   2    1    2
//!                                                       rows   0,1   1   0,1
//! ```
//!
//! It is stored as a segment with a row for each gram, by rising gram.
//!
//! A text that has some part has all grams of the part, so a search for the part reads the
//! rows that all its grams have, and tests them. Rows with NULL, or fewer than three bytes, have no
//! gram. Dead rows have theirs.
//!
//! # Invariants
//!
//! Beside those of all runs, asserted when a run is written and when it is opened:
//! 1. Grams rise from zone to zone; within a zone `verify` compares them.
//! 2. The last is one that no text has, without rows: a list that is cut off lacks it.

use esker_format::grams::for_each_of_bytes;
use esker_format::postings::{Postings, decode};
use esker_format::{Column, ColumnSlice, DataType, Field, FieldId, Room, Schema, ValueRef};
use esker_log::sabotage::Bug;

use super::row_number::{number, row_limit};
use super::run::IndexRun;
use super::run_format::{NewRun, RunFormat, RunSource};
use super::run_writer::write_columns;
use crate::segment::Segment;
use crate::segment::sink::SegmentSink;
use crate::{Error, Result};

/// The columns of the file.
const GRAM: (FieldId, DataType) = (FieldId(1), DataType::U32);
const COUNT: (FieldId, DataType) = (FieldId(2), DataType::U32);
const ROWS: (FieldId, DataType) = (FieldId(3), DataType::Bytes);

/// No gram: it ends the list, so that no list is empty.
const END: u32 = u32::MAX;

fn field((id, data_type): (FieldId, DataType)) -> Field {
    Field::new(id, String::new(), data_type, false)
}

/// The rows of each gram, by rising gram: by its first two bytes, then by the third.
struct Gathered {
    by_start: Vec<Option<Box<[Postings; 256]>>>,
}

impl Gathered {
    fn of(texts: &ColumnSlice<'_>) -> Self {
        let mut by_start = Vec::new();
        by_start.resize_with(1 << 16, || None);
        let mut gathered = Self { by_start };
        for (row, at) in (0u32..).zip(0..texts.len) {
            if !texts.is_null(at) {
                for_each_of_bytes(texts.bytes(at), &mut |gram| gathered.push(gram, row));
            }
        }
        gathered
    }

    fn push(&mut self, gram: u32, row: u32) {
        let Some(same_start) = self.by_start.get_mut((gram >> 8) as usize) else { return };
        let new = || Box::new(std::array::from_fn(|_| Postings::default()));
        let postings = same_start.get_or_insert_with(new).get_mut((gram & 0xff) as usize);
        if let Some(postings) = postings {
            postings.push(row);
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &Postings)> {
        let starts = (0u32..).zip(&self.by_start);
        let all = starts.filter_map(|(start, same)| Some((start, same.as_deref()?)));
        let all = all.flat_map(|(start, same)| {
            (0u32..).zip(same).map(move |(last, postings)| (start << 8 | last, postings))
        });
        all.filter(|(_, postings)| postings.count() > 0)
    }
}

/// [`IndexKind::Trigram`](esker_format::schema::IndexKind::Trigram).
pub(super) struct Grams;

impl RunFormat for Grams {
    fn write(
        &self,
        new: NewRun<'_>,
        source: &dyn RunSource,
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment> {
        let NewRun { index, .. } = new;
        let mut columns = [GRAM, COUNT, ROWS].map(|(_, data_type)| Column::empty(data_type));
        let mut add = |gram: u32, postings: &Postings| {
            let rows = postings.encode();
            let count = postings.count();
            let values =
                [ValueRef::Uint(gram.into()), ValueRef::Uint(count.into()), ValueRef::Bytes(&rows)];
            columns.iter_mut().zip(values).try_for_each(|(column, value)| column.push(value))
        };
        for part in &index.fields {
            let room = Room::default();
            let gathered = Gathered::of(&source.column(new.indexed_field(part)?, &room)?);
            gathered.iter().try_for_each(|(gram, postings)| add(gram, postings))?;
        }
        if !Bug::GramsWithoutEnd.is_planted() {
            add(END, &Postings::default())?;
        }
        let columns: Vec<_> =
            [GRAM, COUNT, ROWS].into_iter().map(|(id, _)| id).zip(columns).collect();
        write_columns(new, &columns, sink)
    }

    fn broken_rule(&self, run: &IndexRun) -> Result<Option<String>> {
        let grams = field(GRAM);
        let mut last = None;
        for bounds in run.number_bounds(&grams) {
            match (last, bounds) {
                (None, Some((_, greatest))) => last = Some(greatest),
                (Some(before), Some((least, greatest))) if before < least => last = Some(greatest),
                _ => return Ok(Some(format!("grams do not rise behind {last:?}"))),
            }
        }
        let has_end = last == Some(END.into());
        Ok((!has_end).then(|| "the list of grams has no end".to_owned()))
    }

    fn is_readable_by(&self, run: &IndexRun, schema: &Schema) -> bool {
        run.index.fields.iter().all(|part| schema.field_of(part.field).is_some())
    }

    fn verify(&self, run: &IndexRun, owner: &Segment, schema: &Schema) -> Result<()> {
        let texts = run.index.fields.first().and_then(|part| schema.field_of(part.field));
        let Some(texts) = texts else { return Ok(()) };
        let room = Room::default();
        let gathered = Gathered::of(&RunSource::column(owner, texts, &room)?);
        let wrong = |gram: u32| {
            let (name, segment) = (&run.index.name, owner.id());
            let message = format!("index {name:?}, segment {segment}: wrong rows of gram {gram}");
            Error::corrupt(message)
        };
        let mut count = 0;
        for (gram, postings) in gathered.iter() {
            count += 1;
            let (rows, most) = (run.gram_rows(gram, owner.row_count())?, owner.row_count());
            let expected = decode(&postings.encode(), row_limit(most))?;
            if rows != expected || run.gram_count(gram)? != rows.len() {
                return Err(wrong(gram));
            }
        }
        if count + 1 == run.entries.row_count() { Ok(()) } else { Err(wrong(END)) }
    }
}

impl IndexRun {
    /// Where a gram stands.
    fn find_gram(&self, gram: u32) -> Result<Option<usize>> {
        let grams = field(GRAM);
        let (mut low, mut high) = (0, self.entries.row_count());
        while low < high {
            let middle = low.midpoint(high);
            let found = number(self.entries.value_as_stored(&grams, middle)?)?;
            if found == gram {
                return Ok(Some(middle));
            }
            if found < gram { low = middle + 1 } else { high = middle }
        }
        Ok(None)
    }

    /// How many rows have a gram, the dead ones included.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum; the same below.
    pub fn gram_count(&self, gram: u32) -> Result<usize> {
        let Some(at) = self.find_gram(gram)? else { return Ok(0) };
        Ok(number(self.entries.value_as_stored(&field(COUNT), at)?)? as usize)
    }

    /// The rows that have a gram, rising, of a segment of `rows` rows.
    ///
    /// # Errors
    /// `Corrupt` when they are not rows of the segment, too.
    pub fn gram_rows(&self, gram: u32, rows: usize) -> Result<Vec<u32>> {
        let Some(at) = self.find_gram(gram)? else { return Ok(Vec::new()) };
        let field = field(ROWS);
        let column = self.entries.column_as_stored(&field, at..at + 1)?;
        let found = decode(column.bytes(0), row_limit(rows));
        Ok(found.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?)
    }
}
