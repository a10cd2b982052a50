//! References: rows name rows that are there, whatever is changed, and whoever comes first.

use esker::{
    Alteration, ChangeOptions, DataType, Database, ErrorKind, Field, FieldId, NewReference,
    Options, Query, ReferenceAction, Schema, Value, generated,
};
use esker_query::model::{Change, Delete, Expr, Function, Operator, OrderBy, Update};

fn users() -> Schema {
    let schema = Schema::builder().field("id", DataType::I64).nullable("mail", DataType::Text);
    let mail = esker::NewIndex::new("by_mail", ["mail"]).unique();
    schema.primary_key(["id"]).add_index(mail).build().unwrap()
}

/// Orders that name users by their key.
fn orders_of(action: ReferenceAction) -> Schema {
    let reference = NewReference::new(["user"], "users").on_delete(action);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
    schema.primary_key(["id"]).reference(reference).build().unwrap()
}

fn with_orders(action: ReferenceAction) -> Database {
    let db = Options::new().memory().unwrap();
    fill(&db, action);
    db
}

/// Users 1 to 3, and orders 10 to 12 of users 1, 1 and 2.
fn fill(db: &Database, action: ReferenceAction) {
    let users = db.create_table("users", users()).unwrap();
    for (id, mail) in [(1i64, "a"), (2, "b"), (3, "c")] {
        users.insert(&[id.into(), mail.into()]).unwrap();
    }
    let orders = db.create_table("orders", orders_of(action)).unwrap();
    for (id, user) in [(10i64, 1i64), (11, 1), (12, 2)] {
        orders.insert(&[id.into(), user.into()]).unwrap();
    }
}

fn rows(db: &Database, table: &str) -> Vec<Vec<Value>> {
    let mut query = Query::table(table);
    query.select(Expr::field("id")).select(Expr::field("user"));
    let key = OrderBy { expr: Expr::field("id"), descending: false, nulls_first: None };
    query.order_by = vec![key];
    db.query(&query).unwrap().to_rows()
}

fn row(id: i64, user: i64) -> Vec<Value> {
    vec![id.into(), user.into()]
}

fn refused(outcome: Result<impl Sized, esker::Error>) -> String {
    let e = outcome.err().expect("a reference refuses it");
    assert_eq!(e.kind(), ErrorKind::ConstraintViolated, "{e}");
    e.to_string()
}

#[test]
fn rows_name_rows_that_are_there() {
    let db = with_orders(ReferenceAction::NoAction);
    let orders = db.table("orders").unwrap();
    let missing = "reference \"orders_user_fkey\" of table \"orders\": expected a row of table \
                   \"users\" with id = 9, found none";
    assert_eq!(refused(orders.insert(&row(13, 9))), missing);
    assert!(refused(orders.upsert(&row(10, 9))).contains("id = 9"));
    assert!(refused(orders.insert_many(&[row(13, 1), row(14, 9)])).contains("id = 9"));
    assert!(refused(orders.update(&[10i64.into()], &[("user", 9i64.into())])).contains("id = 9"));
    orders.insert(&[13i64.into(), Value::Null]).unwrap();
    assert!(orders.update(&[13i64.into()], &[("user", 3i64.into())]).unwrap());
    let named = "the row of table \"users\" with id = 3 is referenced from table \"orders\", \
                 reference \"orders_user_fkey\"";
    assert_eq!(refused(db.table("users").unwrap().delete(&[3i64.into()])), named);
    orders.delete(&[13i64.into()]).unwrap();
    assert!(db.table("users").unwrap().delete(&[3i64.into()]).unwrap());
    assert_eq!(rows(&db, "orders"), [row(10, 1), row(11, 1), row(12, 2)]);
    // An index by which rows are found that name another.
    assert_eq!(orders.schema().indexes()[0].name, "by_user");
}

