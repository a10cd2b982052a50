//! Rows of a part that may pass a filter, as sorted runs know them, and what is left to be tested.

use super::bitmaps::BitmapLookup;
use super::cost;
use super::grams::GramLookup;
use super::lookup::{Answered, Lookup};
use crate::Result;
use crate::access_path::indexable::members_of;
use crate::limits::Limits;
use crate::predicate::Predicate;
use crate::source::{Fragment, IndexRun};

/// Rows of a part.
#[derive(Clone)]
pub(crate) enum Candidates<'a> {
    /// The rows of some entries.
    Lookup(Lookup<'a>),
    /// These rows, rising: the ones with some keys.
    Keys(Vec<u32>),
    /// The rows whose text has some grams.
    Grams(GramLookup<'a>),
    /// The rows of some values.
    Bitmaps(BitmapLookup<'a>),
    /// Rows that are in each.
    All(Vec<Self>),
    /// Rows that are in any.
    Any(Vec<Self>),
}

/// Candidates for a filter.
pub(super) struct Found<'a> {
    pub(super) candidates: Candidates<'a>,
    /// What the candidates still have to pass.
    pub(super) residual: Predicate,
}

impl Candidates<'_> {
    /// How many entries are to be read.
    pub(crate) fn entry_count(&self) -> usize {
        match self {
            Self::Lookup(lookup) => lookup.len(),
            Self::Keys(rows) => rows.len(),
            Self::Grams(grams) => grams.entry_count(),
            Self::Bitmaps(bitmaps) => bitmaps.entry_count(),
            Self::All(members) | Self::Any(members) => members.iter().map(Self::entry_count).sum(),
        }
    }

    /// About how many of `rows` rows are candidates, as if conditions had nothing to do with each
    /// other; exact for a single lookup.
    pub(crate) fn estimate(&self, rows: usize) -> f64 {
        let rows_f = (rows as f64).max(1.0);
        match self {
            Self::Lookup(lookup) => lookup.len() as f64,
            Self::Keys(rows) => rows.len() as f64,
            // Grams of one part come together.
            Self::Grams(grams) => grams.count_max() as f64,
            Self::Bitmaps(bitmaps) => bitmaps.count() as f64,
            Self::All(members) => {
                let shares = members.iter().map(|member| member.estimate(rows) / rows_f);
                rows_f * shares.product::<f64>()
            }
            Self::Any(members) => {
                let others = members.iter().map(|member| 1.0 - member.estimate(rows) / rows_f);
                rows_f * (1.0 - others.product::<f64>())
            }
        }
    }

    /// The most rows that can be candidates.
    pub(crate) fn count_max(&self) -> usize {
        match self {
            Self::Lookup(lookup) => lookup.len(),
            Self::Keys(rows) => rows.len(),
            Self::Grams(grams) => grams.count_max(),
            Self::Bitmaps(bitmaps) => bitmaps.count(),
            // default: no members bound nothing
            Self::All(members) => members.iter().map(Self::count_max).min().unwrap_or(usize::MAX),
            Self::Any(members) => members.iter().map(Self::count_max).sum(),
        }
    }

    /// True when it is known how many of the rows are visible without reading them.
    pub(super) fn is_counted(&self, part: &dyn Fragment) -> bool {
        match self {
            Self::Lookup(_) | Self::Keys(_) => true,
            Self::Bitmaps(_) => part.visible_count() == Some(part.row_count()),
            Self::Grams(_) | Self::All(_) | Self::Any(_) => false,
        }
    }

    /// How many of the rows are visible, where that is known.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(super) fn count_visible(&self, part: &dyn Fragment) -> Result<Option<usize>> {
        match self {
            Self::Lookup(lookup) => lookup.count_visible().map(Some),
            Self::Keys(rows) => {
                let rows = rows.iter().map(|row| *row as usize);
                let is_visible = |row: &usize| match part.visible(*row..row + 1) {
                    None => true,
                    Some(words) => words.first().is_some_and(|word| word & 1 == 1),
                };
                Ok(Some(rows.filter(is_visible).count()))
            }
            Self::Bitmaps(bitmaps) if self.is_counted(part) => Ok(Some(bitmaps.count())),
            _ => Ok(None),
        }
    }

    /// Calls `visit` with the name of every run that is read.
    pub(crate) fn names(&self, visit: &mut dyn FnMut(&str)) {
        match self {
            Self::Lookup(lookup) => visit(lookup.run.name()),
            Self::Keys(_) => {}
            Self::Grams(grams) => visit(grams.run.name()),
            Self::Bitmaps(bitmaps) => visit(bitmaps.run.name()),
            Self::All(members) | Self::Any(members) => {
                members.iter().for_each(|member| member.names(visit));
            }
        }
    }
}

/// The candidates for a filter, the cheapest that the runs of a part give; `None` when they give
/// none.
pub(super) fn find<'a>(
    predicate: &Predicate,
    part: &'a dyn Fragment,
    limits: &Limits,
) -> Result<Option<Found<'a>>> {
    match predicate {
        Predicate::Constant(_) => Ok(None),
        Predicate::All(members) => find_all(members, part, limits),
        other => find_all(std::slice::from_ref(other), part, limits),
    }
}

