//! What is asked: a bucket in this process, a table over the wire port, and a map to compare with.

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{Bucket, DataType, Database, Durability, Options, Schema};
use esker_client::{Call, Client, Duplicates, Format, Value, ValueRef};

use super::workload::{FIELDS, Operation, key, place, record, text};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::Texts;
use crate::server::service::Service;

/// As YCSB calls it.
const TABLE: &str = "usertable";
/// Writes are answered at once, and on the disk within this time.
pub(super) const AT_MOST: Duration = Duration::from_millis(100);
/// Records of a commit while the bucket is filled.
pub(super) const FILL: u64 = 10_000;

/// Something that has records.
pub(super) trait Store {
    /// Does it, and writes what is read behind `answer`: keys of scans, and all fields.
    fn run(&mut self, operation: Operation, texts: &Texts, answer: &mut Vec<u8>) -> Result<()>;

    /// Ends it.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A record as one value, in which a field has its place.
fn change(value: &mut [u8], field: usize, texts: &Texts, number: u64) -> Result<()> {
    let place = value.get_mut(place(field)).ok_or("a record is too short")?;
    place.copy_from_slice(texts.text(number).as_bytes());
    Ok(())
}

pub(super) fn absent(number: u64) -> String {
    format!("record {number}: expected to be there")
}

/// What a store has to answer.
#[derive(Default)]
pub(super) struct Model(BTreeMap<String, Vec<u8>>);

impl Model {
    pub fn filled(texts: &Texts, records: u64) -> Self {
        Self((0..records).map(|n| (key(n), record(texts, n).into_bytes())).collect())
    }
}

impl Store for Model {
    fn run(&mut self, operation: Operation, texts: &Texts, answer: &mut Vec<u8>) -> Result<()> {
        match operation {
            Operation::Read(n) => answer.extend(self.0.get(&key(n)).ok_or_else(|| absent(n))?),
            Operation::Update(n, field, number) | Operation::Modify(n, field, number) => {
                let value = self.0.get_mut(&key(n)).ok_or_else(|| absent(n))?;
                if matches!(operation, Operation::Modify(..)) {
                    answer.extend_from_slice(value);
                }
                change(value, field, texts, number)?;
            }
            Operation::Insert(n) => drop(self.0.insert(key(n), record(texts, n).into_bytes())),
            Operation::Scan(n, count) => {
                for (key, value) in self.0.range(key(n)..).take(usize::try_from(count)?) {
                    answer.extend(key.as_bytes());
                    answer.extend(value);
                }
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// A bucket of this process: a record is one value, and an update reads it before.
pub(super) struct Embedded {
    database: Database,
    bucket: Bucket,
}

impl Embedded {
    pub fn filled(bench: &Bench, records: u64) -> Result<Self> {
        let durability = Durability::Async { at_most: AT_MOST };
        let dir = bench.place("ycsb-embedded")?;
        let database = Options::new().durability(durability).open(dir)?;
        let bucket = database.bucket(TABLE)?;
        for first in (0..records).step_by(usize::try_from(FILL)?) {
            let numbers = first..(first + FILL).min(records);
            bucket.put_many(numbers.map(|n| (key(n), record(&bench.texts, n))))?;
        }
        database.wait_idle()?;
        Ok(Self { database, bucket })
    }
}

impl Store for Embedded {
    fn run(&mut self, operation: Operation, texts: &Texts, answer: &mut Vec<u8>) -> Result<()> {
        let read = |n: u64, into: &mut Vec<u8>| match self
            .bucket
            .read(key(n), |value| into.extend_from_slice(value))
        {
            Ok(Some(())) => Ok(()),
            Ok(None) => Err(absent(n).into()),
            Err(e) => Err(boxed(e)),
        };
        match operation {
            Operation::Read(n) => read(n, answer)?,
            Operation::Update(n, field, number) => {
                let mut value = Vec::new();
                read(n, &mut value)?;
                change(&mut value, field, texts, number)?;
                self.bucket.put(key(n), value)?;
            }
            Operation::Modify(n, field, number) => {
                read(n, answer)?;
                let mut value = answer.clone();
                change(&mut value, field, texts, number)?;
                self.bucket.put(key(n), value)?;
            }
            Operation::Insert(n) => self.bucket.put(key(n), record(texts, n))?,
            Operation::Scan(n, count) => {
                let entries = self.bucket.range(key(n)..)?;
                for entry in entries.take(usize::try_from(count)?) {
                    let entry = entry?;
                    answer.extend_from_slice(entry.key());
                    answer.extend_from_slice(entry.value());
                }
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.bucket);
        Ok(self.database.close()?)
    }
}

/// A table of a server: a field is a field, and scans are SQL. One connection, one request after
/// another.
pub(super) struct Wire {
    service: Service,
    client: Client,
}

fn field_name(field: usize) -> String {
    format!("field{field}")
}

fn schema() -> Result<Schema> {
    let builder = Schema::builder().field("key", DataType::Text);
    let fields = 0..FIELDS;
    let builder = fields.fold(builder, |b, field| b.field(field_name(field), DataType::Text));
    Ok(builder.primary_key(["key"]).build()?)
}

impl Wire {
    pub fn filled(bench: &Bench, records: u64) -> Result<Self> {
        let durability = Durability::Async { at_most: AT_MOST };
        let service = Service::serve(bench, "ycsb-wire", durability, TABLE, schema()?)?;
        let mut client = service.connect()?;
        let mut load = client.load(TABLE, Format::MessagePack, Duplicates::Error).map_err(boxed)?;
        for number in 0..records {
            let key = key(number);
            let fields = (0..FIELDS).map(|field| text(&bench.texts, number, field));
            let row = [key.as_str()].into_iter().chain(fields);
            let row: Vec<ValueRef<'_>> = row.map(ValueRef::Text).collect();
            load.push_refs(row.into_iter()).map_err(boxed)?;
        }
        load.finish().map_err(boxed)?;
        // Scans go by the order of an index: the primary key is found by its hash.
        let index = format!("CREATE INDEX by_key ON {TABLE} (key)");
        client.sql(&index, &[]).map_err(boxed)?;
        Ok(Self { service, client })
    }

    fn read(&mut self, number: u64, answer: &mut Vec<u8>) -> Result<()> {
        let row = self.client.get(TABLE, &[key(number).into()]).map_err(boxed)?;
        let row = row.ok_or_else(|| absent(number))?;
        append(row.get(1..).unwrap_or_default(), answer)
    }

    fn update(&mut self, number: u64, field: usize, text: &str) -> Result<()> {
        let (key, name) = ([key(number).into()], field_name(field));
        let call = Call::update(TABLE, &key, &[(name.as_str(), text.into())]);
        match self.client.call(&call).map_err(boxed)?.changed() {
            1 => Ok(()),
            _ => Err(absent(number).into()),
        }
    }
}

fn append(values: &[Value], answer: &mut Vec<u8>) -> Result<()> {
    for value in values {
        match value {
            Value::Text(text) => answer.extend_from_slice(text.as_bytes()),
            other => return Err(format!("expected a text, found {other:?}").into()),
        }
    }
    Ok(())
}

impl Store for Wire {
    fn run(&mut self, operation: Operation, texts: &Texts, answer: &mut Vec<u8>) -> Result<()> {
        match operation {
            Operation::Read(n) => self.read(n, answer)?,
            Operation::Update(n, field, number) => self.update(n, field, texts.text(number))?,
            Operation::Modify(n, field, number) => {
                self.read(n, answer)?;
                self.update(n, field, texts.text(number))?;
            }
            Operation::Insert(n) => {
                let fields = (0..FIELDS).map(|field| text(texts, n, field).into());
                let row: Vec<Value> = [key(n).into()].into_iter().chain(fields).collect();
                self.client.insert(TABLE, &[row]).map_err(boxed)?;
            }
            Operation::Scan(n, count) => {
                let statement =
                    format!("SELECT * FROM {TABLE} WHERE key >= ? ORDER BY key LIMIT {count}");
                let call = Call::sql(&statement, &[key(n).into()]);
                for row in self.client.call(&call).map_err(boxed)?.rows {
                    append(&row, answer)?;
                }
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.client);
        self.service.stop()
    }
}
