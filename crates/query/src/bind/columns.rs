//! The columns of several queries as one.

use std::sync::Arc;

use esker_format::{DataType, Labels};

use super::Program;
use super::expression::{label_as_text, to_common_type};
use super::typing::convert;
use crate::bound::Bound;
use crate::{Error, Result};

/// The type that the values of a column have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ColumnType {
    pub(crate) data_type: DataType,
    pub(crate) labels: Option<Arc<Labels>>,
}

/// Values as those of one column, by the rule for the branches of CASE; labels of several fields
/// are texts.
///
/// # Errors
/// `InvalidQuery` when they have no common type.
pub(crate) fn as_one_column(values: Vec<Bound>) -> Result<(Vec<Bound>, ColumnType)> {
    let (mut values, mut data_type) = to_common_type(values)?;
    let mut labels = None;
    if data_type == DataType::Enum {
        let mut all = values.iter().filter(|value| !is_null(value)).map(|value| &value.labels);
        let first = all.next().cloned().flatten();
        if first.is_some() && all.all(|other| *other == first) {
            labels = first;
        } else {
            values = values.into_iter().map(label_as_text).collect::<Result<_>>()?;
            data_type = DataType::Text;
        }
    }
    Ok((values, ColumnType { data_type, labels }))
}

fn is_null(value: &Bound) -> bool {
    value.as_literal().is_some_and(esker_format::Value::is_null)
}

/// The types of the columns of queries whose rows become one; `what` brings them together.
///
/// # Errors
/// `InvalidQuery` when they have different numbers of columns, or no common types.
pub(crate) fn common_columns(programs: &[Program], what: &str) -> Result<Vec<ColumnType>> {
    let Some(first) = programs.first() else { return Ok(Vec::new()) };
    let count = first.projection.outputs.len();
    if let Some(other) = programs.iter().find(|p| p.projection.outputs.len() != count) {
        let found = other.projection.outputs.len();
        return Err(Error::invalid(format!(
            "{what}: expected as many columns in each query, found {count} and {found}"
        )));
    }
    let column = |i: usize| {
        let values = programs.iter().filter_map(|p| p.projection.outputs.get(i)).cloned();
        as_one_column(values.collect()).map(|(_, column)| column).map_err(|e| {
            // default: there is a name for each column
            let name = first.projection.names.get(i).map_or("", String::as_str);
            e.at(format_args!("{what}: column {} ({name})", i + 1))
        })
    };
    (0..count).map(column).collect()
}

/// Makes a query show values of these types.
///
/// # Errors
/// `InvalidQuery` when a constant is none of its column's type.
pub(crate) fn show_as(program: &mut Program, columns: &[ColumnType]) -> Result<()> {
    let outputs = std::mem::take(&mut program.projection.outputs);
    for (output, ColumnType { data_type, labels }) in outputs.into_iter().zip(columns) {
        let output = match data_type {
            DataType::Text => label_as_text(output)?,
            _ => output,
        };
        let output = convert(output, *data_type)?.with_labels(labels.as_ref());
        program.projection.outputs.push(output);
    }
    Ok(())
}
