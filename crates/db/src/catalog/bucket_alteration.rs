//! Which changes of its table a bucket takes.

use esker_format::Schema;
use esker_format::schema::{Alteration, BUCKET_FIELDS, DefaultValue};

use crate::feed::shape::refuse_companion;
use crate::{Error, Result};

/// Refuses changes after which a bucket would be none, or would refuse what buckets take.
///
/// # Errors
/// `InvalidInput`, with what can be done instead.
pub(crate) fn refuse_alterations(
    name: &str,
    schema: &Schema,
    alterations: &[Alteration],
) -> Result<()> {
    if let [first, ..] = alterations {
        let what = match first {
            Alteration::SetChangesKept(_) | Alteration::SetChangesBy(_) => "given a feed",
            _ => "altered",
        };
        refuse_companion(name, schema, what)?;
    }
    if !schema.is_bucket() || alterations.iter().all(keeps_bucket) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{name:?} is a bucket: its fields, checks, unique indexes and expiry are fixed; change its \
         time to live, give it an index that is not unique, rename it or drop it, or copy its \
         entries into a table of your own: INSERT INTO … SELECT key, value FROM {name}"
    )))
}

/// True for what leaves a bucket a bucket: a time to live, indexes that refuse nothing, and less of
/// what buckets do not need.
fn keeps_bucket(alteration: &Alteration) -> bool {
    match alteration {
        Alteration::SetDefault { field, default } => {
            let is_ttl = matches!(default, None | Some(DefaultValue::After(_)));
            field.eq_ignore_ascii_case(BUCKET_FIELDS[2].0) && is_ttl
        }
        Alteration::AddIndex(index) => !index.unique,
        Alteration::DropIndex(_)
        | Alteration::DropCheck(_)
        | Alteration::SetIndexComment { .. }
        | Alteration::AddRollup(_)
        | Alteration::DropRollup(_)
        | Alteration::RenameRollup { .. } => true,
        _ => false,
    }
}
