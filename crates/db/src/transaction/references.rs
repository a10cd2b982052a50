//! References within a transaction. At the end of each statement the rows that others refer to, or
//! *name*, are there.
//!
//! ```text
//! statement ─► notes: values that its rows name      table "orders": user = 7
//!              │      values that its rows give up   table "users":  id = 3 ─► gone, or another
//!              ▼
//! what rows gave up and none has: the rows that name it go, too, or change   (until none is left)
//!              ▼                  or the statement is refused
//! what rows name and none has: the statement is refused
//!              ▼
//! commit, under the lock ─► rows that were named are there still?
//!                           no row that came since the snapshot names what is gone?
//! ```
//!
//! # Invariants
//!
//! 1. What a reference does is part of the statement: undone with it, and in the same commit.
//! 2. What was seen in the snapshot counts at the commit again, against the newest versions. What
//!    is the transaction's own needs no second look: no other commit changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::key::encode_key;
use esker_format::schema::{Reference, ReferenceAction};
use esker_format::{Schema, TableId, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::Query;
use esker_query::model::{Expr, Operator};

use super::rows::TransactionTable;
use super::write_buffer::BaseVersion;
use super::{State, Transaction};
use crate::catalog::reference_target::{ReferenceTarget, TargetKey};
use crate::commit::fit::{fit_key, fit_value};
use crate::commit::named_rows::{NamedRows, missing, named_by};
use crate::read::source::SnapshotSource;
use crate::table_version::TableVersion;
use crate::transaction::given_up::GivenUpRows;
use crate::{Error, ErrorKind, Result, SnapshotTable};

/// Values that are looked for in one query.
const VALUES_AT_ONCE: usize = 1_024;
/// The same of several fields, which are written one below the other.
const ROWS_AT_ONCE: usize = 32;

/// Bytes that a noted value takes beside its own, about.
const NOTED_BYTES: usize = 160;

/// One of the references of a table, or of those to it.
type NumberOf = (TableId, usize);

/// What a transaction knows of references.
#[derive(Default)]
pub(super) struct BoundState {
    /// What the rows name that the statement has put.
    naming: BTreeMap<NumberOf, Naming>,
    /// What the rows gave up that it has changed or removed.
    giving_up: BTreeMap<NumberOf, GivingUp>,
    /// Rows of the snapshot that rows of the transaction name.
    pub named: NamedRows,
    /// What is gone that the snapshot has.
    pub given_up: GivenUpRows,
    /// Bytes of what the statement has noted, about.
    bytes: usize,
}

struct Naming {
    current: TableVersion,
    /// By their bytes as the fields have them.
    values: BTreeMap<Vec<u8>, Vec<Value>>,
}

struct GivingUp {
    current: TableVersion,
    rows: Vec<Given>,
    /// Where the row is among them that has a key now.
    by_key: BTreeMap<Vec<u8>, usize>,
}

/// Values of a row that goes to another key: the number of the referrer, and where they are noted.
pub(super) struct MovedValues {
    number: usize,
    at: usize,
}

/// The values that a row had before the statement, and those it has.
#[derive(Clone)]
struct Given {
    old: Vec<Value>,
    /// `None` when the row is gone.
    new: Option<Vec<Value>>,
}

/// Rows of a table that name rows of another.
struct NamingRows<'t> {
    table: TransactionTable<'t>,
    reference: Reference,
    /// The positions of its fields.
    positions: Vec<usize>,
    target: ReferenceTarget,
}

impl BoundState {
    /// Bytes that it keeps, about.
    pub fn byte_count(&self) -> usize {
        self.named.byte_count() + self.given_up.byte_count() + self.bytes
    }

    /// Forgets what the statement has noted.
    pub fn forget_statement(&mut self) {
        self.naming.clear();
        self.giving_up.clear();
        self.bytes = 0;
    }
}

