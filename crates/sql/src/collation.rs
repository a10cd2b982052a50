//! `COLLATE`: texts compared without case.
//!
//! A collation is a function of a text, its key: what is compared, ordered or grouped by is the key
//! in place of the text, and nothing behind this module knows of collations. Where a text is both a
//! key and shown, as with `DISTINCT` and `GROUP BY`, a group shows the least of its texts.

use esker_query::model::{
    Aggregate, Collation, Expr, Operator, OrderBy, Query, RowCount, SelectItem, Typing,
};
use sqlparser::ast;

use crate::expression::Names;
use crate::statement::unsupported;
use crate::{Error, Result};

/// What others call `binary` and `unicode`, in any case.
const OTHER_NAMES: [(&str, Collation); 5] = [
    ("C", Collation::Binary),
    ("POSIX", Collation::Binary),
    ("ucs_basic", Collation::Binary),
    ("default", Collation::Binary),
    ("unicode_nocase", Collation::Unicode),
];

/// Where a collation other than `binary` means something.
const PLACES: &str = "stands beside =, <>, <, <=, >, >=, IN, BETWEEN, IS DISTINCT FROM and behind \
                      CASE, in ORDER BY, GROUP BY, DISTINCT and PARTITION BY, in min, max and \
                      count(DISTINCT …)";

/// The collation of a name.
///
/// # Errors
/// `InvalidQuery` for a name that no collation has, with those that there are.
pub(crate) fn named(name: &ast::ObjectName) -> Result<Collation> {
    let name = match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => &name.value,
        // As tools write it: pg_catalog."default".
        [ast::ObjectNamePart::Identifier(schema), ast::ObjectNamePart::Identifier(name)]
            if schema.value.eq_ignore_ascii_case("pg_catalog") =>
        {
            &name.value
        }
        _ => return Err(unsupported("this name of a collation", name)),
    };
    let other = OTHER_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    match other {
        Some((_, collation)) => Ok(*collation),
        None => Ok(Collation::expect(name)?),
    }
}

/// A query of one column with the key of each text in it.
///
/// # Errors
/// `InvalidQuery` for one that may not be changed so.
pub(crate) fn keys_of(by: Collation, mut query: Query) -> Result<Query> {
    let is_cut = query.limit.is_some() || query.offset != RowCount::default();
    let is_plain = query.set.is_none() && query.distinct_on.is_empty() && !is_cut;
    match query.select.as_mut_slice() {
        _ if by == Collation::Binary => Ok(query),
        [item] if is_plain && !matches!(item.expr, Expr::AllFields(_)) => {
            let text = std::mem::replace(&mut item.expr, Expr::Default);
            item.expr = by.key(text);
            // Which values there are has no order.
            query.order_by.clear();
            Ok(query)
        }
        _ => Err(Error::invalid(format!(
            "COLLATE {}: expected beside it a subquery of one column that is named, without \
             LIMIT, UNION and DISTINCT ON, found `{query}`",
            by.name()
        ))),
    }
}

/// Something with the collation that is written behind it.
#[derive(Clone)]
pub(crate) struct Collated {
    pub expr: Expr,
    pub by: Option<Collation>,
}

impl Collated {
    /// What is compared of it.
    pub(crate) fn key(self) -> Expr {
        self.by.unwrap_or(Collation::Binary).key(self.expr)
    }
}

/// A text by whose key rows are grouped.
#[derive(Clone, Debug)]
pub(crate) struct GroupedText {
    text: Expr,
    key: Expr,
}

/// An expression without the parentheses around it.
fn within_parentheses(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// True for an expression with a collation behind it.
pub(crate) fn is_collated(expr: &ast::Expr) -> bool {
    matches!(within_parentheses(expr), ast::Expr::Collate { .. })
}

/// The collation of what is compared; none where none is written.
fn common(sides: &[Collated]) -> Result<Collation> {
    let mut written = sides.iter().filter_map(|side| side.by);
    let first = written.next().unwrap_or(Collation::Binary);
    match written.find(|other| *other != first) {
        None => Ok(first),
        Some(other) => {
            let (first, other) = (first.name(), other.name());
            Err(Error::invalid(format!(
                "COLLATE: expected one collation, found {first} and {other}"
            )))
        }
    }
}

/// What is compared of some expressions, by the collation that any of them has.
pub(crate) fn compared(sides: Vec<Collated>) -> Result<Vec<Expr>> {
    let by = common(&sides)?;
    if by != Collation::Binary && sides.iter().any(|side| matches!(side.expr, Expr::Row(_))) {
        let message = format!("COLLATE {}: expected one value, found a row", by.name());
        return Err(Error::invalid(message));
    }
    Ok(sides.into_iter().map(|side| by.key(side.expr)).collect())
}

/// True for what is compared by a collation, where one is written.
pub(crate) fn is_compared(operator: Operator) -> bool {
    operator.entry().typing == Typing::Comparison
}

impl Names {
    /// An expression with the collation behind it.
    pub(crate) fn collated(&self, expr: &ast::Expr) -> Result<Collated> {
        match within_parentheses(expr) {
            ast::Expr::Collate { expr: text, collation } => {
                let by = Some(named(collation)?);
                Ok(Collated { expr: self.convert(text)?, by })
            }
            expr => Ok(Collated { expr: self.convert(expr)?, by: None }),
        }
    }

    /// What rows are ordered or grouped by.
    pub(crate) fn key(&self, expr: &ast::Expr) -> Result<Expr> {
        self.collated(expr).map(Collated::key)
    }

    /// What is compared, by the collation that is written behind any of it.
    pub(crate) fn compared(&self, sides: &[&ast::Expr]) -> Result<Vec<Expr>> {
        compared(sides.iter().map(|side| self.collated(side)).collect::<Result<Vec<_>>>()?)
    }

    /// A collation where none is looked at: that which changes nothing is left out.
    pub(crate) fn beside_nothing(
        &self,
        text: &ast::Expr,
        collation: &ast::ObjectName,
    ) -> Result<Expr> {
        match named(collation)? {
            Collation::Binary => self.convert(text),
            other => Err(Error::invalid(format!(
                "COLLATE {} {PLACES}, not here: `{text} COLLATE {collation}`",
                other.name()
            ))),
        }
    }

    /// A select item: where texts are grouped, one with a collation is its key.
    pub(crate) fn select_item(&self, expr: &ast::Expr) -> Result<Expr> {
        match self.groups_texts {
            true => self.key(expr),
            false => self.convert(expr),
        }
    }
}

/// The texts among what is grouped by or shown that have a collation other than `binary`.
pub(crate) fn grouped_texts<'e>(
    exprs: impl Iterator<Item = &'e ast::Expr>,
    names: &Names,
) -> Result<Vec<GroupedText>> {
    let mut found = Vec::new();
    for expr in exprs {
        let Collated { expr: text, by: Some(by) } = names.collated(expr)? else {
            continue;
        };
        if by != Collation::Binary {
            found.push(GroupedText { key: by.key(text.clone()), text });
        }
    }
    Ok(found)
}

