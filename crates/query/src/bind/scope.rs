//! What names mean at a place in the query.

use std::sync::Arc;

use esker_format::json::name_step;
use esker_format::schema::{EVENT_ID_NAME, ROW_ID_NAME};
use esker_format::{DataType, Field, Labels, Schema, Value};

use super::aggregate::bound_aggregate;
use super::expression::bind;
use super::interval::by_length;
use super::typing::typed;
use crate::bound::{Bound, BoundAggregate, Node, OrderKey};
use crate::evaluate::hold;
use crate::model::{Aggregate, Expr, Function, OrderBy, SelectItem};
use crate::{Error, Inputs, Result};

/// Resolves the leaves of expressions.
pub(crate) trait Scope {
    /// The meaning of an expression that the scope knows as a whole.
    fn resolve(&mut self, expr: &Expr) -> Result<Option<Bound>>;

    /// The error for a name that is not there.
    fn unknown_field(&self, name: &str) -> Error;

    /// What the statement is run with.
    fn inputs(&self) -> &Inputs;
}

/// The fields of a row.
#[derive(Clone, Copy)]
pub(crate) struct RowScope<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) inputs: &'a Inputs,
}

impl Scope for RowScope<'_> {
    fn resolve(&mut self, expr: &Expr) -> Result<Option<Bound>> {
        let Expr::Field(name) = expr else { return Ok(None) };
        let Some(position) = position(self.schema, name) else {
            return match name.as_str() {
                // Of the only table that there is, by whatever name.
                name if name.ends_with(EVENT_ID_NAME) => {
                    event_id(self.schema, self.inputs).map(Some)
                }
                ROW_ID_NAME => row_id(self.schema).map(Some),
                name => Ok(json_path(self.schema, name)),
            };
        };
        let field = self.schema.fields().get(position);
        let bound = |field: &Field| {
            Bound::field(position, field.data_type).with_labels(field.labels.as_ref())
        };
        Ok(field.map(bound))
    }

    fn unknown_field(&self, name: &str) -> Error {
        match name.split_once('.').map(|(first, _)| (first, self.schema.resolve(first))) {
            Some((first, Ok(at))) => {
                let found = self.schema.fields().get(at).map_or(DataType::Json, |f| f.data_type);
                Error::invalid(format!(
                    "{name}: a path leads into json, and field {first:?} is {found}"
                ))
            }
            // Such as `excluded.name`, which no name leads to.
            Some((first, _)) if self.has_fields_below(first) => {
                self.schema.unknown_field(name).into()
            }
            Some((first, Err(error))) => Error::invalid(format!(
                "{name}: no table of this statement is {first:?}, and {error}"
            )),
            None => self.schema.unknown_field(name).into(),
        }
    }

    fn inputs(&self) -> &Inputs {
        self.inputs
    }
}

impl RowScope<'_> {
    /// True when fields are named as parts of something.
    fn has_fields_below(&self, first: &str) -> bool {
        let below = |name: &str| name.split_once('.').is_some_and(|(before, _)| before == first);
        self.schema.fields().iter().any(|field| below(&field.name))
    }
}

/// The row id of an event, which is read behind the last field.
fn row_id(schema: &Schema) -> Result<Bound> {
    match schema.stream() {
        Some(_) => Ok(Bound::field(schema.fields().len(), DataType::U64)),
        None => Err(Error::invalid(
            "id(): expected a stream; rows of other tables, and of queries, have no ids of events",
        )),
    }
}

/// The id of an event, of its time and its row id.
fn event_id(schema: &Schema, inputs: &Inputs) -> Result<Bound> {
    let row_id = match position(schema, ROW_ID_NAME) {
        Some(position) if schema.stream().is_some() => Bound::field(position, DataType::U64),
        _ => row_id(schema)?,
    };
    let time = schema.stream().map(|stream| stream.time);
    let time = schema.fields().iter().position(|field| Some(field.id) == time);
    let time = time.ok_or_else(|| Error::invalid("id(): the stream has no times"))?;
    let operands = vec![Bound::field(time, DataType::Timestamp), row_id];
    super::function::call(Function::EventId, operands, inputs)
}

