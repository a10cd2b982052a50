//! Patterns with a list of which one or all are to match: `x LIKE ANY (list)`, `x !~ ALL (list)`.

use esker_query::model::{Expr, Function, Operator};
use sqlparser::ast;

use crate::Result;
use crate::expression::Names;
use crate::statement::unsupported;

/// How a text is matched with each pattern: `LIKE`, `~*` and their like, or what each is not.
#[derive(Clone, Copy)]
pub(crate) struct Matching {
    symbol: &'static str,
    test: Test,
}

#[derive(Clone, Copy)]
enum Test {
    Like(Operator),
    Regular { any_case: bool, negated: bool },
}

impl Matching {
    /// That of `LIKE`, or without regard to case.
    pub(crate) const fn like(any_case: bool, negated: bool) -> Self {
        let (symbol, operator) = match (any_case, negated) {
            (false, false) => ("LIKE", Operator::Like),
            (false, true) => ("NOT LIKE", Operator::NotLike),
            (true, false) => ("ILIKE", Operator::Ilike),
            (true, true) => ("NOT ILIKE", Operator::NotIlike),
        };
        Self { symbol, test: Test::Like(operator) }
    }

    /// That of an operator before ANY or ALL.
    pub(crate) const fn of(operator: &ast::BinaryOperator) -> Option<Self> {
        use ast::BinaryOperator as B;
        let (symbol, any_case, negated) = match operator {
            B::PGLikeMatch => return Some(Self::like(false, false)),
            B::PGNotLikeMatch => return Some(Self::like(false, true)),
            B::PGILikeMatch => return Some(Self::like(true, false)),
            B::PGNotILikeMatch => return Some(Self::like(true, true)),
            B::PGRegexMatch => ("~", false, false),
            B::PGRegexNotMatch => ("!~", false, true),
            B::PGRegexIMatch => ("~*", true, false),
            B::PGRegexNotIMatch => ("!~*", true, true),
            _ => return None,
        };
        Some(Self { symbol, test: Test::Regular { any_case, negated } })
    }
}

/// The list behind `LIKE ALL` and `LIKE SOME`, which the grammar takes for functions, and whether
/// one of its patterns is enough.
pub(crate) fn quantified(pattern: &ast::Expr) -> Option<(bool, &ast::Expr)> {
    let ast::Expr::Function(ast::Function { name, args, .. }) = pattern else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
    let is = |word: &str| name.quote_style.is_none() && name.value.eq_ignore_ascii_case(word);
    let ast::FunctionArguments::List(list) = args else { return None };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(list))] = list.args.as_slice() else {
        return None;
    };
    (is("ALL") || is("SOME") || is("ANY")).then(|| (!is("ALL"), list))
}

impl Names {
    /// `text LIKE ANY (list)` and its like.
    pub(crate) fn matched_with_list(
        &self,
        matching: Matching,
        is_any: bool,
        text: &ast::Expr,
        list: &ast::Expr,
    ) -> Result<Expr> {
        let mut list = list;
        while let ast::Expr::Nested(inner) = list {
            list = inner;
        }
        match list {
            ast::Expr::Array(list) if list.elem.is_empty() => Ok(Expr::literal(!is_any)),
            ast::Expr::Array(list) => {
                let each = list.elem.iter().map(|pattern| self.matched(matching, text, pattern));
                let each = each.collect::<Result<_>>()?;
                Ok(Expr::Apply(if is_any { Operator::Or } else { Operator::And }, each))
            }
            ast::Expr::Subquery(_) | ast::Expr::Tuple(_) => {
                Err(unsupported("other than a list of patterns", list))
            }
            list => {
                let function = if is_any { Function::ListAny } else { Function::ListAll };
                let symbol = Expr::literal(matching.symbol);
                Ok(Expr::call(function, [self.convert(text)?, symbol, self.convert(list)?]))
            }
        }
    }

    fn matched(&self, matching: Matching, text: &ast::Expr, pattern: &ast::Expr) -> Result<Expr> {
        match matching.test {
            Test::Like(operator) => self.like(operator, text, pattern, None),
            Test::Regular { any_case, negated } => {
                let found = self.regular(text, pattern, any_case)?;
                Ok(if negated { found.negated() } else { found })
            }
        }
    }
}
