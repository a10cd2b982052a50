//! Check constraints: conditions that every row of a table meets.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::schema::{Alteration, Check};
use esker_format::{Batch, Schema, TableId, Value};
use esker_query::model::Expr;
use esker_query::{Constraint, Query};

use crate::engine::Engine;
use crate::table::Current;
use crate::{Error, Result, Snapshot};

/// The checks of one version of a schema.
pub(crate) struct Checks(Vec<(String, Expr, Constraint)>);

/// The checks in use, by table and version of its schema.
pub(crate) type CheckCache = BTreeMap<(TableId, u32), Arc<Checks>>;

/// A condition as a check of a schema.
///
/// ```
/// use esker::{DataType, Options, Schema};
/// use esker_query::model::{Expr, Operator};
///
/// let positive = Expr::field("n").binary(Operator::Gt, Expr::literal(0i64));
/// let check = esker::check("positive", &positive)?;
/// let schema = Schema::builder().field("n", DataType::I64);
/// let schema = schema.check(check.name, check.condition).build()?;
/// let db = Options::new().memory()?;
/// let table = db.create_table("t", schema)?;
/// let e = table.insert(&[(-1i64).into()]).unwrap_err();
/// assert_eq!(e.to_string(), "check \"positive\": n > 0 is false");
/// # Ok::<(), esker::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` when a number in the condition is not finite.
pub fn check(name: impl Into<String>, condition: &Expr) -> Result<Check> {
    Ok(Check { name: name.into(), condition: Constraint::encode(condition)? })
}

impl Checks {
    /// Resolves the checks of a schema.
    ///
    /// # Errors
    /// `InvalidInput` when one does not fit it.
    pub fn of(schema: &Schema) -> Result<Self> {
        let resolve = |check: &Check| {
            let condition = Constraint::decode(&check.condition)?;
            let constraint = Constraint::new(&condition, schema)
                .map_err(|e| Error::from(e).at(format_args!("check {:?}", check.name)))?;
            Ok((check.name.clone(), condition, constraint))
        };
        schema.checks().iter().map(resolve).collect::<Result<_>>().map(Self)
    }

    /// Refuses a batch with a row for which a check is false. The first row has a number.
    ///
    /// # Errors
    /// `InvalidInput` naming the check, and the row where there are several.
    pub fn test(&self, batch: &Batch, first_row: u64) -> Result<()> {
        for (name, condition, constraint) in &self.0 {
            let at = |e: Error| e.at(format_args!("check {name:?}"));
            let failing = constraint.first_failing(batch).map_err(|e| at(e.into()))?;
            let Some(row) = failing else { continue };
            let e = at(Error::invalid(format!("{condition} is false")));
            let is_one = first_row == 0 && batch.len() == 1;
            return Err(if is_one {
                e
            } else {
                e.at(format_args!("row {}", first_row + row as u64))
            });
        }
        Ok(())
    }
}

/// The schema after some changes, with the checks changed along: they read fields by name.
pub(crate) fn follow_names(
    engine: &Engine,
    schema: &Schema,
    alterations: &[Alteration],
) -> Result<Schema> {
    let mut altered = schema.clone();
    for alteration in alterations {
        let mut steps = vec![engine.with_values(&altered, alteration)?];
        for check in altered.checks() {
            let mut condition = Constraint::decode(&check.condition)?;
            let name = &check.name;
            match alteration {
                Alteration::DropField(field) if condition.reads_field(field) => {
                    let message = format!("check {name:?} reads field {field:?}: drop it before");
                    return Err(Error::invalid(message));
                }
                Alteration::RenameField { from, to } if condition.reads_field(from) => {
                    condition.rename_field(from, to);
                    steps.push(Alteration::DropCheck(name.clone()));
                    steps.push(Alteration::AddCheck(self::check(name, &condition)?));
                }
                _ => {}
            }
        }
        altered = altered.alter(&steps)?;
    }
    Ok(altered.with_version_after(schema))
}

/// Refuses a new check that a row of a snapshot does not meet.
pub(crate) fn test_rows(
    snapshot: &Snapshot,
    table: &str,
    alterations: &[Alteration],
) -> Result<()> {
    for alteration in alterations {
        let Alteration::AddCheck(check) = alteration else { continue };
        let condition = Constraint::decode(&check.condition)?;
        let mut query = Query::table(table);
        query.filter = Some(condition.clone().negated());
        query.limit = Some(1);
        if snapshot.query(&query)?.row_count() > 0 {
            let message = format!("check {:?}: {condition} is false for a row", check.name);
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

impl Engine {
    /// The checks of a table; `None` when it has none.
    pub fn checks(&self, current: &Current) -> Result<Option<Arc<Checks>>> {
        if current.schema.checks().is_empty() {
            return Ok(None);
        }
        let key = (current.core.id(), current.schema.version());
        if let Some(checks) = self.checks.load().get(&key) {
            return Ok(Some(Arc::clone(checks)));
        }
        let checks = Arc::new(Checks::of(&current.schema)?);
        let mut cache: CheckCache = (**self.checks.load()).clone();
        cache.retain(|(table, _), _| *table != key.0);
        cache.insert(key, Arc::clone(&checks));
        // Of two that fill it at once, one does so again.
        self.checks.store(Arc::new(cache));
        Ok(Some(checks))
    }

    /// Tests rows that fit the schema.
    pub fn test_rows(&self, current: &Current, rows: &[Vec<Value>]) -> Result<()> {
        let Some(checks) = self.checks(current)? else { return Ok(()) };
        let mut batch = Batch::empty(&current.schema);
        rows.iter().try_for_each(|row| batch.push_row(&current.schema, row))?;
        checks.test(&batch, 0)
    }
}
