//! Queries as JSON, the form that programs write: see `docs/reference/query-json.md`.
//!
//! ```
//! use esker_format::{DataType, Schema};
//! use esker_query::json::JsonQuery;
//!
//! let schema = Schema::builder().field("name", DataType::Text).field("age", DataType::I32);
//! let query = JsonQuery::parse(
//!     r#"{"table": "people", "where": {"field": "age", "op": "gte", "value": 30}, "limit": 10}"#,
//! )?;
//! let query = query.bind(&schema.build()?)?;
//! assert_eq!(query.to_string(), "SELECT * FROM people WHERE age >= 30 LIMIT 10");
//! # Ok::<(), esker_query::Error>(())
//! ```

mod criteria;
mod member;
#[cfg(test)]
mod tests;
mod value;

use std::time::Duration;

use esker_format::Schema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::model::{Aggregate, Expr, OrderBy, Query, RowCount, SelectItem};
use crate::{Error, Result};
use criteria::Criteria;
use member::{Place, array, object, refuse_others, text};

/// The most arrays and objects in each other: a group of conditions takes two.
const NESTING_MAX: usize = 2 * criteria::DEPTH_MAX + 8;

const MEMBERS: [&str; 16] = [
    "table",
    "select",
    "distinct",
    "where",
    "group_by",
    "aggregates",
    "having",
    "order",
    "limit",
    "offset",
    "explain",
    "timeout_ms",
    "memory_limit_bytes",
    "cursor",
    "total",
    "snapshot",
];

/// A query as JSON, read but not yet bound to the schema of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonQuery {
    table: String,
    members: Map<String, Json>,
}

impl JsonQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// `InvalidQuery` when it is no JSON object with a table, or has a member that means nothing.
    pub fn parse(text: &str) -> Result<Self> {
        let json = read(text)?;
        let place = Place::root();
        let members = object(&json, &place)?.clone();
        refuse_others(&members, &MEMBERS, &place)?;
        let table = members.get("table").ok_or_else(|| {
            Error::invalid("expected a member \"table\", the name of the table to ask")
        })?;
        let table = self::text(table, &place.member("table"))?.to_owned();
        Ok(Self { table, members })
    }

    /// The table it asks.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Whether it asks for the steps, not the rows.
    ///
    /// # Errors
    /// `InvalidQuery` when the member is neither true nor false.
    pub fn is_explain(&self) -> Result<bool> {
        self.flag("explain")
    }

    /// How long it may take, where it says so.
    ///
    /// # Errors
    /// `InvalidQuery` when that is no whole number.
    pub fn timeout(&self) -> Result<Option<Duration>> {
        Ok(self.number("timeout_ms", "a number of milliseconds")?.map(Duration::from_millis))
    }

    /// How much memory it may have at once, where it says so.
    ///
    /// # Errors
    /// `InvalidQuery` when that is no whole number.
    pub fn memory_limit_bytes(&self) -> Result<Option<usize>> {
        let bytes = self.number("memory_limit_bytes", "a number of bytes")?;
        Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
    }

    /// Whether it asks for a page, with cursors to others.
    #[must_use]
    pub fn is_page(&self) -> bool {
        ["cursor", "total", "snapshot"].iter().any(|name| self.members.contains_key(*name))
    }

    /// Where the page begins; `None` for the first.
    ///
    /// # Errors
    /// `InvalidQuery` when that is no text.
    pub fn cursor(&self) -> Result<Option<String>> {
        match self.members.get("cursor") {
            None | Some(Json::Null) => Ok(None),
            Some(json) => {
                text(json, &Place::root().member("cursor")).map(|cursor| Some(cursor.to_owned()))
            }
        }
    }

    /// Whether all rows are to be counted beside the page.
    ///
    /// # Errors
    /// `InvalidQuery` when the member is neither true nor false.
    pub fn is_total(&self) -> Result<bool> {
        self.flag("total")
    }

    /// Whether all pages are to be of one snapshot.
    ///
    /// # Errors
    /// `InvalidQuery` when the member is neither true nor false.
    pub fn is_snapshot(&self) -> Result<bool> {
        self.flag("snapshot")
    }

    /// The query on a table of a schema. What it is to answer is checked when it runs.
    ///
    /// # Errors
    /// `InvalidQuery` with the place and what was expected there.
    pub fn bind(&self, schema: &Schema) -> Result<Query> {
        let mut query = Query::table(&self.table);
        query.distinct = self.flag("distinct")?;
        query.limit = self.number("limit", "a number of rows")?.map(RowCount::Number);
        query.offset = RowCount::Number(self.number("offset", "a number of rows")?.unwrap_or(0));
        let root = Place::root();
        for (i, json) in self.items("group_by")?.iter().enumerate() {
            let field = text(json, &root.member("group_by").item(i))?;
            query.group_by.push(Expr::field(field));
        }
        let aggregates = self.items("aggregates")?;
        let select = self.items("select")?;
        if !select.is_empty() && (!aggregates.is_empty() || !query.group_by.is_empty()) {
            return Err(Error::invalid(
                "select: an answer by groups has the fields of \"group_by\" and the \"aggregates\"",
            ));
        }
        for (i, json) in select.iter().enumerate() {
            query.select.push(selected(json, &root.member("select").item(i))?);
        }
        let keys = query.group_by.clone().into_iter();
        query.select.extend(keys.map(|expr| SelectItem { expr, alias: None }));
        for (i, json) in aggregates.iter().enumerate() {
            query.select.push(aggregate(json, &root.member("aggregates").item(i))?);
        }
        query.filter = self.criteria("where", Criteria::of_rows(schema))?;
        query.having = self.criteria("having", Criteria::of_groups(schema, &query.select))?;
        if query.having.is_some() && aggregates.is_empty() && query.group_by.is_empty() {
            return Err(Error::invalid(
                "having: expected \"group_by\" or \"aggregates\" beside it",
            ));
        }
        for (i, json) in self.items("order")?.iter().enumerate() {
            query.order_by.push(order(json, &root.member("order").item(i))?);
        }
        Ok(query)
    }

    fn criteria(&self, name: &str, criteria: Criteria<'_>) -> Result<Option<Expr>> {
        let json = self.members.get(name);
        json.map(|json| criteria.all(json, &Place::root().member(name)))
            .transpose()
            .map(Option::flatten)
    }

    fn items(&self, name: &str) -> Result<&[Json]> {
        match self.members.get(name) {
            None => Ok(&[]),
            // One alone need not stand in an array.
            Some(one @ (Json::String(_) | Json::Object(_))) => Ok(std::slice::from_ref(one)),
            Some(json) => array(json, &Place::root().member(name)),
        }
    }

    fn flag(&self, name: &str) -> Result<bool> {
        match self.members.get(name) {
            None => Ok(false),
            Some(Json::Bool(flag)) => Ok(*flag),
            Some(other) => Err(Place::root().member(name).expected("true or false", other)),
        }
    }

    fn number(&self, name: &str, what: &str) -> Result<Option<u64>> {
        match self.members.get(name) {
            None => Ok(None),
            Some(json) => match json.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(Place::root().member(name).expected(what, json)),
            },
        }
    }
}

