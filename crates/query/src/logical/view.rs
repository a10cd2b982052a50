//! Views in place of tables: what one means is in [`crate::view`].

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use esker_format::{FieldId, Schema};

use super::named::NamedQuery;
use super::{Context, Resolved, Scope, Tables};
use crate::model::{Expr, Parameter};
use crate::source::SourceRef;
use crate::source::renamed::Renamed;
use crate::view::{Seen, VIEW_DEPTH_MAX, View, ViewInput};
use crate::{Error, Options, Query, Result, ResultColumn, Source};

impl<'a> Context<'a, '_> {
    /// A view as a query by a name.
    pub(super) fn view(&self, name: &str) -> Option<Rc<NamedQuery>> {
        let view = self.tables.view(name)?;
        let around = self.in_view.borrow();
        let count = match around.as_ref().and_then(|around| around.sees(name)) {
            Some(Seen::Columns(count)) => count,
            _ => view.columns.len(),
        };
        let mut known = self.views.borrow_mut();
        let is_it = |one: &&Rc<NamedQuery>| one.is_view(name, count);
        if let Some(known) = known.iter().find(is_it) {
            return Some(Rc::clone(known));
        }
        let named =
            Rc::new(NamedQuery::of_view(name, view, (count, self.options.inputs.semantics)));
        known.push(Rc::clone(&named));
        Some(named)
    }

    /// A table, with the fields that the query at hand sees: a view does not see those that were
    /// added after it was made.
    pub(super) fn table(&self, name: &str) -> Result<(SourceRef<'a>, Schema)> {
        let source = self.tables.table(name)?;
        let schema = source.schema();
        let around = self.in_view.borrow();
        let Some(Seen::FieldsThrough(last)) = around.as_ref().and_then(|view| view.sees(name))
        else {
            return Ok((SourceRef::Borrowed(source), schema.clone()));
        };
        if schema.fields().iter().all(|field| field.id <= last) {
            return Ok((SourceRef::Borrowed(source), schema.clone()));
        }
        let schema = schema.with_fields_through(last);
        let source = Renamed::new(schema.clone(), SourceRef::Borrowed(source));
        Ok((SourceRef::Shared(Arc::new(source) as Arc<_>), schema))
    }
}

impl View {
    /// A view of a query over some tables and views, with other names for its first columns.
    ///
    /// # Errors
    /// `InvalidQuery` when the query cannot be answered, two of its columns have one name, it has
    /// parameters or takes values of sequences, or views lie too deep in each other.
    pub fn new(
        mut query: Query,
        columns: &[String],
        tables: &dyn Tables,
        options: &Options,
    ) -> Result<Self> {
        refuse_unfit(&query)?;
        if query.looks_up() {
            query = super::meant(&query, tables)?;
        }
        // What is pushed into a view goes by names.
        let is_one = query.set.is_none() && query.values.is_empty() && query.call.is_none();
        let shows_all = query.select.is_empty()
            || query.select.iter().any(|i| matches!(i.expr, Expr::AllFields(_)));
        if is_one && shows_all && query.first_relation().is_some() {
            query.select = Scope::of(tables, options).names(&query)?.expanded(&query.select)?;
        }
        let found = Resolved::look(&query, tables, options)?.columns()?;
        let columns = named(found, columns)?;
        let inputs = inputs_of(&query, tables)?;
        let semantics = options.inputs.semantics;
        Ok(Self { query, columns, semantics, inputs })
    }

    /// Whether it reads a field of a table by its name: what it means depends on that. The table
    /// may be looked at as it will be.
    ///
    /// A field of the same name is put beside it. Where the name is read, it may mean two fields,
    /// which is an error; where all fields are shown, there is one more.
    #[must_use]
    pub fn reads_field(
        &self,
        tables: &dyn Tables,
        (table, field): (&str, &str),
        options: &Options,
    ) -> bool {
        let Ok(source) = tables.table(table) else { return true };
        let schema = source.schema();
        let Some(position) = schema.position(field) else { return false };
        let id = schema.fields().get(position).map(|field| field.id);
        if let Some(Seen::FieldsThrough(last)) = self.sees(table)
            && id > Some(last)
        {
            return false;
        }
        if self.query.shows_all_of(table) {
            return true;
        }
        let twin = Renamed::new(schema.with_twin_of(position), SourceRef::Borrowed(source));
        let twin = Twin { tables, table, twin };
        !self.fits(&twin, options)
    }

