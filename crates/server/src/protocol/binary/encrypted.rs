//! TLS over a socket that never waits.

use std::io::{self, Read, Write};

use rustls::ServerConnection;
use tokio::net::TcpStream;

/// The plain bytes of one record, at most.
const RECORD_BYTES: usize = 16 << 10;

/// A socket whose client has shaken hands.
pub(crate) struct Encrypted {
    pub socket: TcpStream,
    connection: ServerConnection,
}

impl std::fmt::Debug for Encrypted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encrypted").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The socket as rustls reads and writes one.
struct Raw<'s>(&'s TcpStream);

impl Read for Raw<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(buffer)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encrypted {
    /// Behind a handshake.
    pub fn new(stream: tokio_rustls::server::TlsStream<TcpStream>) -> Self {
        let (socket, connection) = stream.into_inner();
        Self { socket, connection }
    }

    /// Appends what has come of the next record; `WouldBlock` when nothing has.
    pub fn read(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            let start = input.len();
            input.resize(start + RECORD_BYTES, 0);
            let room = input.get_mut(start..).unwrap_or_default();
            let read = self.connection.reader().read(room);
            input.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                // It went without a farewell, as sockets do.
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if self.connection.read_tls(&mut Raw(&self.socket))? == 0 {
                return Ok(0);
            }
            self.connection.process_new_packets().map_err(io::Error::other)?;
            self.flush()?;
        }
    }

    /// Takes as much as there is room for; `WouldBlock` when there is none.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.connection.writer().write(bytes)?;
        if !self.flush()? && taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }

    /// Sends what it has taken, as far as it goes; true when that is all.
    pub fn flush(&mut self) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Raw(&self.socket)) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
}
