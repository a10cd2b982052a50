//! Sequences that come and go with a field, an identity.
//!
//! ```text
//! CREATE TABLE, ADD COLUMN ─► pending: gives out values of memory ─► frame with the table
//!                                │ no commit: the last who knows it forgets it
//!                                ▼
//!                               gone
//! ```
//!
//! Until the commit nothing on the disk speaks of it: checkpoints leave it out, and a crash leaves
//! nothing behind. A transaction that has made its table takes values of it already; the frame says
//! how many. It goes with its field, in the frame that drops that.

use std::sync::Arc;

use esker_format::edit::Edit;
use esker_format::schema::{
    Alteration, DefaultValue, Identity, IdentityChange, NAME_BYTES_MAX, validate_name,
};
use esker_format::sequence::SEQUENCES_MAX;
use esker_format::{Field, Schema};

use crate::catalog::shared_sequence::{Sequences, SharedSequence};
use crate::catalogue::Catalogue;
use crate::commit::definitions::RemovedTable;
use crate::engine::Engine;
use crate::{Error, Result};

/// A sequence that a commit is yet to make. It is forgotten with this, unless it was made.
pub(crate) struct OwnSequence {
    engine: Arc<Engine>,
    name: String,
    shared: Arc<SharedSequence>,
}

impl OwnSequence {
    /// Whether a field of a schema has it: not one that is gone again.
    pub fn is_of(&self, schema: &Schema) -> bool {
        schema.fields().iter().any(|field| field.own_sequence() == Some(self.name.as_str()))
    }

    /// What the log says of it: nothing more is given out until that is applied.
    pub fn edit(&self) -> Edit {
        Edit::SetSequence { name: self.name.clone(), sequence: self.shared.closed() }
    }
}

impl Drop for OwnSequence {
    fn drop(&mut self) {
        if !self.shared.is_pending() {
            return;
        }
        let _catalogue = self.engine.lock();
        let known = self.engine.sequences.load();
        if known.get(&self.name).is_some_and(|known| Arc::ptr_eq(known, &self.shared)) {
            self.engine.remove_sequence(&self.name);
        }
    }
}

impl Engine {
    /// A new table whose identities have sequences, which its commit is to make. One that is there
    /// by the name that the field has already is taken.
    pub(crate) fn with_own_sequences(
        self: &Arc<Self>,
        table: &str,
        schema: Schema,
    ) -> Result<(Schema, Vec<Arc<OwnSequence>>)> {
        let (mut steps, mut own) = (Vec::new(), Vec::new());
        for field in schema.fields() {
            let Some(identity) = field.identity else { continue };
            match field.default_sequence() {
                Some(known) if self.sequences.load().contains_key(known) => {}
                Some(wanted) => own.push(self.add_pending(wanted, identity)?),
                None => {
                    let sequence = self.add_own(table, &field.name, identity)?;
                    let default = Some(DefaultValue::NextValue(sequence.name.clone()));
                    steps.push(Alteration::SetDefault { field: field.name.clone(), default });
                    own.push(sequence);
                }
            }
        }
        let version = schema.version();
        let schema =
            if steps.is_empty() { schema } else { schema.alter(&steps)?.with_version(version) };
        Ok((schema, own))
    }

    /// Changes of a table whose new identities have sequences.
    pub(crate) fn with_new_sequences(
        self: &Arc<Self>,
        table: &str,
        alterations: &[Alteration],
    ) -> Result<(Vec<Alteration>, Vec<Arc<OwnSequence>>)> {
        let (mut named, mut own) = (Vec::new(), Vec::new());
        for alteration in alterations {
            match alteration {
                Alteration::AddField(field)
                    if let (Some(identity), None) = (field.identity, &field.default) =>
                {
                    let sequence = self.add_own(table, &field.name, identity)?;
                    let default = Some(DefaultValue::NextValue(sequence.name.clone()));
                    named.push(Alteration::AddField(Field { default, ..field.clone() }));
                    own.push(sequence);
                }
                Alteration::SetIdentity { field, change: IdentityChange::Add(identity) } => {
                    let sequence = self.add_own(table, field, *identity)?;
                    let default = Some(DefaultValue::NextValue(sequence.name.clone()));
                    let field = field.clone();
                    named.extend([alteration.clone(), Alteration::SetDefault { field, default }]);
                    own.push(sequence);
                }
                other => named.push(other.clone()),
            }
        }
        Ok((named, own))
    }

    fn add_own(
        self: &Arc<Self>,
        table: &str,
        field: &str,
        identity: Identity,
    ) -> Result<Arc<OwnSequence>> {
        let name = free_name(table, field, &self.sequences.load());
        self.add_pending(&name, identity)
    }

    fn add_pending(self: &Arc<Self>, name: &str, identity: Identity) -> Result<Arc<OwnSequence>> {
        validate_name("sequence", name)?;
        let shared = SharedSequence::pending(identity.sequence()?);
        let _catalogue = self.lock_for_change()?;
        let known = self.sequences.load();
        if known.contains_key(name) {
            let message = format!("sequence {name:?} was created by another meanwhile");
            return Err(crate::commit::conflict::conflict(message));
        }
        if known.len() >= SEQUENCES_MAX {
            return Err(Error::invalid(format!("at most {SEQUENCES_MAX} sequences")));
        }
        let entered = Arc::clone(&shared);
        self.change_sequences(|sequences| drop(sequences.insert(name.to_owned(), entered)));
        let (engine, name) = (Arc::clone(self), name.to_owned());
        Ok(Arc::new(OwnSequence { engine, name, shared }))
    }
}

/// `table_field_seq`, with a number behind it where that is taken.
fn free_name(table: &str, field: &str, known: &Sequences) -> String {
    let mut stem = format!("{table}_{field}");
    // Room for what stands behind it.
    while stem.len() > NAME_BYTES_MAX - "_seq".len() - 5 {
        stem.pop();
    }
    let name = |number: usize| match number {
        0 => format!("{stem}_seq"),
        number => format!("{stem}_seq{number}"),
    };
    // default: there are no more sequences than numbers
    (0..=known.len()).map(name).find(|name| !known.contains_key(name)).unwrap_or_default()
}

/// The sequences that go with fields of a table, which is dropped where there is nothing after it.
pub(crate) fn gone<'s>(
    before: &'s Schema,
    after: Option<&'s Schema>,
) -> impl Iterator<Item = &'s str> {
    let stays = move |name: &str| {
        after.is_some_and(|after| after.fields().iter().any(|f| f.own_sequence() == Some(name)))
    };
    before.fields().iter().filter_map(Field::own_sequence).filter(move |name| !stays(name))
}

/// Refuses to drop tables whose sequences give fields of others their values. Under the commit
/// lock.
pub(crate) fn refuse_in_use(catalogue: &Catalogue, dropped: &[RemovedTable]) -> Result<()> {
    let own = |table: &RemovedTable| {
        gone(&table.before.schema, None).map(str::to_owned).collect::<Vec<_>>()
    };
    for name in dropped.iter().flat_map(own) {
        let others = catalogue.tables.iter();
        for (_, entry) in others.filter(|(id, _)| dropped.iter().all(|d| d.core.id() != **id)) {
            let schema = entry.writer.table().schema();
            let uses = |field: &&Field| field.default_sequence() == Some(name.as_str());
            if let Some(field) = schema.fields().iter().find(uses) {
                let (table, field) = (&entry.name, &field.name);
                let message = format!(
                    "its sequence {name:?} is the default of field {field:?} of table {table:?}: \
                     change that before"
                );
                return Err(Error::invalid(message));
            }
        }
    }
    Ok(())
}
