//! Indexes of expressions and of some rows beside a model: random changes in all the ways that
//! there are, while rows are sealed and merged, indexes come and go, fields get other names, and
//! the database is closed and opened, or its machine stops.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::collections::{BTreeMap, BTreeSet};

use esker::{
    Alteration, BackupOptions, DataType, Database, ErrorKind, IndexUse, NewIndex, Options, Schema,
    Table, Update, Value,
};
use esker_query::model::{self, Change, Expr, Function, Insert, OnConflict, Operator, Query};
use esker_vfs::sim::{CrashChoice, Generator, Options as SimOptions, Simulation};

/// What a row has beside its key.
type Row = (Option<&'static str>, Option<i64>);
type Rows = BTreeMap<i64, Row>;

const KEYS: u64 = 30;
const NAMES: [&str; 6] = [
    "Ada",
    "ADA",
    "Bob",
    "bob",
    "a long name a long name a long name a long \
                          name a long name 1",
    "a long name a long name a long name a long name A \
                          LONG name 2",
];

fn lower(field: &str) -> Expr {
    Expr::call(Function::Lower, [Expr::field(field)])
}

fn sum(n: &str) -> Expr {
    Expr::field("id").binary(Operator::Add, Expr::field(n))
}

fn compared(of: Expr, operator: Operator, with: impl Into<Value>) -> Expr {
    of.binary(operator, Expr::Literal(with.into()))
}

fn positive(n: &str) -> Expr {
    compared(Expr::field(n), Operator::Gt, 0i64)
}

fn not_null(field: &str) -> Expr {
    Expr::Apply(Operator::IsNull, vec![Expr::field(field)]).negated()
}

/// Unique names, whatever their case, of rows with a positive number; sums; numbers that there are.
fn indexes(n: &str) -> [NewIndex; 3] {
    let kept = |expr: &Expr| esker::index_expression(expr).unwrap();
    let none = || NewIndex::on(Vec::new());
    [
        none()
            .named("by_name")
            .expression("lower(name)", kept(&lower("name")))
            .filter(kept(&positive(n)))
            .unique(),
        none().named("by_sum").expression("id + n", kept(&sum(n))),
        NewIndex::new("by_n", [n]).filter(kept(&not_null(n))),
    ]
}

fn schema() -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).nullable("name", DataType::Text);
    let schema = schema.nullable("n", DataType::I64).primary_key(["id"]);
    indexes("n").into_iter().fold(schema, |schema, index| schema.add_index(index)).build().unwrap()
}

fn row(id: i64, (name, n): Row) -> Vec<Value> {
    vec![id.into(), name.map_or(Value::Null, Value::from), n.map_or(Value::Null, Value::from)]
}

fn draw(generator: &mut Generator) -> (i64, Row) {
    let id = i64::try_from(generator.below(KEYS)).unwrap();
    let name = generator.chance(800_000).then(|| NAMES[generator.index(NAMES.len())]);
    let n = generator.chance(800_000).then(|| i64::try_from(generator.below(7)).unwrap() - 3);
    (id, (name, n))
}

/// The value that a row has in the unique index.
fn unique_of((name, n): Row) -> Option<String> {
    n.filter(|n| *n > 0).and(name).map(str::to_lowercase)
}

fn is_unique(rows: &Rows) -> bool {
    let mut seen = BTreeSet::new();
    rows.values().filter_map(|row| unique_of(*row)).all(|value| seen.insert(value))
}

fn outcome<T>(result: esker::Result<T>, wanted: bool, what: &str) -> bool {
    let failed = result.err();
    assert!(
        failed.as_ref().is_none_or(|e| e.kind() == ErrorKind::AlreadyExists),
        "{what}: {failed:?}"
    );
    assert_eq!(failed.is_none(), wanted, "{what}: {failed:?}");
    wanted
}

fn changed(rows: &Rows, puts: &[(i64, Row)], replaces: bool) -> Option<Rows> {
    let mut after = rows.clone();
    for (id, row) in puts {
        if after.insert(*id, *row).is_some() && !replaces {
            return None;
        }
    }
    is_unique(&after).then_some(after)
}

