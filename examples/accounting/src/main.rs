//! `accounting DIRECTORY ADDRESS [ID:SECRET[:TIER]]…` serves the routes of the README.
#![forbid(unsafe_code)]

use std::error::Error;

use accounting::{ApiKey, Keys, Service, Store, router};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(dir), Some(address)) = (args.next(), args.next()) else {
        return Err("usage: accounting DIRECTORY ADDRESS [ID:SECRET[:TIER]]…".into());
    };
    let keys = args.map(|text| ApiKey::parse(&text)).collect::<Result<Vec<_>, _>>()?;
    let store = Store::open(esker::Options::new().open(dir)?)?;
    let service = Service::new(store, Keys::new(keys, None));
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, router(service)).await?;
    Ok(())
}