#[test]
fn what_a_reference_does_is_in_the_same_commit() {
    let delete_user = |db: &Database, id: i64| db.table("users").unwrap().delete(&[id.into()]);
    let db = with_orders(ReferenceAction::Cascade);
    assert!(delete_user(&db, 1).unwrap());
    assert_eq!(rows(&db, "orders"), [row(12, 2)]);
    let db = with_orders(ReferenceAction::SetNull);
    assert!(delete_user(&db, 1).unwrap());
    let nulls = [vec![10i64.into(), Value::Null], vec![11i64.into(), Value::Null], row(12, 2)];
    assert_eq!(rows(&db, "orders"), nulls);
    let db = with_orders(ReferenceAction::Restrict);
    refused(delete_user(&db, 1));
    assert!(delete_user(&db, 3).unwrap());
    let filter = Some(Expr::field("id").binary(Operator::Lt, Expr::literal(9i64)));
    let delete = Delete { table: "users".into(), filter, ..Delete::default() };
    refused(db.change(&Change::Delete(delete.clone())));
    assert_eq!(db.table("users").unwrap().count().unwrap(), 2);
    let db = with_orders(ReferenceAction::Cascade);
    assert_eq!(db.change(&Change::Delete(delete)).unwrap(), 3);
    assert_eq!(rows(&db, "orders"), [[]; 0]);
    assert_eq!(db.table("users").unwrap().delete_many(&[vec![1i64.into()]]).unwrap(), 0);
}

#[test]
fn a_default_takes_the_place_of_what_is_gone() {
    let db = Options::new().memory().unwrap();
    db.create_table("users", users()).unwrap().insert(&[0i64.into(), Value::Null]).unwrap();
    db.table("users").unwrap().insert(&[1i64.into(), Value::Null]).unwrap();
    let reference = NewReference::new(["user"], "users").on_delete(ReferenceAction::SetDefault);
    let schema = Schema::builder().field("id", DataType::I64).field("user", DataType::I64);
    let schema = schema.default_value(esker::DefaultValue::Literal(0i64.into()));
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    let orders = db.create_table("orders", schema).unwrap();
    orders.insert(&row(10, 1)).unwrap();
    assert!(db.table("users").unwrap().delete(&[1i64.into()]).unwrap());
    assert_eq!(rows(&db, "orders"), [row(10, 0)]);
    // The default has to be there, too.
    assert!(refused(db.table("users").unwrap().delete(&[0i64.into()])).contains("id = 0"));
}

/// Orders name users by their mail, which may change.
fn by_mail(on_update: ReferenceAction) -> Database {
    let db = Options::new().memory().unwrap();
    let users = db.create_table("users", users()).unwrap();
    let reference = NewReference::new(["user"], "users").to(["mail"]).on_update(on_update);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::Text);
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    users.insert_many(&[vec![1i64.into(), "a".into()], vec![2i64.into(), "b".into()]]).unwrap();
    let orders = db.create_table("orders", schema).unwrap();
    orders.insert_many(&[vec![10i64.into(), "a".into()], vec![11i64.into(), "b".into()]]).unwrap();
    db
}

#[test]
fn other_values_of_what_is_named_go_along() {
    let db = by_mail(ReferenceAction::Cascade);
    let users = db.table("users").unwrap();
    assert!(users.update(&[1i64.into()], &[("mail", "z".into())]).unwrap());
    assert_eq!(rows(&db, "orders")[0], vec![10i64.into(), "z".into()]);
    users.upsert(&[1i64.into(), "y".into()]).unwrap();
    assert_eq!(rows(&db, "orders")[0], vec![10i64.into(), "y".into()]);
    refused(users.delete(&[1i64.into()]));
    let db = by_mail(ReferenceAction::NoAction);
    let users = db.table("users").unwrap();
    refused(users.update(&[1i64.into()], &[("mail", "z".into())]));
    refused(users.upsert(&[1i64.into(), Value::Null]));
    users.upsert(&[1i64.into(), "a".into()]).unwrap();
    // Two rows exchange their values: at the end all that is named is there.
    let other = Expr::field("mail").binary(Operator::Eq, Expr::literal("a"));
    let set = Expr::Apply(Operator::Case, vec![other, Expr::literal("b"), Expr::literal("a")]);
    let set = vec![("mail".to_owned(), set)];
    let update = Update { table: "users".into(), set, ..Update::default() };
    assert_eq!(db.change(&Change::Update(update)).unwrap(), 2);
    let orders = db.table("orders").unwrap();
    refused(orders.insert(&[12i64.into(), "q".into()]));
    assert_eq!(orders.count().unwrap(), 2);
}

