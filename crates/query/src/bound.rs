//! Expressions with names resolved and types known.

use std::cmp::Ordering;
use std::sync::Arc;

use esker_format::{DataType, Labels, List, Value};

use crate::model::{Aggregate, Function, OperandKind, Operator};
use crate::pattern::{Captured, Pattern};

/// An expression over the positions of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bound {
    pub(crate) node: Node,
    /// `None` for a NULL literal that no context has typed.
    pub(crate) data_type: Option<DataType>,
    /// The labels of an enum, where they are known.
    pub(crate) labels: Option<Arc<Labels>>,
    /// True for a constant of which the type is known, as that of a field is: what a subquery has
    /// answered. One that was written takes the type of what it stands beside.
    pub(crate) is_typed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Field(usize),
    Literal(Value),
    /// What a subquery will answer, where the query is only looked at.
    Unanswered,
    /// One of the five operators on operands of equal type (or dates and days).
    Arithmetic(Operator, Box<Bound>, Box<Bound>),
    Compare(Comparison, Box<Bound>, Box<Bound>),
    And(Vec<Bound>),
    Or(Vec<Bound>),
    Not(Box<Bound>),
    /// The operand equals one of the values, none of which is NULL.
    In(Box<Bound>, Vec<Value>),
    /// Text that a constant pattern decides on.
    Match(Box<Bound>, Arc<Pattern>),
    IsNull(Box<Bound>),
    Negate(Box<Bound>),
    /// A value with what its row is ordered by, as bytes.
    Ranked(Vec<OrderKey>, Box<Bound>),
    /// Two floats of a row side by side, as bytes.
    Pair(Box<Bound>, Box<Bound>),
    /// Text or bytes, one after another.
    Concat(Vec<Bound>),
    Call(Function, Vec<Bound>),
    /// A function of a regular expression, which is constant, and of what else it takes.
    Regular(Function, Arc<Captured>, Vec<Bound>),
    Case(Vec<(Bound, Bound)>, Box<Bound>),
    /// The operand as this node's type.
    Cast(Box<Bound>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Eq,
    Neq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl Comparison {
    pub(crate) fn from_operator(operator: Operator) -> Option<Self> {
        Some(match operator {
            Operator::Eq => Self::Eq,
            Operator::Neq => Self::Neq,
            Operator::Lt => Self::Lt,
            Operator::Lte => Self::Lte,
            Operator::Gt => Self::Gt,
            Operator::Gte => Self::Gte,
            _ => return None,
        })
    }

    /// The comparison that is written so.
    ///
    /// # Errors
    /// `InvalidQuery` with those that there are.
    pub(crate) fn from_symbol(symbol: &str) -> crate::Result<Self> {
        use Operator::{Eq, Gt, Gte, Lt, Lte, Neq};
        let found = [Eq, Neq, Lt, Lte, Gt, Gte].into_iter().find(|o| o.entry().symbol == symbol);
        found.and_then(Self::from_operator).ok_or_else(|| {
            let message = format!("expected one of =, <>, <, <=, > and >=, found {symbol}");
            crate::Error::invalid(message)
        })
    }

    /// The comparison that holds of (b, a) when this one holds of (a, b).
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Eq | Self::Neq => self,
            Self::Lt => Self::Gt,
            Self::Lte => Self::Gte,
            Self::Gt => Self::Lt,
            Self::Gte => Self::Lte,
        }
    }

    /// The comparison that holds exactly when this one does not (the order is total).
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Eq => Self::Neq,
            Self::Neq => Self::Eq,
            Self::Lt => Self::Gte,
            Self::Lte => Self::Gt,
            Self::Gt => Self::Lte,
            Self::Gte => Self::Lt,
        }
    }

    pub(crate) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering.is_eq(),
            Self::Neq => ordering.is_ne(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
        }
    }
}

/// An aggregate over the rows of a stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoundAggregate {
    pub(crate) function: Aggregate,
    /// `None` counts rows.
    pub(crate) operand: Option<Bound>,
    pub(crate) distinct: bool,
    pub(crate) data_type: DataType,
}

