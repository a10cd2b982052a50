//! A value of a row of another table, which is found by its key.

use std::fmt::{self, Display, Formatter};

use esker_format::DataType;
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::{Expr, Join, Operator, OrderBy, Query, Relation, RowCount, serial};
use crate::Result as QueryResult;

/// `lookup(table, key, …).field`: a field of the row of a table with a key; NULL where there is
/// none. Where the last field of the key is a timestamp or a date, of the rows with the values
/// before it the one with the greatest that is not after the value given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The table.
    pub table: String,
    /// The field of its row.
    pub field: String,
    /// The values of the fields of its key.
    pub keys: Vec<Expr>,
    /// The type of the field, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serial::optional_text")]
    pub data_type: Option<DataType>,
}

impl Display for Lookup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("lookup(")?;
        for (i, part) in self.table.split('.').enumerate() {
            write!(f, "{}{}", if i > 0 { "." } else { "" }, Name(part))?;
        }
        self.keys.iter().try_for_each(|key| write!(f, ", {key}"))?;
        write!(f, ").{}", Name(&self.field))
    }
}

/// What stands in the place of a look-up in a query.
type Meaning<'m> = dyn FnMut(&Lookup) -> QueryResult<Expr> + 'm;

impl Lookup {
    /// The query that finds the same: over the fields of the key of its table, in order, of which
    /// the row may be before the last value where that is by time.
    #[must_use]
    pub(crate) fn as_query(&self, key: &[&str], by_time: bool) -> Expr {
        // No name of the query around it means a field of the table.
        let name = |at: usize| format!("lookup key {at}");
        let mut rows = Query::table(&self.table);
        for (at, field) in key.iter().enumerate() {
            rows.select_as(Expr::field(*field), name(at));
        }
        rows.select_as(Expr::field(&self.field), "lookup value");
        let mut query = Query::from(Relation::query(rows, "looked up"));
        query.select(Expr::field("lookup value"));
        let last = key.len().checked_sub(1).filter(|_| by_time);
        let conditions = self.keys.iter().enumerate().map(|(at, value)| {
            let by = if Some(at) == last { Operator::Lte } else { Operator::Eq };
            Expr::field(name(at)).binary(by, value.clone())
        });
        query.filter = conditions.reduce(Expr::and);
        if let Some(last) = last {
            let expr = Expr::field(name(last));
            query.order_by.push(OrderBy { expr, descending: true, nulls_first: None });
            query.limit = Some(RowCount::Number(1));
        }
        Expr::value_of(query)
    }
}

impl Query {
    /// Whether it, or a query within it, looks rows up.
    pub(crate) fn looks_up(&self) -> bool {
        let mut found = self.exprs().any(|expr| !expr.lookups().is_empty());
        self.each_query(&mut |query| found = found || query.looks_up());
        found
    }

    /// Puts what they mean in the place of look-ups, in queries within it, too.
    pub(crate) fn replace_lookups(&mut self, meaning: &mut Meaning<'_>) -> QueryResult<()> {
        let within = self.with.iter_mut().map(|with| &mut with.query);
        let within = within.chain(self.derived.as_deref_mut());
        let within = within.chain(self.set.iter_mut().flat_map(|set| set.queries_mut()));
        for query in within {
            query.replace_lookups(meaning)?;
        }
        let mut joins = self.joins.iter_mut();
        joins.try_for_each(|join| in_relation(&mut join.relation, meaning))?;
        for item in self.select.iter_mut().filter(|item| item.alias.is_none()) {
            // A column keeps its name.
            if !item.expr.lookups().is_empty() {
                item.alias = Some(item.expr.to_string());
            }
        }
        self.exprs_mut().try_for_each(|expr| in_expr(expr, meaning))
    }
}

fn in_relation(relation: &mut Relation, meaning: &mut Meaning<'_>) -> QueryResult<()> {
    if let Some(query) = &mut relation.query {
        query.replace_lookups(meaning)?;
    }
    for Join { relation, on, .. } in &mut relation.joins {
        in_relation(relation, meaning)?;
        on.iter_mut().try_for_each(|on| in_expr(on, meaning))?;
    }
    Ok(())
}

fn in_expr(expr: &mut Expr, meaning: &mut Meaning<'_>) -> QueryResult<()> {
    expr.operands_mut().into_iter().try_for_each(|operand| in_expr(operand, meaning))?;
    match expr {
        Expr::Subquery { query, .. } => query.replace_lookups(meaning),
        Expr::Lookup(lookup) => {
            *expr = meaning(lookup)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Expr {
    /// The look-ups of rows of other tables within it, those in queries within it left out.
    #[must_use]
    pub fn lookups(&self) -> Vec<&Lookup> {
        let own = match self {
            Self::Lookup(lookup) => Some(&**lookup),
            _ => None,
        };
        let within = self.operands().into_iter().flat_map(Self::lookups);
        own.into_iter().chain(within).collect()
    }

    /// Changes the look-ups within it.
    ///
    /// # Errors
    /// What the change fails with.
    pub fn change_lookups<E>(
        &mut self,
        change: &mut dyn FnMut(&mut Lookup) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Self::Lookup(lookup) = self {
            change(lookup)?;
        }
        self.operands_mut().into_iter().try_for_each(|operand| operand.change_lookups(change))
    }
}
