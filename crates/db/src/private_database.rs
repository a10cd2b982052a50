//! A database in memory beside another: what one session has for itself alone, its temporary tables
//! and views.
//!
//! ```text
//! Database ─── log, checkpoints, backups                     everybody
//!    │ memory limit, clock, settings
//!    └─► private database: no log, no files                  one session, gone with it
//! ```
//!
//! It is a database like any other in memory, so that transactions, definitions and scans are the
//! same. It has its memory from the arena of the database that it belongs to: both together stay
//! within one limit, and where memory is short the rows of that database are sealed.

use std::sync::Arc;

use esker_log::sabotage::Bug;

use crate::engine::Engine;
use crate::{Database, Options, Result};

/// Groups of a private database are sealed from here on: its tables are small.
const GROUP_BYTES_MAX: u64 = 16 << 20;

impl Database {
    /// A database in memory for one session, which takes its memory from this one, and is gone with
    /// its last handle. Nothing of it is logged or saved.
    ///
    /// # Errors
    /// `OverBudget` when there is no memory for it.
    #[doc(hidden)]
    pub fn private(&self) -> Result<Self> {
        if Bug::TempTableInTheLog.is_planted() {
            return Ok(self.clone());
        }
        Ok(Self::of(Engine::private(self.engine())?))
    }
}

impl Engine {
    /// An engine without files that takes its memory from another.
    fn private(of: &Arc<Self>) -> Result<Arc<Self>> {
        let options = Options {
            environment: Some(of.environment.clone()),
            read_only: false,
            group_bytes_max: of.options.group_bytes_max.min(GROUP_BYTES_MAX),
            on_commit: None,
            ..of.options.clone()
        };
        // default: a private database of a private one belongs to the same
        let of = of.memory_of.as_ref().unwrap_or(of);
        Self::in_memory_of(options, Some(Arc::clone(of)))
    }
}

#[cfg(test)]
mod tests {
    use esker_format::{DataType, Schema};

    use crate::{Database, ErrorKind, Options, Result};

    fn numbers(database: &Database) -> Result<crate::Table> {
        let schema = Schema::builder().field("n", DataType::I64).field("t", DataType::Text);
        database.create_table("t", schema.primary_key(["n"]).build()?)
    }

    #[test]
    fn it_has_its_own_tables_and_the_memory_of_the_other() -> Result<()> {
        let of = Options::new().memory_limit(64 << 20).memory()?;
        let before = of.info().memory.total;
        let private = of.private()?;
        let table = numbers(&private)?;
        table.insert(&[1i64.into(), "a".into()])?;
        assert!(of.table("t").is_err());
        assert!(of.info().memory.total > before);
        drop((table, private));
        assert!(of.info().memory.total <= before + (1 << 20));
        Ok(())
    }

    #[test]
    fn one_session_has_a_share_of_the_memory() -> Result<()> {
        let of = Options::new().memory_limit(64 << 20).memory()?;
        let private = of.private()?;
        let (table, text) = (numbers(&private)?, "x".repeat(1 << 20));
        let insert = |n: i64| table.insert(&[n.into(), text.as_str().into()]);
        let refused = (0..32).find_map(|n| insert(n).err()).expect("more than a quarter was taken");
        assert_eq!(refused.kind(), ErrorKind::OverBudget);
        assert!(refused.to_string().contains("Options::temporary_memory_limit"), "{refused}");
        assert!((14..20).contains(&table.count()?), "{} rows", table.count()?);
        numbers(&of)?.insert(&[1i64.into(), text.as_str().into()])?;
        private.truncate_table("t")?;
        table.insert(&[1i64.into(), "a".into()]).map(drop)
    }

    #[test]
    fn what_is_over_the_limit_of_both_is_refused() -> Result<()> {
        let of = Options::new().memory_limit(48 << 20).temporary_memory_limit(48 << 20).memory()?;
        let private = of.private()?;
        let (table, text) = (numbers(&private)?, "x".repeat(1 << 20));
        let mut refused = None;
        for n in 0..64i64 {
            if let Err(e) = table.insert(&[n.into(), text.as_str().into()]) {
                refused = Some(e);
                break;
            }
        }
        let refused = refused.expect("more than the limit was taken");
        assert_eq!(refused.kind(), ErrorKind::OverBudget, "{refused}");
        assert!(refused.to_string().contains("temporary tables"), "{refused}");
        let count = table.count()?;
        assert!(numbers(&of)?.insert(&[1i64.into(), text.as_str().into()]).is_err());
        drop((table, private));
        assert!(count > 0);
        of.table("t")?.insert(&[1i64.into(), "a".into()])?;
        Ok(())
    }
}
