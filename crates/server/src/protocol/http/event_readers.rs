//! Readers of events in JSON, one for the schema of each stream: they are made once.

use std::sync::{Arc, Mutex, PoisonError};

use esker::Schema;
use esker_import::JsonRows;

/// Readers that are kept: of the schemas that were asked for last.
const KEPT: usize = 64;

/// What reads the events of streams.
#[derive(Debug, Default)]
pub(crate) struct EventReaders {
    /// The one that was asked for last comes first.
    known: Mutex<Vec<(Arc<Schema>, Arc<JsonRows>)>>,
}

impl EventReaders {
    /// The reader of a schema.
    pub fn of(&self, schema: &Arc<Schema>) -> Arc<JsonRows> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = known.iter().position(|(of, _)| Arc::ptr_eq(of, schema)) {
            if let Some(before) = known.get_mut(..=at) {
                before.rotate_right(1);
            }
        } else {
            known.truncate(KEPT - 1);
            known.insert(0, (Arc::clone(schema), Arc::new(JsonRows::new(schema))));
        }
        let first = known.first().map(|(_, reader)| Arc::clone(reader));
        first.unwrap_or_else(|| Arc::new(JsonRows::new(schema)))
    }
}

#[cfg(test)]
mod tests {
    use esker::DataType;

    use super::*;

    #[test]
    fn a_schema_has_one_reader_and_few_are_kept() {
        let schema = || {
            let schema = Schema::builder().field("t", DataType::Timestamp);
            Arc::new(schema.build().unwrap())
        };
        let (readers, first) = (EventReaders::default(), schema());
        let reader = readers.of(&first);
        (0..KEPT - 1).for_each(|_| drop(readers.of(&schema())));
        assert!(Arc::ptr_eq(&reader, &readers.of(&first)));
        (0..KEPT).for_each(|_| drop(readers.of(&schema())));
        assert!(!Arc::ptr_eq(&reader, &readers.of(&first)));
        assert_eq!(readers.known.lock().unwrap().len(), KEPT);
    }
}
