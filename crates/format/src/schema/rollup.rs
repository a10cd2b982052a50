//! What a table keeps of a rollup: partial aggregates of the groups of each segment, as an index of
//! a kind of its own.
//!
//! ```text
//! CREATE MATERIALIZED VIEW spend AS
//! SELECT date_trunc('hour', t) AS hour, model, sum(cost), max(ms) FROM events GROUP BY 1, 2
//!        └──────────────┬───────────────────┘  └───────┬───────┘
//!            parts of the index: its keys        its operands: cost (sum), ms (greatest)
//! ```
//!
//! The view says what a rollup shows. The index is derived from it: without one, as where a key has
//! no order, the answers are the same and take a scan.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::index::{INDEX_IDS_MAX, INDEXES_MAX, Index, IndexField, IndexKind};
use super::row_expression::RowExpression;
use super::{Alteration, FieldId, Schema};
use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// The most fields that a rollup aggregates.
pub const OPERANDS_MAX: usize = 64;

const KEEPS_SUM: u8 = 1;
const KEEPS_LEAST: u8 = 2;
const KEEPS_GREATEST: u8 = 4;

/// A field that a rollup aggregates. How many values a group has is kept of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollupOperand {
    /// The field.
    pub field: FieldId,
    /// Sums are kept.
    pub sum: bool,
    /// The least values are kept.
    pub least: bool,
    /// The greatest values are kept.
    pub greatest: bool,
}

/// A rollup to be kept: fields by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRollup {
    /// The name of its view.
    pub name: String,
    /// What the rows of a group have in common.
    pub keys: Vec<RollupKey>,
    /// Rows for which this is not true are in no group.
    pub filter: Option<RowExpression>,
    /// What is aggregated: the name of each field, and what is kept. Its number is found.
    pub operands: Vec<(String, RollupOperand)>,
}

/// A key of a rollup to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RollupKey {
    /// A field.
    Field(String),
    /// What is computed of the row.
    Computed(RowExpression),
}

impl RollupOperand {
    /// Of a field, only how many values a group has.
    #[must_use]
    pub fn counted(field: FieldId) -> Self {
        Self { field, sum: false, least: false, greatest: false }
    }

    pub(super) fn encode_all(all: &[Self], out: &mut Writer) {
        out.count(all.len());
        for Self { field, sum, least, greatest } in all {
            let bit = |is_kept, bit| if is_kept { bit } else { 0 };
            out.u16(field.0);
            let kept = bit(*sum, KEEPS_SUM) | bit(*least, KEEPS_LEAST);
            out.u8(kept | bit(*greatest, KEEPS_GREATEST));
        }
    }

    pub(super) fn decode_all(input: &mut Reader<'_>) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for _ in 0..input.count(OPERANDS_MAX)? {
            let (field, kept) = (FieldId(input.u16()?), input.u8()?);
            if kept & !(KEEPS_SUM | KEEPS_LEAST | KEEPS_GREATEST) != 0 {
                let message = format!("a rollup keeps {kept} of field number {}", field.0);
                return Err(Error::corrupt(message));
            }
            let has = |bit| kept & bit != 0;
            let (sum, least, greatest) = (has(KEEPS_SUM), has(KEEPS_LEAST), has(KEEPS_GREATEST));
            all.push(Self { field, sum, least, greatest });
        }
        Ok(all)
    }
}

impl Index {
    /// True for what is kept of a rollup, which finds no rows.
    #[must_use]
    #[inline]
    pub fn is_rollup(&self) -> bool {
        self.kind == IndexKind::Rollup
    }

    pub(super) fn validate_rollup(&self, schema: &Schema) -> Result<()> {
        let name = &self.name;
        let refuse = |why: String| Err(Error::invalid(format!("rollup {name:?}: {why}")));
        if !self.is_rollup() {
            return match self.operands.is_empty() {
                true => Ok(()),
                false => refuse("an index that finds rows aggregates none".to_owned()),
            };
        }
        if self.unique || self.fields.iter().any(|part| part.descending || !part.path.is_empty()) {
            return refuse("expected keys that are fields or computed, in rising order".to_owned());
        }
        let count = self.operands.len();
        if count > OPERANDS_MAX {
            return refuse(format!("at most {OPERANDS_MAX} fields are aggregated, found {count}"));
        }
        let mut known = BTreeSet::new();
        for operand in &self.operands {
            let Some(field) = schema.field_of(operand.field) else {
                return refuse(format!("no field number {}", operand.field.0));
            };
            if !known.insert(operand.field) {
                return refuse(format!("field {:?} is aggregated twice", field.name));
            }
            let data_type = field.data_type;
            let is_summed = data_type.is_numeric() && !data_type.is_float();
            if operand.sum && !is_summed {
                return refuse(format!("no sum is kept of field {:?}, {data_type}", field.name));
            }
        }
        Ok(())
    }
}

