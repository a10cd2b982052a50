//! Holds the buckets of an open database against a state, by every way of reading them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use esker::{Bucket, Database, Entries, Moment as Now, Query, Value};
use esker_vfs::sim::{Generator, Simulation};

use super::lease;
use super::model::{ModelBucket, NAMES, State};
use crate::oracle::said;

/// The bucket with one entry by which the database says what time it is.
pub(super) const CLOCK: &str = "clock";
/// That entry.
pub(super) const PROBE: &[u8] = b"probe";
/// How long it lives: for longer than any workload.
pub(super) const PROBE_TTL: Duration = Duration::from_secs(1 << 32);
/// The table that batches change.
pub(super) const TABLE: &str = "rows";

/// No operation of these workloads takes so long, in microseconds.
pub(super) const MARGIN_US: i64 = 1_000_000;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Times of a comparison, in microseconds: of one of the two clocks of a database.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// What the database says.
    pub now_us: i64,
    /// The latest that it may have been: what had expired by then may be gone for good.
    pub high_us: i64,
}

/// Times of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// By which entries expire.
    pub elapsed: Moment,
    /// By which rows expire.
    pub date: Moment,
}

impl Moment {
    /// Nothing that has not expired may be gone.
    #[must_use]
    pub fn at(now_us: i64) -> Self {
        Self { now_us, high_us: now_us }
    }
}

impl Moments {
    /// Nothing that has not expired may be gone.
    #[must_use]
    pub fn at(now: Now) -> Self {
        Self { elapsed: Moment::at(now.elapsed_us), date: Moment::at(now.date_us) }
    }

    /// What had expired by another moment may be gone.
    #[must_use]
    pub fn until(now: Now, high: Now) -> Self {
        let high = latest(now, high);
        Self {
            elapsed: Moment { now_us: now.elapsed_us, high_us: high.elapsed_us },
            date: Moment { now_us: now.date_us, high_us: high.date_us },
        }
    }
}

/// The later one of each time.
#[must_use]
pub fn latest(a: Now, b: Now) -> Now {
    Now { elapsed_us: a.elapsed_us.max(b.elapsed_us), date_us: a.date_us.max(b.date_us) }
}

/// The moment by which entries and rows expire; `None` before the clock of the workload was made.
///
/// # Errors
/// What the engine says; where a long time to live does not go on as that moment does.
pub fn time_of(db: &Database) -> Result<Option<Now>, String> {
    if !db.tables().iter().any(|name| name == CLOCK) {
        return Ok(None);
    }
    let bucket = db.bucket(CLOCK).map_err(|e| said(&e))?;
    let before = db.moment();
    let Some(left) = bucket.remaining(PROBE).map_err(|e| said(&e))?.flatten() else {
        return Ok(None);
    };
    let now = db.moment();
    if left > PROBE_TTL || now.elapsed_us < before.elapsed_us {
        return Err(format!("{left:?} left of {PROBE_TTL:?}, from {before:?} to {now:?}"));
    }
    Ok(Some(now))
}

/// Moves the clocks of a machine on until the wall clock is so late, unless it is later.
pub fn move_clock_to(machine: &Simulation, time_us: i64) {
    let left_us = time_us.saturating_sub(machine.environment().clock.wall_us());
    if let Ok(left_us) = u64::try_from(left_us) {
        machine.advance_clock(Duration::from_micros(left_us));
    }
}

/// Moves the clock past the ends of entries that are near, so that what follows meets none; tells
/// what time it is then.
///
/// # Errors
/// What the engine says.
pub fn clear_of_ends(db: &Database, machine: &Simulation, state: &State) -> Result<Now, String> {
    loop {
        let now = time_of(db)?.ok_or("the clock is gone")?;
        match near_end(state, now) {
            Some(left_us) => {
                machine.advance_clock(Duration::from_micros(left_us.unsigned_abs() + 1));
            }
            None => return Ok(now),
        }
    }
}

/// How long it is until the last one of the ends that are near.
pub(super) fn near_end(state: &State, now: Now) -> Option<i64> {
    let entries = state.ends_of_entries().map(|end_us| end_us.saturating_sub(now.elapsed_us));
    let rows = state.leases.ends().map(|end_us| end_us.saturating_sub(now.date_us));
    entries.chain(rows).filter(|left_us| (0..=MARGIN_US).contains(left_us)).max()
}

/// Where an entry is said to end on a date, at one of two moments.
pub(super) fn says_end(said_us: Option<i64>, end_us: Option<i64>, (a, b): (Now, Now)) -> bool {
    match (said_us, end_us) {
        (Some(said_us), Some(end_us)) => {
            let (a_us, b_us) = (a.date_of_elapsed(end_us), b.date_of_elapsed(end_us));
            (a_us.min(b_us)..=a_us.max(b_us)).contains(&said_us)
        }
        (said_us, end_us) => said_us == end_us,
    }
}

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The entries, bucket by bucket.
    pub buckets: Vec<Pairs>,
    /// The rows of the table whose rows expire.
    pub leases: Vec<Vec<Value>>,
}

