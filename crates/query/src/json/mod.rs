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

mod call;
mod combine;
mod criteria;
mod grouping;
mod member;
mod relation;
#[cfg(test)]
mod tests;
mod value;
mod window;

use std::collections::BTreeSet;
use std::time::Duration;

use esker_format::Schema;
use esker_format::json::{Json, Kind, Members, parse_nested};

use crate::logical::{Names, Scope};
use crate::model::{Aggregate, Collation, Expr, OrderBy, RowCount, SelectItem};
use crate::{Error, Options, Query, Result, Semantics, Tables};
use criteria::Criteria;
use member::{Place, array, flag, object, refuse_others, text};
use relation::{JsonJoin, JsonRelation};
use window::Windows;

/// The most arrays and objects in each other: a group of conditions takes two.
const NESTING_MAX: usize = 2 * criteria::DEPTH_MAX + 8;

/// Members; those from `explain` on are of the statement, and none of a query within it.
const MEMBERS: [&str; 26] = [
    "table",
    "as",
    "join",
    "select",
    "distinct",
    "where",
    "group_by",
    "rollup",
    "cube",
    "grouping_sets",
    "aggregates",
    "having",
    "windows",
    "qualify",
    "combine",
    "order",
    "limit",
    "offset",
    "explain",
    "timeout_ms",
    "memory_limit_bytes",
    "nulls_order",
    "division_by_zero",
    "cursor",
    "total",
    "snapshot",
];

/// A query as JSON, read but not yet bound to the schemas of its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonQuery {
    relation: JsonRelation,
    joins: Vec<JsonJoin>,
    /// All of it.
    document: Vec<u8>,
}

