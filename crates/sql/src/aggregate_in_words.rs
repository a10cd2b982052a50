//! Aggregates that are others in other words: documents of the values of a group, and SQLite's
//! `total`.

use esker_format::DataType;
use esker_query::model::{Aggregate, Expr, Function, Operator, OrderBy};
use sqlparser::ast;

use crate::expression::Names;
use crate::select::order_keys;
use crate::statement::unsupported;
use crate::{Error, Result};

/// What a name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    /// An array of the values.
    Array,
    /// An object of pairs of a name and a value.
    Object,
    /// The sum as a float, 0 of nothing.
    Total,
}

const NAMES: [(&str, Meaning); 7] = [
    ("json_agg", Meaning::Array),
    ("jsonb_agg", Meaning::Array),
    ("json_group_array", Meaning::Array),
    ("json_object_agg", Meaning::Object),
    ("jsonb_object_agg", Meaning::Object),
    ("json_group_object", Meaning::Object),
    ("total", Meaning::Total),
];

/// The names, for what is like an unknown one.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

impl Names {
    /// The call in other words, if its name is one of these.
    ///
    /// `json_agg(x ORDER BY k)` is `CAST('[' || string_agg(text of x, ',' ORDER BY k) || ']' AS
    /// json)`. Of no rows SQLite's names give an empty document, PostgreSQL's NULL.
    pub(crate) fn aggregate_in_words(
        &self,
        call: &ast::Function,
        list: &ast::FunctionArgumentList,
    ) -> Result<Option<Expr>> {
        let name = call.name.to_string();
        let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
        let Some((name, meaning)) = found else { return Ok(None) };
        let operand = |argument: &ast::FunctionArg| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => self.convert(expr),
            other => Err(unsupported("this argument", other)),
        };
        let mut operands = list.args.iter().map(operand).collect::<Result<Vec<_>>>()?;
        let mut order = Vec::new();
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::OrderBy(keys) => order = order_keys(keys, None, self)?,
                _ => return Err(unsupported("a clause inside a call", call)),
            }
        }
        let filter = call.filter.as_ref().map(|filter| self.convert(filter)).transpose()?;
        let filtered = |aggregate: Expr| match filter {
            Some(filter) => aggregate.filtered(filter),
            None => aggregate,
        };
        let distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
        let (function, document, is_of_pairs) = match meaning {
            Meaning::Array => (Function::JsonArray, ["[", "]"], false),
            Meaning::Object => (Function::JsonObject, ["{", "}"], true),
            Meaning::Total => {
                let [operand] = <[Expr; 1]>::try_from(operands).map_err(|_| wrong(name, 1))?;
                let (function, operand) = (Aggregate::Sum, Some(Box::new(operand)));
                let sum = filtered(Expr::Aggregate { function, operand, distinct, order });
                let sum = Expr::Cast(Box::new(sum), DataType::F64);
                return Ok(Some(Expr::call(Function::Coalesce, [sum, Expr::literal(0f64)])));
            }
        };
        let count = if is_of_pairs { 2 } else { 1 };
        if operands.len() != count {
            return Err(wrong(name, count));
        }
        if is_of_pairs && let Some(name) = operands.first_mut() {
            *name = Expr::Cast(Box::new(std::mem::replace(name, Expr::Default)), DataType::Text);
        }
        let comma = OrderBy { expr: Expr::literal(","), descending: false, nulls_first: None };
        order.insert(0, comma);
        let operand = Some(Box::new(inside(Expr::Call(function, operands))));
        let function = Aggregate::StringAgg;
        let members = filtered(Expr::Aggregate { function, operand, distinct, order });
        let [open, close] = document.map(Expr::literal);
        let text = open.binary(Operator::Concat, members).binary(Operator::Concat, close);
        let made = Expr::Cast(Box::new(text), DataType::Json);
        if !name.starts_with("json_group") {
            return Ok(Some(made));
        }
        let empty = Expr::Cast(Box::new(Expr::literal(document.concat())), DataType::Json);
        Ok(Some(Expr::call(Function::Coalesce, [made, empty])))
    }
}

/// The text of a document without its brackets.
fn inside(document: Expr) -> Expr {
    let text = Expr::Cast(Box::new(document), DataType::Text);
    let behind = Expr::call(Function::Substr, [text, Expr::literal(2i64)]);
    Expr::call(Function::Left, [behind, Expr::literal(-1i64)])
}

fn wrong(name: &str, count: usize) -> Error {
    let operands = if count == 1 { "one operand" } else { "two operands, a name and a value" };
    Error::invalid(format!("{name} takes {operands}"))
}
