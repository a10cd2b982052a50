//! New fields of which every row gets a value of its own: a UUID, the next of a sequence, or what
//! is computed from the row; and fields that are computed otherwise from now on.
//!
//! Of any other new field one value stands for all rows there are. Here they are written anew, in
//! the commit that adds the field: a transaction adds it without a value, gives every row one, and
//! then refuses NULL where the field does. No other commit may change rows of the table meanwhile,
//! else it begins anew.

use esker_format::schema::{Alteration, DefaultValue};
use esker_log::sabotage::Bug;
use esker_query::ComputedDefault;

/// Changes of a table that add such fields.
pub(crate) struct NewFields {
    /// The changes, in which the fields may be NULL.
    pub nullable: Vec<Alteration>,
    /// What refuses NULL after that.
    pub not_null: Vec<Alteration>,
}

impl NewFields {
    /// The changes taken apart; nothing where no such field is added.
    pub(crate) fn of(alterations: &[Alteration]) -> Option<Self> {
        let mut not_null = Vec::new();
        let mut adds_any = false;
        let nullable = alterations.iter().map(|alteration| match alteration {
            Alteration::AddField(field) if is_of_each_row(field) => {
                adds_any = true;
                let mut field = field.clone();
                if !std::mem::replace(&mut field.nullable, true) {
                    not_null.push(Alteration::SetNotNull(field.name.clone()));
                }
                Alteration::AddField(field)
            }
            Alteration::SetGenerated { generated: Some(_), .. } => {
                adds_any = true;
                alteration.clone()
            }
            other => other.clone(),
        });
        let nullable = nullable.collect();
        (adds_any && !Bug::AddedFieldStaysNull.is_planted()).then_some(Self { nullable, not_null })
    }
}

/// True for a field that has another value in each row: its default, or what computes it.
pub(crate) fn is_of_each_row(field: &esker_format::Field) -> bool {
    let of_each = match &field.default {
        Some(DefaultValue::Uuid | DefaultValue::NextValue(_)) => true,
        // What cannot be read is refused where it is evaluated.
        Some(DefaultValue::Computed(stored)) => {
            ComputedDefault::decode(stored).is_ok_and(|expr| expr.is_volatile())
        }
        _ => false,
    };
    (of_each && field.initial.is_null()) || field.generated.is_some() || field.identity.is_some()
}
