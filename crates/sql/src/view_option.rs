//! Options of a materialized view: `WITH (retention = '365 days')`.

use esker::KeptFor;
use sqlparser::ast;

use crate::statement::unsupported;
use crate::{Error, Result};

/// For how long the history of a view is kept, and the options as they are written.
pub(crate) fn read(
    options: &ast::CreateTableOptions,
    is_rollup: bool,
) -> Result<(Option<KeptFor>, String)> {
    let options = match options {
        ast::CreateTableOptions::None => return Ok((None, String::new())),
        ast::CreateTableOptions::With(options) => options,
        other => return Err(unsupported("these options of a view", other)),
    };
    if !is_rollup {
        return Err(Error::invalid("options of a view: expected none but of a materialized view"));
    }
    let texts: Vec<String> = options.iter().map(ToString::to_string).collect();
    Ok((Some(kept(options)?), format!(" WITH ({})", texts.join(", "))))
}

/// The one option that there is.
pub(crate) fn kept(options: &[ast::SqlOption]) -> Result<KeptFor> {
    const EXPECTED: &str = "expected retention = '365 days', or 'forever'";
    let [option] = options else {
        let count = options.len();
        let message = format!("options of a materialized view: {EXPECTED}, found {count}");
        return Err(Error::invalid(message));
    };
    let text = match option {
        ast::SqlOption::KeyValue { key, value } if key.value.eq_ignore_ascii_case("retention") => {
            match value {
                ast::Expr::Identifier(name) => Some(name.value.clone()),
                ast::Expr::Value(value) => value.value.clone().into_string(),
                _ => None,
            }
        }
        _ => None,
    };
    let invalid = || Error::invalid(format!("option {option} of a materialized view: {EXPECTED}"));
    KeptFor::read(&text.ok_or_else(invalid)?).map_err(|e| Error::invalid(e.to_string()))
}
