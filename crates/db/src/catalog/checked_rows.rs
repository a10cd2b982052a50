//! Testing rows by the checks of their table, and changing a schema together with its checks.

use std::sync::Arc;

use esker_format::schema::{Alteration, Check, ROW_ID_NAME};
use esker_format::{Batch, Schema, Value};
use esker_log::sabotage::Bug;
use esker_query::model::{Expr, Operator};
use esker_query::{Constraint, Limits, Query};
use esker_table::table::describe_key;

use crate::catalog::checks::{self, CheckCache, Checks, exact, reads, with_exact_names};
use crate::catalog::{bucket_alteration, computed_index, generated, index, references};
use crate::engine::Engine;
use crate::read::source::SnapshotSource;
use crate::table_version::TableVersion;
use crate::{Error, Result, SnapshotTable};

/// The schema of the table with this name after some changes. Checks read fields by name, so they
/// are changed along.
pub(crate) fn alter(
    engine: &Engine,
    name: &str,
    schema: &Schema,
    alterations: &[Alteration],
) -> Result<Arc<Schema>> {
    bucket_alteration::refuse_alterations(name, schema, alterations)?;
    let mut altered = schema.clone();
    for alteration in alterations {
        index::refuse_names(&altered, alteration)?;
        computed_index::refuse_change(&altered, alteration)?;
        let mut steps = vec![engine.with_values(&altered, alteration)?];
        for check in altered.checks() {
            let mut condition = Constraint::decode(&check.condition)?;
            let name = &check.name;
            match alteration {
                Alteration::DropField(field) if reads(&altered, &condition, field)? => {
                    let message = format!("check {name:?} reads field {field:?}: drop it before");
                    return Err(Error::invalid(message));
                }
                Alteration::RenameField { from, to } if reads(&altered, &condition, from)? => {
                    condition.rename_field(exact(&altered, from)?, to);
                    steps.push(Alteration::DropCheck(name.clone()));
                    steps.push(Alteration::AddCheck(checks::check(name, &condition)?));
                }
                _ => {}
            }
        }
        steps.extend(generated::follow(&altered, alteration)?);
        altered = altered.alter(&steps)?;
        let is_named = |a: &Alteration| match a {
            Alteration::AddCheck(_) | Alteration::SetGenerated { .. } => true,
            Alteration::AddField(field) => field.generated.is_some(),
            Alteration::AddIndex(new) => new.is_computed(),
            Alteration::AddRollup(_) => true,
            _ => false,
        };
        if is_named(alteration) {
            altered = with_exact_names(altered)?;
        }
    }
    schema.refuse_missing_values(&altered)?;
    Checks::of(&altered)?;
    references::expect_targets(&altered)?;
    Ok(Arc::new(altered.with_version_after(schema)))
}

/// Refuses that fields must have a value from now on of which a row of a snapshot has none.
pub(crate) fn test_not_null(
    engine: &Engine,
    snapshot: &SnapshotTable,
    altered: &Schema,
) -> Result<()> {
    let schema = snapshot.schema();
    let source = SnapshotSource::with_row_id(snapshot.rows_as_of());
    for field in schema.fields().iter().filter(|field| field.nullable) {
        if altered.field_of(field.id).is_none_or(|altered| altered.nullable) {
            continue;
        }
        let mut query = Query::table("");
        query.select(Expr::field(ROW_ID_NAME));
        for key in schema.key_fields() {
            query.select(Expr::field(&key.name));
        }
        query.filter = Some(Expr::Apply(Operator::IsNull, vec![Expr::field(&field.name)]));
        query.limit = Some(1.into());
        let found = esker_query::execute(&query, &source, &engine.query_options())?.to_rows();
        let Some((row_id, key)) = found.first().and_then(|row| row.split_first()) else { continue };
        let key: Vec<_> = key.iter().map(Value::as_ref).collect();
        let row = match key.is_empty() {
            true => format!("row {row_id}"),
            false => format!("the row with {}", describe_key(schema, &key)),
        };
        let name = &field.name;
        return Err(Error::violated(format!("field {name:?} must not be null, but is in {row}")));
    }
    Ok(())
}

/// Refuses a new check that a row of a snapshot does not meet, read by the new schema.
pub(crate) fn test_rows(
    engine: &Engine,
    snapshot: &SnapshotTable,
    schema: &Arc<Schema>,
    alterations: &[Alteration],
) -> Result<()> {
    let is_new = |check: &&Check| {
        alterations.iter().any(|a| matches!(a, Alteration::AddCheck(new) if new.name == check.name))
    };
    let rows = snapshot.rows_as_of().with_schema(schema);
    for check in schema.checks().iter().filter(is_new) {
        if Bug::CheckAddedUntested.is_planted() {
            return Ok(());
        }
        let condition = Constraint::decode(&check.condition)?;
        let mut query = Query::table("");
        query.filter = Some(condition.clone().negated());
        query.limit = Some(1.into());
        let source = SnapshotSource::new(&rows);
        let options = engine.query_options();
        if esker_query::execute(&query, &source, &options)?.row_count() > 0 {
            let message = format!("check {:?}: {condition} is false for a row", check.name);
            return Err(Error::violated(message));
        }
    }
    Ok(())
}

impl Engine {
    /// The checks of a table, what computes its fields, and indexes that are tested; `None` when it
    /// has none.
    pub fn checks(&self, current: &TableVersion) -> Result<Option<Arc<Checks>>> {
        let TableVersion { core, schema, .. } = current;
        if !schema.tests_rows() && !schema.has_generated() {
            return Ok(None);
        }
        let known = self.checks.load();
        if let Some((_, checks)) = known.get(&core.id()).filter(|(of, _)| Arc::ptr_eq(of, schema)) {
            return Ok(Some(Arc::clone(checks)));
        }
        let checks = Arc::new(Checks::of(schema)?);
        let mut cache: CheckCache = (**known).clone();
        cache.insert(core.id(), (Arc::clone(schema), Arc::clone(&checks)));
        // Of two that fill it at once, one does so again.
        self.checks.store(Arc::new(cache));
        Ok(Some(checks))
    }

    /// Tests rows that fit the schema, outside of a statement.
    pub fn test_rows(&self, current: &TableVersion, rows: &[impl AsRef<[Value]>]) -> Result<()> {
        match current.schema.tests_rows() {
            false => Ok(()),
            true => self.test_rows_within(current, rows, &self.limits()),
        }
    }

    /// Tests rows that fit the schema, within what a statement may take.
    pub fn test_rows_within(
        &self,
        current: &TableVersion,
        rows: &[impl AsRef<[Value]>],
        limits: &Limits,
    ) -> Result<()> {
        if !current.schema.tests_rows() {
            return Ok(());
        }
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        let mut batch = Batch::empty(&current.schema);
        rows.iter().try_for_each(|row| batch.push_row(&current.schema, row.as_ref()))?;
        checks.test(&batch, 0, limits)
    }
}