/// A row that is put where its unique value, or its key, may be taken: left out, or its number
/// added to that of the one with the value.
fn upon_conflict(db: &Database, rows: &Rows, n: &str, generator: &mut Generator) -> Option<Rows> {
    let (id, put) = draw(generator);
    let mut after = rows.clone();
    let mut insert =
        Insert::values("t", vec![row(id, put).into_iter().map(Expr::Literal).collect()]);
    let holder = unique_of(put).and_then(|value| {
        rows.iter().find(|(_, row)| unique_of(**row).as_ref() == Some(&value)).map(|(id, _)| *id)
    });
    let wanted = if generator.chance(500_000) {
        insert.on_conflict = OnConflict::Skip;
        if holder.is_none() && !rows.contains_key(&id) {
            after.insert(id, put);
        }
        true
    } else {
        let set = vec![(n.to_owned(), Expr::literal(7i64))];
        insert.on_conflict = OnConflict::Update(model::ConflictUpdate { set, filter: None });
        insert.conflict_expressions = vec![lower("NAME")];
        insert.conflict_filter = Some(compared(Expr::field(n), Operator::Gt, 2i64));
        match holder {
            Some(holder) => {
                let (name, _) = rows[&holder];
                after.insert(holder, (name, Some(7)));
                true
            }
            None if rows.contains_key(&id) => false,
            None => {
                after.insert(id, put);
                true
            }
        }
    };
    let change = Change::Insert(insert);
    let done = match generator.chance(500_000) {
        true => db.change(&change).map(drop),
        false => {
            let transaction = db.begin().unwrap();
            transaction.change(&change).and_then(|_| transaction.commit().map(drop))
        }
    };
    outcome(done, wanted, "insert upon a conflict").then_some(after)
}

