//! Loads of many rows: all of them once the last has come, or none.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use esker::{Batch, Column, Database, Field, Load, Schema, Value, ValueRef};
use esker_format::batch::fit_value;
use esker_import::{Format, ImportOptions, ImportReader};
use esker_vfs::Environment;
use esker_wire::{Reader, pack, value};
use tokio::sync::mpsc;

use super::job::{Finished, Place};
use super::{decode, encode};
use crate::resources::budget::Share;
use crate::session::{
    Answer, BodyHash, Conflict, Duplicates, IdempotencyKey, Level, Request, Rows, Session,
    numbered, panic_guard::caught,
};
use crate::tenant::{LoadPermit, QuotaReservation};
use crate::{Code, Error, Result};

/// Rows that go to the load at once: few enough to lie in a cache until they are copied.
const BATCH_ROWS: usize = 4 << 10;

/// Chunks that wait for a load; then the connection is read no further.
pub(crate) const CHUNKS_MAX: usize = 8;

const GIVEN_UP: &str = "the load was given up before its end";

/// A part of the rows with its share of the budget; `None` behind the last.
pub(crate) type Chunk = Option<(Vec<u8>, Share)>;

/// How rows come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Pack,
    Text(Format),
}

/// Which load.
#[derive(Debug)]
pub(crate) struct Begin {
    table: String,
    form: Form,
    duplicates: Duplicates,
    /// By which it is done once.
    key: Option<String>,
}

impl Begin {
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(payload);
        // The key came later: what goes without has three.
        let has_key = Reader::new(payload).array().is_ok_and(|count| count == 4);
        reader.array_of(if has_key { 4 } else { 3 })?;
        let table = reader.text()?.to_owned();
        let form = match reader.text()? {
            "messagepack" => Form::Pack,
            "csv" => Form::Text(Format::Csv),
            "ndjson" => Form::Text(Format::Ndjson),
            other => {
                let message = format!("expected csv, ndjson or messagepack, found {other:?}");
                return Err(Error::invalid(message));
            }
        };
        let duplicates = Duplicates::of(reader.text()?)?;
        let key = if has_key { Some(reader.text()?.to_owned()) } else { None };
        reader.finish()?;
        Ok(Self { table, form, duplicates, key })
    }

    /// Of rows as JSON, one a line.
    pub fn of_lines(table: String, on_duplicate: &str, key: Option<String>) -> Result<Self> {
        let duplicates = Duplicates::of(on_duplicate)?;
        Ok(Self { table, form: Form::Text(Format::Ndjson), duplicates, key })
    }

    /// What makes it be done once, where it has a key.
    ///
    /// # Errors
    /// Within a transaction; when the key is none, or the load leaves rows out.
    pub fn once(
        &self,
        session: &Session,
        protocol: &str,
        lifetime: Duration,
    ) -> Result<Option<IdempotencyKey>> {
        if session.is_in_transaction() {
            let message = "a load is a commit of its own: expected no transaction";
            return Err(Error::invalid(message));
        }
        let Some(key) = &self.key else { return Ok(None) };
        if self.duplicates == Duplicates::Skip {
            let message = "on duplicate: skip is not for a load with an idempotency key";
            return Err(Error::invalid(message));
        }
        let scope = [session.token().as_bytes(), protocol.as_bytes(), b"load"];
        IdempotencyKey::of_parts(key, &scope, lifetime).map(Some)
    }

    /// What is hashed before the rows.
    fn hash(&self) -> BodyHash {
        let form = format!("{:?} {:?}", self.form, self.duplicates);
        BodyHash::new(&[self.table.as_bytes(), form.as_bytes()])
    }
}

/// Which load, and the key by which it is done once.
type Asked = (Begin, Option<IdempotencyKey>);

