//! Rollups: views of the groups of one table whose answer can be put together from partial
//! aggregates of parts of the table.
//!
//! ```text
//! SELECT date_trunc('hour', t) AS hour, model, count(*) AS n, sum(cost) AS cost
//! FROM events WHERE status < 500 GROUP BY 1, 2
//!        │          │                     └─ keys: fields, times cut to steps, JSON paths
//!        │          └─ a condition on a row that is the same at any time
//!        └─ aggregates of fields that are the same in whatever order rows come
//! ```
//!
//! What does not fit is refused, with the part that does not.

pub(crate) mod partials;

use esker_format::schema::{INDEX_FIELDS_MAX, NewRollup, OPERANDS_MAX, RollupKey, RollupOperand};
use esker_format::{DataType, FieldId, Schema, Value};

use crate::bind::{bind_row, replace_aliases};
use crate::index_expression::{by_names, refuse_unsteady};
use crate::model::date_unit::Unit;
use crate::model::{Aggregate, Expr, Function};
use crate::{Error, Inputs, Query, Result, Tables};

/// What a rollup shows of the groups of a table, with the fields by their names in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// The table.
    pub table: String,
    /// Which rows are in it; `None` for all.
    pub filter: Option<Expr>,
    /// Its columns, in order.
    pub columns: Vec<RollupColumn>,
}

/// A column of a [`Rollup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollupColumn {
    /// What the rows of a group have in common.
    Key(Expr),
    /// An aggregate of a field, or of rows.
    Aggregate(Aggregate, Option<String>),
}

impl Rollup {
    /// What a query is as a rollup.
    ///
    /// ```
    /// use esker_format::{DataType, Schema};
    /// use esker_query::model::{Aggregate, Expr, Query};
    /// use esker_query::{Rollup, RollupColumn};
    ///
    /// let schema = Schema::builder().field("model", DataType::Text).field("cost", DataType::I64);
    /// let mut query = Query::table("events");
    /// query.select(Expr::field("model")).select(Expr::count());
    /// query.group_by = vec![Expr::field("model")];
    /// let rollup = Rollup::of_table(&query, &schema.build()?)?;
    /// let [model, count] = rollup.columns.as_slice() else { panic!("two columns") };
    /// assert_eq!(*model, RollupColumn::Key(Expr::field("model")));
    /// assert_eq!(*count, RollupColumn::Aggregate(Aggregate::Count, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidQuery` with the part that does not fit, and what was expected there.
    pub fn of_table(query: &Query, schema: &Schema) -> Result<Self> {
        refuse_clauses(query)?;
        let names = FieldNames { query, schema };
        let filter = query.filter.as_ref().map(|filter| names.bare(filter));
        if let Some(filter) = &filter {
            refuse_unsteady(filter).map_err(|e| e.at("WHERE"))?;
        }
        let mut keys = Vec::new();
        for key in &query.group_by {
            match key {
                Expr::AllItems => {
                    let items = query.select.iter().map(|item| &item.expr);
                    keys.extend(items.filter(|expr| !expr.has_aggregate()).map(|e| names.bare(e)));
                }
                Expr::Item(place) => {
                    keys.push(names.bare(&query.item("GROUP BY", *place)?.expr));
                }
                key => keys.push(replace_aliases(&names.bare(key), schema, &query.select)?),
            }
        }
        let keys: Vec<Expr> = keys.iter().map(|key| names.bare(key)).collect();
        if keys.is_empty() {
            return Err(Error::invalid("expected GROUP BY with one key or more"));
        }
        keys.iter().try_for_each(|key| names.expect_key(key).map_err(|e| e.at("GROUP BY")))?;
        let mut columns = Vec::with_capacity(query.select.len());
        for item in &query.select {
            let expr = names.bare(&item.expr);
            let is_key = |key: &Expr| names.is_same(key, &expr);
            columns.push(match keys.iter().find(|key| is_key(key)) {
                Some(key) => RollupColumn::Key(key.clone()),
                None => names.aggregate(&expr)?,
            });
        }
        let is_shown = |key: &&Expr| columns.contains(&RollupColumn::Key((*key).clone()));
        if let Some(hidden) = keys.iter().find(|key| !is_shown(key)) {
            let message = format!("GROUP BY: {hidden}: expected every key in SELECT");
            return Err(Error::invalid(message));
        }
        Ok(Self { table: query.table.clone(), filter, columns })
    }

