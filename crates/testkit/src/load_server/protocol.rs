//! What each protocol has for the same question, and reading its answer.

use esker_wire::{Frame, FrameWriter, Kind, pack};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Error;
use super::served::{ROWS, TEXT_BYTES};

/// What both sides of the wire protocol begin with.
pub(super) const GREETING: &[u8] = b"ESKR\x01\x00";

/// What a server speaks, in the order of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Wire,
    Http,
    Resp,
}

/// What is asked of a row or an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether anybody is there.
    Ping,
    /// A row, or an entry.
    Get(usize),
    /// It gets another value.
    Change(usize),
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Wire, Self::Http, Self::Resp];

    pub fn name(self) -> &'static str {
        match self {
            Self::Wire => "wire",
            Self::Http => "HTTP",
            Self::Resp => "Redis",
        }
    }

    /// The bytes of a question.
    pub fn request(self, question: Question) -> Vec<u8> {
        match self {
            Self::Wire => wire_request(question),
            Self::Http => http_request(question),
            Self::Resp => match question {
                Question::Ping => b"PING\r\n".to_vec(),
                Question::Get(key) => format!("GET {}\r\n", key % ROWS).into_bytes(),
                Question::Change(key) => {
                    let value = format!("{:0TEXT_BYTES$}", key);
                    format!("SET {} {value}\r\n", key % ROWS).into_bytes()
                }
            },
        }
    }

    /// How many bytes a whole answer takes, once it is there; an error where it is a refusal.
    fn answer_bytes(self, input: &[u8], question: Question) -> Result<Option<usize>, Error> {
        match self {
            Self::Wire => wire_answer(input, question),
            Self::Http => http_answer(input, question),
            Self::Resp => resp_answer(input, question),
        }
    }
}

/// Appends a frame.
pub(super) fn frame(out: &mut Vec<u8>, id: u32, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
    let mut frame = FrameWriter::new(out, id, kind, 0);
    write(frame.payload());
    frame.finish();
}

fn wire_request(question: Question) -> Vec<u8> {
    let mut out = Vec::new();
    match question {
        Question::Ping => frame(&mut out, 1, Kind::Ping, |_| ()),
        Question::Get(key) => frame(&mut out, 1, Kind::Get, |out| {
            pack::array(out, 2);
            pack::text(out, "rows");
            pack::array(out, 1);
            pack::uint(out, (key % ROWS) as u64);
        }),
        Question::Change(key) => frame(&mut out, 1, Kind::Update, |out| {
            pack::array(out, 3);
            pack::text(out, "rows");
            pack::uint(out, (key % ROWS) as u64);
            pack::map(out, 1);
            pack::text(out, "n");
            pack::uint(out, key as u64);
        }),
    }
    out
}

fn http_request(question: Question) -> Vec<u8> {
    let row = |key| format!("/v1/databases/default/tables/rows/rows/{}", key % ROWS);
    let head = |method, path: &str| format!("{method} {path} HTTP/1.1\r\nhost: x\r\n");
    let text = match question {
        Question::Ping => head("GET", "/healthz") + "\r\n",
        Question::Get(key) => head("GET", &row(key)) + "\r\n",
        Question::Change(key) => {
            let body = format!("{{\"n\": {key}}}");
            let length = body.len();
            let media = "content-type: application/json";
            let head = head("PATCH", &row(key));
            format!("{head}{media}\r\ncontent-length: {length}\r\n\r\n{body}")
        }
    };
    text.into_bytes()
}

fn refusal(input: &[u8]) -> Error {
    let told = input.get(..input.len().min(300)).unwrap_or_default();
    format!("the server refuses: {}", String::from_utf8_lossy(told)).into()
}

fn wire_answer(input: &[u8], question: Question) -> Result<Option<usize>, Error> {
    let Some((frame, length)) = Frame::parse(input, usize::MAX)? else { return Ok(None) };
    let is_right = match question {
        Question::Ping => true,
        Question::Get(_) => frame.payload.len() > TEXT_BYTES,
        Question::Change(_) => frame.payload == [1],
    };
    if frame.kind()? == Kind::Done && is_right { Ok(Some(length)) } else { Err(refusal(input)) }
}

fn http_answer(input: &[u8], question: Question) -> Result<Option<usize>, Error> {
    let Some(end) = input.windows(4).position(|part| part == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(input.get(..end).unwrap_or_default()).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.ok_or("an answer without a length")?.trim().parse()?;
    let is_right = question == Question::Ping || length > TEXT_BYTES;
    if !head.starts_with("http/1.1 200") || !is_right {
        return Err(refusal(input));
    }
    let all = end + 4 + length;
    Ok((input.len() >= all).then_some(all))
}

fn resp_answer(input: &[u8], question: Question) -> Result<Option<usize>, Error> {
    let Some(end) = input.windows(2).position(|part| part == b"\r\n") else { return Ok(None) };
    let line = input.get(..end).unwrap_or_default();
    let all = match question {
        Question::Ping if line == b"+PONG" => end + 2,
        Question::Change(_) if line == b"+OK" => end + 2,
        Question::Get(_) if line == format!("${TEXT_BYTES}").as_bytes() => end + 4 + TEXT_BYTES,
        _ => return Err(refusal(input)),
    };
    Ok((input.len() >= all).then_some(all))
}

/// A client that asks one thing after another.
pub(super) struct Asker {
    protocol: Protocol,
    stream: TcpStream,
    input: Vec<u8>,
}

impl Asker {
    pub async fn connect(address: String, protocol: Protocol) -> Result<Self, Error> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        if protocol == Protocol::Wire {
            stream.write_all(GREETING).await?;
            stream.read_exact(&mut [0; GREETING.len()]).await?;
        }
        Ok(Self { protocol, stream, input: Vec::new() })
    }

    /// Asks, and waits for the answer, which is the right one.
    pub async fn ask(&mut self, question: Question) -> Result<(), Error> {
        self.stream.write_all(&self.protocol.request(question)).await?;
        loop {
            if let Some(length) = self.protocol.answer_bytes(&self.input, question)? {
                self.input.drain(..length);
                return Ok(());
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err("the server hung up".into());
            }
        }
    }

    /// Nothing of what it was sent is kept.
    pub fn quieten(&mut self) {
        self.input = Vec::new();
    }
}
