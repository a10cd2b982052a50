//! Tables of two databases that one statement reads: of a session, and of all.

use std::collections::BTreeSet;

use crate::read::tables::{OtherTables, prefixes};
use crate::{Result, Scope};

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
        Ok(Self::of(other.snapshot_of(named)?, is_temporary, back))
    }
}