/// Starts a load, which takes chunks until there are no more, once it has its turn.
pub(super) fn start(
    place: Place,
    asked: Asked,
    session: Session,
    patience: Duration,
    chunks: mpsc::Receiver<Chunk>,
) {
    tokio::spawn(async move {
        let permit = permit_of(&session, patience).await;
        tokio::task::spawn_blocking(move || {
            let (mut bytes, mut finished) = (Vec::new(), Finished::default());
            match load_with(permit, asked, session, chunks) {
                Ok(rows) => encode::done(&mut bytes, place.id, |out| pack::uint(out, rows)),
                Err(e) => {
                    encode::error(&mut bytes, place.id, &e);
                    finished.failed = Some(e.code());
                }
            }
            place.finish(bytes, finished);
        });
    });
}

/// Loads once it has its turn.
///
/// # Errors
/// As for [`load`]; `LimitExceeded` when there is no place for so long.
pub(crate) async fn load_in_turn(
    asked: Asked,
    session: Session,
    patience: Duration,
    chunks: mpsc::Receiver<Chunk>,
) -> Result<u64> {
    let permit = permit_of(&session, patience).await;
    let loaded = tokio::task::spawn_blocking(move || load_with(permit, asked, session, chunks));
    loaded.await.map_err(|_| Error::new(Code::Unavailable, "the server stops"))?
}

/// Waits for a place among the loads, without a thread.
async fn permit_of(session: &Session, patience: Duration) -> Result<Option<LoadPermit>> {
    match session.loads() {
        Some(loads) => loads.begin(patience).await.map(Some),
        None => Ok(None),
    }
}

/// Loads, and gives the place back.
fn load_with(
    permit: Result<Option<LoadPermit>>,
    (begin, once): Asked,
    mut session: Session,
    chunks: mpsc::Receiver<Chunk>,
) -> Result<u64> {
    let _permit = permit?;
    caught(|| load(&begin, once, &mut session, chunks)).and_then(|loaded| loaded)
}

/// Takes all chunks and loads their rows; how many.
///
/// # Errors
/// The first row that does not fit, what the session may not do, `Cancelled` when the last chunk
/// never came; nothing is loaded then.
fn load(
    begin: &Begin,
    once: Option<IdempotencyKey>,
    session: &mut Session,
    chunks: mpsc::Receiver<Chunk>,
) -> Result<u64> {
    session.expect(Level::Write, Some(&begin.table))?;
    if let Some(once) = once {
        return load_once(begin, once, session, chunks);
    }
    let mut room = QuotaReservation::default();
    session.reserve_load_quota(&mut room, 1)?;
    let database: &Database = session.database();
    let table = database.table(&begin.table)?;
    let schema = table.schema();
    let mut load = table.load()?;
    begin.duplicates.tell(&mut load)?;
    let chunks = Chunks::new(chunks, None);
    let given_up = Arc::clone(&chunks.given_up);
    let mut loading = Loading { session, load, room };
    let pushed = push_all(&mut loading, begin.form, &schema, chunks);
    if given_up.load(Ordering::Relaxed) {
        return Err(Error::new(Code::Cancelled, GIVEN_UP));
    }
    pushed?;
    session.expect_valid()?;
    let Loading { load, room, .. } = loading;
    let stored = load.finish()?.rows;
    // What it brought is there now, and is counted as that.
    drop(room);
    Ok(stored)
}

