//! Changes of a table that stand where a table does: `FROM changes('t', '12.345')`.

use esker::ChangesTable;
use esker_query::model::Relation;
use sqlparser::ast;

use crate::{Error, Result};

/// What the function is called.
const NAME: &str = "changes";

/// A call of the function in FROM; nothing for anything else.
pub(crate) fn call(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> Result<Option<Relation>> {
    let is_it = |name: &ast::Ident| name.value.eq_ignore_ascii_case(NAME);
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] if is_it(name) => {}
        _ => return Ok(None),
    }
    let expected = || {
        let form = "changes('table') or changes('table', '12.345')";
        Error::invalid(format!("{NAME}: expected {form}, the cursor a constant"))
    };
    let values = args.iter().map(|arg| constant(arg).ok_or_else(expected));
    let values = values.collect::<Result<Vec<_>>>()?;
    let (table, after) = match values.as_slice() {
        [Some(table)] | [Some(table), None] => (*table, None),
        [Some(table), Some(after)] => (*table, Some(after)),
        _ => return Err(expected()),
    };
    let unread = |e: esker::Error| Error::invalid(format!("{NAME}: {e}"));
    let after = after.map(|after| after.parse()).transpose().map_err(unread)?;
    let table = Relation::table(ChangesTable::new(table, after).to_string());
    Ok(Some(Relation { alias: Some(NAME.to_owned()), ..table }))
}

/// A text, or NULL.
fn constant(arg: &ast::FunctionArg) -> Option<Option<&str>> {
    let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value))) = arg else {
        return None;
    };
    match &value.value {
        ast::Value::SingleQuotedString(text) => Some(Some(text)),
        ast::Value::Null => Some(None),
        _ => None,
    }
}
