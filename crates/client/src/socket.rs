//! A socket, TCP or Unix, and what has come by it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use esker_wire::Frame;
use esker_wire::frame::{GREETING_BYTES, greeting, parse_greeting};

use crate::tls::TlsStream;
use crate::{Address, Error, Result};

/// Room for one read.
const READ_BYTES: usize = 64 << 10;

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Tls(TlsStream),
    Unix(UnixStream),
}

fn connect(host: &str) -> Result<TcpStream> {
    let stream = TcpStream::connect(host);
    let stream = stream.map_err(|e| Error::connection(format!("{host}: {e}")))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn would_wait(read: io::Result<usize>) -> bool {
    read.is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
}

fn tcp_is_silent(stream: &TcpStream) -> bool {
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
    would_wait(peeked) && stream.set_nonblocking(false).is_ok()
}

/// A connection that has greeted.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    input: Vec<u8>,
    /// How much of the input has been dealt with, and how much there is.
    read_to: usize,
    end: usize,
}

impl Socket {
    pub fn connect(address: &Address) -> Result<Self> {
        let stream = match address {
            Address::Tcp(host) => Stream::Tcp(connect(host)?),
            Address::Tls(host, authorities) => {
                Stream::Tls(TlsStream::new(host, authorities.as_deref(), connect(host)?)?)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path);
                let failed = |e| Error::connection(format!("{}: {e}", path.display()));
                Stream::Unix(stream.map_err(failed)?)
            }
        };
        let mut socket = Self { stream, input: vec![0; READ_BYTES], read_to: 0, end: 0 };
        socket.write(&greeting())?;
        while socket.end < GREETING_BYTES {
            socket.read()?;
        }
        let found = socket.input.first_chunk::<GREETING_BYTES>();
        let found = found.ok_or_else(|| Error::connection("no greeting"))?;
        parse_greeting(*found)?;
        socket.read_to = GREETING_BYTES;
        Ok(socket)
    }

    /// Another handle to the connection, to write by.
    pub fn writer(&self) -> Result<Self> {
        let stream = match &self.stream {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Tls(stream) => Stream::Tls(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        };
        Ok(Self { stream, input: Vec::new(), read_to: 0, end: 0 })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes)?,
            Stream::Tls(stream) => stream.write_all(bytes)?,
            Stream::Unix(stream) => stream.write_all(bytes)?,
        }
        Ok(())
    }

    /// True while the server has said nothing that no one requested, and has not hung up.
    pub fn is_silent(&mut self) -> bool {
        let is_silent = match &mut self.stream {
            Stream::Tcp(stream) => tcp_is_silent(stream),
            Stream::Tls(stream) => tcp_is_silent(stream.socket()),
            Stream::Unix(stream) => {
                let set = stream.set_nonblocking(true);
                let read = set.and_then(|()| stream.read(&mut [0]));
                would_wait(read) && stream.set_nonblocking(false).is_ok()
            }
        };
        is_silent && self.read_to == self.end
    }

    /// Waits for bytes.
    fn read(&mut self) -> Result<()> {
        if self.read_to > 0 {
            self.input.copy_within(self.read_to..self.end, 0);
            self.end -= self.read_to;
            self.read_to = 0;
        }
        if self.input.len() - self.end < READ_BYTES / 2 {
            let length = (self.input.len() * 2).max(READ_BYTES);
            self.input.resize(length, 0);
        }
        let room = self.input.get_mut(self.end..).unwrap_or_default();
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(room)?,
            Stream::Tls(stream) => stream.read(room)?,
            Stream::Unix(stream) => stream.read(room)?,
        };
        if read == 0 {
            return Err(Error::connection("the server closed the connection"));
        }
        self.end += read;
        Ok(())
    }

    /// Hands the next frame to `take`.
    pub fn receive<R>(&mut self, take: impl FnOnce(&Frame<'_>) -> R) -> Result<R> {
        loop {
            let bytes = self.input.get(self.read_to..self.end).unwrap_or_default();
            if let Some((frame, length)) = Frame::parse(bytes, u32::MAX as usize)? {
                let taken = take(&frame);
                self.read_to += length;
                return Ok(taken);
            }
            self.read()?;
        }
    }
}
