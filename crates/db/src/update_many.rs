//! Many rows changed by their keys, in one commit.

use std::collections::BTreeMap;

use esker_format::Value;
use esker_table::table::{Existing, PreparedPut};

use crate::change::{GoOn, within_limits, without_limits};
use crate::engine::fit_key;
use crate::table::{Current, fit_changes, for_each_near};
use crate::{Limits, Result, Table};

/// The key of a row, and the names and new values of some of its fields.
pub type RowUpdate<N> = (Vec<Value>, Vec<(N, Value)>);

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
    /// `InvalidInput` for an unknown field, a field of the key, or a value that does not fit; the
    /// message says in which update. `AlreadyExists` when a unique index is violated. `OverBudget`
    /// when there are more than one commit may have. Nothing is changed then.
    pub fn update_many<N: AsRef<str>>(&self, updates: &[RowUpdate<N>]) -> Result<u64> {
        self.attempt(|current| self.update_batch(current, updates, &without_limits))
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
        within_limits(&self.engine, limits, |go_on| {
            self.attempt(|current| self.update_batch(current, updates, go_on))
        })
    }

    fn update_batch<N: AsRef<str>>(
        &self,
        current: &Current,
        updates: &[RowUpdate<N>],
        go_on: GoOn<'_>,
    ) -> Result<u64> {
        let mut fitted = Vec::with_capacity(updates.len());
        for (position, (key, changes)) in updates.iter().enumerate() {
            go_on(position)?;
            let key = fit_key(&current.schema, key);
            let of_both = key.and_then(|key| Ok((key, fit_changes(&current.schema, changes)?)));
            let (key, changes) = of_both.map_err(|e| e.at(format_args!("update {position}")))?;
            let hash = current.hash(&key);
            fitted.push((key, hash, changes));
        }
        self.change(current, |writer, staged| {
            let (mut found, mut looked) = (0, 0);
            let mut positions: BTreeMap<u64, usize> = BTreeMap::new();
            let hash_of = |(_, hash, _): &&(_, u64, _)| *hash;
            for_each_near(writer, &fitted, hash_of, |writer, (key, hash, changes)| {
                go_on(looked)?;
                looked += 1;
                let existing = writer.existing(key, *hash)?.filter(Existing::is_alive);
                let Some(existing) = existing else { return Ok(()) };
                found += 1;
                let earlier = positions.get(&existing.row_id).copied();
                let mut row = match earlier.and_then(|at| staged.row_at(at)) {
                    Some(row) => row.to_vec(),
                    None => current.core.row_at(existing.location)?,
                };
                for (position, value) in changes {
                    if let Some(slot) = row.get_mut(*position) {
                        slot.clone_from(value);
                    }
                }
                match earlier {
                    Some(at) => staged.replace(at, row),
                    None => {
                        positions.insert(existing.row_id, staged.put_count());
                        staged.put(row, PreparedPut::update(*hash, existing));
                    }
                }
                Ok(())
            })?;
            let rows: Vec<&[Value]> = staged.rows().collect();
            self.engine.test_rows(current, &rows)?;
            Ok(found)
        })
    }
}