/// Calls `visit` on every operand of a node.
macro_rules! visit_operands {
    ($node:expr, $visit:expr, $iter:ident $($mutable:tt)?) => {
        match $node {
            Node::Field(_) | Node::Literal(_) | Node::Unanswered => {}
            Node::Arithmetic(_, a, b) | Node::Compare(_, a, b) | Node::Pair(a, b) => {
                $visit(a);
                $visit(b);
            }
            Node::And(all)
            | Node::Or(all)
            | Node::Concat(all)
            | Node::Call(_, all)
            | Node::Regular(_, _, all) => all.$iter().for_each($visit),
            Node::Not(a)
            | Node::Negate(a)
            | Node::In(a, _)
            | Node::Match(a, _)
            | Node::IsNull(a)
            | Node::Cast(a) => $visit(a),
            Node::Ranked(keys, value) => {
                keys.$iter().for_each(|key| $visit(&$($mutable)? key.bound));
                $visit(value);
            }
            Node::Case(branches, otherwise) => {
                for (when, then) in branches {
                    $visit(when);
                    $visit(then);
                }
                $visit(otherwise);
            }
        }
    };
}

impl Bound {
    pub(crate) fn new(node: Node, data_type: DataType) -> Self {
        Self { node, data_type: Some(data_type), labels: None, is_typed: false }
    }

    pub(crate) fn field(position: usize, data_type: DataType) -> Self {
        Self::new(Node::Field(position), data_type)
    }

    /// The same, with the labels of its values.
    pub(crate) fn with_labels(self, labels: Option<&Arc<Labels>>) -> Self {
        Self { labels: labels.cloned(), ..self }
    }

    pub(crate) fn literal(value: Value) -> Self {
        let data_type = literal_type(&value);
        Self { node: Node::Literal(value), data_type, labels: None, is_typed: false }
    }

    /// The type; text for a NULL that nothing has typed.
    pub(crate) fn data_type(&self) -> DataType {
        self.data_type.unwrap_or(DataType::Text)
    }

    pub(crate) fn as_literal(&self) -> Option<&Value> {
        match &self.node {
            Node::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a constant that was written.
    pub(crate) fn as_written(&self) -> Option<&Value> {
        self.as_literal().filter(|_| !self.is_typed)
    }

    /// Calls `visit` on every operand.
    pub(crate) fn operands<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit_operands!(&self.node, visit, iter);
    }

    /// Moves every field to another position.
    pub(crate) fn map_fields(&mut self, to: &dyn Fn(usize) -> usize) {
        if let Node::Field(position) = &mut self.node {
            *position = to(*position);
        }
        let visit = &mut |operand: &mut Self| operand.map_fields(to);
        visit_operands!(&mut self.node, visit, iter_mut mut);
    }

    /// Puts expressions in place of some fields.
    pub(crate) fn replace_fields(&mut self, by: &dyn Fn(usize) -> Option<Self>) {
        if let Node::Field(position) = self.node {
            by(position).into_iter().for_each(|found| *self = found);
            return;
        }
        let visit = &mut |operand: &mut Self| operand.replace_fields(by);
        visit_operands!(&mut self.node, visit, iter_mut mut);
    }

    /// Puts an expression in place of each operand; false where there is none for one, when what
    /// has become of the expression means nothing.
    pub(crate) fn replace_operands(&mut self, by: &dyn Fn(&Self) -> Option<Self>) -> bool {
        let mut all = true;
        let visit = &mut |operand: &mut Self| match by(operand) {
            Some(found) => *operand = found,
            None => all = false,
        };
        visit_operands!(&mut self.node, visit, iter_mut mut);
        all
    }

    /// Adds the positions of the fields that it reads.
    pub(crate) fn collect_fields(&self, fields: &mut std::collections::BTreeSet<usize>) {
        if let Node::Field(position) = self.node {
            fields.insert(position);
        }
        self.operands(&mut |operand| operand.collect_fields(fields));
    }

    /// True when it holds of this, or of anything within.
    pub(crate) fn any(&self, holds: &dyn Fn(&Self) -> bool) -> bool {
        let mut any = holds(self);
        self.operands(&mut |operand| any = any || operand.any(holds));
        any
    }

    /// True when evaluating it may fail: arithmetic on integers, decimals and dates, casts, and the
    /// functions that the table says; and division where that by zero is an error.
    pub(crate) fn may_fail(&self) -> bool {
        self.any(&|bound| match &bound.node {
            Node::Arithmetic(operator, ..) => {
                bound.data_type != Some(DataType::F64) || operator.fails_by_zero()
            }
            Node::Negate(_) | Node::Call(Function::Abs | Function::Round | Function::Trunc, _) => {
                !bound.data_type.is_some_and(DataType::is_float)
            }
            Node::Call(function, operands) => {
                function.entry().may_fail || takes_any_path(*function, operands)
            }
            Node::Regular(function, _, operands) => regular_may_fail(*function, operands),
            // Of an interval its length, or another type.
            Node::Cast(of) => {
                of.data_type != Some(DataType::Interval)
                    || !bound.data_type.is_some_and(DataType::is_decimal)
            }
            _ => false,
        })
    }

    /// True when it is another value each time that it is computed.
    pub(crate) fn is_random(&self) -> bool {
        self.any(&|bound| match bound.node {
            Node::Call(function, _) => function.is_random(),
            _ => false,
        })
    }

    /// The one field it is computed from, where it is NULL whenever that field is, never fails,
    /// and is worth computing once for equal values.
    pub(crate) fn only_field(&self) -> Option<usize> {
        let mut field = None;
        (self.has_call() && !self.may_fail() && self.is_strict_in(&mut field)).then_some(field?)
    }

    /// True when it reads a field anywhere.
    pub(crate) fn has_field(&self) -> bool {
        self.any(&|bound| matches!(bound.node, Node::Field(_)))
    }

    /// True when it is not known before the query runs, though it may read no field.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.any(&|bound| matches!(bound.node, Node::Unanswered))
    }

