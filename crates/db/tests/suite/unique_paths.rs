//! Unique indexes on paths into documents.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test stops where it fails"
)]

use crate::fixture::Directory;
use esker::{
    Alteration, DataType, Database, ErrorKind, Modified, NewIndex, Options, Schema, Table, Update,
    Value,
};
use esker_query::model::{Change, Expr, Insert, InsertRows, OnConflict};

fn schema(has_index: bool) -> Schema {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .nullable("doc", DataType::Json)
        .primary_key(["id"]);
    if has_index { schema.add_index(by_mail()) } else { schema }.build().unwrap()
}

fn by_mail() -> NewIndex {
    NewIndex::new("by_mail", ["doc.user.mail"]).unique()
}

fn row(id: i64, mail: &str) -> Vec<Value> {
    vec![
        id.into(),
        Value::json(&format!("{{\"user\": {{\"mail\": {mail}, \"n\": {id}}}}}")).unwrap(),
    ]
}

fn taken<T>(result: esker::Result<T>) -> String {
    let Err(e) = result else { panic!("expected a refusal") };
    assert_eq!(e.kind(), ErrorKind::AlreadyExists, "{e}");
    e.to_string()
}

fn is_sound(db: &Database) {
    assert_eq!(db.check().unwrap().problems, []);
    assert_eq!(db.recount(true).unwrap(), []);
}

fn set_mail(t: &Table, id: i64, mail: &str) -> esker::Result<Modified> {
    t.apply(&[id.into()], &Update::new().set("doc.user.mail", mail))
}

#[test]
fn no_two_rows_have_the_same_value_at_a_path() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    t.insert(&row(1, "\"a\"")).unwrap();
    t.insert(&row(2, "\"b\"")).unwrap();
    let why = taken(t.insert(&row(3, "\"a\"")));
    assert!(why.contains("unique index \"by_mail\": doc.user.mail = a exists already"), "{why}");
    taken(t.insert_many(&[row(3, "\"c\""), row(4, "\"c\"")]));
    taken(t.upsert(&row(2, "\"a\"")));
    taken(set_mail(&t, 2, "a"));
    set_mail(&t, 2, "d").unwrap();
    t.insert(&row(3, "\"b\"")).unwrap();
    assert!(t.delete(&[1i64.into()]).unwrap());
    t.insert(&row(4, "\"a\"")).unwrap();
    // Two rows exchange their values in one commit.
    t.upsert_many(&[row(3, "\"a\""), row(4, "\"b\"")]).unwrap();
    assert_eq!(t.count().unwrap(), 3);
    is_sound(&db);
}

#[test]
fn values_are_compared_by_their_text_and_nothing_never_collides() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    let text = |id: i64, doc: &str| [Value::Int(id), Value::json(doc).unwrap()];
    for (id, doc) in
        ["{}", "{}", "1", "{\"user\": null}", "{\"user\": {\"mail\": null}}"].iter().enumerate()
    {
        t.insert(&text(i64::try_from(id).unwrap(), doc)).unwrap();
    }
    t.insert(&[10i64.into(), Value::Null]).unwrap();
    t.insert(&[11i64.into(), Value::Null]).unwrap();
    t.insert(&row(20, "1")).unwrap();
    t.insert(&row(21, "1.0")).unwrap();
    taken(t.insert(&row(22, "\"1\"")));
    t.insert(&row(23, "true")).unwrap();
    taken(t.insert(&row(24, "\"true\"")));
    t.insert(&row(25, "{\"x\": 1, \"y\": [2]}")).unwrap();
    taken(t.insert(&row(26, "{\"y\": [2], \"x\": 1}")));
    t.insert(&row(27, "{\"x\": 1, \"y\": [3]}")).unwrap();
    t.insert(&row(28, "\"{\\\"x\\\": 1, \\\"y\\\": [2]}\"")).unwrap();
    is_sound(&db);
}

#[test]
fn loads_and_new_indexes_find_what_is_there_twice() {
    let dir = Directory::new("unique-paths");
    let db = Options::new().segment_limit(50).group_limit(40, 1 << 20).open(&dir.0).unwrap();
    let t = db.create_table("t", schema(false)).unwrap();
    let mail = |id: i64| format!("\"m{id}\"");
    let rows: Vec<_> = (0..200).map(|id| row(id, &mail(id))).collect();
    t.insert_many(&rows).unwrap();
    // Their group is sealed before the next one is opened: errors name rows in that order.
    db.wait_idle().unwrap();
    // Longer than what lies with its row.
    let long =
        format!("{{\"user\": {{\"mail\": \"long\", \"text\": \"{}\"}}}}", "x".repeat(100_000));
    t.insert(&[1_000i64.into(), Value::json(&long).unwrap()]).unwrap();
    t.insert(&row(200, &mail(7))).unwrap();
    db.wait_idle().unwrap();
    let e = db.alter_table("t", &[Alteration::AddIndex(by_mail())]).unwrap_err().to_string();
    assert!(e.contains("doc.user.mail = m7 is in two rows, key id = 7 and key id = 200"), "{e}");
    assert!(t.delete(&[200i64.into()]).unwrap());
    db.alter_table("t", &[Alteration::AddIndex(by_mail())]).unwrap();
    taken(t.insert(&row(200, "\"long\"")));

    let mut load = t.load().unwrap();
    (300..400).for_each(|id| load.push_row(&row(id, &mail(id))).unwrap());
    load.finish().unwrap();
    for bad in [row(501, &mail(350)), row(501, &mail(500)), row(501, &mail(3))] {
        let mut load = t.load().unwrap();
        let pushed = load.push_row(&row(500, &mail(500))).and_then(|()| load.push_row(&bad));
        taken(pushed.and_then(|()| load.finish()));
    }
    is_sound(&db);
    db.close().unwrap();

    let db = Options::new().open(&dir.0).unwrap();
    let t = db.table("t").unwrap();
    taken(t.insert(&row(600, &mail(399))));
    db.compact(false, &mut |_, _| ()).unwrap();
    taken(t.insert(&row(600, &mail(12))));
    taken(t.insert(&row(600, "\"long\"")));
    t.insert(&row(600, "\"new\"")).unwrap();
    is_sound(&db);
}

#[test]
fn a_conflict_may_be_about_a_path() {
    let db = Options::new().memory().unwrap();
    let t = db.create_table("t", schema(true)).unwrap();
    t.insert(&row(1, "\"a\"")).unwrap();
    let insert = |id: i64, mail: &str, target: &str| {
        let values = row(id, mail).into_iter().map(Expr::literal).collect();
        let rows = InsertRows::Values(vec![values]);
        let conflict_key = vec![target.to_owned()];
        let on_conflict = OnConflict::Skip;
        let insert = Insert { rows, on_conflict, conflict_key, ..Insert::values("t", Vec::new()) };
        db.change(&Change::Insert(insert))
    };
    assert_eq!(insert(2, "\"a\"", "doc.user.mail").unwrap(), 0);
    assert_eq!(insert(2, "\"b\"", "doc.user.mail").unwrap(), 1);
    let e = insert(3, "\"c\"", "doc").unwrap_err().to_string();
    assert!(e.contains("unique index \"by_mail\", (doc.user.mail)"), "{e}");
    is_sound(&db);
}
