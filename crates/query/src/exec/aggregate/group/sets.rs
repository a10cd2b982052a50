//! Grouping sets: a row is in one group of each set.
//!
//! Tuples of all keys are numbered as if they were the groups; a tuple that is new is looked up in
//! each set once, and the groups it is in are then found by its number. The key of such a group is
//! that of the tuple with NULL for what the set leaves out, and the number of the set.

use super::KeyTable;
use crate::bind::Stage;
use crate::bound::Bound;
use crate::evaluate::key_codec::{decode, encode_integer, encode_null};
use crate::{Error, Result};

/// The tuples met, and their groups.
#[derive(Debug, Default)]
pub(super) struct SetNumbers {
    pub(super) tuples: KeyTable,
    /// The groups of each tuple, those of one tuple next to each other.
    groups: Vec<u32>,
}

/// The keys of a step, without the number of the set where there are sets.
pub(crate) fn keys_of_rows(stage: &Stage) -> &[Bound] {
    match (stage.sets.is_empty(), stage.keys.split_last()) {
        (false, Some((_, keys))) => keys,
        _ => &stage.keys,
    }
}

/// The number of a set as a value.
pub(crate) fn set_number(number: usize) -> i64 {
    // default: there are few sets, as the query was bound
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Appends what a set makes of the values of all keys, each written as part of a key.
fn write_key(out: &mut Vec<u8>, parts: &[&[u8]], set: &[usize], number: usize) {
    for (i, part) in parts.iter().enumerate() {
        match set.contains(&i) {
            true => out.extend_from_slice(part),
            false => encode_null(out),
        }
    }
    encode_integer(out, set_number(number));
}

impl SetNumbers {
    /// The groups of rows by the numbers of their tuples: of each set, one for each row.
    ///
    /// # Errors
    /// When a tuple is not one of all keys.
    pub(super) fn groups(
        &mut self,
        stage: &Stage,
        tuples: &[u32],
        table: &mut KeyTable,
    ) -> Result<Vec<Vec<u32>>> {
        let sets = stage.sets.len();
        let mut key = Vec::new();
        for tuple in self.groups.len() / sets.max(1)..self.tuples.len() {
            let parts = parts(self.tuples.key(tuple), keys_of_rows(stage))?;
            for (number, set) in stage.sets.iter().enumerate() {
                key.clear();
                write_key(&mut key, &parts, set, number);
                self.groups.push(table.number(&key));
            }
        }
        let group = |tuple: &u32, set: usize| {
            let group = self.groups.get(*tuple as usize * sets + set).copied();
            group.ok_or_else(|| broken(format_args!("tuple {tuple} is in a group of set {set}")))
        };
        let of_set = |set| tuples.iter().map(|tuple| group(tuple, set)).collect::<Result<_>>();
        (0..sets).map(of_set).collect()
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.tuples.bytes() + self.groups.capacity() * size_of::<u32>()
    }
}

/// Adds the groups that there are without any row: those of the sets without a key.
pub(super) fn add_empty(stage: &Stage, table: &mut KeyTable) {
    let nulls = vec![&[][..]; keys_of_rows(stage).len()];
    let sets = stage.sets.iter().enumerate();
    for (number, set) in sets.filter(|(_, set)| set.is_empty()) {
        let mut key = Vec::new();
        write_key(&mut key, &nulls, set, number);
        table.number(&key);
    }
}

/// The values of a key, each as it is written there.
fn parts<'k>(mut key: &'k [u8], keys: &[Bound]) -> Result<Vec<&'k [u8]>> {
    let mut parts = Vec::with_capacity(keys.len());
    for bound in keys {
        let whole = key;
        decode(&mut key, bound.data_type());
        let len = whole.len() - key.len();
        let part = whole.get(..len);
        parts
            .push(part.ok_or_else(|| broken(format_args!("a tuple has all {} keys", keys.len())))?);
    }
    Ok(parts)
}

fn broken(rule: std::fmt::Arguments<'_>) -> Error {
    esker_format::Error::broken("grouping sets", rule).into()
}
