//! Groups of which only the first few are shown: `GROUP BY email LIMIT 10`.
//!
//! Groups come in the order in which they are met. So a look at the first rows tells which are
//! shown, and then only rows of these are added up: `email IN (…)` is one more condition, which an
//! index may answer. Where a group's order or size matters, and where the first rows have too few
//! groups, all of them are made; so they are where a row that is left out may make the query fail.

use std::ops::ControlFlow;

use esker_format::decimal::{DIGITS_MAX, limit};
use esker_format::{DataType, Room, Value, ValueRef};

use crate::access_path::{Goal, ScanPlan};
use crate::bind::{Program, Projection, Stage};
use crate::bound::{Bound, BoundAggregate, Node};
use crate::exec::aggregate::group::Groups;
use crate::exec::scan::{Progress, Scan};
use crate::filter::CodeTables;
use crate::model::Aggregate;
use crate::predicate::Predicate;
use crate::{Options, Result, Source, ZONE_ROWS};

/// The most groups that are looked for.
const GROUPS_MAX: u64 = 256;
/// After so many zones it is seen whether the statement is to end.
const ZONES_PER_LOOK: usize = 4_096;
/// The most rows that are looked at for them.
const ROWS_MAX: u64 = 8 * ZONE_ROWS as u64;

/// The grouping step of a program with a filter that only rows of the groups pass that are shown;
/// `None` where all groups have to be made.
///
/// # Errors
/// What reading and evaluating fails with.
pub(crate) fn narrowed(
    program: &Program,
    source: &dyn Source,
    options: &Options,
) -> Result<Option<Stage>> {
    let ([stage], None) = (program.stages.as_slice(), &program.windows) else { return Ok(None) };
    let (Some(wanted), [key]) = (wanted(&program.projection), stage.keys.as_slice()) else {
        return Ok(None);
    };
    if !stage.sets.is_empty()
        || source.has_history()
        || !matches!(key.node, Node::Field(_))
        || !is_told_by_equality(key.data_type())
    {
        return Ok(None);
    }
    let predicate = Predicate::compile(stage.filter.as_ref());
    if predicate.may_fail() {
        return Ok(None);
    }
    for aggregate in &stage.aggregates {
        if may_fail(aggregate, source, options)? {
            return Ok(None);
        }
    }
    let plan = ScanPlan::new(&predicate, source, Goal::ALL, options)?;
    // Tables are kept by the address of the predicate, which goes at the end.
    let tables = CodeTables::default();
    let scan = Scan::new(source, &predicate, &tables, &plan, options);
    let keys = Stage { aggregates: Vec::new(), ..stage.clone() };
    let mut groups = Groups::new(&keys);
    let mut looked_at = 0;
    for morsel in scan.morsels(|_| true) {
        let mut progress = Progress::growing();
        let room = Room::default();
        scan.run_from((&morsel, &room), ZONE_ROWS, &mut progress, |rows, mask| {
            groups.update(rows, &mask)?;
            let is_enough = groups.len() as u64 >= wanted;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        looked_at += progress.counts.rows_scanned;
        if groups.len() as u64 >= wanted || looked_at >= ROWS_MAX {
            break;
        }
    }
    if (groups.len() as u64) < wanted {
        return Ok(None);
    }
    let batches = groups.finish(options)?;
    let column = batches.first().and_then(|batch| batch.columns.first());
    let shown = (0..usize::try_from(wanted).unwrap_or(usize::MAX)).map(|i| match column {
        Some(column) => column.value(i).to_owned(),
        None => Value::Null,
    });
    let mut shown: Vec<Value> = shown.collect();
    if shown.iter().any(Value::is_null) {
        return Ok(None);
    }
    shown.sort_by(|a, b| a.as_ref().compare(b.as_ref()));
    let one_of = Bound::new(Node::In(Box::new(key.clone()), shown), DataType::Bool);
    let filter = match stage.filter.clone() {
        Some(filter) => Bound::new(Node::And(vec![filter, one_of]), DataType::Bool),
        None => one_of,
    };
    Ok(Some(Stage { filter: Some(filter), ..stage.clone() }))
}

/// How many groups are shown, or skipped before those, when any will do.
fn wanted(projection: &Projection) -> Option<u64> {
    let any_will_do =
        projection.filter.is_none() && projection.order.is_empty() && projection.after.is_none();
    let wanted = projection.limit?.checked_add(projection.offset)?;
    (any_will_do && (1..=GROUPS_MAX).contains(&wanted)).then_some(wanted)
}

/// Types of which values are in the same group exactly when they are equal.
fn is_told_by_equality(data_type: DataType) -> bool {
    !data_type.is_float() && !matches!(data_type, DataType::Enum | DataType::Json)
}

/// True when rows may make an aggregate fail, one alone or all of a group together.
fn may_fail(aggregate: &BoundAggregate, source: &dyn Source, options: &Options) -> Result<bool> {
    let Some(operand) = &aggregate.operand else { return Ok(false) };
    let is_wide = |t: DataType| matches!(t, DataType::I64 | DataType::U64) || t.is_decimal();
    if operand.may_fail() {
        return Ok(true);
    }
    if aggregate.function != Aggregate::Sum || !is_wide(operand.data_type()) {
        return Ok(false);
    }
    match operand.node {
        Node::Field(position) => may_overflow(position, aggregate.data_type, source, options),
        _ => Ok(true),
    }
}

/// True when the values of a field, whatever their signs, may add up to more than a type holds, by
/// what is known of their bounds. Zones are looked at until it is known.
fn may_overflow(
    field: usize,
    data_type: DataType,
    source: &dyn Source,
    options: &Options,
) -> Result<bool> {
    let most = match data_type {
        DataType::U64 => u128::from(u64::MAX),
        DataType::I64 => u128::from(i64::MAX.unsigned_abs()),
        _ => limit(DIGITS_MAX).unsigned_abs() - 1,
    };
    let size = |value: ValueRef<'_>| match value {
        ValueRef::Null => Some(0),
        ValueRef::Int(v) => Some(u128::from(v.unsigned_abs())),
        ValueRef::Uint(v) => Some(u128::from(v)),
        ValueRef::Decimal(v) => Some(v.mantissa().unsigned_abs()),
        _ => None,
    };
    let mut total = 0u128;
    for part in (0..source.part_count()).map(|index| source.part(index)) {
        for zone in 0..part.row_count().div_ceil(ZONE_ROWS) {
            if zone % ZONES_PER_LOOK == 0 {
                options.expect_time_left()?;
            }
            let Some(known) = part.zone(field, zone) else { return Ok(true) };
            let (Some(least), Some(greatest)) = (size(known.least), known.greatest.and_then(size))
            else {
                return Ok(true);
            };
            total = total.saturating_add(least.max(greatest).saturating_mul(ZONE_ROWS as u128));
            if total > most {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
