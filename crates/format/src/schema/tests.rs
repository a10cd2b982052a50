use super::{
    Alteration, COMMENT_BYTES_MAX, Check, DefaultValue, Field, FieldId, Generated, Identity,
    IndexId, NewIndex, NewReference, Profile, ReferenceAction, Referrer, Schema, StreamOption,
};
use crate::codec::{Reader, Writer};
use crate::{DataType, Value};

fn schema() -> Schema {
    Schema::builder()
        .field("id", DataType::I64)
        .field("n", DataType::I32)
        .nullable("name", DataType::Text)
        .max_length(10)
        .primary_key(["id"])
        .build()
        .unwrap()
}

fn new_field(name: &str, data_type: DataType, initial: Value) -> Alteration {
    let field = Field::new(FieldId(0), name.to_owned(), data_type, true);
    Alteration::AddField(Field { initial, ..field })
}

fn refused(alteration: Alteration) -> String {
    schema().alter(&[alteration]).unwrap_err().to_string()
}

#[test]
fn numbers_of_dropped_fields_are_not_used_again() {
    let dropped = schema().alter(&[Alteration::DropField("name".into())]).unwrap();
    let again = dropped.alter(&[new_field("name", DataType::Text, Value::Null)]).unwrap();
    assert_eq!(again.fields()[2].id, FieldId(4));
    assert_eq!(again.version(), 3);
}

#[test]
fn an_altered_schema_is_stored_whole() {
    let altered = schema()
        .alter(&[
            new_field("stars", DataType::U8, Value::Uint(3)),
            Alteration::SetDefault {
                field: "stars".into(),
                default: Some(DefaultValue::Literal(Value::Int(5))),
            },
            new_field("at", DataType::Timestamp, Value::Null),
            Alteration::SetDefault { field: "at".into(), default: Some(DefaultValue::Now) },
            new_field("key", DataType::Uuid, Value::Null),
            Alteration::SetDefault { field: "key".into(), default: Some(DefaultValue::Uuid) },
            Alteration::AddCheck(Check { name: "few".into(), condition: "stars < 6".into() }),
            Alteration::DropField("n".into()),
        ])
        .unwrap();
    let mut out = Writer::new();
    altered.encode(&mut out);
    let bytes = out.into_bytes();
    assert_eq!(Schema::decode(&mut Reader::new(&bytes)).unwrap(), altered);
    assert_eq!(altered.key_positions(), [0]);
    assert_eq!(altered.fields()[2].default, Some(DefaultValue::Literal(Value::Uint(5))));
}

/// Rows of one that was taken back were rows of the other.
#[test]
fn schemas_of_one_version_may_have_other_rows() {
    let fields = ["a", "b"].map(|name| new_field(name, DataType::Text, Value::Null));
    let [a, b] = fields.map(|field| schema().alter(&[field]).unwrap());
    assert_eq!((a.version(), a.rows_since), (b.version(), b.rows_since));
    assert!(!a.has_same_rows_as(&b));
    let indexed = a.alter(&[Alteration::AddIndex(NewIndex::new("by_a", ["a"]))]).unwrap();
    assert!(indexed.has_same_rows_as(&a) && !indexed.has_same_rows_as(&b));
}

#[test]
fn the_key_stays() {
    assert!(refused(Alteration::DropField("id".into())).contains("part of the key"));
    assert!(refused(Alteration::DropNotNull("id".into())).contains("part of the key"));
    let renamed = Alteration::RenameField { from: "id".into(), to: "key".into() };
    assert_eq!(schema().alter(&[renamed]).unwrap().fields()[0].name, "key");
}

#[test]
fn fields_are_only_widened() {
    let widen = |field: &str, data_type, length_max| Alteration::Widen {
        field: field.into(),
        data_type,
        length_max,
    };
    assert!(refused(widen("n", DataType::I16, None)).contains("i32 widens to i64, not to i16"));
    assert!(refused(widen("name", DataType::Bytes, None)).contains("text cannot be widened"));
    assert!(refused(widen("name", DataType::Text, Some(9))).contains("text(10) is not widened"));
    schema().alter(&[widen("name", DataType::Text, Some(10))]).unwrap();
    schema().alter(&[widen("name", DataType::Text, None)]).unwrap();
}

