//! What is said of views, indexes and sequences is logged, and lasts.

use esker::{Alteration, DataType, Database, ErrorKind, Options, Query, Schema};
use esker_format::schema::{COMMENT_BYTES_MAX, NewIndex};
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use crate::fixture::Directory;

fn define(db: &Database) {
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).build().unwrap();
    db.create_table("t", schema).unwrap();
    db.create_index("t", NewIndex::new("by_n", ["n"])).unwrap();
    db.create_view("v", &Query::table("t")).unwrap();
    db.create_sequence("s", 1, 1).unwrap();
}

fn said(db: &Database) -> Vec<Option<String>> {
    let index = db.table("t").unwrap().schema().indexes()[0].comment.as_deref().map(str::to_owned);
    let views = "esker_tables";
    let mut of_view = Query::table(views);
    of_view.filter = Some(
        esker_query::model::Expr::field("table_name")
            .binary(esker_query::model::Operator::Eq, esker_query::model::Expr::literal("v")),
    );
    let rows = db.query(&of_view).unwrap();
    let at = rows.columns.iter().position(|column| column.name == "comment").unwrap();
    let view = match &rows.to_rows()[0][at] {
        esker::Value::Null => None,
        value => Some(value.to_string()),
    };
    vec![view, index, db.sequences()[0].comment.clone()]
}

fn say(db: &Database, words: Option<&str>) -> esker::Result<()> {
    let transaction = db.begin()?;
    transaction.comment_on_view("v", words)?;
    let (index, comment) = ("by_n".to_owned(), words.map(str::to_owned));
    transaction.alter_table("t", &[Alteration::SetIndexComment { index, comment }])?;
    transaction.commit()?;
    db.comment_on_sequence("s", words)
}

#[test]
fn they_are_in_the_log_checkpoints_and_what_is_saved() {
    let machine = Simulation::new(3, SimOptions::default());
    let open = |machine: &Simulation| {
        Options::new().environment(machine.environment()).open("db").unwrap()
    };
    let db = open(&machine);
    define(&db);
    assert_eq!(db.next_value("s").unwrap(), 1);
    say(&db, Some("words")).unwrap();
    let all = vec![Some("words".to_owned()); 3];
    assert_eq!(said(&db), all);
    // Values go on where they were.
    assert_eq!(db.next_value("s").unwrap(), 2);
    let reopened = |machine: &Simulation| {
        let image = machine.crash_image(CrashChoice::KeepNone);
        let db = open(&Simulation::from_image(&image, 4, SimOptions::default()));
        assert!(db.next_value("s").unwrap() > 2);
        said(&db)
    };
    assert_eq!(reopened(&machine), all);
    db.checkpoint().unwrap();
    assert_eq!(reopened(&machine), all);
    say(&db, None).unwrap();
    assert_eq!(reopened(&machine), [None, None, None]);
    say(&db, Some("others")).unwrap();
    let saved = Directory::new("saved");
    let db = Options::new().memory().unwrap();
    define(&db);
    say(&db, Some("words")).unwrap();
    db.save(&saved.0).unwrap();
    assert_eq!(said(&Options::new().open(&saved.0).unwrap()), all);
}

#[test]
fn what_is_too_long_or_about_nothing_is_refused() {
    let db = Options::new().memory().unwrap();
    define(&db);
    let long = "x".repeat(COMMENT_BYTES_MAX + 1);
    let transaction = db.begin().unwrap();
    transaction.create_namespace("app").unwrap();
    let (index, comment) = ("by_n".to_owned(), Some(long.clone()));
    let of_index = Alteration::SetIndexComment { index, comment };
    let refused = [
        transaction.comment_on_view("v", Some(&long)),
        transaction.comment_on_namespace("app", Some(&long)),
        transaction.alter_table("t", &[of_index]),
        db.comment_on_sequence("s", Some(&long)),
    ];
    for refused in refused {
        let e = refused.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput);
        assert!(e.to_string().contains("has at most 65536 bytes"), "{e}");
    }
    let missing = transaction.comment_on_view("w", None).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let missing = db.comment_on_sequence("r", None).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    let (index, comment) = ("by_m".to_owned(), None);
    let of_index = Alteration::SetIndexComment { index, comment };
    assert!(transaction.alter_table("t", &[of_index]).is_err());
}
