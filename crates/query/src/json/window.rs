//! Window functions of a JSON query: `windows`.

use esker_format::json::{Json, Kind, Members};
use esker_format::suggest::near_or_all;

use super::member::{Place, array, flag, object, refuse_others, text};
use super::{aggregate_of, order, value};
use crate::Result;
use crate::logical::Names;
use crate::model::{
    Aggregate, Expr, Frame, FrameBound, FrameExclusion, FrameOffset, FrameUnits, OrderBy,
    SelectItem, Window, WindowCall, WindowFunction,
};

/// Members of an element that are of the window, not of an aggregate within.
const OWN: [&str; 3] = ["partition_by", "order", "frame"];

/// Reads elements of `windows`.
pub(super) struct Windows<'a> {
    pub(super) names: &'a Names,
    /// What an answer by groups shows; its columns may be named.
    pub(super) groups: &'a [SelectItem],
}

impl Windows<'_> {
    /// One window function, with the name of its column.
    pub(super) fn read(&self, json: Json<'_>, place: &Place<'_>) -> Result<SelectItem> {
        let members = object(json, place)?;
        let name = place.text_of(members, "fn")?;
        let over = self.window(members, place)?;
        let expr = match WindowFunction::from_name(name) {
            Some(function) => {
                let call = self.call(function, members, place)?;
                Expr::Window(Box::new(WindowCall { over, ..call }))
            }
            None if Aggregate::from_name(name).is_some() => {
                return self.aggregate(members, over, place);
            }
            None => {
                let aggregates = Aggregate::ALL.into_iter().map(Aggregate::name);
                let known: Vec<_> = WindowFunction::names().chain(aggregates).collect();
                let near = near_or_all(name, "window functions", known);
                let place = place.member("fn");
                return Err(place.error(format!("unknown window function {name:?}{near}")));
            }
        };
        let field = place.optional_text_of(members, "field")?;
        let alias = place.optional_text_of(members, "as")?;
        let alias = alias.unwrap_or_else(|| named(name, field.as_deref()));
        Ok(SelectItem { expr, alias: Some(alias) })
    }

    /// An aggregate over the rows of a window.
    fn aggregate(
        &self,
        members: Members<'_>,
        over: Window,
        place: &Place<'_>,
    ) -> Result<SelectItem> {
        let SelectItem { mut expr, alias } = aggregate_of(members, None, &OWN, place)?;
        expr.operands_mut().into_iter().for_each(|operand| self.resolve(operand));
        Ok(SelectItem { expr: expr.over(over), alias })
    }

    fn call(
        &self,
        function: WindowFunction,
        members: Members<'_>,
        place: &Place<'_>,
    ) -> Result<WindowCall> {
        use WindowFunction as F;
        let mut known = vec!["fn", "as"];
        known.extend(OWN);
        let (takes_field, takes_count) = match function {
            F::Ntile => (false, true),
            F::Lag | F::Lead | F::NthValue => (true, true),
            F::FirstValue | F::LastValue => (true, false),
            _ => (false, false),
        };
        let takes_default = matches!(function, F::Lag | F::Lead);
        known.extend(takes_field.then_some("field"));
        known.extend(takes_count.then_some("n"));
        known.extend(takes_default.then_some("default"));
        known.extend(function.may_ignore_nulls().then_some("ignore_nulls"));
        refuse_others(members, &known, place)?;
        let mut operands = Vec::new();
        let mut data_type = None;
        if takes_field {
            let field = place.text_of(members, "field")?;
            data_type = self.names.type_of(field, None).ok().flatten().flatten();
            operands.push(self.field(field));
        }
        match members.get("n") {
            Some(json) => operands.push(count(json, &place.member("n"))?),
            None if takes_count && !takes_default => {
                let name = function.name();
                return Err(place.error(format!("{name} takes a number in \"n\"")));
            }
            None => {}
        }
        if let Some(json) = members.get("default") {
            if members.get("n").is_none() {
                operands.push(Expr::literal(1i64));
            }
            let default = value::read(json, data_type, &place.member("default"))?;
            operands.push(Expr::Literal(default));
        }
        let ignores_nulls = flag(members, "ignore_nulls", place)?;
        Ok(WindowCall { function, operands, ignores_nulls, over: Window::default() })
    }

    fn window(&self, members: Members<'_>, place: &Place<'_>) -> Result<Window> {
        let partition_by = match members.get("partition_by") {
            None => Vec::new(),
            Some(json) => {
                let place = place.member("partition_by");
                each(json, &place, |json, place| text(json, place).map(|name| self.field(name)))?
            }
        };
        let order_by = match members.get("order") {
            None => Vec::new(),
            Some(json) => {
                let key = |json: Json<'_>, place: &Place<'_>| {
                    let mut key: OrderBy = order(json, place)?;
                    self.resolve(&mut key.expr);
                    Ok(key)
                };
                each(json, &place.member("order"), key)?
            }
        };
        let frame = members.get("frame");
        let frame = frame.map(|json| frame_of(json, &place.member("frame"))).transpose()?;
        Ok(Window { partition_by, order_by, frame })
    }

    fn field(&self, name: &str) -> Expr {
        let mut field = Expr::field(name);
        self.resolve(&mut field);
        field
    }

    /// Puts what a column of the groups shows in the place of its name.
    fn resolve(&self, expr: &mut Expr) {
        let Expr::Field(name) = expr else { return };
        let is_it = |item: &&SelectItem| item.alias.as_deref() == Some(name.as_str());
        if let Some(item) = self.groups.iter().find(is_it) {
            expr.clone_from(&item.expr);
        }
    }
}

