//! Names of types: Esker's own, and the usual ones of SQL.

use esker_format::{DataType, Labels};
use sqlparser::ast;

use crate::{Error, Result};

/// The type of a name.
pub(crate) fn convert(name: &ast::DataType) -> Result<DataType> {
    if let Some(item) = item_of(name) {
        return Ok(DataType::list(convert(item)?)?);
    }
    let text = name.to_string();
    let without_length = text.split('(').next().unwrap_or_default().trim();
    let has_digits = DataType::is_decimal_name(without_length);
    Ok(if has_digits { &text } else { without_length }.parse()?)
}

/// What a type is a list of: `text[]`, `text ARRAY`. A number of items there says nothing, as in
/// PostgreSQL.
fn item_of(name: &ast::DataType) -> Option<&ast::DataType> {
    use ast::ArrayElemTypeDef as Of;
    match name {
        ast::DataType::Array(
            Of::SquareBracket(item, _) | Of::Qualified(item, _) | Of::AngleBracket(item),
        ) => Some(item),
        _ => None,
    }
}

/// The labels behind the name of an enum, as in `enum('red', 'green')`.
pub(crate) fn labels(name: &ast::DataType) -> Result<Option<Labels>> {
    let ast::DataType::Enum(members, _) = name else { return Ok(None) };
    let label = |member: &ast::EnumMember| match member {
        ast::EnumMember::Name(label) => Ok(label.clone()),
        ast::EnumMember::NamedValue(..) => {
            Err(Error::invalid(format!("{name}: a label of an enum has no number")))
        }
    };
    let labels = members.iter().map(label).collect::<Result<Vec<_>>>()?;
    Ok(Some(Labels::new(labels)?))
}

/// The greatest length behind a name, as in `varchar(40)`.
pub(crate) fn length(name: &ast::DataType, data_type: DataType) -> Result<Option<u32>> {
    if let (Some(item), Some(element)) = (item_of(name), data_type.element()) {
        return match length(item, element.data_type())? {
            None => Ok(None),
            Some(_) => Err(Error::invalid(format!("{name}: an item of a list has no length"))),
        };
    }
    let text = name.to_string();
    if data_type.is_decimal() || data_type == DataType::Enum {
        return Ok(None);
    }
    let Some((_, behind)) = text.split_once('(') else { return Ok(None) };
    let limited = matches!(data_type, DataType::Text | DataType::Bytes);
    let number = behind.strip_suffix(')').and_then(|number| number.trim().parse().ok());
    match number {
        Some(length) if limited && length > 0 => Ok(Some(length)),
        _ if limited => Err(Error::invalid(format!("{name}: expected a length of at least 1"))),
        _ => Err(Error::invalid(format!("{name}: text and bytes have a length, {data_type} none"))),
    }
}
