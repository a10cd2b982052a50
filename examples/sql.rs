//! SQL in a program, with parameters and structs: `cargo run --release --example sql`.

use esker::{Options, Record};
use esker_sql::{Named, Sql};

#[derive(Debug, PartialEq, Record)]
struct Person {
    #[esker(key)]
    name: String,
    born: i32,
    height: Option<f64>, // may be NULL
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Options::new().memory()?; // or esker::Database::open("people.esker")?
    db.sql("CREATE TABLE people (name text PRIMARY KEY, born i32 NOT NULL, height f64)", ())?;

    // Values by position: a tuple. What is run often is prepared.
    let insert = db.prepare("INSERT INTO people VALUES (?, ?, ?)")?;
    insert.execute(("Ada", 1815, None::<f64>))?;
    insert.execute(("Grace", 1906, 1.68))?;
    insert.execute(("Edsger", 1930, 1.8))?;

    // Values by name: pairs, or the fields of a struct.
    let ada = Named::new([("name", "Ada".into()), ("height", 1.65.into())]);
    db.sql("UPDATE people SET height = :height WHERE name = :name", ada)?;
    let kurt = Person { name: "Kurt".into(), born: 1906, height: None };
    db.sql("INSERT INTO people VALUES (:name, :born, :height)", Named::of(&kurt)?)?;

    // Rows as structs, as tuples, as single values.
    let of_1906: Vec<Person> = db.sql_as("SELECT * FROM people WHERE born = ?", (1906,))?;
    assert_eq!(of_1906.len(), 2);
    let tallest = "SELECT name, height FROM people ORDER BY height DESC NULLS LAST LIMIT 1";
    let (name, height): (String, f64) = db.sql_first(tallest, ())?.ok_or("there are people")?;
    println!("{name} is {height} m tall");
    let count: Option<u64> = db.sql_first("SELECT count(*) FROM people", ())?;
    assert_eq!(count, Some(4));

    // An answer of any size, row by row.
    for person in db.sql_rows("SELECT * FROM people", ())?.records::<Person>()? {
        let person = person?;
        println!("{} was born in {}", person.name, person.born);
    }

    // Several statements as one: all of them or none.
    db.transact(|transaction| {
        transaction.sql("DELETE FROM people WHERE born > ?", (1900,))?;
        transaction.run_prepared(&insert, ("Emmy", 1882, None::<f64>)).map(drop)
    })?;
    let names: Vec<String> = db.sql_as("SELECT name FROM people ORDER BY name", ())?;
    assert_eq!(names, ["Ada", "Emmy"]);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
