//! A queue with priorities that survives a crash: `cargo run --release --example queue`.
//!
//! Keys are (priority, number), which sort as they are to be done. Of several workers that take the
//! first job at the same time one gets it.

use esker::{Options, Serde};

type Job = Serde<(String, u32)>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Options::new().memory()?; // or esker::Database::open("queue.esker")?
    let jobs = db.bucket("jobs")?.typed::<(u8, u64), Job>();
    let numbers = db.bucket("numbers")?;
    let add = |priority: u8, what: &str, amount: u32| -> esker::Result<()> {
        let number = numbers.increment("jobs", 1)?.unsigned_abs();
        jobs.put(&(priority, number), &Serde((what.to_owned(), amount)))
    };
    add(5, "send newsletter", 1_000)?;
    add(1, "charge card", 1)?;
    add(5, "resize pictures", 12)?;

    let next = || -> esker::Result<Option<Job>> {
        for entry in jobs.iter()? {
            let (key, _) = entry?;
            // Somebody else may have been quicker: then it is gone.
            if let Some(job) = jobs.take(&key)? {
                return Ok(Some(job));
            }
        }
        Ok(None)
    };
    while let Some(Serde((what, amount))) = next()? {
        println!("{what}: {amount}");
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