/// Noting.
impl TransactionTable<'_> {
    /// A row is put or removed: what it names, and what the row before it gives up.
    pub(super) fn note_bound(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        row: Option<&[Value]>,
    ) -> Result<()> {
        let schema = Arc::clone(self.schema());
        if !schema.is_bound() {
            return Ok(());
        }
        if let Some(row) = row {
            self.note_naming(state, &schema, row)?;
        }
        let given = self.note_giving(state, key, row)?;
        if row.is_some() {
            self.note_landed(state, key, &given);
        }
        Ok(())
    }

    /// A row goes to another key: what it gives up. It is on the way until it has landed.
    pub(super) fn note_moved(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        row: &[Value],
    ) -> Result<Vec<MovedValues>> {
        self.note_giving(state, key, Some(row))
    }

    /// A row that gave something up is there, under a key that may be another one.
    pub(super) fn note_landed(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        moved: &[MovedValues],
    ) {
        for MovedValues { number, at } in moved {
            let giving_up = state.bound.giving_up.get_mut(&(self.current.core.id(), *number));
            if let Some(giving) = giving_up {
                giving.by_key.insert(self.bytes_of(key), *at);
            }
        }
    }

    /// What the row of a key gives up, as it is another one now, or none.
    fn note_giving(
        &self,
        state: &mut State,
        key: &[ValueRef<'_>],
        row: Option<&[Value]>,
    ) -> Result<Vec<MovedValues>> {
        let schema = Arc::clone(self.schema());
        let mut noted = Vec::new();
        if schema.referrers().is_empty() {
            return Ok(noted);
        }
        let keeps_key = row.is_some_and(|row| self.has_key(key, row));
        let mut before = None;
        for (number, referrer) in schema.referrers().iter().enumerate() {
            let positions = schema.positions_of(&referrer.fields)?;
            if keeps_key && positions.iter().all(|at| schema.key_positions().contains(at)) {
                continue;
            }
            let before = match &before {
                Some(before) => before,
                None => before.insert(self.see(state, key)?.row),
            };
            let Some(before) = before else { break };
            let values = |row: &[Value]| {
                positions.iter().filter_map(|at| row.get(*at)).cloned().collect::<Vec<_>>()
            };
            let at = self.note_given(state, number, (key, &values(before), row.map(values)));
            noted.extend(at.map(|at| MovedValues { number, at }));
        }
        Ok(noted)
    }

    fn note_naming(&self, state: &mut State, schema: &Schema, row: &[Value]) -> Result<()> {
        for (number, reference) in schema.references().iter().enumerate() {
            let positions = schema.positions_of(&reference.fields)?;
            let value = |at: usize| row.get(at).map(Value::as_ref);
            let Some(values) = named_by(&positions, value) else { continue };
            let values: Vec<Value> = values.iter().map(|value| (*value).to_owned()).collect();
            let mut bytes = Vec::new();
            for (at, value) in positions.iter().zip(&values) {
                if let Some(field) = schema.fields().get(*at) {
                    encode_key(&mut bytes, field.data_type, value.as_ref());
                }
            }
            let current = &self.current;
            let naming = state.bound.naming.entry((current.core.id(), number));
            let new = || Naming { current: current.clone(), values: BTreeMap::new() };
            let taken = NOTED_BYTES + bytes.len();
            if naming.or_insert_with(new).values.insert(bytes, values).is_none() {
                state.bound.bytes += taken;
            }
        }
        Ok(())
    }

    fn note_given(
        &self,
        state: &mut State,
        number: usize,
        (key, old, new): (&[ValueRef<'_>], &[Value], Option<Vec<Value>>),
    ) -> Option<usize> {
        let current = &self.current;
        let bytes = self.bytes_of(key);
        let giving_up = state.bound.giving_up.entry((current.core.id(), number));
        let empty =
            || GivingUp { current: current.clone(), rows: Vec::new(), by_key: BTreeMap::new() };
        let GivingUp { rows, by_key, .. } = giving_up.or_insert_with(empty);
        let known = by_key.remove(&bytes);
        if let Some((at, given)) = known.and_then(|at| Some((at, rows.get_mut(at)?))) {
            given.new = new;
            return Some(at);
        }
        if old.iter().any(Value::is_null) {
            return None;
        }
        state.bound.bytes += 2 * NOTED_BYTES + bytes.len();
        rows.push(Given { old: old.to_vec(), new });
        Some(rows.len() - 1)
    }
}

/// The end of a statement.
impl Transaction {
    /// Does what references make of the changes of a statement, and refuses it when a row would
    /// name one that is not there.
    pub(super) fn end_bound_statement(&self, state: &mut State) -> Result<()> {
        let outcome = self.settle_references(state);
        state.bound.forget_statement();
        outcome
    }

    fn settle_references(&self, state: &mut State) -> Result<()> {
        let mut refusing = Vec::new();
        // What a reference changes may be referred to itself.
        while !state.bound.giving_up.is_empty() {
            for ((_, number), giving) in std::mem::take(&mut state.bound.giving_up) {
                let given: Vec<Given> = giving.rows.into_iter().filter(Given::is_given).collect();
                self.settle_given(state, (&giving.current, number), given, &mut refusing)?;
            }
        }
        for (current, number, given) in refusing {
            let naming = self.naming_of(state, &current, number)?;
            self.refuse_named(state, &current, &naming, &given)?;
        }
        for ((_, number), naming) in std::mem::take(&mut state.bound.naming) {
            self.expect_named(state, &naming.current, number, naming.values)?;
        }
        Ok(())
    }

    /// The table of a referrer, and its reference.
    fn naming_of(
        &self,
        state: &State,
        current: &TableVersion,
        number: usize,
    ) -> Result<NamingRows<'_>> {
        let gone = || Error::corrupt("a referrer of a table is gone within a statement");
        let referrer = current.schema.referrers().get(number).ok_or_else(gone)?;
        let version = self.current(state, &referrer.table)?;
        let reference = version.schema.reference(&referrer.reference).cloned();
        let reference = reference.ok_or_else(gone)?;
        let positions = version.schema.positions_of(&reference.fields)?;
        let target = ReferenceTarget::of(&current.core, &current.schema, &reference.columns)?;
        let table = TransactionTable { transaction: self, current: version };
        Ok(NamingRows { table, reference, positions, target })
    }

    fn settle_given(
        &self,
        state: &mut State,
        (current, number): (&TableVersion, usize),
        given: Vec<Given>,
        refusing: &mut Vec<(TableVersion, usize, Vec<Given>)>,
    ) -> Result<()> {
        let naming = self.naming_of(state, current, number)?;
        let of = TransactionTable { transaction: self, current: current.clone() };
        let old: Vec<Vec<Value>> = given.iter().map(|given| given.old.clone()).collect();
        let found = of.find_all(state, &naming.target, &old)?;
        let naming_table = &naming.table.current;
        // Of a table of its own no other commit has rows.
        let is_new = state.definition(naming_table).is_some_and(|table| table.is_new());
        let Reference { on_delete, on_update, .. } = naming.reference;
        let (mut removed, mut changed) = (Vec::new(), Vec::new());
        for (given, found) in given.into_iter().zip(found) {
            let action = if given.new.is_some() { on_update } else { on_delete };
            // Another row has the values now. What is done with a row that refers to the one that
            // gave them up does not depend on that, but where nothing is done.
            if found.is_there && action == ReferenceAction::NoAction {
                continue;
            }
            if !is_new {
                let (target, values) = (&naming.target, &given.old);
                state.bound.given_up.note(naming_table, &naming.reference, target, values);
            }
            let of_kind = if given.new.is_some() { &mut changed } else { &mut removed };
            of_kind.push(given);
        }
        // Rows follow those that went before others come to the values of these.
        for (given, action) in [(removed, on_delete), (changed, on_update)] {
            match action {
                _ if given.is_empty() => {}
                ReferenceAction::NoAction => refusing.push((current.clone(), number, given)),
                ReferenceAction::Restrict => {
                    let old = given.iter().map(|given| given.old.clone()).collect();
                    self.refuse_any_named(state, current, &naming, old)?;
                }
                _ => naming.follow(state, action, &given)?,
            }
        }
        Ok(())
    }

    /// Refuses that rows name what is gone.
    fn refuse_named(
        &self,
        state: &mut State,
        current: &TableVersion,
        naming: &NamingRows<'_>,
        given: &[Given],
    ) -> Result<()> {
        let of = TransactionTable { transaction: self, current: current.clone() };
        let old: Vec<Vec<Value>> = given.iter().map(|given| given.old.clone()).collect();
        let found = of.find_all(state, &naming.target, &old)?;
        let gone = old.into_iter().zip(found).filter(|(_, found)| !found.is_there);
        self.refuse_any_named(state, current, naming, gone.map(|(old, _)| old).collect())
    }

    /// Refuses that rows name some values, whichever row has them now.
    fn refuse_any_named(
        &self,
        state: &mut State,
        current: &TableVersion,
        naming: &NamingRows<'_>,
        values: Vec<Vec<Value>>,
    ) -> Result<()> {
        let Some(row) = naming.rows_naming(state, &values)?.into_iter().next() else {
            return Ok(());
        };
        let (name, reference) = (naming.table.name(), &naming.reference.name);
        let (table, shown) = (current.core.name(), naming.target.shown(&row.values));
        Err(Error::violated(format!(
            "the row of table {table:?} with {shown} is referenced from table {name:?}, reference \
             {reference:?}"
        )))
    }

    /// Refuses rows that name rows that are not there; remembers those of the snapshot.
    fn expect_named(
        &self,
        state: &mut State,
        current: &TableVersion,
        number: usize,
        values: BTreeMap<Vec<u8>, Vec<Value>>,
    ) -> Result<()> {
        let Some(reference) = current.schema.references().get(number) else { return Ok(()) };
        let version = match reference.table == *current.core.name() {
            true => current.clone(),
            false => self.current(state, &reference.table)?,
        };
        let target = ReferenceTarget::of(&version.core, &version.schema, &reference.columns)?;
        let of = TransactionTable { transaction: self, current: version };
        let table = self.name_within(state, current);
        let mut fitting = Vec::new();
        for values in values.into_values() {
            let borrowed: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
            match target.fit(&borrowed) {
                Some(fitted) => fitting.push((values, fitted)),
                None => self.expect_unnamed(state, current, reference, (&target, &values))?,
            }
        }
        let fitted: Vec<_> = fitting.iter().map(|(_, fitted)| fitted.clone()).collect();
        let found = of.find_all(state, &target, &fitted)?;
        for ((values, fitted), found) in fitting.into_iter().zip(found) {
            if !found.is_there {
                self.expect_unnamed(state, current, reference, (&target, &values))?;
            } else if found.is_in_snapshot {
                let fitted: Vec<ValueRef<'_>> = fitted.iter().map(Value::as_ref).collect();
                state.bound.named.of(&table, reference, &target).note(&fitted)?;
            }
        }
        Ok(())
    }

    /// Refuses values that no row has: unless a later change of the same statement has given the
    /// row other ones.
    fn expect_unnamed(
        &self,
        state: &mut State,
        current: &TableVersion,
        reference: &Reference,
        (target, values): (&ReferenceTarget, &Vec<Value>),
    ) -> Result<()> {
        let naming = NamingRows {
            table: TransactionTable { transaction: self, current: current.clone() },
            reference: reference.clone(),
            positions: current.schema.positions_of(&reference.fields)?,
            target: target.clone(),
        };
        if naming.rows_naming(state, std::slice::from_ref(values))?.is_empty() {
            return Ok(());
        }
        let table = self.name_within(state, current);
        Err(Error::violated(missing(&table, &reference.name, target, values)))
    }

    /// What a table is called in the transaction.
    fn name_within(&self, state: &State, current: &TableVersion) -> String {
        match state.definition(current) {
            Some(definition) => definition.name.clone(),
            None => current.core.name().to_string(),
        }
    }

    /// What others may not have come before with, for the commit: what is there again is no more
    /// given up.
    pub(super) fn bound_at_commit(&self, state: &mut State) -> Result<()> {
        if state.bound.given_up.is_empty() {
            return Ok(());
        }
        let mut given_up = std::mem::take(&mut state.bound.given_up);
        given_up.retain(|target, values| {
            let core = &target.core;
            let is_defined =
                state.definitions.as_ref().is_some_and(|new| new.get(core.id()).is_some());
            // No other commit knows a table that a savepoint has taken back.
            if !is_defined && !self.snapshot.has(core) {
                return Ok(vec![false; values.len()]);
            }
            let current = self.version_of(state, Arc::clone(core))?;
            let Some(target) = target.by_schema(&current.schema) else {
                return Ok(vec![true; values.len()]);
            };
            let of = TransactionTable { transaction: self, current };
            let found = of.find_all(state, &target, values)?;
            Ok(found.into_iter().map(|found| !found.is_there).collect())
        })?;
        state.bound.given_up = given_up;
        Ok(())
    }
}

/// Looking.
impl TransactionTable<'_> {
    /// Of several values that fit, none of them NULL, whether a row has them.
    pub(super) fn find_all(
        &self,
        state: &mut State,
        target: &ReferenceTarget,
        wanted: &[Vec<Value>],
    ) -> Result<Vec<FoundValues>> {
        if target.key == TargetKey::Primary {
            return wanted.iter().map(|values| self.find_key(state, target, values)).collect();
        }
        let of = |found: Vec<FoundRow>| -> std::collections::BTreeSet<Vec<u8>> {
            found.iter().map(|found| target.bytes_of(&found.values)).collect()
        };
        let there = of(self.rows_with(state, &target.positions, wanted)?);
        let is_new = state.definition(&self.current).is_some_and(|table| table.is_new());
        let is_known = !is_new && self.transaction.snapshot.has(&self.current.core);
        let before = match is_known && !there.is_empty() {
            false => std::collections::BTreeSet::new(),
            true => {
                let before = self.transaction.snapshot.table_core(&self.current.core)?;
                let schema = before.schema();
                let target = target.by_schema(schema);
                // default: a column that came since had no values
                let positions = target.map(|target| target.positions).unwrap_or_default();
                match positions.is_empty() {
                    true => std::collections::BTreeSet::new(),
                    false => of(self.rows_of(&before, &positions, wanted)?),
                }
            }
        };
        let found = wanted.iter().map(|values| {
            let bytes = target.bytes_of(values);
            let (is_there, is_in_snapshot) = (there.contains(&bytes), before.contains(&bytes));
            FoundValues { is_there, is_in_snapshot }
        });
        Ok(found.collect())
    }

    /// The same of a key.
    fn find_key(
        &self,
        state: &mut State,
        target: &ReferenceTarget,
        values: &[Value],
    ) -> Result<FoundValues> {
        let key = target.ordered(values);
        let seen = self.see(state, &key)?;
        let base = match seen.base {
            BaseVersion::Unknown => self.transaction.base(state).version(&self.current, &key)?,
            known => known,
        };
        let (is_there, is_in_snapshot) = (seen.row.is_some(), base != BaseVersion::Absent);
        Ok(FoundValues { is_there, is_in_snapshot })
    }

    /// The rows, as the transaction has them, with some of several values in some fields: the key,
    /// or the row id, and the fields.
    fn rows_with(
        &self,
        state: &mut State,
        positions: &[usize],
        wanted: &[Vec<Value>],
    ) -> Result<Vec<FoundRow>> {
        let core = &self.current.core;
        let rows = self.transaction.with_changes(state, [core])?.table_core(core)?;
        self.rows_of(&rows, positions, wanted)
    }

    fn rows_of(
        &self,
        rows: &SnapshotTable,
        positions: &[usize],
        wanted: &[Vec<Value>],
    ) -> Result<Vec<FoundRow>> {
        let schema = rows.schema();
        let field = |at: &usize| schema.fields().get(*at).map(|field| Expr::field(&field.name));
        let fields: Vec<Expr> = positions.iter().filter_map(field).collect();
        let mut query = Query::table("");
        query.select(Expr::field(esker_format::schema::ROW_ID_NAME));
        schema.key_fields().for_each(|field| {
            query.select(Expr::field(&field.name));
        });
        fields.iter().for_each(|field| {
            query.select(field.clone());
        });
        let (source, key_fields) =
            (SnapshotSource::with_row_id(rows.rows_as_of()), schema.key_positions().len());
        let mut found = Vec::new();
        let at_once = if fields.len() == 1 { VALUES_AT_ONCE } else { ROWS_AT_ONCE };
        for wanted in wanted.chunks(at_once) {
            query.filter = Some(has_one_of(&fields, wanted));
            let options = self.transaction.engine.query_options();
            let answer = esker_query::execute(&query, &source, &options)?;
            for row in answer.to_rows() {
                found.push(FoundRow::of(&row, key_fields)?);
            }
        }
        Ok(found)
    }
}

