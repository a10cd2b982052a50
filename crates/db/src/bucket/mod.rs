//! Buckets: keys and values, both of bytes, in the order of the keys.
//!
//! A bucket is a table of a certain shape, and not another engine: everything that is true of
//! tables is true of it. Its rows lie in the order of the key once they are sealed, the value
//! beside the key, and expire by their third field.
//!
//! | field | type |
//! |---|---|
//! | `key` | bytes, the primary key |
//! | `value` | bytes |
//! | `expires_at` | timestamp; NULL: never. Its default is the bucket's time to live |
//!
//! Times to live go by the elapsed time of the database, which no step of the wall clock touches:
//! `expires_at` is the elapsed time at which an entry ends. What takes or shows a date
//! ([`Ttl::At`], [`Entry::expires_at_us`]) goes by how elapsed time and date differ at the moment.

mod batch;
mod change;
mod codec;
pub(crate) mod decision;
mod entries;
mod guard;
mod load;
mod options;
mod read;
mod room;
mod snapshot;
mod typed;
mod typed_snapshot;

use std::time::Duration;

use esker_format::schema::{Alteration, BUCKET_FIELDS, DefaultValue};
use esker_format::suggest::near_or_all;
use esker_format::{DataType, Schema, Value};

use crate::catalog::table_or_create::open_or_create;
use crate::table_version::TableVersion;
use crate::{Database, Error, ErrorKind, Result, Table};
pub use batch::Batch as WriteBatch;
pub(crate) use change::expiry_of;
pub use codec::{KeyCodec, KeyPrefix, Serde, ValueCodec};
pub use decision::Swapped;
pub use entries::{Entries, Entry};
pub use guard::BucketValue;
pub(crate) use guard::with_end;
pub use options::{BucketOptions, PutOptions, Ttl};
use room::RemovalReservation;
pub use snapshot::BucketSnapshot;
pub use typed::{TypedBucket, TypedEntries};
pub use typed_snapshot::TypedBucketSnapshot;

/// The names of the fields of a bucket.
const KEY: &str = BUCKET_FIELDS[0].0;
const VALUE: &str = BUCKET_FIELDS[1].0;
const EXPIRES_AT: &str = BUCKET_FIELDS[2].0;
/// The position of the value.
pub(crate) const VALUE_POSITION: usize = 1;

/// A named set of keys and values in the order of the keys. Cheap to clone; usable from any number
/// of threads.
///
/// ```
/// use esker::Options;
///
/// let db = Options::new().memory()?;
/// let users = db.bucket("users")?;
/// users.put(b"ada", b"London")?;
/// users.put(b"grace", b"New York")?;
/// assert_eq!(users.get(b"ada")?.as_deref(), Some(&b"London"[..]));
/// let names: Vec<Vec<u8>> =
///     users.iter()?.map(|entry| Ok(entry?.key().to_vec())).collect::<esker::Result<_>>()?;
/// assert_eq!(names, [&b"ada"[..], b"grace"]);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone)]
pub struct Bucket {
    table: Table,
    /// What writes by this handle get that say nothing else.
    options: PutOptions,
}

/// The schema of all buckets.
pub(crate) fn schema_of(options: &BucketOptions) -> Result<Schema> {
    let schema = Schema::builder()
        .field(KEY, DataType::Bytes)
        .field(VALUE, DataType::Bytes)
        .nullable(EXPIRES_AT, DataType::Timestamp);
    let schema = match options.ttl {
        Some(ttl) => schema.default_value(DefaultValue::After(microseconds(ttl)?)),
        None => schema,
    };
    Ok(schema
        .primary_key([KEY])
        .ordered_by_key()
        .expires_by_elapsed(EXPIRES_AT)
        .bucket()
        .build()?)
}

/// A time to live as it is stored.
fn microseconds(ttl: Duration) -> Result<u64> {
    u64::try_from(ttl.as_micros()).map_err(|_| Error::invalid(format!("a time to live of {ttl:?}")))
}

impl Database {
    /// The bucket of a name, which is made when there is none.
    ///
    /// ```
    /// # let db = esker::Options::new().memory()?;
    /// db.bucket("settings")?.put(b"colour", b"green")?;
    /// assert_eq!(db.buckets(), ["settings"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a name that no table may have, and when a table that is no bucket has it;
    /// `ReadOnly` when there is none and none can be made.
    pub fn bucket(&self, name: &str) -> Result<Bucket> {
        let open = || Bucket::of(self.table(name)?);
        open_or_create(open, || self.create_bucket(name, &BucketOptions::default()))
    }

    /// A bucket that is there; none is made.
    ///
    /// # Errors
    /// `NotFound` when there is none, `InvalidInput` when a table that is no bucket has the name.
    pub fn existing_bucket(&self, name: &str) -> Result<Bucket> {
        let table = self.table(name).map_err(|e| no_bucket(name, e, || self.buckets()))?;
        Bucket::of(table)
    }

    /// Makes a bucket.
    ///
    /// # Errors
    /// `AlreadyExists` when there is a bucket or a table of this name.
    pub fn create_bucket(&self, name: &str, options: &BucketOptions) -> Result<Bucket> {
        Bucket::of(self.create_table(name, schema_of(options)?)?)
    }

    /// The names of all buckets, sorted.
    #[must_use]
    pub fn buckets(&self) -> Vec<String> {
        let mut names = self.tables();
        names.retain(|name| self.table(name).is_ok_and(|table| table.schema().is_bucket()));
        names
    }

    /// Gives a bucket another name; handles stay those of the bucket.
    ///
    /// # Errors
    /// `NotFound` when there is none, `AlreadyExists` when the new name is taken.
    pub fn rename_bucket(&self, from: &str, to: &str) -> Result<()> {
        self.existing_bucket(from)?;
        self.rename_table(from, to)
    }

