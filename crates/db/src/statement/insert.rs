//! Adding rows: from expressions or a query, with what happens to those whose key exists.

use std::borrow::Cow;
use std::sync::Arc;

use esker_format::{Schema, Value, ValueRef};
use esker_query::model::{ConflictUpdate, Expr, Insert, InsertRows, OnConflict};
use esker_query::{Computed, Limits};
use esker_table::TableWriter;
use esker_table::table::{Existing, Holder, PreparedPut};

use super::assignment::whole_fields;
use super::put_rows::{Occupant, PutSink, expect_same_key, key_values, put_rows, taken};
use super::returning::Shown;
use super::within::TransactionPuts;
use super::{Changed, On, StatementRun, fit_assigned, naming_parameter, set_positions};
use crate::commit::fit::fit_row;
use crate::commit::staged::Staged;
use crate::engine::Engine;
use crate::limits::CancellationCheck;
use crate::statement::conflict::{ConflictingRow, StagedUniques, Target};
use crate::table_version::TableVersion;
use crate::{Error, Result, Table};

/// The values of a row, in the order of the named fields; `None` for a default.
pub(super) type Values = Vec<Option<Value>>;

impl StatementRun<'_> {
    pub(super) fn insert(&self, insert: &Insert) -> Result<Changed> {
        match self.on {
            On::Database(database) => {
                let table = database.table(&insert.table)?;
                let rows = self.rows_of(insert)?;
                table.attempt(|current| {
                    let ready = Ready::new(self, current, insert, &rows)?;
                    table.change(current, |writer, staged| {
                        let uniques = ready.target.uniques(writer, ready.skips());
                        let limits = &self.options.inputs.limits;
                        let engine: &Engine = &table.engine;
                        let to = (writer, &mut *staged);
                        let mut puts = StagedPuts { engine, current, to, uniques, limits };
                        let changed = ready.put(self, &mut puts, insert);
                        staged.is_dry_run = self.dry_run;
                        changed
                    })
                })
            }
            On::Transaction(transaction) => {
                let table = transaction.table(&insert.table)?;
                let rows = self.rows_of(insert)?;
                let ready = Ready::new(self, &table.current, insert, &rows)?;
                table.change_rows(|rows| {
                    let (target, skips, options) = (ready.target, ready.skips(), &self.options);
                    let mut puts = TransactionPuts { rows, target, skips, options };
                    ready.put(self, &mut puts, insert)
                })
            }
        }
    }

    /// The values of the rows, as the statement has them.
    pub(super) fn rows_of(&self, insert: &Insert) -> Result<Vec<Values>> {
        Ok(match &insert.rows {
            InsertRows::Values(rows) => {
                let mut inputs = self.options.inputs.clone();
                inputs.sequences = Some(self.engine().as_sequences());
                let value = |expr: &Expr| match expr {
                    Expr::Default => Ok(None),
                    expr => esker_query::constant(expr, &inputs).map(Some),
                };
                let row = |row: &Vec<Expr>| row.iter().map(value).collect();
                rows.iter().map(row).collect::<esker_query::Result<_>>()?
            }
            InsertRows::Query(query) => {
                let found = self.query(query)?;
                // The rows are counted one by one later on: here, where there is none.
                let want = match insert.fields.len() {
                    0 => self.schema(&insert.table)?.fields().len(),
                    named => named,
                };
                expect_count(want, found.columns.len())?;
                let rows = found.to_rows();
                rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect()
            }
        })
    }

    /// The rows as the table takes them.
    pub(super) fn place(
        &self,
        current: &TableVersion,
        insert: &Insert,
        rows: &[Values],
    ) -> Result<Vec<Vec<Value>>> {
        let (schema, engine) = (&current.schema, self.engine());
        let positions = insert_positions(schema, &insert.fields)?;
        let placed = rows.iter().enumerate().map(|(i, values)| {
            self.expect_time_left(i)?;
            let exprs = match &insert.rows {
                // default: only for the message: which parameter it was
                InsertRows::Values(rows) => rows.get(i).map_or(&[][..], Vec::as_slice),
                InsertRows::Query(_) => &[],
            };
            let given = fit_all(schema, &positions, values, exprs);
            let row = given.and_then(|given| engine.fill_row(schema, given));
            let row = row.and_then(|row| Ok(fit_row(schema, &row)?.into_owned()));
            row.map_err(|e| e.at(format_args!("row {i}")))
        });
        let placed: Vec<Vec<Value>> = placed.collect::<Result<_>>()?;
        engine.test_rows_within(current, &placed, &self.options.inputs.limits)?;
        Ok(placed)
    }
}

