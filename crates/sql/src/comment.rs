//! `COMMENT ON SCHEMA`, `VIEW`, `INDEX` and `SEQUENCE`: what users say of these. That of a table or
//! column is a change of the table.

use esker::{Alteration, Database, Error, ErrorKind, Result, Scope};
use sqlparser::ast;

use crate::run::Outcome;
use crate::statement::{Statement, unsupported};
use crate::{index, qualified_name, sequence};

/// What is said of something that a database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentStatement {
    /// What it is about.
    pub about: Commented,
    /// Its name.
    pub name: String,
    /// What is said; nothing any more without it.
    pub comment: Option<String>,
    /// Whether it is good that there is none.
    pub if_exists: bool,
}

/// What a comment is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commented {
    /// A schema.
    Schema,
    /// A view.
    View,
    /// An index of a table; of the only one with such an index where none is named.
    Index(Option<String>),
    /// A sequence.
    Sequence,
}

/// `COMMENT ON … name IS '…'` or `IS NULL`.
pub(crate) fn convert(
    about: &ast::CommentObject,
    name: &ast::ObjectName,
    comment: Option<&String>,
    if_exists: bool,
) -> crate::Result<Statement> {
    let (about, name) = match about {
        ast::CommentObject::Schema => (Commented::Schema, qualified_name::of_schema(name)?),
        ast::CommentObject::View | ast::CommentObject::MaterializedView => {
            (Commented::View, qualified_name::written(name)?)
        }
        ast::CommentObject::Index => (Commented::Index(None), qualified_name::beside_table(name)?),
        ast::CommentObject::Sequence => (Commented::Sequence, sequence::sequence_name(name)?),
        other => {
            let known = "a comment on other than tables, columns, views, indexes, sequences and \
                         schemas";
            return Err(unsupported(known, other));
        }
    };
    let comment = comment.cloned();
    Ok(Statement::Comment(CommentStatement { about, name, comment, if_exists }))
}

/// A comment on a schema, view or index, on a database or within a transaction.
pub(crate) fn run(on: &dyn Scope, statement: &CommentStatement, dry_run: bool) -> Result<Outcome> {
    let CommentStatement { about, name, comment, if_exists } = statement;
    let words = comment.as_deref();
    let (what, is_there) = match about {
        Commented::Schema => {
            let known = on.namespaces()?;
            (format!("schema {name}"), known.iter().any(|namespace| namespace.name == *name))
        }
        Commented::View => (format!("view {name}"), on.has_name(name)?),
        Commented::Index(table) => match index::find(on, table.as_deref(), name) {
            Ok(table) => (format!("index {name} on {table}"), true),
            Err(e) if *if_exists && e.kind() == ErrorKind::NotFound => {
                (format!("index {name}"), false)
            }
            Err(e) => return Err(e),
        },
        Commented::Sequence => {
            return Err(Error::new(ErrorKind::InvalidInput, "expected no sequence"));
        }
    };
    if *if_exists && !is_there {
        return Ok(Outcome::Done(format!("no {what}")));
    }
    if dry_run {
        return Ok(Outcome::Done(format!("would alter {what}")));
    }
    on.at_once(&mut |within| match about {
        Commented::Schema => within.comment_on_namespace(name, words),
        Commented::Index(table) => {
            let table = index::find(within, table.as_deref(), name)?;
            let (index, comment) = (name.clone(), comment.clone());
            within.alter_table(&table, &[Alteration::SetIndexComment { index, comment }])
        }
        _ => within.comment_on_view(name, words),
    })?;
    Ok(Outcome::Done(format!("altered {what}")))
}

/// A comment on a sequence, which is no part of transactions.
pub(crate) fn on_sequence(
    db: &Database,
    CommentStatement { name, comment, if_exists, .. }: &CommentStatement,
    dry_run: bool,
) -> Result<Outcome> {
    let exists = sequence::is_there(db, name);
    if *if_exists && !exists {
        return Ok(Outcome::Done(format!("no sequence {name}")));
    }
    if dry_run && exists {
        return Ok(Outcome::Done(format!("would alter sequence {name}")));
    }
    db.comment_on_sequence(name, comment.as_deref())?;
    Ok(Outcome::Done(format!("altered sequence {name}")))
}
