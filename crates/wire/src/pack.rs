//! MessagePack, straight into and out of a buffer.
#![allow(clippy::big_endian_bytes, reason = "MessagePack's numbers are")]

use crate::{Error, Result};

/// Appends nil.
#[inline]
pub fn nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Appends true or false.
#[inline]
pub fn bool(out: &mut Vec<u8>, v: bool) {
    out.push(if v { 0xc3 } else { 0xc2 });
}

/// Appends a number that is not negative, in the shortest form.
#[inline]
pub fn uint(out: &mut Vec<u8>, v: u64) {
    if let Ok(v) = u8::try_from(v) {
        if v >= 0x80 {
            out.push(0xcc);
        }
        out.push(v);
    } else if let Ok(v) = u16::try_from(v) {
        let [a, b] = v.to_be_bytes();
        out.extend_from_slice(&[0xcd, a, b]);
    } else if let Ok(v) = u32::try_from(v) {
        let [a, b, c, d] = v.to_be_bytes();
        out.extend_from_slice(&[0xce, a, b, c, d]);
    } else {
        out.push(0xcf);
        out.extend_from_slice(&v.to_be_bytes());
    }
}

/// Appends an integer, in the shortest form.
#[inline]
pub fn int(out: &mut Vec<u8>, v: i64) {
    if let Ok(v) = u64::try_from(v) {
        return uint(out, v);
    }
    if let Ok(v) = i8::try_from(v) {
        if v < -32 {
            out.push(0xd0);
        }
        out.extend_from_slice(&v.to_be_bytes());
    } else if let Ok(v) = i16::try_from(v) {
        out.push(0xd1);
        out.extend_from_slice(&v.to_be_bytes());
    } else if let Ok(v) = i32::try_from(v) {
        out.push(0xd2);
        out.extend_from_slice(&v.to_be_bytes());
    } else {
        out.push(0xd3);
        out.extend_from_slice(&v.to_be_bytes());
    }
}

/// Appends a 32-bit floating-point number.
pub fn f32(out: &mut Vec<u8>, v: f32) {
    out.push(0xca);
    out.extend_from_slice(&v.to_be_bytes());
}

/// Appends a 64-bit floating-point number.
pub fn f64(out: &mut Vec<u8>, v: f64) {
    out.push(0xcb);
    out.extend_from_slice(&v.to_be_bytes());
}