/// The text at the end of a path of names into a field of JSON: `doc.customer.city`.
fn json_path(schema: &Schema, name: &str) -> Option<Bound> {
    // Names may have points themselves, such as those of fields of joined tables.
    let mut points = name.match_indices('.').map(|(at, _)| at);
    let (position, path) = points.find_map(|at| {
        let (field, path) = name.split_at_checked(at)?;
        Some((position(schema, field)?, path.strip_prefix('.')?))
    })?;
    let field = schema.fields().get(position).filter(|field| field.data_type == DataType::Json)?;
    let document = Bound::field(position, field.data_type);
    let step = |step| Bound::literal(Value::Text(name_step(step).into_owned()));
    let steps = path.split('.').map(step);
    let operands: Vec<_> = std::iter::once(document).chain(steps).collect();
    Some(Bound::new(Node::Call(Function::JsonText, operands), DataType::Text))
}

/// No row at all: constants only.
pub(crate) struct NoScope<'a>(pub(crate) &'a Inputs);

impl Scope for NoScope<'_> {
    fn resolve(&mut self, _: &Expr) -> Result<Option<Bound>> {
        Ok(None)
    }

    fn unknown_field(&self, name: &str) -> Error {
        Error::invalid(format!("{name:?}: expected a constant, found a name"))
    }

    fn inputs(&self) -> &Inputs {
        self.0
    }
}

/// The position of a field: see [`Schema::resolve`].
pub(crate) fn position(schema: &Schema, name: &str) -> Option<usize> {
    schema.resolve(name).ok()
}

/// The keys and aggregates of a group: what is equal to a key means that key, an aggregate is
/// noted and means its result, and no other field has one value in a group.
pub(crate) struct GroupScope<'a> {
    pub(crate) row: RowScope<'a>,
    pub(crate) key_exprs: Vec<Bound>,
    /// As those of the step, of which they become.
    pub(crate) sets: Vec<Vec<usize>>,
    pub(crate) aggregates: Vec<BoundAggregate>,
}