/// Whether a row has some values.
#[derive(Clone, Copy)]
pub(super) struct FoundValues {
    pub is_there: bool,
    /// Whether one of the snapshot has them.
    pub is_in_snapshot: bool,
}

/// A row that was found.
struct FoundRow {
    key: Vec<Value>,
    /// The fields that were looked for.
    values: Vec<Value>,
}

impl FoundRow {
    fn of(row: &[Value], key_fields: usize) -> Result<Self> {
        let short =
            || Error::corrupt(format!("{} columns of a row that refers to another", row.len()));
        let (row_id, rest) = row.split_first().ok_or_else(short)?;
        let (key, values) = rest.split_at_checked(key_fields).ok_or_else(short)?;
        let key = if key_fields == 0 { vec![row_id.clone()] } else { key.to_vec() };
        Ok(Self { key, values: values.to_vec() })
    }
}

/// The condition that some fields have one of several values.
fn has_one_of(fields: &[Expr], wanted: &[Vec<Value>]) -> Expr {
    if let [field] = fields {
        let values = wanted.iter().flatten().map(|value| Expr::literal(value.clone()));
        return Expr::Apply(Operator::In, std::iter::once(field.clone()).chain(values).collect());
    }
    let all = |values: &Vec<Value>| {
        let is = |(field, value): (&Expr, &Value)| {
            field.clone().binary(Operator::Eq, Expr::literal(value.clone()))
        };
        fields.iter().zip(values).map(is).reduce(Expr::and)
    };
    let any = |a: Expr, b: Expr| a.binary(Operator::Or, b);
    // default: without values no row is meant
    wanted.iter().filter_map(all).reduce(any).unwrap_or_else(|| Expr::literal(false))
}

