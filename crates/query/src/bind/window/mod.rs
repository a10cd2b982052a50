//! Window functions: what each call reads, and what is left of it for the steps behind.
//!
//! ```text
//! rows or groups ─ fields that are read later, and what the calls read ─► one column more a call
//! ```
//!
//! While names are resolved, a call stands for a field beyond all others; once all calls are known,
//! the fields that are read later get the first places, and the calls those behind them.

mod frame;

use std::collections::BTreeMap;

use esker_format::{DataType, Value};

use super::aggregate::bound_aggregate;
use super::expression::{bind, to_common_type};
use super::interval::by_length;
use super::scope::Scope;
use super::typing::{convert, typed};
use super::{Projection, literal_of};
use crate::bound::{Bound, BoundAggregate, Node, OrderKey};
use crate::model::{Expr, OrderBy, WindowCall, WindowFunction};
use crate::{Error, Inputs, Result};
pub(crate) use frame::{Distance, Edge, Frame};

/// Calls stand for fields from this one on.
const FIRST_CALL: usize = usize::MAX / 2;

/// Rows with the values of window functions behind them.
#[derive(Clone, Debug)]
pub(crate) struct WindowStage {
    /// After how many grouping steps it runs.
    pub(crate) after: usize,
    /// What is computed of each row: what is read later, and what the calls read.
    pub(crate) rows: Projection,
    /// How many of these are read later: the first.
    pub(crate) kept: usize,
    /// What they read are the places of what is computed.
    pub(crate) calls: Vec<Call<usize>>,
}

/// A window function over a window; what it reads are expressions, or places of columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call<C> {
    pub(crate) function: Computes<C>,
    pub(crate) partition: Vec<C>,
    pub(crate) order: Vec<Key<C>>,
    pub(crate) frame: Frame,
    pub(crate) data_type: DataType,
}

/// A key of the order of a window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key<C> {
    pub(crate) value: C,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}

/// What is computed of each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Computes<C> {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile(Argument<C>),
    Shifted(Shift<C>),
    Picked(Pick<C>),
    Aggregate(BoundAggregate, Option<C>),
}

/// The value of a row before or after.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shift<C> {
    pub(crate) value: C,
    pub(crate) by: Argument<C>,
    pub(crate) is_back: bool,
    /// What there is where no such row is.
    pub(crate) otherwise: Option<C>,
    pub(crate) ignores_nulls: bool,
}

/// The value of a row of the frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pick<C> {
    pub(crate) value: C,
    pub(crate) place: Place<C>,
    pub(crate) ignores_nulls: bool,
}

/// Which row of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place<C> {
    First,
    Last,
    /// Counted from 1.
    At(Argument<C>),
}

/// A whole number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument<C> {
    /// The same for all rows; `None` for NULL.
    Constant(Option<i64>),
    /// An integer of each row.
    Column(C),
}

impl WindowStage {
    /// The types of the rows it makes.
    pub(crate) fn types(&self) -> Vec<DataType> {
        let kept = self.rows.outputs.iter().take(self.kept).map(Bound::data_type);
        kept.chain(self.calls.iter().map(|call| call.data_type)).collect()
    }

    /// The keys of the partitions, where those of all calls are the same and there are any.
    pub(crate) fn partition(&self) -> Option<&[usize]> {
        let first = self.calls.first()?.partition.as_slice();
        let is_only = self.calls.iter().all(|call| call.partition == first);
        (is_only && !first.is_empty()).then_some(first)
    }
}

impl Call<Bound> {
    /// The same with a place for each expression.
    fn placed(self, place: &mut dyn FnMut(Bound) -> usize) -> Call<usize> {
        let Self { function, partition, order, frame, data_type } = self;
        let partition = partition.into_iter().map(&mut *place).collect();
        let key = |Key { value, descending, nulls_first }: Key<Bound>| {
            let value = place(value);
            Key { value, descending, nulls_first }
        };
        let order = order.into_iter().map(key).collect();
        Call { function: function.placed(place), partition, order, frame, data_type }
    }
}