/// The forms of a length: short ones in the tag, then of 1, 2 and 4 bytes.
#[inline]
fn length(out: &mut Vec<u8>, n: usize, short: Option<u8>, tags: [Option<u8>; 3]) {
    let [one, two, four] = tags;
    match (u8::try_from(n), u16::try_from(n)) {
        (Ok(n), _) if let Some(tag) = short => out.push(tag | n),
        (Ok(n), _) if let Some(tag) = one => out.extend_from_slice(&[tag, n]),
        (_, Ok(n)) if let Some(tag) = two => {
            let [a, b] = n.to_be_bytes();
            out.extend_from_slice(&[tag, a, b]);
        }
        _ => {
            out.extend(four);
            out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

/// Appends a text.
#[inline]
pub fn text(out: &mut Vec<u8>, v: &str) {
    let short = (v.len() < 32).then_some(0xa0);
    length(out, v.len(), short, [Some(0xd9), Some(0xda), Some(0xdb)]);
    out.extend_from_slice(v.as_bytes());
}

/// Appends bytes.
#[inline]
pub fn bytes(out: &mut Vec<u8>, v: &[u8]) {
    length(out, v.len(), None, [Some(0xc4), Some(0xc5), Some(0xc6)]);
    out.extend_from_slice(v);
}

/// Appends the start of an array of `n` values, which follow.
#[inline]
pub fn array(out: &mut Vec<u8>, n: usize) {
    length(out, n, (n < 16).then_some(0x90), [None, Some(0xdc), Some(0xdd)]);
}

/// Appends the start of a map of `n` pairs of name and value, which follow.
pub fn map(out: &mut Vec<u8>, n: usize) {
    length(out, n, (n < 16).then_some(0x80), [None, Some(0xde), Some(0xdf)]);
}

/// Appends a value of an extension type.
pub fn extension(out: &mut Vec<u8>, code: u8, v: &[u8]) {
    let tag = match v.len() {
        1 => Some(0xd4),
        2 => Some(0xd5),
        4 => Some(0xd6),
        8 => Some(0xd7),
        16 => Some(0xd8),
        _ => None,
    };
    match tag {
        Some(tag) => out.push(tag),
        None => length(out, v.len(), None, [Some(0xc7), Some(0xc8), Some(0xc9)]),
    }
    out.push(code);
    out.extend_from_slice(v);
}

/// One value, the parts of arrays and maps not among it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'b> {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// A number that is not negative.
    Uint(u64),
    /// A negative integer.
    Int(i64),
    /// A 32-bit floating-point number.
    F32(f32),
    /// A 64-bit floating-point number.
    F64(f64),
    /// A text.
    Text(&'b str),
    /// Bytes.
    Bytes(&'b [u8]),
    /// So many values follow.
    Array(usize),
    /// So many pairs of values follow.
    Map(usize),
    /// A value of an extension type.
    Extension(u8, &'b [u8]),
}

impl Token<'_> {
    /// What it is, for errors.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Uint(_) | Self::Int(_) => "an integer",
            Self::F32(_) | Self::F64(_) => "a float",
            Self::Text(_) => "a text",
            Self::Bytes(_) => "bytes",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Extension(..) => "an extension",
        }
    }
}

/// Reads values from a buffer, without copying.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'b> {
    rest: &'b [u8],
    len: usize,
}

/// What reads a token of one kind.
macro_rules! plain {
    ($($(#[$about:meta])* $name:ident -> $of:ty: $token:ident, $wanted:literal;)*) => {
        $($(#[$about])*
        ///
        /// # Errors
        /// When something else follows, or nothing.
        #[inline]
        pub fn $name(&mut self) -> Result<$of> {
            match self.token()? {
                Token::$token(value) => Ok(value),
                other => self.unlike($wanted, &other),
            }
        })*
    };
}

impl<'b> Reader<'b> {
    /// From the start of some bytes.
    #[must_use]
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, len: bytes.len() }
    }

    /// How many bytes were read.
    #[must_use]
    pub fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// The bytes that are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True when nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn wrong(&self, wanted: &str) -> Error {
        Error::new(format!("byte {} of the payload: expected {wanted}", self.position()))
    }

    #[inline]
    fn take(&mut self, n: usize) -> Result<&'b [u8]> {
        match self.rest.split_at_checked(n) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(self.wrong(&format!("{n} bytes, there are {}", self.rest.len()))),
        }
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(self.wrong(&format!("{N} bytes, there are {}", self.rest.len()))),
        }
    }

    /// A length of one, two or four bytes.
    #[inline]
    fn length(&mut self, size: u8) -> Result<usize> {
        Ok(match size {
            0 => u8::from_be_bytes(self.fixed()?).into(),
            1 => u16::from_be_bytes(self.fixed()?).into(),
            _ => usize::try_from(u32::from_be_bytes(self.fixed()?)).unwrap_or(usize::MAX),
        })
    }

    /// Values that each take a byte or more: no more of them than bytes are left.
    fn many(&self, n: usize) -> Result<usize> {
        if n > self.rest.len() {
            return Err(self.wrong(&format!("{n} values, there are {} bytes", self.rest.len())));
        }
        Ok(n)
    }

    fn text_of(&mut self, n: usize) -> Result<Token<'b>> {
        let at = self.position();
        let bytes = self.take(n)?;
        let text = std::str::from_utf8(bytes).map_err(|_| {
            Error::new(format!("byte {at} of the payload: expected a text in UTF-8"))
        })?;
        Ok(Token::Text(text))
    }

    fn extension_of(&mut self, n: usize) -> Result<Token<'b>> {
        let [code] = self.fixed()?;
        Ok(Token::Extension(code, self.take(n)?))
    }

    /// The next value.
    ///
    /// # Errors
    /// When the bytes are no value, or end before it does.
    #[inline]
    pub fn token(&mut self) -> Result<Token<'b>> {
        let [tag] = self.fixed()?;
        Ok(match tag {
            0x00..=0x7f => Token::Uint(tag.into()),
            0xe0..=0xff => Token::Int(i8::from_be_bytes([tag]).into()),
            0xa0..=0xbf => return self.text_of(usize::from(tag & 0x1f)),
            0x90..=0x9f => Token::Array(self.many(usize::from(tag & 0x0f))?),
            0x80..=0x8f => Token::Map(self.many(usize::from(tag & 0x0f))?),
            0xc0 => Token::Nil,
            0xc2 => Token::Bool(false),
            0xc3 => Token::Bool(true),
            0xcc => Token::Uint(u8::from_be_bytes(self.fixed()?).into()),
            0xcd => Token::Uint(u16::from_be_bytes(self.fixed()?).into()),
            0xce => Token::Uint(u32::from_be_bytes(self.fixed()?).into()),
            0xcf => Token::Uint(u64::from_be_bytes(self.fixed()?)),
            0xd9 => {
                let n = self.length(0)?;
                return self.text_of(n);
            }
            0xc4 => {
                let n = self.length(0)?;
                Token::Bytes(self.take(n)?)
            }
            _ => return self.rare(tag),
        })
    }

    fn rare(&mut self, tag: u8) -> Result<Token<'b>> {
        let int = |v: i64| u64::try_from(v).map_or(Token::Int(v), Token::Uint);
        Ok(match tag {
            0xd0 => int(i8::from_be_bytes(self.fixed()?).into()),
            0xd1 => int(i16::from_be_bytes(self.fixed()?).into()),
            0xd2 => int(i32::from_be_bytes(self.fixed()?).into()),
            0xd3 => int(i64::from_be_bytes(self.fixed()?)),
            0xca => Token::F32(f32::from_be_bytes(self.fixed()?)),
            0xcb => Token::F64(f64::from_be_bytes(self.fixed()?)),
            0xda | 0xdb => {
                let n = self.length(tag - 0xd9)?;
                return self.text_of(n);
            }
            0xc5 | 0xc6 => {
                let n = self.length(tag - 0xc4)?;
                Token::Bytes(self.take(n)?)
            }
            0xdc | 0xdd => {
                let n = self.length(tag - 0xdb)?;
                Token::Array(self.many(n)?)
            }
            0xde | 0xdf => {
                let n = self.length(tag - 0xdd)?;
                Token::Map(self.many(n)?)
            }
            0xd4..=0xd8 => return self.extension_of(1 << (tag - 0xd4)),
            0xc7..=0xc9 => {
                let n = self.length(tag - 0xc7)?;
                return self.extension_of(n);
            }
            _ => {
                let at = self.position() - 1;
                let message = format!("byte {at} of the payload: {tag:#04x} starts no value");
                return Err(Error::new(message));
            }
        })
    }

    /// The error for a value that is another one than was wanted.
    fn unlike<T>(&self, wanted: &str, found: &Token<'_>) -> Result<T> {
        let (at, found) = (self.position(), found.name());
        let message = format!("before byte {at} of the payload: expected {wanted}, found {found}");
        Err(Error::new(message))
    }

    plain! {
        /// How many values of an array follow.
        array -> usize: Array, "an array";
        /// How many pairs of a map follow.
        map -> usize: Map, "a map";
        /// A text.
        text -> &'b str: Text, "a text";
        /// A number that is not negative.
        uint -> u64: Uint, "an integer from 0";
        /// True or false.
        bool -> bool: Bool, "a boolean";
    }

    /// An array of exactly `n` values follows.
    ///
    /// # Errors
    /// When it is longer or shorter.
    #[inline]
    pub fn array_of(&mut self, n: usize) -> Result<()> {
        let found = self.array()?;
        if found != n {
            let at = self.position();
            let message =
                format!("before byte {at} of the payload: expected {n} values, found {found}");
            return Err(Error::new(message));
        }
        Ok(())
    }

    /// Bytes, or a text as bytes.
    ///
    /// # Errors
    /// As for [`Reader::array`].
    #[inline]
    pub fn bytes(&mut self) -> Result<&'b [u8]> {
        match self.token()? {
            Token::Bytes(v) => Ok(v),
            Token::Text(v) => Ok(v.as_bytes()),
            other => self.unlike("bytes", &other),
        }
    }

    /// Bytes, or nil.
    ///
    /// # Errors
    /// As for [`Reader::array`].
    pub fn optional_bytes(&mut self) -> Result<Option<&'b [u8]>> {
        match self.token()? {
            Token::Nil => Ok(None),
            Token::Bytes(v) => Ok(Some(v)),
            Token::Text(v) => Ok(Some(v.as_bytes())),
            other => self.unlike("bytes or nil", &other),
        }
    }

    /// A text, or nil.
    ///
    /// # Errors
    /// As for [`Reader::array`].
    pub fn optional_text(&mut self) -> Result<Option<&'b str>> {
        match self.token()? {
            Token::Nil => Ok(None),
            Token::Text(v) => Ok(Some(v)),
            other => self.unlike("a text or nil", &other),
        }
    }

    /// A number that is not negative, or nil.
    ///
    /// # Errors
    /// As for [`Reader::array`].
    pub fn optional_uint(&mut self) -> Result<Option<u64>> {
        match self.token()? {
            Token::Nil => Ok(None),
            Token::Uint(v) => Ok(Some(v)),
            other => self.unlike("an integer from 0, or nil", &other),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// As for [`Reader::array`].
    pub fn int(&mut self) -> Result<i64> {
        match self.token()? {
            Token::Int(v) => Ok(v),
            Token::Uint(v) => i64::try_from(v).map_err(|_| self.wrong("an integer below 2^63")),
            other => self.unlike("an integer", &other),
        }
    }

    /// Passes over a value with all its parts.
    ///
    /// # Errors
    /// As for [`Reader::token`].
    pub fn skip(&mut self) -> Result<()> {
        let mut left = 1usize;
        while left > 0 {
            let parts = match self.token()? {
                Token::Array(n) => n,
                Token::Map(n) => n.saturating_mul(2),
                _ => 0,
            };
            left = (left - 1).saturating_add(parts);
        }
        Ok(())
    }

    /// The bytes of a value with all its parts.
    ///
    /// # Errors
    /// As for [`Reader::token`].
    pub fn take_value(&mut self) -> Result<&'b [u8]> {
        let before = self.rest;
        self.skip()?;
        let (bytes, _) = before.split_at(before.len() - self.rest.len());
        Ok(bytes)
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// When something is.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.wrong("the end")) }
    }
}