    /// What a table keeps of it to answer it from: nothing where a key is JSON, or a float, whose
    /// equal values need not be the same.
    ///
    /// # Errors
    /// `InvalidQuery` when an expression nests too deep.
    pub fn kept(&self, name: &str, schema: &Schema) -> Result<Option<NewRollup>> {
        let (mut keys, mut operands) = (Vec::new(), Vec::<(String, RollupOperand)>::new());
        for column in &self.columns {
            match column {
                RollupColumn::Key(key) => {
                    let data_type = bind_row(key, schema, &Inputs::default())?.data_type();
                    if !is_ordered(data_type) || data_type.is_float() {
                        return Ok(None);
                    }
                    let kept = match key {
                        Expr::Field(field) if schema.resolve(field).is_ok() => {
                            RollupKey::Field(field.clone())
                        }
                        key => RollupKey::Computed(by_names(key)?),
                    };
                    if !keys.contains(&kept) {
                        keys.push(kept);
                    }
                }
                RollupColumn::Aggregate(_, None) => {}
                RollupColumn::Aggregate(function, Some(field)) => {
                    let at = operands.iter().position(|(known, _)| known == field);
                    let at = at.unwrap_or_else(|| {
                        // The number of the field is found by its name.
                        operands.push((field.clone(), RollupOperand::counted(FieldId(0))));
                        operands.len() - 1
                    });
                    let position = schema.resolve(field)?;
                    let of = schema.fields().get(position).map(|field| field.data_type);
                    // Sums of many digits overflow what is kept of them.
                    let is_summed = of.is_some_and(|of| !of.is_wide());
                    if let Some((_, kept)) = operands.get_mut(at) {
                        match function {
                            Aggregate::Sum | Aggregate::Avg => kept.sum |= is_summed,
                            Aggregate::Min => kept.least = true,
                            Aggregate::Max => kept.greatest = true,
                            _ => {}
                        }
                    }
                }
            }
        }
        let fits = keys.len() <= INDEX_FIELDS_MAX && operands.len() <= OPERANDS_MAX;
        let filter = self.filter.as_ref().map(by_names).transpose()?;
        let name = name.to_owned();
        Ok(fits.then_some(NewRollup { name, keys, filter, operands }))
    }

    /// The columns that are keys, in the order in which [`Rollup::kept`] has them.
    #[must_use]
    pub fn key_columns(&self) -> Vec<usize> {
        let is_first = |(place, column): &(usize, &RollupColumn)| {
            let before = self.columns.iter().take(*place);
            matches!(column, RollupColumn::Key(_)) && before.into_iter().all(|b| b != *column)
        };
        let columns = self.columns.iter().enumerate().filter(is_first);
        columns.map(|(place, _)| place).collect()
    }

    /// The column with the shortest steps of a field, and how long these are in microseconds, at
    /// the most: 0 where it is the field itself.
    #[must_use]
    pub fn step_of(&self, field: &str) -> Option<(usize, u64)> {
        let columns = self.columns.iter().enumerate();
        let steps = columns.filter_map(|(at, column)| match column {
            RollupColumn::Key(key) => Some((at, step_us(key, field)?)),
            RollupColumn::Aggregate(..) => None,
        });
        steps.min_by_key(|(_, length_us)| *length_us)
    }

    /// A field of more than 18 digits of which sums are shown: none are kept of it.
    #[must_use]
    pub fn wide_sum(&self, schema: &Schema) -> Option<&str> {
        let is_wide = |name: &str| {
            let position = schema.position(name);
            let field = position.and_then(|at| schema.fields().get(at));
            field.is_some_and(|field| field.data_type.is_wide())
        };
        self.columns.iter().find_map(|column| match column {
            RollupColumn::Aggregate(Aggregate::Sum | Aggregate::Avg, Some(name))
                if is_wide(name) =>
            {
                Some(name.as_str())
            }
            _ => None,
        })
    }

