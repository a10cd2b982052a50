//! Changes of a schema that leave stored rows as they are.
//!
//! | change | why no row has to be rewritten |
//! |---|---|
//! | add a field | older rows have its *initial* value, which the schema says |
//! | drop a field | no one asks for the column of its number any more |
//! | rename a field | rows know fields by number |
//! | widen a field | every stored value has the same meaning in the wider type |
//! | an index | its runs are derived, and lie beside the segments (a unique one is tested first) |
//! | not null | the rows there are were tested: none of them is NULL |
//! | a label more | it comes last: the places of the others stay |
//! | a default, a check | these are about rows that are written later (a check is tested first) |
//! | an identity | its sequence gives values to rows that are written later |
//! | what computes a field | the caller has given the rows there are their values |
//! | a comment | it is about no row |
//! | when rows expire | rows have the field already (those that had expired are ended first) |
//! | a reference | it is about the rows of both tables (tested first) |
//! | bounds of times, the rest of a stream | they are about events that come later |
//! | a rollup | its partial aggregates are derived, and lie beside the segments |
//!
//! The fields of the key stay: they may be renamed, no more.

use std::sync::Arc;

use super::{
    ChangedRows, Check, DefaultValue, FIELD_IDS_MAX, Field, FieldId, Generated, IdentityChange,
    NewIndex, NewReference, NewRollup, Schema, StreamOption,
};
use crate::{DataType, Error, Labels, Result, Value};

/// One change of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alteration {
    /// A new last field; its number is given out. Its `initial` value is that of all rows there
    /// are: NULL only where the field may be NULL.
    AddField(Field),
    /// The field is gone, and its values.
    DropField(String),
    /// The field has another name.
    RenameField {
        /// The name now.
        from: String,
        /// The new name.
        to: String,
    },
    /// The field holds more: a wider type, longer texts, or NULL.
    Widen {
        /// The field.
        field: String,
        /// The new type; the same, or one that has every value of the old one.
        data_type: DataType,
        /// The new limit: none, or one that is not below the old one.
        length_max: Option<u32>,
    },
    /// The field may be NULL from now on.
    DropNotNull(String),
    /// The field must have a value from now on. The caller has tested the rows there are.
    SetNotNull(String),
    /// A label more, the last one, for an enum.
    AddLabel {
        /// The field.
        field: String,
        /// The label.
        label: String,
    },
    /// The field's default, or none.
    SetDefault {
        /// The field.
        field: String,
        /// The new default.
        default: Option<DefaultValue>,
    },
    /// The sequence that a field has for itself.
    SetIdentity {
        /// The field.
        field: String,
        /// What becomes of it.
        change: IdentityChange,
    },
    /// What computes the values of a generated field, or that nothing does from now on. The caller
    /// has given the rows there are the values that come of it.
    SetGenerated {
        /// The field.
        field: String,
        /// What computes its values.
        generated: Option<Generated>,
    },
    /// What the table, or a field of it, is about.
    SetComment {
        /// The field; `None` for the table itself.
        field: Option<String>,
        /// The words, or none.
        comment: Option<String>,
    },
    /// One more condition for all rows. The caller has tested the rows there are.
    AddCheck(Check),
    /// A condition less.
    DropCheck(String),
    /// One more index; its number is given out. The caller has tested the rows
    /// there are.
    AddIndex(NewIndex),
    /// An index less.
    DropIndex(String),
    /// What an index is for.
    SetIndexComment {
        /// The index.
        index: String,
        /// The words, or none.
        comment: Option<String>,
    },
    /// The timestamp field by which rows expire from now on, or none. The caller has
    /// ended the rows that had expired by another one, which do not come back.
    SetExpiry(Option<String>),
    /// One more reference to rows of a table. The caller has tested the rows there are, and tells
    /// that table.
    AddReference(NewReference),
    /// A reference less.
    DropReference(String),
    /// A property of a stream: about events that come later.
    SetStream(StreamOption),
    /// Partial aggregates are kept of one more rollup.
    AddRollup(NewRollup),
    /// Nothing is kept of a rollup any more, if anything was.
    DropRollup(String),
    /// The view of a rollup has another name.
    RenameRollup {
        /// The name now.
        from: String,
        /// The new name.
        to: String,
    },
    /// For how many microseconds changes of rows are kept; `None`: they are not. The caller makes,
    /// alters or drops the feed.
    SetChangesKept(Option<u64>),
    /// What is kept of them.
    SetChangesBy(ChangedRows),
}

