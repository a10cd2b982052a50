//! Queries as text, in SQL's spelling.

use std::fmt::{self, Display, Formatter};

use esker_format::schema::EVENT_ID_NAME;
use esker_format::{List, Value};

use super::name::Name;
use super::{
    Aggregate, Expr, Form, Function, Groups, Join, JoinKind, Operator, OrderBy, Query, Relation,
    RowCount, SelectItem, SetBranch, SetOperation, SetOperator, SubqueryForm, With,
};

/// Values of a subquery that are shown.
const SHOWN_VALUES: usize = 8;
/// Longer ones are not.
const SHOWN_BYTES: usize = 64;

/// How tightly a comparison binds (see the operator table).
const PREDICATE: u8 = 4;

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.with.is_empty() {
            let is_recursive = self.with.iter().any(|with| with.recursive);
            f.write_str(if is_recursive { "WITH RECURSIVE " } else { "WITH " })?;
            list(f, &self.with)?;
            f.write_str(" ")?;
        }
        match &self.set {
            Some(set) => set.fmt(f)?,
            None if !self.values.is_empty() => rows(f, &self.values)?,
            None if let Some(call) = &self.call => write!(f, "SELECT * FROM {call}")?,
            None => self.show_select(f)?,
        }
        if !self.order_by.is_empty() {
            f.write_str(" ORDER BY ")?;
            for (i, order) in self.order_by.iter().enumerate() {
                write!(f, "{}{}", if i > 0 { ", " } else { "" }, Key(&order.expr))?;
                order.direction(f)?;
            }
        }
        if let Some(limit) = &self.limit {
            write!(f, " LIMIT {limit}")?;
        }
        if self.offset != RowCount::Number(0) {
            write!(f, " OFFSET {}", self.offset)?;
        }
        Ok(())
    }
}

impl Query {
    /// SELECT, up to its order.
    fn show_select(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.distinct { "SELECT DISTINCT " } else { "SELECT " })?;
        if !self.distinct_on.is_empty() {
            f.write_str("DISTINCT ON (")?;
            keys(f, &self.distinct_on)?;
            f.write_str(") ")?;
        }
        if self.select.is_empty() {
            f.write_str("*")?;
        }
        list(f, &self.select)?;
        if let Some(first) = self.first_relation() {
            write!(f, " FROM {first}")?;
        }
        self.joins.iter().try_for_each(|join| write!(f, " {join}"))?;
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group_by.is_empty() || !self.grouping_sets.is_empty() {
            let keys = self.group_by.iter().map(|key| Key(key).to_string()).collect();
            let groups = Groups { keys, sets: &self.grouping_sets, is_whole: true };
            write!(f, " GROUP BY {groups}")?;
        }
        self.having.iter().try_for_each(|having| write!(f, " HAVING {having}"))?;
        self.qualify.iter().try_for_each(|qualify| write!(f, " QUALIFY {qualify}"))
    }
}

impl Display for SetOperation {
    /// From left to right; INTERSECT would come before what is not in parentheses.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_late = |(i, branch): &(usize, &SetBranch)| {
            let before = self.rest.iter().take(*i);
            let is_other = |other: &SetBranch| other.operator != SetOperator::Intersect;
            branch.operator == SetOperator::Intersect && before.clone().any(is_other)
        };
        let late: Vec<usize> =
            self.rest.iter().enumerate().filter(is_late).map(|(i, _)| i).collect();
        f.write_str(&"(".repeat(late.len()))?;
        branch(f, &self.first)?;
        for (i, SetBranch { query, .. }) in self.rest.iter().enumerate() {
            if late.contains(&i) {
                f.write_str(")")?;
            }
            let title = self.rest.get(i).map(SetBranch::title).unwrap_or_default();
            write!(f, " {title} ")?;
            branch(f, query)?;
        }
        Ok(())
    }
}

/// A query beside others, in parentheses where it would end elsewhere without.
fn branch(f: &mut Formatter<'_>, query: &Query) -> fmt::Result {
    match query.set.is_none() && query.is_only_rows() {
        true => query.fmt(f),
        false => write!(f, "({query})"),
    }
}

impl Display for With {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Name(&self.name).fmt(f)?;
        columns(f, &self.columns)?;
        f.write_str(match self.materialized {
            None => " AS (",
            Some(true) => " AS MATERIALIZED (",
            Some(false) => " AS NOT MATERIALIZED (",
        })?;
        write!(f, "{})", self.query)
    }
}

