//! Expressions over the fields of a row that an index is made by: what it orders rows by, and which
//! rows it has.

use std::collections::BTreeSet;

use super::index::{IndexKind, refused_order};
use super::{FIELD_IDS_MAX, FIELDS_MAX, FieldId, Index, Schema};
use crate::codec::{Reader, Writer};
use crate::{DataType, Error, Result};

/// An expression over the fields of a row, in the stored form of the layer that evaluates it.
///
/// Where a table has it, fields are called by their numbers, `#3`, so that other names change
/// nothing. Before a table has taken it, fields are called by name, and it reads none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowExpression {
    /// The stored form.
    pub expression: String,
    /// The type of its values.
    pub data_type: DataType,
    /// The fields that it reads, each once, in the order of their numbers.
    pub reads: Vec<FieldId>,
}

impl RowExpression {
    /// An expression that calls fields by name, which no table has taken yet.
    #[must_use]
    pub fn by_names(expression: String) -> Self {
        Self { expression, data_type: DataType::Bool, reads: Vec::new() }
    }

    /// Whether a table has taken it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.reads.is_empty()
    }

    /// What the stored form of one that is settled calls a field.
    #[must_use]
    pub fn name_of(field: FieldId) -> String {
        format!("#{}", field.0)
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.text(&self.expression);
        self.data_type.encode(out);
        out.count(self.reads.len());
        self.reads.iter().for_each(|field| out.u16(field.0));
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let expression = input.text()?.to_owned();
        let data_type = DataType::decode(input)?;
        let mut reads = Vec::new();
        for _ in 0..input.count(FIELDS_MAX)? {
            reads.push(FieldId(input.u16()?));
        }
        if reads.is_empty() {
            return Err(Error::corrupt("an expression of an index reads no field"));
        }
        Ok(Self { expression, data_type, reads })
    }

    fn validate(&self, of: &dyn std::fmt::Display, schema: &Schema) -> Result<()> {
        let is_rising = self.reads.is_sorted_by(|a, b| a < b);
        let missing = self.reads.iter().find(|id| schema.field_of(**id).is_none());
        match missing {
            Some(id) => Err(Error::invalid(format!("{of}: no field number {}", id.0))),
            None if !is_rising => Err(Error::invalid(format!("{of}: fields out of order"))),
            None => Ok(()),
        }
    }
}

impl Index {
    /// Whether a part is computed, or some rows have no entries: what rows hold in their fields is
    /// not enough to know the entries.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.filter.is_some() || self.has_expression()
    }

    /// Whether a part is computed.
    #[must_use]
    pub fn has_expression(&self) -> bool {
        self.fields.iter().any(|part| part.expression.is_some())
    }

    /// What is computed for it: its parts in their order, then its filter.
    pub fn expressions(&self) -> impl Iterator<Item = &RowExpression> {
        let parts = self.fields.iter().filter_map(|part| part.expression.as_deref());
        parts.chain(self.filter.as_deref())
    }

    /// The fields that are read to compute its parts and its filter, each once.
    #[must_use]
    pub fn reads(&self) -> Vec<FieldId> {
        let all = self.expressions().flat_map(|expression| expression.reads.iter().copied());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The number under which a run stores the values of a part that is no field: past those that
    /// fields have.
    #[must_use]
    pub fn computed_id(part: usize) -> FieldId {
        // default: an index has fewer parts
        let part = u16::try_from(part).unwrap_or(u16::MAX);
        FieldId((u16::MAX - 1).saturating_sub(part))
    }

    pub(super) fn validate_computed(&self, schema: &Schema) -> Result<()> {
        let name = &self.name;
        let may_compute = matches!(self.kind, IndexKind::Ordered | IndexKind::Rollup);
        if self.is_computed() && !may_compute {
            let kind = self.kind.name();
            let message = format!(
                "index {name:?}: expected an ordered one, found {kind}: no other kind is of \
                 expressions, or of some rows only"
            );
            return Err(Error::invalid(message));
        }
        for (number, part) in self.fields.iter().enumerate() {
            let Some(expression) = &part.expression else { continue };
            let is_own = part.field == Self::computed_id(number) && part.path.is_empty();
            if !is_own || usize::from(part.field.0) <= FIELD_IDS_MAX {
                let id = part.field.0;
                let message = format!("index {name:?}: an expression has field number {id}");
                return Err(Error::invalid(message));
            }
            let known = self.fields.iter().take(number).filter_map(|part| part.expression.as_ref());
            if known.into_iter().any(|known| known == expression) {
                let message = format!("index {name:?} has an expression twice, as part {number}");
                return Err(Error::invalid(message));
            }
            if let Some(refused) = refused_order(expression.data_type) {
                let message = format!("index {name:?}: part {}: {refused}", number + 1);
                return Err(Error::invalid(message));
            }
        }
        let of = format_args!("index {name:?}").to_string();
        self.expressions().try_for_each(|expression| expression.validate(&of, schema))?;
        match &self.filter {
            Some(filter) if filter.is_settled() && filter.data_type != DataType::Bool => {
                let found = filter.data_type;
                let message = format!("index {name:?}: expected a condition, found {found}");
                Err(Error::invalid(message))
            }
            _ => Ok(()),
        }
    }
}
