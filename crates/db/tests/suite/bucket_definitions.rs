//! The table of a bucket: which changes it takes, and which checks it has.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a test stops where it fails"
)]

use std::time::Duration;

use esker::{Database, ErrorKind, Options, Result, Ttl};

fn memory() -> Database {
    Options::new().memory().unwrap()
}

/// A field more, and the whole bucket answered that it is none any more.
#[test]
fn a_change_that_would_end_a_bucket_is_refused() {
    use esker::{Alteration, DataType, DefaultValue, Field, FieldId, NewIndex};
    use esker_query::model::{Expr, Operator};

    let db = memory();
    let bucket = db.bucket("b").unwrap();
    bucket.put("k", "v").unwrap();
    let field = Field::new(FieldId(0), "n".into(), DataType::I64, true);
    let bad = Expr::literal(esker::Value::Bytes(b"bad".to_vec()));
    let good = esker::check("good", &Expr::field("value").binary(Operator::Neq, bad)).unwrap();
    let (value, expires_at) = ("value".to_owned(), "expires_at".to_owned());
    let unique = NewIndex { unique: true, ..NewIndex::new("u", ["value"]) };
    let default = Some(DefaultValue::Literal(esker::Value::Bytes(b"x".to_vec())));
    let changes = [
        Alteration::AddField(field),
        Alteration::DropField(expires_at.clone()),
        Alteration::RenameField { from: value.clone(), to: "v".into() },
        Alteration::Widen { field: value.clone(), data_type: DataType::Bytes, length_max: None },
        Alteration::DropNotNull(value.clone()),
        Alteration::SetNotNull(expires_at.clone()),
        Alteration::SetDefault { field: value, default },
        Alteration::SetDefault { field: expires_at.clone(), default: Some(DefaultValue::Now) },
        Alteration::AddCheck(good),
        Alteration::AddIndex(unique),
        Alteration::SetExpiry(None),
        Alteration::SetExpiry(Some(expires_at)),
    ];
    for change in changes {
        let expect = |refused: Result<()>| {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{change:?}: {refused}");
            assert!(refused.to_string().starts_with("\"b\" is a bucket: "), "{refused}");
        };
        expect(db.alter_table("b", std::slice::from_ref(&change)));
        let transaction = db.begin().unwrap();
        expect(transaction.alter_table("b", std::slice::from_ref(&change)));
        transaction.commit().unwrap();
        bucket.put("k", "v").unwrap();
        assert_eq!(db.buckets(), ["b"], "{change:?}");
    }
    // What a bucket takes.
    db.alter_table("b", &[Alteration::AddIndex(NewIndex::new("i", ["value"]))]).unwrap();
    db.alter_table("b", &[Alteration::DropIndex("i".into())]).unwrap();
    db.set_bucket_ttl("b", Some(Duration::from_secs(60))).unwrap();
    db.rename_table("b", "c").unwrap();
    db.bucket("c").unwrap().put("k", "w").unwrap();
    db.drop_table("c").unwrap();
    assert!(db.buckets().is_empty());
}

#[test]
fn checks_of_a_bucket_hold_for_every_write() {
    use esker_query::model::{Expr, Operator};

    let db = memory();
    let bad = Expr::literal(esker::Value::Bytes(b"bad".to_vec()));
    let check = esker::check("good", &Expr::field("value").binary(Operator::Neq, bad)).unwrap();
    let schema = esker::Schema::builder()
        .field("key", esker::DataType::Bytes)
        .field("value", esker::DataType::Bytes)
        .nullable("expires_at", esker::DataType::Timestamp)
        .check(check.name, check.condition);
    let schema =
        schema.primary_key(["key"]).ordered_by_key().expires_by_elapsed("expires_at").bucket();
    db.create_table("b", schema.build().unwrap()).unwrap();
    let bucket = db.bucket("b").unwrap();
    bucket.put("k", "good").unwrap();
    let refused = |result: Result<()>| result.unwrap_err().kind() == ErrorKind::ConstraintViolated;
    assert!(refused(bucket.put("k", "bad")));
    assert!(refused(bucket.put_many([("k", "bad")])));
    assert!(refused(bucket.put_if_absent("l", "bad", Ttl::Default).map(drop)));
    assert!(refused(bucket.update("k", |_| Some(b"bad".to_vec())).map(drop)));
    assert!(refused(bucket.compare_and_swap("k", Some(b"good"), Some(b"bad")).map(drop)));
    assert_eq!(bucket.get("k").unwrap().unwrap(), b"good"[..]);
}

/// It was called a table, and the tables were listed.
#[test]
fn a_bucket_that_is_missing_is_named_a_bucket() {
    let db = Options::new().memory().unwrap();
    let schema = esker::Schema::builder().field("n", esker::DataType::I64);
    db.create_table("counts", schema.build().unwrap()).unwrap();
    db.bucket("count").unwrap();
    let refused = |error: esker::Error| {
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert_eq!(error.to_string(), "no bucket \"counter\"; did you mean \"count\"?");
    };
    refused(db.existing_bucket("counter").map(drop).unwrap_err());
    refused(db.drop_bucket("counter").unwrap_err());
    refused(db.rename_bucket("counter", "b").unwrap_err());
    refused(db.set_bucket_ttl("counter", None).unwrap_err());
    refused(db.snapshot().unwrap().bucket("counter").unwrap_err());
    refused(db.begin().unwrap().bucket("counter").map(drop).unwrap_err());
    let error = db.existing_bucket("counts").map(drop).unwrap_err();
    assert_eq!(error.to_string(), "\"counts\" is a table, expected a bucket");
    assert_eq!(db.buckets(), ["count"], "none was made");
}