fn rows(f: &mut Formatter<'_>, rows: &[Vec<Expr>]) -> fmt::Result {
    for (i, row) in rows.iter().enumerate() {
        f.write_str(if i > 0 { ", (" } else { "VALUES (" })?;
        list(f, row)?;
        f.write_str(")")?;
    }
    Ok(())
}

fn keys(f: &mut Formatter<'_>, exprs: &[Expr]) -> fmt::Result {
    let keys: Vec<_> = exprs.iter().map(Key).collect();
    list(f, &keys)
}

/// What columns are called, behind the name of a table.
fn columns(f: &mut Formatter<'_>, names: &[String]) -> fmt::Result {
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = names.iter().map(|name| Name(name).to_string()).collect();
    write!(f, " ({})", names.join(", "))
}

impl Display for Relation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.joins.is_empty() { "" } else { "(" })?;
        match &self.query {
            Some(_) if let Some(call) = self.as_call() => call.fmt(f)?,
            Some(query) if self.lateral => write!(f, "LATERAL ({query})")?,
            Some(query) => write!(f, "({query})")?,
            None => Name(&self.table).fmt(f)?,
        }
        match &self.alias {
            Some(alias) => write!(f, " AS {}", Name(alias))?,
            // Columns stand behind a name.
            None if !self.columns.is_empty() => write!(f, " AS {}", Name(self.name()))?,
            None => {}
        }
        columns(f, &self.columns)?;
        self.joins.iter().try_for_each(|join| write!(f, " {join}"))?;
        f.write_str(if self.joins.is_empty() { "" } else { ")" })
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let natural = if self.natural { "NATURAL " } else { "" };
        match self.kind {
            JoinKind::Inner if self.is_cross() => f.write_str("CROSS JOIN ")?,
            JoinKind::Inner => write!(f, "{natural}JOIN ")?,
            kind => write!(f, "{natural}{} JOIN ", kind.name())?,
        }
        self.relation.fmt(f)?;
        match &self.on {
            Some(on) => write!(f, " ON {on}"),
            None if self.natural => Ok(()),
            None if self.is_cross() && self.kind != JoinKind::Inner => f.write_str(" ON true"),
            None if self.is_cross() => Ok(()),
            None => {
                let names: Vec<_> = self.using.iter().map(|name| Name(name).to_string()).collect();
                write!(f, " USING ({})", names.join(", "))
            }
        }
    }
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.alias {
            Some(alias) => write!(f, "{} AS {}", self.expr, Name(alias)),
            None => self.expr.fmt(f),
        }
    }
}

/// A key of groups or of an order, where a whole number alone would stand for the column at its
/// place.
struct Key<'a>(&'a Expr);

impl Display for Key<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::Literal(Value::Int(_)) => write!(f, "CAST({} AS i64)", self.0),
            expr => expr.fmt(f),
        }
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)?;
        self.direction(f)
    }
}

impl OrderBy {
    fn direction(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.descending {
            f.write_str(" DESC")?;
        }
        match self.nulls_first {
            None => Ok(()),
            Some(true) => f.write_str(" NULLS FIRST"),
            Some(false) => f.write_str(" NULLS LAST"),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if name.ends_with(EVENT_ID_NAME) => f.write_str("event_id()"),
            Self::Field(name) => Path(name).fmt(f),
            Self::Item(place) => place.fmt(f),
            Self::AllItems => f.write_str("ALL"),
            Self::Grouping(operands) => {
                f.write_str("grouping(")?;
                list(f, operands)?;
                f.write_str(")")
            }
            Self::AllFields(table) if table.is_empty() => f.write_str("*"),
            Self::AllFields(table) => write!(f, "{}.*", Name(table)),
            Self::Subquery { form, operand, query } => {
                subquery(f, *form, operand.as_deref(), query)
            }
            Self::Row(values) => {
                f.write_str("(")?;
                list(f, values)?;
                f.write_str(")")
            }
            Self::Literal(value) => literal(f, value),
            Self::Cast(operand, data_type) => write!(f, "CAST({operand} AS {data_type})"),
            Self::Aggregate { function, operand, distinct, order } => {
                aggregate(f, *function, operand.as_deref(), *distinct, order)
            }
            Self::Window(call) => call.fmt(f),
            Self::Lookup(lookup) => lookup.fmt(f),
            Self::Apply(operator, operands) => apply(f, *operator, operands),
            Self::Call(Function::TryCast, operands) => try_cast(f, operands),
            Self::Call(Function::ListValue, operands) => {
                f.write_str("ARRAY[")?;
                list(f, operands)?;
                f.write_str("]")
            }
            Self::Call(function, operands) => {
                write!(f, "{}(", function.entry().name)?;
                list(f, operands)?;
                f.write_str(")")
            }
            Self::Answer(answer) => match (answer.as_unanswered(), answer.values()) {
                (Some(text), _) => f.write_str(text),
                (None, []) => f.write_str("NULL"),
                (None, values) => answered(f, values),
            },
            Self::Parameter(parameter) => f.write_str(&parameter.name),
            Self::Default => f.write_str("DEFAULT"),
        }
    }
}

