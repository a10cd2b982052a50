//! Parameters: `?` (numbered in the order of the text), `?1`, `$1`, or `:name`.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::expression::Parameters;
use crate::{Error, Result};

/// The most parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;

/// Gives each `?` its number, and lists all parameters by position.
pub(crate) fn name_all(tokens: &mut [TokenWithSpan]) -> Result<Parameters> {
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
