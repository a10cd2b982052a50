//! A unique index on a path into documents beside a model: random changes in all the ways that
//! there are, while rows are sealed and merged, the index is dropped and made again, and the
//! database is closed and opened.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::{BTreeMap, BTreeSet};

use esker::{
    DataType, Database, ErrorKind, IndexUse, NewIndex, Options, Schema, Table, Update, Value,
};
use esker_query::model::{self, Change, Expr, Operator};
use esker_vfs::sim::{Generator, Options as SimOptions, Simulation};

/// What stands at the path, as JSON, by key.
type Rows = BTreeMap<i64, &'static str>;

const KEYS: u64 = 40;
/// The string and the number 1 have the same text; nothing is one value.
const PLACES: [&str; 9] =
    ["\"x\"", "\"y\"", "\"1\"", "1", "true", "null", "", "{\"k\":[1]}", "\"long long long text\""];

fn text(place: &str) -> Option<&str> {
    (!place.is_empty() && place != "null").then(|| place.trim_matches('"'))
}

fn document(place: &str) -> Value {
    let document = match place {
        "" => "{\"other\": 7}".to_owned(),
        _ => format!("{{\"a\": {{\"b\": {place}}}, \"other\": 7}}"),
    };
    Value::json(&document).unwrap()
}

fn row((id, place): (i64, &str)) -> Vec<Value> {
    vec![id.into(), document(place)]
}

fn draw(generator: &mut Generator) -> (i64, &'static str) {
    let id = i64::try_from(generator.below(KEYS)).unwrap();
    (id, PLACES[generator.index(PLACES.len())])
}

/// No two rows have the same text at the path.
fn is_unique(rows: &Rows) -> bool {
    let mut seen = BTreeSet::new();
    rows.values().filter_map(|place| text(place)).all(|text| seen.insert(text))
}

/// Whether a change was done, which has to be what the model says.
fn outcome<T>(result: esker::Result<T>, wanted: bool, what: &str) -> bool {
    let failed = result.err();
    assert!(
        failed.as_ref().is_none_or(|e| e.kind() == ErrorKind::AlreadyExists),
        "{what}: {failed:?}"
    );
    assert_eq!(failed.is_none(), wanted, "{what}: {failed:?}");
    wanted
}

