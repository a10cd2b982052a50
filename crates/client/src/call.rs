//! Requests, before they have an id.

use std::time::Duration;

use esker_format::Value;
use esker_wire::value::{write, write_key, write_values};
use esker_wire::{FrameWriter, Kind, Reader, pack};

use crate::{Duplicates, Format};

/// What a request does to the transaction of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    /// It begins one.
    Begins,
    /// It ends the one that there is.
    Ends,
    /// Neither.
    None,
}

/// One request, ready to be sent by a pipeline or an [`AsyncClient`](crate::AsyncClient).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub(crate) kind: Kind,
    pub(crate) payload: Vec<u8>,
}

impl Call {
    pub(crate) fn new(kind: Kind, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut payload = Vec::new();
        write(&mut payload);
        Self { kind, payload }
    }

    fn of_text(kind: Kind, text: &str) -> Self {
        Self::new(kind, |out| {
            pack::array(out, 1);
            pack::text(out, text);
        })
    }

    /// Appends the request as a frame.
    pub(crate) fn frame(&self, out: &mut Vec<u8>, id: u32) {
        let mut frame = FrameWriter::new(out, id, self.kind, 0);
        frame.payload().extend_from_slice(&self.payload);
        frame.finish();
    }

    /// The same write, done once however often it is sent with the same key, of 1 to 255
    /// characters: sent again, also by another connection, it answers what it answered before.
    /// What only reads is sent as ever; within a transaction it is refused.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Client};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let order = Call::bucket_increment("stock", b"sold", 3).once("order 1");
    /// assert_eq!(client.call(&order)?.number(), Some(3));
    /// assert_eq!(client.call(&order)?.number(), Some(3));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn once(&self, key: &str) -> Self {
        Self::new(Kind::Once, |out| {
            pack::array(out, 3);
            pack::text(out, key);
            pack::uint(out, self.kind.code().into());
            out.extend_from_slice(&self.payload);
        })
    }

    /// Whether it begins or ends a transaction.
    pub(crate) fn boundary(&self) -> Boundary {
        match self.kind {
            Kind::Begin => Boundary::Begins,
            Kind::Commit | Kind::Rollback => Boundary::Ends,
            Kind::Sql => {
                let mut reader = Reader::new(&self.payload);
                let text = reader.array().and_then(|_| reader.text()).unwrap_or_default();
                let mut words = text.split_whitespace().map(|word| word.trim_end_matches(';'));
                let first = words.next().unwrap_or_default().to_ascii_lowercase();
                let goes_back = words.any(|word| word.eq_ignore_ascii_case("to"));
                match first.as_str() {
                    "begin" | "start" => Boundary::Begins,
                    "commit" | "end" => Boundary::Ends,
                    "rollback" if !goes_back => Boundary::Ends,
                    _ => Boundary::None,
                }
            }
            _ => Boundary::None,
        }
    }

    /// Whether anybody is there.
    #[must_use]
    pub fn ping() -> Self {
        Self::new(Kind::Ping, |_| ())
    }

    /// Who asks, and for which database.
    #[must_use]
    pub fn hello(token: Option<&str>, database: Option<&str>) -> Self {
        Self::new(Kind::Hello, |out| {
            pack::array(out, 2);
            for text in [token, database] {
                match text {
                    Some(text) => pack::text(out, text),
                    None => pack::nil(out),
                }
            }
        })
    }

    /// Rows by their keys.
    #[must_use]
    pub fn get(table: &str, keys: &[Vec<Value>]) -> Self {
        Self::new(Kind::Get, |out| by_keys(out, table, keys))
    }

    /// Whether there are rows.
    #[must_use]
    pub fn exists(table: &str, keys: &[Vec<Value>]) -> Self {
        Self::new(Kind::Exists, |out| by_keys(out, table, keys))
    }

    /// Removes rows.
    #[must_use]
    pub fn delete(table: &str, keys: &[Vec<Value>]) -> Self {
        Self::new(Kind::Delete, |out| by_keys(out, table, keys))
    }

    /// Adds rows; a key that exists is an error.
    #[must_use]
    pub fn insert(table: &str, rows: &[Vec<Value>]) -> Self {
        Self::new(Kind::Insert, |out| store(out, table, false, rows))
    }

    /// Adds rows, or replaces those with their keys.
    #[must_use]
    pub fn upsert(table: &str, rows: &[Vec<Value>]) -> Self {
        Self::new(Kind::Insert, |out| store(out, table, true, rows))
    }

    /// Changes fields of a row.
    #[must_use]
    pub fn update(table: &str, key: &[Value], fields: &[(&str, Value)]) -> Self {
        Self::new(Kind::Update, |out| {
            pack::array(out, 3);
            pack::text(out, table);
            key_and_fields(out, key, fields);
        })
    }

    /// Changes fields of rows, each by its key, in one commit.
    #[must_use]
    pub fn update_many(table: &str, updates: &[RowUpdate<'_>]) -> Self {
        Self::new(Kind::UpdateMany, |out| {
            pack::array(out, 2);
            pack::text(out, table);
            pack::array(out, updates.len().saturating_mul(2));
            for (key, fields) in updates {
                key_and_fields(out, key, fields);
            }
        })
    }

    /// One SQL statement.
    #[must_use]
    pub fn sql(text: &str, parameters: &[Value]) -> Self {
        Self::new(Kind::Sql, |out| {
            pack::array(out, 2);
            pack::text(out, text);
            write_values(out, parameters.iter().map(Value::as_ref));
        })
    }

    /// A query as JSON.
    #[must_use]
    pub fn query(json: &str) -> Self {
        Self::of_text(Kind::Query, json)
    }

    /// How a query as JSON is answered.
    #[must_use]
    pub fn explain(json: &str) -> Self {
        Self::of_text(Kind::Explain, json)
    }

    /// The fields, key and indexes of a table.
    #[must_use]
    pub fn schema(table: &str) -> Self {
        Self::of_text(Kind::Schema, table)
    }

    /// The names of tables.
    #[must_use]
    pub fn tables() -> Self {
        Self::new(Kind::Tables, |_| ())
    }

    /// Something for an administrator of the database, as JSON: `{"task": "check"}`. What came of
    /// it is a text, JSON too; see `docs/reference/wire.md`.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Client};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let reply = client.call(&Call::admin(r#"{"task": "check"}"#))?;
    /// assert!(reply.text().is_some_and(|report| report.starts_with(r#"{"sound":true"#)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn admin(json: &str) -> Self {
        Self::new(Kind::Admin, |out| {
            pack::array(out, 1);
            pack::text(out, json);
        })
    }

    /// Begins a transaction.
    #[must_use]
    pub fn begin(serializable: bool, read_only: bool) -> Self {
        Self::new(Kind::Begin, |out| {
            pack::array(out, 2);
            pack::bool(out, serializable);
            pack::bool(out, read_only);
        })
    }

    /// Commits it.
    #[must_use]
    pub fn commit() -> Self {
        Self::new(Kind::Commit, |_| ())
    }

    /// Rolls it back.
    #[must_use]
    pub fn rollback() -> Self {
        Self::new(Kind::Rollback, |_| ())
    }

    /// Values of a bucket by their keys.
    #[must_use]
    pub fn bucket_get<K: AsRef<[u8]>>(bucket: &str, keys: &[K]) -> Self {
        Self::new(Kind::BucketGet, |out| entries(out, bucket, keys))
    }

    /// Removes entries of a bucket.
    #[must_use]
    pub fn bucket_remove<K: AsRef<[u8]>>(bucket: &str, keys: &[K]) -> Self {
        Self::new(Kind::BucketRemove, |out| entries(out, bucket, keys))
    }

    /// Puts entries into a bucket.
    #[must_use]
    pub fn bucket_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(bucket: &str, entries: &[(K, V)]) -> Self {
        Self::bucket_put_for(bucket, None, entries)
    }

    /// The same, for some time, in whole milliseconds or up to one more; without one, as the bucket
    /// says.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use std::time::Duration;
    ///
    /// use esker_client::{Call, Client};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// let hour = Some(Duration::from_secs(3_600));
    /// client.call(&Call::bucket_put_for("sessions", hour, &[("ada", "London")]))?;
    /// assert!(client.bucket_get("sessions", "ada")?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bucket_put_for<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        bucket: &str,
        ttl: Option<Duration>,
        entries: &[(K, V)],
    ) -> Self {
        Self::new(Kind::BucketPut, |out| {
            pack::array(out, 3);
            pack::text(out, bucket);
            match ttl
                .map(|ttl| u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
            {
                Some(milliseconds) => pack::uint(out, milliseconds),
                None => pack::nil(out),
            }
            pack::array(out, entries.len() * 2);
            for (key, value) in entries {
                pack::bytes(out, key.as_ref());
                pack::bytes(out, value.as_ref());
            }
        })
    }

    /// Adds to a value of a bucket that is a number of increments; nothing there counts as 0.
    ///
    /// ```
    /// # mod served { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/served/mod.rs")); }
    /// # fn main() -> esker_client::Result<()> {
    /// # let server = served::Served::start();
    /// use esker_client::{Call, Client, KeyRange};
    ///
    /// let mut client = Client::connect(&server.url())?;
    /// client.bucket_put("visits", "sunday", "closed")?;
    /// client.call(&Call::bucket_increment("visits", b"monday", 2))?;
    /// let reply = client.call(&Call::bucket_increment("visits", b"monday", 3))?;
    /// assert_eq!(reply.number(), Some(5));
    /// let days = KeyRange { reverse: true, ..KeyRange::default() };
    /// let entries = client.call(&Call::bucket_range("visits", &days))?.entries()?;
    /// assert_eq!(entries[0], (b"sunday".to_vec(), b"closed".to_vec()));
    /// assert_eq!(entries.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn bucket_increment(bucket: &str, key: &[u8], by: i64) -> Self {
        Self::new(Kind::BucketIncrement, |out| {
            pack::array(out, 3);
            pack::text(out, bucket);
            pack::bytes(out, key);
            pack::int(out, by);
        })
    }

    /// Entries of a bucket in the order of their keys.
    #[must_use]
    pub fn bucket_range(bucket: &str, range: &KeyRange<'_>) -> Self {
        Self::new(Kind::BucketRange, |out| {
            pack::array(out, 6);
            pack::text(out, bucket);
            for bound in [range.from, range.to, range.prefix] {
                match bound {
                    Some(bound) => pack::bytes(out, bound),
                    None => pack::nil(out),
                }
            }
            match range.limit {
                Some(limit) => pack::uint(out, limit),
                None => pack::nil(out),
            }
            pack::bool(out, range.reverse);
        })
    }

    /// The names of buckets.
    #[must_use]
    pub fn buckets() -> Self {
        Self::new(Kind::Buckets, |_| ())
    }

    /// Begins a load.
    pub(crate) fn bulk_begin(
        table: &str,
        format: Format,
        duplicates: Duplicates,
        key: Option<&str>,
    ) -> Self {
        Self::new(Kind::BulkBegin, |out| {
            pack::array(out, 3 + usize::from(key.is_some()));
            for text in [table, format.as_str(), duplicates.as_str()].into_iter().chain(key) {
                pack::text(out, text);
            }
        })
    }

    /// Ends a request.
    pub(crate) fn cancel(id: u32) -> Self {
        Self::new(Kind::Cancel, |out| pack::uint(out, id.into()))
    }
}