#[test]
fn what_makes_no_sense_is_refused() {
    let name = |from: &str, to: &str| Alteration::RenameField { from: from.into(), to: to.into() };
    assert!(refused(name("n", "name")).contains("exists already"));
    assert!(refused(name("x", "y")).contains("unknown field \"x\""));
    assert!(refused(name("n", "")).contains("1 to 128 bytes"));
    assert!(refused(new_field("n", DataType::I64, Value::Null)).contains("exists already"));
    let required = Field::new(FieldId(0), "required".into(), DataType::I64, false);
    assert!(refused(Alteration::AddField(required)).contains("needs a default"));
    assert!(refused(new_field("b", DataType::Bool, Value::Int(1))).contains("expected bool"));
    let now = Alteration::SetDefault { field: "n".into(), default: Some(DefaultValue::Now) };
    assert!(refused(now).contains("the field is i32"));
    let too_long = DefaultValue::Literal(Value::from("more than ten"));
    let too_long = Alteration::SetDefault { field: "name".into(), default: Some(too_long) };
    assert!(refused(too_long).contains("at most 10 characters"));
    assert!(refused(Alteration::DropCheck("c".into())).contains("unknown check"));
}

#[test]
fn one_field_is_left() {
    let schema = Schema::builder().field("only", DataType::I64).build().unwrap();
    let e = schema.alter(&[Alteration::DropField("only".into())]).unwrap_err();
    assert!(e.to_string().contains("at least one"), "{e}");
}

#[test]
fn indexes_are_named_numbered_and_go_with_their_fields() {
    let schema = Schema::builder()
        .field("id", DataType::I64)
        .field("city", DataType::Text)
        .field("doc", DataType::Json)
        .build()
        .unwrap();
    let add = |name: &str, fields: &[&str]| {
        Alteration::AddIndex(NewIndex::new(name, fields.iter().copied()))
    };
    let one = schema.alter(&[add("by_city", &["city", "ID"]), add("by_id", &["id"])]).unwrap();
    assert_eq!(one.indexes()[0].fields.len(), 2);
    let mut out = Writer::new();
    one.encode(&mut out);
    let bytes = out.into_bytes();
    assert_eq!(Schema::decode(&mut Reader::new(&bytes)).unwrap(), one);
    for (alteration, expected) in [
        (add("by_city", &["id"]), "index \"by_city\" exists already"),
        (add("x", &[]), "index \"x\": 1 to 16 fields, found 0"),
        (add("x", &["id", "Id"]), "field \"id\" is named twice in index \"x\""),
        (
            add("x", &["doc"]),
            "field \"doc\" of index \"x\" is json, which has no order; a path into it has: doc.\
             name",
        ),
        (
            Alteration::DropIndex("by_cty".into()),
            "unknown index \"by_cty\"; did you mean \"by_city\"?",
        ),
    ] {
        assert_eq!(one.alter(&[alteration]).unwrap_err().to_string(), expected);
    }
    let two = one.alter(&[Alteration::DropField("city".into())]).unwrap();
    assert_eq!(two.indexes().len(), 1);
    let path = one.alter(&[add("by_path", &["doc.a.b", "id", "doc.a"])]).unwrap();
    let mut out = Writer::new();
    path.encode(&mut out);
    assert_eq!(Schema::decode(&mut Reader::new(&out.into_bytes())).unwrap(), path);
    let index = path.index("by_path").unwrap();
    assert_eq!(path.index_fields(index), ["doc.a.b", "id", "doc.a"]);
    let three = two.alter(&[Alteration::DropIndex("by_id".into()), add("by_id", &["id"])]).unwrap();
    assert_eq!(three.indexes()[0].id, IndexId(3));
}

