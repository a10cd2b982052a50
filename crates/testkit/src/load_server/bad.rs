//! Clients that nobody wishes for.

use std::time::Duration;

use esker_vfs::sim::Generator;
use esker_wire::{Kind, pack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;
use super::protocol::{GREETING, Protocol, frame};

/// The server ends whoever does not go on long before.
const AT_MOST: Duration = Duration::from_secs(60);
/// The same of who sends very much.
const FLOOD_AT_MOST: Duration = Duration::from_secs(300);

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
    /// It asks for much again and again, and reads nothing.
    IsDeaf,
}

/// Where queries are asked.
const QUERIES: &str = "/v1/databases/default/query";

impl Manner {
    pub const ALL: [Self; 6] =
        [Self::Stalls, Self::Announces, Self::Vanishes, Self::Babbles, Self::Floods, Self::IsDeaf];

    pub fn words(self) -> &'static str {
        match self {
            Self::Stalls => "stall within a request or a load",
            Self::Announces => "announce 16 MiB and send nothing",
            Self::Vanishes => "vanish with a query under way",
            Self::Babbles => "send garbage",
            Self::Floods => "send without an end, requests or one line",
            Self::IsDeaf => "ask for 400 MiB again and again and read nothing",
        }
    }

    /// Is bad until the server has enough of it; an error where it does not. How many bytes it
    /// sent of a flood.
    pub async fn be(self, to: &Bad) -> Result<u64, Error> {
        let mut stream = TcpStream::connect(&to.address).await?;
        let at_most = if self == Self::Floods { FLOOD_AT_MOST } else { AT_MOST };
        // The server may hang up at any time: that is what is hoped for.
        let sent = tokio::time::timeout(at_most, self.send(&mut stream, to)).await;
        let ended = match self {
            Self::Vanishes => return Ok(0),
            // Reading would be to hear: it asks until that fails.
            Self::IsDeaf => sent.is_ok(),
            _ => tokio::time::timeout(AT_MOST, read_all(&mut stream)).await.is_ok(),
        };
        if !ended {
            return Err("the server goes on with such a client".into());
        }
        Ok(sent.map_or(0, |sent| sent.unwrap_or(0)))
    }

    async fn send(self, stream: &mut TcpStream, to: &Bad) -> Result<u64, Error> {
        match self {
            Self::Stalls => stream.write_all(&to.part()).await?,
            Self::Announces => stream.write_all(&to.announcement()).await?,
            Self::Vanishes => {
                stream.write_all(&to.long_question()).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Self::Babbles => {
                let mut generator = Generator::new(to.number as u64, 7);
                let is_greeted = to.protocol == Protocol::Wire && to.number.is_multiple_of(2);
                let mut out = if is_greeted { GREETING.to_vec() } else { Vec::new() };
                for _ in 0..2_000 {
                    out.extend_from_slice(&generator.next_u64().to_le_bytes());
                }
                stream.write_all(&out).await?;
                stream.shutdown().await?;
            }
            Self::Floods => return to.flood(stream).await,
            Self::IsDeaf => {
                // Made once: the server is to be slow, not its clients.
                let questions = to.questions();
                stream.write_all(to.greeting()).await?;
                loop {
                    stream.write_all(&questions).await?;
                }
            }
        }
        Ok(0)
    }
}

/// Reads until the server has hung up.
async fn read_all(stream: &mut TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
}

/// A client that is bad, and to whom.
#[derive(Clone, Debug)]
pub(super) struct Bad {
    pub protocol: Protocol,
    pub address: String,
    /// Which one of them it is.
    pub number: usize,
    /// How much it sends where it floods.
    pub flood_bytes: u64,
}

fn head(method: &str, path: &str, more: &str) -> Vec<u8> {
    let media = "content-type: application/json";
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{media}\r\n{more}\r\n\r\n").into_bytes()
}

