//! On which terms changes are committed.

use esker_format::Schema;
use esker_log::Purpose;

use crate::Result;
use crate::catalogue::Catalogue;
use crate::commit::definitions::NewDefinitions;
use crate::commit::log_reserve::purpose_of_all;
use crate::commit::write_set::TableWrites;
use crate::table_version::TableVersion;

/// On which terms changes are committed.
#[derive(Clone, Copy)]
pub(crate) struct CommitOptions<'a> {
    /// Whether the commit is acknowledged only once it is on the disk; else as the database says.
    pub sync: Option<bool>,
    /// What is to hold in addition, under the commit lock; checked again where that was let go.
    pub validate: &'a dyn Fn(&mut Catalogue) -> Result<()>,
    /// Whether a test hears the number: see `Options::on_commits`. Definitions alone are no commit
    /// of rows.
    pub tells_commit: bool,
    /// Nothing is done: the answer is whether it would be.
    pub is_probe: bool,
    /// It is refused where one frame does not hold it: row ids that are known are to stay.
    pub in_one_frame: bool,
    /// What becomes of the tables themselves.
    pub definitions: Option<&'a NewDefinitions>,
}

impl<'a> CommitOptions<'a> {
    /// The schema that the table of some changes has until the commit.
    pub fn schema_before(self, current: &'a TableVersion) -> &'a Schema {
        let other = self.definitions.and_then(|new| new.schema_before(current.core.id()));
        // default: a table that is not altered keeps its schema
        other.unwrap_or(&current.schema)
    }

    /// What the changes of some tables are for. What feeds get of them does not count: else rows
    /// could not go from a table with a feed on a full disk.
    pub fn purpose(self, writes: &[TableWrites<'_>]) -> Purpose {
        let definitions = self.definitions.map(NewDefinitions::purpose);
        let is_own = |writes: &&TableWrites<'_>| !writes.current.schema.is_feed();
        let rows = writes.iter().filter(|writes| !writes.is_empty()).filter(is_own);
        let rows = rows.map(|writes| match writes.private {
            Some(_) => Purpose::Adds,
            None => writes.staged.purpose(),
        });
        purpose_of_all(rows.chain(definitions))
    }
}

impl Default for CommitOptions<'_> {
    fn default() -> Self {
        let validate = &|_: &mut Catalogue| Ok(());
        Self {
            sync: None,
            validate,
            tells_commit: true,
            is_probe: false,
            in_one_frame: false,
            definitions: None,
        }
    }
}