/// JSON of any shape that is not too deep.
fn read(text: &str) -> Result<Json> {
    let wrong = |e| Error::invalid(format!("expected a query as JSON: {e}"));
    let depth = nesting(text);
    if depth > NESTING_MAX {
        let message = format!("a query nests too deep: {depth} levels, at most {NESTING_MAX}");
        return Err(Error::invalid(message));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let json = Json::deserialize(&mut reader).map_err(wrong)?;
    reader.end().map_err(wrong)?;
    Ok(json)
}

/// How many arrays and objects lie in each other at the most.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A field to show, with or without another name.
fn selected(json: &Json, place: &Place<'_>) -> Result<SelectItem> {
    if let Json::String(field) = json {
        return Ok(SelectItem { expr: Expr::field(field), alias: None });
    }
    let members = object(json, place)?;
    refuse_others(members, &["field", "as"], place)?;
    let field = place.text_of(members, "field")?;
    Ok(SelectItem { expr: Expr::field(field), alias: place.optional_text_of(members, "as")? })
}

fn aggregate(json: &Json, place: &Place<'_>) -> Result<SelectItem> {
    let members = object(json, place)?;
    refuse_others(members, &["fn", "field", "distinct", "as", "quantile"], place)?;
    let name = place.text_of(members, "fn")?;
    let function = Aggregate::from_name(name).ok_or_else(|| {
        let names = Aggregate::ALL.into_iter().map(Aggregate::name);
        let near = esker_format::suggest::near_or_all(name, "aggregates", names);
        place.member("fn").error(format!("unknown aggregate {name:?}{near}"))
    })?;
    let field = place.optional_text_of(members, "field")?;
    let function = match members.get("quantile") {
        None => function,
        Some(part) => match (function, part.as_f64().and_then(Aggregate::quantile)) {
            (Aggregate::Quantile { .. }, Some(quantile)) => quantile,
            _ => return Err(place.member("quantile").expected("a part from 0 to 1", part)),
        },
    };
    let distinct = match members.get("distinct") {
        None => false,
        Some(Json::Bool(distinct)) => *distinct,
        Some(other) => return Err(place.member("distinct").expected("true or false", other)),
    };
    let alias = place.optional_text_of(members, "as")?.unwrap_or_else(|| match &field {
        Some(field) => format!("{name}_{field}"),
        None => name.to_owned(),
    });
    let operand = field.map(|field| Box::new(Expr::field(field)));
    let expr = Expr::Aggregate { function, operand, distinct };
    Ok(SelectItem { expr, alias: Some(alias) })
}

fn order(json: &Json, place: &Place<'_>) -> Result<OrderBy> {
    if let Json::String(field) = json {
        return Ok(OrderBy { expr: Expr::field(field), descending: false, nulls_first: None });
    }
    let members = object(json, place)?;
    refuse_others(members, &["field", "descending", "nulls"], place)?;
    let descending = match members.get("descending") {
        None => false,
        Some(Json::Bool(descending)) => *descending,
        Some(other) => return Err(place.member("descending").expected("true or false", other)),
    };
    let nulls_first = match members.get("nulls") {
        None => None,
        Some(Json::String(place)) if place == "first" => Some(true),
        Some(Json::String(place)) if place == "last" => Some(false),
        Some(other) => return Err(place.member("nulls").expected("\"first\" or \"last\"", other)),
    };
    Ok(OrderBy { expr: Expr::field(place.text_of(members, "field")?), descending, nulls_first })
}
