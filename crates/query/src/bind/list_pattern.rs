//! A text beside a list of patterns, of which one or all are to match.

use esker_format::{DataType, List, ListElement, Value};

use super::expression::{not, pattern};
use super::typing::{convert, typed};
use crate::bound::{Bound, Node};
use crate::model::{Function, Operator};
use crate::{Error, Inputs, Result};

/// How each pattern is matched.
#[derive(Clone, Copy)]
pub(super) enum ListPattern {
    Like(Operator),
    Regular { any_case: bool, negated: bool },
}

impl ListPattern {
    /// That of an operator as SQL writes it; `None` for a comparison.
    pub fn of(symbol: &str) -> Option<Self> {
        let regular = |any_case, negated| Self::Regular { any_case, negated };
        Some(match symbol.to_ascii_uppercase().as_str() {
            "LIKE" => Self::Like(Operator::Like),
            "NOT LIKE" => Self::Like(Operator::NotLike),
            "ILIKE" => Self::Like(Operator::Ilike),
            "NOT ILIKE" => Self::Like(Operator::NotIlike),
            "~" => regular(false, false),
            "!~" => regular(false, true),
            "~*" => regular(true, false),
            "!~*" => regular(true, true),
            _ => return None,
        })
    }

    /// Whether one of the patterns matches, or all do.
    pub fn matched(
        self,
        function: Function,
        text: Bound,
        list: Bound,
        inputs: &Inputs,
    ) -> Result<Bound> {
        let is_any = function == Function::ListAny;
        if matches!(list.node, Node::Unanswered) {
            return Ok(Bound::new(Node::Unanswered, DataType::Bool));
        }
        let list = convert(list, DataType::List(ListElement::Text))?;
        let patterns = match list.as_literal() {
            Some(Value::List(bytes)) => List::of(bytes)?.values()?,
            Some(Value::Null) => return Ok(typed(Bound::literal(Value::Null), DataType::Bool)),
            _ => return Err(Error::invalid("patterns must be a constant list of texts")),
        };
        let each = patterns.into_iter().map(|item| {
            let item = typed(Bound::literal(item), DataType::Text);
            match self {
                Self::Like(operator) => pattern(operator, vec![text.clone(), item]),
                Self::Regular { any_case, negated } => {
                    let flags = any_case.then(|| Bound::literal(Value::Text("i".to_owned())));
                    let operands = [text.clone(), item].into_iter().chain(flags).collect();
                    let found = super::function::call(Function::RegexpLike, operands, inputs)?;
                    Ok(if negated { not(found) } else { found })
                }
            }
        });
        let each = each.collect::<Result<Vec<_>>>()?;
        if each.is_empty() {
            return Ok(Bound::literal(Value::Bool(!is_any)));
        }
        let node = if is_any { Node::Or(each) } else { Node::And(each) };
        Ok(Bound::new(node, DataType::Bool))
    }
}