/// Which entries of a bucket, and in which order. By default all, by rising key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange<'k> {
    /// The first key.
    pub from: Option<&'k [u8]>,
    /// The key before which it ends.
    pub to: Option<&'k [u8]>,
    /// What all keys begin with.
    pub prefix: Option<&'k [u8]>,
    /// The most entries.
    pub limit: Option<u64>,
    /// Whether the last come first.
    pub reverse: bool,
}

/// The key of a row, and the names and new values of some of its fields.
pub type RowUpdate<'n> = (Vec<Value>, Vec<(&'n str, Value)>);

fn key_and_fields(out: &mut Vec<u8>, key: &[Value], fields: &[(&str, Value)]) {
    write_key(out, key);
    pack::map(out, fields.len());
    for (name, value) in fields {
        pack::text(out, name);
        write(out, value.as_ref());
    }
}

fn by_keys(out: &mut Vec<u8>, table: &str, keys: &[Vec<Value>]) {
    pack::array(out, 2);
    pack::text(out, table);
    pack::array(out, keys.len());
    keys.iter().for_each(|key| write_key(out, key));
}

fn store(out: &mut Vec<u8>, table: &str, replace: bool, rows: &[Vec<Value>]) {
    pack::array(out, 3);
    pack::text(out, table);
    pack::bool(out, replace);
    pack::array(out, rows.len());
    rows.iter().for_each(|row| write_values(out, row.iter().map(Value::as_ref)));
}

fn entries<K: AsRef<[u8]>>(out: &mut Vec<u8>, bucket: &str, keys: &[K]) {
    pack::array(out, 2);
    pack::text(out, bucket);
    pack::array(out, keys.len());
    keys.iter().for_each(|key| pack::bytes(out, key.as_ref()));
}