#[test]
fn a_transaction_sees_what_references_did() {
    let db = with_orders(ReferenceAction::Cascade);
    let transaction = db.begin().unwrap();
    let users = transaction.table("users").unwrap();
    assert!(users.delete(&[1i64.into()]).unwrap());
    assert_eq!(transaction.table("orders").unwrap().count().unwrap(), 1);
    let orders = transaction.table("orders").unwrap();
    refused(orders.insert(&row(13, 1)));
    users.insert(&[7i64.into(), Value::Null]).unwrap();
    orders.insert(&row(13, 7)).unwrap();
    // What a savepoint takes back a reference's doing goes with.
    let savepoint = transaction.savepoint();
    assert!(users.delete(&[7i64.into()]).unwrap() && users.delete(&[2i64.into()]).unwrap());
    assert_eq!(orders.count().unwrap(), 0);
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(orders.count().unwrap(), 2);
    assert_eq!(rows(&db, "orders").len(), 3);
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "orders"), [row(12, 2), row(13, 7)]);
}

#[test]
fn a_refused_statement_of_a_transaction_changes_nothing() {
    let db = with_orders(ReferenceAction::NoAction);
    let transaction = db.begin().unwrap();
    let users = transaction.table("users").unwrap();
    refused(users.delete_many(&[vec![3i64.into()], vec![1i64.into()]]));
    assert_eq!(users.count().unwrap(), 3);
    assert!(users.delete(&[3i64.into()]).unwrap());
    transaction.commit().unwrap();
    assert_eq!(db.table("users").unwrap().count().unwrap(), 2);
}

#[test]
fn whoever_comes_second_finds_out() {
    // An order comes while its user goes.
    for action in [ReferenceAction::NoAction, ReferenceAction::Cascade] {
        let db = with_orders(action);
        let first = db.begin().unwrap();
        assert!(first.table("users").unwrap().delete(&[3i64.into()]).unwrap());
        db.table("orders").unwrap().insert(&row(13, 3)).unwrap();
        let e = first.commit().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        assert!(e.to_string().contains("orders_user_fkey"), "{e}");
        // Another order does not matter.
        let second = db.begin().unwrap();
        let users = second.table("users").unwrap();
        users.insert(&[4i64.into(), Value::Null]).unwrap();
        assert!(users.delete(&[4i64.into()]).unwrap());
        db.table("orders").unwrap().insert(&row(14, 2)).unwrap();
        second.commit().unwrap();
        // A user goes while an order comes.
        let third = db.begin().unwrap();
        third.table("orders").unwrap().insert(&row(15, 3)).unwrap();
        db.table("orders").unwrap().delete(&[13i64.into()]).unwrap();
        db.table("users").unwrap().delete(&[3i64.into()]).unwrap();
        let e = third.commit().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
        // What the user is otherwise does not matter.
        let fourth = db.begin().unwrap();
        fourth.table("orders").unwrap().insert(&row(16, 2)).unwrap();
        db.table("users").unwrap().update(&[2i64.into()], &[("mail", "m".into())]).unwrap();
        fourth.commit().unwrap();
    }
}