/// Compares everything, and returns what is there of what expires.
///
/// # Errors
/// The first difference.
pub fn compare(
    db: &Database,
    state: &State,
    moments: Moments,
    generator: &mut Generator,
) -> Result<Found, String> {
    let mut all = Found::default();
    for (at, home) in NAMES.into_iter().enumerate() {
        let is_there = |name: &str| db.tables().iter().any(|there| there == name);
        if state.is_ready && state.name(at) != Some(home) && is_there(home) {
            return Err(format!("{home} is there, expected {:?}", state.bucket(at).place));
        }
        let name = match state.name(at) {
            Some(name) if state.is_ready || is_there(name) => name,
            _ => {
                all.buckets.push(Vec::new());
                continue;
            }
        };
        if !is_there(name) {
            return Err(format!("{name} is not there"));
        }
        let expected = state.bucket(at);
        let found = bucket(db, name, (expected, moments.elapsed), generator);
        let found = found.map_err(|e| format!("{name}: {e}"))?;
        expect_ends(db, name, expected).map_err(|e| format!("{name}: {e}"))?;
        all.buckets.push(found);
    }
    if state.is_ready {
        rows(db, state)?;
        let leases = lease::compare(db, &state.leases, moments.date);
        all.leases = leases.map_err(|why| format!("{}: {why}", lease::LEASES))?;
    }
    Ok(all)
}

/// What a walk gave.
pub(super) fn pairs(entries: Entries) -> Result<Pairs, String> {
    entries.map(|entry| entry.map(|entry| entry.to_pair()).map_err(|e| said(&e))).collect()
}

