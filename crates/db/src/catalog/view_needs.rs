//! What views read, and what may not change while they read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use esker_format::Schema;
use esker_format::schema::Alteration;
use esker_log::sabotage::Bug;
use esker_query::{NoRows, Options, Query, Source, Tables, View};
use esker_table::Table as TableCore;

use crate::catalog::defined_view::ViewKind;
use crate::catalog::looked_up;
use crate::catalog::names::{Names, ReadNames};
use crate::{Error, Result};

/// Tables and views of another database.
pub(crate) type OtherSchemas = Arc<dyn Tables + Send + Sync>;

/// Tables by what they are, without rows, and views: enough to look at queries.
pub(crate) struct TableSchemas {
    tables: BTreeMap<String, NoRows>,
    views: BTreeMap<String, Arc<View>>,
    /// Those of other databases that temporary views read.
    others: Vec<OtherSchemas>,
}

impl TableSchemas {
    /// What is read where some names are; `schema_of` tells what a table is.
    ///
    /// # Errors
    /// `NotFound` for a name that nothing has.
    pub fn new(
        names: &Names,
        wanted: BTreeSet<String>,
        schema_of: &dyn Fn(&Arc<TableCore>) -> Result<Arc<Schema>>,
    ) -> Result<Self> {
        Self::beside(names, wanted, schema_of, None)
    }

    /// The same, with some of another database.
    fn beside(
        names: &Names,
        wanted: BTreeSet<String>,
        schema_of: SchemaOf<'_>,
        others: Option<OtherSchemas>,
    ) -> Result<Self> {
        let ReadNames { tables, views } = names.read_by(wanted);
        let mut others: Vec<_> = others.into_iter().collect();
        others.extend(views.values().filter_map(|view| view.others.clone()));
        let is_other = |name: &&String| {
            let is_of = |other: &OtherSchemas| other.table(name).is_ok();
            names.contains_key(*name) || !others.iter().any(is_of)
        };
        let look = |name: &String| {
            let core = names.get(name).ok_or_else(|| crate::engine::no_table(name, names))?;
            Ok((name.clone(), NoRows::new((*schema_of(core)?).clone())))
        };
        let tables = tables.iter().filter(is_other).map(look).collect::<Result<_>>()?;
        let views = views.into_iter().map(|(name, view)| (name, Arc::clone(&view.view)));
        Ok(Self { tables, views: views.collect(), others })
    }

    /// Tables and views that are known.
    pub fn known(tables: BTreeMap<String, NoRows>, views: BTreeMap<String, Arc<View>>) -> Self {
        Self { tables, views, others: Vec::new() }
    }

    /// The same of what a query reads.
    ///
    /// # Errors
    /// As [`TableSchemas::new`].
    pub fn of_query(
        names: &Names,
        query: &Query,
        schema_of: SchemaOf<'_>,
        others: Option<OtherSchemas>,
    ) -> Result<Self> {
        let mut wanted = BTreeSet::new();
        query.collect_tables(&mut wanted);
        Self::beside(names, wanted, schema_of, others)
    }

    /// The same where a table is another.
    fn with_table(&mut self, name: &str, schema: &Schema) {
        self.tables.insert(name.to_owned(), NoRows::new(schema.clone()));
    }
}

impl Tables for TableSchemas {
    fn table(&self, name: &str) -> esker_query::Result<&dyn Source> {
        if let Some(table) = self.tables.get(name) {
            return Ok(table);
        }
        let found = self.others.iter().find_map(|other| other.table(name).ok());
        found.ok_or_else(|| esker_query::Error::invalid(format!("no table {name:?}")))
    }

    fn view(&self, name: &str) -> Option<&Arc<View>> {
        let others = || self.others.iter().find_map(|other| other.view(name));
        self.views.get(name).or_else(others)
    }

    fn has_views(&self) -> bool {
        !self.views.is_empty() || self.others.iter().any(|other| other.has_views())
    }
}