impl Bad {
    /// What a protocol begins with.
    fn greeting(&self) -> &'static [u8] {
        if self.protocol == Protocol::Wire { GREETING } else { &[] }
    }

    /// A part of a request, or of a load.
    fn part(&self) -> Vec<u8> {
        let which = self.number % 3;
        match (self.protocol, which) {
            (Protocol::Wire, 0) => [GREETING, &[40, 0, 0]].concat(),
            (Protocol::Wire, 1) => [GREETING, &[40, 0, 0, 0, 1, 0, 0, 0, 0x10, 0, 0x92]].concat(),
            (Protocol::Wire, _) => {
                let mut out = GREETING.to_vec();
                frame(&mut out, 1, Kind::BulkBegin, |out| {
                    pack::array(out, 3);
                    ["rows", "csv", "error"].iter().for_each(|text| pack::text(out, text));
                });
                frame(&mut out, 1, Kind::BulkChunk, |out| out.extend_from_slice(b"id,n,text\n"));
                out
            }
            (Protocol::Http, 0) => b"GET /healthz HTTP/1.1\r\nhost: x\r\nslow".to_vec(),
            (Protocol::Http, 1) => {
                [head("POST", QUERIES, "content-length: 1000"), b"{\"sql\":".to_vec()].concat()
            }
            (Protocol::Http, _) => {
                let path = "/v1/databases/default/tables/rows/rows";
                let line = b"1b\r\n[{\"id\": 5000, \"n\": 0},    \r\n".to_vec();
                [head("POST", path, "transfer-encoding: chunked"), line].concat()
            }
            (Protocol::Resp, 0) => b"GET some-ke".to_vec(),
            (Protocol::Resp, 1) => b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nabc".to_vec(),
            (Protocol::Resp, _) => b"*1000\r\n$3\r\nDEL\r\n$1".to_vec(),
        }
    }

    /// The head of a request of 16 MiB.
    fn announcement(&self) -> Vec<u8> {
        let length: u32 = 16 << 20;
        match self.protocol {
            Protocol::Wire => [GREETING, &length.to_le_bytes(), &[1, 0, 0, 0, 0x12, 0]].concat(),
            Protocol::Http => head("POST", QUERIES, &format!("content-length: {length}")),
            Protocol::Resp => {
                format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", length - 100).into_bytes()
            }
        }
    }

    /// What takes long to answer.
    fn long_question(&self) -> Vec<u8> {
        let sql = "SELECT a.text FROM rows a JOIN rows b ON a.n <= b.n";
        match self.protocol {
            Protocol::Wire => {
                let mut out = GREETING.to_vec();
                frame(&mut out, 1, Kind::Sql, |out| {
                    pack::array(out, 2);
                    pack::text(out, sql);
                    pack::array(out, 0);
                });
                out
            }
            Protocol::Http => {
                let body = format!("{{\"sql\": \"{sql}\"}}");
                let length = format!("content-length: {}", body.len());
                [head("POST", QUERIES, &length), body.into_bytes()].concat()
            }
            Protocol::Resp => b"KEYS *\r\n".repeat(2_000),
        }
    }

    /// Many questions whose answers have 400 MiB.
    fn questions(&self) -> Vec<u8> {
        match self.protocol {
            Protocol::Wire => {
                let mut out = Vec::new();
                for id in 1..4_000 {
                    frame(&mut out, id, Kind::Get, |out| {
                        pack::array(out, 2);
                        pack::text(out, "rows");
                        pack::array(out, 100);
                        (0..100).for_each(|key| pack::int(out, key));
                    });
                }
                out
            }
            Protocol::Http => {
                let path = "/v1/databases/default/tables/rows/rows?limit=100";
                format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(4_000).into_bytes()
            }
            Protocol::Resp => {
                let keys: Vec<String> = (0..100).map(|key| key.to_string()).collect();
                format!("MGET {}\r\n", keys.join(" ")).repeat(4_000).into_bytes()
            }
        }
    }

    /// What comes first of a flood, and what is sent again and again: requests of a MiB that are
    /// refused, or one line or header that never ends.
    fn torrent(&self) -> (Vec<u8>, Vec<u8>) {
        let is_of_requests = self.number.is_multiple_of(2);
        let spaces = vec![b' '; 1 << 20];
        match (self.protocol, is_of_requests) {
            (Protocol::Wire, true) => {
                let mut out = Vec::new();
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
                (GREETING.to_vec(), out)
            }
            (Protocol::Wire, false) => (b"{".to_vec(), spaces),
            (Protocol::Http, true) => {
                let length = format!("content-length: {}", spaces.len());
                (Vec::new(), [head("POST", QUERIES, &length), spaces].concat())
            }
            (Protocol::Http, false) => (b"GET /healthz HTTP/1.1\r\nx: ".to_vec(), spaces),
            (Protocol::Resp, true) => {
                // A key of 1 MiB is longer than any may be.
                let start = format!("*2\r\n$3\r\nGET\r\n${}\r\n", spaces.len()).into_bytes();
                (Vec::new(), [start, spaces, b"\r\n".to_vec()].concat())
            }
            (Protocol::Resp, false) => (b"GET ".to_vec(), vec![b'x'; 1 << 20]),
        }
    }

    async fn flood(&self, stream: &mut TcpStream) -> Result<u64, Error> {
        let (first, again) = self.torrent();
        let (mut reader, mut writer) = stream.split();
        let mut sent = 0;
        let writes = async {
            writer.write_all(&first).await?;
            while sent < self.flood_bytes {
                writer.write_all(&again).await?;
                sent += again.len() as u64;
            }
            writer.shutdown().await
        };
        let mut buffer = vec![0; 64 << 10];
        let reads = async { while reader.read(&mut buffer).await.is_ok_and(|n| n > 0) {} };
        let _ = tokio::join!(writes, reads);
        Ok(sent)
    }
}