/// Rows that are ready to be put.
struct Ready {
    rows: Vec<Vec<Value>>,
    conflicts: Conflicts,
    target: Target,
}

impl Ready {
    fn new(
        run: &StatementRun<'_>,
        current: &TableVersion,
        insert: &Insert,
        rows: &[Values],
    ) -> Result<Self> {
        Ok(Self {
            rows: run.place(current, insert, rows)?,
            conflicts: Conflicts::new(run, &current.schema, &insert.on_conflict)?,
            target: Target::of(&current.schema, &insert.conflict_key)?,
        })
    }

    /// Whether rows are left out that are there.
    fn skips(&self) -> bool {
        matches!(self.conflicts, Conflicts::Skip)
    }

    fn put<'r, S: PutSink<'r>>(
        self,
        run: &StatementRun<'_>,
        sink: &mut S,
        insert: &Insert,
    ) -> Result<Changed> {
        let (schema, returning) = (Arc::clone(sink.schema()), insert.returning.as_deref());
        let mut shown = Shown::new(&schema, returning);
        // Who names a unique index does not mean the key.
        let fails = Conflicts::Fail;
        let is_of_key = !matches!(self.target, Target::Unique(_));
        let by_key = if is_of_key { &self.conflicts } else { &fails };
        let rows = self.rows.into_iter().map(Cow::Owned);
        let check = |i| run.expect_time_left(i);
        let rows = put_rows(sink, rows, (&self.conflicts, by_key), &mut shown, &check)?;
        Ok(Changed { rows, returning: run.returned(&schema, &shown, returning)? })
    }
}

impl Table {
    /// Adds rows, all or none; returns how many were added or replaced.
    pub(crate) fn put_many(
        &self,
        rows: &[Vec<Value>],
        on_conflict: &OnConflict,
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<u64> {
        self.attempt(|current| self.put_batch(current, rows, on_conflict, check_cancelled))
    }

    /// The same for rows of one schema.
    pub(crate) fn put_batch(
        &self,
        current: &TableVersion,
        rows: &[Vec<Value>],
        on_conflict: &OnConflict,
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<u64> {
        let conflicts = match on_conflict {
            OnConflict::Skip => Conflicts::Skip,
            OnConflict::Replace => Conflicts::Replace,
            OnConflict::Fail | OnConflict::Update(_) => Conflicts::Fail,
        };
        let fit = rows.iter().enumerate().map(|(i, row)| {
            check_cancelled(i)?;
            fit_row(&current.schema, row).map_err(|e| e.at(format_args!("row {i}")))
        });
        let rows: Vec<_> = fit.collect::<Result<_>>()?;
        let limits = &self.engine.limits();
        self.engine.test_rows_within(current, &rows, limits)?;
        self.change(current, |writer, staged| {
            let uniques = Target::Any.uniques(writer, matches!(conflicts, Conflicts::Skip));
            let (engine, to): (&Engine, _) = (&self.engine, (writer, staged));
            let mut puts = StagedPuts { engine, current, to, uniques, limits };
            let (rows, conflicts) = (rows.into_iter(), (&conflicts, &conflicts));
            put_rows(&mut puts, rows, conflicts, &mut Shown::default(), check_cancelled)
        })
    }
}

/// What happens to a row whose key exists, ready to be computed.
pub(super) enum Conflicts {
    Fail,
    Skip,
    Replace,
    Update {
        /// The fields that are set.
        positions: Vec<usize>,
        /// The values of these fields.
        values: Box<Computed>,
        /// Whether the row is changed.
        filter: Box<Computed>,
    },
}

impl Conflicts {
    pub(super) fn new(
        run: &StatementRun<'_>,
        schema: &Schema,
        on_conflict: &OnConflict,
    ) -> Result<Self> {
        Ok(match on_conflict {
            OnConflict::Fail => Self::Fail,
            OnConflict::Skip => Self::Skip,
            OnConflict::Replace => Self::Replace,
            OnConflict::Update(ConflictUpdate { set, filter }) => {
                let set = whole_fields(schema, set)?;
                let positions = set_positions(schema, &set)?;
                let exprs: Vec<Expr> = set.iter().map(|(_, expr)| expr.clone()).collect();
                let both = schema.with_excluded()?;
                let compute = |exprs: &[Expr]| {
                    let computed = Computed::new(exprs, &both, &run.options.inputs);
                    computed.map(Box::new).map_err(|e| e.at("ON CONFLICT"))
                };
                // default: without a condition all are meant
                let filter = filter.clone().unwrap_or(Expr::literal(true));
                Self::Update { positions, values: compute(&exprs)?, filter: compute(&[filter])? }
            }
        })
    }

    /// What becomes of an old row that has the key of a new one; `None` when it stays.
    pub(super) fn resolve<'r>(
        &self,
        schema: &Schema,
        old: &[Value],
        new: Cow<'r, [Value]>,
    ) -> Result<Option<Cow<'r, [Value]>>> {
        match self {
            Self::Skip => Ok(None),
            Self::Replace => expect_same_key(schema, old, &new).map(|()| Some(new)),
            Self::Fail => Err(taken(schema, &new, "exists already")),
            Self::Update { positions, values, filter } => {
                let both = [old, &new].concat();
                match filter.of(&both)?.pop() {
                    Some(Value::Bool(true)) => {}
                    Some(Value::Bool(false) | Value::Null) | None => return Ok(None),
                    Some(other) => {
                        let kind = other.as_ref().kind_name();
                        let message =
                            format!("ON CONFLICT: WHERE: expected a condition, found {kind}");
                        return Err(Error::invalid(message));
                    }
                }
                let mut row = old.to_vec();
                for (position, value) in positions.iter().zip(&values.of(&both)?) {
                    let fitted = fit_assigned(schema, *position, value)?;
                    if let Some(slot) = row.get_mut(*position) {
                        *slot = fitted;
                    }
                }
                Ok(Some(row.into()))
            }
        }
    }
}

