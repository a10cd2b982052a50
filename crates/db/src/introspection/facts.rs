//! What system tables are made of.

use std::sync::Arc;

use esker_format::schema::{Index, Profile};
use esker_format::{DataType, Field, Schema, ValueRef};
use esker_query::{Activity, Semantics};
use esker_table::Table as TableCore;

use super::definition;
use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::{MAIN_SCHEMA, Names, TEMPORARY_SCHEMA};
use crate::catalog::rollup_history::{self, kept_text};
use crate::engine::Engine;
use crate::engine_handle::EngineHandle;
use crate::erasure::{ERASURES, ErasureInfo, Record};
use crate::{Error, ErrorKind, Result, Snapshot};

/// What the snapshot of a statement sees.
pub(super) struct Facts<'s> {
    snapshot: &'s Snapshot,
    pub(super) semantics: Semantics,
    options: &'s esker_query::Options,
}

/// A view.
pub(super) struct ViewFacts {
    /// The schema that it is in.
    pub(super) place: String,
    pub(super) name: String,
    pub(super) view: Arc<DefinedView>,
    /// For how long its history is kept, where it has one.
    pub(super) retention: Option<String>,
}

/// A table or bucket.
pub(super) struct TableFacts {
    /// The schema that it is in.
    pub(super) place: String,
    /// Its name there.
    pub(super) name: String,
    /// The one name by which it is known.
    pub(super) full: String,
    pub(super) schema: Arc<Schema>,
    pub(super) core: Arc<TableCore>,
}

impl<'s> Facts<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, options: &'s esker_query::Options) -> Self {
        Self { snapshot, semantics: options.inputs.semantics, options }
    }

    /// What goes on beside the statement, where anybody tells; `name` is what is asked for.
    ///
    /// # Errors
    /// `InvalidInput` where it may not know.
    pub(super) fn activity(&self, name: &str) -> Result<Option<&'s dyn Activity>> {
        match &self.options.activity {
            None if !self.options.reaches_files => {
                Err(Error::invalid(format!("{name} is for administrators")))
            }
            activity => Ok(activity.as_deref()),
        }
    }

    /// What is seen, each with the schema of its tables: those of all before those of a session.
    fn snapshots(&self) -> Vec<(&'static str, &'s Snapshot)> {
        let Some(others) = self.snapshot.others() else {
            return vec![(MAIN_SCHEMA, self.snapshot)];
        };
        let home = (others.home_schema(), self.snapshot);
        let mut all = vec![home, (others.schema(), others.snapshot())];
        all.sort_by_key(|(schema, _)| *schema);
        all
    }

    /// The schemas that there are tables in.
    pub(super) fn schemas(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (schema, snapshot) in self.snapshots() {
            all.push(schema.to_owned());
            all.extend(snapshot.names().namespaces.keys().cloned());
        }
        all
    }

    /// The tables and buckets, by name.
    pub(super) fn tables(&self) -> Result<Vec<TableFacts>> {
        let mut all = Vec::new();
        for (place, snapshot) in self.snapshots() {
            let names = snapshot.names();
            for (full, core) in names.iter() {
                let Placed { place, name } = placed(&names, place, full);
                let (full, core) = (full.clone(), Arc::clone(core));
                let schema = snapshot.schema_of(&core)?;
                all.push(TableFacts { place, name, full, schema, core });
            }
        }
        Ok(all)
    }

    /// The views, by name.
    pub(super) fn views(&self) -> Result<Vec<ViewFacts>> {
        let mut all = Vec::new();
        for (place, snapshot) in self.snapshots() {
            let names = snapshot.names();
            for (full, view) in &names.views {
                let Placed { place, name } = placed(&names, place, full);
                let history = rollup_history::of(&names, full).filter(|_| view.stored.is_rollup);
                let retention = history.map(|core| kept_text(&core.schema())).transpose()?;
                all.push(ViewFacts { place, name, view: Arc::clone(view), retention });
            }
        }
        Ok(all)
    }

    /// The engine of the database, and behind it that of what a session has.
    pub(super) fn engines(&self) -> Vec<(&'static str, &'s EngineHandle)> {
        let engines = self.snapshots().into_iter();
        engines.map(|(schema, snapshot)| (schema, snapshot.engine())).collect()
    }

    /// The erasures of the database, by number; a session's own tables have none.
    pub(super) fn erasures(&self) -> Result<Vec<ErasureInfo>> {
        match self.snapshots().first() {
            Some((_, snapshot)) => erasures(snapshot, self.engine()),
            None => Ok(Vec::new()),
        }
    }

    /// The engine that has a table.
    pub(super) fn engine_of(&self, table: &TableFacts) -> &'s Engine {
        let all = self.engines().into_iter();
        let own = all.filter(|(schema, _)| (*schema == TEMPORARY_SCHEMA) == table.is_temporary());
        // default: there is one at least
        own.map(|(_, engine)| -> &Engine { engine }).next().unwrap_or_else(|| self.engine())
    }

    pub(super) fn engine(&self) -> &'s Engine {
        let main = self.snapshots().into_iter().map(|(_, snapshot)| snapshot.engine()).next();
        // default: there is one at least
        main.unwrap_or(self.snapshot.engine())
    }
}

