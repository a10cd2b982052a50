//! References: rows of one table that name rows of another, as its schema declares them.
//!
//! Both tables know of a reference, so that a change of either looks at its own schema alone:
//!
//! ```text
//!  orders   references: user ─► table "users", columns ["id"], on delete cascade
//!  users    referrers:  table "orders", reference "orders_user_fkey", fields [id]
//! ```
//!
//! A reference belongs to the table whose rows name others. The referrer of the other table comes
//! and goes in the same commit.

use super::{FieldId, INDEX_FIELDS_MAX, Schema, validate_name};
use crate::codec::{Reader, Writer};
use crate::suggest::near_or_all;
use crate::{Error, Result};

/// The most references of a table, and the most that name it.
pub const REFERENCES_MAX: usize = 256;

/// What becomes of rows whose referenced row goes, or gets other values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReferenceAction {
    /// The change is refused, unless at the end of the statement no row names what is gone.
    #[default]
    NoAction,
    /// The change is refused at once.
    Restrict,
    /// They go, too, or get the other values.
    Cascade,
    /// The fields that name it become NULL.
    SetNull,
    /// The fields that name it get their defaults.
    SetDefault,
}

impl ReferenceAction {
    /// Every action, by its code.
    pub const ALL: [Self; 5] =
        [Self::NoAction, Self::Restrict, Self::Cascade, Self::SetNull, Self::SetDefault];

    /// The words of SQL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAction => "NO ACTION",
            Self::Restrict => "RESTRICT",
            Self::Cascade => "CASCADE",
            Self::SetNull => "SET NULL",
            Self::SetDefault => "SET DEFAULT",
        }
    }

    /// The action of some words, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name().eq_ignore_ascii_case(name))
    }

    const fn code(self) -> u8 {
        match self {
            Self::NoAction => 0,
            Self::Restrict => 1,
            Self::Cascade => 2,
            Self::SetNull => 3,
            Self::SetDefault => 4,
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let code = input.u8()?;
        let found = Self::ALL.into_iter().find(|action| action.code() == code);
        found.ok_or_else(|| Error::corrupt(format!("unknown action of a reference: {code}")))
    }
}

/// Fields of a table whose values are those of a row of another table, unless one is NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its name, unique among the checks and references of the table.
    pub name: String,
    /// The fields, in the order of `columns`.
    pub fields: Vec<FieldId>,
    /// The table that they refer to; it may be the same one.
    pub table: String,
    /// The fields of that table: its key, or those of a unique index.
    pub columns: Vec<String>,
    /// What becomes of a row whose referenced row goes.
    pub on_delete: ReferenceAction,
    /// What becomes of a row whose referenced row gets other values.
    pub on_update: ReferenceAction,
}

/// A reference to be: fields by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReference {
    /// Its name; empty to be named after the table and the fields: `orders_user_fkey`.
    pub name: String,
    /// The fields.
    pub fields: Vec<String>,
    /// The table that they refer to.
    pub table: String,
    /// The fields of that table; none for those of its key.
    pub columns: Vec<String>,
    /// What becomes of a row whose referenced row goes.
    pub on_delete: ReferenceAction,
    /// What becomes of a row whose referenced row gets other values.
    pub on_update: ReferenceAction,
}

impl NewReference {
    /// A reference of some fields to the key of a table, which refuses changes that leave rows
    /// without the one that they name.
    ///
    /// ```
    /// use esker_format::schema::{NewReference, ReferenceAction};
    ///
    /// let user = NewReference::new(["user"], "users").on_delete(ReferenceAction::Cascade);
    /// assert_eq!(user.table, "users");
    /// ```
    #[must_use]
    pub fn new<N: Into<String>>(
        fields: impl IntoIterator<Item = N>,
        table: impl Into<String>,
    ) -> Self {
        Self {
            name: String::new(),
            fields: fields.into_iter().map(Into::into).collect(),
            table: table.into(),
            columns: Vec::new(),
            on_delete: ReferenceAction::NoAction,
            on_update: ReferenceAction::NoAction,
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The same to other fields than those of the key: those of a unique index.
    #[must_use]
    pub fn to<N: Into<String>>(self, columns: impl IntoIterator<Item = N>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), ..self }
    }

    /// The same with what becomes of a row whose referenced row goes.
    #[must_use]
    pub fn on_delete(self, on_delete: ReferenceAction) -> Self {
        Self { on_delete, ..self }
    }

    /// The same with what becomes of a row whose referenced row gets other values.
    #[must_use]
    pub fn on_update(self, on_update: ReferenceAction) -> Self {
        Self { on_update, ..self }
    }
}

/// What a table knows of a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// The table whose rows refer to this one.
    pub table: String,
    /// The name of its reference.
    pub reference: String,
    /// The fields of this table that are referred to.
    pub fields: Vec<FieldId>,
}