fn act(db: &Database, t: &Table, rows: &mut Rows, n: &str, generator: &mut Generator) {
    let (id, put) = draw(generator);
    let kind = generator.below(11);
    let after = match kind {
        0 | 1 => {
            let after = changed(rows, &[(id, put)], kind == 1);
            let done = if kind == 0 { t.insert(&row(id, put)) } else { t.upsert(&row(id, put)) };
            outcome(done, after.is_some(), "insert or upsert");
            after
        }
        2 | 3 => {
            let puts: Vec<_> = (0..=generator.below(3)).map(|_| draw(generator)).collect();
            let all: Vec<_> = puts.iter().map(|(id, put)| row(*id, *put)).collect();
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
        4 if rows.contains_key(&id) => {
            let (name, _) = rows[&id];
            let after = changed(rows, &[(id, (name, put.1))], true);
            let number = put.1.map_or(Value::Null, Value::from);
            let update = Update::new().set(n, number);
            outcome(t.apply(&[id.into()], &update), after.is_some(), "apply");
            after
        }
        5 => {
            // Over the border of the condition, many at once.
            let number = put.1;
            let puts = rows.range(..id / 3).map(|(id, row)| (*id, (row.0, number)));
            let puts: Vec<_> = puts.collect();
            let after = changed(rows, &puts, true);
            let filter = Some(compared(Expr::field("id"), Operator::Lt, id / 3));
            let set = vec![(n.to_owned(), Expr::Literal(number.map_or(Value::Null, Value::from)))];
            let update = model::Update { table: "t".into(), set, filter, ..Default::default() };
            outcome(db.change(&Change::Update(update)), after.is_some(), "statement");
            after
        }
        6 | 7 => transaction(db, rows, generator),
        8 | 9 => upon_conflict(db, rows, n, generator),
        _ => {
            assert_eq!(t.delete(&[id.into()]).unwrap(), rows.contains_key(&id));
            let mut after = rows.clone();
            after.remove(&id);
            Some(after)
        }
    };
    *rows = after.unwrap_or_else(|| rows.clone());
}

fn transaction(db: &Database, rows: &Rows, generator: &mut Generator) -> Option<Rows> {
    let transaction = db.begin().unwrap();
    let within = transaction.table("t").unwrap();
    let (mut after, mut kept) = (rows.clone(), None);
    for _ in 0..generator.below(5) {
        let (id, put) = draw(generator);
        if generator.chance(200_000) && kept.is_none() {
            kept = Some((transaction.savepoint(), after.clone()));
        }
        if generator.chance(300_000) {
            assert_eq!(within.delete(&[id.into()]).unwrap(), after.remove(&id).is_some());
            continue;
        }
        outcome(within.upsert(&row(id, put)), true, "upsert in a transaction");
        after.insert(id, put);
    }
    if let Some((savepoint, before)) = kept
        && generator.chance(500_000)
    {
        transaction.rollback_to(savepoint).unwrap();
        after = before;
    }
    if generator.chance(200_000) {
        transaction.rollback();
        return None;
    }
    outcome(transaction.commit(), is_unique(&after), "commit").then_some(after)
}

/// Which rows pass a condition, and in which order: as the model says.
fn expect(
    db: &Database,
    rows: &Rows,
    (filter, order): (Expr, Option<Expr>),
    is_it: &dyn Fn(i64, Row) -> bool,
    key: &dyn Fn(i64, Row) -> i64,
) {
    let shown = format!("{filter}, in the order of {order:?}, of {rows:?}");
    let mut query = Query::table("t");
    query.select(Expr::field("id"));
    query.filter = Some(filter);
    if let Some(order) = &order {
        let (descending, nulls_first) = (false, None);
        query.order_by = vec![model::OrderBy { expr: order.clone(), descending, nulls_first }];
        query.limit = Some(100.into());
    }
    let found = db.query(&query).unwrap_or_else(|e| panic!("{shown}: {e}")).to_rows();
    let id_of = |row: &Vec<Value>| match row[0] {
        Value::Int(id) => id,
        ref other => panic!("{other:?}"),
    };
    let mut found: Vec<i64> = found.iter().map(id_of).collect();
    let passing = rows.iter().filter(|(id, row)| is_it(**id, **row));
    let mut wanted: Vec<i64> = passing.map(|(id, _)| *id).collect();
    match order {
        Some(_) => {
            let keys = |ids: &[i64]| ids.iter().map(|id| key(*id, rows[id])).collect::<Vec<_>>();
            wanted.sort_by_key(|id| key(*id, rows[id]));
            assert_eq!(keys(&found), keys(&wanted), "{shown}");
            found.sort_unstable();
            wanted.sort_unstable();
        }
        None => found.sort_unstable(),
    }
    assert_eq!(found, wanted, "{shown}");
}

fn is_as_the_model_says(db: &Database, rows: &Rows, n: &str) {
    use Operator::{Eq, Gt, Gte, Lt};
    let id = |id: i64, _: Row| id;
    let all = |_: i64, _: Row| true;
    expect(db, rows, (Expr::literal(true), None), &all, &id);
    for name in NAMES.map(str::to_lowercase) {
        let is = compared(lower("name"), Eq, name.as_str());
        let has = |row: Row| row.0.map(str::to_lowercase).as_ref() == Some(&name);
        let within = is.clone().and(compared(Expr::field(n), Gt, 1i64));
        expect(db, rows, (is.clone(), None), &|_, row| has(row), &id);
        let more = |_: i64, row: Row| has(row) && row.1.is_some_and(|n| n > 1);
        expect(db, rows, (within, None), &more, &id);
        let any = is.and(compared(Expr::field(n), Gt, -2i64));
        let more = |_: i64, row: Row| has(row) && row.1.is_some_and(|n| n > -2);
        expect(db, rows, (any, None), &more, &id);
    }
    for number in -4..5i64 {
        let more = |_: i64, row: Row| row.1.is_some_and(|n| n > number);
        let is_more = compared(Expr::field(n), Gt, number);
        expect(db, rows, (is_more.clone(), None), &more, &id);
        let order = Some(Expr::field(n));
        expect(db, rows, (is_more, order), &more, &|_, row| row.1.unwrap());
        let total = |id: i64, row: Row| row.1.map(|n| id + n);
        let least = compared(sum(n), Gte, 5 + number);
        let is_it = |id: i64, row: Row| total(id, row).is_some_and(|sum| sum >= 5 + number);
        expect(db, rows, (least.clone(), None), &is_it, &id);
        expect(db, rows, (least, Some(sum(n))), &is_it, &|id, row| total(id, row).unwrap());
        let less = compared(Expr::field(n), Lt, number);
        let is_it = |_: i64, row: Row| row.1.is_some_and(|n| n < number);
        expect(db, rows, (less, None), &is_it, &id);
    }
    let null = Expr::Apply(Operator::IsNull, vec![Expr::field(n)]);
    expect(db, rows, (null, None), &|_, row| row.1.is_none(), &id);
    let any = |id: i64, row: Row| row.1.map_or(i64::MIN, |n| id + n);
    expect(db, rows, (not_null("id"), Some(sum(n))), &all, &any);
}

fn check(seed: u64) {
    let mut generator = Generator::new(seed, 0);
    let mut machine = Simulation::new(3, SimOptions::default());
    let uses = [IndexUse::Always, IndexUse::WhenCheaper, IndexUse::Never];
    let (used, limit) = (uses[generator.index(3)], 2 + generator.index(12));
    let open = |machine: &Simulation| {
        let options = Options::new().background(false).environment(machine.environment());
        let options = options.index_use(used).group_limit(limit, 1 << 30).small_group_limit(0);
        options.segment_limit(2 * limit).open("db").unwrap()
    };
    let mut db = open(&machine);
    let mut t = db.create_table("t", schema()).unwrap();
    let (mut rows, mut n) = (Rows::new(), "n");
    for _ in 0..120 {
        match generator.below(24) {
            0 => db.wait_idle().unwrap(),
            1 => drop(db.compact(false, &mut |_, _| {}).unwrap()),
            2 => {
                drop((t, db));
                db = open(&machine);
                t = db.table("t").unwrap();
            }
            3 => {
                let index = indexes(n)[generator.index(3)].clone();
                db.drop_index("t", &index.name).unwrap();
                db.create_index("t", index).unwrap();
            }
            4 => {
                let to = if n == "n" { "number" } else { "n" };
                let rename = Alteration::RenameField { from: n.to_owned(), to: to.to_owned() };
                db.alter_table("t", &[rename]).unwrap();
                n = to;
            }
            5 => {
                drop((t, db));
                let image = machine.crash_image(CrashChoice::KeepNone);
                machine = Simulation::from_image(&image, seed, SimOptions::default());
                db = open(&machine);
                t = db.table("t").unwrap();
            }
            6 if generator.chance(200_000) => {
                t.clear().unwrap();
                rows.clear();
            }
            _ => act(&db, &t, &mut rows, n, &mut generator),
        }
    }
    is_as_the_model_says(&db, &rows, n);
    db.wait_idle().unwrap();
    is_as_the_model_says(&db, &rows, n);
    assert_eq!(db.check().unwrap().problems, [], "seed {seed}");
    assert_eq!(db.recount(true).unwrap(), [], "seed {seed}");
    db.backup("copy", &BackupOptions::default(), &mut |_, _| {}).unwrap();
    let copy = Options::new().environment(machine.environment()).background(false);
    let copy = copy.open("copy").unwrap();
    is_as_the_model_says(&copy, &rows, n);
    assert_eq!(copy.check().unwrap().problems, [], "seed {seed}");
}

#[test]
fn random_changes_beside_a_model() {
    (0..60).for_each(check);
}

#[test]
fn what_cannot_be_computed_is_refused_at_the_write() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let t = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    let product = Expr::field("id").binary(Operator::Multiply, Expr::field("n"));
    let index = |filter: Option<&Expr>| {
        let product = esker::index_expression(&product).unwrap();
        let index = NewIndex::on(Vec::new()).named("p").expression("id * n", product);
        match filter {
            Some(filter) => index.filter(esker::index_expression(filter).unwrap()),
            None => index,
        }
    };
    t.insert(&[i64::MAX.into(), 2i64.into()]).unwrap();
    let e = db.create_index("t", index(None)).unwrap_err();
    assert!(e.to_string().starts_with("index \"p\": "), "{e}");
    assert_eq!(t.schema().indexes().len(), 0);
    // Where the condition leaves the row out it is not computed.
    let small = compared(Expr::field("id"), Operator::Lt, 1000i64);
    db.create_index("t", index(Some(&small))).unwrap();
    t.insert(&[(i64::MAX - 1).into(), 2i64.into()]).unwrap();
    t.insert(&[5i64.into(), 2i64.into()]).unwrap();
    for done in [
        t.insert(&[6i64.into(), i64::MAX.into()]).map(drop),
        t.update(&[5i64.into()], &[("n", i64::MAX.into())]).map(drop),
        t.insert_many(&[vec![7i64.into(), i64::MAX.into()]]).map(drop),
        t.load().and_then(|mut load| {
            load.push_row(&[8i64.into(), i64::MAX.into()])?;
            load.finish().map(drop)
        }),
        db.transact(|transaction| {
            transaction.table("t")?.insert(&[9i64.into(), i64::MAX.into()]).map(drop)
        }),
    ] {
        let e = done.unwrap_err();
        assert!(e.to_string().contains("index \"p\": "), "{e}");
    }
    assert_eq!(t.count().unwrap(), 3);
}

