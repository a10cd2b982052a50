//! Whether a new index can be computed of all rows there are.

use std::sync::Arc;

use esker_format::schema::{Alteration, Index};
use esker_format::{Schema, Value};
use esker_query::Query;
use esker_query::index_expression::{self, IndexComputation};
use esker_query::model::{Aggregate, Expr, Operator};

use crate::engine::Engine;
use crate::read::source::SnapshotSource;
use crate::{Error, Result, SnapshotTable};

/// Whether changes add an index that may fail for rows there are.
pub(crate) fn is_tested(schema: &Schema, alterations: &[Alteration]) -> Result<bool> {
    for index in new_of(schema, alterations) {
        if IndexComputation::of(index, schema)?.may_fail() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The indexes of a changed schema that changes add, and of which something is computed.
fn new_of<'s>(
    schema: &'s Schema,
    alterations: &'s [Alteration],
) -> impl Iterator<Item = &'s Index> + 's {
    let is_new = |index: &Index| {
        let is_it =
            |a: &Alteration| matches!(a, Alteration::AddIndex(new) if new.name == index.name);
        alterations.iter().any(is_it)
    };
    schema.row_indexes().filter(move |index| index.is_computed() && is_new(index))
}

/// Refuses new indexes of which a value cannot be computed for a row of a snapshot, read by the new
/// schema.
pub(crate) fn test_rows(
    engine: &Engine,
    snapshot: &SnapshotTable,
    schema: &Arc<Schema>,
    alterations: &[Alteration],
) -> Result<()> {
    let rows = snapshot.rows_as_of().with_schema(schema);
    for index in new_of(schema, alterations) {
        if !IndexComputation::of(index, schema)?.may_fail() {
            continue;
        }
        let filter = index.filter.as_deref().map(|of| index_expression::with_names(of, schema));
        let filter = filter.transpose()?;
        let parts = index.fields.iter().filter_map(|part| part.expression.as_deref());
        let parts = parts.map(|part| index_expression::with_names(part, schema));
        let mut query = Query::table("");
        for part in parts.chain([Ok(Expr::literal(true))]) {
            let value = match &filter {
                Some(filter) => {
                    let none = Expr::Literal(Value::Null);
                    Expr::Apply(Operator::Case, vec![filter.clone(), part?, none])
                }
                None => part?,
            };
            query.select(Expr::aggregate(Aggregate::Count, value));
        }
        let source = SnapshotSource::new(&rows);
        esker_query::execute(&query, &source, &engine.query_options())
            .map_err(|e| Error::from(e).at(format_args!("index {:?}", index.name)))?;
    }
    Ok(())
}