impl Reference {
    fn encode(&self, out: &mut Writer) {
        out.text(&self.name);
        encode_fields(&self.fields, out);
        out.text(&self.table);
        out.count(self.columns.len());
        self.columns.iter().for_each(|column| out.text(column));
        out.u8(self.on_delete.code());
        out.u8(self.on_update.code());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let (name, fields) = (input.text()?.to_owned(), decode_fields(input)?);
        let table = input.text()?.to_owned();
        let mut columns = Vec::new();
        for _ in 0..input.count(INDEX_FIELDS_MAX)? {
            columns.push(input.text()?.to_owned());
        }
        let on_delete = ReferenceAction::decode(input)?;
        let on_update = ReferenceAction::decode(input)?;
        Ok(Self { name, fields, table, columns, on_delete, on_update })
    }
}

fn encode_fields(fields: &[FieldId], out: &mut Writer) {
    out.count(fields.len());
    fields.iter().for_each(|field| out.u16(field.0));
}

fn decode_fields(input: &mut Reader<'_>) -> Result<Vec<FieldId>> {
    (0..input.count(INDEX_FIELDS_MAX)?).map(|_| Ok(FieldId(input.u16()?))).collect()
}

impl Schema {
    /// The references to other tables, in the order in which they were declared.
    #[must_use]
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The references of other tables, and its own, to this one.
    #[must_use]
    pub fn referrers(&self) -> &[Referrer] {
        &self.referrers
    }

