//! Many rows changed by their keys, in one commit.

use esker_format::{Schema, ValueRef};

use crate::commit::by_key::{RowUpdate, fit_updates, update_rows};
use crate::commit::row_sink::StagedRows;
use crate::limits::{CancellationCheck, within_limits, without_limits};
use crate::table_version::TableVersion;
use crate::{Error, Limits, Result, Table};

/// Bytes of the rows that [`Table::update_each`] stages, at the most.
const EACH_BYTES_MAX: usize = 1 << 20;

impl Table {
    /// Changes some fields of the rows with some keys, all in one commit; returns how many of the
    /// updates found a row. Each key comes with the fields and their values; of two with one key
    /// the later one finds what the earlier one made. A key without a row is left out.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema, Value};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    /// let table = db.create_table("t", schema.primary_key(["id"]).build()?)?;
    /// table.insert_many(&[vec![1i64.into(), 0i64.into()], vec![2i64.into(), 0i64.into()]])?;
    /// let set = |id: i64, n: i64| (vec![Value::from(id)], vec![("n", Value::from(n))]);
    /// assert_eq!(table.update_many(&[set(1, 10), set(2, 20), set(9, 90)])?, 2);
    /// assert_eq!(table.get(&[2i64.into()])?.unwrap().values()[1], Value::Int(20));
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for an unknown field, or a value that does not fit; the message says in which
    /// update. `AlreadyExists` when a key or a value of a unique index is taken. `OverBudget`
    /// when there are more than one commit may have. Nothing is changed then.
    pub fn update_many<N: AsRef<str>>(&self, updates: &[RowUpdate<N>]) -> Result<u64> {
        let found =
            self.attempt(|current| self.update_batch(current, updates, (None, &without_limits)))?;
        Ok(found.into_iter().map(u64::from).sum())
    }

    /// The same within limits: what takes longer than it may, or is cancelled, has changed nothing.
    ///
    /// # Errors
    /// As for [`Table::update_many`]; `TimedOut`, `Cancelled`.
    pub fn update_many_with<N: AsRef<str>>(
        &self,
        updates: &[RowUpdate<N>],
        limits: &Limits,
    ) -> Result<u64> {
        let found = within_limits(&self.engine, limits, |check_cancelled| {
            self.attempt(|current| self.update_batch(current, updates, (None, check_cancelled)))
        })?;
        Ok(found.into_iter().map(u64::from).sum())
    }

    /// As [`Table::update_many`] for updates that came one by one: says of each whether
    /// there was a row, and fails, having changed nothing, where one of them alone would, or where
    /// what comes of them one by one may be something else.
    #[doc(hidden)]
    pub fn update_each<N: AsRef<str>>(&self, updates: &[RowUpdate<N>]) -> Result<Vec<bool>> {
        self.attempt(|current| {
            if !can_update_each(&current.schema) {
                let message = "rows with unique indexes, or that expire, are changed one by one";
                return Err(Error::invalid(message));
            }
            self.update_batch(current, updates, (Some(EACH_BYTES_MAX), &without_limits))
        })
    }

    /// Whether there was a row, of each. With a most of bytes, what is returned of each, and what
    /// an error of one is, is what a commit of its own would have returned.
    fn update_batch<N: AsRef<str>>(
        &self,
        current: &TableVersion,
        updates: &[RowUpdate<N>],
        (each_bytes_max, check_cancelled): (Option<usize>, CancellationCheck<'_>),
    ) -> Result<Vec<bool>> {
        let hash_of = |key: &[ValueRef<'_>]| current.hash(key);
        let fitted = fit_updates(&current.schema, updates, &hash_of, (0, check_cancelled));
        let fitted = fitted.collect::<Result<Vec<_>>>()?;
        if fitted.iter().any(|(update, _)| update.changes_key(&current.schema)) {
            if each_bytes_max.is_some() {
                return Err(Error::invalid("rows that get other keys are changed one by one"));
            }
            let check = check_cancelled;
            return self.transacted(|table| table.update_each_of(0, updates, check));
        }
        let fitted = fitted.into_iter().map(Ok);
        self.change(current, |writer, staged| {
            let mut rows = StagedRows::new(&self.engine, current, (writer, staged));
            (rows.may_repeat, rows.is_tested, rows.bytes_left) = (true, false, each_bytes_max);
            let found = update_rows(&mut rows, fitted, (0, check_cancelled))?;
            rows.test_all()?;
            Ok(found)
        })
    }
}

/// Whether rows of a schema that are updated together end as they do one by one: a unique value
/// may change hands, and a row that has expired be there again.
fn can_update_each(schema: &Schema) -> bool {
    schema.unique_indexes().next().is_none() && schema.expiry_field().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataType, ErrorKind, Options, Value};

    #[test]
    fn rows_that_are_staged_count_and_those_before_do_not() {
        const ROW_BYTES: usize = 30 << 10;
        const FIT: usize = EACH_BYTES_MAX / ROW_BYTES;
        let db = Options::new().memory().unwrap();
        let schema = Schema::builder().field("id", DataType::U64).field("text", DataType::Text);
        let schema = schema.primary_key(["id"]).build().unwrap();
        let table = db.create_table("t", schema).unwrap();
        let text = |letter: &str| Value::from(letter.repeat(ROW_BYTES));
        let id = |n: usize| vec![Value::Uint(n as u64)];
        let rows: Vec<_> = (0..=FIT).map(|n| [id(n), vec![text("a")]].concat()).collect();
        table.insert_many(&rows).unwrap();
        let set = |n: usize, letter: &str| (id(n), vec![("text", text(letter))]);
        let mut updates: Vec<_> = (0..FIT).map(|n| set(n, "b")).collect();
        assert_eq!(table.update_each(&updates).unwrap(), [true; FIT]);
        // What is staged in the place of another is there once.
        updates.push(set(0, "c"));
        assert_eq!(table.update_each(&updates).unwrap(), [true; FIT + 1]);
        assert_eq!(table.get(&id(0)).unwrap().unwrap().values()[1], text("c"));
        updates.push(set(FIT, "d"));
        let error = table.update_each(&updates).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
        assert_eq!(table.get(&id(FIT)).unwrap().unwrap().values()[1], text("a"));
    }
}
