//! Definitions of tables that refer to each other. A change of one changes the schemas of the
//! others in the same commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::schema::{Alteration, Reference, Referrer};
use esker_format::{Schema, Value, ValueRef};
use esker_query::Query;
use esker_query::model::{Expr, Operator};

use super::definitions::Definitions;
use super::tables::take;
use super::undo::Taken;
use super::{State, Transaction};
use crate::catalog::reference_target::ReferenceTarget;
use crate::catalog::references::{Completing, Told, refuse_named};
use crate::commit::named_rows::missing;
use crate::read::source::SnapshotSource;
use crate::table_version::TableVersion;
use crate::transaction::rows::TransactionTable;
use crate::{Database, Error, Result, Table};

impl Database {
    /// Creates a table that refers to others.
    pub(crate) fn create_bound_table(&self, name: &str, schema: &Schema) -> Result<Table> {
        Transaction::run(self.engine(), |within| {
            within.create_table(name, schema.clone()).map(drop)
        })?;
        self.table(name)
    }

    /// Removes a table that refers to others.
    pub(crate) fn drop_bound_table(&self, name: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.drop_table(name))
    }

    /// Gives a table another name that refers to others, or others to it.
    pub(crate) fn rename_bound_table(&self, from: &str, to: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.rename_table(from, to))
    }

    /// Changes a table, and others with it; returns the commit.
    pub(crate) fn alter_bound_table(&self, name: &str, alterations: &[Alteration]) -> Result<u64> {
        Transaction::run_as_of(self.engine(), |within| within.alter_table(name, alterations))
            .map(|((), commit)| commit)
    }
}

/// A change of what others know of a table.
struct Rebound {
    references: Vec<Reference>,
    referrers: Vec<Referrer>,
}

/// All within one definition.
impl Transaction {
    /// A table as it is within new definitions.
    pub(super) fn version_within(
        &self,
        definitions: &Definitions,
        name: &str,
    ) -> Result<TableVersion> {
        let Some(core) = definitions.names.get(name) else {
            self.engine.acknowledge_published()?;
            return Err(crate::engine::no_table(name, &definitions.names));
        };
        let schema = self.schema_within(definitions, core)?;
        Ok(TableVersion::new(Arc::clone(core), schema))
    }

    /// Completes the references of a schema from number `first` on; see [`Completing::complete`].
    pub(super) fn complete(
        &self,
        definitions: &Definitions,
        (name, schema): (&str, Schema),
        first: usize,
    ) -> Result<(Schema, Told)> {
        let find = |name: &str| self.version_within(definitions, name);
        Completing { name, schema, find: &find }.complete(first)
    }

    /// Tells tables of references to them.
    pub(super) fn tell(
        &self,
        state: &mut State,
        definitions: &mut Definitions,
        (told, holds_rows): (Told, bool),
    ) -> Result<Vec<Taken>> {
        let mut taken = Vec::new();
        for (name, new) in told {
            let change = |schema: &Schema| {
                let mut referrers = schema.referrers().to_vec();
                referrers.extend(new.iter().cloned());
                Rebound { references: schema.references().to_vec(), referrers }
            };
            taken.push(self.rebind(state, definitions, (&name, holds_rows), change)?);
        }
        Ok(taken)
    }

    /// Tells tables that references of a table to them are gone.
    pub(super) fn untell(
        &self,
        state: &mut State,
        definitions: &mut Definitions,
        (name, gone): (&str, &[Reference]),
    ) -> Result<Vec<Taken>> {
        let mut by_table: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for reference in gone.iter().filter(|reference| reference.table != name) {
            by_table.entry(&reference.table).or_default().push(&reference.name);
        }
        let mut taken = Vec::new();
        for (table, gone) in by_table {
            let change = |schema: &Schema| {
                let stays = |referrer: &&Referrer| {
                    referrer.table != name || !gone.contains(&referrer.reference.as_str())
                };
                let referrers = schema.referrers().iter().filter(stays).cloned().collect();
                Rebound { references: schema.references().to_vec(), referrers }
            };
            taken.push(self.rebind(state, definitions, (table, false), change)?);
        }
        Ok(taken)
    }