/// Rows that are staged for a commit.
struct StagedPuts<'a, 'r> {
    engine: &'a Engine,
    current: &'a TableVersion,
    to: (&'a mut TableWriter, &'a mut Staged<'r>),
    uniques: StagedUniques,
    /// What the checks may take.
    limits: &'a Limits,
}

/// What there is where a row is staged.
enum StagedSlot {
    /// A staged row, by its position.
    Staged(usize),
    /// A row that a unique index has found.
    Holder(Holder),
    /// A row with the key, or none.
    Keyed(PreparedPut),
}

impl<'r> StagedPuts<'_, 'r> {
    fn stage(&mut self, row: Cow<'r, [Value]>, prepared: PreparedPut) {
        let (schema, (_, staged)) = (&self.current.schema, &mut self.to);
        let at = staged.put_count();
        let changed = prepared.is_update().then_some(prepared.row_id);
        match schema.key_positions().is_empty() {
            true => staged.put(row, prepared),
            false => staged.put_keyed(schema, row, prepared),
        }
        self.uniques.note(schema, staged, (at, changed), None);
    }

    /// The newest version of a row that a unique index has found.
    fn newest(&self, holder: &Holder, old: &[Value]) -> Result<PreparedPut> {
        let id = [ValueRef::Uint(holder.row_id)];
        let key = match self.current.schema.key_positions() {
            [] => id.to_vec(),
            _ => key_values(&self.current.schema, old),
        };
        let hash = self.current.hash(&key);
        let existing = self.to.0.existing(&key, hash)?.filter(Existing::is_alive);
        let lost = || Error::corrupt(format!("row {} is not found by its key", holder.row_id));
        Ok(PreparedPut::update(hash, existing.ok_or_else(lost)?))
    }
}

impl<'r> PutSink<'r> for StagedPuts<'_, 'r> {
    type Slot = StagedSlot;

    fn schema(&self) -> &Arc<Schema> {
        &self.current.schema
    }

