//! Esker inside a program: `cargo run --release --example embedded`.

use esker::{DataType, Options, Schema, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `Database::open("people.esker")?` keeps it in a directory; this one lives in memory.
    let db = Options::new().memory()?;

    let schema = Schema::builder()
        .field("name", DataType::Text)
        .field("born", DataType::I32)
        .nullable("height", DataType::F64)
        .primary_key(["name"])
        .build()?;
    let people = db.create_table("people", schema)?;

    // One commit: all rows or none, on the disk when the call returns.
    people.insert_many(&[
        vec!["Ada".into(), Value::Int(1815), Value::Null],
        vec!["Grace".into(), Value::Int(1906), 1.68.into()],
        vec!["Edsger".into(), Value::Int(1930), 1.8.into()],
    ])?;

    people.update(&["Ada".into()], &[("height", 1.65.into())])?;
    let ada = people.get(&["Ada".into()])?.ok_or("Ada is there")?;
    println!("Ada is {} m tall", ada.get("height").ok_or("a field")?);

    // A key that exists is refused, and nothing is changed.
    let refused = people.insert(&["Ada".into(), Value::Int(2000), Value::Null]);
    println!("again: {}", refused.err().ok_or("it must be refused")?);

    // Queries are built as values, or parsed from SQL.
    let query = esker_sql::parse("SELECT count(*), avg(height) FROM people WHERE born > 1900")?;
    for row in db.query(&query)?.rows() {
        println!("born after 1900: {row:?}");
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