/// One change, and what the rows are after it if it is allowed; `None` where an insert finds a key.
fn changed(rows: &Rows, puts: &[(i64, &'static str)], replaces: bool) -> Option<Rows> {
    let mut after = rows.clone();
    for (id, place) in puts {
        if after.insert(*id, place).is_some() && !replaces {
            return None;
        }
    }
    is_unique(&after).then_some(after)
}

fn act(db: &Database, t: &Table, rows: &mut Rows, generator: &mut Generator) {
    let (id, place) = draw(generator);
    let kind = generator.below(9);
    let after = match kind {
        0 | 1 => {
            let after = changed(rows, &[(id, place)], kind == 1);
            let done =
                if kind == 0 { t.insert(&row((id, place))) } else { t.upsert(&row((id, place))) };
            outcome(done, after.is_some(), "insert or upsert");
            after
        }
        2 | 3 => {
            let puts: Vec<_> = (0..=generator.below(3)).map(|_| draw(generator)).collect();
            let all: Vec<_> = puts.iter().map(|put| row(*put)).collect();
            let after = changed(rows, &puts, false);
            if kind == 2 {
                outcome(t.insert_many(&all), after.is_some(), "insert_many");
            } else {
                let mut load = t.load().unwrap();
                let pushed = all.iter().try_for_each(|row| load.push_row(row));
                outcome(pushed.and_then(|()| load.finish()), after.is_some(), "load");
            }
            after
        }
        4 if rows.contains_key(&id) && !rows[&id].is_empty() && !place.is_empty() => {
            let after = changed(rows, &[(id, place)], true);
            let update = Update::new().set("doc.a.b", Value::json(place).unwrap());
            outcome(t.apply(&[id.into()], &update), after.is_some(), "apply");
            after
        }
        5 => {
            let puts: Vec<_> = rows.range(..id / 4).map(|(id, _)| (*id, place)).collect();
            let after = changed(rows, &puts, true);
            let filter = Some(Expr::field("id").binary(Operator::Lt, Expr::literal(id / 4)));
            let set = vec![("doc".to_owned(), Expr::literal(document(place)))];
            let update = model::Update { table: "t".into(), set, filter, ..Default::default() };
            outcome(db.change(&Change::Update(update)), after.is_some(), "statement");
            after
        }
        6 | 7 => transaction(db, rows, generator),
        _ => {
            assert_eq!(t.delete(&[id.into()]).unwrap(), rows.contains_key(&id));
            let mut after = rows.clone();
            after.remove(&id);
            Some(after)
        }
    };
    *rows = after.unwrap_or_else(|| rows.clone());
}

/// Some changes at once, whose unique values are compared at the commit.
fn transaction(db: &Database, rows: &Rows, generator: &mut Generator) -> Option<Rows> {
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    let mut after = rows.clone();
    for _ in 0..generator.below(5) {
        let (id, place) = draw(generator);
        if generator.chance(300_000) {
            assert_eq!(within.delete(&[id.into()]).unwrap(), after.remove(&id).is_some());
            continue;
        }
        let is_done = if generator.chance(500_000) {
            outcome(within.upsert(&row((id, place))), true, "upsert in a transaction")
        } else {
            let is_new = !after.contains_key(&id);
            outcome(within.insert(&row((id, place))), is_new, "insert in a transaction")
        };
        if is_done {
            after.insert(id, place);
        }
    }
    if generator.chance(200_000) {
        transaction.rollback();
        return None;
    }
    outcome(transaction.commit(), is_unique(&after), "commit").then_some(after)
}

fn is_as_the_model_says(db: &Database, t: &Table, rows: &Rows, seed: u64) {
    let found: BTreeMap<i64, Value> = t
        .snapshot()
        .unwrap()
        .rows()
        .unwrap()
        .into_iter()
        .map(|(_, row)| match &row[0] {
            Value::Int(id) => (*id, row[1].clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let wanted: BTreeMap<i64, Value> =
        rows.iter().map(|(id, place)| (*id, document(place))).collect();
    assert_eq!(found, wanted, "seed {seed}");
    for text in PLACES.iter().filter_map(|place| text(place)) {
        let condition = serde_json::json!({"field": "doc.a.b", "op": "eq", "value": text});
        let query = serde_json::json!({"table": "t", "select": ["id"], "where": condition});
        let answer = db.query_json(&query.to_string());
        let Ok(answer) = answer else { panic!("seed {seed}: {query}: {answer:?}") };
        let ids: Vec<Vec<Value>> = rows
            .iter()
            .filter(|(_, place)| self::text(place) == Some(text))
            .map(|(id, _)| vec![(*id).into()])
            .collect();
        assert_eq!(answer.to_rows(), ids, "seed {seed}: {text}");
    }
}

fn check(seed: u64) {
    let mut generator = Generator::new(seed, 0);
    let machine = Simulation::new(3, SimOptions::default());
    let uses = [IndexUse::Always, IndexUse::WhenCheaper, IndexUse::Never];
    let (used, limit) = (uses[generator.index(3)], 2 + generator.index(12));
    let open = || {
        let options = Options::new().background(false).environment(machine.environment());
        let options = options.index_use(used).group_limit(limit, 1 << 30).small_group_limit(0);
        options.segment_limit(2 * limit).open("db").unwrap()
    };
    let index = || NewIndex::new("by_b", ["doc.a.b"]).unique();
    let mut db = open();
    let schema = Schema::builder().field("id", DataType::I64).nullable("doc", DataType::Json);
    let schema = schema.primary_key(["id"]);
    let schema = if generator.chance(300_000) { schema.ordered_by_key() } else { schema };
    let mut t = db.create_table("t", schema.add_index(index()).build().unwrap()).unwrap();
    let mut rows = Rows::new();
    for _ in 0..120 {
        match generator.below(20) {
            0 => db.wait_idle().unwrap(),
            1 => drop(db.compact(false, &mut |_, _| {}).unwrap()),
            2 => {
                drop((t, db));
                db = open();
                t = db.table("t").unwrap();
            }
            3 => {
                db.drop_index("t", "by_b").unwrap();
                db.create_index("t", index()).unwrap();
            }
            _ => act(&db, &t, &mut rows, &mut generator),
        }
    }
    is_as_the_model_says(&db, &t, &rows, seed);
    db.wait_idle().unwrap();
    assert_eq!(db.check().unwrap().problems, [], "seed {seed}");
    assert_eq!(db.recount(true).unwrap(), [], "seed {seed}");
}

#[test]
fn random_changes_leave_each_value_once() {
    (0..60).for_each(check);
}