fn aggregate(
    f: &mut Formatter<'_>,
    function: Aggregate,
    operand: Option<&Expr>,
    distinct: bool,
    order: &[OrderBy],
) -> fmt::Result {
    let Some(operand) = operand else { return write!(f, "{}(*)", function.name()) };
    let distinct = if distinct { "DISTINCT " } else { "" };
    write!(f, "{}({distinct}{operand}", function.name())?;
    if let Aggregate::Quantile { millionths } | Aggregate::PercentileDisc { millionths } = function
    {
        write!(f, ", {}", f64::from(millionths) / 1e6)?;
    }
    let (second, order) = match order.split_first() {
        Some((second, order)) if function.takes_second() => (Some(second), order),
        _ => (None, order),
    };
    second.iter().try_for_each(|second| write!(f, ", {}", second.expr))?;
    if !order.is_empty() {
        f.write_str(" ORDER BY ")?;
        list(f, order)?;
    }
    f.write_str(")")
}

fn try_cast(f: &mut Formatter<'_>, operands: &[Expr]) -> fmt::Result {
    match operands {
        [operand, Expr::Literal(Value::Text(name))] => write!(f, "TRY_CAST({operand} AS {name})"),
        _ => f.write_str("TRY_CAST()"),
    }
}

fn subquery(
    f: &mut Formatter<'_>,
    form: SubqueryForm,
    operand: Option<&Expr>,
    query: &Query,
) -> fmt::Result {
    operand.map_or(Ok(()), |operand| within(f, operand, PREDICATE + 1))?;
    match form {
        SubqueryForm::Scalar => write!(f, "({query})"),
        SubqueryForm::Exists => write!(f, "EXISTS ({query})"),
        SubqueryForm::In => write!(f, " IN ({query})"),
        SubqueryForm::Any(operator) => write!(f, " {} ANY ({query})", operator.entry().symbol),
        SubqueryForm::All(operator) => write!(f, " {} ALL ({query})", operator.entry().symbol),
    }
}

/// The values of a subquery, which no one has written: a few of many.
fn answered(f: &mut Formatter<'_>, values: &[Value]) -> fmt::Result {
    for (i, value) in values.iter().take(SHOWN_VALUES).enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        match value.as_ref().as_bytes() {
            Some(bytes) if bytes.len() > SHOWN_BYTES => f.write_str("(a long value)")?,
            _ => literal(f, value)?,
        }
    }
    match values.len() > SHOWN_VALUES {
        true => write!(f, ", … ({} values)", values.len()),
        false => Ok(()),
    }
}

fn apply(f: &mut Formatter<'_>, operator: Operator, operands: &[Expr]) -> fmt::Result {
    let entry = operator.entry();
    match entry.form {
        Form::Infix(binds) => {
            // Only arithmetic nests to the left: a chain of AND or OR has its operands side by
            // side, and comparisons are no chain.
            let first = if binds <= PREDICATE { binds + 1 } else { binds };
            for (i, operand) in operands.iter().enumerate() {
                if i > 0 {
                    write!(f, " {} ", entry.symbol)?;
                }
                within(f, operand, if i > 0 { binds + 1 } else { first })?;
            }
            Ok(())
        }
        Form::Prefix(binds) => {
            f.write_str(entry.symbol)?;
            if entry.symbol.ends_with(char::is_alphabetic) {
                f.write_str(" ")?;
            }
            operands.iter().try_for_each(|operand| {
                // Two minus signs were a comment, and one before digits is part of the number.
                let text = Shown(operand, binds + 1).to_string();
                let joins = |c: char| c == '-' || c.is_ascii_digit();
                if entry.symbol == "-" && text.starts_with(joins) {
                    write!(f, "({text})")
                } else {
                    f.write_str(&text)
                }
            })
        }
        Form::Case => case(f, operands),
        Form::Predicate => predicate(f, operator, operands),
    }
}