impl Scope for GroupScope<'_> {
    fn resolve(&mut self, expr: &Expr) -> Result<Option<Bound>> {
        if let Expr::Aggregate { function, operand, distinct, order } = expr {
            let noted = self.aggregate(*function, operand.as_deref(), *distinct, order);
            return noted.map(Some).map_err(|e| e.at(expr));
        }
        if let Expr::Grouping(operands) = expr {
            return self.grouping(operands).map(Some).map_err(|e| e.at(expr));
        }
        if matches!(expr, Expr::Literal(_)) && self.sets.is_empty() || expr.has_aggregate() {
            return Ok(None);
        }
        // Whether or not the expression as a whole is a key, its parts must have a meaning.
        // What is not kept of it is not held.
        let inputs = self.row.inputs.with_memory_left();
        match bind(expr, &mut RowScope { inputs: &inputs, ..self.row }) {
            // A set that leaves out a key leaves it out where that is a constant, too.
            Ok(bound) if bound.as_literal().is_some() => {
                if let (false, Some(key)) = (self.sets.is_empty(), self.key(&bound)) {
                    return Ok(Some(key));
                }
                bound.as_literal().map_or(Ok(()), |value| hold(value, &self.row.inputs.limits))?;
                Ok(Some(bound))
            }
            Ok(bound) => Ok(self.key(&bound)),
            Err(error) if matches!(expr, Expr::Field(_)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn unknown_field(&self, name: &str) -> Error {
        Error::invalid(format!(
            "field {name:?} is neither in GROUP BY (or SELECT DISTINCT) nor inside an aggregate"
        ))
    }

    fn inputs(&self) -> &Inputs {
        self.row.inputs
    }
}

impl GroupScope<'_> {
    fn key(&self, bound: &Bound) -> Option<Bound> {
        let position = self.keys().iter().position(|key| key == bound)?;
        let field = Bound::field(position, bound.data_type());
        Some(field.with_labels(bound.labels.as_ref()))
    }

    /// A key of the order of `first` and `last`.
    fn order_key(&mut self, key: &OrderBy) -> Result<OrderKey> {
        let OrderBy { expr, descending, .. } = key;
        if expr.has_aggregate() {
            return Err(Error::invalid("an aggregate cannot be inside another"));
        }
        let bound = by_length(typed(bind(expr, &mut self.row)?, DataType::I64));
        let nulls_first = self.row.inputs.semantics.nulls_first(key);
        Ok(OrderKey { bound, descending: *descending, nulls_first })
    }

    fn aggregate(
        &mut self,
        function: Aggregate,
        operand: Option<&Expr>,
        distinct: bool,
        order: &[OrderBy],
    ) -> Result<Bound> {
        let operand = operand.map(|operand| {
            if operand.has_aggregate() {
                return Err(Error::invalid("an aggregate cannot be inside another"));
            }
            Ok(typed(bind(operand, &mut self.row)?, DataType::I64))
        });
        let operand = operand.transpose()?;
        let keys = order.iter().map(|key| self.order_key(key)).collect::<Result<_>>()?;
        let limits = &self.row.inputs.limits;
        let (wanted, labels) = bound_aggregate(function, operand, keys, distinct, limits)?;
        Ok(self.noted(wanted, labels.as_ref()))
    }

    /// The field that an aggregate's result is.
    fn noted(&mut self, wanted: BoundAggregate, labels: Option<&Arc<Labels>>) -> Bound {
        let data_type = wanted.data_type;
        let known = self.aggregates.iter().position(|a| *a == wanted);
        let index = known.unwrap_or(self.aggregates.len());
        if known.is_none() {
            self.aggregates.push(wanted);
        }
        let field = Bound::field(self.key_exprs.len() + index, data_type);
        field.with_labels(labels)
    }
}

/// Replaces names that no field has by the select items that are called so.
///
/// # Errors
/// As [`named`].
pub(crate) fn replace_aliases(expr: &Expr, schema: &Schema, select: &[SelectItem]) -> Result<Expr> {
    fn replace(expr: &mut Expr, schema: &Schema, select: &[SelectItem]) -> Result<()> {
        match expr {
            Expr::Field(name) if position(schema, name).is_none() => {
                let item = named(name, select)?.and_then(|at| select.get(at));
                item.into_iter().for_each(|item| expr.clone_from(&item.expr));
            }
            // A subquery has names of its own; the other is a field that is no alias.
            Expr::Subquery { .. } => {}
            Expr::Call(Function::Coalesce, of) if matches!(of.as_slice(), [Expr::Field(_)]) => {}
            _ => {
                let mut operands = expr.operands_mut().into_iter();
                operands.try_for_each(|operand| replace(operand, schema, select))?;
            }
        }
        Ok(())
    }
    let mut expr = expr.clone();
    replace(&mut expr, schema, select)?;
    Ok(expr)
}

/// The position of the select item that has a name: its alias, or that of the field that it is.
/// Case counts only where an item has exactly this name.
///
/// # Errors
/// `InvalidQuery` where several items have the name, and are not the same.
pub(crate) fn named(name: &str, select: &[SelectItem]) -> Result<Option<usize>> {
    let has_name = |item: &SelectItem, is_same: &dyn Fn(&str) -> bool| match item {
        SelectItem { alias: Some(alias), .. } => is_same(alias),
        SelectItem { expr: Expr::Field(field), .. } => is_same(field),
        _ => false,
    };
    let find = |is_same: &dyn Fn(&str) -> bool| -> Vec<(usize, &Expr)> {
        let items = select.iter().enumerate().filter(|(_, item)| has_name(item, is_same));
        items.map(|(at, item)| (at, &item.expr)).collect()
    };
    let mut found = find(&|known| known == name);
    if found.is_empty() {
        found = find(&|known| known.eq_ignore_ascii_case(name));
    }
    let Some(((at, first), rest)) = found.split_first() else { return Ok(None) };
    match rest.iter().find(|(_, other)| other != first) {
        None => Ok(Some(*at)),
        Some((_, other)) => Err(Error::invalid(format!(
            "{name:?} is ambiguous: the columns {first} and {other} are called so"
        ))),
    }
}
