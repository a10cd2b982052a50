//! Keys that other keys tell: `GROUP BY x, x - 1` has the groups of `GROUP BY x`.
//!
//! They are computed once for each group, of the keys that are kept. What may fail then fails for a
//! group as it would for each of its rows.

use std::collections::{BTreeMap, BTreeSet};

use esker_format::{Batch, Column, DataType, Room, Schema, Values};

use crate::bind::Stage;
use crate::bound::{Bound, Node};
use crate::evaluate::{Lanes, Rows, Selection, Vector, evaluate};
use crate::exec::output::Materialised;
use crate::{Limits, Result, Source};

/// The same step with those keys alone that tell groups apart; `None` where they all do.
pub(crate) fn stage(stage: &Stage) -> Option<Stage> {
    if !stage.sets.is_empty() || stage.keys.len() < 2 {
        return None;
    }
    // A field's place among the keys that are kept.
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let fields: BTreeSet<usize> = stage.keys.iter().filter_map(exact_field).collect();
    let is_told = |key: &Bound| {
        let mut read = BTreeSet::new();
        key.collect_fields(&mut read);
        let is_of_them = !read.is_empty() && read.is_subset(&fields);
        is_of_them && exact_field(key).is_none() && !key.is_random() && !key.is_unanswered()
    };
    let mut kept = Vec::new();
    for key in stage.keys.iter().filter(|key| !is_told(key)) {
        exact_field(key).into_iter().for_each(|field| _ = places.insert(field, kept.len()));
        kept.push(key.clone());
    }
    if kept.len() == stage.keys.len() {
        return None;
    }
    let mut next = 0;
    let shown = stage.keys.iter().map(|key| {
        if !is_told(key) {
            next += 1;
            return Bound::field(next - 1, key.data_type()).with_labels(key.labels.as_ref());
        }
        let mut key = key.clone();
        // default: it reads no other field
        key.map_fields(&|field| places.get(&field).copied().unwrap_or_default());
        key
    });
    let shown_keys = shown.collect();
    Some(Stage { keys: kept, shown_keys, ..stage.clone() })
}

/// The field that a key is, where equal values of it are the same in every way.
fn exact_field(key: &Bound) -> Option<usize> {
    match (&key.node, key.data_type()) {
        (_, DataType::F32 | DataType::F64 | DataType::Json | DataType::Enum) => None,
        (Node::Field(field), _) => Some(*field),
        _ => None,
    }
}

/// The keys as they are shown, of columns of those that are kept.
///
/// # Errors
/// What computing them fails with.
pub(super) fn shown(stage: &Stage, kept: Vec<Column>, limits: &Limits) -> Result<Vec<Column>> {
    let types: Vec<_> = kept.iter().map(|column| column.data_type).collect();
    let len = kept.first().map_or(0, Column::len);
    let kept = Materialised::of(Schema::of_types(&types), vec![Batch { columns: kept }]);
    let kept_column = |at: usize| kept.batches().first()?.columns.get(at).cloned();
    let mut columns = Vec::with_capacity(stage.shown_keys.len());
    for key in &stage.shown_keys {
        let column = match key.node {
            Node::Field(at) => kept_column(at),
            _ => None,
        };
        columns.push(match column {
            Some(column) => column,
            None => {
                let room = Room::default();
                let rows = Rows::new(kept.part(0), 0..len, limits, &room);
                column_of(&evaluate(key, &rows, Selection::All(len))?)?
            }
        });
    }
    Ok(columns)
}

fn column_of(vector: &Vector<'_>) -> Result<Column> {
    let mut column = Column::empty(vector.data_type);
    match (vector.data_type, &vector.lanes, &vector.nulls) {
        (DataType::I64, Lanes::Ints(values), None) => column.values = Values::I64(values.to_vec()),
        _ => (0..vector.len()).try_for_each(|i| column.push(vector.value(i)))?,
    }
    Ok(column)
}
