//! Names of types: Esker's own, and the usual ones of SQL.

use esker_format::DataType;
use sqlparser::ast;

use crate::Result;

/// The type of a name.
pub(crate) fn convert(name: &ast::DataType) -> Result<DataType> {
    let text = name.to_string();
    let without_length = text.split('(').next().unwrap_or_default().trim();
    Ok(without_length.parse()?)
}
