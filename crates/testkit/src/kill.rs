//! A process that writes to a real directory and is killed, again and again.
//!
//! The child does operation 1, 2, … and prints each number once the operation has returned. What
//! operation *n* does follows from *n* alone, so the parent knows what the database must hold: the
//! effects of all operations that were printed, and perhaps of the one after.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use esker::{
    Alteration, DataType, Database, Field, FieldId, Options, Schema, Transaction, Ttl, Value,
};
use esker_vfs::sim::Generator;

use crate::model::TableKind;

/// Cycles on one directory, before the next begins with an empty one.
const CYCLES_EACH: u64 = 25;

type Rows = BTreeMap<u64, Vec<Value>>;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the database holds.
#[derive(Default)]
struct State {
    rows: Rows,
    /// The entries of the buckets, as in [`BUCKETS`].
    entries: [Entries; 2],
    /// The rows of the table that transactions make anew, where it is there.
    made: Vec<Vec<Value>>,
}

const BUCKETS: [&str; 2] = ["b", "c"];

/// The key of a number that grows.
const TOTAL: &[u8] = b"total";

/// What operation `n` does.
enum Operation {
    Insert(Vec<u64>),
    Load(Vec<u64>),
    Update(u64),
    Delete(u64),
    /// Entries of the first bucket, in one commit, by the log or by a load.
    Put(Vec<(Vec<u8>, Vec<u8>)>),
    PutByLoad(Vec<(Vec<u8>, Vec<u8>)>),
    /// A row and an entry of each bucket, in one commit.
    Batch(u64),
    Increment(i64),
    RemovePrefix(Vec<u8>),
    /// An entry that has expired when it is put.
    PutExpired(Vec<u8>),
    /// A row, entries, and a table that takes the place of another, in one transaction of which a
    /// part is taken back.
    Transaction(u64),
}

/// The table that transactions make anew.
const MADE: &str = "made";

/// Its rows once operation `n` has made it; it has one field more each time, up to three.
fn made(n: u64) -> Vec<Vec<Value>> {
    let fields = 1 + n / 10 % 3;
    (0..4).map(|id| (0..=fields).map(|field| Value::Uint(id + field * n)).collect()).collect()
}

/// Makes the table anew, and gives it its last field when it has its rows.
fn make(n: u64, transaction: &Transaction) -> esker::Result<()> {
    let rows = made(n);
    let last = rows.first().map_or(0, Vec::len).saturating_sub(1);
    let mut schema = Schema::builder();
    for field in 0..last {
        schema = schema.field(format!("f{field}"), DataType::U64);
    }
    let new = transaction.create_table("new", schema.primary_key(["f0"]).build()?)?;
    for row in &rows {
        new.insert(row.get(..last).unwrap_or_default())?;
    }
    if transaction.tables()?.iter().any(|name| name == MADE) {
        transaction.drop_table(MADE)?;
    }
    transaction.rename_table("new", MADE)?;
    let field = Field::new(FieldId(0), format!("f{last}"), DataType::U64, false);
    let field = Field { initial: Value::Uint(0), ..field };
    transaction.alter_table(MADE, &[Alteration::AddField(field)])?;
    transaction.table(MADE)?.upsert_many(&rows)
}

/// Operation `n` in one transaction, of which what comes after a savepoint is taken back.
fn transact(n: u64, db: &Database) -> esker::Result<()> {
    let transaction = db.begin()?;
    let t = transaction.table("t")?;
    t.insert(&row(n * 100, n))?;
    let bucket = transaction.bucket("b")?;
    let (name, value) = entry(n, 60);
    bucket.put(&name, &value)?;
    bucket.remove(entry(n.saturating_sub(1), 1).0)?;
    let savepoint = transaction.savepoint();
    t.insert(&row(n * 100 + 1, n))?;
    bucket.put(entry(n, 61).0, b"undone")?;
    transaction.drop_table("t")?;
    transaction.rollback_to(savepoint)?;
    make(n, &transaction)?;
    transaction.commit().map(drop)
}

/// Entries put by operations of this ten have this prefix.
fn prefix(n: u64) -> Vec<u8> {
    format!("{:010}-", n / 10).into_bytes()
}

fn entry(n: u64, i: u64) -> (Vec<u8>, Vec<u8>) {
    let key = [prefix(n), i.to_string().into_bytes()].concat();
    (key, format!("{n}").repeat(1 + usize::try_from(i % 7).unwrap_or_default()).into_bytes())
}

fn number(value: Option<&Vec<u8>>) -> i64 {
    let bytes = value.and_then(|value| <[u8; 8]>::try_from(value.as_slice()).ok());
    bytes.map_or(0, |b| (u64::from_le_bytes(b).swap_bytes() ^ (1 << 63)).cast_signed())
}

