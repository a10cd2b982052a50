//! A connection that speaks HTTP/1.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::Ended;

/// One connection, kept from request to request.
#[derive(Debug)]
pub(super) struct Http {
    stream: BufReader<TcpStream>,
}

/// A status and a body.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    /// Itself, when it has this status.
    pub fn expect(self, status: u16) -> Result<Self, Ended> {
        match self.status == status {
            true => Ok(self),
            false => {
                Err(Ended::Wrong(format!("HTTP {}, not {status}: {}", self.status, self.body)))
            }
        }
    }
}

impl Http {
    pub fn connect(address: &str) -> Result<Self, Ended> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Asks the database of the server, and reads the answer.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, Ended> {
        let length = body.len();
        let mut request = format!(
            "{method} /v1/databases/default{path} HTTP/1.1\r\nhost: x\r\n\
             content-length: {length}\r\n"
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += "\r\n";
        let mut request = request.into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, Ended> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| Ended::Wrong("HTTP: no status".to_owned()))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(": ") {
                Some(("content-length", text)) => length = text.parse().unwrap_or(0),
                Some(("transfer-encoding", "chunked")) => is_chunked = true,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16);
                let size = size.map_err(|e| Ended::Wrong(format!("HTTP: a chunk: {e}")))?;
                self.take(size, &mut body)?;
                self.line()?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.take(length, &mut body)?;
        }
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
    }

    fn line(&mut self) -> Result<String, Ended> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(Ended::Gone),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> Result<(), Ended> {
        let start = body.len();
        body.resize(start + length, 0);
        let room = body.get_mut(start..).unwrap_or_default();
        Ok(self.stream.read_exact(room)?)
    }
}