impl Computes<Bound> {
    fn placed(self, place: &mut dyn FnMut(Bound) -> usize) -> Computes<usize> {
        match self {
            Self::RowNumber => Computes::RowNumber,
            Self::Rank => Computes::Rank,
            Self::DenseRank => Computes::DenseRank,
            Self::PercentRank => Computes::PercentRank,
            Self::CumeDist => Computes::CumeDist,
            Self::Ntile(parts) => Computes::Ntile(parts.placed(place)),
            Self::Shifted(Shift { value, by, is_back, otherwise, ignores_nulls }) => {
                let (value, by) = (place(value), by.placed(place));
                let otherwise = otherwise.map(place);
                Computes::Shifted(Shift { value, by, is_back, otherwise, ignores_nulls })
            }
            Self::Picked(Pick { value, place: which, ignores_nulls }) => {
                let value = place(value);
                let place = match which {
                    Place::First => Place::First,
                    Place::Last => Place::Last,
                    Place::At(n) => Place::At(n.placed(place)),
                };
                Computes::Picked(Pick { value, place, ignores_nulls })
            }
            Self::Aggregate(aggregate, operand) => {
                Computes::Aggregate(aggregate, operand.map(place))
            }
        }
    }
}

impl Argument<Bound> {
    fn placed(self, place: &mut dyn FnMut(Bound) -> usize) -> Argument<usize> {
        match self {
            Self::Constant(number) => Argument::Constant(number),
            Self::Column(bound) => Argument::Column(place(bound)),
        }
    }
}

/// The rows or groups of another scope, with window functions over them.
pub(super) struct WindowScope<'s> {
    over: &'s mut dyn Scope,
    calls: Vec<Call<Bound>>,
}

impl Scope for WindowScope<'_> {
    fn resolve(&mut self, expr: &Expr) -> Result<Option<Bound>> {
        match expr {
            Expr::Window(call) => self.call(call).map(Some).map_err(|e| e.at(expr)),
            // Within an aggregate there are no windows.
            Expr::Aggregate { .. } => self.over.resolve(expr),
            _ if expr.has_window() => Ok(None),
            _ => self.over.resolve(expr),
        }
    }

    fn unknown_field(&self, name: &str) -> Error {
        self.over.unknown_field(name)
    }

    fn inputs(&self) -> &Inputs {
        self.over.inputs()
    }
}

impl<'s> WindowScope<'s> {
    pub(super) fn new(over: &'s mut dyn Scope) -> Self {
        Self { over, calls: Vec::new() }
    }

    /// The field that the value of a call is.
    fn call(&mut self, call: &WindowCall) -> Result<Bound> {
        if call.exprs().into_iter().any(Expr::has_window) {
            return Err(Error::invalid(
                "a window function cannot be inside another; take it from a subquery",
            ));
        }
        let partition = call.over.partition_by.iter().map(|expr| self.value(expr).map(by_length));
        let partition = partition.collect::<Result<Vec<_>>>().map_err(|e| e.at("PARTITION BY"))?;
        let order = call.over.order_by.iter().map(|key| self.order_key(key));
        let order = order.collect::<Result<Vec<_>>>().map_err(|e| e.at("ORDER BY"))?;
        let frame = frame::bind(call.over.frame.as_ref(), &order, self.over.inputs())?;
        let (function, value) = self.function(call)?;
        let (data_type, labels) = (value.data_type(), value.labels);
        let key = |OrderKey { bound, descending, nulls_first }| Key {
            value: bound,
            descending,
            nulls_first,
        };
        let order = order.into_iter().map(key).collect();
        let wanted = Call { function, partition, order, frame, data_type };
        let known = self.calls.iter().position(|known| *known == wanted);
        let number = known.unwrap_or(self.calls.len());
        if known.is_none() {
            self.calls.push(wanted);
        }
        Ok(Bound::field(FIRST_CALL + number, data_type).with_labels(labels.as_ref()))
    }

