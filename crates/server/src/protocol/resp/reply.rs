//! Answers, in the second or the third form of the protocol.

/// What a client gets, in order.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// The bytes.
    pub out: Vec<u8>,
    /// True when the client has chosen the third form.
    pub is_third: bool,
}

impl Reply {
    fn line(&mut self, sign: u8, text: &[u8]) {
        self.out.push(sign);
        let clean = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        self.out.extend(text.iter().map(clean));
        self.out.extend_from_slice(b"\r\n");
    }

    fn count(&mut self, sign: u8, count: usize) {
        self.line(sign, count.to_string().as_bytes());
    }

    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    pub fn error(&mut self, text: &str) {
        self.line(b'-', text.as_bytes());
    }

    pub fn integer(&mut self, number: i64) {
        self.line(b':', number.to_string().as_bytes());
    }

    /// How many there are.
    pub fn number(&mut self, number: usize) {
        self.count(b':', number);
    }

    pub fn bulk(&mut self, bytes: &[u8]) {
        self.count(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A text that people read.
    pub fn verbatim(&mut self, text: &str) {
        if !self.is_third {
            return self.bulk(text.as_bytes());
        }
        self.count(b'=', text.len() + 4);
        self.out.extend_from_slice(b"txt:");
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn null(&mut self) {
        self.out.extend_from_slice(if self.is_third { b"_\r\n" } else { b"$-1\r\n" });
    }

    pub fn null_array(&mut self) {
        self.out.extend_from_slice(if self.is_third { b"_\r\n" } else { b"*-1\r\n" });
    }

    pub fn optional(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    pub fn array(&mut self, count: usize) {
        self.count(b'*', count);
    }

    /// What was not asked for: as it comes, in the third form.
    pub fn push(&mut self, count: usize) {
        self.count(if self.is_third { b'>' } else { b'*' }, count);
    }

    pub fn set(&mut self, count: usize) {
        self.count(if self.is_third { b'~' } else { b'*' }, count);
    }

    pub fn map(&mut self, pairs: usize) {
        match self.is_third {
            true => self.count(b'%', pairs),
            false => self.count(b'*', pairs * 2),
        }
    }

    pub fn bulks<B: AsRef<[u8]>>(&mut self, items: &[B]) {
        self.array(items.len());
        items.iter().for_each(|item| self.bulk(item.as_ref()));
    }
}