impl Operation {
    fn of(n: u64) -> Self {
        let key = |n: u64| n * 100;
        match n % 10 {
            1 => Self::Put((0..5).map(|i| entry(n, i)).collect()),
            3 => Self::Batch(key(n)),
            5 if n % 20 == 5 => Self::PutExpired(entry(n, 1).0),
            5 => Self::Increment(i64::try_from(n).unwrap_or_default()),
            6 => Self::RemovePrefix(prefix(n.saturating_sub(30))),
            9 => Self::PutByLoad((10..40).map(|i| entry(n, i)).collect()),
            2 => Self::Transaction(key(n)),
            0 => Self::Load((0..20).map(|i| key(n) + i).collect()),
            4 => Self::Insert((0..5).map(|i| key(n) + i).collect()),
            7 => Self::Delete(key(n - 5)),
            8 => Self::Update(key(n.saturating_sub(8).max(10) / 10 * 10) + n % 20),
            _ => Self::Insert(vec![key(n)]),
        }
    }
}

/// The row that operation `n` writes.
fn row(key: u64, n: u64) -> Vec<Value> {
    TableKind::Integer.row(key, n, &mut Generator::new(key, n)).values
}

fn apply(n: u64, state: &mut State) {
    let State { rows, entries: [first, second], made: made_anew } = state;
    match Operation::of(n) {
        Operation::Insert(keys) | Operation::Load(keys) => {
            rows.extend(keys.into_iter().map(|key| (key, row(key, n))));
        }
        Operation::Update(key) => {
            if let Some(row) = rows.get_mut(&key)
                && let Some(serial) = row.get_mut(TableKind::Integer.serial_position())
            {
                *serial = Value::Uint(n);
            }
        }
        Operation::Delete(key) => drop(rows.remove(&key)),
        Operation::Put(entries) | Operation::PutByLoad(entries) => first.extend(entries),
        Operation::Batch(key) => {
            rows.insert(key, row(key, n));
            first.extend([entry(n, 50)]);
            second.extend([entry(n, 50)]);
        }
        Operation::Increment(by) => {
            let sum = number(first.get(TOTAL)) + by;
            let bytes = (sum.cast_unsigned() ^ (1 << 63)).swap_bytes().to_le_bytes();
            first.insert(TOTAL.to_vec(), bytes.to_vec());
        }
        Operation::RemovePrefix(prefix) => first.retain(|key, _| !key.starts_with(&prefix)),
        Operation::PutExpired(key) => drop(first.remove(&key)),
        Operation::Transaction(key) => {
            rows.insert(key, row(key, n));
            first.extend([entry(n, 60)]);
            first.remove(&entry(n.saturating_sub(1), 1).0);
            *made_anew = made(n);
        }
    }
}

fn perform(n: u64, db: &Database) -> esker::Result<()> {
    let table = db.table("t")?;
    let [first, second] = BUCKETS.map(|name| db.bucket(name));
    let (first, second) = (first?, second?);
    let key = |key| TableKind::Integer.key(key);
    match Operation::of(n) {
        Operation::Insert(keys) => {
            let rows: Vec<_> = keys.iter().map(|key| row(*key, n)).collect();
            table.insert_many(&rows)?;
        }
        Operation::Load(keys) => {
            let mut load = table.load()?;
            keys.iter().try_for_each(|key| load.push_row(&row(*key, n)))?;
            load.finish()?;
        }
        Operation::Update(of) => {
            table.update(&key(of), &[("serial", Value::Uint(n))])?;
        }
        Operation::Delete(of) => {
            table.delete(&key(of))?;
        }
        Operation::Put(entries) => first.put_many(entries)?,
        Operation::PutByLoad(entries) => {
            let mut load = first.as_table().load()?;
            for (key, value) in entries {
                load.push_row(&[Value::Bytes(key), Value::Bytes(value), Value::Null])?;
            }
            load.finish()?;
        }
        Operation::Batch(key) => {
            let (name, value) = entry(n, 50);
            let mut batch = db.batch();
            batch.put(&first, &name, &value)?.put(&second, &name, &value)?;
            batch.insert(&table, &row(key, n))?;
            batch.commit()?;
        }
        Operation::Increment(by) => drop(first.increment(TOTAL, by)?),
        Operation::RemovePrefix(prefix) => drop(first.remove_prefix(prefix)?),
        Operation::PutExpired(key) => first.put_with(key, "gone", Ttl::At(1))?,
        Operation::Transaction(_) => transact(n, db)?,
    }
    Ok(())
}

fn open(directory: &Path) -> esker::Result<Database> {
    Options::new()
        .group_limit(32, 1 << 20)
        .small_group_limit(1_000)
        .segment_limit(8)
        .log_limit(40_000)
        .open(directory)
}

