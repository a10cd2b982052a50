//! `DELETE … ERASE`: rows are deleted, and an entry of the bucket of erasures says so in the same
//! commit. Maintenance does the rest: see [`erasure`](crate::erasure).

use std::collections::BTreeSet;

use esker_format::schema::Reference;
use esker_format::{DataType, Field, FieldId, Schema, TableId, Value};
use esker_query::QueryResult;
use esker_query::model::{Delete, Expr};

use super::{Changed, On, StatementRun};
use crate::engine_handle::EngineHandle;
use crate::erasure::{ERASURES, Erased, NUMBER_MAX, Record, number_of};
use crate::{
    BucketOptions, Error, ErrorKind, QueryOptions, ReferenceAction, Result, Table, Transaction,
    TransactionBucket, Ttl,
};

/// What is answered of an erasure.
const COLUMNS: [&str; 3] = ["erasure", "rows", "bytes_left"];

impl Table {
    /// Removes the rows that match, or all, so that no file of the database has them at last, nor
    /// what was removed or replaced in this table before: segments and the log are written anew.
    /// [`Database::erasures`](crate::Database::erasures) tells how far that is. Snapshots and
    /// transactions that see such rows keep them for as long as they are held.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    /// use esker_query::model::{Expr, Operator};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("user", DataType::Text).field("n", DataType::I64);
    /// let visits = db.create_table("visits", schema.build()?)?;
    /// visits.insert_many(&[vec!["ada".into(), 1i64.into()], vec!["bob".into(), 2i64.into()]])?;
    /// let is_ada = Expr::field("user").binary(Operator::Eq, Expr::literal("ada"));
    /// let erased = visits.erase(Some(&is_ada))?;
    /// assert_eq!((erased.number, erased.rows), (1, 1));
    /// db.wait_idle()?;
    /// assert!(db.erasures()?[0].finished_us.is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Database::change`](crate::Database::change).
    pub fn erase(&self, filter: Option<&Expr>) -> Result<Erased> {
        let options = self.engine.statement_options(&QueryOptions::default());
        let delete = Delete {
            table: self.name(),
            filter: filter.cloned(),
            erase: true,
            ..Delete::default()
        };
        erase_rows(&self.engine, |transaction| {
            let run = StatementRun::alone(On::Transaction(transaction), options.clone());
            run.erase_within(transaction, &delete)
        })
    }
}

/// Erases rows in a commit of its own.
fn erase_rows(
    engine: &EngineHandle,
    erase: impl FnMut(&Transaction) -> Result<(Erased, Vec<TableId>)>,
) -> Result<Erased> {
    let (erased, tables) = Transaction::run(engine, erase)?;
    engine.wake_maintenance();
    Ok(Erased { bytes_left: Some(engine.bytes_to_erase(&tables)), ..erased })
}

