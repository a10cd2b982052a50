//! Tables of another database that a statement reads beside those of its own.
//!
//! A session has temporary tables in a database of its own. A statement that reads both runs on one
//! of them, its home; what is of the other goes by names with the schema before them:
//!
//! ```text
//! home is the database       t                temp.u
//! home is the session's      u                main.t
//! ```
//!
//! A view means what it meant where it is defined. Where one of the other database is read, the
//! names in it change sides.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_query::View;

use crate::catalog::defined_view::DefinedView;
use crate::catalog::names::ReadNames;
use crate::introspection::{MAIN_SCHEMA, TEMPORARY_SCHEMA};
use crate::{Result, Scope, Snapshot};

/// What stands before the names of temporary tables.
pub(crate) const TEMPORARY_PREFIX: &str = "temp.";

/// What stands before the names of other tables.
const MAIN_PREFIX: &str = "main.";

/// Tables and views of another database, as of one moment.
#[derive(Clone, Debug)]
pub struct OtherTables {
    is_temporary: bool,
    snapshot: Snapshot,
    /// What views of the other database read of this one.
    back: BTreeSet<String>,
}

/// True for a name of a table in another database, where none of this one has it.
pub(crate) fn is_elsewhere(name: &str) -> bool {
    name.starts_with(TEMPORARY_PREFIX) || name.starts_with(MAIN_PREFIX)
}

impl OtherTables {
    /// What a statement that runs on `home` reads of `other`, of which it names tables with the
    /// schema before; that of a session's temporary tables, or the one of all.
    ///
    /// # Errors
    /// As for [`Scope::snapshot_of`].
    pub fn new(
        home: &dyn Scope,
        other: &dyn Scope,
        is_temporary: bool,
        names: &BTreeSet<String>,
    ) -> Result<Self> {
        let (prefix, home_prefix) = prefixes(is_temporary);
        let is_other = |name: &&String| name.starts_with(prefix);
        let own = names.iter().filter(|name| !is_other(name)).cloned().collect();
        // What views of its own read of the other.
        let read = home.snapshot_of(BTreeSet::new())?.names_read(own).tables;
        let named = names.iter().chain(&read).filter_map(|name| name.strip_prefix(prefix));
        let named: BTreeSet<String> = named.map(str::to_owned).collect();
        let found = other.snapshot_of(BTreeSet::new())?.names_read(named.clone());
        let back = found.tables.iter().filter_map(|name| name.strip_prefix(home_prefix));
        let said = names.iter().filter_map(|name| name.strip_prefix(home_prefix));
        let back = back.chain(said).map(str::to_owned).collect();
        // Not all that is named is there, which reading says.
        let is_there = |name: &String| other.has_name(name).unwrap_or(true); // default: as above
        let named = named.into_iter().filter(is_there).collect();
        Ok(Self { is_temporary, snapshot: other.snapshot_of(named)?, back })
    }

    /// What views among them read of the database that they are read beside.
    pub(crate) fn back(&self) -> impl Iterator<Item = &String> {
        self.back.iter()
    }

    /// Some names, and what views among these tables read of the database beside them.
    #[must_use]
    pub fn with_back(&self, names: BTreeSet<String>) -> BTreeSet<String> {
        names.into_iter().chain(self.back.iter().cloned()).collect()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The schema that they are in.
    pub(crate) fn schema(&self) -> &'static str {
        if self.is_temporary { TEMPORARY_SCHEMA } else { MAIN_SCHEMA }
    }

    /// The schema of the tables beside which they are read.
    pub(crate) fn home_schema(&self) -> &'static str {
        if self.is_temporary { MAIN_SCHEMA } else { TEMPORARY_SCHEMA }
    }

    /// The name by which they know a table that goes by another one here.
    pub(crate) fn own_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(prefixes(self.is_temporary).0)
    }

    /// What is read where some names are: here, and of these tables by their own names.
    pub(crate) fn names_read(
        &self,
        home: &Snapshot,
        names: BTreeSet<String>,
    ) -> (ReadNames, ReadNames) {
        // Those that say that they are here.
        let said = names.iter().filter_map(|name| self.name_at_home(name));
        let said = home.names_read(said.map(str::to_owned).collect());
        let mut ours = home.names_read(names);
        ours.tables.extend(said.tables);
        ours.views.extend(said.views);
        let theirs = ours.tables.iter().filter_map(|name| self.own_name(name));
        let theirs = theirs.map(str::to_owned).collect();
        let mut theirs = self.snapshot.names_read(theirs);
        let home_prefix = prefixes(self.is_temporary).1;
        let back = theirs.tables.iter().filter_map(|name| name.strip_prefix(home_prefix));
        let back = home.names_read(back.map(str::to_owned).collect());
        ours.tables.extend(back.tables);
        ours.views.extend(back.views);
        let is_ours =
            |name: &String| self.own_name(name).is_none() && self.name_at_home(name).is_none();
        ours.tables.retain(is_ours);
        theirs.tables.retain(|name| !name.starts_with(home_prefix));
        (ours, theirs)
    }

    /// The name at home of a table that says that it is there.
    pub(crate) fn name_at_home<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(prefixes(self.is_temporary).1)
    }

    /// The name by which a table of theirs goes here.
    pub(crate) fn name_here(&self, name: &str) -> String {
        let (prefix, home_prefix) = prefixes(self.is_temporary);
        match name.strip_prefix(home_prefix) {
            Some(own) => own.to_owned(),
            None => format!("{prefix}{name}"),
        }
    }

    /// A view of theirs, as it is read here.
    pub(crate) fn view_here(&self, view: &DefinedView) -> Arc<View> {
        Arc::new(view.view.renamed(&mut |name| Some(self.name_here(name))))
    }
}

/// What stands before names of the other tables, and of those of the home.
fn prefixes(is_temporary: bool) -> (&'static str, &'static str) {
    if is_temporary { (TEMPORARY_PREFIX, MAIN_PREFIX) } else { (MAIN_PREFIX, TEMPORARY_PREFIX) }
}
