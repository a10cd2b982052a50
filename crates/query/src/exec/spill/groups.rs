//! Groups that memory does not hold.
//!
//! A row is written to the file that the hash of its keys names: where it stands in the source, its
//! keys, and the operands of the aggregates. Then the groups of one file after another fit into
//! memory; a file of which they do not is split again by other bits of the hash. Within a file the
//! groups are met in the order of the rows, so that they are a sorted run as they are.
//!
//! ```text
//! morsels, in parallel       files, in parallel          runs, merged
//! hash · morsel · row   ─►   groups of each hash    ─►   place · group   ─►   next step
//! ```

use std::ops::ControlFlow;

use esker_format::codec::Writer;
use esker_format::row::encode_row;
use esker_format::{Batch, DataType, Room, Schema, ValueRef};
use esker_vfs::parallel_map;

use super::partitions::{FILES, LEVELS_MAX, Partitions, file_of, hash, rest_of, split};
use super::row::{push_row, rising};
use super::sorter::{ExternalSorter, Merge, write_record};
use crate::bind::{Shown, Stage};
use crate::bound::{Bound, BoundAggregate};
use crate::evaluate::key_codec::{encode_integer, encode_null};
use crate::evaluate::{Mask, Picked, Rows, evaluate};
use crate::exec::aggregate::group;
use crate::exec::aggregate::group::Groups;
use crate::exec::output::Materialised;
use crate::exec::scan::{Morsel, Scan, ScanCounts, in_waves};
use crate::meter::{Meter, Reservation};
use crate::model::Aggregate;
use crate::temporary_file::{SpillReader, SpillWriter, TemporaryFiles};
use crate::{Error, ErrorKind, Options, Result, Source, ZONE_ROWS};

/// Bits of a place that tell rows of one part apart.
const PART_SHIFT: u32 = 36;
/// What the groups of a file may take, however small the budget is.
const BYTES_MIN: usize = 64 << 10;

/// The groups of a stage, in the order in which they were met.
pub(crate) struct SpilledGroups<'a> {
    merge: Merge<'a>,
    pub(super) types: Vec<DataType>,
    /// Groups that were handed out.
    pub(crate) taken: u64,
    /// How many there are.
    pub(crate) count: u64,
}

/// How rows of a stage lie in files: the keys, the operands, the place of the row.
struct Layout {
    schema: Schema,
    /// The same grouping, of rows that lie so, with the least place of each group at the end.
    stage: Stage,
    keys: usize,
}

impl Layout {
    fn of(stage: &Stage) -> Self {
        let keys: Vec<DataType> = stage.keys.iter().map(Bound::data_type).collect();
        let operands = stage.aggregates.iter().filter_map(|a| a.operand.as_ref());
        let mut types = keys.clone();
        types.extend(operands.map(Bound::data_type));
        let place = Bound::field(types.len(), DataType::I64);
        types.push(DataType::I64);
        let mut next = keys.len();
        let moved = |aggregate: &BoundAggregate| {
            let operand = aggregate.operand.as_ref().map(|operand| {
                next += 1;
                Bound::field(next - 1, operand.data_type())
            });
            BoundAggregate { operand, ..aggregate.clone() }
        };
        let mut aggregates: Vec<_> = stage.aggregates.iter().map(moved).collect();
        aggregates.push(BoundAggregate {
            function: Aggregate::Min,
            operand: Some(place),
            distinct: false,
            data_type: DataType::I64,
        });
        let fields = keys.iter().enumerate();
        let mut shown = stage.shown.clone();
        if !shown.is_empty() {
            shown.push(Shown {
                aggregate: aggregates.len() - 1,
                function: Aggregate::Min,
                data_type: DataType::I64,
                added: 0,
            });
        }
        let stage = Stage {
            keys: fields.map(|(i, data_type)| Bound::field(i, *data_type)).collect(),
            aggregates,
            shown_keys: stage.shown_keys.clone(),
            shown,
            ..Stage::default()
        };
        Self { schema: Schema::of_types(&types), stage, keys: keys.len() }
    }
}

/// Which rows are added up together: a record has its morsel behind its key, and then the row.
fn morsel_of(record: &[u8]) -> Option<[u8; 8]> {
    rest_of(record).first_chunk::<8>().copied()
}