    /// The same of a query over some tables and views.
    ///
    /// # Errors
    /// As for [`Rollup::of_table`]; what looking up the table fails with.
    pub fn of(query: &Query, tables: &dyn Tables) -> Result<Self> {
        refuse_clauses(query)?;
        if tables.view(&query.table).is_some() {
            let name = &query.table;
            return Err(Error::invalid(format!("FROM {name}: expected a table, found a view")));
        }
        Self::of_table(query, tables.table(&query.table)?.schema())
    }
}

/// Refuses clauses that groups of one table do not have.
fn refuse_clauses(query: &Query) -> Result<()> {
    let is_counted = query.limit.is_some() || query.offset != crate::model::RowCount::default();
    let found = [
        (!query.with.is_empty(), "WITH"),
        (query.set.is_some(), "UNION, INTERSECT or EXCEPT"),
        (!query.values.is_empty(), "VALUES"),
        (query.call.is_some(), "a table function"),
        (query.derived.is_some(), "a query in FROM"),
        (!query.joins.is_empty(), "a join"),
        (!query.columns.is_empty(), "other names for columns in FROM"),
        (query.table.is_empty(), "no FROM"),
        (query.distinct || !query.distinct_on.is_empty(), "DISTINCT"),
        (!query.grouping_sets.is_empty(), "GROUPING SETS, ROLLUP or CUBE"),
        (query.having.is_some(), "HAVING"),
        (query.qualify.is_some(), "QUALIFY"),
        (!query.order_by.is_empty(), "ORDER BY"),
        (is_counted, "LIMIT or OFFSET"),
    ];
    match found.into_iter().find(|(is_found, _)| *is_found) {
        None => Ok(()),
        Some((_, clause)) => {
            let expected = "SELECT keys, aggregates FROM a table [WHERE …] GROUP BY keys";
            Err(Error::invalid(format!("expected {expected}, found {clause}")))
        }
    }
}

/// The fields of the one table of a query.
struct FieldNames<'q> {
    query: &'q Query,
    schema: &'q Schema,
}

