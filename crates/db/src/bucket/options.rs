//! How buckets are made, and how entries are put.

use std::time::Duration;

/// How a bucket is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketOptions {
    pub(super) ttl: Option<Duration>,
}

impl BucketOptions {
    /// Entries never expire, unless they are put with a time to live of their own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Entries expire so long after they were put, unless they are put with another time to live.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

/// When an entry expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    /// As the bucket says: never, when it says nothing.
    #[default]
    Default,
    /// Never.
    Never,
    /// So long after it was put.
    After(Duration),
    /// At this moment, in microseconds since 1970.
    At(i64),
}

/// How an entry is put; or, given to [`crate::Bucket::with`], how all writes by a handle are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PutOptions {
    pub(crate) ttl: Ttl,
    pub(super) sync: Option<bool>,
}

impl PutOptions {
    /// As the bucket and the database say.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// When the entry expires.
    #[must_use]
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self
    }

    /// Whether the call returns only once the entry is on the disk (`true`), or at once (`false`),
    /// whatever the durability of the database is.
    #[must_use]
    pub fn sync(mut self, sync: bool) -> Self {
        self.sync = Some(sync);
        self
    }
}

impl From<Ttl> for PutOptions {
    fn from(ttl: Ttl) -> Self {
        Self::new().ttl(ttl)
    }
}
