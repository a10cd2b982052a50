//! Namespaces, the schemas of SQL: they are there with the commit, and last.

use esker::{BackupOptions, DataType, Database, ErrorKind, Options, Query, Schema};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;

fn numbers() -> Schema {
    Schema::builder().field("n", DataType::I64).primary_key(["n"]).build().unwrap()
}

fn names(db: &Database) -> Vec<String> {
    db.namespaces().into_iter().map(|namespace| namespace.name).collect()
}

#[test]
fn a_namespace_is_empty_when_it_goes() {
    let db = Options::new().memory().unwrap();
    db.create_namespace("app").unwrap();
    assert_eq!(db.create_namespace("app").unwrap_err().kind(), ErrorKind::AlreadyExists);
    for name in ["main", "Temp", "information_schema", "pg_x", "esker_x", "a.b", ""] {
        assert_eq!(db.create_namespace(name).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    db.create_table("app.t", numbers()).unwrap().insert(&[1i64.into()]).unwrap();
    db.create_view("app.v", &Query::table("app.t")).unwrap();
    assert_eq!(db.query(&Query::table("app.v")).unwrap().row_count(), 1);
    assert!(db.drop_namespace("app").unwrap_err().to_string().contains("is in it"));
    db.drop_view("app.v").unwrap();
    db.rename_table("app.t", "t").unwrap();
    db.create_sequence("app.s", 1, 1).unwrap();
    assert!(db.drop_namespace("app").unwrap_err().to_string().contains("\"app.s\" is in it"));
    db.drop_sequence("app.s").unwrap();
    db.drop_namespace("app").unwrap();
    assert_eq!(db.drop_namespace("app").unwrap_err().kind(), ErrorKind::NotFound);
    // A name that said it before there was one.
    db.create_table("old.t", numbers()).unwrap();
    let e = db.create_namespace("old").unwrap_err();
    assert_eq!(e.to_string(), "the name of \"old.t\" says schema \"old\": rename it first");
}

#[test]
fn it_comes_and_goes_with_a_transaction() {
    let db = Options::new().memory().unwrap();
    let transaction = db.begin().unwrap();
    transaction.create_namespace("app").unwrap();
    transaction.create_table("app.t", numbers()).unwrap();
    assert!(names(&db).is_empty());
    let before = transaction.savepoint();
    transaction.drop_table("app.t").unwrap();
    transaction.drop_namespace("app").unwrap();
    transaction.rollback_to(before).unwrap();
    transaction.comment_on_namespace("app", Some("what users do")).unwrap();
    transaction.commit().unwrap();
    assert_eq!(db.namespaces()[0].comment.as_deref(), Some("what users do"));
    // Others come between.
    let dropping = db.begin().unwrap();
    dropping.drop_table("app.t").unwrap();
    dropping.drop_namespace("app").unwrap();
    db.create_table("app.u", numbers()).unwrap();
    assert_eq!(dropping.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let creating = db.begin().unwrap();
    creating.create_table("app.v", numbers()).unwrap();
    db.drop_table("app.t").unwrap();
    db.drop_table("app.u").unwrap();
    db.drop_namespace("app").unwrap();
    assert_eq!(creating.commit().unwrap_err().kind(), ErrorKind::Conflict);
    // A sequence comes into one that goes, or goes with it.
    db.create_namespace("app").unwrap();
    let dropping = db.begin().unwrap();
    dropping.drop_namespace("app").unwrap();
    db.create_sequence("app.s", 1, 1).unwrap();
    assert_eq!(dropping.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let dropping = db.begin().unwrap();
    dropping.drop_sequences_in("app").unwrap();
    dropping.drop_namespace("app").unwrap();
    db.create_sequence("app.r", 1, 1).unwrap();
    assert_eq!(dropping.commit().unwrap_err().kind(), ErrorKind::Conflict);
    let dropping = db.begin().unwrap();
    dropping.drop_sequences_in("app").unwrap();
    dropping.drop_namespace("app").unwrap();
    let schema = Schema::builder().field("n", DataType::I64).default_next("app.s").build().unwrap();
    db.create_table("uses", schema).unwrap();
    assert_eq!(dropping.commit().unwrap_err().kind(), ErrorKind::InvalidInput);
    let dropping = db.begin().unwrap();
    assert_eq!(dropping.drop_sequences_in("app").unwrap_err().kind(), ErrorKind::InvalidInput);
    dropping.drop_table("uses").unwrap();
    dropping.drop_sequences_in("app").unwrap();
    dropping.drop_namespace("app").unwrap();
    assert_eq!(dropping.drop_sequences_in("app").unwrap_err().kind(), ErrorKind::NotFound);
    dropping.commit().unwrap();
    assert!(db.sequences().is_empty());
    let e = db.create_sequence_in_place("app.s", 1, 1).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    let one = db.begin().unwrap();
    one.create_namespace("both").unwrap();
    db.create_namespace("both").unwrap();
    assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn it_is_in_the_log_checkpoints_backups_and_what_is_saved() {
    let machine = Simulation::new(3, SimOptions::default());
    let open = |machine: &Simulation| {
        Options::new().environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    db.create_namespace("app").unwrap();
    db.create_namespace("gone").unwrap();
    db.create_table("app.t", numbers()).unwrap().insert(&[1i64.into()]).unwrap();
    let reopened = |machine: &Simulation| {
        let image = machine.crash_image(CrashChoice::KeepNone);
        let db = open(&Simulation::from_image(&image, 4, SimOptions::default()));
        assert_eq!(db.table("app.t").unwrap().count().unwrap(), 1);
        names(&db)
    };
    assert_eq!(reopened(&machine), ["app", "gone"]);
    db.checkpoint().unwrap();
    assert_eq!(reopened(&machine), ["app", "gone"]);
    db.drop_namespace("gone").unwrap();
    assert_eq!(reopened(&machine), ["app"]);
    let (backup, saved) = (Directory::new("backup"), Directory::new("saved"));
    let files = Directory::new("files");
    let db = Options::new().open(&files.0).unwrap();
    db.create_namespace("app").unwrap();
    db.create_table("app.t", numbers()).unwrap().insert(&[1i64.into()]).unwrap();
    db.backup(&backup.0, &BackupOptions::default(), &mut |_, _| {}).unwrap();
    db.close().unwrap();
    assert_eq!(names(&Options::new().open(&backup.0).unwrap()), ["app"]);
    let db = Options::new().memory().unwrap();
    db.create_namespace("app").unwrap();
    db.create_table("app.t", numbers()).unwrap();
    db.save(&saved.0).unwrap();
    assert_eq!(names(&Options::new().open(&saved.0).unwrap()), ["app"]);
}