impl FieldNames<'_> {
    /// The expression, with fields by their names in the table.
    fn bare(&self, expr: &Expr) -> Expr {
        let mut bare = expr.clone();
        self.unqualify(&mut bare);
        bare
    }

    fn unqualify(&self, expr: &mut Expr) {
        if let Expr::Field(name) = expr {
            if let Some(bare) = self.unqualified(name) {
                *name = bare;
            }
            return;
        }
        expr.operands_mut().into_iter().for_each(|operand| self.unqualify(operand));
    }

    fn unqualified(&self, name: &str) -> Option<String> {
        let spelled = |name: &str| {
            let position = self.schema.resolve(name).ok()?;
            self.schema.fields().get(position).map(|field| field.name.clone())
        };
        let known = |name: &str| match (spelled(name), name.split_once('.')) {
            (None, Some((first, path))) => Some(format!("{}.{path}", spelled(first)?)),
            (found, _) => found,
        };
        if let Some(found) = known(name) {
            return Some(found);
        }
        let table = &self.query.table;
        let last = table.rsplit_once('.').map(|(_, last)| last);
        let prefixes = match &self.query.alias {
            Some(alias) => [Some(alias.as_str()), None],
            None => [Some(table.as_str()), last],
        };
        prefixes.into_iter().flatten().find_map(|prefix| {
            let (first, rest) = name.split_at_checked(prefix.len())?;
            let rest = rest.strip_prefix('.').filter(|_| first.eq_ignore_ascii_case(prefix))?;
            known(rest)
        })
    }

    /// Whether two expressions are the same value of each row.
    fn is_same(&self, a: &Expr, b: &Expr) -> bool {
        let bound = |expr: &Expr| bind_row(expr, self.schema, &Inputs::default()).ok();
        a == b || bound(a).is_some_and(|a| Some(a) == bound(b))
    }

    /// Refuses what no rollup groups by.
    fn expect_key(&self, key: &Expr) -> Result<()> {
        let expected = |found: &str| {
            let fit = "a field, a JSON path, or date_trunc or time_bucket of a field";
            Err(Error::invalid(format!("{key}: expected {fit}, found {found}")))
        };
        let is_path = match key {
            Expr::Field(name) => self.schema.resolve(name).is_err(),
            Expr::Call(Function::DateTrunc | Function::DateBin, operands) => {
                let is_constant = |operand: &Expr| {
                    let mut names = Vec::new();
                    operand.collect_names(&mut names);
                    names.is_empty()
                };
                let mut read = operands.iter().filter(|operand| !is_constant(operand));
                let is_one = match (read.next(), read.next()) {
                    (Some(Expr::Field(name)), None) => self.schema.resolve(name).is_ok(),
                    _ => false,
                };
                if !is_one {
                    return expected("another operand");
                }
                false
            }
            _ => return expected("another expression"),
        };
        refuse_unsteady(key)?;
        match bind_row(key, self.schema, &Inputs::default())?.data_type() {
            DataType::Json if is_path => Ok(()),
            other => match is_ordered(other) {
                true => Ok(()),
                false => expected(&other.to_string()),
            },
        }
    }

    /// An aggregate that can be put together of those of parts, in whatever order they come.
    fn aggregate(&self, expr: &Expr) -> Result<RollupColumn> {
        let Expr::Aggregate { function, operand, distinct, order } = expr else {
            let fit = "a key of GROUP BY, or one of count, sum, avg, min and max of a field";
            return Err(Error::invalid(format!("{expr}: expected {fit}")));
        };
        use Aggregate::{Avg, Count, Max, Min, Sum};
        if !matches!(function, Count | Sum | Avg | Min | Max) {
            let name = function.name();
            let message = format!("{expr}: expected count, sum, avg, min or max, found {name}");
            return Err(Error::invalid(message));
        }
        if *distinct || !order.is_empty() {
            let found = if *distinct { "DISTINCT" } else { "ORDER BY" };
            return Err(Error::invalid(format!("{expr}: expected a field alone, found {found}")));
        }
        let name = match operand.as_deref() {
            None => return Ok(RollupColumn::Aggregate(*function, None)),
            Some(Expr::Literal(value)) if *function == Count && !value.is_null() => {
                return Ok(RollupColumn::Aggregate(*function, None));
            }
            Some(Expr::Field(name)) => name,
            Some(_) => {
                let message = format!("{expr}: expected a field, found another expression");
                return Err(Error::invalid(message));
            }
        };
        let position = self.schema.resolve(name)?;
        let field = self.schema.fields().get(position);
        let field = field.ok_or_else(|| self.schema.unknown_field(name))?;
        let data_type = field.data_type;
        let (is_fit, fit) = match function {
            // Sums of floats depend on the order of the rows.
            Sum | Avg => (data_type.is_numeric() && !data_type.is_float(), "integers or decimals"),
            Min | Max => (is_ordered(data_type), "values that have an order"),
            _ => (true, ""),
        };
        if !is_fit {
            return Err(Error::invalid(format!("{expr}: expected {fit}, found {data_type}")));
        }
        Ok(RollupColumn::Aggregate(*function, Some(field.name.clone())))
    }
}

/// How long the steps of a field may be to which a key cuts it.
fn step_us(key: &Expr, field: &str) -> Option<u64> {
    let is_field = |expr: &Expr| matches!(expr, Expr::Field(name) if name == field);
    let (function, operands) = match key {
        Expr::Call(function, operands) => (function, operands),
        key => return is_field(key).then_some(0),
    };
    if !operands.iter().any(is_field) {
        return None;
    }
    let length = operands.iter().find_map(|operand| match (function, operand) {
        (Function::DateTrunc, Expr::Literal(Value::Text(unit))) => {
            u64::try_from(Unit::from_name(unit)?.longest_us()).ok()
        }
        (Function::DateBin, Expr::Literal(Value::Interval(length))) => {
            u64::try_from(length.length_us()).ok()
        }
        (Function::DateBin, Expr::Literal(Value::Text(length))) => {
            let length: esker_format::Interval = length.parse().ok()?;
            u64::try_from(length.length_us()).ok()
        }
        _ => None,
    });
    // Of steps that are not known it is not told when they end.
    Some(length.unwrap_or(u64::MAX))
}

/// Whether values of a type have an order, as those of keys need.
fn is_ordered(data_type: DataType) -> bool {
    !matches!(data_type, DataType::Json | DataType::Interval | DataType::List(_))
}