/// The erasures that a snapshot sees, by number.
pub(crate) fn erasures(snapshot: &Snapshot, engine: &Engine) -> Result<Vec<ErasureInfo>> {
    let bucket = match snapshot.bucket(ERASURES) {
        // A table that is called so has none.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
            return Ok(Vec::new());
        }
        bucket => bucket?,
    };
    let mut all = Vec::new();
    for entry in bucket.iter() {
        let entry = entry?;
        // An entry that is no erasure is left out.
        if let Ok(record) = Record::decode(entry.key(), entry.value()) {
            all.push(engine.erasure_info(record));
        }
    }
    Ok(all)
}

impl TableFacts {
    /// What it is called in lists of tables.
    pub(super) fn kind(&self) -> &'static str {
        match self.schema.profile() {
            Profile::Bucket => "bucket",
            _ if self.is_temporary() => "temporary table",
            Profile::Stream => "stream",
            Profile::Table => "table",
        }
    }

    /// Whether it is one of a session's own.
    pub(super) fn is_temporary(&self) -> bool {
        self.place == TEMPORARY_SCHEMA
    }

    /// The name of the constraint that its key is.
    pub(super) fn key_name(&self) -> String {
        format!("{}_pkey", self.name)
    }

    /// The statement that makes it; `None` where SQL has none.
    pub(super) fn sql(&self) -> Result<Option<String>> {
        let sql = definition::create_table(&self.full, &self.schema)?;
        Ok(sql.map(|sql| in_schema(&self.place, sql)))
    }

    /// The unique indexes that are constraints of SQL: on fields, of all rows.
    pub(super) fn uniques(&self) -> impl Iterator<Item = &Index> {
        self.schema.indexes().iter().filter(|index| index.unique && !index.is_computed())
    }

    /// The place of a field in the key, from 1 on.
    pub(super) fn key_position(&self, position: usize) -> Option<usize> {
        self.schema.key_positions().iter().position(|key| *key == position).map(|at| at + 1)
    }
}

/// The schema of a table or view, and its name there.
pub(super) struct Placed {
    pub(super) place: String,
    pub(super) name: String,
}

/// Where what has a name is, of all or of a session's.
pub(super) fn placed(names: &Names, place: &str, name: &str) -> Placed {
    // default: without a namespace before it a name is that of the place
    let (place, name) = names.in_namespace(name).unwrap_or((place, name));
    Placed { place: place.to_owned(), name: name.to_owned() }
}

/// The statement that makes a table or view that is in a schema: temporary ones are made otherwise.
pub(super) fn in_schema(schema: &str, sql: String) -> String {
    match sql.strip_prefix("CREATE ") {
        Some(rest) if schema == TEMPORARY_SCHEMA => format!("CREATE TEMP {rest}"),
        _ => sql,
    }
}

/// What the type of a field has of digits, in the words of the standard.
#[derive(Default)]
pub(super) struct Digits {
    pub(super) precision: Option<i64>,
    pub(super) radix: Option<i64>,
    pub(super) scale: Option<i64>,
}

impl Digits {
    pub(super) fn of(data_type: DataType) -> Self {
        let bits = |bits: i64| (Some(bits), Some(2), Some(0));
        let (precision, radix, scale) = match data_type {
            DataType::I8 | DataType::U8 => bits(8),
            DataType::I16 | DataType::U16 => bits(16),
            DataType::I32 | DataType::U32 => bits(32),
            DataType::I64 | DataType::U64 => bits(64),
            DataType::F32 => (Some(24), Some(2), None),
            DataType::F64 => (Some(53), Some(2), None),
            DataType::Decimal { precision, scale } => {
                (Some(precision.into()), Some(10), Some(scale.into()))
            }
            _ => (None, None, None),
        };
        Self { precision, radix, scale }
    }
}

/// The name of a type without its digits and labels; `ARRAY` for lists.
pub(super) fn type_name(field: &Field) -> String {
    if field.data_type.element().is_some() {
        return "ARRAY".to_owned();
    }
    let whole = field.data_type.to_string();
    let name = whole.split('(').next();
    // default: a type without digits
    name.unwrap_or(&whole).to_owned()
}

pub(super) fn yes_or_no(yes: bool) -> ValueRef<'static> {
    ValueRef::Text(if yes { "YES" } else { "NO" })
}

pub(super) fn optional_text(text: Option<&str>) -> ValueRef<'_> {
    // default: what is not known is NULL
    text.map_or(ValueRef::Null, ValueRef::Text)
}

pub(super) fn optional(number: Option<i64>) -> ValueRef<'static> {
    // default: what is not known is NULL
    number.map_or(ValueRef::Null, ValueRef::Int)
}

/// A count or a number of bytes, as integers of SQL have it.
pub(super) fn number(count: impl TryInto<i64>) -> Result<ValueRef<'static>> {
    let too_many = |_| Error::corrupt("a figure is greater than integers of 64 bits");
    count.try_into().map(ValueRef::Int).map_err(too_many)
}