/// Shows the least of the texts of each group, where rows are grouped by their keys. `DISTINCT` of
/// such texts is groups.
///
/// # Errors
/// `InvalidQuery` where a text is shown that rows are not grouped by.
pub(crate) fn show_least(
    query: &mut Query,
    shown: &[GroupedText],
    keys: &[GroupedText],
) -> Result<()> {
    if !query.grouping_sets.is_empty()
        && let Some(GroupedText { text, .. }) = shown.iter().chain(keys).next()
    {
        return Err(Error::invalid(format!(
            "COLLATE behind {text}: expected no GROUPING SETS, ROLLUP or CUBE beside it"
        )));
    }
    if !shown.is_empty() && query.distinct && !query.is_grouped() && !query.has_windows() {
        query.distinct = false;
        query.group_by = query.select.iter().map(|item| item.expr.clone()).collect();
    }
    let written = query.group_by.clone();
    for key in &mut query.group_by {
        let item = match key {
            Expr::Item(place) => query.select.get(place.saturating_sub(1)),
            // A column by its name, unless rows are grouped by its text besides.
            Expr::Field(name) => query.select.iter().find(|item| {
                let is_called = |alias: &String| alias.eq_ignore_ascii_case(name);
                item.alias.as_ref().is_some_and(is_called) && !written.contains(&item.expr)
            }),
            _ => None,
        };
        if let Some(item) = item.filter(|item| shown.iter().any(|text| text.key == item.expr)) {
            key.clone_from(&item.expr);
        }
    }
    let is_grouped = |key: &Expr| query.group_by.contains(key);
    if let Some(GroupedText { text, .. }) = shown.iter().find(|text| !is_grouped(&text.key)) {
        return Err(Error::invalid(format!(
            "COLLATE behind {text} in SELECT: expected the same in GROUP BY, or DISTINCT without \
             groups and windows"
        )));
    }
    for item in &mut query.select {
        let name = item.name();
        let of_key = shown.iter().find(|text| text.key == item.expr);
        let before = item.expr.clone();
        match of_key {
            Some(GroupedText { text, .. }) => item.expr = least(text),
            None => replace_texts(&mut item.expr, keys),
        }
        if item.expr != before {
            item.alias.get_or_insert(name);
        }
    }
    let conditions = query.having.iter_mut().chain(&mut query.qualify);
    conditions.for_each(|condition| replace_texts(condition, keys));
    Ok(())
}

/// The same of the keys of an order: a column that is such a text is ordered by its key.
pub(crate) fn order_by_keys(
    order: &mut [OrderBy],
    select: &[SelectItem],
    shown: &[GroupedText],
    keys: &[GroupedText],
) {
    for OrderBy { expr, .. } in order {
        let item = match expr {
            Expr::Item(place) => select.get(place.saturating_sub(1)),
            Expr::Field(name) => select.iter().find(|item| {
                item.alias.as_ref().is_some_and(|alias| alias.eq_ignore_ascii_case(name))
            }),
            _ => None,
        };
        let text = item.and_then(|item| shown.iter().find(|text| least(&text.text) == item.expr));
        match text {
            Some(GroupedText { key, .. }) => expr.clone_from(key),
            None if item.is_none() => replace_texts(expr, keys),
            None => {}
        }
    }
}

/// What a group of texts that are equal but not the same shows: the least by its characters, which
/// does not depend on the order of rows.
fn least(text: &Expr) -> Expr {
    Expr::aggregate(Aggregate::Min, text.clone())
}

/// Replaces texts by whose keys rows are grouped by those that groups show, outside of aggregates.
fn replace_texts(expr: &mut Expr, keys: &[GroupedText]) {
    if keys.iter().any(|grouped| grouped.key == *expr) || matches!(expr, Expr::Aggregate { .. }) {
        return;
    }
    match keys.iter().find(|grouped| grouped.text == *expr) {
        Some(GroupedText { text, .. }) => *expr = least(text),
        None => expr.operands_mut().into_iter().for_each(|operand| replace_texts(operand, keys)),
    }
}
