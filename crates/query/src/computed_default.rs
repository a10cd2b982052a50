//! A default of a field that is evaluated for each row, from nothing but the time and chance.

use crate::model::Expr;
use crate::{Error, Result, row_expression};

/// A default of a field that is evaluated when a row is written without a value for it.
#[derive(Clone, Copy, Debug)]
pub struct ComputedDefault;

impl ComputedDefault {
    /// The stored form of its expression.
    ///
    /// # Errors
    /// `InvalidQuery` when it reads anything, takes values of a sequence, nests too deep, or has a
    /// number that is not finite.
    pub fn encode(expr: &Expr) -> Result<String> {
        if expr.takes_values() {
            return Err(Error::invalid(format!(
                "{expr}: nextval is a default alone, without anything around it"
            )));
        }
        if let Some(part) = reading(expr) {
            return Err(Error::invalid(format!(
                "{part}: a default reads no fields, parameters or tables"
            )));
        }
        row_expression::encode("the default", expr)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the text is not one.
    pub fn decode(text: &str) -> Result<Expr> {
        row_expression::decode(text)
    }
}

/// What is read of an expression that is not in it.
fn reading(expr: &Expr) -> Option<&Expr> {
    let is_read = matches!(expr, Expr::Field(_) | Expr::Parameter(_) | Expr::Window(_));
    match is_read || expr.has_subquery() || expr.has_aggregate() {
        true => Some(expr),
        false => expr.operands().into_iter().find_map(reading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Function, Operator, Parameter};

    #[test]
    fn a_default_reads_nothing() {
        let today = Expr::Call(Function::CurrentDate, Vec::new());
        let tomorrow = today.binary(Operator::Add, Expr::literal(1i64));
        let parameter = Parameter { position: 0, name: "?1".to_owned() };
        let stored = ComputedDefault::encode(&tomorrow).unwrap();
        assert_eq!(ComputedDefault::decode(&stored).unwrap(), tomorrow);
        for (other, said) in [
            (Expr::field("a"), "a: a default reads no fields"),
            (Expr::Parameter(parameter), "a default reads no fields, parameters or tables"),
            (
                Expr::call(Function::Nextval, [Expr::literal("s")]),
                "nextval is a default alone, without anything around it",
            ),
        ] {
            let e = ComputedDefault::encode(&tomorrow.clone().binary(Operator::Add, other));
            let e = e.unwrap_err().to_string();
            assert!(e.contains(said), "{e}");
        }
        assert!(ComputedDefault::decode("{").is_err());
    }
}
