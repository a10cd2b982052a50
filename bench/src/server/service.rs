//! A server with a table, and one that echoes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use esker::{DataType, Database, Durability, Options, Schema, Table};
use esker_client::{Client, Duplicates, Format, ValueRef};
use esker_server::auth::authenticator::Open;
use esker_server::{Server, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::Result;
use crate::bench::{Bench, boxed, schema};
use crate::data::{Texts, key};

/// The table of keys and texts.
pub(super) const TABLE: &str = "kv";

/// A server, a runtime that it runs on, and one that echoes beside it.
pub(crate) struct Service {
    runtime: tokio::runtime::Runtime,
    server: Option<Server>,
    database: Database,
    pub url: String,
    pub echo: SocketAddr,
}

impl Service {
    /// With an empty table of keys and texts.
    pub fn start(bench: &Bench, name: &str, durability: Durability) -> Result<Self> {
        let fields = [("key", DataType::Text), ("value", DataType::Text)];
        Self::serve(bench, name, durability, TABLE, schema(&fields, &["key"])?)
    }

    /// With an empty table.
    pub fn serve(
        bench: &Bench,
        name: &str,
        durability: Durability,
        table: &str,
        schema: Schema,
    ) -> Result<Self> {
        let database = Options::new().durability(durability).open(bench.place(name)?)?;
        database.create_table(table, schema)?;
        Self::over(database, ServerConfig::default())
    }

    /// With an empty bucket, by Redis's protocol, too.
    pub fn with_buckets(bench: &Bench, name: &str, durability: Durability) -> Result<Self> {
        let database = Options::new().durability(durability).open(bench.place(name)?)?;
        let resp_listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        Self::over(database, ServerConfig { resp_listen, ..ServerConfig::default() })
    }

    fn over(database: Database, config: ServerConfig) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(64)
            .enable_all()
            .build()?;
        let (server, echo) = runtime.block_on(async {
            let authenticator = Arc::new(Open::new(&database));
            let server = Server::start(config, authenticator).await.map_err(boxed)?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let echo = listener.local_addr()?;
            tokio::spawn(echo_to_all(listener));
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((server, echo))
        })?;
        let address = server.address().ok_or("no address")?;
        let url = format!("esker://{address}");
        Ok(Self { runtime, server: Some(server), database, url, echo })
    }

    /// Where it speaks Redis's protocol.
    pub fn resp_address(&self) -> Result<SocketAddr> {
        let server = self.server.as_ref().ok_or("the server was stopped")?;
        Ok(server.resp_address().ok_or("no address of Redis's protocol")?)
    }

    /// With rows, which are not durable at once.
    pub fn with_rows(bench: &Bench, name: &str, rows: u64) -> Result<Self> {
        let at_most = Duration::from_millis(100);
        let service = Self::start(bench, name, Durability::Async { at_most })?;
        let mut client = service.connect()?;
        load_rows(&mut client, &bench.texts, rows)?;
        Ok(service)
    }

    pub fn connect(&self) -> Result<Client> {
        Client::connect(&self.url).map_err(boxed)
    }

    /// A table, without a socket.
    pub fn table(&self, name: &str) -> Result<Table> {
        Ok(self.database.table(name)?)
    }

    /// The database, without a socket.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// How many rows there are.
    pub fn count(&self) -> Result<u64> {
        Ok(self.table(TABLE)?.count()?)
    }

    pub fn stop(mut self) -> Result<()> {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        Ok(self.database.close()?)
    }
}

/// Loads rows by MessagePack; each is written straight into what is sent.
pub(super) fn load_rows(client: &mut Client, texts: &Texts, rows: u64) -> Result<u64> {
    let mut load = client.load(TABLE, Format::MessagePack, Duplicates::Error).map_err(boxed)?;
    for row in 0..rows {
        let (key, text) = (key(row), texts.text(row));
        let values = [ValueRef::Text(&key), ValueRef::Text(text)];
        load.push_refs(values.into_iter()).map_err(boxed)?;
    }
    load.finish().map_err(boxed)
}

async fn echo_to_all(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(n) = stream.read(&mut buffer).await
                && n > 0
                && stream.write_all(buffer.get(..n).unwrap_or_default()).await.is_ok()
            {}
        });
    }
}

/// One side of an echo.
pub(crate) struct Echo {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Echo {
    /// Of so many bytes.
    pub fn connect(service: &Service, bytes: usize) -> Result<Self> {
        let stream = TcpStream::connect(service.echo)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![7; bytes] })
    }

    pub fn turn(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.buffer)?;
        self.stream.read_exact(&mut self.buffer)
    }
}