/// A bucket was known by its fields and its clock; now it is stored that a table is one.
#[test]
fn the_profile_is_stored_and_older_schemas_are_read() {
    let fields = || {
        let keys = Schema::builder().field("key", DataType::Bytes).field("value", DataType::Bytes);
        keys.nullable("expires_at", DataType::Timestamp).primary_key(["key"]).ordered_by_key()
    };
    let decode = |bytes: &[u8]| Schema::decode(&mut Reader::new(bytes));
    let encode = |schema: &Schema| {
        let mut out = Writer::new();
        schema.encode(&mut out);
        out.into_bytes()
    };
    let bucket = fields().expires_by_elapsed("expires_at").bucket().build().unwrap();
    let alike = fields().expires_by_elapsed("expires_at").build().unwrap();
    let by_date = fields().expires_by("expires_at").build().unwrap();
    let profiles =
        [(&bucket, Profile::Bucket), (&alike, Profile::Table), (&by_date, Profile::Table)];
    for (schema, profile) in profiles {
        let mut bytes = encode(schema);
        assert_eq!(decode(&bytes).unwrap(), *schema);
        assert_eq!(schema.profile(), profile);
        // As it was written before: without a profile.
        let at = bytes.len() - 3;
        bytes[at] &= !(3 << 3);
        assert_eq!(decode(&bytes).unwrap().is_bucket(), *schema != by_date);
        bytes[at] |= 3 << 3;
        assert!(decode(&bytes).is_err(), "nothing says what the stream is");
    }
    let mut bytes = encode(&by_date);
    let at = bytes.len() - 3;
    bytes[at] ^= 3 << 3;
    let damaged = decode(&bytes).unwrap_err().to_string();
    assert!(damaged.contains("a bucket has other fields"), "{damaged}");
    let wrong = Schema::builder().field("n", DataType::I64).bucket().build().unwrap_err();
    assert!(wrong.to_string().contains("a bucket has other fields"), "{wrong}");
}

fn computed() -> Generated {
    Generated { expression: "id * 2".into(), is_virtual: true }
}

#[test]
fn what_is_computed_and_what_is_said_is_stored() {
    let always = Identity { is_always: true, start: -3, increment: 7 };
    let made = Schema::builder()
        .field("id", DataType::I64)
        .identity(always)
        .default_next("ids")
        .nullable("twice", DataType::I64)
        .generated(computed())
        .comment("what it is about")
        .build()
        .unwrap();
    let about = |field: Option<&str>, comment: &str| Alteration::SetComment {
        field: field.map(str::to_owned),
        comment: Some(comment.to_owned()),
    };
    let altered = made.alter(&[about(Some("twice"), "doubled"), about(None, "others")]).unwrap();
    // Rows stay what they are; what is said of a field is compared with it.
    let said = made.alter(&[about(None, "others")]).unwrap();
    assert!(said.has_same_rows_as(&made));
    for schema in [&made, &altered] {
        let mut out = Writer::new();
        schema.encode(&mut out);
        assert_eq!(Schema::decode(&mut Reader::new(out.as_bytes())).as_ref(), Ok(schema));
        assert!(schema.has_generated());
    }
    assert_eq!((made.comment(), altered.comment()), (Some("what it is about"), Some("others")));
    assert_eq!(altered.fields()[0].own_sequence(), Some("ids"));
    let stays = Generated { is_virtual: false, ..computed() };
    let set = |generated| Alteration::SetGenerated { field: "twice".into(), generated };
    let again = altered.alter(&[set(Some(stays))]).unwrap();
    assert!(again.fields()[1].generated.as_ref().is_some_and(|kept| kept.is_virtual));
    assert!(!altered.alter(&[set(None)]).unwrap().has_generated());
    assert!(!altered.alter(&[Alteration::DropField("twice".into())]).unwrap().has_generated());
    let long = "x".repeat(COMMENT_BYTES_MAX + 1);
    for field in [None, Some("twice")] {
        assert!(made.alter(&[about(field, &long)]).is_err());
    }
}

#[test]
fn what_is_computed_has_no_default_and_is_no_key() {
    let field = || Schema::builder().field("a", DataType::I64).field("g", DataType::I64);
    let computed = || field().generated(computed());
    assert!(computed().build().is_ok());
    let said = |built: crate::Result<Schema>| built.unwrap_err().to_string();
    let default = computed().default_value(DefaultValue::Literal(Value::Int(1)));
    assert_eq!(said(default.build()), "field \"g\" is generated: it has no default");
    let key = computed().primary_key(["g"]);
    assert_eq!(said(key.build()), "key field \"g\" is generated: a key is given");
    let twice = computed().identity(Identity::default());
    assert!(said(twice.build()).contains("an identity is an integer"));
    let zero = field().identity(Identity { increment: 0, ..Identity::default() });
    assert!(said(zero.build()).contains("is not 0"));
    let stays = field().identity(Identity::default()).default_next("ids").build().unwrap();
    let unset = Alteration::SetDefault { field: "g".into(), default: None };
    assert!(said(stays.alter(&[unset])).contains("whose default stays"));
}