/// The same in a transaction, together with keeping what is answered. What came before under its
/// key is not loaded again.
fn load_once(
    begin: &Begin,
    once: IdempotencyKey,
    session: &mut Session,
    chunks: mpsc::Receiver<Chunk>,
) -> Result<u64> {
    let schema = session.database().table(&begin.table)?.schema();
    let kept = once.run_parts(session, |session, is_kept| {
        let hash = Arc::new(Mutex::new(begin.hash()));
        let chunks = Chunks::new(chunks, Some(Arc::clone(&hash)));
        let given_up = Arc::clone(&chunks.given_up);
        let mut inserting = Inserting { session, begin, schema: &schema, rows: 0 };
        let pushed = match is_kept {
            true => chunks.skip_all(),
            false => push_all(&mut inserting, begin.form, &schema, chunks),
        };
        if given_up.load(Ordering::Relaxed) {
            return Err(Error::new(Code::Cancelled, GIVEN_UP));
        }
        pushed?;
        inserting.session.expect_valid()?;
        let hash = hash.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok((hash, inserting.rows.to_le_bytes().to_vec()))
    });
    let kept: std::result::Result<[u8; 8], _> = kept?.try_into();
    kept.map(u64::from_le_bytes).map_err(|_| Error::new(Code::Damaged, "a count of rows"))
}

/// Takes the rows of a load.
trait RowTarget {
    /// Takes some, as long as there is room for them.
    fn push(&mut self, batch: Batch) -> Result<()>;
    /// How many were taken.
    fn rows(&self) -> u64;
    /// Called with the memory that it takes to read them.
    fn reserve_input(&mut self, bytes: u64) -> Result<()>;
}

/// Rows that are inserted in the transaction of a session.
struct Inserting<'a> {
    session: &'a mut Session,
    begin: &'a Begin,
    schema: &'a Schema,
    rows: u64,
}

impl RowTarget for Inserting<'_> {
    fn push(&mut self, batch: Batch) -> Result<()> {
        let rows = Rows::of_batches(std::slice::from_ref(&batch), self.schema);
        let conflict = match self.begin.duplicates {
            Duplicates::Replace => Conflict::Replace,
            Duplicates::Error | Duplicates::Skip => Conflict::Fail,
        };
        let insert = Request::Insert { table: self.begin.table.clone(), rows, conflict };
        let first = self.rows;
        let stored = self.session.run(insert).map_err(|e| in_load(e, first))?;
        if let Answer::Stored { rows, .. } = stored {
            self.rows += rows;
        }
        Ok(())
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn reserve_input(&mut self, _bytes: u64) -> Result<()> {
        Ok(())
    }
}

/// The error of a row of a part, with its number among all.
fn in_load(e: Error, first: u64) -> Error {
    numbered(e.message(), first).map_or(e.clone(), |message| Error::new(e.code(), message))
}

/// A load, and the room for it.
struct Loading<'a> {
    session: &'a Session,
    load: Load,
    room: QuotaReservation,
}

impl RowTarget for Loading<'_> {
    fn push(&mut self, batch: Batch) -> Result<()> {
        self.load.push(batch)?;
        self.session.reserve_load_quota(&mut self.room, self.load.rows())
    }

    fn rows(&self) -> u64 {
        self.load.rows()
    }

    fn reserve_input(&mut self, bytes: u64) -> Result<()> {
        Ok(self.load.reserve_input(bytes)?)
    }
}

fn push_all(
    loading: &mut impl RowTarget,
    form: Form,
    schema: &Schema,
    mut chunks: Chunks,
) -> Result<()> {
    match form {
        Form::Pack => push_packed(loading, schema, &mut chunks),
        Form::Text(format) => {
            let options = ImportOptions::default().format(format).schema(schema.clone());
            let reader =
                ImportReader::from_reader(&Environment::os(), "load", chunks, None, options)?;
            loading.reserve_input(reader.memory_bytes())?;
            reader.read(|batch, _| loading.push(batch))?;
            Ok(())
        }
    }
}

fn push_packed(loading: &mut impl RowTarget, schema: &Schema, chunks: &mut Chunks) -> Result<()> {
    let mut batch = Batch::empty(schema);
    while let Some(chunk) = chunks.next()? {
        let mut reader = Reader::new(&chunk.0);
        while !reader.is_at_end() {
            // People count from 1.
            let row = loading.rows() + batch.len() as u64 + 1;
            push_row(&mut reader, schema, &mut batch)
                .map_err(|e| e.at(format_args!("row {row}")))?;
            if batch.len() >= BATCH_ROWS {
                loading.push(std::mem::replace(&mut batch, Batch::empty(schema)))?;
            }
        }
    }
    if !batch.is_empty() {
        loading.push(batch)?;
    }
    Ok(())
}