/// Refuses that a table or view goes, or gets another name, while views read it.
///
/// # Errors
/// `InvalidInput` naming the views.
pub(crate) fn refuse_read(names: &Names, kind: &str, name: &str, ends: bool) -> Result<()> {
    let readers: Vec<String> =
        names.readers_of(name).map(|(reader, _)| format!("{reader:?}")).collect();
    if readers.is_empty() {
        return Ok(());
    }
    let mut kinds = names.readers_of(name).map(|(_, view)| view.kind());
    let (views, verb, those) = match (readers.len(), kinds.next()) {
        (1, Some(ViewKind::Rollup)) => ("materialized view", "reads", "that"),
        (1, _) => ("view", "reads", "that"),
        _ => ("views", "read", "them"),
    };
    let cascade = if ends { ", or DROP … CASCADE" } else { "" };
    let way = format!("; drop {those} before{cascade}");
    let readers = readers.join(", ");
    Err(Error::invalid(format!("{kind} {name:?}: {views} {readers} {verb} it{way}")))
}

/// A table before and after some changes.
pub(crate) struct Altered<'a> {
    pub name: &'a str,
    pub before: &'a Schema,
    pub after: &'a Schema,
    pub alterations: &'a [Alteration],
}

/// A view that needs what changes.
pub(crate) struct Needed {
    pub view: String,
    /// The field; `None` where the view could not be read for another reason.
    field: Option<String>,
}

/// Tells what a table is.
type SchemaOf<'a> = &'a dyn Fn(&Arc<TableCore>) -> Result<Arc<Schema>>;

impl Altered<'_> {
    /// Refuses changes of fields that a view reads.
    ///
    /// # Errors
    /// `InvalidInput` naming the field and the view.
    pub fn refuse_needed(
        &self,
        names: &Names,
        options: &Options,
        schema_of: SchemaOf<'_>,
    ) -> Result<()> {
        looked_up::refuse_changed(names, (self.name, self.after), schema_of)?;
        let Some(Needed { view, field }) = self.needed(names, options, schema_of)? else {
            return Ok(());
        };
        let why = match field {
            Some(field) => format!("reads field {field:?}"),
            None => "could not be read any more".to_owned(),
        };
        let name = self.name;
        Err(Error::invalid(format!("table {name:?}: view {view:?} {why}; drop that before")))
    }

    /// The first view that needs what changes.
    ///
    /// # Errors
    /// What looking at a view fails with.
    pub fn needed(
        &self,
        names: &Names,
        options: &Options,
        schema_of: SchemaOf<'_>,
    ) -> Result<Option<Needed>> {
        for (reader, defined) in names.readers_of(self.name) {
            let wanted = BTreeSet::from([reader.clone()]);
            let mut tables = TableSchemas::new(names, wanted, schema_of)?;
            let needed = |field: Option<&String>| {
                Ok(Some(Needed { view: reader.clone(), field: field.cloned() }))
            };
            let view = &defined.view;
            tables.with_table(self.name, self.before);
            let reads = |tables: &TableSchemas, field: &&String| {
                view.reads_field(tables, (self.name, field), options)
            };
            if let Some(field) = self.taken().into_iter().find(|field| reads(&tables, field)) {
                return needed(Some(field));
            }
            tables.with_table(self.name, self.after);
            if let Some(field) = self.named_anew().into_iter().find(|field| reads(&tables, field)) {
                return needed(Some(field));
            }
            if !Bug::ViewBoundToDroppedColumn.is_planted() && !view.fits(&tables, options) {
                return needed(None);
            }
        }
        Ok(None)
    }

    /// The fields that go, or get another type or name.
    fn taken(&self) -> Vec<&String> {
        let mut taken = Vec::new();
        for alteration in self.alterations {
            match alteration {
                Alteration::DropField(_) if Bug::ViewBoundToDroppedColumn.is_planted() => {}
                Alteration::DropField(field)
                | Alteration::Widen { field, .. }
                | Alteration::RenameField { from: field, .. } => taken.push(field),
                _ => {}
            }
        }
        taken
    }

    /// The names that fields get which had others.
    fn named_anew(&self) -> Vec<&String> {
        let mut names = Vec::new();
        for alteration in self.alterations {
            if let Alteration::RenameField { to, .. } = alteration {
                names.push(to);
            }
        }
        names
    }
}
