//! The run of an ordered index: the rows of a segment in the order of some fields.
//!
//! # Invariants
//!
//! Beside those of all runs:
//! 1. There are as many entries as rows, or as rows that the filter of the index has: asserted when
//!    a run is written and when it is opened, as far as the number of rows says it.
//! 2. Entries are sorted by the fields, each ascending or descending, NULL last; ties by row.
//!    Asserted where a run is written: of the first and the last entry of each zone, and by a debug
//!    build of all.
//! 3. Entries are of rows of the segment, from the first to the last: asserted when a run is
//!    written and when it is opened, of the least and the greatest.

use std::cmp::Ordering;
use std::ops::Range;

use esker_format::order_key::{Key, KeyRange, key};
use esker_format::schema::{Index, IndexField};
use esker_format::segment::{Reordered, ZONE_ROWS, encode_column};
use esker_format::{
    Column, ColumnSlice, DataType, Field, FieldId, Room, Schema, ValueRef, invariant,
};
use esker_log::sabotage::Bug;

use super::dead;
use super::run::{IndexRun, KEY_BYTES_MAX, ROW_FIELD, document_text};
use super::run_format::{NewRun, RunFormat, RunSource, new_for};
use super::run_writer::RunWriter;
use super::search::{Probe, Whole};
use super::sort::sorted_rows;
use crate::index_values::{ComputedValues, Failing};
use crate::segment::Segment;
use crate::segment::sink::SegmentSink;
use crate::visibility::Visibility;
use crate::{Error, Result};

/// [`IndexKind::Ordered`](esker_format::schema::IndexKind::Ordered).
pub(super) struct Sorted;

impl RunFormat for Sorted {
    fn write(
        &self,
        new: NewRun<'_>,
        source: &dyn RunSource,
        sink: &mut dyn SegmentSink,
    ) -> Result<Segment> {
        write(new, source, sink)
    }

    fn entry_count(&self, rows: usize) -> Option<usize> {
        Some(rows)
    }

    fn broken_rule(&self, run: &IndexRun) -> Result<Option<String>> {
        let rows = run.row_count();
        let field = Field::new(ROW_FIELD, String::new(), DataType::U32, false);
        let (mut least, mut greatest) = (u64::MAX, 0);
        for bounds in run.number_bounds(&field) {
            // default: not a row number, and beyond all rows
            let bounds = bounds.unwrap_or((u64::MAX, u64::MAX));
            (least, greatest) = (least.min(bounds.0), greatest.max(bounds.1));
        }
        let is_right = match run.index.filter {
            _ if run.is_empty() => rows == 0 || run.index.filter.is_some(),
            Some(_) => greatest < rows as u64,
            None => least == 0 && greatest == rows as u64 - 1,
        };
        Ok((!is_right).then(|| format!("entries of rows {least} to {greatest}, of {rows}")))
    }

    fn is_readable_by(&self, run: &IndexRun, schema: &Schema) -> bool {
        has_fields_of(run, schema)
    }

    fn verify(&self, run: &IndexRun, owner: &Segment, schema: &Schema) -> Result<()> {
        let wrong = |what: &str, entry: usize| {
            let (name, segment) = (&run.index.name, owner.id());
            let message = format!("index {name:?}, segment {segment}, entry {entry}: {what}");
            Error::corrupt(message)
        };
        let mut seen = vec![false; owner.row_count()];
        let parts = Parts::new(new_for(run, owner, schema), owner)?;
        let stored = run.index.fields.iter().zip(&run.made).filter_map(|(part, made)| {
            if part.is_field() { schema.field_of(part.field) } else { Some(made) }
        });
        let stored: Vec<&Field> = stored.collect();
        let room = Room::default();
        let columns = parts.columns(new_for(run, owner, schema), (owner, &room))?;
        let by: Vec<_> =
            columns.iter().map(|(_, column, descending)| (*column, *descending)).collect();
        let mut last: Option<u32> = None;
        for (entry, row) in run.rows(0..run.len())?.iter().enumerate() {
            match seen.get_mut(*row as usize) {
                Some(seen) if !*seen && parts.has(*row as usize) => *seen = true,
                Some(seen) if !*seen => return Err(wrong("a row that is not in it", entry)),
                _ => return Err(wrong("a row comes twice", entry)),
            }
            for ((_, column, _), stored) in columns.iter().zip(&stored) {
                let found = run.entries.value_as_stored(stored, entry)?;
                if column.value(*row as usize).shortened(KEY_BYTES_MAX) != found {
                    return Err(wrong("another value than the row has", entry));
                }
            }
            if let Some(before) = last
                && order_of(&by, before, *row).then(before.cmp(row)).is_ge()
            {
                return Err(wrong("not in order", entry));
            }
            last = Some(*row);
        }
        let is_missing = |row: &usize| parts.has(*row) && seen.get(*row) == Some(&false);
        match (0..owner.row_count()).find(is_missing) {
            Some(row) => Err(wrong(&format!("no entry of row {row}"), run.len())),
            None => Ok(()),
        }
    }
}

