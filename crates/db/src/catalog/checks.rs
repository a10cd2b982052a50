//! Check constraints: conditions that every row of a table meets.

use std::collections::BTreeMap;
use std::sync::Arc;

use esker_format::schema::{Alteration, Check};
use esker_format::{Batch, Schema, TableId};
use esker_query::model::Expr;
use esker_query::{Constraint, Limits};

use crate::catalog::computed_index::{self, TestedIndex};
use crate::catalog::generated::{self, GeneratedFields};
use crate::{Error, Result};

/// The checks of one version of a schema, what computes its generated fields, and the indexes that
/// cannot be computed of every row.
pub(crate) struct Checks {
    conditions: Vec<(String, Expr, Constraint)>,
    generated: GeneratedFields,
    indexes: Vec<TestedIndex>,
}

/// The checks in use, by table, with the schema that they are of. Its version does not name it: a
/// transaction may take back a schema, and another one gets the same version.
pub(crate) type CheckCache = BTreeMap<TableId, (Arc<Schema>, Arc<Checks>)>;

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
        let conditions = schema.checks().iter().map(resolve).collect::<Result<_>>()?;
        let generated = match schema.has_generated() {
            true => GeneratedFields::of(schema)?,
            false => GeneratedFields::default(),
        };
        let indexes = TestedIndex::all(schema)?;
        Ok(Self { conditions, generated, indexes })
    }

    /// What computes the generated fields.
    pub fn generated(&self) -> &GeneratedFields {
        &self.generated
    }

    /// Refuses a batch with a row for which a check is false, or of which an index cannot be
    /// computed. The first row has a number.
    ///
    /// # Errors
    /// `ConstraintViolated` naming the check, and the row where there are several.
    pub fn test(&self, batch: &Batch, first_row: u64, limits: &Limits) -> Result<()> {
        for (name, condition, constraint) in &self.conditions {
            let at = |e: Error| e.at(format_args!("check {name:?}"));
            let failing = constraint.first_failing(batch, limits).map_err(|e| at(e.into()))?;
            let Some(row) = failing else { continue };
            let e = at(Error::violated(format!("{condition} is false")));
            let is_one = first_row == 0 && batch.len() == 1;
            return Err(if is_one { e } else { e.in_row(first_row + row as u64) });
        }
        self.indexes.iter().try_for_each(|index| index.test(batch, first_row, limits))
    }
}

/// The name of a field as it is.
pub(super) fn exact<'a>(schema: &'a Schema, name: &str) -> Result<&'a str> {
    let position = schema.resolve(name)?;
    // default: a position that was just resolved
    Ok(schema.fields().get(position).map_or("", |field| field.name.as_str()))
}

pub(super) fn reads(schema: &Schema, condition: &Expr, field: &str) -> Result<bool> {
    Ok(condition.reads_field(exact(schema, field)?))
}

/// The same with the names in its checks, and in what computes its fields, as the fields have them,
/// and with the expressions of its indexes taken:
/// what these read must not change when another field gets a name that differs in case only.
pub(crate) fn with_exact_names(schema: Schema) -> Result<Schema> {
    let mut steps = Vec::new();
    for check in schema.checks() {
        let mut condition = Constraint::decode(&check.condition)?;
        name_exactly(&schema, &mut condition)
            .map_err(|e| e.at(format_args!("check {:?}", check.name)))?;
        steps.push(Alteration::DropCheck(check.name.clone()));
        steps.push(Alteration::AddCheck(self::check(&check.name, &condition)?));
    }
    steps.extend(generated::with_exact_names(&schema)?);
    let version = schema.version();
    let mut schema = schema;
    computed_index::settle(&mut schema)?;
    Ok(schema.alter(&steps)?.with_version(version))
}

pub(super) fn name_exactly(schema: &Schema, expr: &mut Expr) -> Result<()> {
    if let Expr::Field(name) = expr {
        *name = match name.split_once('.') {
            // A path into a field.
            Some((field, path)) if schema.resolve(name).is_err() => {
                format!("{}.{path}", exact(schema, field)?)
            }
            _ => exact(schema, name)?.to_owned(),
        };
        return Ok(());
    }
    expr.operands_mut().into_iter().try_for_each(|operand| name_exactly(schema, operand))
}