impl Schema {
    /// What is kept of the rollup of a view.
    #[must_use]
    pub fn rollup(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| index.is_rollup() && index.name == name)
    }

    /// Changes what is kept of rollups.
    pub(super) fn alter_rollup(&mut self, alteration: &Alteration) -> Result<()> {
        match alteration {
            Alteration::AddRollup(new) => return self.add_rollup(new),
            Alteration::DropRollup(name) => {
                self.indexes.retain(|index| !(index.is_rollup() && index.name == *name));
            }
            Alteration::RenameRollup { from, to } => {
                let mut kept = self.indexes.iter_mut().filter(|index| index.is_rollup());
                let found = kept.find(|index| index.name == *from);
                found.into_iter().for_each(|index| to.clone_into(&mut index.name));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_rollup(&mut self, new: &NewRollup) -> Result<()> {
        let id_of = |schema: &Self, name: &str| {
            let position = schema.resolve(name)?;
            let field = schema.fields().get(position);
            field.map(|field| field.id).ok_or_else(|| schema.unknown_field(name))
        };
        let mut fields = Vec::new();
        for (place, key) in new.keys.iter().enumerate() {
            let (field, expression) = match key {
                RollupKey::Field(name) => (id_of(self, name)?, None),
                RollupKey::Computed(of) => (Index::computed_id(place), Some(Arc::new(of.clone()))),
            };
            fields.push(IndexField { field, path: Vec::new(), expression, descending: false });
        }
        let mut operands = Vec::new();
        for (name, operand) in &new.operands {
            operands.push(RollupOperand { field: id_of(self, name)?, ..*operand });
        }
        if self.indexes.len() >= INDEXES_MAX || self.next_index > INDEX_IDS_MAX {
            // Its answers are those of the rows.
            return Ok(());
        }
        let id = self.next_index_id()?;
        let (name, filter) = (new.name.clone(), new.filter.clone().map(Arc::new));
        let (kind, unique, comment) = (IndexKind::Rollup, false, None);
        self.indexes.push(Index { id, name, kind, unique, fields, filter, operands, comment });
        Ok(())
    }
}

impl Index {
    /// Whether another keeps the same, by whatever name and number.
    #[must_use]
    pub fn keeps_same(&self, other: &Self) -> bool {
        let kept = |index: &Self| (index.kind, index.fields.clone(), index.filter.clone());
        kept(self) == kept(other) && self.operands == other.operands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataType;

    fn rollup(operands: &[(&str, RollupOperand)]) -> NewRollup {
        let operands = operands.iter().map(|(name, of)| ((*name).to_owned(), *of)).collect();
        let keys = vec![RollupKey::Field("model".to_owned())];
        NewRollup { name: "spend".to_owned(), keys, filter: None, operands }
    }

    fn schema() -> Schema {
        let schema = Schema::builder().field("model", DataType::Text).field("cost", DataType::I64);
        schema.field("ms", DataType::F64).build().unwrap()
    }

    #[test]
    fn what_is_kept_of_a_rollup_is_stored() {
        let counted = RollupOperand::counted(FieldId(0));
        let operands = [
            ("cost", RollupOperand { sum: true, ..counted }),
            ("ms", RollupOperand { least: true, greatest: true, ..counted }),
        ];
        let kept = schema().alter(&[Alteration::AddRollup(rollup(&operands))]).unwrap();
        let mut out = Writer::new();
        kept.encode(&mut out);
        let read = Schema::decode(&mut Reader::new(out.as_bytes())).unwrap();
        assert_eq!(read.indexes(), kept.indexes());
        assert_eq!(read.rollup("spend").unwrap().operands.len(), 2);
        assert!(read.row_indexes().next().is_none() && read.index("spend").is_err());
        let rename = Alteration::RenameRollup { from: "spend".into(), to: "costs".into() };
        let renamed = read.alter(&[rename]).unwrap();
        assert!(renamed.rollup("spend").is_none() && renamed.has_same_rows_as(&read));
        let dropped = renamed.alter(&[Alteration::DropRollup("costs".into())]).unwrap();
        assert!(dropped.indexes().is_empty());
    }

    #[test]
    fn sums_of_floats_and_fields_twice_are_refused() {
        let sum = RollupOperand { sum: true, ..RollupOperand::counted(FieldId(0)) };
        let refused = |operands: &[(&str, RollupOperand)]| {
            let e = schema().alter(&[Alteration::AddRollup(rollup(operands))]).unwrap_err();
            e.to_string()
        };
        assert!(refused(&[("ms", sum)]).contains("no sum is kept of field \"ms\", f64"));
        assert!(refused(&[("cost", sum), ("cost", sum)]).contains("is aggregated twice"));
        assert!(refused(&[("price", sum)]).contains("price"));
    }
}
