//! What a JSON query reads: tables, queries in place of them, and how they are joined.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::JsonQuery;
use super::criteria::Criteria;
use super::member::{Place, array, object, refuse_others, text};
use crate::Result;
use crate::model::{Join, JoinKind, Relation};
use crate::relation::{Names, Scope};

/// A table, or a query in place of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonRelation {
    pub(super) table: String,
    query: Option<Box<JsonQuery>>,
    alias: Option<String>,
}

/// One more, joined to those before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonJoin {
    kind: JoinKind,
    relation: JsonRelation,
    on: Option<Json>,
    using: Vec<String>,
}

impl JsonRelation {
    /// What the members `table` and `as` say.
    pub(super) fn read(members: &Map<String, Json>, place: &Place<'_>) -> Result<Self> {
        let alias = place.optional_text_of(members, "as")?;
        let table = members.get("table").ok_or_else(|| {
            place.error("expected a member \"table\", the name of the table to ask")
        })?;
        let place = place.member("table");
        match table {
            Json::Object(_) if alias.is_none() => {
                Err(place.error("a query in place of a table needs a name beside it, in \"as\""))
            }
            Json::Object(_) => {
                let query = JsonQuery::within(table, &place)?;
                Ok(Self { table: String::new(), query: Some(Box::new(query)), alias })
            }
            table => Ok(Self { table: text(table, &place)?.to_owned(), query: None, alias }),
        }
    }

    pub(super) fn bind(&self, scope: &Scope<'_>) -> Result<Relation> {
        let query = self.query.as_ref().map(|query| query.bind_within(scope, None));
        let query = query.transpose()?.map(Box::new);
        Ok(Relation { table: self.table.clone(), query, alias: self.alias.clone() })
    }

    /// True for a table by its own name.
    pub(super) fn is_plain(&self) -> bool {
        self.query.is_none() && self.alias.is_none()
    }
}

impl JsonJoin {
    /// What the elements of the member `join` say.
    pub(super) fn read_all(members: &Map<String, Json>, place: &Place<'_>) -> Result<Vec<Self>> {
        let place = place.member("join");
        let items = match members.get("join") {
            None => &[],
            Some(one @ Json::Object(_)) => std::slice::from_ref(one),
            Some(json) => array(json, &place)?,
        };
        let read = |(i, json)| Self::read(json, &place.item(i));
        items.iter().enumerate().map(read).collect()
    }

    fn read(json: &Json, place: &Place<'_>) -> Result<Self> {
        let members = object(json, place)?;
        refuse_others(members, &["table", "as", "kind", "on", "using"], place)?;
        let kind = match place.optional_text_of(members, "kind")?.as_deref() {
            None | Some("inner" | "cross") => JoinKind::Inner,
            Some("left") => JoinKind::Left,
            Some("semi") => JoinKind::Semi,
            Some("anti") => JoinKind::Anti,
            Some(_) => {
                let found = members.get("kind").unwrap_or(&Json::Null);
                let kinds = "\"inner\", \"left\", \"semi\", \"anti\" or \"cross\"";
                return Err(place.member("kind").expected(kinds, found));
            }
        };
        let using = match members.get("using") {
            None => Vec::new(),
            Some(json) => {
                let place = place.member("using");
                let names = array(json, &place)?.iter().enumerate();
                names
                    .map(|(i, name)| text(name, &place.item(i)).map(str::to_owned))
                    .collect::<Result<_>>()?
            }
        };
        let on = members.get("on").cloned();
        let is_cross = members.get("kind").and_then(Json::as_str) == Some("cross");
        if is_cross != (on.is_none() && using.is_empty()) {
            let what = "\"on\" or \"using\", and neither of them for \"kind\": \"cross\"";
            return Err(place.expected(what, json));
        }
        let relation = JsonRelation::read(members, place)?;
        Ok(Self { kind, relation, on, using })
    }

    /// The join, before its condition is read.
    pub(super) fn bind(&self, scope: &Scope<'_>) -> Result<Join> {
        let relation = self.relation.bind(scope)?;
        Ok(Join { kind: self.kind, relation, on: None, using: self.using.clone() })
    }

    /// Its condition, as of join number `i`, of table number `member`.
    pub(super) fn bind_on(
        &self,
        i: usize,
        member: usize,
        names: &Names,
        scope: &Scope<'_>,
    ) -> Result<Option<crate::model::Expr>> {
        let Some(on) = &self.on else { return Ok(None) };
        let (root, schema) = (Place::root(), names.schema());
        let join = root.member("join");
        let place = join.item(i);
        let criteria = Criteria::of_rows(names, &schema, scope).reading(member);
        criteria.all(on, &place.member("on"))
    }
}

/// Adds the tables that a query and those within it name.
pub(super) fn collect_tables(json: &Json, names: &mut BTreeSet<String>) {
    match json {
        Json::Object(members) => {
            if let Some(Json::String(table)) = members.get("table") {
                names.insert(table.clone());
            }
            members.values().for_each(|json| collect_tables(json, names));
        }
        Json::Array(items) => items.iter().for_each(|json| collect_tables(json, names)),
        _ => {}
    }
}
