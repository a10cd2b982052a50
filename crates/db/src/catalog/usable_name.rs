//! Which names a new table or view may have.

use esker_format::schema::validate_name;

use crate::catalog::names::{
    INFORMATION_SCHEMA, MAIN_PREFIX, MAIN_SCHEMA, TEMPORARY_PREFIX, TEMPORARY_SCHEMA,
};
use crate::feed::changes_table::ChangesTable;
use crate::files::FileTable;
use crate::introspection::is_system_table;
use crate::{Error, Result};

/// The schemas that have no tables of users.
const RESERVED_SCHEMAS: [&str; 2] = [INFORMATION_SCHEMA, "pg_catalog"];

/// What no namespace is called: what there is anyway, and what names of Esker and PostgreSQL begin
/// with.
const RESERVED_NAMESPACES: [&str; 3] = [MAIN_SCHEMA, TEMPORARY_SCHEMA, INFORMATION_SCHEMA];
const RESERVED_BEGINNINGS: [&str; 2] = ["pg_", "esker_"];

/// Refuses a name that a namespace cannot have.
///
/// # Errors
/// `InvalidInput` for a bad name, and for one that is reserved.
pub(crate) fn expect_usable_namespace(name: &str) -> Result<()> {
    validate_name("schema", name)?;
    let lower = name.to_ascii_lowercase();
    let is_reserved = RESERVED_NAMESPACES.contains(&lower.as_str())
        || RESERVED_BEGINNINGS.iter().any(|begin| lower.starts_with(begin));
    if is_reserved {
        return Err(Error::invalid(format!("schema name {name:?} is reserved")));
    }
    if name.contains('.') {
        let message = format!("schema name {name:?} has a point, which ends the name of a schema");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Refuses a name that a new table or view cannot have. One that had such a name before it was
/// reserved keeps it.
///
/// # Errors
/// `InvalidInput` for a bad name, and for one that is reserved.
pub(crate) fn expect_usable(what: &str, name: &str) -> Result<()> {
    validate_name(what, name)?;
    let refuse =
        |why: String| Err(Error::invalid(format!("{what} name {name:?} is reserved: {why}")));
    if is_system_table(name) {
        return refuse("it is that of a table about tables".to_owned());
    }
    if FileTable::named(name).is_some() {
        return refuse("it is that of a file".to_owned());
    }
    if ChangesTable::named(name).is_some() {
        return refuse("it is that of changes of a table".to_owned());
    }
    if name.starts_with(MAIN_PREFIX) || name.starts_with(TEMPORARY_PREFIX) {
        return refuse("it says the schema of another table".to_owned());
    }
    let schema = name.split_once('.').map(|(schema, _)| schema.to_ascii_lowercase());
    match RESERVED_SCHEMAS.into_iter().find(|known| schema.as_deref() == Some(known)) {
        Some(schema) => refuse(format!("{schema} has no tables of users")),
        None => Ok(()),
    }
}