impl Alteration {
    /// True when rows stay what they are, and are checked and filled as before. A new unique index,
    /// or one that computes something, is a check that rows gathered before have not met.
    fn leaves_rows(&self) -> bool {
        match self {
            Self::AddIndex(new) => !new.unique && !new.is_computed(),
            Self::DropIndex(_)
            | Self::SetComment { .. }
            | Self::SetIndexComment { .. }
            | Self::AddRollup(_)
            | Self::DropRollup(_)
            | Self::RenameRollup { .. } => true,
            _ => false,
        }
    }
}

impl Schema {
    /// The schema after some changes, in order; its version is one higher.
    ///
    /// ```
    /// use esker_format::schema::Alteration;
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("n", DataType::I32).build()?;
    /// let wider = Alteration::Widen {
    ///     field: "n".into(),
    ///     data_type: DataType::I64,
    ///     length_max: None,
    /// };
    /// assert_eq!(schema.alter(&[wider])?.fields()[0].data_type, DataType::I64);
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for an unknown or repeated name, a key field, a type that is no wider, or a
    /// new field without a value for the rows there are.
    pub fn alter(&self, alterations: &[Alteration]) -> Result<Self> {
        let mut schema = self.clone();
        for alteration in alterations {
            schema.apply(alteration)?;
        }
        self.refuse_missing_values(&schema)?;
        schema.version = self.version.saturating_add(1);
        if !alterations.iter().all(Alteration::leaves_rows) {
            schema.rows_since = schema.version;
        }
        schema.validate()?;
        Ok(schema)
    }

    /// Refuses a changed schema with a new field of which the rows there are would have no value,
    /// though it must have one. The caller tests, before it forbids NULL, the rows there are, which
    /// have the older fields only.
    ///
    /// # Errors
    /// `InvalidInput` naming the field.
    pub fn refuse_missing_values(&self, changed: &Self) -> Result<()> {
        let mut new = changed.fields.iter().filter(|field| field.id.0 >= self.next_field);
        new.try_for_each(Field::refuse_null_initial)
    }

    /// The same, as the version after another.
    #[must_use]
    pub fn with_version_after(mut self, other: &Self) -> Self {
        self.version = other.version.saturating_add(1);
        self.rows_since = self.rows_since.min(self.version);
        self
    }

    /// The same, as another version.
    #[must_use]
    pub fn with_version(mut self, version: u32) -> Self {
        self.version = version;
        self.rows_since = self.rows_since.min(version);
        self
    }

