//! Tables of structs: walking, changing and clearing them, their indexes, and making them once.

use std::collections::BTreeSet;

use esker::{
    Alteration, DataType, Database, ErrorKind, NewIndex, NewReference, Options, Query, Record,
    ReferenceAction, Schema, Scope, TypedTable, Value,
};

fn memory() -> Database {
    Options::new().memory().unwrap()
}

#[derive(Clone, Debug, PartialEq, Record)]
struct Account {
    #[esker(key)]
    owner: String,
    cents: i64,
    #[esker(default = 3)]
    stars: Option<i64>,
}

fn account(owner: impl ToString, cents: i64) -> Account {
    Account { owner: owner.to_string(), cents, stars: None }
}

fn accounts(db: &Database) -> TypedTable<Account> {
    db.create_table_of("accounts").unwrap()
}

fn owners(rows: impl Iterator<Item = esker::Result<Account>>) -> Vec<String> {
    rows.map(|row| row.unwrap().owner).collect()
}

#[test]
fn a_walk_has_every_row_of_one_commit() {
    let db = memory();
    let table = accounts(&db);
    let mut load = table.table().load().unwrap();
    for i in 0..3_000 {
        load.push_row(&[Value::from(format!("loaded {i}")), i.into(), 3.into()]).unwrap();
    }
    load.finish().unwrap();
    let new: Vec<_> = (0..500).map(|i| account(format!("new {i}"), i)).collect();
    table.insert_many(&new).unwrap();
    let gone = (0..3_000).step_by(3).map(|i| format!("loaded {i}"));
    assert_eq!(table.delete_many(gone).unwrap(), 1_000);
    let mut expected = Vec::new();
    table
        .for_each(|_, row| {
            expected.push(row);
            Ok(())
        })
        .unwrap();
    assert_eq!(expected.len(), 2_500);

    let (mut typed, mut untyped) = (table.iter().unwrap(), table.table().iter().unwrap());
    for (i, expected) in expected.iter().enumerate() {
        assert_eq!(typed.next().unwrap().unwrap(), *expected);
        assert_eq!(untyped.next().unwrap().unwrap().to_record::<Account>().unwrap(), *expected);
        // What comes and goes meanwhile does not show.
        if i % 500 == 0 {
            table.insert(&account(format!("later {i}"), 0)).unwrap();
            assert!(table.delete(format!("new {i}").as_str()).unwrap() || i >= 500);
            db.wait_idle().unwrap();
        }
    }
    assert!(typed.next().is_none() && untyped.next().is_none());
    assert!(typed.next().is_none() && untyped.next().is_none());
    table.clear().unwrap();
    assert!(table.iter().unwrap().next().is_none());
}