    fn has_call(&self) -> bool {
        self.any(&|b| matches!(b.node, Node::Call(..) | Node::Concat(..) | Node::Match(..)))
    }

    fn is_strict_in(&self, field: &mut Option<usize>) -> bool {
        let here = match &self.node {
            Node::Field(position) => *field.get_or_insert(*position) == *position,
            Node::Literal(value) => !value.is_null(),
            Node::And(_)
            | Node::Or(_)
            | Node::IsNull(_)
            | Node::Case(..)
            | Node::Ranked(..)
            | Node::Unanswered => false,
            Node::Call(function, _) => function.entry().is_strict,
            _ => true,
        };
        let mut all = here;
        self.operands(&mut |operand| all = all && operand.is_strict_in(field));
        all
    }
}

fn literal_type(value: &Value) -> Option<DataType> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => DataType::Bool,
        Value::Int(_) => DataType::I64,
        Value::Uint(_) => DataType::U64,
        Value::Float32(_) => DataType::F32,
        Value::Float(_) => DataType::F64,
        Value::Text(_) => DataType::Text,
        Value::Bytes(_) => DataType::Bytes,
        Value::Time(_) => DataType::Time,
        Value::Uuid(_) => DataType::Uuid,
        Value::Ipv4(_) => DataType::Ipv4,
        Value::Ipv6(_) => DataType::Ipv6,
        Value::Decimal(v) => DataType::Decimal { precision: v.precision(), scale: v.scale() },
        Value::Enum(_) => DataType::Enum,
        Value::Json(_) => DataType::Json,
        Value::Interval(_) => DataType::Interval,
        Value::List(v) => return List::of(v).ok().map(|list| DataType::List(list.element())),
        Value::Date(_) => DataType::Date,
        Value::Timestamp(_) => DataType::Timestamp,
    })
}

/// True for a call with operands that may be wrong for a row. A short constant that replaces
/// matches makes too long a text only of one that is longer than any that many rows share.
fn regular_may_fail(function: Function, operands: &[Bound]) -> bool {
    const SHORT_BYTES: usize = 64;
    match (function, operands) {
        (_, [_]) => false,
        (Function::RegexpReplace, [_, by]) => match by.as_literal() {
            Some(Value::Text(by)) => by.len() > SHORT_BYTES,
            _ => true,
        },
        _ => true,
    }
}

/// True for a call with a text as a step that is not known beforehand, and may be no path.
fn takes_any_path(function: Function, operands: &[Bound]) -> bool {
    let takes_steps = function.entry().parameters.contains(&OperandKind::Step);
    let is_any =
        |step: &Bound| step.as_literal().is_none() && step.data_type == Some(DataType::Text);
    takes_steps && operands.iter().skip(1).any(is_any)
}

/// One key of an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OrderKey {
    pub(crate) bound: Bound,
    pub(crate) descending: bool,
    pub(crate) nulls_first: bool,
}