impl JsonQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// `InvalidQuery` when it is no JSON object with a table, or has a member that means nothing.
    pub fn parse(text: &str) -> Result<Self> {
        Self::of(Json::document(&read(text)?), &MEMBERS, &Place::root())
    }

    /// A query within another.
    fn within(json: Json<'_>, place: &Place<'_>) -> Result<Self> {
        let own = MEMBERS.iter().position(|name| *name == "explain");
        Self::of(json, MEMBERS.split_at(own.unwrap_or_default()).0, place)
    }

    fn of(json: Json<'_>, known: &[&str], place: &Place<'_>) -> Result<Self> {
        let members = object(json, place)?;
        refuse_others(members, known, place)?;
        let relation = JsonRelation::read(members, place)?;
        let joins = JsonJoin::read_all(members, place)?;
        Ok(Self { relation, joins, document: json.to_document() })
    }

    fn member(&self, name: &str) -> Option<Json<'_>> {
        Json::document(&self.document).get(name)
    }

    /// The table it asks first; empty where it asks a query.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.relation.table
    }

    /// All tables that it names, also in queries within it.
    #[must_use]
    pub fn tables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        relation::collect_tables(Json::document(&self.document), &mut names);
        names
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

    /// Where NULLs go in its orders and what a division by zero is, as far as it says so.
    ///
    /// # Errors
    /// `InvalidQuery` when a value is not one of those that there are.
    pub fn semantics(&self) -> Result<Semantics> {
        let mut semantics = Semantics::default();
        for name in Semantics::SETTINGS {
            if let Some(json) = self.member(name) {
                let value = text(json, &Place::root().member(name))?;
                semantics = semantics.with(name, Some(value))?;
            }
        }
        Ok(semantics)
    }

    /// Whether it asks for a page, with cursors to others.
    #[must_use]
    pub fn is_page(&self) -> bool {
        ["cursor", "total", "snapshot"].iter().any(|name| self.member(name).is_some())
    }

    /// Where the page begins; `None` for the first.
    ///
    /// # Errors
    /// `InvalidQuery` when that is no text.
    pub fn cursor(&self) -> Result<Option<String>> {
        match self.member("cursor") {
            Some(json) if !matches!(json.kind(), Kind::Null) => {
                text(json, &Place::root().member("cursor")).map(|cursor| Some(cursor.to_owned()))
            }
            _ => Ok(None),
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

    /// The query on one table of a schema. What it is to answer is checked when it runs.
    ///
    /// # Errors
    /// `InvalidQuery` with the place and what was expected there, and for a query of several
    /// tables.
    pub fn bind(&self, schema: &Schema) -> Result<Query> {
        let is_combined = self.member("combine").is_some();
        if !self.joins.is_empty() || !self.relation.is_plain() || is_combined {
            return Err(Error::invalid("expected a query of one table, found several"));
        }
        let names = Names::new(vec![(self.table().to_owned(), schema.clone(), true)])?;
        self.bind_named(Query::table(self.table()), &names, &Scope::none())
    }

    /// The query on any tables. What it is to answer is checked when it runs.
    ///
    /// # Errors
    /// `InvalidQuery` with the place and what was expected there.
    pub fn bind_on(&self, tables: &dyn Tables, options: &Options) -> Result<Query> {
        self.bind_within(&Scope::of(tables, options), None)
    }

    /// The query within another, whose names it may use.
    fn bind_within(&self, scope: &Scope<'_>, outer: Option<&Names>) -> Result<Query> {
        let mut query = Query::from(self.relation.bind(scope)?);
        let joins = self.joins.iter().map(|join| join.bind(scope));
        query.joins = joins.collect::<Result<_>>()?;
        let names = scope.names(&query)?;
        let first = outer.map_or(0, Names::len);
        let names = outer.map_or_else(|| names.clone(), |outer| names.within(outer));
        for (i, join) in self.joins.iter().enumerate() {
            let on = join.bind_on(i, first + i + 1, &names, scope)?;
            query.joins.get_mut(i).into_iter().for_each(|join| join.on.clone_from(&on));
        }
        let query = self.bind_named(query, &names, scope)?;
        self.combined(query, scope, outer)
    }

    /// The members of a query of which it is known what it reads.
    fn bind_named(&self, mut query: Query, names: &Names, scope: &Scope<'_>) -> Result<Query> {
        query.distinct = self.flag("distinct")?;
        query.limit = self.number("limit", "a number of rows")?.map(RowCount::Number);
        query.offset = RowCount::Number(self.number("offset", "a number of rows")?.unwrap_or(0));
        let has_keys = self.group(&mut query)?;
        let aggregates = self.each("aggregates", aggregate)?;
        query.select = self.each("select", selected)?;
        let is_grouped = has_keys || !aggregates.is_empty();
        if !query.select.is_empty() && is_grouped {
            return Err(Error::invalid(
                "select: an answer by groups has the fields of \"group_by\" and the \"aggregates\"",
            ));
        }
        let keys = query.group_by.clone().into_iter();
        query.select.extend(keys.map(|expr| SelectItem { expr, alias: None }));
        query.select.extend(aggregates);
        let schema = names.schema();
        let rows = Criteria::of_rows(names, &schema, scope);
        query.filter = self.criteria("where", rows)?;
        query.having = self.criteria("having", rows.of_groups(&query.select))?;
        if query.having.is_some() && !is_grouped {
            return Err(Error::invalid(
                "having: expected \"group_by\" or \"aggregates\" beside it",
            ));
        }
        let groups = if is_grouped { query.select.clone() } else { Vec::new() };
        let windows = Windows { names, groups: &groups };
        let windows = self.each("windows", |json, place| windows.read(json, place))?;
        if !windows.is_empty() && query.select.is_empty() {
            let expr = Expr::AllFields(String::new());
            query.select.push(SelectItem { expr, alias: None });
        }
        query.select.extend(windows);
        query.qualify = self.criteria("qualify", rows.of_groups(&query.select))?;
        if query.qualify.is_some() && !query.has_windows() {
            return Err(Error::invalid("qualify: expected \"windows\" beside it"));
        }
        query.order_by = self.each("order", order)?;
        Ok(query)
    }

    fn criteria(&self, name: &str, criteria: Criteria<'_>) -> Result<Option<Expr>> {
        let json = self.member(name);
        json.map(|json| criteria.all(json, &Place::root().member(name)))
            .transpose()
            .map(Option::flatten)
    }

    /// What is read of each item of a member.
    fn each<T>(
        &self,
        name: &str,
        read: impl Fn(Json<'_>, &Place<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (root, member) = (Place::root(), self.member(name));
        let place = root.member(name);
        let Some(json) = member else {
            return Ok(Vec::new());
        };
        let items: Vec<_> = match json.kind() {
            // One alone need not be in an array.
            Kind::String(_) | Kind::Object(_) => vec![json],
            _ => array(json, &place)?.iter().collect(),
        };
        items.into_iter().enumerate().map(|(i, json)| read(json, &place.item(i))).collect()
    }

    fn flag(&self, name: &str) -> Result<bool> {
        flag(object(Json::document(&self.document), &Place::root())?, name, &Place::root())
    }

    fn number(&self, name: &str, what: &str) -> Result<Option<u64>> {
        let Some(json) = self.member(name) else {
            return Ok(None);
        };
        let number = match json.kind() {
            Kind::Number(written) => written.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| Place::root().member(name).expected(what, json))
    }
}

/// JSON of any shape that is not too deep, as a document.
fn read(text: &str) -> Result<Vec<u8>> {
    parse_nested(text, NESTING_MAX).map_err(|e| {
        let message = e.to_string();
        let reason = message.strip_prefix("expected json: ").unwrap_or(&message);
        Error::invalid(format!("expected a query as JSON: {reason}"))
    })
}

/// A field to show, with or without another name.
fn selected(json: Json<'_>, place: &Place<'_>) -> Result<SelectItem> {
    if let Kind::String(field) = json.kind() {
        let all = field.strip_suffix(".*").or((field == "*").then_some(""));
        let expr = all.map_or_else(|| Expr::field(field), |t| Expr::AllFields(t.to_owned()));
        return Ok(SelectItem { expr, alias: None });
    }
    let members = object(json, place)?;
    refuse_others(members, &["field", "as"], place)?;
    let field = place.text_of(members, "field")?;
    Ok(SelectItem { expr: Expr::field(field), alias: place.optional_text_of(members, "as")? })
}

fn aggregate(json: Json<'_>, place: &Place<'_>) -> Result<SelectItem> {
    let members = object(json, place)?;
    match place.text_of(members, "fn")? {
        "grouping" | "grouping_id" => grouping::grouping(members, place),
        _ => aggregate_of(members, members.get("order"), &["order"], place),
    }
}

/// An aggregate, whose rows have an order; beside its own members there are others.
fn aggregate_of(
    members: Members<'_>,
    in_order: Option<Json<'_>>,
    beside: &[&str],
    place: &Place<'_>,
) -> Result<SelectItem> {
    let own = ["fn", "field", "distinct", "as", "quantile"];
    let known: Vec<&str> = own.iter().chain(beside).copied().collect();
    refuse_others(members, &known, place)?;
    let name = place.text_of(members, "fn")?;
    let function = aggregate_function(name, members, place)?;
    let field = place.optional_text_of(members, "field")?;
    let distinct = flag(members, "distinct", place)?;
    let alias = place.optional_text_of(members, "as")?.unwrap_or_else(|| match &field {
        Some(field) => format!("{name}_{field}"),
        None => name.to_owned(),
    });
    let operand = field.map(|field| Box::new(Expr::field(field)));
    let order = match in_order {
        None => Vec::new(),
        Some(json) => {
            let Kind::Array(keys) = json.kind() else {
                return Err(place.member("order").expected("a list", json));
            };
            let keys = keys.iter().enumerate();
            keys.map(|(i, key)| order(key, &place.member("order").item(i)))
                .collect::<Result<_>>()?
        }
    };
    let expr = Expr::Aggregate { function, operand, distinct, order };
    Ok(SelectItem { expr, alias: Some(alias) })
}

/// The aggregate of a name; a quantile has the part beside it, and the median has none.
fn aggregate_function(name: &str, members: Members<'_>, place: &Place<'_>) -> Result<Aggregate> {
    let function = Aggregate::from_name(name).ok_or_else(|| {
        let names = Aggregate::ALL.into_iter().map(Aggregate::name);
        let near = esker_format::suggest::near_or_all(name, "aggregates", names);
        place.member("fn").error(format!("unknown aggregate {name:?}{near}"))
    })?;
    let has_part =
        matches!(function, Aggregate::Quantile { .. } | Aggregate::PercentileDisc { .. });
    let takes_part = has_part && !name.eq_ignore_ascii_case("median");
    match members.get("quantile") {
        None if takes_part => Err(place.error(format!(
            "{name} takes the part of the values that lie below it, from 0 to 1, in \"quantile\""
        ))),
        None => Ok(function),
        Some(json) if !takes_part => {
            Err(place.member("quantile").expected("nothing beside this aggregate", json))
        }
        Some(json) => {
            let part = match json.kind() {
                Kind::Number(written) => written.parse().ok().and_then(|p| function.with_part(p)),
                _ => None,
            };
            part.ok_or_else(|| place.member("quantile").expected("a part from 0 to 1", json))
        }
    }
}

fn order(json: Json<'_>, place: &Place<'_>) -> Result<OrderBy> {
    if let Kind::String(field) = json.kind() {
        return Ok(OrderBy { expr: Expr::field(field), descending: false, nulls_first: None });
    }
    let members = object(json, place)?;
    refuse_others(members, &["field", "collate", "descending", "nulls"], place)?;
    let descending = flag(members, "descending", place)?;
    let nulls_first = match members.get("nulls") {
        None => None,
        Some(json) => match json.kind() {
            Kind::String("first") => Some(true),
            Kind::String("last") => Some(false),
            _ => {
                return Err(place.member("nulls").expected("\"first\" or \"last\"", json));
            }
        },
    };
    let by = collation(members, place)?;
    let expr = Expr::field(place.text_of(members, "field")?).collated(by);
    Ok(OrderBy { expr, descending, nulls_first })
}

/// How texts compare; by their characters where nothing says it.
fn collation(members: Members<'_>, place: &Place<'_>) -> Result<Collation> {
    let Some(name) = members.get("collate") else {
        return Ok(Collation::Binary);
    };
    let place = place.member("collate");
    Collation::expect(text(name, &place)?).map_err(|e| e.at(place))
}
