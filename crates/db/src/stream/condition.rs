//! Conditions on the times of events, put together.

use esker_format::{Schema, Value};
use esker_query::model::{Expr, Operator};

use crate::{Error, Result};

/// All conditions at once, of those that there are.
pub(super) fn all_of(conditions: impl IntoIterator<Item = Option<Expr>>) -> Option<Expr> {
    conditions.into_iter().flatten().reduce(Expr::and)
}

/// Events from a time on, and before another one, in microseconds since 1970.
pub(super) fn within(schema: &Schema, from: Option<i64>, to: Option<i64>) -> Result<Option<Expr>> {
    let time = time_field(schema)?;
    let side = |operator, at| Expr::field(time).binary(operator, literal(at));
    let from = from.map(|at| side(Operator::Gte, Value::Timestamp(at)));
    let to = to.map(|at| side(Operator::Lt, Value::Timestamp(at)));
    Ok(all_of([from, to]))
}

/// A constant.
pub(super) fn literal(value: Value) -> Expr {
    Expr::Literal(value)
}

/// The name of the field that has the times.
pub(super) fn time_field(schema: &Schema) -> Result<&str> {
    let time = schema.stream().map(|stream| stream.time);
    let field = schema.fields().iter().find(|field| Some(field.id) == time);
    field.map(|field| field.name.as_str()).ok_or_else(|| Error::corrupt("a stream without times"))
}