    fn apply(&mut self, alteration: &Alteration) -> Result<()> {
        match alteration {
            Alteration::AddField(field) => self.add_field(field),
            Alteration::DropField(name) => self.drop_field(name),
            Alteration::RenameField { from, to } => {
                if self.position(to).is_some() {
                    return Err(Error::invalid(format!("field {to:?} exists already")));
                }
                to.clone_into(&mut self.field_mut(from)?.name);
                Ok(())
            }
            Alteration::Widen { field, data_type, length_max } => {
                self.refuse_key(field, "widened")?;
                self.refuse_bound(field, "widened")?;
                self.field_mut(field)?.widen(*data_type, *length_max)
            }
            Alteration::DropNotNull(name) => {
                self.refuse_key(name, "NULL")?;
                self.field_mut(name)?.nullable = true;
                Ok(())
            }
            Alteration::SetNotNull(name) => {
                self.field_mut(name)?.nullable = false;
                Ok(())
            }
            Alteration::AddLabel { field, label } => self.field_mut(field)?.add_label(label),
            Alteration::SetDefault { field, default } => {
                self.field_mut(field)?.set_default(default.as_ref())
            }
            Alteration::SetIdentity { field, change } => {
                self.field_mut(field)?.change_identity(*change)
            }
            Alteration::SetGenerated { field, generated } => {
                self.field_mut(field)?.set_generated(generated.as_ref());
                self.note_generated();
                Ok(())
            }
            Alteration::SetComment { field, comment } => {
                let comment = comment.as_deref().map(Arc::from);
                match field {
                    Some(field) => self.field_mut(field)?.comment = comment,
                    None => self.comment = comment,
                }
                Ok(())
            }
            Alteration::AddCheck(check) => {
                self.checks.push(check.clone());
                Ok(())
            }
            Alteration::DropCheck(name) => {
                let at = self.checks.iter().position(|check| check.name == *name);
                let names = || self.checks.iter().map(|c| c.name.as_str()).collect::<Vec<_>>();
                let unknown = || format!("unknown check {name:?}; checks: {}", names().join(", "));
                let at = at.ok_or_else(|| Error::invalid(unknown()))?;
                self.checks.remove(at);
                Ok(())
            }
            Alteration::AddIndex(new) => self.add_index(new),
            Alteration::DropIndex(name) => self.drop_index(name),
            Alteration::SetIndexComment { index, comment } => {
                self.comment_on_index(index, comment.as_deref())
            }
            Alteration::SetExpiry(name) => self.set_expiry(name.as_deref()),
            Alteration::AddReference(new) => self.add_reference(new),
            Alteration::DropReference(name) => self.drop_reference(name),
            Alteration::SetStream(option) => self.set_stream_option(option),
            _ => self.alter_changes(alteration),
        }
    }

    pub(super) fn note_generated(&mut self) {
        self.has_generated = self.fields.iter().any(|field| field.generated.is_some());
    }

    fn field_mut(&mut self, name: &str) -> Result<&mut Field> {
        let position = self.resolve(name)?;
        self.fields.get_mut(position).ok_or_else(|| Error::invalid("unknown field"))
    }