fn predicate(f: &mut Formatter<'_>, operator: Operator, operands: &[Expr]) -> fmt::Result {
    let Some((first, rest)) = operands.split_first() else { return f.write_str("?") };
    within(f, first, PREDICATE + 1)?;
    write!(f, " {}", operator.entry().symbol)?;
    match operator {
        Operator::In | Operator::NotIn => {
            f.write_str(" (")?;
            list(f, rest)?;
            f.write_str(")")
        }
        _ => {
            let joint = match operator {
                Operator::Between | Operator::NotBetween => " AND",
                _ => " ESCAPE",
            };
            for (i, operand) in rest.iter().enumerate() {
                f.write_str(if i > 0 { joint } else { "" })?;
                f.write_str(" ")?;
                within(f, operand, PREDICATE + 1)?;
            }
            Ok(())
        }
    }
}

fn case(f: &mut Formatter<'_>, operands: &[Expr]) -> fmt::Result {
    f.write_str("CASE")?;
    for pair in operands.chunks(2) {
        match pair {
            [when, then] => write!(f, " WHEN {when} THEN {then}")?,
            rest => rest.iter().try_for_each(|otherwise| write!(f, " ELSE {otherwise}"))?,
        }
    }
    f.write_str(" END")
}

/// An operand as [`within`] writes it.
struct Shown<'a>(&'a Expr, u8);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        within(f, self.0, self.1)
    }
}

/// Writes an operand, in parentheses when it binds less tightly than `least`.
fn within(f: &mut Formatter<'_>, operand: &Expr, least: u8) -> fmt::Result {
    let binds = match operand {
        Expr::Subquery { operand: Some(_), .. } => PREDICATE,
        Expr::Apply(operator, _) => match operator.entry().form {
            Form::Infix(binds) | Form::Prefix(binds) => binds,
            Form::Predicate => PREDICATE,
            Form::Case => u8::MAX,
        },
        _ => u8::MAX,
    };
    if binds < least { write!(f, "({operand})") } else { operand.fmt(f) }
}

fn literal(f: &mut Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Null => f.write_str("NULL"),
        // With an exponent it is a float, without one a decimal.
        Value::Float(v) if v.is_finite() => write!(f, "{v:e}"),
        Value::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        Value::Json(_) => {
            write!(f, "CAST('{}' AS json)", value.to_string().replace('\'', "''"))
        }
        Value::Enum(_) => write!(f, "'{}'", value.to_string().replace('\'', "''")),
        Value::List(bytes) => {
            let element = List::of(bytes).map_err(|_| fmt::Error)?.element().data_type();
            write!(f, "CAST('{}' AS {element}[])", value.to_string().replace('\'', "''"))
        }
        Value::Bytes(_) => write!(f, "X'{value}'"),
        Value::Date(_) => write!(f, "DATE '{value}'"),
        Value::Timestamp(_) => write!(f, "TIMESTAMP '{value}'"),
        Value::Time(_) => write!(f, "TIME '{value}'"),
        Value::Interval(_) => write!(f, "INTERVAL '{value}'"),
        Value::Uuid(_) => write!(f, "CAST('{value}' AS uuid)"),
        Value::Ipv4(_) => write!(f, "CAST('{value}' AS ipv4)"),
        Value::Ipv6(_) => write!(f, "CAST('{value}' AS ipv6)"),
        // A number with a point alone is a decimal.
        Value::Float32(v) if v.is_finite() => write!(f, "{v:?}{}", exponent(&format!("{v:?}"))),
        // A whole number that fits an integer is one, but for a point behind it.
        Value::Decimal(v) if v.scale() == 0 && fits_integer(v.mantissa()) => write!(f, "{v}."),
        other => other.fmt(f),
    }
}

fn fits_integer(whole: i128) -> bool {
    i64::try_from(whole).is_ok() || u64::try_from(whole).is_ok()
}

fn exponent(number: &str) -> &'static str {
    if number.contains('e') { "" } else { "e0" }
}

pub(super) fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        item.fmt(f)?;
    }
    Ok(())
}

/// A name of several parts, such as `table.field`.
struct Path<'a>(&'a str);

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.split('.').enumerate() {
            f.write_str(if i > 0 { "." } else { "" })?;
            Name(name).fmt(f)?;
        }
        Ok(())
    }
}
