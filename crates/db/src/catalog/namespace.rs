//! Namespaces, the schemas of SQL: names that stand before those of tables. A table is known by one
//! name, `app.users`, of which the namespace is the first part.

use serde::{Deserialize, Serialize};

use crate::catalog::names::Names;
use crate::{Database, Result, Transaction};

/// A namespace, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceInfo {
    /// Its name.
    pub name: String,
    /// What its users say of it.
    pub comment: Option<String>,
}

impl NamespaceInfo {
    pub(crate) fn all(names: &Names) -> Vec<Self> {
        let of = |(name, namespace): (&String, &esker_format::Namespace)| Self {
            name: name.clone(),
            comment: namespace.comment.clone(),
        };
        names.namespaces.iter().map(of).collect()
    }
}

impl Database {
    /// Creates a namespace, a schema of SQL: tables and views may be called by its name, a point
    /// and their own.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// db.create_namespace("app")?;
    /// let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]).build()?;
    /// db.create_table("app.users", schema)?.insert(&[1i64.into()])?;
    /// assert!(db.drop_namespace("app").is_err());
    /// db.drop_table("app.users")?;
    /// db.drop_namespace("app")?;
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of this name, or a table whose name says it;
    /// `InvalidInput` for a bad name and a reserved one.
    pub fn create_namespace(&self, name: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.create_namespace(name))
    }

    /// Removes a namespace.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` while tables, views or sequences are in it.
    pub fn drop_namespace(&self, name: &str) -> Result<()> {
        Transaction::run(self.engine(), |within| within.drop_namespace(name))
    }

    /// The namespaces, by name.
    #[must_use]
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        NamespaceInfo::all(&self.engine().names_now())
    }
}