#[test]
fn a_table_may_refer_to_itself() {
    let db = Options::new().memory().unwrap();
    let reference = NewReference::new(["user"], "tree").on_delete(ReferenceAction::Cascade);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    let tree = db.create_table("tree", schema).unwrap();
    tree.insert(&row(1, 1)).unwrap();
    refused(tree.insert(&row(2, 3)));
    tree.insert_many(&[row(2, 3), row(3, 1), row(4, 2)]).unwrap();
    let mut load = tree.load().unwrap();
    (0..100_000i64).for_each(|n| load.push_row(&row(1_000 + n, 999 + n.max(1))).unwrap());
    load.finish().unwrap();
    let mut load = tree.load().unwrap();
    (0..100_000i64).for_each(|n| load.push_row(&row(200_000 + n, 900_000)).unwrap());
    refused(load.finish());
    assert!(tree.delete(&[3i64.into()]).unwrap());
    assert_eq!(tree.count().unwrap(), 100_001);
    db.drop_table("tree").unwrap();
}

#[test]
fn a_load_names_rows_that_are_there() {
    let db = with_orders(ReferenceAction::NoAction);
    let orders = db.table("orders").unwrap();
    for count in [10i64, 200_000] {
        let mut load = orders.load().unwrap();
        let pushed = (0..count).try_for_each(|n| {
            load.push_row(&row(100 + n, if n == count - 3 { 8 } else { n % 3 + 1 }))
        });
        let message = refused(pushed.and_then(|()| load.finish().map(drop)));
        assert!(message.contains("id = 8"), "{message}");
    }
    let mut load = orders.load().unwrap();
    (0..200_000i64).for_each(|n| load.push_row(&row(100 + n, n % 3 + 1)).unwrap());
    load.wait().unwrap();
    // A user goes that the load names.
    db.table("users").unwrap().delete(&[3i64.into()]).unwrap();
    assert!(refused(load.finish()).contains("id = 3"));
    assert_eq!(orders.count().unwrap(), 3);
}

#[test]
fn tables_that_are_bound_change_together() {
    let db = with_orders(ReferenceAction::NoAction);
    let says = |outcome: Result<(), esker::Error>, what: &str| {
        let e = outcome.unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    };
    says(db.drop_table("users"), "orders_user_fkey");
    says(db.truncate_table("users"), "orders_user_fkey");
    says(db.alter_table("users", &[Alteration::SetExpiry(Some("mail".into()))]), "");
    let drop_field = |name: &str| [Alteration::DropField(name.into())];
    says(db.alter_table("orders", &drop_field("user")), "orders_user_fkey");
    db.rename_table("users", "people").unwrap();
    let rename = Alteration::RenameField { from: "id".into(), to: "number".into() };
    db.alter_table("people", &[rename]).unwrap();
    let orders = db.table("orders").unwrap();
    let reference = orders.schema().references()[0].clone();
    assert_eq!((reference.table.as_str(), reference.columns), ("people", vec!["number".into()]));
    refused(orders.insert(&row(13, 9)));
    db.rename_table("orders", "bills").unwrap();
    assert_eq!(db.table("people").unwrap().schema().referrers()[0].table, "bills");
    refused(db.table("people").unwrap().delete(&[1i64.into()]));
    // A reference that is dropped, and one that comes.
    db.alter_table("bills", &[Alteration::DropCheck("orders_user_fkey".into())]).unwrap();
    assert!(!db.table("people").unwrap().schema().is_bound());
    db.table("people").unwrap().delete(&[1i64.into()]).unwrap();
    let add = [Alteration::AddReference(NewReference::new(["user"], "people").named("who"))];
    assert!(refused(db.alter_table("bills", &add)).contains("number = 1"));
    assert!(!db.table("people").unwrap().schema().is_bound());
    db.table("people").unwrap().insert(&[1i64.into(), Value::Null]).unwrap();
    db.alter_table("bills", &add).unwrap();
    refused(db.table("people").unwrap().delete(&[1i64.into()]));
    says(db.alter_table("bills", &add), "who");
    // A field that comes with its reference.
    let field = |name: &str, initial: Value| {
        let field = Field::new(FieldId(0), name.into(), DataType::I64, true);
        let reference = NewReference::new([name], "people");
        [Alteration::AddField(Field { initial, ..field }), Alteration::AddReference(reference)]
    };
    assert!(refused(db.alter_table("bills", &field("by", 77i64.into()))).contains("number = 77"));
    db.alter_table("bills", &field("by", 2i64.into())).unwrap();
    db.alter_table("bills", &field("other", Value::Null)).unwrap();
    assert_eq!(db.table("bills").unwrap().schema().references().len(), 3);
    db.drop_table("bills").unwrap();
    db.drop_table("people").unwrap();
}

