//! Names of types: Esker's own, and the usual ones of SQL.

use esker_format::DataType;
use sqlparser::ast;

use crate::{Error, Result};

/// The type of a name.
pub(crate) fn convert(name: &ast::DataType) -> Result<DataType> {
    let text = name.to_string().to_lowercase();
    if let Ok(own) = text.parse() {
        return Ok(own);
    }
    let without_length = text.split('(').next().unwrap_or_default().trim();
    Ok(match without_length {
        "tinyint" => DataType::I8,
        "smallint" | "int2" => DataType::I16,
        // An INTEGER of SQLite has 64 bits, and none of the others loses by it.
        "int" | "integer" | "bigint" | "int4" | "int8" => DataType::I64,
        "utinyint" => DataType::U8,
        "usmallint" => DataType::U16,
        "uinteger" => DataType::U32,
        "ubigint" => DataType::U64,
        "real" | "float4" => DataType::F32,
        "float" | "float8" | "double" | "double precision" => DataType::F64,
        "boolean" => DataType::Bool,
        "varchar" | "char" | "character" | "character varying" | "string" | "clob" => {
            DataType::Text
        }
        "blob" | "bytea" | "binary" | "varbinary" => DataType::Bytes,
        "datetime" => DataType::Timestamp,
        _ => {
            let known: Vec<_> = DataType::ALL.iter().map(|t| t.name()).collect();
            let known = known.join(", ");
            return Err(Error::invalid(format!("unknown type {name}; known: {known}")));
        }
    })
}
