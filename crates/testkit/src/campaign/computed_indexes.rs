//! Scenarios of indexes that compute something: an answer has all rows, whichever an index has, and
//! what is unique stays so whatever a crash leaves.

use esker::{DataType, Database, ErrorKind, IndexUse, NewIndex, Options, Schema, Value};
use esker_query::model::{Expr, Function, Operator, Query};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("an index of some rows, asked for these and for others", some_rows),
    ("a unique index of an expression, and a crash at every I/O", crash_at_every_io),
];

const ROWS: i64 = 40;

fn options() -> Options {
    let options = Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0);
    options.index_use(IndexUse::Always)
}

fn begun(machine: &Simulation) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let fields = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let schema = fields.field("name", DataType::Text).primary_key(["id"]).build();
    let table = db.create_table("t", schema.map_err(|e| e.to_string())?).map_err(said)?;
    let row = |id: i64| vec![id.into(), (id % 10).into(), format!("Name {id}").into()];
    table.insert_many(&(0..ROWS).map(row).collect::<Vec<_>>()).map_err(said)?;
    Ok(db)
}

fn compared(field: &str, operator: Operator, with: i64) -> Expr {
    Expr::field(field).binary(operator, Expr::literal(with))
}

fn of_expression(expr: &Expr) -> Result<esker::RowExpression, String> {
    esker::index_expression(expr).map_err(said)
}

/// The numbers of the rows that pass a filter, and of those that should.
fn expect_rows(db: &Database, filter: Expr, is_it: impl Fn(i64) -> bool) -> Outcome {
    let mut query = Query::table("t");
    query.select(Expr::field("id"));
    let shown = filter.to_string();
    query.filter = Some(filter);
    let found = db.query(&query).map_err(said)?.to_rows();
    let mut found: Vec<Value> = found.into_iter().flatten().collect();
    found.sort_by(|a, b| a.as_ref().compare(b.as_ref()));
    let wanted: Vec<Value> = (0..ROWS).filter(|id| is_it(*id)).map(Value::Int).collect();
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{shown}: found {found:?}, expected {wanted:?}")),
    }
}

fn some_rows() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    let filter = of_expression(&compared("n", Operator::Gte, 5))?;
    db.create_index("t", NewIndex::new("by_id", ["n"]).filter(filter)).map_err(said)?;
    db.wait_idle().map_err(said)?;
    expect_rows(&db, compared("n", Operator::Gt, 6), |id| id % 10 > 6)?;
    expect_rows(&db, compared("n", Operator::Gt, 2), |id| id % 10 > 2)?;
    expect_rows(&db, compared("n", Operator::Eq, 3), |id| id % 10 == 3)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepAll)))?;
    expect_rows(&db, compared("n", Operator::Lt, 8), |id| id % 10 < 8)
}

fn make(db: &Database) -> esker::Result<()> {
    let lower = Expr::call(Function::Lower, [Expr::field("name")]);
    let index = NewIndex::on(Vec::new()).named("by_name");
    let index = index.expression("lower(name)", esker::index_expression(&lower)?).unique();
    db.create_index("t", index)
}

fn crash_at_every_io() -> Outcome {
    let (mut befores, mut afters) = (0, 0);
    for io in 0..400 {
        let machine = machine();
        let db = begun(&machine)?;
        machine.crash_after_io(Some(io));
        let done = make(&db);
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            let table = db.table("t").map_err(said)?;
            let is_there = table.schema().index("by_name").is_ok();
            if done.is_ok() && !is_there {
                return Err(format!("I/O {io}: what was acknowledged is lost"));
            }
            (befores, afters) = (befores + u64::from(!is_there), afters + u64::from(is_there));
            if !is_there {
                make(&db).map_err(said)?;
            }
            let again = table.insert(&[ROWS.into(), 0i64.into(), "nAME 7".into()]);
            if again.as_ref().err().map(esker::Error::kind) != Some(ErrorKind::AlreadyExists) {
                return Err(format!("I/O {io}: a name comes twice, {again:?}"));
            }
            let name = Expr::call(Function::Lower, [Expr::field("name")]);
            let name = name.binary(Operator::Eq, Expr::literal("name 9"));
            expect_rows(&db, name, |id| id == 9)?;
            if !db.check().map_err(said)?.is_sound() {
                return Err(format!("I/O {io}: the database is not sound"));
            }
        }
        if done.is_ok() {
            break;
        }
    }
    match befores > 0 && afters > 0 {
        true => Ok(()),
        false => Err(format!("{befores} images before and {afters} after it")),
    }
}