    fn value(&mut self, expr: &Expr) -> Result<Bound> {
        Ok(typed(bind(expr, self.over)?, DataType::I64))
    }

    fn order_key(&mut self, key: &OrderBy) -> Result<OrderKey> {
        let nulls_first = self.over.inputs().semantics.nulls_first(key);
        let (bound, descending) = (by_length(self.value(&key.expr)?), key.descending);
        Ok(OrderKey { bound, descending, nulls_first })
    }

    /// What a call computes, and a value of its type.
    fn function(&mut self, call: &WindowCall) -> Result<(Computes<Bound>, Bound)> {
        use WindowFunction as F;
        let operands = call.operands.as_slice();
        let (least, most) = call.function.operand_counts();
        if !(least..=most).contains(&operands.len()) {
            let (name, found) = (call.function.name(), operands.len());
            let want = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(Error::invalid(format!("{name} takes {want} operands, found {found}")));
        }
        if call.ignores_nulls && !call.function.may_ignore_nulls() {
            return Err(Error::invalid(
                "IGNORE NULLS works in lag, lead, first_value, last_value and nth_value",
            ));
        }
        let of_type = |data_type| Bound::new(Node::Literal(Value::Null), data_type);
        let number = of_type(DataType::I64);
        Ok(match (call.function, operands) {
            (F::RowNumber, _) => (Computes::RowNumber, number),
            (F::Rank, _) => (Computes::Rank, number),
            (F::DenseRank, _) => (Computes::DenseRank, number),
            (F::PercentRank, _) => (Computes::PercentRank, of_type(DataType::F64)),
            (F::CumeDist, _) => (Computes::CumeDist, of_type(DataType::F64)),
            (F::Ntile, [parts]) => (Computes::Ntile(self.argument(parts)?), number),
            (F::Lag | F::Lead, [value, rest @ ..]) => self.shifted(call, value, rest)?,
            (F::FirstValue, [value]) => self.picked(call, value, Place::First)?,
            (F::LastValue, [value]) => self.picked(call, value, Place::Last)?,
            (F::NthValue, [value, place]) => {
                let place = Place::At(self.argument(place)?);
                self.picked(call, value, place)?
            }
            (F::Aggregate, [aggregate]) => self.aggregate(aggregate)?,
            _ => return Err(Error::invalid("expected an operand")),
        })
    }

    /// A whole number.
    fn argument(&mut self, expr: &Expr) -> Result<Argument<Bound>> {
        let bound = self.value(expr)?;
        if !bound.data_type().is_integer() {
            let found = bound.data_type();
            return Err(Error::invalid(format!("{expr}: expected a whole number, found {found}")));
        }
        let bound = convert(bound, DataType::I64)?;
        Ok(match literal_of(&bound) {
            Some(Value::Int(number)) => Argument::Constant(Some(number)),
            Some(_) => Argument::Constant(None),
            None => Argument::Column(bound),
        })
    }

    fn shifted(
        &mut self,
        call: &WindowCall,
        value: &Expr,
        rest: &[Expr],
    ) -> Result<(Computes<Bound>, Bound)> {
        let value = bind(value, self.over)?;
        let by = match rest.first() {
            Some(by) => self.argument(by)?,
            None => Argument::Constant(Some(1)),
        };
        let otherwise = rest.get(1).map(|otherwise| bind(otherwise, self.over)).transpose()?;
        let labels = value.labels.clone();
        let mut values = vec![value];
        values.extend(otherwise);
        let (mut values, data_type) = match values.as_slice() {
            [only] => {
                let data_type = only.data_type.unwrap_or(DataType::I64);
                (values.into_iter().map(|value| typed(value, data_type)).collect(), data_type)
            }
            _ => to_common_type(values)?,
        };
        let otherwise = values.drain(1..).next();
        let value = values.pop().ok_or_else(|| Error::invalid("expected an operand"))?;
        let is_back = call.function == WindowFunction::Lag;
        let ignores_nulls = call.ignores_nulls;
        let labels = labels.filter(|_| data_type == DataType::Enum);
        let shown = Bound::new(Node::Literal(Value::Null), data_type).with_labels(labels.as_ref());
        Ok((Computes::Shifted(Shift { value, by, is_back, otherwise, ignores_nulls }), shown))
    }