    /// Tells the tables that are bound to a table its new name.
    pub(super) fn tell_name(
        &self,
        state: &mut State,
        definitions: &mut Definitions,
        (from, to): (&str, &str),
        schema: &Schema,
    ) -> Result<Vec<Taken>> {
        let named = schema.references().iter().map(|reference| reference.table.clone());
        let naming = schema.referrers().iter().map(|referrer| referrer.table.clone());
        let tables: std::collections::BTreeSet<String> = named.chain(naming).collect();
        let mut taken = Vec::new();
        for table in &tables {
            let table = if table == from { to } else { table.as_str() };
            let change = |schema: &Schema| {
                let mut rebound = Rebound {
                    references: schema.references().to_vec(),
                    referrers: schema.referrers().to_vec(),
                };
                let references = rebound.references.iter_mut().map(|r| &mut r.table);
                let referrers = rebound.referrers.iter_mut().map(|r| &mut r.table);
                for table in references.chain(referrers).filter(|table| *table == from) {
                    to.clone_into(table);
                }
                rebound
            };
            taken.push(self.rebind(state, definitions, (table, false), change)?);
        }
        Ok(taken)
    }

    /// Tells the tables that name columns of a table what these are called now.
    pub(super) fn tell_columns(
        &self,
        state: &mut State,
        definitions: &mut Definitions,
        (name, schema): (&str, &Schema),
    ) -> Result<Vec<Taken>> {
        let mut taken = Vec::new();
        for referrer in schema.referrers().iter().filter(|referrer| referrer.table != name) {
            let columns: Vec<String> =
                schema.names_of(&referrer.fields).into_iter().map(str::to_owned).collect();
            let version = self.version_within(definitions, &referrer.table)?;
            let known = version.schema.reference(&referrer.reference);
            if known.is_some_and(|reference| reference.columns == columns) {
                continue;
            }
            let change = |schema: &Schema| {
                let mut references = schema.references().to_vec();
                let is_it = |r: &&mut Reference| r.name == referrer.reference;
                references.iter_mut().filter(is_it).for_each(|r| r.columns.clone_from(&columns));
                Rebound { references, referrers: schema.referrers().to_vec() }
            };
            taken.push(self.rebind(state, definitions, (&referrer.table, false), change)?);
        }
        Ok(taken)
    }

    /// Gives a table other references and referrers.
    fn rebind(
        &self,
        state: &mut State,
        definitions: &mut Definitions,
        (name, holds_rows): (&str, bool),
        change: impl FnOnce(&Schema) -> Rebound,
    ) -> Result<Taken> {
        let current = self.version_within(definitions, name)?;
        let Rebound { references, referrers } = change(&current.schema);
        let schema = Arc::new(current.schema.bound_anew(references, referrers)?);
        let taken = take(state, &current, &schema)?;
        let is_new = definitions.get(current.core.id()).is_some_and(|table| table.is_new());
        definitions.alter(name, &current, (&schema, holds_rows && !is_new), Vec::new())?;
        Ok(taken)
    }