#[test]
fn a_walk_within_a_transaction_has_its_changes() {
    let db = memory();
    let table = accounts(&db);
    table.insert_many(&[account("ada", 1), account("bob", 2)]).unwrap();
    db.transact(|transaction| {
        let within = transaction.table_of::<Account>("accounts")?;
        within.insert(&account("cleo", 3))?;
        assert!(within.update("ada", |account| account.cents = 7)?);
        let walk = within.iter()?;
        assert_eq!(within.delete_many(["bob", "dora"])?, 1);
        assert_eq!(owners(walk).into_iter().collect::<BTreeSet<_>>().len(), 3);
        let cents = within.iter()?.map(|row| row.map(|row| row.cents));
        assert_eq!(cents.collect::<esker::Result<BTreeSet<_>>>()?, [3, 7].into());
        assert_eq!(within.table().iter()?.count(), 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(table.get("ada").unwrap().unwrap().cents, 7);
    db.transact(|transaction| {
        assert_eq!(transaction.table_of::<Account>("accounts")?.clear()?, 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(table.table().count().unwrap(), 0);
}

#[test]
fn an_update_keeps_what_the_struct_does_not_have() {
    #[derive(Record)]
    struct Cents {
        #[esker(key)]
        owner: String,
        cents: i64,
    }
    let db = memory();
    let table = accounts(&db);
    table.insert(&Account { stars: Some(5), ..account("ada", 1) }).unwrap();
    let cents = db.table_of::<Cents>("accounts").unwrap();
    assert!(cents.update("ada", |row| row.cents += 1).unwrap());
    let ada = Account { stars: Some(5), ..account("ada", 2) };
    assert_eq!(table.get("ada").unwrap(), Some(ada.clone()));
    let renamed = cents.update("ada", |row| row.owner = "bob".into()).unwrap_err();
    assert_eq!(renamed.to_string(), "field \"owner\": the key of a row stays what it is");
    assert_eq!(renamed.kind(), ErrorKind::InvalidInput);
    assert_eq!(table.get("ada").unwrap(), Some(ada));
    assert!(!cents.update("bob", |_| panic!("there is no such row")).unwrap());
    // None is written as the default, as it is by all else.
    assert!(table.update("ada", |row| row.stars = None).unwrap());
    assert_eq!(table.get("ada").unwrap().unwrap().stars, Some(3));
    let commit = db.snapshot().unwrap().commit();
    assert!(table.update("ada", |_| ()).unwrap());
    assert_eq!(db.snapshot().unwrap().commit(), commit, "nothing was written");
}

#[test]
fn updates_of_one_row_lose_none() {
    let db = memory();
    let table = accounts(&db);
    table.insert(&account("ada", 0)).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..100 {
                    assert!(table.update("ada", |row| row.cents += 1).unwrap());
                }
            });
        }
    });
    assert_eq!(table.get("ada").unwrap().unwrap().cents, 400);
}

#[test]
fn a_row_with_a_generated_key_is_updated_by_its_row_id() {
    #[derive(Record)]
    struct Reading {
        celsius: f64,
    }
    let db = memory();
    let readings = db.create_table_of::<Reading>("readings").unwrap();
    let id = readings.insert(&Reading { celsius: f64::NAN }).unwrap();
    assert!(readings.update(id, |reading| reading.celsius = 19.5).unwrap());
    assert_eq!(readings.get(id).unwrap().unwrap().celsius, 19.5);
    assert_eq!(readings.delete_many([id, id + 1]).unwrap(), 1);
    readings.insert(&Reading { celsius: 1.0 }).unwrap();
    readings.clear().unwrap();
    assert_eq!(readings.insert(&Reading { celsius: 2.0 }).unwrap(), 1, "row ids begin again");
}

#[test]
fn many_keys_are_removed_or_none() {
    let db = memory();
    let table = accounts(&db);
    table.insert_many(&[account("ada", 1), account("bob", 2)]).unwrap();
    let error = table.delete_many([("ada", "x"), ("bob", "y")]).unwrap_err();
    assert_eq!(error.to_string(), "key 0: expected a key of 1 values (owner), found 2");
    assert_eq!(table.table().count().unwrap(), 2);
    assert_eq!(table.delete_many(Vec::<&str>::new()).unwrap(), 0);
    assert_eq!(table.delete_many(vec!["ada".to_owned(), "bob".to_owned()]).unwrap(), 2);
    db.drop_table("accounts").unwrap();
    assert_eq!(table.clear().unwrap_err().kind(), ErrorKind::NotFound);
}

#[derive(Clone, Debug, PartialEq, Record)]
#[esker(index(city, born), unique(first, last))]
struct Person {
    #[esker(key)]
    id: u32,
    #[esker(unique, rename = "e-mail")]
    email: Option<String>,
    #[esker(index)]
    city: String,
    born: i16,
    first: String,
    last: String,
}

fn person(id: u32, email: Option<&str>, last: &str) -> Person {
    let (email, city) = (email.map(Into::into), "London".into());
    Person { id, email, city, born: 1815, first: "Ada".into(), last: last.into() }
}

#[test]
fn the_indexes_of_a_struct_are_made_with_its_table() {
    let db = memory();
    let people = db.create_table_of::<Person>("people").unwrap();
    let schema = people.table().schema();
    let index =
        |index: &esker::Index| (index.name.clone(), index.unique, schema.index_fields(index));
    let found: Vec<_> = schema.indexes().iter().map(index).collect();
    let expected = [
        ("by_e-mail", true, &["e-mail"][..]),
        ("by_city", false, &["city"]),
        ("by_city_born", false, &["city", "born"]),
        ("by_first_last", true, &["first", "last"]),
    ];
    let expected = expected.map(|(name, unique, fields)| {
        (name.to_owned(), unique, fields.iter().map(|field| (*field).to_owned()).collect())
    });
    assert_eq!(found, expected);
    people.insert(&person(1, Some("a@b.c"), "King")).unwrap();
    for (twice, index) in [
        (person(2, Some("a@b.c"), "Byron"), "by_e-mail"),
        (person(2, None, "King"), "by_first_last"),
    ] {
        let error = people.insert(&twice).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains(index), "{error}");
        people.insert_many(&[person(3, None, "Byron"), twice]).unwrap_err();
    }
    people.insert(&person(2, None, "Byron")).unwrap();
    let error = people.update(2, |person| person.last = "King".into()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(people.get(2).unwrap().unwrap().last, "Byron");
}

#[test]
fn a_table_without_the_indexes_of_a_struct_is_refused_where_they_are_unique() {
    let db = memory();
    let fields =
        Person::FIELDS.iter().fold(Schema::builder(), |schema, field| match field.is_nullable() {
            true => schema.nullable(field.name, field.data_type),
            false => schema.field(field.name, field.data_type),
        });
    db.create_table("people", fields.primary_key(["id"]).build().unwrap()).unwrap();
    for (missing, index) in [
        ("(e-mail)", NewIndex::new("one", ["e-mail"])),
        ("(first, last)", NewIndex::new("other", ["last", "first"])),
    ] {
        let expected = format!(
            "table \"people\": record Person: expected a unique index on {missing}, found none: \
             Database::create_index makes one"
        );
        assert_eq!(db.table_of::<Person>("people").unwrap_err().to_string(), expected);
        assert_eq!(db.table_or_create_of::<Person>("people").unwrap_err().to_string(), expected);
        db.create_index("people", index.unique()).unwrap();
    }
    let people = db.table_of::<Person>("people").unwrap();
    people.insert(&person(1, None, "King")).unwrap();
    assert_eq!(people.table().schema().indexes().len(), 2, "others are not made");
    // A key is unique as it is.
    #[derive(Debug, Record)]
    struct Id {
        #[esker(unique)]
        #[allow(dead_code, reason = "never read")]
        id: u32,
    }
    let row = people.table().get(&[1u32.into()]).unwrap().unwrap();
    assert_eq!(row.to_record::<Id>().unwrap().id, 1);
    db.create_table(
        "ids",
        Schema::builder().field("id", DataType::U32).primary_key(["id"]).build().unwrap(),
    )
    .unwrap();
    db.table_of::<Id>("ids").unwrap();
    let wrong = db.table_or_create_of::<Id>("ids").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "table \"ids\": record Id: primary key: expected a generated one, found (id)"
    );
}

