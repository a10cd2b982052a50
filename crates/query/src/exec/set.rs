//! UNION, INTERSECT and EXCEPT: groups of the rows of several sources by all their columns, of
//! which it is counted how many are on the left and on the right.
//!
//! ```text
//! left  ─ scan ─┐                  columns · left · right      UNION          every group
//! left  ─ scan ─┼─► one grouping ─►    a       2      1     ─► INTERSECT      left > 0, right > 0
//! right ─ scan ─┘                      b       1      0        EXCEPT         left > 0, right = 0
//!                                                              INTERSECT ALL  the lesser times
//!                                                              EXCEPT ALL     left − right times
//! ```
//!
//! So NULL equals NULL, groups come in the order in which they are met, and what memory does not
//! hold goes to temporary files, as in GROUP BY.

use std::ops::ControlFlow;

use esker_format::{Batch, DataType, Value, ValueRef};

use super::aggregate::group::Merging;
use super::aggregate::stage;
use super::input::Input;
use super::scan::{Scan, ScanCounts};
use super::showing::show;
use super::spill::Grouping;
use super::{Sink, collect};
use crate::access_path::{Goal, ScanPlan};
use crate::bind::interval::shown_keys;
use crate::bind::{Projection, Stage};
use crate::bound::{Bound, BoundAggregate, Comparison, Node};
use crate::exec::output::Materialised;
use crate::filter::CodeTables;
use crate::model::{Aggregate, SetOperator};
use crate::predicate::Predicate;
use crate::{Error, ErrorKind, Options, Result, Source, ZONE_ROWS};

/// Takes the rows of a source by a stage that [`Combination::stage`] has made.
pub(crate) type Add<'f> = &'f mut dyn FnMut(&Stage, &dyn Source) -> Result<ScanCounts>;

/// What becomes of rows on the left and on the right.
pub(crate) struct Combination {
    operator: SetOperator,
    all: bool,
    types: Vec<DataType>,
}

impl Combination {
    /// Of rows with columns of some types. A union of all rows has no groups.
    pub(crate) fn new(operator: SetOperator, all: bool, types: Vec<DataType>) -> Self {
        Self { operator, all, types }
    }

    /// How rows of one side are grouped: by what is shown of them, where they pass a filter.
    pub(crate) fn stage(&self, keys: Vec<Bound>, filter: Option<Bound>, is_left: bool) -> Stage {
        let count = |counts: bool| BoundAggregate {
            function: Aggregate::Count,
            operand: Some(Bound::new(
                Node::Literal(if counts { Value::Bool(true) } else { Value::Null }),
                DataType::Bool,
            )),
            distinct: false,
            data_type: DataType::I64,
        };
        let aggregates = match self.operator {
            SetOperator::Union => Vec::new(),
            _ => vec![count(is_left), count(!is_left)],
        };
        let mut stage = Stage { filter, keys, aggregates, ..Stage::default() };
        // What it shows of them, the projection behind it knows.
        stage.group_by_length();
        stage
    }

    /// Of groups the rows, as they are shown.
    fn projection(&self, types: &[DataType]) -> Projection {
        let mut projection = Projection::of_fields(types, self.condition());
        let counts = if self.operator == SetOperator::Union { 0 } else { 2 };
        projection.replace(&shown_keys(&self.types, counts));
        projection
    }

    /// The same for rows of which all fields are shown.
    pub(crate) fn stage_of_fields(&self, is_left: bool) -> Stage {
        let keys = self.types.iter().enumerate();
        let keys = keys.map(|(i, data_type)| Bound::field(i, *data_type)).collect();
        self.stage(keys, None, is_left)
    }

