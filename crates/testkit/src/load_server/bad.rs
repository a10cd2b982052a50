//! Clients that nobody wishes for.

use std::time::Duration;

use esker_vfs::sim::Generator;
use esker_wire::{FrameWriter, Kind, pack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;

const GREETING: &[u8] = b"ESKR\x01\x00";
/// The server ends whoever does not go on long before.
const AT_MOST: Duration = Duration::from_secs(30);

/// In which way a client is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It sends a part of a request, or of a load, and no more.
    Stalls,
    /// It announces the largest request that there may be, and sends nothing of it.
    Announces,
    /// It asks for much, and is gone.
    Vanishes,
    /// It sends what is no request.
    Babbles,
    /// It sends large requests, or a line without an end, as fast as it can.
    Floods,
    /// It asks for much, and reads nothing.
    IsDeaf,
}

impl Manner {
    pub const ALL: [Self; 6] =
        [Self::Stalls, Self::Announces, Self::Vanishes, Self::Babbles, Self::Floods, Self::IsDeaf];

    pub fn words(self) -> &'static str {
        match self {
            Self::Stalls => "stall within a request or a load",
            Self::Announces => "announce 16 MiB and send nothing",
            Self::Vanishes => "vanish with a query under way",
            Self::Babbles => "send garbage",
            Self::Floods => "send 200 MiB each, of requests or of one line",
            Self::IsDeaf => "ask for 400 MiB each and read nothing",
        }
    }

    /// Is bad until the server has enough of it; an error where it does not.
    pub async fn be(self, address: &str, number: usize) -> Result<(), Error> {
        let mut stream = TcpStream::connect(address).await?;
        let bad = async {
            match self {
                Self::Stalls => stall(&mut stream, number).await,
                Self::Announces => announce(&mut stream).await,
                Self::Vanishes => vanish(&mut stream).await,
                Self::Babbles => babble(&mut stream, number).await,
                Self::Floods => flood(&mut stream, number).await,
                Self::IsDeaf => ask_for_much(&mut stream).await,
            }
        };
        // The server may hang up at any time: that is what is hoped for.
        let _ = tokio::time::timeout(AT_MOST, bad).await;
        if self == Self::Vanishes {
            return Ok(());
        }
        if self == Self::IsDeaf {
            // Reading would be to hear.
            tokio::time::sleep(super::served::STALL * 2).await;
        }
        let ended = tokio::time::timeout(AT_MOST, read_all(&mut stream)).await;
        ended.map_err(|_| "the server goes on with such a client".into())
    }
}

/// Reads until the server has hung up.
async fn read_all(stream: &mut TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
}

fn frame(out: &mut Vec<u8>, id: u32, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let mut frame = FrameWriter::new(out, id, kind, 0);
    write(frame.payload());
    frame.finish();
}

async fn stall(stream: &mut TcpStream, number: usize) -> Result<(), Error> {
    let mut out = GREETING.to_vec();
    match number % 3 {
        0 => out.extend_from_slice(&[40, 0, 0]),
        1 => out.extend_from_slice(&[40, 0, 0, 0, 1, 0, 0, 0, 0x10, 0, 0x92]),
        _ => {
            frame(&mut out, 1, Kind::BulkBegin, |out| {
                pack::array(out, 3);
                ["rows", "csv", "error"].iter().for_each(|text| pack::text(out, text));
            });
            frame(&mut out, 1, Kind::BulkChunk, |out| out.extend_from_slice(b"id,n,text\n"));
        }
    }
    stream.write_all(&out).await?;
    read_all(stream).await;
    Ok(())
}

async fn announce(stream: &mut TcpStream) -> Result<(), Error> {
    let length: u32 = 16 << 20;
    let out = [GREETING, &length.to_le_bytes(), &[1, 0, 0, 0, 0x12, 0]].concat();
    stream.write_all(&out).await?;
    read_all(stream).await;
    Ok(())
}

async fn vanish(stream: &mut TcpStream) -> Result<(), Error> {
    let mut out = GREETING.to_vec();
    let sql = "SELECT a.text FROM rows a JOIN rows b ON a.n <= b.n";
    frame(&mut out, 1, Kind::Sql, |out| {
        pack::array(out, 2);
        pack::text(out, sql);
        pack::array(out, 0);
    });
    stream.write_all(&out).await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}

async fn babble(stream: &mut TcpStream, number: usize) -> Result<(), Error> {
    let mut generator = Generator::new(number as u64, 7);
    let mut out = if number.is_multiple_of(2) { GREETING.to_vec() } else { Vec::new() };
    for _ in 0..2_000 {
        out.extend_from_slice(&generator.next_u64().to_le_bytes());
    }
    stream.write_all(&out).await?;
    stream.shutdown().await?;
    Ok(())
}

async fn flood(stream: &mut TcpStream, number: usize) -> Result<(), Error> {
    let mut out = Vec::new();
    if number.is_multiple_of(2) {
        stream.write_all(GREETING).await?;
        // Rows of a table that there is not.
        frame(&mut out, 1, Kind::Insert, |out| {
            pack::array(out, 3);
            pack::text(out, "nothing");
            pack::bool(out, false);
            pack::array(out, 2_000);
            for _ in 0..2_000 {
                pack::array(out, 1);
                pack::text(out, &"x".repeat(500));
            }
        });
    } else {
        stream.write_all(b"{").await?;
        out.resize(1 << 20, b' ');
    }
    let (mut reader, mut writer) = stream.split();
    let writes = async {
        for _ in 0..200 {
            writer.write_all(&out).await?;
        }
        writer.shutdown().await
    };
    let mut buffer = vec![0; 64 << 10];
    let reads = async { while reader.read(&mut buffer).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::join!(writes, reads);
    Ok(())
}

async fn ask_for_much(stream: &mut TcpStream) -> Result<(), Error> {
    let mut out = GREETING.to_vec();
    for id in 1..4_000 {
        frame(&mut out, id, Kind::Get, |out| {
            pack::array(out, 2);
            pack::text(out, "rows");
            pack::array(out, 100);
            (0..100).for_each(|key| pack::int(out, key));
        });
    }
    stream.write_all(&out).await?;
    Ok(())
}