/// What of the parts of an index is in no field of its rows.
struct Parts {
    /// The texts of paths, by part.
    texts: Vec<Option<Column>>,
    computed: ComputedValues,
}

impl Parts {
    fn new(new: NewRun<'_>, source: &dyn RunSource) -> Result<Self> {
        let (mut texts, room) = (Vec::new(), Room::default());
        for part in &new.index.fields {
            texts.push(match part.path.is_empty() {
                true => None,
                false => {
                    let documents = source.column(new.indexed_field(part)?, &room)?;
                    Some(texts_at(&part.path, &documents)?)
                }
            });
        }
        let computed = match new.values {
            None => ComputedValues::default(),
            Some(values) => {
                let field = |id| new.schema.field_of(id).ok_or_else(|| new.no_field());
                let column = |id: &FieldId| source.column(field(*id)?, &room);
                let read = values.reads().iter().map(column).collect::<Result<Vec<_>>>()?;
                values.compute(&read, source.row_count(), Failing::LeftOut)?
            }
        };
        Ok(Self { texts, computed })
    }

    fn has(&self, row: usize) -> bool {
        self.computed.has(row)
    }

    /// The whole columns of the parts, under which number each is stored, and whether the greatest
    /// value comes first.
    fn columns<'a>(
        &'a self,
        new: NewRun<'a>,
        (source, room): (&'a dyn RunSource, &'a Room),
    ) -> Result<Vec<(FieldId, ColumnSlice<'a>, bool)>> {
        let mut columns = Vec::new();
        for (number, part) in new.index.fields.iter().enumerate() {
            let texts = self.texts.get(number).and_then(Option::as_ref);
            let computed = self.computed.columns.get(number).and_then(Option::as_ref);
            let (id, column) = match texts.or(computed) {
                Some(made) => (Index::computed_id(number), ColumnSlice::from(made)),
                None => {
                    let field = new.indexed_field(part)?;
                    (field.id, source.column(field, room)?)
                }
            };
            columns.push((id, column, part.descending));
        }
        Ok(columns)
    }
}

/// True when the reader's schema has the fields of the index, none of them of a narrower type.
pub(super) fn has_fields_of(run: &IndexRun, schema: &Schema) -> bool {
    let reads = run.index.expressions().flat_map(|expression| &expression.reads);
    let is_computed_of_fields = reads.into_iter().all(|id| schema.field_of(*id).is_some());
    is_computed_of_fields
        && run.index.fields.iter().all(|part| {
            if part.expression.is_some() {
                return true;
            }
            let field = schema.field_of(part.field);
            if !part.path.is_empty() {
                return field.is_some_and(|field| field.data_type == DataType::Json);
            }
            let stored = field.and_then(|field| Some((run.entries.stored_type(field)?, field)));
            stored.is_some_and(|(stored, field)| stored.widens_to(field.data_type))
        })
}