    /// Hands the rows of the answer to `sink`; `feed` adds those of both sides, and is called again
    /// where memory does not hold their groups.
    ///
    /// # Errors
    /// As [`super::run`].
    pub(crate) fn run(
        &self,
        options: &Options,
        feed: &mut dyn FnMut(Add<'_>) -> Result<()>,
        sink: Sink<'_>,
    ) -> Result<()> {
        let template = self.stage_of_fields(true);
        let groups = match (in_memory(&template, options, feed), &options.temporary) {
            (Err(e), Some(files)) if e.kind() == ErrorKind::OverBudget => {
                let mut grouping = Grouping::new(&template, options, files)?;
                let mut place = 0;
                feed(&mut |stage, source| {
                    let counts =
                        scanned(stage, source, options, |scan| grouping.add(scan, stage, place))?;
                    place = Grouping::place_behind(place, source);
                    Ok(counts)
                })?;
                Input::Spilled(grouping.finish()?, files)
            }
            (groups, _) => groups?,
        };
        let tables = CodeTables::default();
        if !self.all {
            let projection = self.projection(&self.types);
            return show(groups, &projection, &tables, options, sink).map(drop);
        }
        let mut types = self.types.clone();
        types.extend([DataType::I64; 2]);
        let projection = self.projection(&types);
        show(groups, &projection, &tables, options, &mut |batch| self.repeat(&batch, options, sink))
            .map(drop)
    }

    /// What has to hold of the counts of a group.
    fn condition(&self) -> Option<Bound> {
        let compare = |comparison, column: usize| {
            let count = Bound::field(self.types.len() + column, DataType::I64);
            let (count, zero) = (Box::new(count), Box::new(Bound::literal(Value::Int(0))));
            Bound::new(Node::Compare(comparison, count, zero), DataType::Bool)
        };
        let right = match (self.operator, self.all) {
            (SetOperator::Union, _) => return None,
            (SetOperator::Intersect, _) => compare(Comparison::Gt, 1),
            (SetOperator::Except, false) => compare(Comparison::Eq, 1),
            (SetOperator::Except, true) => return Some(compare(Comparison::Gt, 0)),
        };
        let both = vec![compare(Comparison::Gt, 0), right];
        Some(Bound::new(Node::And(both), DataType::Bool))
    }

    /// Hands over each row as often as its counts, the last two columns, say.
    fn repeat(&self, groups: &Batch, options: &Options, sink: Sink<'_>) -> Result<ControlFlow<()>> {
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(ZONE_ROWS);
        for row in (0u32..).take(groups.len()) {
            let count = |column: usize| {
                let column = groups.columns.get(self.types.len() + column);
                match column.map(|column| column.value(row as usize)) {
                    Some(ValueRef::Int(count)) => Ok(count),
                    _ => Err(Error::invalid("a set operation has lost the counts of its rows")),
                }
            };
            let (left, right) = (count(0)?, count(1)?);
            let mut times = match self.operator {
                SetOperator::Except => left - right,
                _ => left.min(right),
            };
            while times > 0 {
                places.push((0, row));
                times -= 1;
                if places.len() == ZONE_ROWS {
                    options.expect_time_left()?;
                    if self.hand_over(groups, &mut places, sink)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        self.hand_over(groups, &mut places, sink)
    }

    fn hand_over(
        &self,
        groups: &Batch,
        places: &mut Vec<(u32, u32)>,
        sink: Sink<'_>,
    ) -> Result<ControlFlow<()>> {
        if places.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let rows = collect(&self.types, std::slice::from_ref(groups), places)?;
        places.clear();
        sink(rows)
    }
}

fn in_memory<'o>(
    template: &Stage,
    options: &'o Options,
    feed: &mut dyn FnMut(Add<'_>) -> Result<()>,
) -> Result<Input<'o>> {
    let mut merging = Merging::new(template, options);
    feed(&mut |stage, source| {
        scanned(stage, source, options, |scan| {
            stage::add(&mut merging, template, (scan, stage), options)
        })
    })?;
    let groups = Materialised::new(&template.types(), merging.finish(options)?)?;
    let mut charge = options.memory().charge();
    charge.set(groups.byte_count())?;
    Ok(Input::Memory(groups, charge))
}

/// Scans a source for a stage.
fn scanned<T>(
    stage: &Stage,
    source: &dyn Source,
    options: &Options,
    run: impl FnOnce(&Scan<'_>) -> Result<T>,
) -> Result<T> {
    let predicate = Predicate::compile(stage.filter.as_ref());
    let plan = ScanPlan::new(&predicate, source, Goal::ALL, options)?;
    let tables = CodeTables::default();
    run(&Scan::new(source, &predicate, &tables, &plan, options))
}
