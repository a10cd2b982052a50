//! `json #> '{a,0,b}'`: a part of a document by a whole path.

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

/// The steps of `{a,0,"b c"}`.
fn steps(text: &str) -> Result<Vec<Expr>> {
    let wrong = || Error::invalid(format!("expected a path such as '{{name,0}}', found {text:?}"));
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let inner = inner.ok_or_else(wrong)?.trim();
    if inner.is_empty() {
        return Ok(Vec::new());
    }
    let (mut steps, mut rest) = (Vec::new(), inner);
    loop {
        let step = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (step, behind) = quoted.split_once('"').ok_or_else(wrong)?;
                rest = behind.trim_start();
                Expr::literal(step)
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (step, behind) = rest.split_at(end);
                rest = behind;
                match (step.trim(), step.trim().parse::<i64>()) {
                    ("", _) => return Err(wrong()),
                    (_, Ok(place)) => Expr::literal(place),
                    (name, Err(_)) => Expr::literal(name),
                }
            }
        };
        steps.push(step);
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind.trim_start(),
            None if rest.is_empty() => return Ok(steps),
            None => return Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_names_and_places() {
        let expected = vec![Expr::literal("a"), Expr::literal(-1i64), Expr::literal("b, c")];
        assert_eq!(steps(r#" {a, -1,"b, c"} "#).unwrap(), expected);
        assert_eq!(steps("{}").unwrap(), []);
        for wrong in ["a", "{a", "{a,,b}", "{\"a}", "{\"a\"b}", "{a,}"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }
}
