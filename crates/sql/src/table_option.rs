//! Options of a table: `WITH (expires = 'field')`, `WITH (stream = 't', late = '1 day')`, and what
//! `ALTER TABLE … SET (…)` and `RESET (…)` change of them.

use esker_format::schema::{Alteration, ChangedRows, Changes, SchemaBuilder, StreamOption};
use sqlparser::ast;

use crate::statement::unsupported;
use crate::{Error, Result};

/// What the options are called.
const NAMES: &str = "expires, changes, changes_by, stream, late, ahead, rest, retention, \
                     retention_by, window or dedupe";

/// The options that a table is created with.
#[derive(Default)]
pub(crate) struct TableOptions {
    expires: Option<String>,
    stream: Option<String>,
    of_stream: Vec<StreamOption>,
    changes: Option<u64>,
    changes_by: Option<ChangedRows>,
    /// As they are written.
    text: String,
}

impl TableOptions {
    pub(crate) fn read(options: &ast::CreateTableOptions) -> Result<Self> {
        let options = match options {
            ast::CreateTableOptions::None => return Ok(Self::default()),
            ast::CreateTableOptions::With(options) => options,
            other => return Err(unsupported("these options of a table", other)),
        };
        let mut read = Self::default();
        let mut texts: Vec<String> = Vec::new();
        for (name, value) in pairs(options)? {
            let is_new = match name.to_ascii_lowercase().as_str() {
                "expires" => read.expires.replace(value).is_none(),
                "changes" => read.changes.replace(Changes::read_keep(&value)?).is_none(),
                "changes_by" => read.changes_by.replace(ChangedRows::read(&value)?).is_none(),
                "stream" => read.stream.replace(value).is_none(),
                _ => read.add(&name, &value)?,
            };
            if !is_new {
                return Err(Error::invalid(format!("option {name} of a table is given twice")));
            }
        }
        if let (None, Some(_)) = (read.changes, read.changes_by) {
            let message = "option changes_by of a table: expected changes = '1 day', too";
            return Err(Error::invalid(message));
        }
        if let (None, Some(_)) = (&read.stream, read.of_stream.first()) {
            return Err(Error::invalid(
                "options of a table: late, ahead, rest, retention, retention_by, window and dedupe \
                 are those of a stream: expected stream = 'field', too",
            ));
        }
        texts.extend(options.iter().map(ToString::to_string));
        read.text = format!(" WITH ({})", texts.join(", "));
        Ok(read)
    }

    /// Adds an option of a stream; false where there is one of its name.
    fn add(&mut self, name: &str, value: &str) -> Result<bool> {
        let option = stream_option(name, Some(value))?;
        let kind = std::mem::discriminant(&option);
        let is_new = self.of_stream.iter().all(|other| std::mem::discriminant(other) != kind);
        self.of_stream.push(option);
        Ok(is_new)
    }

    /// As they are written, behind the fields.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A schema with them.
    pub(crate) fn apply(self, mut builder: SchemaBuilder) -> SchemaBuilder {
        if let Some(field) = self.expires {
            builder = builder.expires_by(field);
        }
        if let Some(keep_us) = self.changes {
            let rows = self.changes_by.unwrap_or_default(); // default: as said there
            builder = builder.changes(Changes::Kept { keep_us, rows });
        }
        match self.stream {
            Some(time) => builder.stream(time, self.of_stream),
            None => builder,
        }
    }
}

/// What `SET (…)` changes.
pub(crate) fn set(options: &[ast::SqlOption]) -> Result<Vec<Alteration>> {
    let mut seen: Vec<String> = Vec::new();
    let set = |(name, value): (String, String)| {
        let lower = name.to_ascii_lowercase();
        if seen.contains(&lower) {
            return Err(Error::invalid(format!("option {name} of a table is given twice")));
        }
        seen.push(lower);
        change(&name, Some(value))
    };
    pairs(options)?.into_iter().map(set).collect()
}

/// What `RESET (…)` changes.
pub(crate) fn reset(names: &[ast::Ident]) -> Result<Vec<Alteration>> {
    names.iter().map(|name| change(&name.value, None)).collect()
}

fn change(name: &str, value: Option<String>) -> Result<Alteration> {
    match name.to_ascii_lowercase().as_str() {
        "expires" => Ok(Alteration::SetExpiry(value)),
        "changes" => {
            let keep_us = value.as_deref().map(Changes::read_keep).transpose()?;
            Ok(Alteration::SetChangesKept(keep_us))
        }
        "changes_by" => {
            let rows = value.as_deref().map(ChangedRows::read).transpose()?;
            Ok(Alteration::SetChangesBy(rows.unwrap_or_default())) // default: as when it is created
        }
        "stream" => Err(Error::invalid(
            "option stream of a table: whether it is a stream, and by which field, is said when it \
             is created",
        )),
        _ => stream_option(name, value.as_deref()).map(Alteration::SetStream),
    }
}

fn stream_option(name: &str, value: Option<&str>) -> Result<StreamOption> {
    if !StreamOption::is_known(name) {
        return Err(Error::invalid(format!("option {name} of a table: expected {NAMES}")));
    }
    Ok(StreamOption::read(name, value)?)
}

/// Names and values, at least one.
fn pairs(options: &[ast::SqlOption]) -> Result<Vec<(String, String)>> {
    if options.is_empty() {
        return Err(Error::invalid(format!("options of a table: expected {NAMES}")));
    }
    let pair = |option: &ast::SqlOption| {
        let invalid = || {
            let message = format!("option {option} of a table: expected name = 'value'");
            Error::invalid(format!("{message}, of {NAMES}"))
        };
        let ast::SqlOption::KeyValue { key, value } = option else { return Err(invalid()) };
        let value = match value {
            ast::Expr::Identifier(name) => Some(name.value.clone()),
            ast::Expr::Value(value) => value.value.clone().into_string(),
            _ => None,
        };
        Ok((key.value.clone(), value.ok_or_else(invalid)?))
    };
    options.iter().map(pair).collect()
}
