//! The side of a join that is read first, with an index on its keys.

use std::ops::ControlFlow;

use super::Input;
use super::fetched::Fetched;
use super::index::{Index, Keys};
use super::key::as_floats;
use crate::access_path::{Goal, ScanPlan};
use crate::bound::Bound;
use crate::budget::Charge;
use crate::evaluate::{Picked, Rows, Selection, Vector, evaluate};
use crate::exec::scan::{Morsel, Scan, in_waves};
use crate::exec::sort::Location;
use crate::filter::CodeTables;
use crate::meter::Meter;
use crate::predicate::Predicate;
use crate::{Options, Result};
use esker_format::Room;

/// Rows, numbered in the order of their locations.
#[derive(Debug)]
pub(super) struct Built<'b> {
    pub(super) locations: Vec<Location>,
    pub(super) index: Index,
    /// The columns that the pair filter reads, of all rows.
    pub(super) pair_columns: Fetched,
    pub(super) charge: Charge<'b>,
}

impl<'b> Built<'b> {
    pub(super) fn new(input: &Input<'_>, floats: &[bool], options: &'b Options) -> Result<Self> {
        let predicate = Predicate::compile(input.filter.as_ref());
        let plan = ScanPlan::new(&predicate, input.source, Goal::ALL, options)?;
        let tables = CodeTables::default();
        let scan = Scan::new(input.source, &predicate, &tables, &plan, options);
        let mut charge = options.memory().charge();
        let (mut locations, mut keys) = (Vec::new(), Keys::new(&input.keys, floats));
        let job = |morsel: &Morsel| {
            let (mut found, mut keys) = (Vec::new(), Keys::new(&input.keys, floats));
            let (meter, mut rooms) = (Meter::new(options.limits()), Vec::new());
            let room = Room::default();
            scan.run((morsel, &room), |rows, mask| {
                let picked = Picked::of(&mask);
                let vectors = vectors(&input.keys, floats, rows, picked.selection())?;
                push_locations(&mut found, morsel.part, rows, picked.selection());
                rooms.push(meter.room_for_copies(&vectors)?);
                keys.push(&vectors, picked.selection().len());
                Ok(ControlFlow::Continue(()))
            })?;
            Ok((found, keys, rooms))
        };
        let few = options.tasks.parallelism().max(1) * 4;
        in_waves(options, &scan.morsels(|_| true), few, job, |(found, more, _rooms)| {
            locations.extend(found);
            keys.append(more);
            charge.set(locations.capacity() * size_of::<Location>() + keys.bytes())?;
            Ok(ControlFlow::Continue(()))
        })?;
        super::input::refuse_many(locations.len())?;
        let index = Index::new(keys, locations.len(), options)?;
        let mut bytes = locations.capacity() * size_of::<Location>() + index.bytes();
        charge.set(bytes)?;
        let positions = &input.pair_columns;
        let fetched = Fetched::new(input.source, &locations, positions, options)?;
        bytes += fetched.bytes();
        charge.set(bytes)?;
        Ok(Self { locations, index, pair_columns: fetched, charge })
    }
}

/// The keys of some rows.
pub(super) fn vectors<'a>(
    keys: &'a [Bound],
    floats: &[bool],
    rows: &Rows<'a>,
    selection: Selection<'_>,
) -> Result<Vec<Vector<'a>>> {
    let vector = |(key, as_float): (&'a Bound, &bool)| {
        let vector = evaluate(key, rows, selection)?;
        Ok(if *as_float { as_floats(vector) } else { vector })
    };
    keys.iter().zip(floats).map(vector).collect()
}

/// Notes where some rows of a batch lie.
pub(super) fn push_locations(
    locations: &mut Vec<Location>,
    part: usize,
    rows: &Rows<'_>,
    selection: Selection<'_>,
) {
    let part = u32::try_from(part).unwrap_or(u32::MAX);
    let start = u32::try_from(rows.start()).unwrap_or(u32::MAX);
    let one = |i| Location { part, row: start.saturating_add(selection.row(i)) };
    locations.extend((0..selection.len()).map(one));
}