#[test]
fn threads_that_ask_at_once_get_one_table() {
    let directory = crate::fixture::Directory::new("table_or_create");
    let db = Database::open(&directory.0).unwrap();
    for round in 0..20 {
        let (typed, untyped) = (format!("typed {round}"), format!("untyped {round}"));
        let schema = || Schema::builder().field("n", DataType::U32).primary_key(["n"]).build();
        std::thread::scope(|threads| {
            for n in 0..6u32 {
                let (db, typed, untyped) = (&db, &typed, &untyped);
                threads.spawn(move || {
                    let table = db.table_or_create_of::<Person>(typed).unwrap();
                    table.insert(&person(n, None, &n.to_string())).unwrap();
                    let table = db.table_or_create(untyped, schema().unwrap()).unwrap();
                    table.insert(&[n.into()]).unwrap();
                });
            }
        });
        assert_eq!(db.table_of::<Person>(&typed).unwrap().iter().unwrap().count(), 6);
        assert_eq!(db.query(&Query::table(&untyped)).unwrap().row_count(), 6);
    }
    assert_eq!(db.tables().len(), 40);
}

#[test]
fn a_table_that_differs_is_not_taken_for_the_one_that_was_asked_for() {
    let db = memory();
    let (text, number) = (DataType::Text, DataType::I64);
    let schema = |fields: &[(&str, DataType)], key: &[&str]| {
        let fields = fields.iter().fold(Schema::builder(), |s, (name, t)| s.field(*name, *t));
        fields.primary_key(key.iter().copied())
    };
    let first = || schema(&[("a", text), ("b", number)], &["a"]);
    db.table_or_create("t", first().build().unwrap()).unwrap();
    db.table_or_create("t", first().index("by_b", ["b"]).build().unwrap()).unwrap();
    let unique = NewIndex::new("by_b", ["b"]).unique();
    for (other, expected) in [
        (
            schema(&[("a", text), ("b", text)], &["a"]),
            "field \"b\": expected text not null, found i64 not null",
        ),
        (
            schema(&[("a", text)], &["a"]).nullable("b", number),
            "field \"b\": expected i64, found i64 not null",
        ),
        (schema(&[("a", text)], &["a"]), "field \"b\": expected none, found i64 not null"),
        (
            schema(&[("a", text), ("b", number), ("bb", text)], &["a"]),
            "unknown field \"bb\"; did you mean \"b\"?",
        ),
        (schema(&[("b", number), ("a", text)], &["a"]), "expected \"b\" as field 1, found \"a\""),
        (
            schema(&[("a", text), ("b", number)], &["b", "a"]),
            "primary key: expected (b, a), found (a)",
        ),
        (
            schema(&[("a", text), ("b", number)], &[]),
            "primary key: expected a generated one, found (a)",
        ),
        (
            first().add_index(unique),
            "expected a unique index on (b), found none: Database::create_index makes one",
        ),
    ] {
        let other = other.build().unwrap();
        let expected = format!("table \"t\": {expected}");
        let transaction = db.begin().unwrap();
        for error in [
            db.table_or_create("t", other.clone()).unwrap_err(),
            transaction.table_or_create("t", other.clone()).unwrap_err(),
            Scope::table_or_create(&db, "t", other).err().unwrap(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), expected);
        }
    }
    db.bucket("bucket").unwrap();
    let error = db.table_or_create("bucket", first().build().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "table \"bucket\": expected a table, found a bucket");
}

