//! Adding rows: from expressions or a query, with what happens to those whose key exists.

use std::borrow::Cow;

use esker_format::{Field, Schema, Value, ValueRef};
use esker_query::model::{ConflictUpdate, Expr, Insert, InsertRows, OnConflict, Overriding};
use esker_query::{Computed, Limits};
use esker_table::TableWriter;
use esker_table::table::{Existing, PreparedPut, describe_key};

use super::assignment::whole_fields;
use super::returning::Shown;
use super::{Changed, On, StatementRun, fit_assigned, naming_parameter, set_positions};
use crate::commit::fit::{fit_row, has_key_field};
use crate::commit::staged::{Staged, key_bytes};
use crate::limits::CancellationCheck;
use crate::statement::conflict::{ConflictingRow, StagedUniques, Target};
use crate::table::for_each_prefetched;
use crate::table_version::TableVersion;
use crate::{Error, ErrorKind, Result, Table};

/// The values of a row, in the order of the named fields; `None` for a default.
pub(super) type Values = Vec<Option<Value>>;

impl StatementRun<'_> {
    pub(super) fn insert(&self, insert: &Insert) -> Result<Changed> {
        let database = match self.on {
            On::Database(database) => database,
            On::Transaction(transaction) => return self.insert_within(transaction, insert),
        };
        let table = database.table(&insert.table)?;
        if let OnConflict::Update(update) = &insert.on_conflict
            && update.set.iter().any(|(name, _)| is_of_key(&table.schema(), name))
        {
            return self.in_transaction(database, |run, within| run.insert_within(within, insert));
        }
        let rows = self.rows_of(insert)?;
        table.attempt(|current| {
            let schema = &current.schema;
            let placed = self.place(current, insert, &rows)?;
            let conflicts = Conflicts::new(self, schema, &insert.on_conflict)?;
            let target = Target::of(schema, insert)?;
            let returning = insert.returning.as_deref();
            table.change(current, |writer, staged| {
                let mut shown = Shown::new(schema, returning);
                let uniques = target.uniques(writer, matches!(conflicts, Conflicts::Skip));
                let (table, limits, shown_to) = (&table, &self.options.inputs.limits, &mut shown);
                let puts = Puts { table, current, staged, uniques, shown: shown_to, limits };
                let check_cancelled = |i| self.expect_time_left(i);
                let rows = puts.put(writer, placed, (&conflicts, target), &check_cancelled)?;
                self.finish(schema, staged, (rows, shown), returning)
            })
        })
    }

    /// The values of the rows, as the statement has them.
    pub(super) fn rows_of(&self, insert: &Insert) -> Result<Vec<Values>> {
        Ok(match &insert.rows {
            InsertRows::Values(rows) => {
                let mut inputs = self.options.inputs.clone();
                let others = self.others.as_ref().map(|others| others.snapshot().engine());
                inputs.sequences = Some(self.engine().as_sequences(others));
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
                    0 => {
                        unnamed_positions(&*self.schema(&insert.table)?, found.columns.len()).len()
                    }
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
        // default: without a row none is placed
        let count = rows.first().map_or(0, Vec::len);
        let positions = match insert.fields.as_slice() {
            [] => unnamed_positions(schema, count),
            names => insert_positions(schema, names)?,
        };
        let placed = rows.iter().enumerate().map(|(i, values)| {
            self.expect_time_left(i)?;
            let exprs = match &insert.rows {
                // default: only for the message: which parameter it was
                InsertRows::Values(rows) => rows.get(i).map_or(&[][..], Vec::as_slice),
                InsertRows::Query(_) => &[],
            };
            let values = match insert.overriding {
                Some(Overriding::User) => &without_identities(schema, &positions, values),
                _ => values,
            };
            let allowed = match self.takes_whole_rows {
                true => Ok(()),
                false => refuse_given(schema, &positions, values, insert.overriding.is_some()),
            };
            let given = allowed.and_then(|()| fit_all(schema, &positions, values, exprs));
            let row = given.and_then(|given| engine.fill_row(schema, given));
            let row = row.and_then(|row| Ok(fit_row(schema, &row)?.into_owned()));
            row.map_err(|e| e.in_row(i as u64))
        });
        let mut placed = placed.map(|row| row.map(Cow::Owned)).collect::<Result<Vec<_>>>()?;
        let limits = &self.options.inputs.limits;
        match self.on {
            On::Database(_) => engine.complete_rows(current, &mut placed, limits)?,
            On::Transaction(transaction) => {
                let mut state = transaction.state();
                transaction.looking_up(&mut state, |others| {
                    engine.complete_by(current, &mut placed, others, limits)
                })?;
            }
        }
        engine.test_rows_within(current, &placed, limits)?;
        Ok(placed.into_iter().map(Cow::into_owned).collect())
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
        self.engine.looking_up(current, |current| {
            self.put_batch_once(current, rows, on_conflict, check_cancelled)
        })
    }

    fn put_batch_once(
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
            fit_row(&current.schema, row).map_err(|e| e.in_row(i as u64))
        });
        let mut rows: Vec<_> = fit.collect::<Result<_>>()?;
        let limits = &self.engine.limits();
        self.engine.complete_rows(current, &mut rows, limits)?;
        self.engine.test_rows_within(current, &rows, limits)?;
        self.change(current, |writer, staged| {
            let uniques = Target::Any.uniques(writer, matches!(conflicts, Conflicts::Skip));
            let shown = &mut Shown::default();
            let puts = Puts { table: self, current, staged, uniques, shown, limits };
            puts.put(writer, rows, (&conflicts, Target::Any), check_cancelled)
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
                let set = whole_fields(schema, set, &|field| Expr::field(field))?;
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

/// Where rows are put.
struct Puts<'a, 'r> {
    table: &'a Table,
    current: &'a TableVersion,
    staged: &'a mut Staged<'r>,
    uniques: StagedUniques,
    /// Every row that is added or changed, where somebody asks.
    shown: &'a mut Shown,
    /// What the checks may take.
    limits: &'a Limits,
}

impl<'r> Puts<'_, 'r> {
    /// A row that is put in place of another one, with what is generated, and tested.
    fn settled(&self, old: &[Value], mut row: Cow<'r, [Value]>) -> Result<Cow<'r, [Value]>> {
        if self.current.schema.has_generated() {
            let before = self.table.engine.before_change(self.current, old)?;
            let changed = (row.to_mut().as_mut_slice(), &before);
            self.table.engine.recompute(self.current, changed, Some(self.limits))?;
        }
        self.table.engine.test_rows_within(self.current, &[&*row], self.limits)?;
        Ok(row)
    }

    /// Stages rows, one after another: each sees those before it. Returns how many were added or
    /// changed. `check_cancelled` is called before each of them.
    fn put(
        mut self,
        writer: &mut TableWriter,
        rows: Vec<impl Into<Cow<'r, [Value]>>>,
        (conflicts, target): (&Conflicts, Target),
        check_cancelled: CancellationCheck<'_>,
    ) -> Result<u64> {
        let generated = self.current.schema.key_positions().is_empty();
        let by_key = if target.leaves_out_key() { &Conflicts::Fail } else { conflicts };
        let mut count = 0;
        let current = self.current;
        let mut rows = rows.into_iter().map(Into::into).enumerate();
        let mut put = |writer: &mut TableWriter, (i, row): (usize, Cow<'r, [Value]>)| {
            check_cancelled(i)?;
            let put = self.put_row(writer, row, generated, by_key, conflicts);
            count += u64::from(put.map_err(|e| e.in_row(i as u64))?);
            Ok(())
        };
        if generated {
            rows.try_for_each(|row| put(writer, row))?;
        } else {
            let hash_of = |(_, row): &(usize, Cow<'_, [Value]>)| current.hash_of_row(row);
            for_each_prefetched(writer, rows, hash_of, put)?;
        }
        Ok(count)
    }

    fn put_row(
        &mut self,
        writer: &mut TableWriter,
        row: Cow<'r, [Value]>,
        generated: bool,
        by_key: &Conflicts,
        conflicts: &Conflicts,
    ) -> Result<bool> {
        if !self.uniques.is_empty() {
            let schema = &self.current.schema;
            match self.uniques.in_the_way(writer, schema, &row)? {
                Some(_) if matches!(conflicts, Conflicts::Skip) => return Ok(false),
                Some(in_the_way) => return self.put_upon(writer, &in_the_way, row, conflicts),
                None => {}
            }
        }
        if generated { self.add(writer, row) } else { self.put_keyed(writer, row, by_key) }
    }

    /// Changes a row that a unique index has found.
    fn put_upon(
        &mut self,
        writer: &mut TableWriter,
        in_the_way: &ConflictingRow,
        row: Cow<'r, [Value]>,
        conflicts: &Conflicts,
    ) -> Result<bool> {
        let schema = &self.current.schema;
        if let ConflictingRow::Staged(at) = in_the_way {
            let old = self.staged_row(*at)?.to_vec();
            let Some(row) = conflicts.resolve(schema, &old, row)? else { return Ok(false) };
            return self.change_staged(*at, row).map(|()| true);
        }
        let ConflictingRow::Stored(holder) = in_the_way else { return Ok(false) };
        let old = self.current.core.row_at(holder.location)?;
        let Some(row) = conflicts.resolve(schema, &old, row)? else { return Ok(false) };
        let row = self.settled(&old, row)?;
        let id = [ValueRef::Uint(holder.row_id)];
        let key: Vec<ValueRef<'_>> = match schema.key_positions() {
            [] => id.to_vec(),
            positions => positions.iter().filter_map(|p| old.get(*p)).map(Value::as_ref).collect(),
        };
        let hash = self.current.hash(&key);
        let existing = writer.existing(&key, hash)?.filter(Existing::is_alive);
        let Some(existing) = existing else {
            return Err(Error::corrupt(format!("row {} is not found by its key", holder.row_id)));
        };
        let prepared = PreparedPut::update(hash, existing);
        self.stage(Some(&old), row, prepared)?;
        Ok(true)
    }

    fn staged_row(&self, at: usize) -> Result<&[Value]> {
        self.staged.row_at(at).ok_or_else(|| Error::corrupt(format!("no staged row {at}")))
    }

    fn add(&mut self, writer: &mut TableWriter, row: Cow<'r, [Value]>) -> Result<bool> {
        let prepared = writer.prepare_put(&row, true)?;
        self.stage(None, row, prepared)?;
        Ok(true)
    }

    fn put_keyed(
        &mut self,
        writer: &mut TableWriter,
        row: Cow<'r, [Value]>,
        conflicts: &Conflicts,
    ) -> Result<bool> {
        let schema = &self.current.schema;
        let prepared = writer.prepare_put(&row, false)?;
        if let Some(at) = self.staged.position_of(schema, &row, prepared.hash) {
            if matches!(conflicts, Conflicts::Fail) {
                return Err(taken(schema, &row, "is in an earlier row, too"));
            }
            let old = self.staged_row(at)?;
            let Some(row) = conflicts.resolve(schema, old, row)? else { return Ok(false) };
            return self.change_staged(at, row).map(|()| true);
        }
        let mut before = None;
        let row = match prepared.existing.filter(Existing::is_alive) {
            None => row,
            // What is replaced need not be read, unless it is shown.
            Some(_) if matches!(conflicts, Conflicts::Replace) && !self.shown.has_versions() => row,
            Some(_) if matches!(conflicts, Conflicts::Skip) => return Ok(false),
            Some(existing) => {
                let old = self.current.core.row_at(existing.location)?;
                let Some(row) = conflicts.resolve(schema, &old, row)? else { return Ok(false) };
                let row = self.settled(&old, row)?;
                before = Some(old);
                row
            }
        };
        self.stage(before.as_deref(), row, prepared)?;
        Ok(true)
    }

    /// Stages a row.
    fn stage(
        &mut self,
        old: Option<&[Value]>,
        row: Cow<'r, [Value]>,
        prepared: PreparedPut,
    ) -> Result<()> {
        self.shown.add(old, Some(&row));
        let at = self.staged.put_count();
        let changed = prepared.is_update().then_some(prepared.row_id);
        let schema = &self.current.schema;
        match schema.key_positions().is_empty() {
            true => self.staged.put(row, prepared),
            false => self.staged.put_keyed(schema, row, prepared),
        }
        self.uniques.note(&self.current.schema, self.staged, (at, changed), None)
    }

    /// Puts a row in the place of a staged one.
    fn change_staged(&mut self, at: usize, row: Cow<'r, [Value]>) -> Result<()> {
        let old = self.staged.row_at(at);
        let old = old.ok_or_else(|| Error::corrupt(format!("staged row {at} is not there")))?;
        let row = self.settled(old, row)?;
        let before = self.staged.row_at(at).map(<[Value]>::to_vec);
        self.shown.add(before.as_deref(), Some(&row));
        self.staged.replace(at, row);
        let schema = &self.current.schema;
        self.uniques.note(schema, self.staged, (at, None), before.as_deref())
    }
}

/// Refuses a row in the place of one that a unique index has found and that has another key: what
/// leads to a row by its key would lead to a row without it.
fn expect_same_key(schema: &Schema, old: &[Value], new: &[Value]) -> Result<()> {
    if key_bytes(schema, old) == key_bytes(schema, new) {
        return Ok(());
    }
    let key = |row| describe_key(schema, &key_values(schema, row));
    let message = format!(
        "{} would take the place of {}, which has its value in a unique index: remove that first",
        key(new),
        key(old)
    );
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// Whether a name is that of a field of the key, or a path leads into one.
fn is_of_key(schema: &Schema, name: &str) -> bool {
    let root = || name.split_once('.').and_then(|(field, _)| schema.resolve(field).ok());
    has_key_field(schema, schema.resolve(name).ok().or_else(root).into_iter())
}

/// The error for a row whose key another one has.
fn taken(schema: &Schema, row: &[Value], how: &str) -> Error {
    let key = describe_key(schema, &key_values(schema, row));
    Error::new(ErrorKind::AlreadyExists, format!("{key} {how}"))
}

fn key_values<'r>(schema: &Schema, row: &'r [Value]) -> Vec<ValueRef<'r>> {
    schema.key_positions().iter().filter_map(|p| row.get(*p)).map(Value::as_ref).collect()
}

/// The positions of the fields that rows of so many values have values for where none is named: of
/// all, or of all but those that are generated. A row of no values has the defaults.
fn unnamed_positions(schema: &Schema, count: usize) -> Vec<usize> {
    if count == 0 {
        return Vec::new();
    }
    let fields = schema.fields().iter().enumerate();
    let is_whole = count == schema.fields().len();
    let meant = fields.filter(|(_, field)| is_whole || field.generated.is_none());
    meant.map(|(position, _)| position).collect()
}

/// The positions of the fields that rows have values for.
fn insert_positions(schema: &Schema, names: &[String]) -> Result<Vec<usize>> {
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

/// Refuses values of fields that take DEFAULT alone.
fn refuse_given(
    schema: &Schema,
    positions: &[usize],
    values: &Values,
    to_identities: bool,
) -> Result<()> {
    let given = positions.iter().zip(values).filter(|(_, value)| value.is_some());
    let fields = given.filter_map(|(position, _)| schema.fields().get(*position));
    let mut fields = fields.filter(|field| !(to_identities && field.identity.is_some()));
    Ok(fields.try_for_each(Field::refuse_given)?)
}

/// The values of a row, those of identities left to their sequences.
fn without_identities(schema: &Schema, positions: &[usize], values: &Values) -> Values {
    let field = |position: usize| schema.fields().get(position);
    let is_own = |position: usize| field(position).is_some_and(|field| field.identity.is_some());
    let mut left = values.clone();
    let places = positions.iter().zip(&mut left);
    places.filter(|(position, _)| is_own(**position)).for_each(|(_, value)| *value = None);
    left
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
