//! How the rows of a JSON query are grouped: `group_by`, `rollup`, `cube` and `grouping_sets`.

use esker_format::json::{Json, Kind, Members};

use super::JsonQuery;
use super::member::{Place, array, refuse_others, text};
use crate::model::{Expr, GroupingElement, SelectItem};
use crate::{Query, Result};

/// The members that group.
const MEMBERS: [&str; 4] = ["group_by", "rollup", "cube", "grouping_sets"];

impl JsonQuery {
    /// Gives a query its groups. False where no member says so.
    pub(super) fn group(&self, query: &mut Query) -> Result<bool> {
        let field = |json: Json<'_>, place: &Place<'_>| text(json, place).map(Expr::field);
        let keys = self.each("group_by", field)?.into_iter();
        let mut elements: Vec<_> = keys.map(|key| GroupingElement::Set(vec![key])).collect();
        if self.member("rollup").is_some() {
            elements.push(GroupingElement::Rollup(self.each("rollup", some_fields)?));
        }
        if self.member("cube").is_some() {
            elements.push(GroupingElement::Cube(self.each("cube", some_fields)?));
        }
        if let Some(json) = self.member("grouping_sets") {
            let sets = self.each("grouping_sets", fields)?;
            if sets.is_empty() {
                let place = Place::root();
                return Err(place.member("grouping_sets").expected("at least one set", json));
            }
            let sets = sets.into_iter().map(GroupingElement::Set).collect();
            elements.push(GroupingElement::Sets(sets));
        }
        let is_grouped = !elements.is_empty();
        query.group_by_sets(elements).map_err(|e| {
            let said = MEMBERS.into_iter().filter(|name| self.member(name).is_some());
            e.at(said.collect::<Vec<_>>().join(", "))
        })?;
        Ok(is_grouped)
    }
}

/// One field, or several.
fn fields(json: Json<'_>, place: &Place<'_>) -> Result<Vec<Expr>> {
    if let Kind::String(name) = json.kind() {
        return Ok(vec![Expr::field(name)]);
    }
    let items = array(json, place)?.iter().enumerate();
    items.map(|(i, json)| text(json, &place.item(i)).map(Expr::field)).collect()
}

fn some_fields(json: Json<'_>, place: &Place<'_>) -> Result<Vec<Expr>> {
    match fields(json, place)? {
        fields if fields.is_empty() => Err(place.expected("at least one field", json)),
        fields => Ok(fields),
    }
}

/// The element of `aggregates` that tells grouping sets apart.
pub(super) fn grouping(members: Members<'_>, place: &Place<'_>) -> Result<SelectItem> {
    refuse_others(members, &["fn", "fields", "as"], place)?;
    let operands = match members.get("fields") {
        Some(json) => some_fields(json, &place.member("fields"))?,
        None => Vec::new(),
    };
    let alias = place.optional_text_of(members, "as")?;
    let alias = alias.unwrap_or_else(|| "grouping".to_owned());
    Ok(SelectItem { expr: Expr::Grouping(operands), alias: Some(alias) })
}
