//! What system tables are made of.

use std::sync::Arc;

use esker_format::schema::Index;
use esker_format::{DataType, Field, Schema, ValueRef};
use esker_query::Semantics;
use esker_table::Table as TableCore;

use super::definition;
use crate::catalog::defined_view::DefinedView;
use crate::engine::Engine;
use crate::{Error, Result, Snapshot};

/// What the snapshot of a statement sees.
pub(super) struct Facts<'s> {
    snapshot: &'s Snapshot,
    pub(super) semantics: Semantics,
}

/// A table or bucket.
pub(super) struct TableFacts {
    pub(super) name: String,
    pub(super) schema: Arc<Schema>,
    pub(super) core: Arc<TableCore>,
}

impl<'s> Facts<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, options: &esker_query::Options) -> Self {
        Self { snapshot, semantics: options.inputs.semantics }
    }

    /// The tables and buckets, by name.
    pub(super) fn tables(&self) -> Result<Vec<TableFacts>> {
        let table = |(name, core): (&String, &Arc<TableCore>)| {
            let schema = self.snapshot.schema_of(core)?;
            Ok(TableFacts { name: name.clone(), schema, core: Arc::clone(core) })
        };
        self.snapshot.names().iter().map(table).collect()
    }

    /// The views, by name.
    pub(super) fn views(&self) -> Vec<(String, Arc<DefinedView>)> {
        let names = self.snapshot.names();
        names.views.iter().map(|(name, view)| (name.clone(), Arc::clone(view))).collect()
    }

    pub(super) fn engine(&self) -> &Engine {
        self.snapshot.engine()
    }
}

impl TableFacts {
    /// What it is called in lists of tables.
    pub(super) fn kind(&self) -> &'static str {
        if self.schema.is_bucket() { "bucket" } else { "table" }
    }

    /// The name of the constraint that its key is.
    pub(super) fn key_name(&self) -> String {
        format!("{}_pkey", self.name)
    }

    /// The statement that makes it; `None` where SQL has none.
    pub(super) fn sql(&self) -> Result<Option<String>> {
        definition::create_table(&self.name, &self.schema)
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

/// The name of a type without its digits and labels.
pub(super) fn type_name(field: &Field) -> String {
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