    fn refuse_key(&self, name: &str, what: &str) -> Result<()> {
        let position = self.resolve(name)?;
        if self.key_positions().contains(&position) {
            let message = format!("field {name:?} is part of the key and cannot be {what}");
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    fn add_field(&mut self, field: &Field) -> Result<()> {
        let name = &field.name;
        if self.position(name).is_some() {
            return Err(Error::invalid(format!("field {name:?} exists already")));
        }
        if usize::from(self.next_field) > FIELD_IDS_MAX {
            let message =
                format!("a table has had at most {FIELD_IDS_MAX} fields, dropped ones too");
            return Err(Error::invalid(message));
        }
        field.refuse_null_initial()?;
        let mut field = field.clone();
        field.initial = field.fit(&field.initial)?;
        if let Some(DefaultValue::Literal(value)) = &field.default {
            field.default = Some(DefaultValue::Literal(field.fit(value)?));
        }
        field.id = FieldId(self.next_field);
        self.next_field += 1;
        self.fields.push(field);
        self.note_generated();
        Ok(())
    }

    fn drop_field(&mut self, name: &str) -> Result<()> {
        self.refuse_key(name, "dropped")?;
        self.refuse_bound(name, "dropped")?;
        let position = self.resolve(name)?;
        if self.fields.len() == 1 {
            let message = format!("field {name:?} is the last one; a table has at least one");
            return Err(Error::invalid(message));
        }
        if self.expiry_position() == Some(position) {
            let message =
                format!("rows expire by field {name:?}, which cannot be dropped while they do");
            return Err(Error::invalid(message));
        }
        if let Some(field) = self.fields.get(position) {
            self.refuse_of_stream(field.id, "dropped")?;
        }
        let field = self.fields.remove(position);
        self.drop_indexes_of(field.id);
        self.note_generated();
        if let super::PrimaryKey::Fields(positions) = &mut self.primary_key {
            positions.iter_mut().filter(|p| **p > position).for_each(|p| *p -= 1);
        }
        Ok(())
    }
}

impl Field {
    fn refuse_null_initial(&self) -> Result<()> {
        if self.initial.is_null() && !self.nullable {
            let name = &self.name;
            let message = format!(
                "field {name:?} must not be null: it needs a default for the rows there are"
            );
            return Err(Error::invalid(message));
        }
        Ok(())
    }

    fn set_default(&mut self, default: Option<&DefaultValue>) -> Result<()> {
        if self.identity.is_some() && self.default.is_some() {
            let name = &self.name;
            let message = format!("field {name:?} is an identity, whose default stays");
            return Err(Error::invalid(message));
        }
        self.default = match default {
            Some(DefaultValue::Literal(value)) => Some(DefaultValue::Literal(self.fit(value)?)),
            other => other.cloned(),
        };
        Ok(())
    }

    fn set_generated(&mut self, generated: Option<&Generated>) {
        // How its values are kept was said when it was made.
        let is_virtual = self.generated.as_ref().map(|known| known.is_virtual);
        self.generated = generated.map(|new| {
            // default: of a field that is generated from now on it is said here
            let is_virtual = is_virtual.unwrap_or(new.is_virtual);
            Arc::new(Generated { is_virtual, ..new.clone() })
        });
    }

    fn add_label(&mut self, label: &str) -> Result<()> {
        let Some(labels) = &self.labels else {
            let (name, found) = (&self.name, self.data_type);
            let message = format!("field {name:?}: enums alone have labels, the field is {found}");
            return Err(Error::invalid(message));
        };
        let all = Labels::new(labels.iter().chain([label]));
        self.labels = Some(Arc::new(all.map_err(|e| e.at(format_args!("field {:?}", self.name)))?));
        Ok(())
    }

    fn widen(&mut self, data_type: DataType, length_max: Option<u32>) -> Result<()> {
        let name = &self.name;
        if !self.data_type.widens_to(data_type) {
            let (from, wider) = (self.data_type, self.data_type.wider_types());
            let wider: Vec<String> = wider.map(|t| t.to_string()).collect();
            let expected = match wider.as_slice() {
                [] if from.is_decimal() => {
                    format!("{from} widens to more digits of the same scale, up to 18 or up to 38")
                }
                [] => format!("{from} cannot be widened"),
                wider => format!("{from} widens to {}", wider.join(", ")),
            };
            return Err(Error::invalid(format!("field {name:?}: {expected}, not to {data_type}")));
        }
        let shorter = match (self.length_max, length_max) {
            (Some(old), Some(new)) => new < old,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if shorter {
            let (old, mut new) = (self.type_text(), self.clone());
            new.length_max = length_max;
            let message = format!("field {name:?}: {old} is not widened by {}", new.type_text());
            return Err(Error::invalid(message));
        }
        self.data_type = data_type;
        self.length_max = length_max;
        let fit = |value: &Value| Ok::<_, Error>(value.as_ref().coerce(data_type)?.to_owned());
        self.initial = fit(&self.initial)?;
        if let Some(DefaultValue::Literal(value)) = &self.default {
            self.default = Some(DefaultValue::Literal(fit(value)?));
        }
        Ok(())
    }
}

impl DataType {
    /// True when every value of this type is one of the other, and every stored form of it means
    /// the same there.
    #[must_use]
    pub fn widens_to(self, other: Self) -> bool {
        use DataType as T;
        match (self, other) {
            _ if self == other => true,
            (T::I8, T::I16 | T::I32 | T::I64)
            | (T::I16, T::I32 | T::I64)
            | (T::I32, T::I64)
            | (T::U8, T::U16 | T::U32 | T::U64 | T::I16 | T::I32 | T::I64)
            | (T::U16, T::U32 | T::U64 | T::I32 | T::I64)
            | (T::U32, T::U64 | T::I64)
            | (T::F32, T::F64) => true,
            // More digits before the point, stored in as many bytes.
            (
                T::Decimal { precision: few, scale: from },
                T::Decimal { precision: many, scale: to },
            ) => from == to && few <= many && self.width() == other.width(),
            _ => false,
        }
    }

    /// The types that this one widens to, itself apart.
    fn wider_types(self) -> impl Iterator<Item = Self> {
        let is_wider = move |t: &Self| *t != self && !t.is_decimal() && self.widens_to(*t);
        Self::ALL.into_iter().filter(is_wider)
    }
}
