//! Functions that make rows, in place of tables:
//! `{"function": "generate_series", "operands": […]}`.

use esker_format::Value;
use esker_format::json::{Json, Kind, Members};
use esker_format::suggest::near_or_all;

use super::member::{Place, array, flag, object, refuse_others};
use super::value;
use crate::Result;
use crate::model::{Expr, TableCall, TableFunction};

/// The call that an object in place of a table says; `None` for a query.
pub(super) fn read(members: Members<'_>, place: &Place<'_>) -> Result<Option<TableCall>> {
    if members.get("function").is_none() {
        return Ok(None);
    }
    refuse_others(members, &["function", "operands", "ordinality"], place)?;
    let name = place.text_of(members, "function")?;
    let function = TableFunction::from_name(name).ok_or_else(|| {
        let known = TableFunction::ALL.into_iter().map(TableFunction::name);
        let near = near_or_all(name, "functions", known);
        place.member("function").error(format!("no function {name:?} makes rows{near}"))
    })?;
    let at = place.member("operands");
    let mut operands = Vec::new();
    let written = members.get("operands").map(|json| array(json, &at)).transpose()?;
    for (i, json) in written.into_iter().flat_map(|items| items.iter()).enumerate() {
        operand(json, &at.item(i), &mut operands)?;
    }
    let ordinality = flag(members, "ordinality", place)?;
    Ok(Some(TableCall { ordinality, ..TableCall::new(function, operands) }))
}

/// Adds an operand: a value, a field of what stands before, or an interval, which is two.
fn operand(json: Json<'_>, place: &Place<'_>, operands: &mut Vec<Expr>) -> Result<()> {
    match json.kind() {
        Kind::Null => operands.push(Expr::literal(Value::Null)),
        Kind::Object(_) => {
            let members = object(json, place)?;
            if members.get("field").is_some() {
                refuse_others(members, &["field"], place)?;
                operands.push(Expr::field(place.text_of(members, "field")?));
                return Ok(());
            }
            refuse_others(members, &["months", "microseconds"], place)?;
            for name in ["months", "microseconds"] {
                let number = match members.get(name).map(|json| (json, json.kind())) {
                    None => 0,
                    Some((json, Kind::Number(written))) => written
                        .parse::<i64>()
                        .map_err(|_| place.member(name).expected("a whole number", json))?,
                    Some((json, _)) => {
                        return Err(place.member(name).expected("a whole number", json));
                    }
                };
                operands.push(Expr::literal(number));
            }
        }
        _ => operands.push(Expr::literal(value::read(json, None, place)?)),
    }
    Ok(())
}