    /// True when rows of a table are bound to those of others, or others to them.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        !self.references.is_empty() || !self.referrers.is_empty()
    }

    /// The reference of a name.
    #[must_use]
    pub fn reference(&self, name: &str) -> Option<&Reference> {
        self.references.iter().find(|reference| reference.name == name)
    }

    /// The names of some fields, by their numbers; those that are gone are left out.
    #[must_use]
    pub fn names_of(&self, fields: &[FieldId]) -> Vec<&str> {
        let names = fields.iter().filter_map(|id| self.field_of(*id));
        names.map(|field| field.name.as_str()).collect()
    }

    /// The positions of some fields, by their numbers.
    ///
    /// # Errors
    /// `Corrupt` when one of them is gone.
    pub fn positions_of(&self, fields: &[FieldId]) -> Result<Vec<usize>> {
        let position = |id: &FieldId| {
            let found = self.fields.iter().position(|field| field.id == *id);
            found.ok_or_else(|| Error::corrupt(format!("a reference names field {}", id.0)))
        };
        fields.iter().map(position).collect()
    }

    /// Adds a reference. What it refers to is looked at by the database, which knows that table.
    pub(super) fn add_reference(&mut self, new: &NewReference) -> Result<()> {
        let mut fields = Vec::with_capacity(new.fields.len());
        for name in &new.fields {
            fields.extend(self.fields.get(self.resolve(name)?).map(|field| field.id));
        }
        self.references.push(Reference {
            name: new.name.clone(),
            fields,
            table: new.table.clone(),
            columns: new.columns.clone(),
            on_delete: new.on_delete,
            on_update: new.on_update,
        });
        Ok(())
    }

    pub(super) fn drop_reference(&mut self, name: &str) -> Result<()> {
        let before = self.references.len();
        self.references.retain(|reference| reference.name != name);
        if self.references.len() < before {
            return Ok(());
        }
        let names = self.references.iter().map(|reference| reference.name.as_str());
        let near = near_or_all(name, "references", names);
        Err(Error::invalid(format!("unknown reference {name:?}{near}")))
    }

    /// The next version, with other references and referrers: changes that were made ready for
    /// this one are made ready again.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be, such as rows that expire and are referred to.
    pub fn bound_anew(&self, references: Vec<Reference>, referrers: Vec<Referrer>) -> Result<Self> {
        let version = self.version.saturating_add(1);
        let mut schema = Self { references, referrers, version, ..self.clone() };
        schema.rows_since = version;
        schema.validate()?;
        Ok(schema)
    }

    /// Refuses that a field goes, or gets another type, while a reference needs it.
    pub(super) fn refuse_bound(&self, name: &str, what: &str) -> Result<()> {
        let id = self.fields.get(self.resolve(name)?).map(|field| field.id);
        let has = |fields: &[FieldId]| fields.iter().any(|field| Some(*field) == id);
        let own = self.references.iter().find(|reference| has(&reference.fields));
        if let Some(reference) = own {
            let reference = &reference.name;
            let message = format!(
                "field {name:?} is part of reference {reference:?} and cannot be {what}: drop \
                 that before"
            );
            return Err(Error::invalid(message));
        }
        let Some(referrer) = self.referrers.iter().find(|referrer| has(&referrer.fields)) else {
            return Ok(());
        };
        let Referrer { table, reference, .. } = referrer;
        let message = format!(
            "reference {reference:?} of table {table:?} needs field {name:?}, which cannot be \
             {what}: drop that reference before"
        );
        Err(Error::invalid(message))
    }

    pub(super) fn encode_references(&self, out: &mut Writer) {
        if !self.is_bound() {
            return;
        }
        out.count(self.references.len());
        self.references.iter().for_each(|reference| reference.encode(out));
        out.count(self.referrers.len());
        for Referrer { table, reference, fields } in &self.referrers {
            out.text(table);
            out.text(reference);
            encode_fields(fields, out);
        }
    }

    pub(super) fn decode_references(&mut self, input: &mut Reader<'_>) -> Result<()> {
        for _ in 0..input.count(REFERENCES_MAX)? {
            self.references.push(Reference::decode(input)?);
        }
        for _ in 0..input.count(REFERENCES_MAX)? {
            let (table, reference) = (input.text()?.to_owned(), input.text()?.to_owned());
            self.referrers.push(Referrer { table, reference, fields: decode_fields(input)? });
        }
        match self.is_bound() {
            true => Ok(()),
            false => Err(Error::corrupt("a schema with references has none")),
        }
    }

    pub(super) fn validate_references(&self) -> Result<()> {
        let count = self.references.len().max(self.referrers.len());
        if count > REFERENCES_MAX {
            let message = format!("at most {REFERENCES_MAX} references, found {count}");
            return Err(Error::invalid(message));
        }
        if self.is_bound() && self.is_bucket() {
            return Err(Error::invalid("a bucket has no references: its rows are no records"));
        }
        if !self.referrers.is_empty() && self.expiry.is_some() {
            let table = self.referrers.first().map(|referrer| &referrer.table);
            // default: the list is not empty
            let table = table.map_or("", String::as_str);
            let message = format!("rows that table {table:?} refers to cannot expire");
            return Err(Error::invalid(message));
        }
        let mut names: std::collections::BTreeSet<&String> =
            self.checks.iter().map(|check| &check.name).collect();
        for reference in &self.references {
            self.validate_reference(reference)?;
            let name = &reference.name;
            if !name.is_empty() && !names.insert(name) {
                return Err(Error::invalid(format!("constraint {name:?} is declared twice")));
            }
        }
        let fields = self.referrers.iter().map(|referrer| &referrer.fields);
        fields.into_iter().try_for_each(|fields| self.positions_of(fields).map(drop))
    }

    fn validate_reference(&self, reference: &Reference) -> Result<()> {
        let Reference { name, fields, table, columns, on_delete, on_update } = reference;
        // A name comes with the table's, which the schema does not know.
        if !name.is_empty() {
            validate_name("reference", name)?;
        }
        validate_name("table", table)?;
        let at = |message: String| Error::invalid(format!("reference {name:?}: {message}"));
        if fields.is_empty() || fields.len() > INDEX_FIELDS_MAX {
            let count = fields.len();
            return Err(at(format!("expected 1 to {INDEX_FIELDS_MAX} fields, found {count}")));
        }
        if !columns.is_empty() && columns.len() != fields.len() {
            let (want, got) = (fields.len(), columns.len());
            return Err(at(format!(
                "expected as many columns of table {table:?} as fields, {want}, found {got}"
            )));
        }
        let names = self.names_of(fields);
        self.positions_of(fields)?;
        let mut seen = std::collections::BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            return Err(at(format!("field {twice:?} is named twice")));
        }
        let sets = [*on_delete, *on_update];
        let is_generated =
            |id: &&FieldId| self.field_of(**id).is_some_and(|field| field.generated.is_some());
        let changes = sets
            .iter()
            .any(|action| matches!(action, ReferenceAction::SetNull | ReferenceAction::SetDefault))
            || *on_update == ReferenceAction::Cascade;
        if changes && let Some(field) = fields.iter().find(is_generated) {
            let field = self.names_of(&[*field]).join("");
            return Err(at(format!(
                "field {field:?} is generated and gets no other value: expected NO ACTION, \
                 RESTRICT, or ON DELETE CASCADE"
            )));
        }
        let refuses_null = |id: &FieldId| self.field_of(*id).is_some_and(|field| !field.nullable);
        if sets.contains(&ReferenceAction::SetNull)
            && let Some(field) = fields.iter().find(|id| refuses_null(id))
        {
            let field = self.field_of(*field).map(|field| &field.name);
            // default: the field was just found
            let field = field.map_or("", String::as_str);
            return Err(at(format!("SET NULL, but field {field:?} must not be null")));
        }
        Ok(())
    }
}
