//! Conditions: leaves of a field, an operator and its values, and groups of them.

use std::collections::BTreeSet;

use esker_format::json::{Items, Json, Kind, Members};
use esker_format::{DataType, Schema};

use super::member::{Place, array, object, refuse_others, text};
use super::{JsonQuery, collation, value};
use crate::bind::bind_condition;
use crate::logical::{Names, Scope};
use crate::model::{Aggregate, Collation, Expr, Operator, SelectItem, WindowFunction};
use crate::operator::{FilterOperator, Operands};
use crate::{Query, Result};

/// How deep groups may nest.
pub(super) const DEPTH_MAX: usize = 64;

/// What the names in conditions mean.
#[derive(Clone, Copy)]
pub(super) struct Criteria<'a> {
    names: &'a Names,
    /// All fields, by their full names.
    schema: &'a Schema,
    scope: &'a Scope<'a>,
    /// A table whose fields can be read here alone.
    also: Option<usize>,
    /// What a condition on groups may name as well.
    select: Option<&'a [SelectItem]>,
}

impl<'a> Criteria<'a> {
    pub(super) fn of_rows(names: &'a Names, schema: &'a Schema, scope: &'a Scope<'a>) -> Self {
        Self { names, schema, scope, also: None, select: None }
    }

    /// The same for groups of the rows.
    pub(super) fn of_groups(self, select: &'a [SelectItem]) -> Self {
        Self { select: Some(select), ..self }
    }

    /// The same where the fields of a table can be read, though they are not shown.
    pub(super) fn reading(self, member: usize) -> Self {
        Self { also: Some(member), ..self }
    }

    /// All conditions of an array, or one alone; none is no condition.
    pub(super) fn all(self, json: Json<'_>, place: &Place<'_>) -> Result<Option<Expr>> {
        let Kind::Array(items) = json.kind() else {
            return self.one(json, place).map(Some);
        };
        let conditions = self.each(items, place)?;
        Ok((!conditions.is_empty()).then(|| joined(Operator::And, conditions)))
    }

    fn each(self, items: Items<'_>, place: &Place<'_>) -> Result<Vec<Expr>> {
        items.iter().enumerate().map(|(i, json)| self.one(json, &place.item(i))).collect()
    }

    fn one(self, json: Json<'_>, place: &Place<'_>) -> Result<Expr> {
        if place.depth() > DEPTH_MAX {
            return Err(
                place.error(format!("conditions nest too deep: at most {DEPTH_MAX} levels"))
            );
        }
        let members = object(json, place)?;
        for (name, operator) in [("and", Operator::And), ("or", Operator::Or)] {
            let Some(group) = members.get(name) else {
                continue;
            };
            refuse_others(members, &[name], place)?;
            let place = place.member(name);
            let conditions = self.each(array(group, &place)?, &place)?;
            if conditions.is_empty() {
                return Err(place.expected("at least one condition", group));
            }
            return Ok(joined(operator, conditions));
        }
        if let Some(negated) = members.get("not") {
            refuse_others(members, &["not"], place)?;
            let place = place.member("not");
            return match self.all(negated, &place)? {
                Some(condition) => Ok(condition.negated()),
                None => Err(place.expected("at least one condition", negated)),
            };
        }
        if let Some(query) = members.get("exists") {
            refuse_others(members, &["exists"], place)?;
            return self.query(query, &place.member("exists")).map(Expr::has_rows);
        }
        self.leaf(members, place)
    }

    /// A query within a condition.
    fn query(self, json: Json<'_>, place: &Place<'_>) -> Result<Query> {
        let query = JsonQuery::within(json, place)?;
        query.bind_within(self.scope, Some(self.names)).map_err(|e| e.at(place))
    }