/// Appends a row: an array with a value for every field, or a map of fields.
#[inline]
fn push_row(reader: &mut Reader<'_>, schema: &Schema, batch: &mut Batch) -> Result<()> {
    if decode::is_map(reader)? {
        return push_named(decode::named(reader)?, schema, batch);
    }
    reader.array_of(schema.fields().len())?;
    for (field, column) in schema.fields().iter().zip(&mut batch.columns) {
        let mut held = Vec::new();
        let value = value::read(reader, &mut held)?;
        push_value(field, value, column)?;
    }
    Ok(())
}

fn push_value(field: &Field, value: ValueRef<'_>, column: &mut Column) -> Result<()> {
    match field.as_list(value)? {
        Some(list) => column.push(fit_value(field, list.as_ref())?)?,
        None => column.push(fit_value(field, value)?)?,
    }
    Ok(())
}

/// The same by names. A field that is left out gets its default.
fn push_named(row: Vec<(&str, Value)>, schema: &Schema, batch: &mut Batch) -> Result<()> {
    let fields = schema.fields();
    let mut values: Vec<Option<Value>> = vec![None; fields.len()];
    for (name, value) in row {
        let position = schema.resolve(name)?;
        if values.get_mut(position).and_then(|slot| slot.replace(value)).is_some() {
            return Err(Error::invalid(format!("the row has field {name:?} twice")));
        }
    }
    for ((field, column), value) in fields.iter().zip(&mut batch.columns).zip(values) {
        match value {
            None if field.default.is_some() => column.push_missing(),
            value => push_value(field, value.unwrap_or_default().as_ref(), column)?,
        }
    }
    Ok(())
}

/// The chunks of a load, one after another, to be read like a file.
struct Chunks {
    chunks: mpsc::Receiver<Chunk>,
    /// The one that is read, with its share of the budget.
    current: Option<(Vec<u8>, Share)>,
    at: usize,
    ended: bool,
    given_up: Arc<AtomicBool>,
    /// Of all that has come, where somebody wants to know.
    hash: Option<Arc<Mutex<BodyHash>>>,
}

impl Chunks {
    fn new(chunks: mpsc::Receiver<Chunk>, hash: Option<Arc<Mutex<BodyHash>>>) -> Self {
        Self { chunks, current: None, at: 0, ended: false, given_up: Arc::default(), hash }
    }

    /// Takes all, and does nothing with them.
    fn skip_all(mut self) -> Result<()> {
        while self.next()?.is_some() {}
        Ok(())
    }

    /// The next chunk; an error when the client went away before the last.
    fn next(&mut self) -> Result<Chunk> {
        if self.ended {
            return Ok(None);
        }
        match self.chunks.blocking_recv() {
            Some(Some(chunk)) => {
                if let Some(hash) = &self.hash {
                    hash.lock().unwrap_or_else(PoisonError::into_inner).add(&chunk.0);
                }
                Ok(Some(chunk))
            }
            Some(None) => {
                self.ended = true;
                Ok(None)
            }
            None => {
                self.given_up.store(true, Ordering::Relaxed);
                Err(Error::new(Code::Cancelled, GIVEN_UP))
            }
        }
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.current.as_ref().and_then(|(bytes, _)| bytes.get(self.at..));
            if let Some(mut rest) = rest.filter(|rest| !rest.is_empty()) {
                let read = rest.read(buffer)?;
                self.at += read;
                return Ok(read);
            }
            (self.current, self.at) = (self.next().map_err(io::Error::other)?, 0);
            if self.current.is_none() {
                return Ok(0);
            }
        }
    }
}