#[test]
fn references_are_stored_and_tell_rows_apart() {
    let reference = NewReference::new(["user"], "users").named("of").to(["id"]);
    let reference = reference.on_delete(ReferenceAction::SetNull);
    let schema = Schema::builder().field("id", DataType::I64).nullable("user", DataType::I64);
    let schema = schema.primary_key(["id"]).reference(reference).build().unwrap();
    let (table, fields) = ("orders".to_owned(), vec![FieldId(1)]);
    let referrer = Referrer { table, reference: "of".to_owned(), fields };
    let bound = schema.bound_anew(schema.references().to_vec(), vec![referrer]).unwrap();
    for schema in [&schema, &bound] {
        let mut out = Writer::new();
        schema.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(Schema::decode(&mut Reader::new(&bytes)).as_ref(), Ok(schema));
        for end in 0..bytes.len() {
            assert!(Schema::decode(&mut Reader::new(&bytes[..end])).is_err(), "{end} bytes");
        }
    }
    // Two schemas of one version, as a transaction makes them that takes one back.
    let other = schema.bound_anew(Vec::new(), Vec::new()).unwrap();
    assert_eq!(other.version(), bound.version());
    assert!(!other.has_same_rows_as(&bound));
    let refused = bound.alter(&[Alteration::DropField("user".into())]).unwrap_err().to_string();
    assert_eq!(
        refused,
        "field \"user\" is part of reference \"of\" and cannot be dropped: drop that before"
    );
}

#[test]
fn what_a_stream_is_comes_back_with_its_schema() {
    let fields = || {
        let time = Schema::builder().field("t", DataType::Timestamp);
        time.nullable("more", DataType::Json)
    };
    let options = [
        StreamOption::Late(Some(1)),
        StreamOption::Ahead(Some(u64::from(u32::MAX))),
        StreamOption::Rest(Some("more".into())),
    ];
    for count in 0..=options.len() {
        for skipped in 0..=count {
            let some = options[skipped..count].iter().cloned();
            let schema = fields().comment("events").stream("T", some).build().unwrap();
            let mut out = Writer::new();
            schema.encode(&mut out);
            let bytes = out.into_bytes();
            assert_eq!(Schema::decode(&mut Reader::new(&bytes)).unwrap(), schema);
            assert_eq!(schema.profile(), Profile::Stream);
            for len in 0..bytes.len() {
                assert!(Schema::decode(&mut Reader::new(&bytes[..len])).is_err());
            }
        }
    }
    let schema = fields().stream("t", options).build().unwrap();
    let texts: Vec<_> = schema.stream_options().unwrap().into_iter().map(|(_, v)| v).collect();
    assert_eq!(texts, ["t", "0.000001 seconds", "4294.967295 seconds", "more"]);
}

/// It was one of four kinds, of which each has a number.
#[test]
fn a_default_that_is_computed_is_stored_as_it_is() {
    for default in [
        DefaultValue::Now,
        DefaultValue::Uuid,
        DefaultValue::NextValue("numbers".into()),
        DefaultValue::After(7),
        DefaultValue::Computed("{\"any\": \"text\"}".into()),
    ] {
        let data_type = match default {
            DefaultValue::Uuid => DataType::Uuid,
            DefaultValue::NextValue(_) => DataType::I64,
            _ => DataType::Timestamp,
        };
        let schema = Schema::builder().field("a", data_type).default_value(default.clone());
        let schema = schema.build().unwrap();
        let mut out = Writer::new();
        schema.encode(&mut out);
        let bytes = out.into_bytes();
        let decoded = Schema::decode(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(decoded.fields()[0].default, Some(default));
    }
}
