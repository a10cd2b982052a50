//! A value of a row of another table, which is found by its key.

use std::fmt::{self, Display, Formatter};

use esker_format::DataType;
use serde::{Deserialize, Serialize};

use super::name::Name;
use super::{Expr, serial};

/// `lookup(table, key, …).field`: a field of the row of a table with a key; NULL where there is
/// none. Where the last field of the key is a timestamp or a date, of the rows with the values
/// before it the one with the greatest that is not after the value given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// The table.
    pub table: String,
    /// The field of its row.
    pub field: String,
    /// The values of the fields of its key.
    pub keys: Vec<Expr>,
    /// The type of the field, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "serial::optional_text")]
    pub data_type: Option<DataType>,
}

impl Display for Lookup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("lookup(")?;
        for (i, part) in self.table.split('.').enumerate() {
            write!(f, "{}{}", if i > 0 { "." } else { "" }, Name(part))?;
        }
        self.keys.iter().try_for_each(|key| write!(f, ", {key}"))?;
        write!(f, ").{}", Name(&self.field))
    }
}

impl Expr {
    /// The look-ups of rows of other tables within it, those in queries within it left out.
    #[must_use]
    pub fn lookups(&self) -> Vec<&Lookup> {
        let own = match self {
            Self::Lookup(lookup) => Some(&**lookup),
            _ => None,
        };
        let within = self.operands().into_iter().flat_map(Self::lookups);
        own.into_iter().chain(within).collect()
    }

    /// Changes the look-ups within it.
    ///
    /// # Errors
    /// What the change fails with.
    pub fn change_lookups<E>(
        &mut self,
        change: &mut dyn FnMut(&mut Lookup) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Self::Lookup(lookup) = self {
            change(lookup)?;
        }
        self.operands_mut().into_iter().try_for_each(|operand| operand.change_lookups(change))
    }
}