/// The child: works until it is killed.
fn work(directory: &Path, mut n: u64) -> Result<(), String> {
    let db = open(directory).map_err(|e| format!("open: {e}"))?;
    if db.table("t").is_err() {
        let schema = TableKind::Integer.schema().map_err(|e| e.to_string())?;
        db.create_table("t", schema).map_err(|e| e.to_string())?;
    }
    let mut out = std::io::stdout();
    loop {
        n += 1;
        perform(n, &db).map_err(|e| format!("operation {n}: {e}"))?;
        writeln!(out, "{n}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    }
}

/// What the database holds is what operations up to `acked`, or one more, have left there: returns
/// which.
fn compare(directory: &Path, acked: u64, state: &mut State) -> Result<u64, String> {
    let db = open(directory).map_err(|e| format!("open: {:?}: {e}", e.kind()))?;
    let report = db.check().map_err(|e| format!("check: {e}"))?;
    if let Some(problem) = report.problems.first() {
        return Err(format!("check: {problem:?}"));
    }
    let found = read(&db).map_err(|e| e.to_string())?;
    let is_found = |state: &State| {
        found.rows == state.rows && found.entries == state.entries && found.made == state.made
    };
    if is_found(state) {
        return Ok(acked);
    }
    apply(acked + 1, state);
    if is_found(state) {
        return Ok(acked + 1);
    }
    let count = |state: &State| (state.rows.len(), state.entries.each_ref().map(BTreeMap::len));
    let (found, expected) = (count(&found), count(state));
    Err(format!("{found:?} rows and entries after operation {acked}, expected {expected:?}"))
}

fn read(db: &Database) -> esker::Result<State> {
    let mut found = State::default();
    if let Ok(table) = db.table("t") {
        for (_, values) in table.snapshot()?.rows()? {
            let refs: Vec<_> = values.iter().map(Value::as_ref).collect();
            found.rows.insert(TableKind::Integer.ident(&refs).unwrap_or(u64::MAX), values);
        }
    }
    if let Ok(table) = db.table(MADE) {
        found.made = table.snapshot()?.rows()?.into_iter().map(|(_, values)| values).collect();
        found.made.sort();
    }
    for (name, entries) in BUCKETS.into_iter().zip(&mut found.entries) {
        if db.tables().iter().any(|there| there == name) {
            for entry in db.bucket(name)?.iter()? {
                entries.extend([entry?.to_pair()]);
            }
        }
    }
    Ok(found)
}

/// Lets a child work and kills it; the last operation that it printed.
#[allow(clippy::disallowed_methods, reason = "real processes and real time are what this is about")]
fn cycle(directory: &Path, from: u64, delay: Duration) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child: Child = Command::new(program)
        .args(["--child".as_ref(), directory.as_os_str()])
        .arg(from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let out = child.stdout.take().ok_or("no pipe")?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            lines.filter_map(|line| line.parse().ok()).last().unwrap_or(from)
        });
        std::thread::sleep(delay);
        let died = child.try_wait().map_err(|e| e.to_string())?;
        let _ = child.kill();
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        if died.is_some() {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("the process ended by itself: {why}"));
        }
        reader.join().map_err(|_| "the reader panicked".to_owned())
    })
}

/// Kills a loading process so many times; the number of operations that were acknowledged.
///
/// # Errors
/// What is wrong after which kill.
#[allow(clippy::disallowed_methods, reason = "a real directory is what this is about")]
pub fn kill_loop(cycles: u64, seed: u64) -> Result<u64, String> {
    let mut generator = Generator::new(seed, 80);
    let name = format!("esker-kill-{}-{seed}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    let (mut state, mut n, mut all) = (State::default(), 0, 0);
    for number in 0..cycles {
        if number % CYCLES_EACH == 0 {
            let _ = std::fs::remove_dir_all(&directory);
            (state, n) = (State::default(), 0);
        }
        let delay = Duration::from_millis(2 + generator.below(300));
        let at = |why: String| format!("kill {number} after {delay:?}: {why} ({directory:?})");
        let acked = cycle(&directory, n, delay).map_err(at)?;
        all += acked - n;
        (n + 1..=acked).for_each(|n| apply(n, &mut state));
        if directory.exists() {
            n = compare(&directory, acked, &mut state).map_err(at)?;
        }
    }
    let _ = std::fs::remove_dir_all(&directory);
    Ok(all)
}

/// Runs the `kill_loop` program.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["--child", directory, from] => {
            work(Path::new(directory), from.parse().unwrap_or_default()).map(|()| 0)
        }
        [] => kill_loop(50, 1),
        ["--cycles", cycles] => kill_loop(cycles.parse().unwrap_or(50), 1),
        ["--cycles", cycles, "--seed", seed] => {
            kill_loop(cycles.parse().unwrap_or(50), seed.parse().unwrap_or(1))
        }
        _ => Err("usage: kill_loop [--cycles N [--seed N]]".to_owned()),
    };
    match outcome {
        Ok(operations) => {
            println!("operations acknowledged {operations}, lost 0, failures 0");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
