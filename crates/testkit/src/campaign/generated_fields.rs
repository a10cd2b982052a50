//! Scenarios of fields that are computed: whatever changes a row computes them anew, and what a
//! crash leaves is the row whole.

use std::sync::Arc;

use esker::{Alteration, DataType, Database, Field, FieldId, Options, Schema, Value};
use esker_query::model::{Change, Expr, Operator, Update};
use esker_vfs::sim::{CrashChoice, Simulation};

use super::directed::{Outcome, Scenario, machine, open, revived, said};

pub(super) const SCENARIOS: [Scenario; 2] = [
    ("changes of what is computed of, and a crash", changes),
    ("a computed field that is added, and a crash at every I/O", crash_at_every_io),
];

fn options() -> Options {
    Options::new().background(false).group_limit(4, 1 << 20).small_group_limit(0)
}

fn times(field: &str, by: i64) -> Expr {
    Expr::field(field).binary(Operator::Multiply, Expr::literal(by))
}

fn begun(machine: &Simulation) -> Result<Database, String> {
    let db = open(options(), machine)?;
    let fields = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let fields = fields.field("twice", DataType::I64);
    let fields = fields.generated(esker::generated(&times("n", 2)).map_err(said)?);
    let schema = fields.primary_key(["id"]).build().map_err(|e| e.to_string())?;
    let table = db.create_table("t", schema).map_err(said)?;
    let rows: Vec<_> = (0..6i64).map(|id| vec![id.into(), id.into(), Value::Null]).collect();
    table.insert_many(&rows).map_err(said)?;
    Ok(db)
}

/// Of each row, what is computed of it is what comes of it.
fn is_right(db: &Database, field: &str, by: i64) -> Outcome {
    for row in db.table("t").and_then(|t| t.iter()).map_err(said)? {
        let row = row.map_err(said)?;
        let Some(Value::Int(n)) = row.get("n") else { return Err(format!("{row:?}")) };
        if row.get(field) != Some(&Value::Int(n * by)) {
            return Err(format!("{field} of {n} is {:?}, expected {}", row.get(field), n * by));
        }
    }
    Ok(())
}

fn changes() -> Outcome {
    let machine = machine();
    let db = begun(&machine)?;
    is_right(&db, "twice", 2)?;
    let table = db.table("t").map_err(said)?;
    table.update(&[1i64.into()], &[("n", 10i64.into())]).map_err(said)?;
    is_right(&db, "twice", 2)?;
    let set = vec![("n".to_owned(), times("n", 3))];
    let update = Change::Update(Update { table: "t".into(), set, ..Update::default() });
    db.change(&update).map_err(said)?;
    is_right(&db, "twice", 2)?;
    let transaction = db.begin().map_err(said)?;
    transaction.change(&update).map_err(said)?;
    transaction.commit().map_err(said)?;
    is_right(&db, "twice", 2)?;
    let db = open(options(), &revived(&machine.crash_image(CrashChoice::KeepNone)))?;
    is_right(&db, "twice", 2)
}

fn add(db: &Database) -> Outcome {
    let field = Field::new(FieldId(0), "more".into(), DataType::I64, false);
    let generated = Some(Arc::new(esker::generated(&times("n", 5)).map_err(said)?));
    db.alter_table("t", &[Alteration::AddField(Field { generated, ..field })]).map_err(said)
}

fn crash_at_every_io() -> Outcome {
    let (mut befores, mut afters) = (0, 0);
    for io in 0..400 {
        let machine = machine();
        let db = begun(&machine)?;
        machine.crash_after_io(Some(io));
        let done = add(&db);
        for choice in [CrashChoice::KeepNone, CrashChoice::KeepAll] {
            let db = open(options(), &revived(&machine.crash_image(choice)))?;
            is_right(&db, "twice", 2)?;
            let is_there = db.table("t").map_err(said)?.schema().position("more").is_some();
            if done.is_ok() && !is_there {
                return Err(format!("I/O {io}: what was acknowledged is lost"));
            }
            (befores, afters) = (befores + u64::from(!is_there), afters + u64::from(is_there));
            if !is_there {
                add(&db)?;
            }
            is_right(&db, "more", 5)?;
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