#[test]
fn a_transaction_makes_a_table_once() {
    let db = memory();
    let transaction = db.begin().unwrap();
    let table = transaction.table_or_create_of::<Account>("accounts").unwrap();
    table.insert(&account("ada", 1)).unwrap();
    let again = transaction.table_or_create_of::<Account>("accounts").unwrap();
    assert_eq!(again.get("ada").unwrap().unwrap().cents, 1);
    // Another commit creates it first: it begins again and finds that one.
    let mut runs = 0;
    db.transact(|transaction| {
        runs += 1;
        if runs == 1 {
            db.create_table_of::<Account>("accounts")?.insert(&account("bob", 2))?;
        }
        transaction.table_or_create_of::<Account>("accounts")?.insert(&account("cleo", 3)).map(drop)
    })
    .unwrap();
    assert_eq!(runs, 2);
    assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let accounts = db.table_or_create_of::<Account>("accounts").unwrap();
    assert_eq!(owners(accounts.iter().unwrap()), ["bob", "cleo"]);
    let transaction = db.begin().unwrap();
    let schema = Account::schema().unwrap();
    let within: &dyn Scope = &transaction;
    within.table_or_create("others", schema.clone()).unwrap();
    within
        .table_or_create("others", schema)
        .unwrap()
        .insert(&["x".into(), 1.into(), 2.into()])
        .unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.table("others").unwrap().count().unwrap(), 1);
}

