//! What the clients of one simulated machine share: the database, and what has happened to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use esker::{Database, ErrorKind, Value};
use esker_vfs::sim::Simulation;

use crate::history::{Action, Event, Held, History, Outcome};
use crate::model::{State, TableState};

/// How many operations are kept in words.
const LAST_OPERATIONS: usize = 2_000;

/// What a read saw.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The commit it read at.
    pub at: u64,
    /// The table.
    pub table: String,
    /// What it found.
    pub saw: Saw,
}

/// What a read found.
#[derive(Clone, Debug)]
pub(crate) enum Saw {
    /// All rows, with their row ids.
    Rows(Vec<(u64, Vec<Value>)>),
    /// The row of a key.
    Row(u64, Option<Vec<Value>>),
    /// The number of rows.
    Count(u64),
}

/// The keys that a load holds, or may hold.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    pub table: String,
    pub perhaps: BTreeSet<u64>,
    pub surely: BTreeSet<u64>,
    /// Its table was dropped: another of that name knows nothing of it.
    pub dropped: bool,
}

/// What the mutex guards. Nobody keeps it locked while the engine works.
pub(crate) struct Inner {
    pub db: Option<Database>,
    pub history: History,
    pub events: Vec<Event>,
    pub reads: Vec<Read>,
    /// Row ids that were returned: commit, table, key, row id.
    pub row_ids: Vec<(u64, String, u64, u64)>,
    pub loads: BTreeMap<u64, Holding>,
    /// Tables that may be of another kind now than the model knows.
    pub remade: BTreeSet<String>,
    pub next_serial: u64,
    pub operations: VecDeque<(u64, String)>,
    pub problem: Option<String>,
    /// An answer said that this life of the database is over.
    pub over: bool,
    /// Commits are durable when they return.
    pub sync: bool,
}

/// What the clients of one simulated machine share.
pub(crate) struct World {
    pub machine: Simulation,
    inner: Mutex<Inner>,
}

/// An operation that has begun.
pub(crate) struct Begun {
    pub db: Database,
    pub from: u64,
    pub held: Held,
}

