//! A view of the catalogue: as it is stored, and as queries read it.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use esker_format::{FieldId, ViewColumn};
use esker_query::{ResultColumn, Seen, Semantics, Tables, View};

use crate::{Error, Result};

/// A view.
pub(crate) struct DefinedView {
    pub stored: esker_format::View,
    pub view: Arc<View>,
    /// What it reads of another database, as that was when it was made: of a temporary view.
    pub others: Option<Arc<dyn Tables + Send + Sync>>,
}

/// What a name with a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    View,
    /// A view of the groups of one table: see [`esker_query::Rollup`].
    Rollup,
}

impl Display for ViewKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::View => "view",
            Self::Rollup => "materialized view",
        })
    }
}

impl DefinedView {
    /// A view that was made.
    ///
    /// # Errors
    /// `InvalidInput` when it cannot be stored.
    pub fn new(view: View, text: String) -> Result<Self> {
        let column = |column: &ResultColumn| ViewColumn {
            name: column.name.clone(),
            data_type: column.data_type,
        };
        let setting = |name: &str| -> Result<(String, String)> {
            Ok((name.to_owned(), view.semantics.value_of(name)?.to_owned()))
        };
        let input = |input: &esker_query::ViewInput| {
            let (name, too_many) = (input.name.clone(), |_| Error::invalid("too many columns"));
            let (is_view, through) = match input.seen {
                Seen::FieldsThrough(FieldId(last)) => (false, last.into()),
                Seen::Columns(count) => (true, u32::try_from(count).map_err(too_many)?),
            };
            Ok(esker_format::ViewInput { name, is_view, through })
        };
        let stored = esker_format::View {
            text,
            query: View::encode(&view.query)?,
            columns: view.columns.iter().map(column).collect(),
            settings: Semantics::MEANINGS.into_iter().map(setting).collect::<Result<_>>()?,
            inputs: view.inputs.iter().map(input).collect::<Result<_>>()?,
            comment: None,
            is_rollup: false,
        };
        Ok(Self { stored, view: Arc::new(view), others: None })
    }

    /// A view that is stored.
    ///
    /// # Errors
    /// `Corrupt` when it is not what a program like this one has stored.
    pub fn of_stored(stored: esker_format::View) -> Result<Self> {
        let column = |column: &ViewColumn| ResultColumn {
            name: column.name.clone(),
            data_type: column.data_type,
        };
        let mut semantics = Semantics::default();
        for (name, value) in &stored.settings {
            semantics = semantics.with(name, Some(value)).map_err(|e| unreadable(&e))?;
        }
        let input = |input: &esker_format::ViewInput| {
            let (name, through) = (input.name.clone(), input.through);
            let seen = match input.is_view {
                true => Seen::Columns(through as usize),
                false => {
                    let too_great =
                        |_| Error::corrupt(format!("a stored view: field {through} of {name:?}"));
                    Seen::FieldsThrough(FieldId(u16::try_from(through).map_err(too_great)?))
                }
            };
            Ok(esker_query::ViewInput { name, seen })
        };
        let view = View {
            query: View::decode(&stored.query)?,
            columns: stored.columns.iter().map(column).collect(),
            semantics,
            inputs: stored.inputs.iter().map(input).collect::<Result<_>>()?,
        };
        Ok(Self { stored, view: Arc::new(view), others: None })
    }
}

impl DefinedView {
    /// What it is.
    pub fn kind(&self) -> ViewKind {
        if self.stored.is_rollup { ViewKind::Rollup } else { ViewKind::View }
    }

    /// The same with other words about it.
    pub fn with_comment(&self, comment: Option<String>) -> Self {
        let stored = esker_format::View { comment, ..self.stored.clone() };
        Self { stored, view: Arc::clone(&self.view), others: self.others.clone() }
    }
}

fn unreadable(error: &esker_query::Error) -> Error {
    Error::corrupt(format!("a stored view: {error}"))
}