fn write(new: NewRun<'_>, source: &dyn RunSource, sink: &mut dyn SegmentSink) -> Result<Segment> {
    let rows = source.row_count();
    let parts = Parts::new(new, source)?;
    let room = Room::default();
    let columns = parts.columns(new, (source, &room))?;
    let by: Vec<(ColumnSlice<'_>, bool)> = columns.iter().map(|(_, c, d)| (*c, *d)).collect();
    let by: Vec<_> = match Bug::RunIgnoresDescending.is_planted() {
        true => by.iter().map(|(column, _)| (*column, false)).collect(),
        false => by,
    };
    let mut order = sorted_rows(rows, &by).map_err(|e| new.at(e))?;
    order.retain(|row| parts.has(*row as usize));
    if Bug::RunNotSorted.is_planted() {
        order.sort_unstable();
    }
    if Bug::RunLastEntryOutOfOrder.is_planted() && order.len() > 1 {
        order.rotate_left(1);
    }
    expect_sorted(&by, &order).map_err(|e| new.at(e.into()))?;
    let mut writer = RunWriter::create(new, order.len(), sink)?;
    for (id, values, _) in &columns {
        let reordered = Reordered::new(values, &order, KEY_BYTES_MAX)?;
        writer.column(&reordered.encode(*id))?;
    }
    let mut column = Column::empty(DataType::U32);
    column.values = esker_format::Values::U32(order);
    writer.column(&encode_column(ROW_FIELD, &column))?;
    writer.finish()
}

/// Asserts that entries are in order: the first and the last of each zone, or all in a debug build.
pub(super) fn expect_sorted(
    by: &[(ColumnSlice<'_>, bool)],
    order: &[u32],
) -> esker_format::Result<()> {
    let step = if cfg!(debug_assertions) { 1 } else { ZONE_ROWS - 1 };
    let mut before: Option<(usize, u32)> = None;
    let last = order.len().checked_sub(1);
    for entry in (0..order.len()).step_by(step).chain(last) {
        // default: an entry of the list, as it is counted above
        let row = order.get(entry).copied().unwrap_or_default();
        if let Some((before, row_before)) = before.filter(|(before, _)| *before < entry) {
            let rises = order_of(by, row_before, row).then(row_before.cmp(&row)).is_lt();
            let place = format_args!("entry {entry}");
            invariant!(rises, place, "it is not behind entry {before} in the order of the run");
        }
        before = Some((entry, row));
    }
    Ok(())
}

/// The order of two rows.
fn order_of(by: &[(ColumnSlice<'_>, bool)], a: u32, b: u32) -> Ordering {
    let (a, b) = (a as usize, b as usize);
    let orders =
        by.iter().map(|(column, descending)| match (column.is_null(a), column.is_null(b)) {
            (false, false) if *descending => column.value(b).compare(column.value(a)),
            (false, false) => column.value(a).compare(column.value(b)),
            (a, b) => a.cmp(&b),
        });
    orders.fold(Ordering::Equal, Ordering::then)
}

/// The texts at the end of a path into the documents of a column.
fn texts_at(path: &[String], documents: &ColumnSlice<'_>) -> Result<Column> {
    let mut texts = Column::empty(DataType::Text);
    for at in 0..documents.len {
        match document_text(documents.value(at), path) {
            Some(text) => texts.push(ValueRef::Text(&text))?,
            None => texts.push_null(),
        }
    }
    Ok(texts)
}

impl IndexRun {
    /// The entries, among some that are equal in all fields before number `number`, whose value of
    /// that field lies in a range. `owner` is the segment, `schema` the reader's.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn find(
        &self,
        owner: &Segment,
        schema: &Schema,
        within: Range<usize>,
        number: usize,
        range: &KeyRange<'_>,
    ) -> Result<Range<usize>> {
        let part = self.index.fields.get(number).zip(self.made.get(number));
        let whole = part.and_then(|(part, _)| self.whole(part, number, schema));
        let Some(((part, made), whole)) = part.zip(whole) else {
            let message = format!("index {:?} has no field {number}", self.index.name);
            return Err(Error::corrupt(message));
        };
        let field = if let Whole::Field(field) = whole { field } else { made };
        if let KeyRange::Keys(least, greatest) = range
            && number == 0
            && within == (0..self.len())
            && let Some(found) = self.find_whole(field, (*least, *greatest))?
        {
            return Ok(found);
        }
        let leading = (number == 0).then_some(part);
        let probe = Probe { run: self, owner, field, whole, leading };
        let nulls = match Bug::RunForgetsNulls.is_planted() || !self.entries.has_nulls(field) {
            true => within.end,
            false => probe.first(within.clone(), |value, _| Ok(!value.is_null()))?,
        };
        let values = within.start..nulls;
        let descending = part.descending;
        match range {
            KeyRange::Null => Ok(nulls..within.end),
            KeyRange::NotNull => Ok(values),
            KeyRange::Keys(least, greatest) => {
                if least > greatest {
                    return Ok(values.start..values.start);
                }
                let below = |k: Key| if descending { k > *greatest } else { k < *least };
                let above = |k: Key| if descending { k < *least } else { k > *greatest };
                let start = probe.first(values.clone(), |value, _| Ok(below(key(value))))?;
                let end = probe.first_near(start..values.end, |value, _| Ok(!above(key(value))))?;
                Ok(start..end)
            }
            KeyRange::Bytes(least, greatest) => {
                let (below, above) = (
                    |value: &[u8], entry| probe.is_below(value, entry, least),
                    |value: &[u8], entry| probe.is_above(value, entry, greatest),
                );
                let (mut start, mut end);
                let rest;
                if descending {
                    start = probe.first(values.clone(), |v, e| above(probe.bytes(v)?, e))?;
                    rest = start..values.end;
                    end = probe.first_near(rest, |v, e| Ok(!below(probe.bytes(v)?, e)?))?;
                } else {
                    start = probe.first(values.clone(), |v, e| below(probe.bytes(v)?, e))?;
                    rest = start..values.end;
                    end = probe.first_near(rest, |v, e| Ok(!above(probe.bytes(v)?, e)?))?;
                }
                // An empty range: its end lies before its start.
                end = end.max(start);
                start = start.min(end);
                Ok(start..end)
            }
        }
    }

    /// Where the segment has the values of a part.
    fn whole<'a>(
        &'a self,
        part: &'a IndexField,
        number: usize,
        schema: &'a Schema,
    ) -> Option<Whole<'a>> {
        if part.expression.is_some() {
            return Some(Whole::Computed(&**self.values.as_ref()?, number, schema));
        }
        let field = schema.field_of(part.field)?;
        Some(match part.path.is_empty() {
            true => Whole::Field(field),
            false => Whole::Path(field, &part.path),
        })
    }

    /// Some entries without those at both ends of rows that a reader at commit `at` does not see,
    /// as `is_seen` says; where many follow each other, by the list of the dead ones.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn shown(
        &self,
        owner: &Segment,
        mut entries: Range<usize>,
        at: u64,
        is_seen: impl Fn(usize) -> bool,
    ) -> Result<Range<usize>> {
        let mut is_listed = false;
        for at_end in [false, true] {
            while !entries.is_empty() {
                let len = entries.len().min(SHOWN_ENTRIES);
                let some = match at_end {
                    false => entries.start..entries.start + len,
                    true => entries.end - len..entries.end,
                };
                let rows = self.rows(some)?;
                let is_unseen = |row: &&u32| !is_seen(**row as usize);
                let unseen = match at_end {
                    false => rows.iter().take_while(is_unseen).count(),
                    true => rows.iter().rev().take_while(is_unseen).count(),
                };
                match at_end {
                    false => entries.start += unseen,
                    true => entries.end -= unseen,
                }
                if unseen < len {
                    break;
                }
                let may_be_many = entries.len() as u64 >= dead::FEW_DEAD;
                if may_be_many && !is_listed && owner.dead_count() >= dead::FEW_DEAD {
                    entries = self.most_dead_entries(owner)?.without(entries, at);
                    is_listed = true;
                }
            }
        }
        Ok(entries)
    }

    /// How many of some entries are of rows that a reader at commit `at` sees.
    ///
    /// # Errors
    /// `Corrupt` when a block does not fit its checksum.
    pub fn count_visible(&self, owner: &Segment, entries: Range<usize>, at: u64) -> Result<usize> {
        let all_created = owner.newest_commit() <= at;
        if (all_created && owner.dead_count() == 0) || Bug::RunCountsDeadRows.is_planted() {
            return Ok(entries.len());
        }
        // A short range is looked at row by row, and so is what an older reader asks of rows that
        // are not all there yet for it.
        let is_short = entries.len() <= self.len() / dead::TEST_SHARE;
        if !all_created || is_short && !self.knows_dead_entries(owner) {
            let is_visible = |row: &&u32| {
                let row = **row as usize;
                let is_created = all_created || owner.is_created_at(row, at);
                Visibility::of(is_created, || owner.deleted(row), at).is_visible()
            };
            return Ok(self.rows(entries)?.iter().filter(is_visible).count());
        }
        let dead = self.dead_entries(owner)?;
        let count = dead.count(entries.clone(), at);
        let count = count.map_err(|e| e.at(format_args!("index {:?}", self.index.name)))?;
        Ok(entries.len() - count)
    }
}

/// Entries whose rows are looked at together.
const SHOWN_ENTRIES: usize = 64;