    /// Whether its query still has the columns that it had.
    #[must_use]
    pub fn fits(&self, tables: &dyn Tables, options: &Options) -> bool {
        let mut options = options.clone();
        options.inputs.semantics = self.semantics;
        // Read by a name: it sees what it saw.
        let alone = Alone { tables, view: Arc::new(self.clone()) };
        let query = Query::table(ALONE);
        let found = Resolved::look(&query, &alone, &options).and_then(|look| look.columns());
        found.is_ok_and(|found| found == self.columns)
    }
}

/// What no table is called.
const ALONE: &str = "view at hand";

/// Tables, and a view by a name of its own.
struct Alone<'t> {
    tables: &'t dyn Tables,
    view: Arc<View>,
}

impl Tables for Alone<'_> {
    fn table(&self, name: &str) -> Result<&dyn Source> {
        self.tables.table(name)
    }

    fn view(&self, name: &str) -> Option<&Arc<View>> {
        if name == ALONE { Some(&self.view) } else { self.tables.view(name) }
    }

    fn has_views(&self) -> bool {
        true
    }
}

/// Tables, of which one has a field twice.
struct Twin<'t> {
    tables: &'t dyn Tables,
    table: &'t str,
    twin: Renamed<'t>,
}

impl Tables for Twin<'_> {
    fn table(&self, name: &str) -> Result<&dyn Source> {
        if name == self.table { Ok(&self.twin) } else { self.tables.table(name) }
    }

    fn view(&self, name: &str) -> Option<&Arc<View>> {
        self.tables.view(name)
    }

    fn has_views(&self) -> bool {
        self.tables.has_views()
    }
}

/// Refuses what has another value each time that it is read.
fn refuse_unfit(query: &Query) -> Result<()> {
    if let Some(Parameter { name, .. }) = query.first_parameter() {
        return Err(Error::invalid(format!("a view has no parameters, found {name}")));
    }
    if query.takes_values() {
        return Err(Error::invalid("a view takes no values of sequences: expected no nextval"));
    }
    Ok(())
}

/// Columns, of which the first have other names.
fn named(mut found: Vec<ResultColumn>, names: &[String]) -> Result<Vec<ResultColumn>> {
    let (count, wanted) = (found.len(), names.len());
    if wanted > count {
        return Err(Error::invalid(format!(
            "names for {wanted} columns, of which there are {count}"
        )));
    }
    found.iter_mut().zip(names).for_each(|(column, name)| column.name.clone_from(name));
    for (i, column) in found.iter().enumerate() {
        let is_same = |other: &ResultColumn| other.name.eq_ignore_ascii_case(&column.name);
        if found.iter().take(i).any(is_same) {
            let name = &column.name;
            let message = format!("two columns are called {name:?}; give one another name with AS");
            return Err(Error::invalid(message));
        }
    }
    Ok(found)
}

/// What a query reads, and how much of that there is.
fn inputs_of(query: &Query, tables: &dyn Tables) -> Result<Vec<ViewInput>> {
    let mut names = BTreeSet::new();
    query.collect_tables(&mut names);
    let mut inputs = Vec::with_capacity(names.len());
    for name in names {
        let seen = match tables.view(&name) {
            Some(view) => {
                if depth(view, tables, 1) >= VIEW_DEPTH_MAX {
                    let message = format!(
                        "view {name:?}: views lie too deep in each other: at most {VIEW_DEPTH_MAX}"
                    );
                    return Err(Error::invalid(message));
                }
                Seen::Columns(view.columns.len())
            }
            None => {
                let fields = tables.table(&name)?.schema().fields();
                let last = fields.iter().map(|field| field.id).max();
                // default: a table without fields has none that is seen
                Seen::FieldsThrough(last.unwrap_or(FieldId(0)))
            }
        };
        inputs.push(ViewInput { name, seen });
    }
    Ok(inputs)
}

/// How many views lie in each other, counted no further than is allowed.
fn depth(view: &View, tables: &dyn Tables, level: usize) -> usize {
    if level > VIEW_DEPTH_MAX {
        return level;
    }
    let within = view.inputs.iter().filter_map(|input| tables.view(&input.name));
    // default: one that reads tables only is the last
    within.map(|one| depth(one, tables, level + 1)).max().unwrap_or(level)
}