    /// Removes a bucket with all it holds.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn drop_bucket(&self, name: &str) -> Result<()> {
        self.existing_bucket(name)?;
        self.drop_table(name)
    }

    /// Changes what entries of a bucket get that are put from now on without a time to live of
    /// their own.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    pub fn set_bucket_ttl(&self, name: &str, ttl: Option<Duration>) -> Result<()> {
        self.existing_bucket(name)?;
        let default = match ttl {
            Some(ttl) => Some(DefaultValue::After(microseconds(ttl)?)),
            None => None,
        };
        self.alter_table(name, &[Alteration::SetDefault { field: EXPIRES_AT.to_owned(), default }])
    }
}

/// What entries of a bucket get that are put without a time to live.
pub(crate) fn default_ttl(schema: &Schema) -> Option<Duration> {
    match schema.expiry_field()?.default {
        Some(DefaultValue::After(after_us)) => Some(Duration::from_micros(after_us)),
        _ => None,
    }
}

/// Says of what was looked for as a table that it is a bucket, and which there are.
pub(crate) fn no_bucket(name: &str, e: Error, buckets: impl FnOnce() -> Vec<String>) -> Error {
    if e.kind() != ErrorKind::NotFound {
        return e;
    }
    let buckets = buckets();
    let known = near_or_all(name, "buckets", buckets.iter().map(String::as_str));
    Error::new(ErrorKind::NotFound, format!("no bucket {name:?}{known}"))
}

/// Refuses a table that is no bucket.
pub(crate) fn expect_bucket(name: &str, schema: &Schema) -> Result<()> {
    if schema.is_bucket() {
        return Ok(());
    }
    Err(Error::invalid(format!("{name:?} is a table, expected a bucket")))
}

impl Bucket {
    fn of(table: Table) -> Result<Self> {
        expect_bucket(&table.name(), &table.schema())?;
        Ok(Self { table, options: PutOptions::new() })
    }

    /// A handle of the same bucket whose writes, all but [`Bucket::clear`] and [`Bucket::load`],
    /// have this durability, and whose new entries this time to live, unless a call says another.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use esker::{PutOptions, Ttl};
    ///
    /// # let db = esker::Options::new().memory()?;
    /// let visits = db.bucket("visits")?;
    /// let quick = visits.with(PutOptions::new().sync(false));
    /// quick.increment("ada", 1)?; // returns at once
    /// visits.remove("ada")?; // is on the disk when it returns
    /// let short = visits.with(Ttl::After(Duration::from_secs(60)));
    /// short.append("log", "line")?;
    /// assert!(visits.remaining("log")?.expect("an entry").is_some());
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[must_use]
    pub fn with(&self, options: impl Into<PutOptions>) -> Self {
        Self { table: self.table.clone(), options: options.into() }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> String {
        self.table.name()
    }

    /// The table that it is: for queries, loads and exports.
    #[must_use]
    pub fn as_table(&self) -> &Table {
        &self.table
    }

    /// What entries get that are put without a time to live of their own.
    #[must_use]
    pub fn default_ttl(&self) -> Option<Duration> {
        default_ttl(&self.table.schema())
    }

    /// Removes all entries at once, whatever their number.
    ///
    /// # Errors
    /// `NotFound` when the bucket has been dropped.
    pub fn clear(&self) -> Result<()> {
        self.table.clear()
    }

    /// Waits until all that was written so far, by any thread, is on the disk.
    ///
    /// # Errors
    /// `OutcomeUnknown` when a write or a sync failed: what was not on the disk before may
    /// be lost. Writes are refused as `Poisoned` from then on.
    pub fn sync(&self) -> Result<()> {
        self.table.engine.sync()
    }

    /// Runs a change of a table that is a bucket still.
    fn attempt<R>(&self, mut run: impl FnMut(&TableVersion) -> Result<R>) -> Result<R> {
        self.table.attempt(|current| {
            if !current.schema.is_bucket() {
                let message = format!("table {:?} is no bucket any more", self.name());
                return Err(Error::invalid(message));
            }
            run(current)
        })
    }

    fn key<'a>(&self, key: &'a [u8]) -> Result<&'a [u8]> {
        expect_key(|| self.name(), key)
    }

    /// Refuses a value that is too long, before anything copies it.
    fn value<'a>(&self, value: &'a [u8]) -> Result<&'a [u8]> {
        expect_value(|| self.name(), value)
    }
}

/// Refuses a value that is too long.
pub(crate) fn expect_value(name: impl Fn() -> String, value: &[u8]) -> Result<&[u8]> {
    let most = esker_format::row::VALUE_BYTES_MAX;
    if value.len() > most {
        let (name, len) = (name(), value.len());
        let message = format!("bucket {name:?}: a value of {len} bytes, at most {most}");
        return Err(Error::invalid(message));
    }
    Ok(value)
}

/// Refuses a key that is too long.
pub(crate) fn expect_key(name: impl Fn() -> String, key: &[u8]) -> Result<&[u8]> {
    let most = esker_format::row::KEY_BYTES_MAX;
    if key.len() > most {
        let (name, len) = (name(), key.len());
        let message = format!("bucket {name:?}: a key of {len} bytes, at most {most}");
        return Err(Error::invalid(message));
    }
    Ok(key)
}

/// The fields of an entry.
pub(crate) fn row(key: &[u8], value: &[u8], expires_at: Value) -> Vec<Value> {
    vec![Value::Bytes(key.into()), Value::Bytes(value.into()), expires_at]
}