impl World {
    pub fn new(machine: Simulation, history: History, next_serial: u64, sync: bool) -> Self {
        let inner = Inner {
            db: None,
            history,
            events: Vec::new(),
            reads: Vec::new(),
            row_ids: Vec::new(),
            loads: BTreeMap::new(),
            remade: BTreeSet::new(),
            next_serial,
            operations: VecDeque::new(),
            problem: None,
            over: false,
            sync,
        };
        Self { machine, inner: Mutex::new(inner) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest state that has been judged.
    pub fn state(&self) -> Arc<State> {
        Arc::clone(self.lock().history.newest())
    }

    /// A number that no row has had.
    pub fn serial(&self) -> u64 {
        let mut inner = self.lock();
        inner.next_serial += 1;
        inner.next_serial
    }

    /// Remembers an operation for reports.
    pub fn note(&self, what: impl FnOnce() -> String) {
        let io = self.machine.io_count();
        let mut inner = self.lock();
        if inner.operations.len() == LAST_OPERATIONS {
            inner.operations.pop_front();
        }
        inner.operations.push_back((io, what()));
    }

    /// Reports a wrong answer.
    pub fn fail(&self, why: impl Into<String>) {
        self.lock().problem.get_or_insert(why.into());
    }

    /// Begins an operation; `None` while no database is open.
    pub fn begin(&self, action: Option<&Action>, own_load: Option<u64>) -> Option<Begun> {
        let mut inner = self.lock();
        let db = inner.db.clone()?;
        if let Some(Action::Drop { name }) = action {
            for load in inner.loads.values_mut().filter(|load| load.table == *name) {
                let surely = std::mem::take(&mut load.surely);
                load.perhaps.extend(surely);
                load.dropped = true;
            }
        }
        if let Some(Action::Create { name, .. }) = action {
            inner.remade.insert(name.clone());
        }
        let held = action.map_or(Held::No, |action| inner.held(action, own_load));
        drop(inner);
        let from = db.info().published_commit;
        Some(Begun { db, from, held })
    }

    /// Ends a change: notes what was answered, and what that promises.
    pub fn end(
        &self,
        begun: &Begun,
        action: Action,
        result: Result<Done, esker::Error>,
        incarnation: Option<u64>,
    ) {
        let until = begun.db.info().published_commit;
        let (outcome, commit) = match &result {
            Ok(Done::Changed { commit, .. }) => {
                (Outcome::Done, Some(commit.unwrap_or(begun.from + 1)))
            }
            Ok(Done::Unchanged) => (Outcome::Unchanged, None),
            Err(e) => {
                let unknown = e.kind() == ErrorKind::OutcomeUnknown && incarnation.is_none();
                let outcome = Outcome::Refused(e.kind(), e.to_string());
                (outcome, unknown.then_some(begun.from + 1))
            }
        };
        self.note(|| format!("{} {outcome:?} as {commit:?}", describe(&action)));
        let mut inner = self.lock();
        if let Err(e) = &result {
            inner.over |= matches!(e.kind(), ErrorKind::OutcomeUnknown | ErrorKind::Poisoned);
        }
        if inner.sync {
            // A refusal, too, tells of what was committed before.
            match (&outcome, commit) {
                (Outcome::Done, Some(commit)) => self.machine.mark(commit),
                (Outcome::Unchanged, _) | (Outcome::Refused(ErrorKind::AlreadyExists, _), _) => {
                    self.machine.mark(begun.from);
                }
                _ => {}
            }
        }
        if let (Ok(Done::Changed { row_id: Some(row_id), .. }), Some(commit)) = (&result, commit)
            && let Some((table, ident)) = one_row(&action)
        {
            inner.row_ids.push((commit, table, ident, *row_id));
        }
        let (from, held) = (begun.from, begun.held);
        inner.events.push(Event { from, until, commit, action, outcome, held, incarnation });
    }

    /// Notes what a read saw.
    pub fn saw(&self, at: u64, table: &str, saw: Saw) {
        let mut inner = self.lock();
        if inner.sync {
            self.machine.mark(at);
        }
        inner.reads.push(Read { at, table: table.to_owned(), saw });
    }

    /// Judges everything that happened since the last time. No operation may be under way.
    pub fn judge(&self) -> Result<(), String> {
        let mut inner = self.lock();
        if let Some(problem) = inner.problem.take() {
            return Err(problem);
        }
        let events = std::mem::take(&mut inner.events);
        inner.history.judge(events)?;
        inner.remade.clear();
        for (commit, table, ident, row_id) in std::mem::take(&mut inner.row_ids) {
            let state = Arc::clone(inner.history.at(commit));
            let row = state.table(&table).and_then(|table| table.rows.get(&ident));
            let born = row.ok_or("a row id was returned for a row that is not there")?.born;
            inner.history.learn_row_id(born, row_id)?;
        }
        for read in std::mem::take(&mut inner.reads) {
            judge_read(&mut inner.history, &read)
                .map_err(|why| format!("a read of {} at commit {}: {why}", read.table, read.at))?;
        }
        Ok(())
    }
}

/// What a change that succeeded did.
pub(crate) enum Done {
    /// It changed something; the commit, where it is not simply the next one.
    Changed { row_id: Option<u64>, commit: Option<u64> },
    /// There was nothing to do.
    Unchanged,
}

impl Inner {
    fn held(&self, action: &Action, own_load: Option<u64>) -> Held {
        let (table, idents): (&String, Vec<u64>) = match action {
            Action::Insert { table, rows } | Action::Upsert { table, rows } => {
                (table, rows.iter().map(|row| row.ident).collect())
            }
            Action::Update { table, ident, .. } | Action::Delete { table, ident } => {
                (table, vec![*ident])
            }
            _ => return Held::No,
        };
        let others =
            self.loads.iter().filter(|(id, l)| Some(**id) != own_load && l.table == *table);
        let held = |load: &Holding, ident: &u64| match load {
            load if load.surely.contains(ident) => Held::Surely,
            load if load.perhaps.contains(ident) => Held::Perhaps,
            _ => Held::No,
        };
        others
            .flat_map(|(_, load)| idents.iter().map(move |ident| held(load, ident)))
            .max()
            .unwrap_or_default()
    }
}

fn describe(action: &Action) -> String {
    match action {
        Action::Insert { table, rows } | Action::Upsert { table, rows } if rows.len() > 3 => {
            let verb = if matches!(action, Action::Insert { .. }) { "insert" } else { "upsert" };
            format!("{verb} {} rows into {table}", rows.len())
        }
        _ => {
            let mut text = format!("{action:?}");
            if text.len() > 300 {
                let end = (0..=300).rev().find(|end| text.is_char_boundary(*end));
                text.truncate(end.unwrap_or_default());
            }
            text
        }
    }
}

fn one_row(action: &Action) -> Option<(String, u64)> {
    let (Action::Insert { table, rows } | Action::Upsert { table, rows }) = action else {
        return None;
    };
    match rows.as_slice() {
        [row] => Some((table.clone(), row.ident)),
        _ => None,
    }
}

fn judge_read(history: &mut History, read: &Read) -> Result<(), String> {
    // A snapshot has the tables of its commit, whatever became of them since.
    let state = Arc::clone(history.at(read.at));
    match (&read.saw, state.table(&read.table)) {
        (saw, None) => Err(format!("{saw:?} in a table that did not exist then")),
        (Saw::Count(count), Some(table)) => {
            let want = table.rows.len() as u64;
            if *count == want { Ok(()) } else { Err(format!("counted {count}, expected {want}")) }
        }
        (Saw::Row(ident, values), Some(table)) => {
            let want = table.rows.get(ident).map(|row| &row.values);
            if values.as_ref() == want {
                Ok(())
            } else {
                Err(format!("key {ident}: found {values:?}, expected {want:?}"))
            }
        }
        (Saw::Rows(rows), Some(table)) => judge_rows(history, rows, table),
    }
}

fn judge_rows(
    history: &mut History,
    rows: &[(u64, Vec<Value>)],
    table: &TableState,
) -> Result<(), String> {
    if rows.len() != table.rows.len() {
        return Err(format!("{} rows, expected {}", rows.len(), table.rows.len()));
    }
    for (row_id, values) in rows {
        let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
        let model = table.kind.ident(&refs).and_then(|ident| table.rows.get(&ident));
        match model {
            Some(model) if model.values == *values => history.learn_row_id(model.born, *row_id)?,
            model => return Err(format!("row {row_id} {values:?}, expected {model:?}")),
        }
    }
    Ok(())
}
