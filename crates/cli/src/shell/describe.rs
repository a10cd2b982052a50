//! What there is: `\d` and its kind, `\l`, `\conninfo`.

use esker::{IndexKind, TEMPORARY_SCHEMA, TableInfo, ViewInfo};
use esker_format::Schema;
use esker_server::session::{AdminTask, DatabaseFigures, TableFigures, is_internal};

use super::session::{Next, Session, Target};
use crate::failure::{Failure, Result};
use crate::output::{plain_table, printable};
use crate::{Console, info, units};

impl Session {
    /// Figures about the database, without tables that only the server uses.
    fn figures(&mut self) -> Result<DatabaseFigures> {
        let mut figures = match &mut self.target {
            Target::Here(statements) => {
                let mut figures = DatabaseFigures::of(statements.database())?;
                if let Some(own) = statements.temporary() {
                    let named = |table: TableInfo| TableInfo {
                        name: format!("{TEMPORARY_SCHEMA}.{}", table.name),
                        ..table
                    };
                    figures.tables.extend(own.info().tables.into_iter().map(named));
                }
                figures
            }
            Target::There(remote) => remote.admin(&AdminTask::Info { table: None })?,
        };
        figures.tables.retain(|table| !is_internal(&table.name));
        Ok(figures)
    }

    /// Lists the tables, sequences and views, or the fields of one of them.
    pub(super) fn describe(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        if rest.is_empty() {
            info::show_tables(&self.figures()?, console)?;
            return Ok(Next::Line);
        }
        let name = name(rest);
        if let Some(view) = self.views()?.into_iter().find(|view| view.name == name) {
            info::show_view(&view, console)?;
            return Ok(Next::Line);
        }
        let figures = match &mut self.target {
            Target::Here(statements) => {
                // A transaction sees the tables that it has created and changed.
                if statements.is_in_transaction() || statements.has_temporary() {
                    let table = statements.scope().table(&name)?;
                    show_fields(&table.schema(), console)?;
                    return Ok(Next::Line);
                }
                TableFigures::of(statements.database(), &name)?
            }
            Target::There(remote) => remote.admin(&AdminTask::Info { table: Some(name) })?,
        };
        info::show_table(&figures, console)?;
        Ok(Next::Line)
    }

    /// The views; a transaction sees those that it has created.
    fn views(&mut self) -> Result<Vec<ViewInfo>> {
        match &mut self.target {
            Target::Here(statements) => Ok(statements.scope().views()?),
            Target::There(_) => Ok(self.figures()?.views),
        }
    }

    /// Lists the views.
    pub(super) fn list_views(&mut self, _: &str, console: &mut Console<'_>) -> Result<Next> {
        let views = self.views()?;
        match views.is_empty() {
            true => writeln!(console.out, "no views")?,
            false => info::list_views(&views, console)?,
        }
        Ok(Next::Line)
    }

    /// Lists the tables whose names have a part.
    pub(super) fn list_tables(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let mut figures = self.figures()?;
        figures.sequences.clear();
        figures.views.clear();
        figures.tables.retain(|table| table.name.contains(rest));
        if figures.tables.is_empty() && !rest.is_empty() {
            return Err(Failure::usage(format!("no table has {rest:?} in its name")));
        }
        info::show_tables(&figures, console)?;
        Ok(Next::Line)
    }

    /// Lists the indexes of all tables, or of one.
    pub(super) fn list_indexes(&mut self, rest: &str, console: &mut Console<'_>) -> Result<Next> {
        let (wanted, figures) = (name(rest), self.figures()?);
        let mut table = plain_table(["index", "table", "fields", "kind", "state"]);
        let mut count = 0;
        for of in figures.tables.iter().filter(|t| wanted.is_empty() || t.name == wanted) {
            for index in of.indexes.iter().filter(|index| index.kind != IndexKind::Rollup) {
                count += 1;
                let kind = if index.unique { "unique" } else { index.kind.name() };
                table.add_row([
                    printable(&index.name),
                    printable(&of.name),
                    printable(&info::parts_of(index)),
                    kind.to_owned(),
                    info::state_of(index),
                ]);
            }
        }
        match count {
            0 => writeln!(console.out, "no indexes")?,
            _ => writeln!(console.out, "{table}")?,
        }
        Ok(Next::Line)
    }

    /// Lists the sequences.
    pub(super) fn list_sequences(&mut self, _: &str, console: &mut Console<'_>) -> Result<Next> {
        let figures = self.figures()?;
        match figures.sequences.is_empty() {
            true => writeln!(console.out, "no sequences")?,
            false => info::list_sequences(&figures.sequences, console)?,
        }
        Ok(Next::Line)
    }

    /// Lists the databases that are where this one is.
    pub(super) fn list_databases(&mut self, _: &str, console: &mut Console<'_>) -> Result<Next> {
        let figures = self.figures()?;
        let mut table = plain_table(["database", "tables", "rows", "files"]);
        let rows = figures.tables.iter().map(|table| table.live_rows).sum();
        table.add_row([
            printable(&self.place.database),
            units::count(figures.tables.len() as u64),
            units::count(rows),
            units::bytes(figures.files.bytes),
        ]);
        writeln!(console.out, "{table}")?;
        if matches!(self.target, Target::There(_)) {
            writeln!(
                console.out,
                "ESKER_DATABASE names another; GET /v1/databases lists all that a server has"
            )?;
        }
        Ok(Next::Line)
    }

    /// Says what is connected.
    pub(super) fn connection(&mut self, _: &str, console: &mut Console<'_>) -> Result<Next> {
        writeln!(console.out, "{}", self.place)?;
        Ok(Next::Line)
    }
}

/// A name as it may be written in SQL.
pub(super) fn name(text: &str) -> String {
    let within = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    within.map_or_else(|| text.to_owned(), |text| text.replace("\"\"", "\""))
}

fn show_fields(schema: &Schema, console: &mut Console<'_>) -> Result<()> {
    let parts = esker_import::schema_text::parts(schema);
    Ok(writeln!(console.out, "  {}", parts.join(",\n  "))?)
}