    /// A field beside what a query answers.
    fn beside_query(
        self,
        op: &FilterOperator,
        members: Members<'_>,
        json: Json<'_>,
        place: &Place<'_>,
    ) -> Result<Expr> {
        if members.get("collate").is_some() {
            return Err(place.member("collate").error("expected values beside it, found a query"));
        }
        refuse_others(members, &["field", "op", "query"], place)?;
        let field = Expr::field(place.text_of(members, "field")?);
        let query = self.query(json, &place.member("query"))?;
        match op.name {
            "in" => Ok(field.among(query)),
            "not_in" => Ok(field.among(query).negated()),
            _ if op.operands == Operands::One && !op.takes_lengths() && !op.takes_escape() => {
                op.apply(field, vec![Expr::value_of(query)]).map_err(|e| e.at(place))
            }
            name => Err(place.error(format!("{name} takes no query"))),
        }
    }

    fn leaf(self, members: Members<'_>, place: &Place<'_>) -> Result<Expr> {
        let known = ["field", "op", "value", "value2", "escape", "collate", "query"];
        refuse_others(members, &known, place)?;
        let field = place.text_of(members, "field")?;
        let data_type = self.type_of(field).map_err(|e| e.at(place.member("field")))?;
        let op = FilterOperator::expect(place.text_of(members, "op")?)
            .map_err(|e| e.at(place.member("op")))?;
        if let Some(data_type) = data_type
            && !op.subjects.has(data_type)
        {
            let (name, subjects) = (op.name, op.subjects.title());
            return Err(place.error(format!("{name} is for {subjects}; {field:?} is {data_type}")));
        }
        if let Some(query) = members.get("query") {
            return self.beside_query(op, members, query, place);
        }
        let operands = self.operands(op, data_type, members, place)?;
        let by = collation(members, place)?;
        if by != Collation::Binary && !op.compares() {
            let (name, by) = (op.name, by.name());
            let message = format!("{name} is not by {by}: expected a comparison, in or between");
            return Err(place.member("collate").error(message));
        }
        let operands = operands.into_iter().map(|operand| operand.collated(by)).collect();
        let condition = op.apply(Expr::field(field).collated(by), operands);
        let condition = condition.map_err(|e| e.at(place))?;
        // Conditions on groups are checked with the whole query.
        if self.select.is_none() {
            let mut named = condition.clone();
            self.names.qualify(&mut named, self.also, &mut BTreeSet::new())?;
            bind_condition(&place.to_string(), &named, self.schema)?;
        }
        Ok(condition)
    }

    /// The type of a field; `None` when it depends on what stands beside it.
    fn type_of(self, name: &str) -> Result<Option<DataType>> {
        let aliased = |item: &&SelectItem| item.alias.as_deref() == Some(name);
        let item = self.select.and_then(|items| items.iter().find(aliased));
        match item {
            Some(item) => self.type_of_item(name, &item.expr),
            None => self.type_of_field(name),
        }
    }

    fn type_of_field(self, name: &str) -> Result<Option<DataType>> {
        match self.names.type_of(name, self.also)? {
            Some(data_type) => Ok(data_type),
            None => Err(self.unknown(name)),
        }
    }

