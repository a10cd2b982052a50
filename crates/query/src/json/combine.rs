//! Queries of which the rows become one: `combine`.

use esker_format::json::{Json, Kind};

use super::member::{Place, flag, object, refuse_others};
use super::{JsonQuery, order};
use crate::logical::{Names, Scope};
use crate::model::SetOperator;
use crate::{Query, Result};

impl JsonQuery {
    /// A query with the others that are combined with it, from left to right; what orders and cuts
    /// it is of all of them.
    pub(super) fn combined(
        &self,
        mut query: Query,
        scope: &Scope<'_>,
        outer: Option<&Names>,
    ) -> Result<Query> {
        let Some(json) = self.member("combine") else { return Ok(query) };
        let branch = |json: Json<'_>, place: &Place<'_>| {
            let members = object(json, place)?;
            refuse_others(members, &["op", "all", "query"], place)?;
            let at = place.member("op");
            let operator = match members.get("op").map(|json| (json, json.kind())) {
                Some((_, Kind::String("union"))) => SetOperator::Union,
                Some((_, Kind::String("intersect"))) => SetOperator::Intersect,
                Some((_, Kind::String("except"))) => SetOperator::Except,
                Some((json, _)) => {
                    return Err(at.expected("\"union\", \"intersect\" or \"except\"", json));
                }
                None => return Err(place.error("expected a member \"op\"")),
            };
            let all = flag(members, "all", place)?;
            let at = place.member("query");
            let Some(json) = members.get("query") else {
                return Err(place.error("expected a member \"query\""));
            };
            let query = Self::within(json, &at)?;
            let query = query.bind_within(scope, outer).map_err(|e| e.at(at))?;
            Ok((operator, all, query))
        };
        let branches = self.each("combine", branch)?;
        if branches.is_empty() {
            return Err(Place::root().member("combine").expected("at least one query", json));
        }
        query.order_by = Vec::new();
        let (limit, offset) = (query.limit.take(), std::mem::take(&mut query.offset));
        for (operator, all, other) in branches {
            query = query.combined(operator, all, other);
        }
        query.order_by = self.each("order", order)?;
        Ok(Query { limit, offset, ..query })
    }
}