/// One way to find candidates for a conjunction.
struct AccessPath<'a> {
    candidates: Candidates<'a>,
    /// The members that every candidate passes.
    exactly: Vec<usize>,
}

fn find_all<'a>(
    members: &[Predicate],
    part: &'a dyn Fragment,
    limits: &Limits,
) -> Result<Option<Found<'a>>> {
    let mut ways = ways(members, part, limits)?;
    ways.sort_by_key(|way| (way.candidates.count_max(), way.candidates.entry_count()));
    let rows = part.row_count();
    let mut taken: Vec<Candidates<'a>> = Vec::new();
    let mut left: Vec<usize> = (0..members.len()).collect();
    let mut candidates = rows as f64;
    for way in ways {
        let weight = |left: &[usize]| {
            // default: members of the list only are weighed
            let of = |i: &usize| members.get(*i).map_or(0, Predicate::weight);
            left.iter().map(of).fold(0, u32::saturating_add)
        };
        let open: Vec<usize> = left.iter().copied().filter(|i| !way.exactly.contains(i)).collect();
        if !taken.is_empty() {
            let share = way.candidates.estimate(rows) / (rows as f64).max(1.0);
            let without = cost::tests_ns(candidates, rows, weight(&left));
            let entries = way.candidates.entry_count();
            let with = cost::lookup_ns(entries, candidates * share, rows, weight(&open));
            if open.len() == left.len() || with >= without {
                continue;
            }
        }
        candidates *= way.candidates.estimate(rows) / (rows as f64).max(1.0);
        left = open;
        taken.push(way.candidates);
    }
    let candidates = match <[Candidates<'a>; 1]>::try_from(taken) {
        Ok([only]) => only,
        Err(taken) if taken.is_empty() => return Ok(None),
        Err(taken) => Candidates::All(taken),
    };
    let rest: Vec<_> = left.iter().filter_map(|i| members.get(*i).cloned()).collect();
    Ok(Some(Found { candidates, residual: Predicate::all_of(rest) }))
}

/// What each run, of any kind, and each disjunction, says of a conjunction. What may fail says
/// nothing: others that may fail are tested on rows that do not pass it.
fn ways<'a>(
    members: &[Predicate],
    part: &'a dyn Fragment,
    limits: &Limits,
) -> Result<Vec<AccessPath<'a>>> {
    let tested = members_of(members);
    let mut ways = Vec::new();
    let mut add = |candidates, exactly| ways.push(AccessPath { candidates, exactly });
    for run in part.runs() {
        match run {
            IndexRun::Sorted(run) => {
                if let Some(Answered { lookup, exactly, .. }) = Lookup::find(run, members, &tested)?
                {
                    add(Candidates::Lookup(lookup), exactly);
                }
            }
            IndexRun::Grams(run) => {
                for member in members {
                    let Predicate::Test(test) = member else { continue };
                    if let Some(grams) = GramLookup::find(run, test)? {
                        add(Candidates::Grams(grams), Vec::new());
                    }
                }
            }
            IndexRun::Bitmaps(run) => {
                for (i, member) in members.iter().enumerate() {
                    if let Some(bitmaps) =
                        BitmapLookup::find(run, member, part.row_count(), limits)?
                    {
                        add(Candidates::Bitmaps(bitmaps), vec![i]);
                    }
                }
            }
            IndexRun::Rollup(_) => {}
        }
    }
    for (i, member) in members.iter().enumerate() {
        let Predicate::Any(any) = member else { continue };
        if member.may_fail() {
            continue;
        }
        if let Some(found) = find_any(member, any, part, limits)? {
            let is_exact = found.residual == Predicate::Constant(true);
            let exactly = if is_exact { vec![i] } else { Vec::new() };
            add(found.candidates, exactly);
        }
    }
    Ok(ways)
}

/// The union, where every member has candidates.
fn find_any<'a>(
    whole: &Predicate,
    members: &[Predicate],
    part: &'a dyn Fragment,
    limits: &Limits,
) -> Result<Option<Found<'a>>> {
    let mut all: Vec<Candidates<'a>> = Vec::with_capacity(members.len());
    let mut is_exact = true;
    for member in members {
        let Some(found) = find(member, part, limits)? else { return Ok(None) };
        is_exact &= found.residual == Predicate::Constant(true);
        add_to_any(&mut all, found.candidates);
    }
    let candidates = match <[Candidates<'a>; 1]>::try_from(all) {
        Ok([only]) => only,
        Err(all) => Candidates::Any(all),
    };
    let residual = if is_exact { Predicate::Constant(true) } else { whole.clone() };
    Ok(Some(Found { candidates, residual }))
}

/// Adds a member; lookups in one run become one.
fn add_to_any<'a>(all: &mut Vec<Candidates<'a>>, member: Candidates<'a>) {
    if let Candidates::Lookup(new) = &member {
        for known in all.iter_mut() {
            let Candidates::Lookup(known) = known else { continue };
            if std::ptr::addr_eq(known.run, new.run) {
                known.absorb(new.ranges.clone());
                return;
            }
        }
    }
    all.push(member);
}
