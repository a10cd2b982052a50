use esker_format::{DataType, Schema, Value};
use esker_query::model::{Expr, Operator, Update};

use super::super::StatementRun;
use super::Wanted;
use crate::{ErrorKind, Options};

/// A seal between the reading and the writing of an update made a newer version look as old as the
/// one that was read, and the other writer's update was lost.
#[test]
fn a_row_that_was_replaced_and_sealed_meanwhile_is_a_conflict() {
    let dir = std::env::temp_dir().join(format!("esker-matched-{}", std::process::id()));
    let db = Options::new().group_limit(1, 1 << 30).background(false).open(&dir).unwrap();
    let schema = Schema::builder().field("id", DataType::I64).field("n", DataType::I64);
    let t = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
    t.insert(&[Value::Int(1), Value::Int(0)]).unwrap();
    let n = Expr::field("n").binary(Operator::Add, Expr::literal(1i64));
    let update = Update { table: "t".into(), set: vec![("n".into(), n)], ..Default::default() };
    let wanted = Wanted {
        table: "t",
        alias: None,
        joins: &[],
        filter: None,
        order_by: &[],
        limit: None,
        set: vec!["n".into()],
        exprs: update.set.iter().map(|(_, expr)| expr.clone()).collect(),
        is_once: false,
        removes: false,
        returning: None,
    };
    let options = db.engine().query_options();
    let run = StatementRun::alone(super::super::On::Database(&db), options);
    let matched = run.matched(t.snapshot().unwrap(), &wanted).unwrap();
    db.change(&esker_query::model::Change::Update(update.clone())).unwrap();
    t.insert(&[Value::Int(2), Value::Int(0)]).unwrap();
    db.wait_idle().unwrap();
    let set = |_: &Schema, mut row: Vec<Value>, values: &[Value]| {
        row[1] = values[0].clone();
        Ok(Some(row))
    };
    let e = run.commit_found(&t, &matched, &wanted, &set).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Conflict);
    drop((matched, t, db));
    esker_vfs::Environment::os().files.remove_dir_all(&dir).unwrap();
}
