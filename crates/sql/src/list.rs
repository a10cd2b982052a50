//! Lists in expressions: `ARRAY[a, b]`, parts of lists, comparisons with their items.

use esker_query::model::{Expr, Function, Operator};
use sqlparser::ast;

use crate::Result;
use crate::expression::Names;
use crate::statement::unsupported;

/// The names of a field with its table before it, as in `t.list[1]`, and the subscripts behind.
fn field_names<'s>(
    root: &ast::Expr,
    steps: &'s [ast::AccessExpr],
) -> (Vec<ast::Ident>, &'s [ast::AccessExpr]) {
    let (mut names, mut rest) = (Vec::new(), steps);
    if let ast::Expr::Identifier(first) = root {
        names.push(first.clone());
        while let [ast::AccessExpr::Dot(ast::Expr::Identifier(name)), behind @ ..] = rest {
            names.push(name.clone());
            rest = behind;
        }
    }
    (names, rest)
}

impl Names {
    /// `ARRAY[a, b]`.
    pub(crate) fn list(&self, list: &ast::Array) -> Result<Expr> {
        let items = list.elem.iter().map(|item| self.convert(item));
        Ok(Expr::Call(Function::ListValue, items.collect::<Result<_>>()?))
    }

    /// `list[n]`, and further subscripts behind it.
    pub(crate) fn part_of_list(
        &self,
        root: &ast::Expr,
        steps: &[ast::AccessExpr],
        whole: &ast::Expr,
    ) -> Result<Expr> {
        let (names, steps) = field_names(root, steps);
        let root = match names.as_slice() {
            [] | [_] => self.convert(root)?,
            names => self.convert(&ast::Expr::CompoundIdentifier(names.to_vec()))?,
        };
        steps.iter().try_fold(root, |list, step| match step {
            ast::AccessExpr::Subscript(place) => self.subscript(list, place, whole),
            ast::AccessExpr::Dot(_) => Err(unsupported("this path", whole)),
        })
    }

    /// `list[n]` and `list[from:to]`.
    fn subscript(&self, list: Expr, place: &ast::Subscript, whole: &ast::Expr) -> Result<Expr> {
        match place {
            ast::Subscript::Index { index } => {
                Ok(Expr::call(Function::ListExtract, [list, self.convert(index)?]))
            }
            ast::Subscript::Slice { lower_bound, upper_bound, stride: None } => {
                let end = |bound: &Option<ast::Expr>, otherwise: i64| match bound {
                    Some(bound) => self.convert(bound),
                    None => Ok(Expr::literal(otherwise)),
                };
                let (from, to) = (end(lower_bound, 1)?, end(upper_bound, i64::MAX)?);
                Ok(Expr::call(Function::ListSlice, [list, from, to]))
            }
            ast::Subscript::Slice { .. } => Err(unsupported("a step in a slice", whole)),
        }
    }

    /// `value = ANY (list)` and `value < ALL (list)`.
    pub(crate) fn compared_with_list(
        &self,
        function: Function,
        operator: Operator,
        value: &ast::Expr,
        list: &ast::Expr,
    ) -> Result<Expr> {
        let symbol = Expr::literal(operator.entry().symbol);
        Ok(Expr::call(function, [self.convert(value)?, symbol, self.convert(list)?]))
    }
}
