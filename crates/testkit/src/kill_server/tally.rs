//! What a campaign has seen.

use std::collections::BTreeMap;

use super::line::{Counts, Line};

/// What was answered, by its name, and what became of writes with idempotency keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that were answered.
    pub answered: BTreeMap<&'static str, u64>,
    /// Servers that were killed under load.
    pub kills: u64,
    /// Servers that were killed while they opened the database.
    pub early: u64,
    /// Writes that were sent again with the same key.
    pub retried: u64,
    /// Keys that were refused with another body.
    pub refused: u64,
    /// Transactions that another client was quicker than.
    pub conflicts: u64,
    /// EXECs that answered null, and changed nothing.
    pub nulls: u64,
    /// Keys that had to be there, and were, after a kill.
    pub there: u64,
    /// Keys that had to be gone, and were, after a kill.
    pub gone: u64,
}

impl Tally {
    /// Takes what a client has counted.
    pub(super) fn take(&mut self, line: &mut Line) {
        let counts = std::mem::take(&mut line.counts);
        let Counts { answered, retried, refused, conflicts, nulls, there, gone } = counts;
        *self.answered.entry(line.kind.name()).or_default() += answered;
        self.retried += retried;
        self.refused += refused;
        self.conflicts += conflicts;
        self.nulls += nulls;
        self.there += there;
        self.gone += gone;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kills, early, retried, refused, conflicts, nulls, there, gone, .. } = self;
        writeln!(f, "{kills} kills under load, {early} while opening; answered:")?;
        for (name, count) in &self.answered {
            writeln!(f, "  {count:>9} {name}")?;
        }
        writeln!(f, "{retried} writes sent again with their key, each done once;")?;
        writeln!(f, "{refused} keys with another body, each refused;")?;
        writeln!(f, "{nulls} EXECs that answered null, and changed nothing;")?;
        writeln!(f, "keys with an end or without: {there} times there, {gone} times gone;")?;
        write!(f, "{conflicts} conflicts; lost 0, half 0, twice 0")
    }
}