impl StatementRun<'_> {
    /// Erases rows, and answers what came of it.
    pub(super) fn erase(&self, delete: &Delete) -> Result<Changed> {
        if delete.returning.is_some() {
            let message = "ERASE cannot have RETURNING: it answers how many rows were erased";
            return Err(Error::invalid(message));
        }
        let erased = match self.on {
            On::Transaction(transaction) => self.erase_within(transaction, delete)?.0,
            On::Database(database) if self.dry_run => {
                // What is not committed is rolled back.
                let transaction = database.begin()?;
                self.within(&transaction).erase_within(&transaction, delete)?.0
            }
            On::Database(database) => erase_rows(database.engine(), |transaction| {
                self.within(transaction).erase_within(transaction, delete)
            })?,
        };
        Ok(Changed { rows: erased.rows, returning: Some(self.shown(erased)?) })
    }

    /// Deletes the rows and notes that they are erased, with the tables that it is about.
    fn erase_within(
        &self,
        transaction: &Transaction,
        delete: &Delete,
    ) -> Result<(Erased, Vec<TableId>)> {
        refuse_kept(transaction, &delete.table)?;
        let engine = transaction.engine();
        if engine.memory_of.is_some() {
            let message = "ERASE: temporary tables are in no file: use DELETE without it";
            return Err(Error::invalid(message));
        }
        let rows = self.delete_rows(delete)?.rows;
        let tables = tables_of(transaction, &delete.table)?;
        let bucket = bucket(transaction)?;
        let record = Record {
            number: last_number(&bucket)? + 1,
            table: delete.table.clone(),
            tables: tables.clone(),
            begun_us: engine.environment.clock.wall_us(),
            rows,
            finished_us: None,
        };
        bucket.put_with(record.key(), record.encode(), Ttl::Never)?;
        engine.expect_erasures();
        Ok((Erased { number: record.number, rows, bytes_left: None }, tables))
    }

    /// An erasure as rows.
    fn shown(&self, erased: Erased) -> Result<QueryResult> {
        let field = |name: &str| Field::new(FieldId(1), name.to_owned(), DataType::U64, true);
        let schema = Schema::of_fields(COLUMNS.into_iter().map(field).collect());
        // default: nothing is deleted yet
        let bytes_left = erased.bytes_left.map_or(Value::Null, Value::Uint);
        let row = [Value::Uint(erased.number), Value::Uint(erased.rows), bytes_left];
        let rows = std::iter::once(row.as_slice());
        Ok(esker_query::select(&[], &schema, rows, &self.options)?)
    }
}

/// Refuses to erase rows whose values a feed would keep: that of their table, or of one whose rows
/// go or change with them.
fn refuse_kept(transaction: &Transaction, name: &str) -> Result<()> {
    let (mut names, mut seen) = (vec![name.to_owned()], BTreeSet::new());
    while let Some(at) = names.pop() {
        if !seen.insert(at.clone()) {
            continue;
        }
        let table = transaction.table(&at)?;
        if table.schema().is_feed() || table.schema().kept_changes().is_some() {
            let message = "would keep the values: expected ALTER TABLE … RESET (changes) before";
            let whose = if at == name { "its feed".to_owned() } else { format!("that of {at:?}") };
            return Err(Error::invalid(format!("ERASE in table {name:?}: {whose} {message}")));
        }
        for referrer in table.schema().referrers() {
            let other = transaction.table(&referrer.table)?;
            let reference = other.schema().reference(&referrer.reference);
            if reference.is_some_and(changes_rows) {
                names.push(referrer.table.clone());
            }
        }
    }
    Ok(())
}

/// Whether rows that refer to one that goes go with it, or change.
fn changes_rows(reference: &Reference) -> bool {
    !matches!(reference.on_delete, ReferenceAction::NoAction | ReferenceAction::Restrict)
}

/// The bucket of erasures, which is made with the first one.
fn bucket(transaction: &Transaction) -> Result<TransactionBucket<'_>> {
    match transaction.bucket(ERASURES) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            transaction.create_bucket(ERASURES, &BucketOptions::default())
        }
        bucket => bucket,
    }
}

/// The number of the newest erasure; 0 for none. Keys that are no numbers are passed over.
fn last_number(bucket: &TransactionBucket<'_>) -> Result<u64> {
    for entry in bucket.iter()?.rev() {
        let number = number_of(entry?.key()).ok();
        if let Some(number) = number.filter(|number| *number < NUMBER_MAX) {
            return Ok(number);
        }
    }
    Ok(0)
}

/// A table, and those whose rows may have gone or changed with its rows.
fn tables_of(transaction: &Transaction, name: &str) -> Result<Vec<TableId>> {
    let (mut names, mut ids) = (vec![name.to_owned()], Vec::new());
    while let Some(name) = names.pop() {
        let table = transaction.table(&name)?;
        let id = table.current.core.id();
        if !ids.contains(&id) {
            ids.push(id);
            names.extend(table.schema().referrers().iter().map(|other| other.table.clone()));
        }
    }
    Ok(ids)
}
