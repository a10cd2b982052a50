//! `json #> '{a,0,b}'`: a part of a document by a whole path.

use esker_format::Value;
use esker_format::list::{self, List, ListElement};
use esker_query::model::{Expr, Function};
use sqlparser::ast;

use crate::expression::Names;
use crate::statement::unsupported;
use crate::{Error, Result};

impl Names {
    /// The part at the end of a path, as json or as text. A step of digits is a place.
    pub(crate) fn part_by_path(
        &self,
        document: &ast::Expr,
        path: &ast::Expr,
        as_text: bool,
    ) -> Result<Expr> {
        let function = if as_text { Function::JsonText } else { Function::JsonGet };
        let mut operands = vec![self.convert(document)?];
        match path {
            ast::Expr::Array(ast::Array { elem, .. }) => {
                for step in elem {
                    operands.push(self.convert(step)?);
                }
            }
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) => operands.extend(steps(text)?),
                _ => return Err(not_written(path)),
            },
            _ => return Err(not_written(path)),
        }
        match operands.len() {
            1 => Err(Error::invalid(format!("{path}: expected a step at least, found none"))),
            _ => Ok(Expr::Call(function, operands)),
        }
    }
}

fn not_written(path: &ast::Expr) -> Error {
    unsupported("a path that is not written as '{name,0,name}' or ARRAY['name', …]", path)
}

/// The steps of `{a,0,"b c"}`, which is written as a list of texts is.
fn steps(text: &str) -> Result<Vec<Expr>> {
    let wrong =
        |why: String| Error::invalid(format!("expected a path such as '{{name,0}}': {why}"));
    let list = list::parse(text, ListElement::Text).map_err(|e| wrong(e.to_string()))?;
    let bytes = list.as_ref().as_bytes().unwrap_or_default(); // default: it is a list
    let step = |step: Value| match step {
        Value::Text(name) => Ok(match name.parse::<i64>() {
            Ok(place) => Expr::literal(place),
            Err(_) => Expr::literal(name.as_str()),
        }),
        other => Err(wrong(format!("found {other} among its steps"))),
    };
    List::of(bytes)?.values()?.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_names_and_places() {
        let expected = vec![Expr::literal("a"), Expr::literal(-1i64), Expr::literal("b, c")];
        assert_eq!(steps(r#" {a, -1,"b, c"} "#).unwrap(), expected);
        assert_eq!(steps("{}").unwrap(), []);
        for wrong in ["a", "{a", "{a,,b}", "{\"a}", "{\"a\"b}", "{a,}", "{a,NULL}"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }
}