fn row_of(record: &[u8]) -> &[u8] {
    // default: a record that was written here, whose length is checked
    rest_of(record).get(8..).unwrap_or_default()
}

/// Groups the rows of sources that come one after another.
pub(crate) struct Grouping<'a> {
    options: &'a Options,
    files: &'a TemporaryFiles,
    types: Vec<DataType>,
    layout: Layout,
    partitions: Partitions,
}

impl<'a> Grouping<'a> {
    pub(crate) fn new(
        stage: &Stage,
        options: &'a Options,
        files: &'a TemporaryFiles,
    ) -> Result<Self> {
        let (layout, partitions) = (Layout::of(stage), Partitions::new(files, 0)?);
        Ok(Self { options, files, types: stage.types(), layout, partitions })
    }

    /// The first place behind those of a source.
    pub(crate) fn place_behind(first_place: u64, source: &dyn Source) -> u64 {
        first_place + ((source.part_count() as u64) << PART_SHIFT)
    }

    /// Adds the rows of a scan. Those of later scans have greater places: `first_place` and up.
    pub(crate) fn add(
        &mut self,
        scan: &Scan<'_>,
        stage: &Stage,
        first_place: u64,
    ) -> Result<ScanCounts> {
        let mut counts = ScanCounts::default();
        let morsels = scan.fixed_morsels(|_| true);
        let layout = &self.layout;
        let job = |morsel: &Morsel| {
            let (mut shares, mut rooms) = (vec![Vec::new(); FILES], Vec::new());
            let first = first_place + ((morsel.part as u64) << PART_SHIFT);
            let (meter, room) = (Meter::new(self.options.limits()), Room::default());
            let counts = scan.run((morsel, &room), |rows, mask| {
                let place = Place { first, morsel: morsel.rows.start as u64 };
                let rows = (rows, &mask);
                rooms.push(write_rows(&mut shares, layout, stage, rows, place, &meter)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok((shares, counts, rooms))
        };
        let cores = self.options.tasks.parallelism().max(1);
        let partitions = &mut self.partitions;
        in_waves(self.options, &morsels, cores, job, |(shares, more, _rooms)| {
            counts += more;
            partitions.push_shares(&shares)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(counts)
    }

    /// The groups.
    ///
    /// # Errors
    /// `OverBudget` when one group alone is too large; what writing and reading fails with.
    pub(crate) fn finish(self) -> Result<SpilledGroups<'a>> {
        let (layout, options, files) = (&self.layout, self.options, self.files);
        let mut groups = ExternalSorter::new(options, files);
        let cores = options.tasks.parallelism().max(1);
        let mut todo: Vec<(SpillReader, u32)> =
            self.partitions.finish()?.into_iter().map(|file| (file, 1)).collect();
        todo.retain(|(file, _)| file.len() > 0);
        while !todo.is_empty() {
            let now = todo.split_off(todo.len().saturating_sub(cores));
            let done = parallel_map(&*options.tasks, &now, |(file, level)| {
                group_file(layout, file, *level, (options, cores), files)
            });
            for (done, (_, level)) in done.into_iter().zip(&now) {
                match done? {
                    Grouped::Sorted(run, count) => groups.add_sorted(run, count)?,
                    Grouped::Parts(mut parts) => {
                        parts.retain(|file| file.len() > 0);
                        todo.extend(parts.into_iter().map(|file| (file, level + 1)));
                    }
                }
            }
        }
        let count = groups.len();
        Ok(SpilledGroups { merge: groups.finish()?, types: self.types, taken: 0, count })
    }
}

/// Where rows stand: the place of the first row of their part, and the row that their morsel begins
/// with.
#[derive(Clone, Copy)]
struct Place {
    first: u64,
    morsel: u64,
}

/// Appends a record for each row of a mask and each grouping set, those of each file together.
/// Their key is the hash of their keys. The room is what computed ones take of it.
fn write_rows<'a, 'm>(
    shares: &mut [Vec<u8>],
    layout: &Layout,
    stage: &'a Stage,
    (rows, mask): (&Rows<'a>, &Mask),
    Place { first, morsel }: Place,
    meter: &Meter<'m>,
) -> Result<Reservation<'m>> {
    let picked = Picked::of(mask);
    let selection = picked.selection();
    let operands = stage.aggregates.iter().filter_map(|a| a.operand.as_ref());
    let values = stage.keys.iter().chain(operands);
    let vectors = values.map(|bound| evaluate(bound, rows, selection));
    let vectors = vectors.collect::<Result<Vec<_>>>()?;
    let room = meter.room_for_copies(&vectors)?;
    let numbered = stage.sets.iter().enumerate();
    let mut sets: Vec<_> = numbered.map(|(i, set)| Some((i, set.as_slice()))).collect();
    if sets.is_empty() {
        sets.push(None);
    }
    let mut keys = Vec::new();
    for i in 0..selection.len() {
        let row = first + (rows.start() + selection.row(i) as usize) as u64;
        for (number, set) in sets.iter().enumerate() {
            let key_of = |field: usize| key_in_set(*set, field, layout.keys);
            keys.clear();
            for (field, vector) in vectors.iter().take(layout.keys).enumerate() {
                match key_of(field) {
                    KeyInSet::Own => group::encode(&mut keys, vector, i),
                    KeyInSet::Null => encode_null(&mut keys),
                    KeyInSet::Number(number) => encode_integer(&mut keys, number),
                }
            }
            let key = hash(&keys).to_le_bytes();
            let Some(share) = shares.get_mut(file_of(hash(&key), 0)) else { continue };
            // Groups that one row is in are in the order of the sets.
            let place = row.checked_mul(sets.len() as u64).and_then(|place| {
                i64::try_from(place.checked_add(number as u64)?).ok().map(ValueRef::Int)
            });
            let place = place
                .ok_or_else(|| Error::out_of_range("too many grouping sets of so many rows"))?;
            let mut out = Writer::after(std::mem::take(share));
            // Keys and rows are below 4 GiB.
            out.counted(|out| {
                out.counted(|out| out.raw(&key));
                out.u64(first + morsel);
                encode_row(out, &layout.schema, |field| {
                    match (key_of(field), vectors.get(field)) {
                        (KeyInSet::Null, _) => ValueRef::Null,
                        (KeyInSet::Number(number), _) => ValueRef::Int(number),
                        (KeyInSet::Own, Some(vector)) => vector.value(i),
                        // Behind the values comes the place.
                        (KeyInSet::Own, None) => place,
                    }
                });
            });
            *share = out.into_bytes();
        }
    }
    Ok(room)
}

/// What a grouping set has in the place of a key.
enum KeyInSet {
    Own,
    Null,
    /// The number of the set.
    Number(i64),
}

/// The same for a field of a record, of which so many are keys.
fn key_in_set(set: Option<(usize, &[usize])>, field: usize, keys: usize) -> KeyInSet {
    match set {
        Some((number, _)) if field + 1 == keys => KeyInSet::Number(group::set_number(number)),
        Some((_, set)) if field < keys && !set.contains(&field) => KeyInSet::Null,
        _ => KeyInSet::Own,
    }
}

/// What has become of the rows of a file.
enum Grouped {
    /// Their groups, in the order of their places, and how many there are.
    Sorted(SpillReader, u64),
    /// Memory did not hold the groups: the same rows, by other bits of the hash.
    Parts(Vec<SpillReader>),
}

/// Groups the rows of a file, as one of so many at a time.
fn group_file(
    layout: &Layout,
    whole: &SpillReader,
    level: u32,
    (options, at_once): (&Options, usize),
    files: &TemporaryFiles,
) -> Result<Grouped> {
    let mut file = whole.again();
    let (mut groups, mut here) = (Groups::new(&layout.stage), Groups::new(&layout.stage));
    let mut reader = MorselReader { schema: &layout.schema, next: None };
    // The other half of the budget is for the groups as rows.
    let limit = (options.memory().left() / 2 / at_once).max(BYTES_MIN);
    loop {
        options.expect_time_left()?;
        let (batch, next) = reader.read(&mut file)?;
        let len = batch.len();
        let source = Materialised::of(layout.schema.clone(), vec![batch]);
        let room = Room::default();
        let rows = Rows::new(source.part(0), 0..len, options.limits(), &room);
        here.update(&rows, &Mask::all(len))?;
        let bytes = groups.bytes() + here.bytes();
        if bytes > limit {
            if groups.len().max(here.len()) > 1 && level < LEVELS_MAX {
                return split(whole.again(), level, options, files).map(Grouped::Parts);
            }
            if bytes > options.memory().left().max(BYTES_MIN) {
                return Err(over(bytes, options));
            }
        }
        if next != Next::SameMorsel {
            groups.merge(std::mem::replace(&mut here, Groups::new(&layout.stage)));
        }
        if next == Next::End {
            break;
        }
    }
    let (mut run, count) = (files.create()?, groups.len() as u64);
    for batch in groups.finish(options)? {
        options.expect_time_left()?;
        write_groups(&batch, layout, &mut run)?;
    }
    Ok(Grouped::Sorted(run.finish()?, count))
}

fn over(bytes: usize, options: &Options) -> Error {
    let limit = options.memory().limit_bytes();
    let message = format!(
        "a group needs more than {bytes} bytes of memory; the budget of the query is {limit}"
    );
    Error::new(ErrorKind::OverBudget, message)
}

/// Adds finished groups to a run, by the place of their first row.
fn write_groups(batch: &Batch, layout: &Layout, run: &mut SpillWriter) -> Result<()> {
    let Some((places, shown)) = batch.columns.split_last() else { return Ok(()) };
    let types: Vec<_> = layout.stage.types();
    // default: without columns nothing is shown
    let schema = Schema::of_types(types.split_last().map_or(&[], |(_, shown)| shown));
    let mut out = Writer::new();
    for i in 0..batch.len() {
        let ValueRef::Int(place) = places.value(i) else { continue };
        out.clear();
        encode_row(&mut out, &schema, |field| {
            // default: a value for each field was computed
            shown.get(field).map_or(ValueRef::Null, |column| column.value(i))
        });
        write_record(run, &rising(place.cast_unsigned()), out.as_bytes())?;
    }
    Ok(())
}

/// What comes after some rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    SameMorsel,
    OtherMorsel,
    End,
}

/// Reads the rows of one morsel after another.
struct MorselReader<'a> {
    schema: &'a Schema,
    /// A record that was read too far.
    next: Option<Vec<u8>>,
}

impl MorselReader<'_> {
    /// Rows of one morsel, at most a zone of them.
    fn read(&mut self, file: &mut SpillReader) -> Result<(Batch, Next)> {
        let mut batch = Batch::empty(self.schema);
        let mut current = None;
        if let Some(record) = self.next.take() {
            push_row(&mut batch, self.schema, row_of(&record))?;
            current = morsel_of(&record);
        }
        while let Some(record) = file.next()? {
            let is_other = current.is_some() && current != morsel_of(record);
            if is_other || batch.len() >= ZONE_ROWS {
                self.next = Some(record.to_vec());
                return Ok((batch, if is_other { Next::OtherMorsel } else { Next::SameMorsel }));
            }
            push_row(&mut batch, self.schema, row_of(record))?;
            current = morsel_of(record);
        }
        Ok((batch, Next::End))
    }
}

impl<'a> SpilledGroups<'a> {
    /// Rows of these types, so many, in the order of a merge.
    pub(super) fn of(merge: Merge<'a>, types: Vec<DataType>, count: u64) -> Self {
        Self { merge, types, taken: 0, count }
    }

    /// The next groups as a source; `None` after the last.
    ///
    /// # Errors
    /// What reading fails with.
    pub(crate) fn next_source(&mut self) -> Result<Option<Materialised>> {
        let schema = Schema::of_types(&self.types);
        let mut batch = Batch::empty(&schema);
        while batch.len() < ZONE_ROWS
            && let Some(record) = self.merge.next()?
        {
            push_row(&mut batch, &schema, &record.payload)?;
        }
        if batch.is_empty() {
            return Ok(None);
        }
        self.taken += batch.len() as u64;
        Materialised::new(&self.types, vec![batch]).map(Some)
    }
}