    fn prefetch(&self, rows: &[(usize, Cow<'r, [Value]>)]) {
        if !self.current.schema.key_positions().is_empty() {
            let hashes: Vec<_> = rows.iter().map(|(_, r)| self.current.hash_of_row(r)).collect();
            self.to.0.touch(&hashes);
        }
    }

    fn conflicting(&mut self, row: &[Value]) -> Result<Option<StagedSlot>> {
        if self.uniques.is_empty() {
            return Ok(None);
        }
        let found = self.uniques.in_the_way(self.to.0, &self.current.schema, row)?;
        Ok(found.map(|found| match found {
            ConflictingRow::Staged(at) => StagedSlot::Staged(at),
            ConflictingRow::Stored(holder) => StagedSlot::Holder(holder),
        }))
    }

    fn slot_of(&mut self, row: &[Value]) -> Result<StagedSlot> {
        let prepared = self.to.0.prepare_put(row, false)?;
        Ok(match self.to.1.position_of(&self.current.schema, row, prepared.hash) {
            Some(at) => StagedSlot::Staged(at),
            None => StagedSlot::Keyed(prepared),
        })
    }

    fn occupant(&self, slot: &StagedSlot) -> Occupant {
        match slot {
            StagedSlot::Staged(_) => Occupant::Staged,
            StagedSlot::Holder(_) => Occupant::Stored,
            StagedSlot::Keyed(prepared) => match prepared.existing.filter(Existing::is_alive) {
                Some(_) => Occupant::Stored,
                None => Occupant::Nobody,
            },
        }
    }

    fn old_row(&self, slot: &StagedSlot) -> Result<Vec<Value>> {
        let location = match slot {
            StagedSlot::Staged(at) => {
                let row = self.to.1.row_at(*at).map(<[Value]>::to_vec);
                return row.ok_or_else(|| Error::corrupt(format!("no staged row {at}")));
            }
            StagedSlot::Holder(holder) => Some(holder.location),
            StagedSlot::Keyed(prepared) => prepared.existing.map(|existing| existing.location),
        };
        let location = location.ok_or_else(|| Error::corrupt("a row that is not there"))?;
        Ok(self.current.core.row_at(location)?)
    }

    fn put(
        &mut self,
        slot: StagedSlot,
        old: Option<&[Value]>,
        row: Cow<'r, [Value]>,
    ) -> Result<()> {
        if old.is_some() {
            self.engine.test_rows_within(self.current, &[&*row], self.limits)?;
        }
        let prepared = match (slot, old) {
            (StagedSlot::Keyed(prepared), _) => prepared,
            (StagedSlot::Holder(holder), Some(old)) => self.newest(&holder, old)?,
            (StagedSlot::Holder(_), None) => return Err(Error::corrupt("a row that was not read")),
            (StagedSlot::Staged(at), _) => {
                let (schema, (_, staged)) = (&self.current.schema, &mut self.to);
                let before = staged.row_at(at).filter(|_| !self.uniques.is_empty());
                let before = before.map(<[Value]>::to_vec);
                staged.replace(at, row);
                self.uniques.note(schema, staged, (at, None), before.as_deref());
                return Ok(());
            }
        };
        self.stage(row, prepared);
        Ok(())
    }

    fn add(&mut self, row: Cow<'r, [Value]>) -> Result<()> {
        let prepared = self.to.0.prepare_put(&row, true)?;
        self.stage(row, prepared);
        Ok(())
    }
}

/// The positions of the fields that rows have values for.
fn insert_positions(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..schema.fields().len()).collect());
    }
    let mut positions = Vec::with_capacity(names.len());
    for name in names {
        let position = schema.resolve(name)?;
        if positions.contains(&position) {
            return Err(Error::invalid(format!("field {name:?} is named twice")));
        }
        positions.push(position);
    }
    Ok(positions)
}

fn expect_count(want: usize, got: usize) -> Result<()> {
    if want == got {
        return Ok(());
    }
    Err(Error::invalid(format!("expected {want} values, found {got}")))
}

/// The values of a row that are given, by position.
fn fit_all(
    schema: &Schema,
    positions: &[usize],
    values: &Values,
    exprs: &[Expr],
) -> Result<Vec<(usize, Value)>> {
    expect_count(positions.len(), values.len())?;
    let mut given = Vec::with_capacity(values.len());
    for (i, (position, value)) in positions.iter().zip(values).enumerate() {
        let Some(value) = value else { continue };
        let fitted = fit_assigned(schema, *position, value);
        given.push((*position, fitted.map_err(|e| naming_parameter(e, exprs.get(i)))?));
    }
    Ok(given)
}