    fn picked(
        &mut self,
        call: &WindowCall,
        value: &Expr,
        place: Place<Bound>,
    ) -> Result<(Computes<Bound>, Bound)> {
        let value = self.value(value)?;
        let shown = value.clone();
        Ok((Computes::Picked(Pick { value, place, ignores_nulls: call.ignores_nulls }), shown))
    }

    fn aggregate(&mut self, expr: &Expr) -> Result<(Computes<Bound>, Bound)> {
        let Expr::Aggregate { function, operand, distinct, order } = expr else {
            return Err(Error::invalid(format!("expected an aggregate, found {expr}")));
        };
        let operand = operand.as_deref().map(|operand| self.value(operand)).transpose()?;
        let keys = order.iter().map(|key| self.order_key(key)).collect::<Result<_>>()?;
        let limits = &self.over.inputs().limits;
        let (mut aggregate, labels) = bound_aggregate(*function, operand, keys, *distinct, limits)?;
        if aggregate.distinct {
            return Err(Error::invalid("DISTINCT is not supported in an aggregate with OVER"));
        }
        let shown = Bound::new(Node::Literal(Value::Null), aggregate.data_type);
        let operand = aggregate.operand.clone();
        // Accumulators read its type alone: that of a column.
        aggregate.operand = operand.as_ref().map(|o| Bound::field(0, o.data_type()));
        Ok((Computes::Aggregate(aggregate, operand), shown.with_labels(labels.as_ref())))
    }

    /// The step that computes the calls, of rows that pass a filter; the projection behind it then
    /// reads what the step makes.
    pub(super) fn finish(
        self,
        filter: Option<Bound>,
        after: usize,
        projection: &mut Projection,
    ) -> WindowStage {
        let mut kept = BTreeMap::new();
        each_bound(projection, &mut |bound| collect_fields(bound, &mut kept));
        let count = kept.len();
        let places: BTreeMap<usize, usize> = kept.keys().copied().zip(0..).collect();
        let moved = |field: usize| match field.checked_sub(FIRST_CALL) {
            Some(call) => count + call,
            // default: every field that is read was found above
            None => places.get(&field).copied().unwrap_or(field),
        };
        each_bound(projection, &mut |bound| bound.map_fields(&moved));
        let mut outputs: Vec<Bound> = kept.into_values().collect();
        let mut place = |bound: Bound| {
            let known = outputs.iter().position(|known| *known == bound);
            known.unwrap_or_else(|| {
                outputs.push(bound);
                outputs.len() - 1
            })
        };
        let calls = self.calls.into_iter().map(|call| call.placed(&mut place)).collect();
        if outputs.is_empty() {
            // A row of nothing is still a row.
            outputs.push(Bound::literal(Value::Bool(true)));
        }
        let rows = Projection { outputs, ..Projection::of_fields(&[], filter) };
        WindowStage { after, rows, kept: count, calls }
    }
}

fn each_bound(projection: &mut Projection, visit: &mut dyn FnMut(&mut Bound)) {
    projection.filter.iter_mut().for_each(&mut *visit);
    projection.outputs.iter_mut().for_each(&mut *visit);
    projection.order.iter_mut().for_each(|key| visit(&mut key.bound));
}

/// Adds the fields that are read, but for calls.
fn collect_fields(bound: &Bound, into: &mut BTreeMap<usize, Bound>) {
    if let Node::Field(position) = bound.node
        && position < FIRST_CALL
    {
        into.entry(position).or_insert_with(|| bound.clone());
    }
    bound.operands(&mut |operand| collect_fields(operand, into));
}