#[test]
fn what_cannot_be_referred_to_is_refused_by_name() {
    let db = with_orders(ReferenceAction::NoAction);
    let create = |reference: NewReference| {
        let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
        let schema = schema.nullable("text", DataType::Text).primary_key(["id"]);
        let built = schema.reference(reference).build().map_err(esker::Error::from);
        built.and_then(|schema| db.create_table("t", schema).map(drop)).unwrap_err().to_string()
    };
    let cases = [
        (NewReference::new(["user"], "none"), "no table \"none\""),
        (NewReference::new(["none"], "users"), "unknown field \"none\""),
        (NewReference::new(["user", "text"], "users"), "expected 2 columns of table \"users\""),
        (NewReference::new(["text"], "users"), "field \"text\" is text, and \"id\""),
        (NewReference::new(["user"], "users").to(["none"]), "unknown field \"none\""),
        (NewReference::new(["user"], "orders").to(["user"]), "expected its primary key"),
        (NewReference::new(["id"], "users").on_delete(ReferenceAction::SetNull), "SET NULL, but"),
    ];
    for (reference, expected) in cases {
        let message = create(reference);
        assert!(message.contains(expected), "{message}");
    }
    db.bucket("b").unwrap();
    assert!(create(NewReference::new(["text"], "b")).contains("bucket"));
    assert_eq!(db.tables().len(), 3);
    assert!(!db.table("users").unwrap().schema().referrers().iter().any(|r| r.table == "t"));
}

#[test]
fn references_within_a_transaction_of_definitions() {
    let db = Options::new().memory().unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_table("users", users()).unwrap();
    transaction.create_table("orders", orders_of(ReferenceAction::Cascade)).unwrap();
    transaction.table("users").unwrap().insert(&[1i64.into(), Value::Null]).unwrap();
    transaction.table("orders").unwrap().insert(&row(10, 1)).unwrap();
    let savepoint = transaction.savepoint();
    transaction.drop_table("orders").unwrap();
    assert!(!transaction.table("users").unwrap().schema().is_bound());
    transaction.rollback_to(savepoint).unwrap();
    assert!(transaction.table("users").unwrap().schema().is_bound());
    transaction.truncate_table("users").unwrap_err();
    transaction.truncate_tables(&["users", "orders"]).unwrap();
    assert_eq!(transaction.table("orders").unwrap().count().unwrap(), 0);
    transaction.table("users").unwrap().insert(&[2i64.into(), Value::Null]).unwrap();
    transaction.table("orders").unwrap().insert(&row(11, 2)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "orders"), [row(11, 2)]);
    assert!(db.table("users").unwrap().delete(&[2i64.into()]).unwrap());
    assert_eq!(rows(&db, "orders"), [[]; 0]);
}