#[test]
fn fields_that_an_index_reads_stay_as_they_are() {
    let db = Options::new().memory().unwrap();
    db.create_table("t", schema()).unwrap();
    let drop_n = Alteration::DropField("n".to_owned());
    let e = db.alter_table("t", &[drop_n]).unwrap_err().to_string();
    assert_eq!(e, "index \"by_name\" is computed from field \"n\": drop it before");
    let wider = DataType::Decimal { precision: 38, scale: 0 };
    let widen = Alteration::Widen { field: "n".to_owned(), data_type: wider, length_max: None };
    let e = db.alter_table("t", &[widen]).unwrap_err().to_string();
    assert!(e.contains("whose type stays while it is there"), "{e}");
    let rename = Alteration::RenameField { from: "n".to_owned(), to: "new".to_owned() };
    db.alter_table("t", &[rename]).unwrap();
    let info = db.info();
    let shown: Vec<_> =
        info.tables[0].indexes.iter().map(|index| index.fields.join(", ")).collect();
    assert_eq!(shown, ["lower(name)", "id + new", "new"]);
    assert_eq!(info.tables[0].indexes[0].filter.as_deref(), Some("new > 0"));
}

/// The columns of a segment of several zones are encoded as a whole, each in its own way.
#[test]
fn every_zone_of_a_segment_has_its_own_values() {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("near", DataType::I64)
        .field("few", DataType::Text)
        .field("alike", DataType::Text)
        .nullable("long", DataType::Text)
        .nullable("wide", DataType::F64);
    let db = Options::new().memory().unwrap();
    let table = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    const ROWS: i64 = 25_000;
    let mut load = table.load().unwrap();
    for id in 0..ROWS {
        let long = (id % 3 > 0).then(|| "x".repeat((id % 40) as usize) + &id.to_string());
        let wide = (id % 5 > 0).then_some(id as f64 / 7.0);
        load.push_row(&[
            id.into(),
            (1_000_000 + id % 20_000).into(),
            ["Red", "green", "BLUE"][(id / 9_000) as usize].into(),
            format!("{id:06}").into(),
            long.map_or(Value::Null, Value::from),
            wide.map_or(Value::Null, Value::from),
        ])
        .unwrap();
    }
    load.finish().unwrap();
    let count = |filter: &Expr| {
        let mut query = Query::table("t");
        query.filter = Some(filter.clone());
        db.query(&query).unwrap().to_rows().len()
    };
    let upper = |field: &str| Expr::call(Function::Upper, [Expr::field(field)]);
    let plus = |field: &str| Expr::field(field).binary(Operator::Add, Expr::literal(1i64));
    let expressions = [upper("few"), upper("alike"), upper("long"), plus("near"), plus("wide")];
    let filters = [
        compared(upper("few"), Operator::Eq, "BLUE"),
        compared(upper("alike"), Operator::Gt, "020001"),
        compared(upper("long"), Operator::Eq, "XX24002"),
        compared(plus("near"), Operator::Gt, 1_016_000i64),
        compared(plus("wide"), Operator::Gt, 3_000.5),
        compared(Expr::field("near"), Operator::Gt, 1_015_000i64),
        compared(Expr::field("few"), Operator::Eq, "green"),
    ];
    let without: Vec<_> = filters.iter().map(&count).collect();
    assert!(without.iter().all(|count| *count > 0), "{without:?}");
    let kept = |expr: &Expr| esker::index_expression(expr).unwrap();
    for (i, expr) in expressions.iter().enumerate() {
        let index = NewIndex::on(Vec::new()).named(format!("e{i}")).expression("e", kept(expr));
        db.alter_table("t", &[Alteration::AddIndex(index)]).unwrap();
    }
    for (i, filter) in filters.iter().enumerate() {
        let index = NewIndex::new(format!("f{i}"), ["id"]).filter(kept(filter));
        db.alter_table("t", &[Alteration::AddIndex(index)]).unwrap();
    }
    db.wait_idle().unwrap();
    let with: Vec<_> = filters.iter().map(&count).collect();
    assert_eq!(with, without);
    assert_eq!(db.check().unwrap().problems, []);
}
