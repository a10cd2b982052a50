//! What a JSON query reads: tables, queries in place of them, and how they are joined.

use std::collections::BTreeSet;

use esker_format::json::{Json, Kind, Members};

use super::criteria::Criteria;
use super::member::{Place, array, object, refuse_others, text};
use super::{JsonQuery, call};
use crate::Result;
use crate::logical::{Names, Scope};
use crate::model::{Join, JoinKind, Relation, TableCall};

/// A table, or a query or the call of a function in place of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonRelation {
    pub(super) table: String,
    query: Option<Box<JsonQuery>>,
    call: Option<TableCall>,
    alias: Option<String>,
}

/// One more, joined to those before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonJoin {
    kind: JoinKind,
    relation: JsonRelation,
    /// The condition, a document.
    on: Option<Vec<u8>>,
    using: Vec<String>,
}

impl JsonRelation {
    /// What the members `table` and `as` say.
    pub(super) fn read(members: Members<'_>, place: &Place<'_>) -> Result<Self> {
        let alias = place.optional_text_of(members, "as")?;
        let table = members.get("table").ok_or_else(|| {
            place.error("expected a member \"table\", the name of the table to ask")
        })?;
        let place = place.member("table");
        if let Kind::Object(members) = table.kind()
            && let Some(call) = call::read(members, &place)?
        {
            return Ok(Self { table: String::new(), query: None, call: Some(call), alias });
        }
        match table.kind() {
            Kind::Object(_) if alias.is_none() => {
                Err(place.error("a query in place of a table needs a name beside it, in \"as\""))
            }
            Kind::Object(_) => {
                let query = JsonQuery::within(table, &place)?;
                Ok(Self { table: String::new(), query: Some(Box::new(query)), call: None, alias })
            }
            _ => {
                let table = text(table, &place)?.to_owned();
                Ok(Self { table, query: None, call: None, alias })
            }
        }
    }

    pub(super) fn bind(&self, scope: &Scope<'_>) -> Result<Relation> {
        let alias = self.alias.clone();
        if let Some(call) = &self.call {
            return Ok(Relation { alias, ..Relation::call(call.clone()) });
        }
        let query = self.query.as_ref().map(|query| query.bind_within(scope, None));
        let query = query.transpose()?.map(Box::new);
        Ok(Relation { table: self.table.clone(), query, alias, ..Relation::default() })
    }

    /// True for a table by its own name.
    pub(super) fn is_plain(&self) -> bool {
        self.query.is_none() && self.call.is_none() && self.alias.is_none()
    }
}

impl JsonJoin {
    /// What the elements of the member `join` say.
    pub(super) fn read_all(members: Members<'_>, place: &Place<'_>) -> Result<Vec<Self>> {
        let place = place.member("join");
        let items = match members.get("join") {
            None => Vec::new(),
            Some(one) if matches!(one.kind(), Kind::Object(_)) => vec![one],
            Some(json) => array(json, &place)?.iter().collect(),
        };
        let read = |(i, json)| Self::read(json, &place.item(i));
        items.into_iter().enumerate().map(read).collect()
    }

    fn read(json: Json<'_>, place: &Place<'_>) -> Result<Self> {
        let members = object(json, place)?;
        refuse_others(members, &["table", "as", "kind", "on", "using"], place)?;
        let kind_name = place.optional_text_of(members, "kind")?;
        let kind = match kind_name.as_deref() {
            None | Some("inner" | "cross") => JoinKind::Inner,
            Some("left") => JoinKind::Left,
            Some("right") => JoinKind::Right,
            Some("full") => JoinKind::Full,
            Some("semi") => JoinKind::Semi,
            Some("anti") => JoinKind::Anti,
            Some(_) => {
                let kinds =
                    "\"inner\", \"left\", \"right\", \"full\", \"semi\", \"anti\" or \"cross\"";
                let found = members.get("kind").unwrap_or(json);
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
        let on = members.get("on").map(Json::to_document);
        let is_cross = kind_name.as_deref() == Some("cross");
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
        Ok(Join { kind: self.kind, relation, using: self.using.clone(), ..Join::default() })
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
        criteria.all(Json::document(on), &place.member("on"))
    }
}

/// Adds the tables that a query and those within it name.
pub(super) fn collect_tables(json: Json<'_>, names: &mut BTreeSet<String>) {
    match json.kind() {
        Kind::Object(members) => {
            if let Some(Kind::String(table)) = members.get("table").map(Json::kind) {
                names.insert(table.to_owned());
            }
            members.iter().for_each(|(_, json)| collect_tables(json, names));
        }
        Kind::Array(items) => items.iter().for_each(|json| collect_tables(json, names)),
        _ => {}
    }
}