#[test]
fn a_table_that_comes_to_be_named_is_another_for_who_has_changed_it() {
    let db = Options::new().memory().unwrap();
    db.create_table("users", users()).unwrap().insert(&[1i64.into(), Value::Null]).unwrap();
    let transaction = db.begin().unwrap();
    transaction.table("users").unwrap().delete(&[1i64.into()]).unwrap();
    db.create_table("orders", orders_of(ReferenceAction::NoAction)).unwrap();
    db.table("orders").unwrap().insert(&row(10, 1)).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_dry_run_changes_nothing() {
    let db = with_orders(ReferenceAction::Cascade);
    let delete = Delete { table: "users".into(), ..Delete::default() };
    let options = ChangeOptions { dry_run: true, ..ChangeOptions::default() };
    assert_eq!(db.change_with(&Change::Delete(delete), &options).unwrap().rows, 3);
    assert_eq!(rows(&db, "orders").len(), 3);
}

/// Rows come, go and refer to each other from several threads, in commits of their own and in
/// transactions: at the end each finds the one that it refers to.
#[test]
fn references_hold_under_threads() {
    const KEYS: u64 = 12;
    for action in [ReferenceAction::Cascade, ReferenceAction::SetNull, ReferenceAction::NoAction] {
        let db = Options::new().memory().unwrap();
        fill(&db, action);
        let work = |number: u64| {
            let (users, orders) = (db.table("users").unwrap(), db.table("orders").unwrap());
            let mut dice = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut refused = 0;
            for _ in 0..1_500 {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                let user = i64::try_from(dice % KEYS).unwrap();
                let order = i64::try_from(dice / KEYS % 64).unwrap();
                let outcome = match dice / 1_000 % 6 {
                    0 => users.upsert(&[user.into(), Value::Null]).map(drop),
                    1 => users.delete(&[user.into()]).map(drop),
                    2 | 3 => orders.upsert(&row(order, user)).map(drop),
                    4 => db.transact(|within| {
                        within.table("users")?.delete(&[user.into()])?;
                        within.table("users")?.insert(&[user.into(), Value::Null])?;
                        within.table("orders")?.upsert(&row(order, user)).map(drop)
                    }),
                    _ => db.transact(|within| {
                        within.table("orders")?.upsert(&row(order + 100, user))?;
                        within.table("orders")?.delete(&[order.into()]).map(drop)
                    }),
                };
                match outcome.map_err(|e| e.kind()) {
                    Ok(()) => {}
                    Err(ErrorKind::ConstraintViolated) => refused += 1,
                    // Of a commit that others came before, again and again.
                    Err(ErrorKind::Conflict) => {}
                    Err(kind) => panic!("{kind:?}"),
                }
            }
            refused
        };
        let refused: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..4).map(|n| scope.spawn(move || work(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(refused > 0);
        assert_eq!(db.check().unwrap().problems, []);
    }
}

#[test]
fn one_commit_has_rows_that_refer_to_each_other() {
    let db = with_orders(ReferenceAction::Cascade);
    let (users, orders) = (db.table("users").unwrap(), db.table("orders").unwrap());
    let mut batch = db.batch();
    batch.insert(&orders, &row(20, 7)).unwrap();
    batch.insert(&users, &[7i64.into(), Value::Null]).unwrap();
    batch.commit().unwrap();
    // One that goes makes it a transaction.
    let mut batch = db.batch();
    batch.insert(&orders, &row(21, 8)).unwrap();
    batch.delete(&users, &[1i64.into()]).unwrap();
    batch.insert(&users, &[8i64.into(), Value::Null]).unwrap();
    batch.commit().unwrap();
    assert_eq!(rows(&db, "orders"), [row(12, 2), row(20, 7), row(21, 8)]);
    let mut batch = db.batch();
    batch.insert(&orders, &row(22, 9)).unwrap();
    batch.delete(&users, &[2i64.into()]).unwrap();
    refused(batch.commit());
    assert_eq!(rows(&db, "orders").len(), 3);
    assert!(db.check().unwrap().is_sound());
}

/// What a reference changes is computed anew, and may be part of the key.
#[test]
fn what_a_reference_changes_is_a_row_as_others_are() {
    let db = Options::new().memory().unwrap();
    let users = db.create_table("users", users()).unwrap();
    users.insert_many(&[vec![1i64.into(), "a".into()], vec![2i64.into(), "b".into()]]).unwrap();
    let none = Expr::literal("none");
    let shown = Expr::call(Function::Coalesce, [Expr::field("user"), none]);
    let reference = NewReference::new(["user"], "users").to(["mail"]);
    let reference =
        reference.on_delete(ReferenceAction::SetNull).on_update(ReferenceAction::Cascade);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::Text);
    let schema = schema.nullable("shown", DataType::Text).generated(generated(&shown).unwrap());
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    let orders = db.create_table("orders", schema).unwrap();
    for (id, user) in [(10i64, "a"), (11, "b")] {
        orders.insert(&[id.into(), user.into(), Value::Null]).unwrap();
    }
    let reference = NewReference::new(["user"], "users").to(["mail"]);
    let reference =
        reference.on_delete(ReferenceAction::Cascade).on_update(ReferenceAction::Cascade);
    let schema = Schema::builder().field("user", DataType::Text).field("n", DataType::I64);
    let schema = schema.primary_key(["user"]).reference(reference).build().unwrap();
    let by_user = db.create_table("by_user", schema).unwrap();
    by_user.insert_many(&[vec!["a".into(), 1i64.into()], vec!["b".into(), 2i64.into()]]).unwrap();
    users.update(&[1i64.into()], &[("mail", "z".into())]).unwrap();
    users.delete(&[2i64.into()]).unwrap();
    let order = |id: i64| orders.get(&[id.into()]).unwrap().unwrap().values().to_vec();
    assert_eq!(order(10), [10i64.into(), "z".into(), "z".into()]);
    assert_eq!(order(11), [11i64.into(), Value::Null, "none".into()]);
    assert_eq!(by_user.count().unwrap(), 1);
    let moved = by_user.get(&["z".into()]).unwrap().unwrap();
    assert_eq!(moved.values(), ["z".into(), Value::Int(1)]);
    assert!(db.check().unwrap().is_sound());
}

/// `UPDATE users SET mail = …` of every row, by the mail that it has.
fn remail(db: &Database, pairs: &[(&str, &str)]) -> Result<u64, esker::Error> {
    let mut operands = Vec::new();
    for (from, to) in pairs {
        operands.push(Expr::field("mail").binary(Operator::Eq, Expr::literal(*from)));
        operands.push(Expr::literal(*to));
    }
    operands.push(Expr::field("mail"));
    let set = vec![("mail".to_owned(), Expr::Apply(Operator::Case, operands))];
    db.change(&Change::Update(Update { table: "users".into(), set, ..Update::default() }))
}

/// Each row goes along with the one that it referred to, though another has its values now.
#[test]
fn rows_follow_rows_that_take_the_values_of_each_other() {
    let db = by_mail(ReferenceAction::Cascade);
    assert_eq!(remail(&db, &[("a", "b"), ("b", "c")]).unwrap(), 2);
    assert_eq!(rows(&db, "orders"), [[10i64.into(), "b".into()], [11i64.into(), "c".into()]]);
    remail(&db, &[("b", "c"), ("c", "b")]).unwrap();
    assert_eq!(rows(&db, "orders"), [[10i64.into(), "c".into()], [11i64.into(), "b".into()]]);
    let db = by_mail(ReferenceAction::SetNull);
    remail(&db, &[("a", "b"), ("b", "a")]).unwrap();
    let nulls = [vec![10i64.into(), Value::Null], vec![11i64.into(), Value::Null]];
    assert_eq!(rows(&db, "orders"), nulls);
    assert!(db.check().unwrap().is_sound());
}

/// What was given up was looked for by the places that its columns had before.
#[test]
fn a_column_that_goes_moves_no_other_one_of_a_reference() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("x", DataType::I64);
    let schema = schema.nullable("mail", DataType::I64).nullable("n", DataType::I64);
    let by_mail = esker::NewIndex::new("by_mail", ["mail"]).unique();
    let schema = schema.primary_key(["id"]).add_index(by_mail).build().unwrap();
    let users = db.create_table("users", schema).unwrap();
    for (id, x, mail, n) in [(1i64, 1i64, 1i64, 1i64), (2, 2, 2, 2), (7, 0, 70, 1)] {
        users.insert(&[id.into(), x.into(), mail.into(), n.into()]).unwrap();
    }
    let reference = NewReference::new(["user"], "users").to(["mail"]);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    db.create_table("orders", schema).unwrap();
    let transaction = db.begin().unwrap();
    transaction.table("users").unwrap().delete(&[1i64.into()]).unwrap();
    transaction.alter_table("users", &[Alteration::DropField("x".into())]).unwrap();
    db.table("orders").unwrap().insert(&row(10, 1)).unwrap();
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn a_table_refers_to_itself_by_other_names() {
    let db = Options::new().memory().unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
    let schema = schema.primary_key(["id"]).reference(NewReference::new(["user"], "tree"));
    let tree = db.create_table("tree", schema.build().unwrap()).unwrap();
    tree.insert(&row(1, 1)).unwrap();
    let rename = Alteration::RenameField { from: "id".into(), to: "number".into() };
    db.alter_table("tree", &[rename]).unwrap();
    db.rename_table("tree", "wood").unwrap();
    tree.insert(&row(2, 1)).unwrap();
    refused(tree.insert(&row(3, 9)));
    refused(tree.delete(&[1i64.into()]));
    assert!(tree.delete(&[2i64.into()]).unwrap() && tree.delete(&[1i64.into()]).unwrap());
    assert!(db.check().unwrap().is_sound());
}

#[test]
fn many_rows_of_a_composite_key_go_at_once() {
    let db = Options::new().memory().unwrap();
    let two = |name: &str| {
        let schema = Schema::builder().field("a", DataType::I64).field("b", DataType::I64);
        (name.to_owned(), schema.primary_key(["a", "b"]))
    };
    let (name, rooms) = two("rooms");
    let rooms = db.create_table(&name, rooms.build().unwrap()).unwrap();
    let reference = NewReference::new(["b", "a"], "rooms").to(["b", "a"]);
    let (name, beds) = two("beds");
    let beds = beds.reference(reference.on_delete(ReferenceAction::Cascade)).build().unwrap();
    let beds = db.create_table(&name, beds).unwrap();
    let all: Vec<_> = (0..500i64).map(|n| row(n / 7, n)).collect();
    rooms.insert_many(&all).unwrap();
    beds.insert_many(&all).unwrap();
    assert_eq!(
        db.change(&Change::Delete(Delete { table: "rooms".into(), ..Delete::default() })).unwrap(),
        500
    );
    assert_eq!(beds.count().unwrap(), 0);
}

#[test]
fn a_table_that_a_savepoint_took_back_is_forgotten() {
    let db = with_orders(ReferenceAction::NoAction);
    let transaction = db.begin().unwrap();
    let savepoint = transaction.savepoint();
    let schema = Schema::builder().field("id", DataType::I64).primary_key(["id"]);
    transaction.create_table("p", schema.build().unwrap()).unwrap();
    transaction.table("p").unwrap().insert(&[1i64.into()]).unwrap();
    let schema = Schema::builder().field("id", DataType::I64).nullable("p", DataType::I64);
    let schema = schema.primary_key(["id"]).reference(NewReference::new(["p"], "p"));
    transaction.create_table("q", schema.build().unwrap()).unwrap();
    transaction.table("p").unwrap().delete(&[1i64.into()]).unwrap();
    let add = [Alteration::AddReference(NewReference::new(["id"], "p").named("r"))];
    assert!(transaction.alter_table("orders", &add).is_err());
    transaction.rollback_to(savepoint).unwrap();
    transaction.table("orders").unwrap().insert(&row(20, 3)).unwrap();
    transaction.commit().unwrap();
    assert_eq!(rows(&db, "orders").len(), 4);
}