impl Given {
    /// Whether the values are others now.
    fn is_given(&self) -> bool {
        let is_same = |new: &Vec<Value>| {
            new.iter().zip(&self.old).all(|(new, old)| new.as_ref().is_identical(old.as_ref()))
        };
        !self.new.as_ref().is_some_and(is_same)
    }
}

impl NamingRows<'_> {
    /// The rows that name rows with some values.
    fn rows_naming(&self, state: &mut State, wanted: &[Vec<Value>]) -> Result<Vec<FoundRow>> {
        self.table.rows_with(state, &self.positions, wanted)
    }

    /// Removes or changes the rows that name what is gone.
    fn follow(&self, state: &mut State, action: ReferenceAction, given: &[Given]) -> Result<()> {
        let schema = Arc::clone(self.table.schema());
        let old: Vec<_> = given.iter().map(|given| given.old.clone()).collect();
        let at = |e: Error| e.at(format_args!("reference {:?}", self.reference.name));
        let by_old: BTreeMap<Vec<u8>, &Given> =
            given.iter().map(|given| (self.target.bytes_of(&given.old), given)).collect();
        let mut lifted = Vec::new();
        for found in self.rows_naming(state, &old)? {
            let key = fit_key(&schema, &found.key)?;
            let seen = self.table.see(state, &key)?;
            let Some(mut row) = seen.row.clone() else { continue };
            let values: Vec<ValueRef<'_>> = found.values.iter().map(Value::as_ref).collect();
            let fitted = self.target.fit(&values);
            let given = fitted.and_then(|fitted| by_old.get(&self.target.bytes_of(&fitted)));
            let unknown = || Error::corrupt("a row refers to values that no row has given up");
            let given = given.ok_or_else(unknown)?;
            if action == ReferenceAction::Cascade && given.new.is_none() {
                self.table.remove(state, &key, &seen).map_err(at)?;
                continue;
            }
            let before = self.table.before_change(&row)?;
            for (number, position) in self.positions.iter().enumerate() {
                let (Some(field), Some(slot)) =
                    (schema.fields().get(*position), row.get_mut(*position))
                else {
                    continue;
                };
                let value = match action {
                    ReferenceAction::SetDefault => {
                        self.table.transaction.engine.default_of(&schema, field)?
                    }
                    ReferenceAction::Cascade => {
                        let new = given.new.as_ref().and_then(|new| new.get(number)).cloned();
                        new.ok_or_else(unknown)?
                    }
                    _ => Value::Null,
                };
                *slot = fit_value(field, &value).map_err(at)?;
            }
            self.table.recompute(state, (&mut row, &before)).map_err(at)?;
            if !self.table.has_key(&key, &row) {
                lifted.push(self.table.lift(state, &key, &seen, row).map_err(at)?);
                continue;
            }
            self.table.replace(state, &key, (row, seen.base, seen.new_row_id)).map_err(at)?;
        }
        lifted.into_iter().try_for_each(|lifted| self.table.land(state, lifted).map_err(at))
    }
}

impl State {
    /// Refuses a commit that others have come before: under the commit lock.
    pub(super) fn expect_bound(
        &self,
        catalogue: &mut crate::catalogue::Catalogue,
        read_at: u64,
    ) -> Result<()> {
        if Bug::ReferenceCheckedAsOfSnapshot.is_planted() {
            return Ok(());
        }
        self.bound.named.expect_there(catalogue, ErrorKind::Conflict)?;
        self.bound.given_up.expect_unnamed(catalogue, read_at)
    }
}
