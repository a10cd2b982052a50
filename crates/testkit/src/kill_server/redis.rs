//! A connection that speaks Redis's protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::Ended;

#[derive(Debug)]
pub(super) struct Redis {
    stream: BufReader<TcpStream>,
}

/// What a command is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Text(String),
    Number(i64),
    Bytes(Option<Vec<u8>>),
    List(Vec<Self>),
    /// No list: of an EXEC that did nothing.
    Null,
}

impl Redis {
    pub fn connect(address: &str) -> Result<Self, Ended> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends commands, and waits for no answer.
    pub fn send(&mut self, commands: &[Vec<&str>]) -> Result<(), Ended> {
        let mut bytes = String::new();
        for command in commands {
            bytes += &format!("*{}\r\n", command.len());
            for word in command {
                bytes += &format!("${}\r\n{word}\r\n", word.len());
            }
        }
        Ok(self.stream.get_mut().write_all(bytes.as_bytes())?)
    }

    /// Reads an answer; one that tells of an error is none.
    pub fn reply(&mut self) -> Result<Reply, Ended> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(Ended::Gone);
        }
        let line = line.trim_end();
        let wrong = || Ended::Wrong(format!("Redis: {line}"));
        let number = |text: &str| text.parse::<i64>().map_err(|_| wrong());
        match line.split_at_checked(1).ok_or_else(wrong)? {
            ("+", text) => Ok(Reply::Text(text.to_owned())),
            (":", text) => Ok(Reply::Number(number(text)?)),
            ("$", text) => match usize::try_from(number(text)?) {
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Ok(Reply::Bytes(Some(bytes)))
                }
                Err(_) => Ok(Reply::Bytes(None)),
            },
            ("*", "-1") => Ok(Reply::Null),
            ("*", text) => {
                (0..number(text)?).map(|_| self.reply()).collect::<Result<_, _>>().map(Reply::List)
            }
            _ => Err(wrong()),
        }
    }

    /// Does one command.
    pub fn ask(&mut self, command: &[&str]) -> Result<Reply, Ended> {
        self.send(&[command.to_vec()])?;
        self.reply()
    }
}
