//! Streams in segments: events lie by time, windows apart, and end when they are old.

use std::collections::BTreeMap;
use std::time::Duration;

use esker::{Alteration, DataType, Database, Options, PageOptions, Query, Schema, Snapshot, Value};
use esker_format::schema::StreamOption;
use esker_query::model::{Expr, Operator, OrderBy, RowCount};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};
use proptest::prelude::*;

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;

fn option(name: &str, value: &str) -> StreamOption {
    StreamOption::read(name, Some(value)).unwrap()
}

fn schema(options: &[(&str, &str)]) -> Schema {
    let options: Vec<_> = options.iter().map(|(name, value)| option(name, value)).collect();
    Schema::builder()
        .field("t", DataType::Timestamp)
        .field("n", DataType::I64)
        .nullable("tier", DataType::Text)
        .nullable("note", DataType::Text)
        .stream("t", options)
        .build()
        .unwrap()
}

fn machine(seed: u64) -> Simulation {
    let options = SimOptions { pause_probability: 0, latency_ns: 0, ..SimOptions::default() };
    Simulation::new(seed, options)
}

fn open(machine: &Simulation) -> Database {
    let options = Options::new().background(false).environment(machine.environment());
    let options = options.group_limit(16, 1 << 20).small_group_limit(0).segment_limit(8);
    options.commit_limit(3_000).transaction_limit(4_000).open("db").unwrap()
}

fn event(t: i64, n: i64, tier: Option<&str>) -> Vec<Value> {
    vec![Value::Timestamp(t), n.into(), tier.map_or(Value::Null, Into::into), Value::Null]
}

fn now_us(db: &Database) -> i64 {
    db.clock().date_us
}

/// What the model knows of an event.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    t: i64,
    tier: Option<&'static str>,
    note: Option<String>,
}

type Events = BTreeMap<i64, Known>;

