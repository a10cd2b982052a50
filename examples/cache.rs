//! A cache whose entries expire: `cargo run --release --example cache`.
//!
//! Writes do not wait for the disk: a cache may lose its last entries, and nothing else.

use std::time::Duration;

use esker::{BucketOptions, Options, PutOptions, Ttl};

/// What the cache saves us from doing.
fn expensive(page: &str) -> String {
    format!("<h1>{page}</h1>")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Options::new().memory()?; // or esker::Database::open("cache.esker")?
    let minute = BucketOptions::new().ttl(Duration::from_secs(60));
    let pages = db.create_bucket("pages", &minute)?;

    let page = |name: &str| -> esker::Result<String> {
        if let Some(found) = pages.get(name)? {
            return Ok(String::from_utf8_lossy(&found).into_owned());
        }
        let made = expensive(name);
        pages.put_with(name, &made, PutOptions::new().sync(false))?;
        Ok(made)
    };
    println!("{}", page("start")?);
    println!("{}", page("start")?);

    // One that is good for a moment only, and one that stays.
    pages.put_with("news", "…", Ttl::After(Duration::from_millis(20)))?;
    pages.put_with("about", "us", Ttl::Never)?;
    // A look at it makes an entry live longer.
    pages.touch("start", Ttl::After(Duration::from_secs(120)))?;
    println!("start is there for {:?}", pages.remaining("start")?.flatten());
    println!("{} entries", pages.len()?);
    while pages.contains("news")? {
        std::hint::spin_loop();
    }
    println!("{} entries once the news are old", pages.len()?);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
