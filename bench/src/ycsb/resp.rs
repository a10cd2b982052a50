//! Records behind Redis's protocol: the same commands to Redis and to a bucket of ours.
//!
//! A record is one value. A field is read with its record and written in its place by `SETRANGE`.
//! Redis has no order of keys: where there are scans, a sorted set has all of them, as YCSB's
//! binding keeps it, by their bytes in place of a hash, which is the order of the other stores.

use super::store::{AT_MOST, FILL, Store, absent};
use super::workload::{FIELDS, Operation, key, place, record};
use crate::Result;
use crate::bench::Bench;
use crate::data::{TEXT_BYTES, Texts};
use crate::redis::{AppendSync, Connection, Redis};
use crate::server::service::Service;
use esker::Durability;

/// The sorted set of keys, named as YCSB's binding names it.
const KEYS: &[u8] = b"_indices";
const RECORD_BYTES: usize = FIELDS * TEXT_BYTES;
/// Records that are sent before their answers are read.
const BATCH: u64 = 100;

enum Side {
    Bucket(Box<Service>),
    Redis(Redis),
}

/// One connection, one request after another.
pub(super) struct Resp {
    connection: Connection,
    side: Side,
    has_scans: bool,
}

impl Resp {
    pub fn of_bucket(bench: &Bench, records: u64) -> Result<Self> {
        let durability = Durability::Async { at_most: AT_MOST };
        let service = Service::with_buckets(bench, "ycsb-resp", durability)?;
        let connection = Connection::open(service.resp_address()?)?;
        Self { connection, side: Side::Bucket(Box::new(service)), has_scans: false }
            .filled(bench, records)
    }

    /// Redis, which syncs its log each second.
    pub fn of_redis(bench: &Bench, records: u64) -> Result<Self> {
        Self::redis(bench, false)?.filled(bench, records)
    }

    /// Redis, with the sorted set of keys.
    pub fn sorted(bench: &Bench, records: u64) -> Result<Self> {
        Self::redis(bench, true)?.filled(bench, records)
    }

    fn redis(bench: &Bench, has_scans: bool) -> Result<Self> {
        let redis = Redis::start(&bench.place("ycsb-redis")?, AppendSync::EverySecond)?;
        let connection = Connection::open(redis.address)?;
        Ok(Self { connection, side: Side::Redis(redis), has_scans })
    }

    fn filled(mut self, bench: &Bench, records: u64) -> Result<Self> {
        for first in (0..records).step_by(usize::try_from(FILL)?) {
            let last = (first + FILL).min(records);
            for from in (first..last).step_by(usize::try_from(BATCH)?) {
                self.insert(from..(from + BATCH).min(last), &bench.texts)?;
            }
        }
        Ok(self)
    }

    /// Sets records, and their keys where they are kept, in one write.
    fn insert(&mut self, records: std::ops::Range<u64>, texts: &Texts) -> Result<()> {
        let records: Vec<(String, String)> = records.map(|n| (key(n), record(texts, n))).collect();
        let mut commands: Vec<Vec<&[u8]>> = Vec::new();
        for (key, record) in &records {
            commands.push(vec![b"SET", key.as_bytes(), record.as_bytes()]);
            if self.has_scans {
                commands.push(vec![b"ZADD", KEYS, b"0", key.as_bytes()]);
            }
        }
        let commands: Vec<&[&[u8]]> = commands.iter().map(Vec::as_slice).collect();
        self.connection.send(&commands)?;
        for _ in records {
            self.connection.read_status()?;
            if self.has_scans && self.connection.read_number()? != 1 {
                return Err("a key was there already".into());
            }
        }
        Ok(())
    }

    fn read(&mut self, number: u64, answer: &mut Vec<u8>) -> Result<()> {
        self.connection.send(&[&[b"GET", key(number).as_bytes()]])?;
        match self.connection.read_bytes(answer)? {
            true => Ok(()),
            false => Err(absent(number).into()),
        }
    }

    fn update(&mut self, number: u64, field: usize, text: &str) -> Result<()> {
        let range = place(field);
        let (key, offset) = (key(number), range.start.to_string());
        let command: [&[u8]; 4] = [b"SETRANGE", key.as_bytes(), offset.as_bytes(), text.as_bytes()];
        self.connection.send(&[&command])?;
        // What was not there is made, but not as long as a record, unless by its last field.
        match self.connection.read_number()? == i64::try_from(RECORD_BYTES)? {
            true => Ok(()),
            false => Err(absent(number).into()),
        }
    }

    fn scan(&mut self, number: u64, count: u64, answer: &mut Vec<u8>) -> Result<()> {
        let (from, count) = (format!("[{}", key(number)), count.to_string());
        let range: [&[u8]; 7] =
            [b"ZRANGEBYLEX", KEYS, from.as_bytes(), b"+", b"LIMIT", b"0", count.as_bytes()];
        self.connection.send(&[&range])?;
        let mut keys = Vec::new();
        for _ in 0..self.connection.read_length()? {
            let mut key = Vec::new();
            self.connection.read_bytes(&mut key)?;
            keys.push(key);
        }
        let words = [b"MGET".as_slice()].into_iter().chain(keys.iter().map(Vec::as_slice));
        let words: Vec<&[u8]> = words.collect();
        self.connection.send(&[&words])?;
        let found = self.connection.read_length()?;
        for key in keys.iter().take(found) {
            answer.extend_from_slice(key);
            if !self.connection.read_bytes(answer)? {
                return Err(absent(number).into());
            }
        }
        Ok(())
    }
}

impl Store for Resp {
    fn run(&mut self, operation: Operation, texts: &Texts, answer: &mut Vec<u8>) -> Result<()> {
        match operation {
            Operation::Read(n) => self.read(n, answer),
            Operation::Update(n, field, number) => self.update(n, field, texts.text(number)),
            Operation::Modify(n, field, number) => {
                self.read(n, answer)?;
                self.update(n, field, texts.text(number))
            }
            Operation::Insert(n) => self.insert(n..n + 1, texts),
            Operation::Scan(n, count) => self.scan(n, count, answer),
        }
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.connection);
        match self.side {
            Side::Bucket(service) => service.stop(),
            Side::Redis(redis) => {
                drop(redis);
                Ok(())
            }
        }
    }
}
