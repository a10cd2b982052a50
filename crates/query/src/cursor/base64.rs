//! Bytes as text that can stand in an address: the alphabet of RFC 4648 section 5, without padding.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The text of some bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, i| word << 8 | u32::from(*chunk.get(i).unwrap_or(&0)));
        for i in 0..=chunk.len() {
            let digit = word >> (18 - 6 * i) & 63;
            text.push(ALPHABET.get(digit as usize).map_or('A', |byte| char::from(*byte)));
        }
    }
    text
}

/// The bytes of a text; `None` when no bytes are written so.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for chunk in text.as_bytes().chunks(4) {
        let mut word = 0u32;
        for i in 0..4 {
            let digit = match chunk.get(i) {
                Some(byte) => ALPHABET.iter().position(|known| known == byte)?,
                None => 0,
            };
            word = word << 6 | u32::try_from(digit).ok()?;
        }
        let len = chunk.len().checked_sub(1).filter(|len| *len > 0)?;
        for i in 0..3 {
            let byte = u8::try_from(word >> (16 - 8 * i) & 255).ok()?;
            if i < len {
                bytes.push(byte);
            } else if byte != 0 {
                // What is not written has to be zero: else two texts would be the same bytes.
                return None;
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_does() {
        assert_eq!(
            [&b""[..], b"f", b"fo", b"foo", b"\xfb\xff"].map(encode).join(" "),
            " Zg Zm8 Zm9v -_8"
        );
        for len in 0..40u8 {
            let bytes: Vec<u8> = (0..len).map(|i| i.wrapping_mul(97) ^ len).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        for wrong in ["Z", "Zh", "Zm9", "Zg==", "Z g", "Zé"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