/// Found entries are those that must be there, and perhaps those that may.
pub(super) fn expect(
    found: &[(Vec<u8>, Vec<u8>)],
    expected: &ModelBucket,
    moment: Moment,
) -> Result<(), String> {
    if let Some(pair) = found.windows(2).find(|pair| matches!(pair, [a, b] if a.0 >= b.0)) {
        return Err(format!("not in the order of the keys: {pair:?}"));
    }
    let found: BTreeMap<_, _> = found.iter().map(|(key, value)| (key, value)).collect();
    if let Some((key, value)) = found.iter().find(|(key, _)| !expected.entries.contains_key(**key))
    {
        return Err(format!("key {key:?} with {value:?}, which was not put"));
    }
    for (key, entry) in &expected.entries {
        let (must, may) = (entry.is_there(moment.high_us), entry.is_there(moment.now_us));
        match found.get(key) {
            None if must => return Err(format!("{key:?} is not there: {entry:?}, {moment:?}")),
            Some(_) if !may => return Err(format!("{key:?} has expired: {entry:?}, {moment:?}")),
            Some(value) if **value != entry.value => {
                return Err(format!("{key:?}: found {value:?}, expected {:?}", entry.value));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Entries that are there end when they should: else two states look the same until then.
fn expect_ends(db: &Database, name: &str, expected: &ModelBucket) -> Result<(), String> {
    let before = db.moment();
    let entries = db.bucket(name).and_then(|bucket| bucket.iter()).map_err(|e| said(&e))?;
    let around = (before, db.moment());
    for entry in entries {
        let entry = entry.map_err(|e| said(&e))?;
        let end_us = entry.expires_at_us().map_err(|e| said(&e))?;
        let wanted = expected.entries.get(entry.key()).map(|entry| entry.end_us);
        if wanted.is_some_and(|wanted| !says_end(end_us, wanted, around)) {
            let key = entry.key();
            return Err(format!("{key:?} ends at {end_us:?}, expected {wanted:?}, {around:?}"));
        }
    }
    Ok(())
}

/// The entries of a bucket; every way to read them says the same.
fn bucket(
    db: &Database,
    name: &str,
    (expected, moment): (&ModelBucket, Moment),
    generator: &mut Generator,
) -> Result<Pairs, String> {
    let bucket = db.bucket(name).map_err(|e| said(&e))?;
    let found = pairs(bucket.iter().map_err(|e| said(&e))?)?;
    // A walk that ends well must be right even where other ways find damage.
    expect(&found, expected, moment)?;
    let back = bucket.iter().map_err(|e| said(&e))?.rev();
    let mut back: Pairs =
        back.map(|e| e.map(|e| e.to_pair())).collect::<esker::Result<_>>().map_err(|e| said(&e))?;
    back.reverse();
    if back != found {
        return Err(format!("from the end {back:?}, from the start {found:?}"));
    }
    let by_key: BTreeMap<_, _> = found.iter().cloned().collect();
    for key in expected.entries.keys() {
        let got = bucket.get_copy(key).map_err(|e| said(&e))?;
        if got.as_ref() != by_key.get(key) {
            return Err(format!("{key:?}: got {got:?}, walked over {:?}", by_key.get(key)));
        }
    }
    let counted = bucket.len().map_err(|e| said(&e))?;
    if counted != found.len() as u64 {
        return Err(format!("counted {counted}, walked over {}", found.len()));
    }
    let answer = db.query(&Query::table(name)).map_err(|e| said(&e))?.to_rows();
    let mut answer: Pairs = answer.into_iter().filter_map(entry_of).collect();
    answer.sort_unstable();
    if answer != found {
        return Err(format!("answered {answer:?}, walked over {found:?}"));
    }
    range(&bucket, expected, &found, generator)?;
    neighbours(&bucket, expected, &found, generator)?;
    Ok(found)
}

/// Many keys at once, the entries at the ends and those beside a key, and values that outlive
/// their entries.
fn neighbours(
    bucket: &Bucket,
    expected: &ModelBucket,
    found: &[(Vec<u8>, Vec<u8>)],
    generator: &mut Generator,
) -> Result<(), String> {
    let at = generator.index(expected.entries.len().max(1));
    let key = expected.entries.keys().nth(at).cloned().unwrap_or_default();
    let above = found.partition_point(|(there, _)| *there <= key);
    let below = found.partition_point(|(there, _)| *there < key);
    let asked = [
        ("first", bucket.first(), found.first()),
        ("last", bucket.last(), found.last()),
        ("next after", bucket.next_after(&key), found.get(above)),
        ("last before", bucket.last_before(&key), below.checked_sub(1).and_then(|n| found.get(n))),
    ];
    for (what, entry, want) in asked {
        let entry = entry.map_err(|e| said(&e))?;
        let pair = entry.as_ref().map(esker::Entry::to_pair);
        if pair.as_ref() != want {
            return Err(format!("{what} {key:?}: {pair:?}, expected {want:?}"));
        }
        let held = entry.map(|entry| entry.into_value().into_vec());
        if held.as_ref() != want.map(|(_, value)| value) {
            return Err(format!("{what} {key:?}: held {held:?}, expected {want:?}"));
        }
    }
    let values = bucket.get_many(expected.entries.keys()).map_err(|e| said(&e))?;
    let there = |key: &Vec<u8>| found.binary_search_by(|(other, _)| other.cmp(key)).ok();
    for (key, value) in expected.entries.keys().zip(&values) {
        let want = there(key).and_then(|at| found.get(at)).map(|(_, value)| value.as_slice());
        if value.as_deref() != want {
            return Err(format!("{key:?} of many: {value:?}, expected {want:?}"));
        }
    }
    Ok(())
}

fn entry_of(row: Vec<Value>) -> Option<(Vec<u8>, Vec<u8>)> {
    match row.as_slice() {
        [Value::Bytes(key), Value::Bytes(value), _] => Some((key.to_vec(), value.to_vec())),
        _ => None,
    }
}

/// A range, taken from both ends by turns, and its count.
fn range(
    bucket: &Bucket,
    expected: &ModelBucket,
    found: &[(Vec<u8>, Vec<u8>)],
    generator: &mut Generator,
) -> Result<(), String> {
    let mut bound = || {
        let at = generator.index(expected.entries.len().max(1));
        let key = expected.entries.keys().nth(at).cloned().unwrap_or_default();
        match generator.below(3) {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        }
    };
    let bounds = (bound(), bound());
    let is_inside = |key: &Vec<u8>| {
        let above = match &bounds.0 {
            Bound::Included(least) => key >= least,
            Bound::Excluded(least) => key > least,
            Bound::Unbounded => true,
        };
        above
            && match &bounds.1 {
                Bound::Included(greatest) => key <= greatest,
                Bound::Excluded(greatest) => key < greatest,
                Bound::Unbounded => true,
            }
    };
    let want: Pairs = found.iter().filter(|(key, _)| is_inside(key)).cloned().collect();
    let mut entries = bucket.range::<Vec<u8>, _>(bounds.clone()).map_err(|e| said(&e))?;
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let (from_back, next) = match generator.chance(500_000) {
            true => (true, entries.next_back()),
            false => (false, entries.next()),
        };
        let Some(entry) = next else { break };
        let pair = entry.map_err(|e| said(&e))?.to_pair();
        if from_back { back.push(pair) } else { front.push(pair) }
    }
    back.reverse();
    front.extend(back);
    let count = bucket.count_range::<Vec<u8>, _>(bounds.clone()).map_err(|e| said(&e))?;
    if front != want || count != want.len() as u64 {
        return Err(format!("{bounds:?}: {count} entries {front:?}, expected {want:?}"));
    }
    Ok(())
}

fn rows(db: &Database, state: &State) -> Result<(), String> {
    let table = db.table(TABLE).and_then(|table| table.snapshot()).map_err(|e| said(&e))?;
    let mut found = BTreeMap::new();
    for (_, values) in table.rows().map_err(|e| said(&e))? {
        if let [Value::Int(id), Value::Int(n)] = values.as_slice() {
            found.insert(*id, *n);
        }
    }
    if found == state.rows {
        Ok(())
    } else {
        Err(format!("rows {found:?}, expected {:?}", state.rows))
    }
}