fn field(row: &[Value], at: usize) -> Option<String> {
    match &row[at] {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Row id, number, time, class and note of an event.
type Found = (u64, i64, i64, Option<String>, Option<String>);

/// Row ids and events of a snapshot, by its rows.
fn scanned(snapshot: &Snapshot) -> Vec<Found> {
    let rows = snapshot.table("events").unwrap().rows().unwrap();
    let of = |(id, row): (u64, Vec<Value>)| match (&row[0], &row[1]) {
        (Value::Timestamp(t), Value::Int(n)) => (id, *n, *t, field(&row, 2), field(&row, 3)),
        other => panic!("{other:?}"),
    };
    rows.into_iter().map(of).collect()
}

fn by(field: &str, descending: bool) -> OrderBy {
    OrderBy { expr: Expr::field(field), descending, nulls_first: None }
}

fn numbers(rows: &[Vec<Value>]) -> Vec<i64> {
    rows.iter().map(|row| if let Value::Int(n) = row[1] { n } else { panic!("{row:?}") }).collect()
}

/// All that a snapshot answers is what the model has.
fn expect(snapshot: &Snapshot, known: &Events) {
    let found = scanned(snapshot);
    let mut by_arrival: Vec<_> = found.iter().map(|(id, n, ..)| (*id, *n)).collect();
    by_arrival.sort_unstable();
    let arrived: Vec<i64> = by_arrival.iter().map(|(_, n)| *n).collect();
    assert_eq!(arrived, known.keys().copied().collect::<Vec<_>>(), "arrival is the order of n");
    let of = |(_, n, t, tier, note): &Found| {
        let Known { t: at, tier: class, note: text } = &known[n];
        assert_eq!((t, tier.as_deref(), note), (at, *class, text), "event {n}");
    };
    found.iter().for_each(of);
    let mut by_time: Vec<(i64, i64)> = known.iter().map(|(n, known)| (known.t, *n)).collect();
    by_time.sort_unstable();
    let in_order: Vec<i64> = by_time.iter().map(|(_, n)| *n).collect();
    for (limit, descending) in [(5, true), (7, false), (1_000, true)] {
        // Row ids rise with n.
        let order_by = vec![by("t", descending), by("n", descending)];
        let query =
            Query { order_by, limit: Some(RowCount::Number(limit)), ..Query::table("events") };
        let rows = snapshot.query(&query).unwrap().to_rows();
        let mut wanted = in_order.clone();
        if descending {
            wanted.reverse();
        }
        wanted.truncate(usize::try_from(limit).unwrap());
        assert_eq!(numbers(&rows), wanted, "by time, {limit}");
    }
    if let (Some((first, _)), Some((last, _))) = (by_time.first(), by_time.last()) {
        let middle = first.midpoint(*last);
        let is = |operator| {
            let bound = Expr::literal(Value::Timestamp(middle));
            Expr::field("t").binary(operator, bound)
        };
        for (operator, is_wanted) in [
            (Operator::Lt, (|t, m| t < m) as fn(i64, i64) -> bool),
            (Operator::Gte, |t, m| t >= m),
            (Operator::Eq, |t, m| t == m),
        ] {
            let query = Query { filter: Some(is(operator)), ..Query::table("events") };
            let mut rows = numbers(&snapshot.query(&query).unwrap().to_rows());
            rows.sort_unstable();
            let mut wanted: Vec<i64> =
                by_time.iter().filter(|(t, _)| is_wanted(*t, middle)).map(|(_, n)| *n).collect();
            wanted.sort_unstable();
            assert_eq!(rows, wanted, "{operator:?}");
        }
    }
}

/// Pages of the newest, whose cursors neither skip nor repeat at equal times.
fn expect_pages(db: &Database, known: &Events) {
    let mut by_time: Vec<(i64, i64)> = known.iter().map(|(n, known)| (known.t, *n)).collect();
    by_time.sort_unstable_by(|a, b| b.cmp(a));
    let query = Query { order_by: vec![by("t", true), by("n", true)], ..Query::table("events") };
    let (mut cursor, mut found) = (None, Vec::new());
    loop {
        let options = PageOptions { cursor: cursor.take(), ..PageOptions::default() };
        let query = Query { limit: Some(RowCount::Number(9)), ..query.clone() };
        let page = db.page(&query, &options).unwrap();
        found.extend(numbers(&page.result.to_rows()));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(found, by_time.into_iter().map(|(_, n)| n).collect::<Vec<_>>());
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

/// Events of a class end with their windows.
fn kept_us(tier: Option<&str>) -> Option<i64> {
    match tier {
        Some("free") => Some(2 * DAY_US),
        Some("vip") => None,
        _ => Some(5 * DAY_US),
    }
}

/// What is left of events at a date.
fn end(known: &mut Events, date_us: i64) {
    known.retain(|_, event| {
        let kept = kept_us(event.tier).map(|kept| (date_us - kept).div_euclid(DAY_US) * DAY_US);
        kept.is_none_or(|bound| event.t >= bound)
    });
}

#[derive(Clone, Debug)]
enum Step {
    /// Events, so many hours late, of a class.
    Append {
        count: usize,
        late_hours: i64,
        tier: u8,
    },
    Transaction {
        count: usize,
        late_hours: i64,
        commits: bool,
    },
    Load {
        count: usize,
    },
    Delete(usize),
    Note(usize),
    Pass {
        hours: u64,
    },
    Seal,
    Compact,
    Checkpoint,
    Hold,
    LetGo,
    Reopen,
    Crash(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1..20usize, 0..40i64, 0..4u8)
            .prop_map(|(count, late_hours, tier)| Step::Append { count, late_hours, tier }),
        3 => (1..60usize, 0..40i64, any::<bool>()).prop_map(|(count, late_hours, commits)| {
            Step::Transaction { count, late_hours, commits }
        }),
        2 => (1..60usize).prop_map(|count| Step::Load { count }),
        3 => any::<usize>().prop_map(Step::Delete),
        3 => any::<usize>().prop_map(Step::Note),
        4 => (1..60u64).prop_map(|hours| Step::Pass { hours }),
        4 => Just(Step::Seal),
        1 => Just(Step::Compact),
        2 => Just(Step::Checkpoint),
        2 => Just(Step::Hold),
        1 => Just(Step::LetGo),
        1 => Just(Step::Reopen),
        2 => any::<bool>().prop_map(Step::Crash),
    ];
    proptest::collection::vec(step, 1..50)
}

const TIERS: [Option<&str>; 4] = [None, Some("free"), Some("vip"), Some("pro")];

struct Model {
    machine: Simulation,
    db: Database,
    known: Events,
    next: i64,
    held: Vec<(Snapshot, Events)>,
}

impl Model {
    fn new() -> Self {
        let machine = machine(7);
        let db = open(&machine);
        let options = [
            ("late", "3 days"),
            ("retention", "5 days"),
            ("retention_by", "tier: free 2 days, vip forever"),
            ("window", "1 day"),
        ];
        db.create_table("events", schema(&options)).unwrap();
        Self { machine, db, known: Events::new(), next: 0, held: Vec::new() }
    }

    fn new_event(&mut self, late_hours: i64, tier: usize) -> (i64, Known, Vec<Value>) {
        let (n, tier) = (self.next, TIERS[tier % 4]);
        self.next += 1;
        let t = now_us(&self.db) - late_hours * HOUR_US + n % 3;
        (n, Known { t, tier, note: None }, event(t, n, tier))
    }

    fn picked(&self, at: usize) -> Option<(i64, u64)> {
        let found = scanned(&self.db.snapshot().unwrap());
        let (id, n, ..) = found.get(at % found.len().max(1))?;
        Some((*n, *id))
    }

    fn idle(&mut self) {
        self.db.wait_idle().unwrap();
        let date_us = now_us(&self.db);
        end(&mut self.known, date_us);
    }

    fn run(&mut self, step: &Step) {
        let events = self.db.table("events").unwrap();
        match step {
            Step::Append { count, late_hours, tier } => {
                for i in 0..*count {
                    let (n, known, row) = self.new_event(*late_hours, usize::from(*tier) + i / 7);
                    events.insert(&row).unwrap();
                    self.known.insert(n, known);
                }
            }
            Step::Transaction { count, late_hours, commits } => {
                let transaction = self.db.begin().unwrap();
                let mut new = Vec::new();
                for i in 0..*count {
                    let (n, known, row) = self.new_event(*late_hours, i / 11);
                    transaction.table("events").unwrap().insert(&row).unwrap();
                    new.push((n, known));
                }
                if *commits {
                    transaction.commit().unwrap();
                    self.known.extend(new);
                }
            }
            Step::Load { count } => {
                let mut load = events.load().unwrap();
                for i in 0..*count {
                    let late = i64::try_from(i * 13 % 40).unwrap();
                    let (n, known, row) = self.new_event(late, i / 17);
                    load.push_row(&row).unwrap();
                    self.known.insert(n, known);
                }
                load.finish().unwrap();
            }
            Step::Delete(at) => {
                let Some((n, id)) = self.picked(*at) else { return };
                assert!(events.delete(&[id.into()]).unwrap());
                self.known.remove(&n);
            }
            Step::Note(at) => {
                let Some((n, id)) = self.picked(*at) else { return };
                let note = format!("note {at}");
                assert!(events.update(&[id.into()], &[("note", note.as_str().into())]).unwrap());
                self.known.get_mut(&n).unwrap().note = Some(note);
            }
            Step::Pass { hours } => {
                self.machine.advance_clock(Duration::from_secs(3_600 * hours));
                self.idle();
            }
            Step::Seal => self.idle(),
            Step::Compact => {
                self.db.compact(true, &mut |_, _| ()).unwrap();
                self.idle();
            }
            Step::Checkpoint => self.db.checkpoint().unwrap(),
            Step::Hold => self.held.push((self.db.snapshot().unwrap(), self.known.clone())),
            Step::LetGo => self.held.clear(),
            Step::Reopen => self.reopen(None),
            Step::Crash(keeps) => self.reopen(Some(*keeps)),
        }
    }

    fn reopen(&mut self, crash: Option<bool>) {
        self.held.clear();
        match crash {
            None => {
                let before = std::mem::replace(&mut self.db, Options::new().memory().unwrap());
                before.close().unwrap();
                self.db = open(&self.machine);
            }
            Some(keeps) => {
                let choice = if keeps { CrashChoice::KeepAll } else { CrashChoice::KeepNone };
                let image = self.machine.crash_image(choice);
                let options =
                    SimOptions { pause_probability: 0, latency_ns: 0, ..SimOptions::default() };
                self.machine = Simulation::from_image(&image, 9, options);
                self.db = open(&self.machine);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever came, in whatever order: what is there is told by all ways of reading, and to
    /// snapshots that were taken before events ended.
    #[test]
    fn events_are_what_came_less_what_is_old(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.run(step);
            expect(&model.db.snapshot().unwrap(), &model.known);
            for (snapshot, known) in &model.held {
                expect(snapshot, known);
            }
        }
        expect_pages(&model.db, &model.known);
        is_sound(&model.db);
        model.held.clear();
        model.reopen(Some(false));
        expect(&model.db.snapshot().unwrap(), &model.known);
        is_sound(&model.db);
    }
}

/// Days of events end as whole segments, in one commit of a few bytes, and files go after that.
#[test]
fn whole_segments_end_in_one_commit() {
    let machine = machine(3);
    let db = open(&machine);
    db.create_table("events", schema(&[("retention", "3 days"), ("window", "1 day")])).unwrap();
    let events = db.table("events").unwrap();
    // As if it were the beginning of a day.
    let into_day = now_us(&db).rem_euclid(DAY_US);
    let rest = u64::try_from(DAY_US - into_day).unwrap();
    machine.advance_clock(Duration::from_micros(rest) + Duration::from_secs(60));
    for day in 0..5 {
        for n in 0..64 {
            events.insert(&event(now_us(&db), day * 100 + n, None)).unwrap();
        }
        machine.advance_clock(Duration::from_secs(23 * 3_600));
        db.wait_idle().unwrap();
        machine.advance_clock(Duration::from_secs(3_600));
    }
    // The events of day 4 are a day old; those of the first two have ended.
    machine.advance_clock(Duration::from_secs(60));
    db.wait_idle().unwrap();
    let left = scanned(&db.snapshot().unwrap());
    assert_eq!((left.len(), left.iter().map(|(_, n, ..)| *n).min()), (3 * 64, Some(200)));
    let held = db.snapshot().unwrap();
    let info = |db: &Database| db.info().tables.into_iter().find(|t| t.name == "events").unwrap();
    let before = info(&db);
    machine.advance_clock(Duration::from_secs(24 * 3_600));
    db.wait_idle().unwrap();
    assert_eq!(scanned(&db.snapshot().unwrap()).len(), 2 * 64);
    assert_eq!(scanned(&held).len(), 3 * 64);
    assert_eq!(info(&db).live_rows, 2 * 64);
    assert!(info(&db).segments >= before.segments, "a snapshot sees them");
    drop(held);
    db.wait_idle().unwrap();
    assert!(info(&db).segments < before.segments, "{:?}", info(&db));
    is_sound(&db);
}

/// A wall clock that is wrong for a moment, or by years, ends no event.
#[test]
fn a_wrong_clock_ends_no_event() {
    let machine = machine(4);
    let db = open(&machine);
    db.create_table("events", schema(&[("retention", "3 days")])).unwrap();
    let events = db.table("events").unwrap();
    for n in 0..40 {
        events.insert(&event(now_us(&db), n, None)).unwrap();
    }
    machine.shift_wall_clock(300 * DAY_US);
    db.wait_idle().unwrap();
    assert_eq!(scanned(&db.snapshot().unwrap()).len(), 40);
    let e = events.insert(&event(now_us(&db) + 300 * DAY_US, 41, None));
    assert!(e.is_ok(), "ahead is not bounded");
    machine.shift_wall_clock(-300 * DAY_US);
    machine.advance_clock(Duration::from_secs(60));
    db.wait_idle().unwrap();
    assert_eq!(scanned(&db.snapshot().unwrap()).len(), 41);
}

/// Retention may be set, changed and taken back once there are events.
#[test]
fn retention_is_altered() {
    let machine = machine(5);
    let db = open(&machine);
    db.create_table("events", schema(&[])).unwrap();
    let events = db.table("events").unwrap();
    for n in 0..60 {
        let tier = TIERS[usize::try_from(n % 4).unwrap()];
        events.insert(&event(now_us(&db) - n * DAY_US / 4, n, tier)).unwrap();
    }
    let set = |name: &str, value: Option<&str>| {
        let option = StreamOption::read(name, value).unwrap();
        db.alter_table("events", &[Alteration::SetStream(option)]).unwrap();
        db.wait_idle().unwrap();
        scanned(&db.snapshot().unwrap()).len()
    };
    db.wait_idle().unwrap();
    let of_tier = |tier: Option<&str>| {
        let found = scanned(&db.snapshot().unwrap());
        found.iter().filter(|(_, _, _, own, _)| own.as_deref() == tier).count()
    };
    assert_eq!(set("window", Some("1 hour")), 60);
    assert_eq!(set("retention_by", Some("tier: free 5 days")), 50);
    assert_eq!((of_tier(Some("free")), of_tier(Some("pro"))), (5, 15));
    assert_eq!(set("retention_by", None), 50);
    let left = set("retention", Some("10 days"));
    assert!(left < 50 && of_tier(Some("free")) == 5, "{left}");
    assert_eq!(set("retention", None), left);
    let e = events.update(&[1u64.into()], &[("t", Value::Timestamp(5))]);
    assert!(e.unwrap_err().to_string().contains("which stays"));
    let late = Alteration::SetStream(option("retention", "10 days"));
    db.alter_table("events", &[late]).unwrap();
    let e = events.insert(&event(now_us(&db) - 11 * DAY_US, 99, None)).unwrap_err();
    assert!(e.to_string().contains("such events are kept for 10 days"), "{e}");
    is_sound(&db);
}

/// The value of an enum is its label, not the bytes that it is stored as.
#[test]
fn classes_are_labels_of_an_enum() {
    let schema = |classes: &str| {
        let builder = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
        let builder = builder.field("k", DataType::Enum);
        let builder = builder.labels(esker::Labels::new(["free", "vip"]).unwrap());
        let options = [option("retention", "1 hour"), option("retention_by", classes)];
        builder.stream("t", options).build()
    };
    let e = schema("k: zzz 7 days").unwrap_err();
    assert!(e.to_string().contains("\"zzz\" is none of its labels"), "{e}");
    let machine = machine(6);
    let db = open(&machine);
    db.create_table("events", schema("k: vip forever").unwrap()).unwrap();
    let events = db.table("events").unwrap();
    let add = |t: i64, n: i64, k: &str| events.insert(&[Value::Timestamp(t), n.into(), k.into()]);
    for n in 0..40 {
        add(now_us(&db), n, if n % 2 == 0 { "free" } else { "vip" }).unwrap();
    }
    add(now_us(&db) - 90 * DAY_US, 41, "vip").unwrap();
    assert!(add(now_us(&db) - 90 * DAY_US, 42, "free").is_err());
    machine.advance_clock(Duration::from_secs(3 * 3_600));
    db.wait_idle().unwrap();
    let left = db.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    assert_eq!(left.len(), 21, "{left:?}");
    is_sound(&db);
}

/// All that is older goes, whatever is sealed or altered meanwhile.
#[test]
fn what_is_older_is_deleted_as_a_whole() {
    let db = Options::new().group_limit(64, 1 << 20).small_group_limit(0).memory().unwrap();
    db.create_table("events", schema(&[("window", "1 minute")])).unwrap();
    let stream = db.stream("events").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..4_000 {
                stream.append(&event(n * 1_000_000, n, None)).unwrap();
            }
        });
        for n in 0..20 {
            let index = esker::NewIndex {
                name: format!("i{n}"),
                ..esker::NewIndex::on(vec![("n".into(), false)])
            };
            db.alter_table("events", &[Alteration::AddIndex(index)]).unwrap();
            let before = n * 100_000_000;
            stream.delete_before(before).unwrap();
            let left = scanned(&db.snapshot().unwrap());
            let late = left.iter().filter(|(_, _, t, ..)| *t < before).count();
            // The writer may add older ones meanwhile.
            assert!(late == 0 || !writer.is_finished(), "{late} events before {before}");
            db.alter_table("events", &[Alteration::DropIndex(format!("i{n}"))]).unwrap();
        }
        writer.join().unwrap();
    });
    let count = scanned(&db.snapshot().unwrap()).len() as u64;
    assert_eq!(stream.delete_before(4_000_000_000).unwrap(), count);
    assert_eq!(scanned(&db.snapshot().unwrap()).len(), 0);
}

/// A tail that retention has passed is told so once, and goes on with what is left.
#[test]
fn a_tail_that_retention_has_passed_is_told() {
    use esker::{TailBatch, TailFrom};

    let machine = machine(8);
    let db = open(&machine);
    let options = [("retention", "1 day"), ("retention_by", "tier: vip forever")];
    db.create_table("events", schema(&options)).unwrap();
    let stream = db.stream("events").unwrap();
    let rows: Vec<_> = (0..40)
        .map(|n| event(now_us(&db), n, if n % 10 == 3 { Some("vip") } else { None }))
        .collect();
    let ids: Vec<_> = stream.append_many(&rows).into_iter().map(|id| id.unwrap()).collect();
    machine.advance_clock(Duration::from_secs(2 * 86_400));
    db.wait_idle().unwrap();
    let told = |from: TailFrom| {
        let mut tail = stream.tail(from, None).unwrap();
        let mut told = Vec::new();
        for _ in 0..4 {
            match tail.next_batch(100, Duration::ZERO).unwrap() {
                TailBatch::Gap { from, to } => told.push(format!("{from} to {to}")),
                TailBatch::Events(events) => {
                    told.extend(events.iter().map(|(id, _)| id.row_id().to_string()));
                }
                other => panic!("{other:?}"),
            }
        }
        told.join(", ")
    };
    assert_eq!(told(TailFrom::Start), "4, 14, 24, 34", "the first that is there");
    assert_eq!(told(TailFrom::After(0)), "1 to 40, 4, 14, 24, 34");
    assert_eq!(told(TailFrom::After(ids[20].row_id())), "22 to 40, 24, 34");
    assert_eq!(told(TailFrom::After(ids[39].row_id())), "");
    db.close().unwrap();
    let db = open(&machine);
    let mut tail = db.stream("events").unwrap().tail(TailFrom::After(0), None).unwrap();
    let first = tail.next_batch(9, Duration::ZERO).unwrap();
    assert!(matches!(first, TailBatch::Gap { from: 1, to: 40 }), "{first:?}");
}

/// A load that a crash may take is not told, though nobody asks any more when it came; and what
/// was ended is passed over once that is on the disk.
#[test]
fn a_tail_tells_what_is_on_the_disk_only() {
    use esker::{Durability, TailBatch, TailFrom};

    let machine = machine(9);
    let durability = Durability::Async { at_most: Duration::from_secs(3_600) };
    let options = Options::new().background(false).environment(machine.environment());
    let db = options.durability(durability).segment_limit(8).open("db").unwrap();
    db.create_table("events", schema(&[("window", "1 day")])).unwrap();
    db.sync().unwrap();
    let events = db.table("events").unwrap();
    let mut load = events.load().unwrap();
    for n in 0..20 {
        load.push_row(&event(n, n, None)).unwrap();
    }
    load.finish().unwrap();
    db.wait_idle().unwrap();
    let stream = db.stream("events").unwrap();
    let mut tail = stream.tail(TailFrom::Start, None).unwrap();
    let mut told = || match tail.next_batch(100, Duration::ZERO).unwrap() {
        TailBatch::Events(events) => events.len(),
        TailBatch::Gap { .. } => 1_000,
        other => panic!("{other:?}"),
    };
    // How many events a crash leaves.
    let kept = || {
        let image = machine.crash_image(CrashChoice::KeepNone);
        let db = open(&Simulation::from_image(&image, 3, SimOptions::default()));
        db.table("events").unwrap().count().unwrap()
    };
    let left = kept();
    let first = told();
    assert!(first as u64 <= left, "{first} are told, and a crash leaves {left}");
    db.sync().unwrap();
    assert_eq!((first + told(), told(), kept()), (20, 0, 20));
    events.insert(&event(30, 30, None)).unwrap();
    stream.delete_before(10).unwrap();
    events.insert(&event(31, 31, None)).unwrap();
    let second = told();
    assert!(second == 0 || kept() <= 12, "{second} are told, and the end of others is not kept");
    db.sync().unwrap();
    assert_eq!((second + told(), told()), (2, 0));
}

/// What is told of a stream is as its living events are.
#[test]
fn figures_are_those_of_the_events_that_are_there() {
    let machine = machine(10);
    let db = open(&machine);
    db.create_table("events", schema(&[("retention", "3 days"), ("window", "1 day")])).unwrap();
    let stream = db.stream("events").unwrap();
    let noon = now_us(&db).div_euclid(DAY_US) * DAY_US + DAY_US / 2;
    let none = stream.info().unwrap();
    assert_eq!((none.events, none.oldest_us, none.windows), (0, None, 0));
    let early = stream.append(&event(noon - DAY_US - 5, -1, None)).unwrap();
    for n in 0..200 {
        stream.append(&event(noon - n % 2 * DAY_US, n, None)).unwrap();
    }
    let told = |events, oldest, newest| {
        let info = stream.info().unwrap();
        assert_eq!((info.events, info.oldest_us, info.newest_us), (events, oldest, newest));
        info
    };
    told(201, Some(noon - DAY_US - 5), Some(noon));
    db.wait_idle().unwrap();
    let sealed = told(201, Some(noon - DAY_US - 5), Some(noon));
    assert!(sealed.windows == 2 && sealed.window_segments_max > 0, "{sealed:?}");
    assert!(stream.delete(early).unwrap());
    let info = told(200, Some(noon - DAY_US), Some(noon));
    assert_eq!((info.given_row_id, info.ended_row_id, info.waiting_bytes), (201, 0, 0));
    assert_eq!((info.window_us, info.options["retention"].as_str()), (DAY_US as u64, "3 days"));
    let next = info.next_end_us.unwrap() - now_us(&db);
    assert!((1..=DAY_US).contains(&next), "{next}");
    stream.delete_before(noon).unwrap();
    let info = told(100, Some(noon), Some(noon));
    assert!(info.ended_row_id >= 200, "{info:?}");
    db.close().unwrap();
    let db = open(&machine);
    let info = db.stream("events").unwrap().info().unwrap();
    assert_eq!((info.events, info.given_row_id, info.oldest_us), (100, 201, Some(noon)));
    let sql = db.snapshot().unwrap();
    let asked = Query::table("esker_streams");
    let row = sql.query(&asked).unwrap().to_rows();
    assert_eq!(row[0][1], Value::from("events"), "{row:?}");
}
