//! ParameterNames: `?` (numbered in the order of the text), `?1`, `$1`, or `:name`.

use esker::Value;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::expression::ParameterNames;
use crate::statement::tokens;
use crate::{Error, Result};

/// The most parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;

/// Gives each `?` its number, and lists all parameters by position.
pub(crate) fn name_all(tokens: &mut [TokenWithSpan]) -> Result<ParameterNames> {
    let mut names: Vec<String> = Vec::new();
    let mut kind: Option<char> = None;
    let mut after_colon = false;
    for token in tokens {
        let name = match &token.token {
            Token::Placeholder(text) if text == "?" => format!("?{}", names.len() + 1),
            Token::Placeholder(text) => text.clone(),
            Token::Word(word) if after_colon => format!(":{}", word.value),
            other => {
                after_colon = *other == Token::Colon;
                continue;
            }
        };
        after_colon = false;
        let first = name.chars().next().unwrap_or_default();
        // A plain `?` counts on from those before it, which numbers of one's own would upset.
        let is_plain = matches!(&token.token, Token::Placeholder(text) if text == "?");
        let this = if is_plain { '.' } else { first };
        if kind.is_some_and(|known| known != this) {
            let message = "parameters are all `?`, all `?1`, all `$1` or all `:name`";
            return Err(Error::invalid(format!("{message}; found {name} beside others")));
        }
        kind = Some(this);
        place(&mut names, &name)?;
        if is_plain {
            token.token = Token::Placeholder(name);
        }
    }
    Ok(names.into())
}

/// The values of a statement's named parameters, in their order. Only the text's parameters are
/// read: a statement that is wrong elsewhere is found so when it runs.
///
/// ```
/// let text = "SELECT * FROM people WHERE name = :name AND age > :age";
/// let values = [(":age", 30i64.into()), (":name", "Ada".into())];
/// let found = esker_sql::named_parameters(text, &values)?;
/// assert_eq!(found, ["Ada".into(), 30i64.into()]);
/// # Ok::<(), esker_sql::Error>(())
/// ```
///
/// # Errors
/// `InvalidInput` for a name that is unknown, missing or given twice.
pub fn named_parameters<N: AsRef<str>>(text: &str, values: &[(N, Value)]) -> Result<Vec<Value>> {
    in_order(&name_all(&mut tokens(text)?)?, values)
}

/// Values by name in the order of parameters.
pub(crate) fn in_order<N: AsRef<str>>(
    parameters: &[String],
    values: &[(N, Value)],
) -> Result<Vec<Value>> {
    let mut found: Vec<Option<Value>> = vec![None; parameters.len()];
    for (name, value) in values {
        let name = name.as_ref();
        let place = parameters.iter().position(|known| known == name);
        match place.and_then(|place| found.get_mut(place)) {
            None => {
                let known = match parameters.is_empty() {
                    true => "the statement has none".to_owned(),
                    false => format!("expected {}", parameters.join(", ")),
                };
                return Err(Error::invalid(format!("unknown parameter {name}; {known}")));
            }
            Some(Some(_)) => {
                return Err(Error::invalid(format!("parameter {name} is given twice")));
            }
            Some(slot) => *slot = Some(value.clone()),
        }
    }
    let value = |(name, value): (&String, Option<Value>)| {
        value.ok_or_else(|| Error::invalid(format!("parameter {name} has no value")))
    };
    parameters.iter().zip(found).map(value).collect()
}

/// Refuses more values, or fewer, than a statement has parameters.
///
/// # Errors
/// `InvalidInput` with the names of the parameters.
pub fn expect_values(parameters: &[String], values: &[Value]) -> Result<()> {
    let (want, got) = (parameters.len(), values.len());
    if want == got {
        return Ok(());
    }
    let names = parameters.join(", ");
    let expected = match want {
        0 => "0 parameters".to_owned(),
        1 => format!("1 parameter ({names})"),
        want => format!("{want} parameters ({names})"),
    };
    Err(Error::invalid(format!("expected {expected}, found {got}")))
}

fn place(names: &mut Vec<String>, name: &str) -> Result<()> {
    let digits = name.strip_prefix('?').or(name.strip_prefix('$'));
    let Some(digits) = digits else {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        return Ok(());
    };
    let number = digits.parse::<usize>().ok().filter(|n| (1..=PARAMETERS_MAX).contains(n));
    let number = number.ok_or_else(|| {
        Error::invalid(format!("parameter {name}: expected a number of 1 to {PARAMETERS_MAX}"))
    })?;
    let prefix = name.chars().next().unwrap_or('?');
    for next in names.len() + 1..=number {
        names.push(format!("{prefix}{next}"));
    }
    Ok(())
}
