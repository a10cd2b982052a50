//! Tests of stopping while a connection looks for more.

use std::sync::Arc;
use std::time::Duration;

use esker::Options;
use esker_wire::frame::{GREETING_BYTES, greeting};
use esker_wire::{FrameWriter, Kind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::auth::authenticator::Open;
use crate::{Server, ServerConfig};

/// How long nothing ever takes.
const NEVER: Duration = Duration::from_secs(60);

fn ping(id: u32) -> Vec<u8> {
    let mut out = Vec::new();
    FrameWriter::new(&mut out, id, Kind::Ping, 0).finish();
    out
}

/// Asks a few things one after another, so that the server looks for more behind each, and stops it
/// right behind the last answer. All is on one thread: whoever reads the answer has its turn while
/// the connection looks.
async fn stop_behind_an_answer() {
    let database = Options::new().memory().unwrap();
    let config = ServerConfig { drain: 10 * NEVER, ..ServerConfig::default() };
    let server = Server::start(config, Arc::new(Open::new(&database))).await.unwrap();
    let mut stream = TcpStream::connect(server.address().unwrap()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(&greeting()).await.unwrap();
    stream.read_exact(&mut [0; GREETING_BYTES]).await.unwrap();
    let mut answer = vec![0; ping(1).len() + 1];
    for id in 1..20 {
        stream.write_all(&ping(id)).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
    }
    let mut rest = [0];
    let stopped = async { tokio::join!(server.stop(), stream.read(&mut rest)).1 };
    let read = tokio::time::timeout(NEVER, stopped).await.expect("the connection is not ended");
    assert_eq!(read.unwrap(), 0);
}

#[test]
fn a_stop_is_noticed_by_a_connection_that_looks_for_more() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..20 {
        runtime.block_on(stop_behind_an_answer());
    }
}