    /// Refuses a new reference of a table that one of its rows does not meet.
    pub(super) fn test_references(
        &self,
        state: &mut State,
        definitions: &Definitions,
        (current, schema): (&TableVersion, &Arc<Schema>),
        first: usize,
    ) -> Result<()> {
        for reference in schema.references().iter().skip(first) {
            let is_own = reference.table == *current.core.name();
            let version = match is_own {
                true => current.clone(),
                false => self.version_within(definitions, &reference.table)?,
            };
            let target = ReferenceTarget::of(&version.core, &version.schema, &reference.columns)?;
            let of = TransactionTable { transaction: self, current: version };
            let rows = self.with_changes(state, [&current.core])?.table_core(&current.core)?;
            // A field that comes with the reference has its initial value in the rows there are.
            let rows = rows.rows_as_of().with_schema(schema);
            let names = schema.names_of(&reference.fields);
            let fields: Vec<Expr> = names.iter().map(|name| Expr::field(*name)).collect();
            let mut query = Query::table("");
            fields.iter().for_each(|field| {
                query.select(field.clone());
            });
            query.distinct = true;
            let is_there = |field: &Expr| Expr::Apply(Operator::IsNotNull, vec![field.clone()]);
            query.filter = fields.iter().map(is_there).reduce(Expr::and);
            let source = SnapshotSource::new(&rows);
            let options = self.engine.query_options();
            let mut fitting = Vec::new();
            let refused = |values: &[Value]| {
                let name = current.core.name();
                Error::violated(missing(&name, &reference.name, &target, values))
            };
            for values in esker_query::execute(&query, &source, &options)?.to_rows() {
                let borrowed: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
                fitting.push(target.fit(&borrowed).ok_or_else(|| refused(&values))?);
            }
            let found = of.find_all(state, &target, &fitting)?;
            if let Some((values, _)) = fitting.iter().zip(found).find(|(_, f)| !f.is_there) {
                return Err(refused(values));
            }
        }
        Ok(())
    }

    /// Refuses a table with a row that refers to none.
    ///
    /// # Errors
    /// `ConstraintViolated` naming the reference and the values.
    pub(crate) fn check_references(&self, name: &str) -> Result<()> {
        let mut state = self.state();
        let definitions = Definitions::new(self.snapshot.names().into_owned());
        let current = self.version_within(&definitions, name)?;
        let schema = Arc::clone(&current.schema);
        self.test_references(&mut state, &definitions, (&current, &schema), 0)
    }

    /// Removes all rows of some tables at once, as [`Transaction::truncate_table`] does of one:
    /// tables that refer to each other go together.
    ///
    /// # Errors
    /// As for [`Transaction::truncate_table`].
    pub fn truncate_tables(&self, names: &[&str]) -> Result<()> {
        self.all_or_nothing(|_| {
            for name in names {
                let schema = Arc::clone(self.table(name)?.schema());
                refuse_named(name, &schema, names)?;
            }
            names.iter().try_for_each(|name| self.truncate_rows(name))
        })
    }
}

/// How the references of a table change.
pub(super) struct References {
    /// How many are new: the last ones.
    pub new: usize,
    pub gone: Vec<Reference>,
}

impl References {
    pub fn of(before: &Schema, after: &Schema) -> Self {
        let stays = |reference: &&Reference| after.reference(&reference.name).is_some();
        let stay = before.references().iter().filter(stays).count();
        let gone = before.references().iter().filter(|r| !stays(r)).cloned().collect();
        Self { new: after.references().len() - stay, gone }
    }

    /// The schema of a table whose references to itself have the names that its fields have.
    pub fn with_own_columns(name: &str, schema: Arc<Schema>) -> Result<Arc<Schema>> {
        let mut references = schema.references().to_vec();
        for referrer in schema.referrers().iter().filter(|referrer| referrer.table == name) {
            let own = references.iter_mut().find(|own| own.name == referrer.reference);
            if let Some(own) = own {
                let columns = schema.names_of(&referrer.fields);
                own.columns = columns.into_iter().map(str::to_owned).collect();
            }
        }
        if references == schema.references() {
            return Ok(schema);
        }
        let version = schema.version();
        let bound = schema.bound_anew(references, schema.referrers().to_vec())?;
        Ok(Arc::new(bound.with_version(version)))
    }

    /// The schema of a table without what it knows of its own references that go.
    pub fn without_own_referrers(&self, name: &str, schema: Arc<Schema>) -> Result<Arc<Schema>> {
        let is_gone = |referrer: &Referrer| {
            let is_it = |gone: &Reference| gone.name == referrer.reference && gone.table == name;
            referrer.table == name && self.gone.iter().any(is_it)
        };
        if !schema.referrers().iter().any(is_gone) {
            return Ok(schema);
        }
        let stay = schema.referrers().iter().filter(|referrer| !is_gone(referrer)).cloned();
        let version = schema.version();
        let bound = schema.bound_anew(schema.references().to_vec(), stay.collect())?;
        Ok(Arc::new(bound.with_version(version)))
    }
}
