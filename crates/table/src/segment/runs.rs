//! The index runs of a segment, and what readers made of them.

use std::any::Any;
use std::ops::Deref;
use std::sync::Arc;

use esker_format::Schema;
use esker_vfs::sync::ArcSwapOption;

use crate::index_run::IndexRun;

/// Some runs. A list never changes: another one takes its place.
#[derive(Default)]
pub struct Runs {
    list: Vec<Arc<IndexRun>>,
    reading: ArcSwapOption<Reading>,
}

/// What the runs are for readers with a schema.
struct Reading {
    schema: Arc<Schema>,
    made: Arc<dyn Any + Send + Sync>,
}

impl Runs {
    pub(super) fn new(list: Vec<Arc<IndexRun>>) -> Self {
        Self { list, reading: ArcSwapOption::empty() }
    }

    /// What readers with this schema made of the runs, where the last to keep something had it.
    #[must_use]
    pub fn reading<T: Any + Send + Sync>(&self, schema: &Arc<Schema>) -> Option<Arc<T>> {
        let reading = self.reading.load();
        let reading = reading.as_ref().filter(|kept| Arc::ptr_eq(&kept.schema, schema))?;
        Arc::clone(&reading.made).downcast().ok()
    }

    /// Keeps what a reader with a schema made of the runs, for those that follow.
    pub fn keep_reading(&self, schema: &Arc<Schema>, made: Arc<dyn Any + Send + Sync>) {
        let schema = Arc::clone(schema);
        self.reading.store(Some(Arc::new(Reading { schema, made })));
    }
}

impl Deref for Runs {
    type Target = [Arc<IndexRun>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}
