//! The changes of a table as a statement names them: `FROM changes('t', '12.345')`.

use std::fmt::{self, Display, Formatter};

use super::cursor::ChangeCursor;
use crate::files::quoted;

/// The changes of a table behind a place, as a statement names them. As a text it is the name of a
/// table, which a query may read:
///
/// ```
/// use esker::ChangesTable;
///
/// let name = "changes('orders', '12.345')";
/// let changes = ChangesTable::named(name).unwrap();
/// assert_eq!((&*changes.table, changes.to_string()), ("orders", name.to_owned()));
/// assert_eq!(ChangesTable::new("orders", None).to_string(), "changes('orders')");
/// assert_eq!(ChangesTable::named("changes"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesTable {
    /// The table whose changes they are.
    pub table: String,
    /// Behind which commit; from the first one that is kept on without it.
    pub after: Option<ChangeCursor>,
}

impl ChangesTable {
    /// The changes of a table.
    #[must_use]
    pub fn new(table: impl Into<String>, after: Option<ChangeCursor>) -> Self {
        Self { table: table.into(), after }
    }

    /// The changes that a name of a table means; `None` for a name of another kind.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (table, rest) = quoted(name.strip_prefix("changes(")?)?;
        let after = match rest.strip_prefix(", ") {
            None => (rest == ")").then_some(None)?,
            Some(rest) => {
                let (cursor, rest) = quoted(rest)?;
                Some(cursor.parse().ok().filter(|_| rest == ")")?)
            }
        };
        Some(Self { table, after })
    }

    /// The table whose changes a name of a table means, where it is written without quotes in it.
    #[must_use]
    pub fn table_in(name: &str) -> Option<&str> {
        let table = Self::named(name)?.table;
        let written = name.split('\'').nth(1)?;
        (written == table).then_some(written)
    }
}

impl Display for ChangesTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "changes('{}'", self.table.replace('\'', "''"))?;
        if let Some(after) = &self.after {
            write!(f, ", '{after}'")?;
        }
        f.write_str(")")
    }
}
