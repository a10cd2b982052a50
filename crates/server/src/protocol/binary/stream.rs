//! A socket, TCP, with TLS or without, or Unix.

use std::io;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use super::encrypted::Encrypted;

/// Room that is made for one read.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// Where the system tells anew of a socket that was read until it was empty, whether or not a read
/// has found nothing.
const TELLS_ANEW: bool = cfg!(target_os = "linux");

/// A socket.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<Encrypted>),
    Unix(UnixStream),
}

impl Stream {
    /// Waits until it can be read, or written, or is closed.
    pub async fn ready(&self, interest: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.ready(interest).await.map(drop),
            Self::Tls(stream) => stream.socket.ready(interest).await.map(drop),
            Self::Unix(stream) => stream.ready(interest).await.map(drop),
        }
    }

    /// Reads what is there; `None` when nothing is, 0 at the end.
    pub fn try_read(&mut self, input: &mut Vec<u8>) -> io::Result<Option<usize>> {
        input.reserve(READ_BYTES);
        let readable = Interest::READABLE;
        match self {
            Self::Tcp(stream) => {
                read_once(|| stream.try_read_buf(input), |read| stream.try_io(readable, read))
            }
            Self::Tls(stream) => not_yet(stream.read(input)),
            Self::Unix(stream) => {
                read_once(|| stream.try_read_buf(input), |read| stream.try_io(readable, read))
            }
        }
    }

    /// Writes as much as goes; `None` when nothing does.
    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let written = match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        };
        not_yet(written)
    }

    /// Sends what has been taken to be written; false when some of it waits for the socket.
    pub fn try_flush(&mut self) -> io::Result<bool> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(true),
            Self::Tls(stream) => stream.flush(),
        }
    }

    /// Waits for bytes; 0 at the end.
    pub async fn read(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        // Room is made once there is something to read: many wait.
        let mut has_more = matches!(self, Self::Tls(_));
        loop {
            // What came with a handshake, or in one record with what was read, is here already.
            if !std::mem::take(&mut has_more) {
                self.ready(Interest::READABLE).await?;
            }
            if let Some(n) = self.try_read(input)? {
                return Ok(n);
            }
        }
    }

    /// Writes everything; an error once that takes longer: a client that does not read never lets
    /// it end.
    pub async fn write_all(&mut self, bytes: &[u8], at_most: Duration) -> io::Result<()> {
        tokio::time::timeout(at_most, self.write_and_flush(bytes)).await?
    }

    async fn write_and_flush(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(bytes)? {
                Some(n) => bytes = bytes.get(n..).unwrap_or_default(),
                None => self.ready(Interest::WRITABLE).await?,
            }
        }
        while !self.try_flush()? {
            self.ready(Interest::WRITABLE).await?;
        }
        Ok(())
    }
}

/// Reads from a socket. One that gave less than there was room for is empty: it is taken for that
/// until more comes, in place of another read that finds nothing. What comes meanwhile counts:
/// `watched` runs the read and forgets only what was known of the socket before it.
fn read_once(
    read: impl FnOnce() -> io::Result<usize>,
    watched: impl FnOnce(&mut dyn FnMut() -> io::Result<usize>) -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    let (mut read, mut short) = (Some(read), None);
    let found = watched(&mut || {
        let Some(read) = read.take() else { return Err(io::ErrorKind::WouldBlock.into()) };
        match read()? {
            n if TELLS_ANEW && n > 0 && n < READ_BYTES => {
                short = Some(n);
                Err(io::ErrorKind::WouldBlock.into())
            }
            n => Ok(n),
        }
    });
    match short {
        Some(n) => Ok(Some(n)),
        None => not_yet(found),
    }
}

fn not_yet(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}