#[derive(Debug, PartialEq, Record)]
struct Place {
    #[esker(key)]
    city: String,
    #[esker(key)]
    street: String,
    #[esker(unique)]
    post: u32,
}

#[derive(Debug, PartialEq, Record)]
#[esker(ref(city, road) = "places(city, street) on update cascade")]
struct Visit {
    #[esker(key)]
    id: u32,
    city: String,
    road: String,
    #[esker(ref = "places(post) ON DELETE SET NULL")]
    post: Option<u32>,
    #[esker(ref = "visits")]
    before: Option<u32>,
}

#[test]
fn fields_of_a_struct_refer_to_rows_of_other_tables() {
    let db = memory();
    let visit = |id, post, before| {
        let (city, road) = ("Bonn".to_owned(), "Am Hof".to_owned());
        Visit { id, city, road, post, before }
    };
    let error = db.create_table_of::<Visit>("visits").unwrap_err();
    assert!(error.to_string().contains("places"), "{error}");
    let places = db.create_table_of::<Place>("places").unwrap();
    let visits = db.create_table_of::<Visit>("visits").unwrap();
    assert_eq!(db.table_or_create_of::<Visit>("visits").unwrap().table().count().unwrap(), 0);
    db.table_or_create("visits", Visit::schema().unwrap()).unwrap();
    let (city, street) = ("Bonn".to_owned(), "Am Hof".to_owned());
    places.insert(&Place { city, street, post: 7 }).unwrap();
    visits.insert(&visit(1, Some(7), None)).unwrap();
    for wrong in [visit(2, Some(8), None), visit(2, None, Some(9))] {
        let error = visits.insert(&wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConstraintViolated, "{error}");
    }
    visits.insert(&visit(2, None, Some(1))).unwrap();
    let key = || ("Bonn".to_owned(), "Am Hof".to_owned());
    let error = places.update(key(), |place| place.post = 8).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConstraintViolated, "{error}");
    let error = visits.delete(1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConstraintViolated, "{error}");
}

#[test]
fn a_table_without_the_references_of_a_struct_is_refused() {
    let db = memory();
    db.create_table_of::<Place>("places").unwrap();
    let schema = Schema::builder().field("id", DataType::U32).field("city", DataType::Text);
    let schema = schema.field("road", DataType::Text).nullable("post", DataType::U32);
    let schema = schema.nullable("before", DataType::U32).primary_key(["id"]);
    let schema = schema.reference(NewReference::new(["before"], "visits"));
    db.create_table("visits", schema.build().unwrap()).unwrap();
    let post = NewReference::new(["post"], "places").to(["post"]);
    let street = NewReference::new(["city", "road"], "places");
    let of_post = "(post) to places(post) ON DELETE SET NULL ON UPDATE NO ACTION";
    let of_street = "(city, road) to places(city, street) ON DELETE NO ACTION ON UPDATE CASCADE";
    for (add, expected) in [
        (post.clone().on_delete(ReferenceAction::Cascade), of_post),
        (post.on_delete(ReferenceAction::SetNull), of_post),
        (street.on_update(ReferenceAction::Cascade), of_street),
    ] {
        let expected = format!("expected a reference of {expected}, found none like it");
        for error in [
            db.table_or_create("visits", Visit::schema().unwrap()).unwrap_err(),
            db.table_of::<Visit>("visits").unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let text = error.to_string();
            assert!(text.contains(&expected), "{text}");
        }
        db.alter_table("visits", &[Alteration::AddReference(add)]).unwrap();
    }
    assert_eq!(db.table_of::<Visit>("visits").unwrap().table().count().unwrap(), 0);
}