    /// The type of what a select item of this name shows.
    fn type_of_item(self, name: &str, expr: &Expr) -> Result<Option<DataType>> {
        match expr {
            Expr::Field(field) => self.type_of_field(field),
            Expr::Grouping(_) => Ok(Some(DataType::I64)),
            Expr::Window(call) => match (call.function, call.operands.first()) {
                (WindowFunction::PercentRank | WindowFunction::CumeDist, _) => {
                    Ok(Some(DataType::F64))
                }
                (
                    WindowFunction::RowNumber
                    | WindowFunction::Rank
                    | WindowFunction::DenseRank
                    | WindowFunction::Ntile,
                    _,
                ) => Ok(Some(DataType::I64)),
                (_, Some(Expr::Field(name))) => self.type_of_field(name),
                (_, Some(operand)) => self.type_of_item(name, operand),
                (_, None) => Ok(None),
            },
            Expr::Aggregate { function, operand, .. } => match (function, operand.as_deref()) {
                (
                    Aggregate::Count
                    | Aggregate::CountIf
                    | Aggregate::ApproxCountDistinct
                    | Aggregate::RegrCount
                    | Aggregate::BitAnd
                    | Aggregate::BitOr
                    | Aggregate::BitXor,
                    _,
                ) => Ok(Some(DataType::I64)),
                (Aggregate::BoolAnd | Aggregate::BoolOr, _) => Ok(Some(DataType::Bool)),
                (Aggregate::StringAgg, _) => Ok(Some(DataType::Text)),
                (
                    Aggregate::Min
                    | Aggregate::Max
                    | Aggregate::First
                    | Aggregate::Last
                    | Aggregate::AnyValue
                    | Aggregate::ArgMin
                    | Aggregate::ArgMax
                    | Aggregate::Mode
                    | Aggregate::PercentileDisc { .. },
                    Some(Expr::Field(name)),
                ) => self.type_of(name),
                _ => Ok(Some(DataType::F64)),
            },
            _ => self.type_of_field(name),
        }
    }

    fn unknown(self, name: &str) -> crate::Error {
        let aliases = self.select.into_iter().flatten().filter_map(|item| item.alias.as_deref());
        let near = esker_format::suggest::did_you_mean(name, aliases);
        if near.is_empty() {
            return self.schema.unknown_field(name).into();
        }
        crate::Error::invalid(format!("unknown field {name:?}{near}"))
    }

    fn operands(
        self,
        op: &FilterOperator,
        data_type: Option<DataType>,
        members: Members<'_>,
        place: &Place<'_>,
    ) -> Result<Vec<Expr>> {
        let data_type = if op.takes_lengths() { Some(DataType::I64) } else { data_type };
        let (at, second_at) = (place.member("value"), place.member("value2"));
        let one = |json: Json<'_>, place: &Place<'_>| {
            value::read(json, data_type, place).map(Expr::Literal)
        };
        let (first, second) = (members.get("value"), members.get("value2"));
        let missing =
            || place.error(format!("{} takes {} in \"value\"", op.name, op.operands.expected()));
        if let Some(found) = second.filter(|_| op.operands != Operands::Two) {
            return Err(second_at.expected("nothing beside this operator", found));
        }
        let mut operands = match (op.operands, first) {
            (Operands::None, None) => Vec::new(),
            (Operands::None, Some(found)) => return Err(at.expected(op.operands.expected(), found)),
            (_, None) => return Err(missing()),
            (Operands::One, Some(json)) => vec![one(json, &at)?],
            (Operands::Field, Some(json)) => {
                let name = text(json, &at)?;
                self.type_of(name).map_err(|e| e.at(at))?;
                vec![Expr::field(name)]
            }
            (Operands::Many, Some(json)) => {
                let items = array(json, &at)?.iter().enumerate();
                items.map(|(i, json)| one(json, &at.item(i))).collect::<Result<_>>()?
            }
            (Operands::Two, Some(least)) => match (least.kind(), second) {
                (Kind::Array(both), None) => match (both.get(0), both.get(1), both.len()) {
                    (Some(least), Some(greatest), 2) => {
                        vec![one(least, &at.item(0))?, one(greatest, &at.item(1))?]
                    }
                    _ => return Err(at.expected(op.operands.expected(), least)),
                },
                (_, Some(greatest)) => vec![one(least, &at)?, one(greatest, &second_at)?],
                (_, None) => return Err(missing()),
            },
        };
        if let Some(escape) = members.get("escape") {
            let escape_at = place.member("escape");
            if !op.takes_escape() {
                return Err(escape_at.error(format!("{} takes no escape", op.name)));
            }
            operands.push(Expr::literal(text(escape, &escape_at)?));
        }
        Ok(operands)
    }
}

/// Several conditions as one.
fn joined(operator: Operator, mut conditions: Vec<Expr>) -> Expr {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => Expr::Apply(operator, conditions),
    }
}
