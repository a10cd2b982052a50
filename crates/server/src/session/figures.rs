//! Figures about a database and its tables, for people: what `esker info` shows.

use esker::{
    ClockInfo, Database, FileInfo, MemoryInfo, SequenceInfo, StreamInfo, TableInfo, ViewInfo,
    definition,
};
use esker_format::Schema;
use esker_import::schema_text;
use serde::{Deserialize, Serialize};

use crate::{Code, Error, Result};

/// Figures about a database. As JSON they have the names of these members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseFigures {
    /// The tables, by name.
    pub tables: Vec<TableInfo>,
    /// The sequences, by name.
    pub sequences: Vec<SequenceInfo>,
    /// The views, by name.
    #[serde(default)]
    pub views: Vec<ViewInfo>,
    /// Its files.
    pub files: FileInfo,
    /// The newest commit that reads see.
    pub visible_commit: u64,
    /// The commit of the newest checkpoint.
    pub checkpoint_commit: u64,
    /// Memory.
    pub memory: MemoryInfo,
    /// What it knows of time.
    #[serde(default)]
    pub clock: ClockInfo,
    /// Why the last background job failed, if it did.
    pub last_error: Option<String>,
}

impl DatabaseFigures {
    /// Those of a database, at this moment.
    ///
    /// # Errors
    /// When its directory cannot be listed.
    pub fn of(database: &Database) -> Result<Self> {
        let (info, files) = (database.info(), database.files()?);
        Ok(Self {
            tables: info.tables,
            sequences: info.sequences,
            views: database.views(),
            files,
            visible_commit: info.visible_commit,
            checkpoint_commit: info.checkpoint_commit,
            memory: info.memory,
            clock: database.clock(),
            last_error: info.last_error,
        })
    }
}

/// What a table is, and figures about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableFigures {
    /// The fields, the primary key and the indexes, each as a text.
    pub schema: Vec<String>,
    /// What holds besides: defaults, what is generated, comments, expiry and checks, each as a
    /// text.
    pub rules: Vec<String>,
    /// Figures.
    pub figures: TableInfo,
    /// What is known of a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamInfo>,
}

impl TableFigures {
    /// Those of a table, at this moment.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn of(database: &Database, table: &str) -> Result<Self> {
        let schema = database.table(table)?.schema();
        let figures = database.info().tables.into_iter().find(|found| found.name == table);
        let missing = || Error::new(Code::NotFound, format!("no figures for table {table:?}"));
        let stream = schema.stream().map(|_| database.stream(table).and_then(|s| s.info()));
        Ok(Self {
            schema: schema_text::parts(&schema),
            rules: rules(&schema)?,
            stream: stream.transpose()?,
            figures: figures.ok_or_else(missing)?,
        })
    }
}

/// Defaults, expiry and checks, in SQL's spelling.
fn rules(schema: &Schema) -> Result<Vec<String>> {
    let mut rules = Vec::new();
    for field in schema.fields() {
        let default = definition::default_text(field);
        rules.extend(default.map(|default| format!("default of {}: {default}", field.name)));
        let extra = definition::extra_text(field)?;
        rules.extend(extra.map(|extra| format!("{} is {extra}", field.name)));
        let comment = field.comment.iter();
        rules.extend(comment.map(|comment| format!("comment on {}: {comment}", field.name)));
    }
    rules.extend(schema.comment().map(|comment| format!("comment: {comment}")));
    if let Some(field) = schema.expiry_field() {
        rules.push(format!("rows expire by {}", field.name));
    }
    for (name, value) in schema.stream_options()? {
        rules.push(format!("{name}: {value}"));
    }
    for (name, condition) in definition::checks(schema)? {
        rules.push(format!("check {name}: {condition}"));
    }
    Ok(rules)
}