fn named(function: &str, field: Option<&str>) -> String {
    field.map_or_else(|| function.to_owned(), |field| format!("{function}_{field}"))
}

/// What is read of each item of an array, or of one alone.
fn each<T>(
    json: Json<'_>,
    place: &Place<'_>,
    read: impl Fn(Json<'_>, &Place<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    match json.kind() {
        Kind::String(_) | Kind::Object(_) => Ok(vec![read(json, place)?]),
        _ => {
            let items = array(json, place)?.iter().enumerate();
            items.map(|(i, json)| read(json, &place.item(i))).collect()
        }
    }
}

/// A number of rows.
fn count(json: Json<'_>, place: &Place<'_>) -> Result<Expr> {
    let number = match json.kind() {
        Kind::Number(written) => written.parse::<i64>().ok().filter(|number| *number >= 0),
        _ => None,
    };
    number.map(Expr::literal).ok_or_else(|| place.expected("a number of rows", json))
}

fn frame_of(json: Json<'_>, place: &Place<'_>) -> Result<Frame> {
    let members = object(json, place)?;
    refuse_others(members, &["units", "start", "end", "exclude"], place)?;
    let units = match members.get("units").map(|json| (json, json.kind())) {
        None | Some((_, Kind::String("rows"))) => FrameUnits::Rows,
        Some((_, Kind::String("range"))) => FrameUnits::Range,
        Some((_, Kind::String("groups"))) => FrameUnits::Groups,
        Some((json, _)) => {
            let what = "\"rows\", \"range\" or \"groups\"";
            return Err(place.member("units").expected(what, json));
        }
    };
    let exclude = match members.get("exclude").map(|json| (json, json.kind())) {
        None => FrameExclusion::NoOthers,
        Some((_, Kind::String("current_row"))) => FrameExclusion::CurrentRow,
        Some((_, Kind::String("group"))) => FrameExclusion::Group,
        Some((_, Kind::String("ties"))) => FrameExclusion::Ties,
        Some((json, _)) => {
            let what = "\"current_row\", \"group\" or \"ties\"";
            return Err(place.member("exclude").expected(what, json));
        }
    };
    let at = |name: &'static str, without: FrameBound| match members.get(name) {
        None => Ok(without),
        Some(json) => bound(json, &place.member(name)),
    };
    let start = at("start", FrameBound::UnboundedPreceding)?;
    let end = at("end", FrameBound::CurrentRow)?;
    Ok(Frame { units, start, end, exclude })
}

fn bound(json: Json<'_>, place: &Place<'_>) -> Result<FrameBound> {
    let offset = |json: Json<'_>, name: &str| {
        let value = value::read(json, None, &place.member(name))?;
        Ok(FrameOffset::Value(Expr::Literal(value)))
    };
    match json.kind() {
        Kind::String("unbounded_preceding") => return Ok(FrameBound::UnboundedPreceding),
        Kind::String("current_row") => return Ok(FrameBound::CurrentRow),
        Kind::String("unbounded_following") => return Ok(FrameBound::UnboundedFollowing),
        Kind::Object(members) => {
            refuse_others(members, &["preceding", "following"], place)?;
            match (members.get("preceding"), members.get("following")) {
                (Some(json), None) => {
                    return offset(json, "preceding").map(FrameBound::Preceding);
                }
                (None, Some(json)) => {
                    return offset(json, "following").map(FrameBound::Following);
                }
                _ => {}
            }
        }
        _ => {}
    }
    let what = "\"unbounded_preceding\", {\"preceding\": …}, \"current_row\", {\"following\": …} \
                or \"unbounded_following\"";
    Err(place.expected(what, json))
}
