//! What a string says.

use std::borrow::Cow;

use memchr::memchr;

/// The text between the quotes of a string that has been scanned; `None` when half a surrogate
/// pair stands in it, which is no character.
pub(crate) fn unescaped(inner: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(first) = memchr(b'\\', inner) else { return Some(Cow::Borrowed(inner)) };
    let mut plain = Vec::with_capacity(inner.len());
    let mut rest = inner;
    let mut next = Some(first);
    while let Some(at) = next {
        plain.extend_from_slice(rest.get(..at)?);
        let letter = rest.get(at + 1)?;
        rest = rest.get(at + 2..)?;
        let byte = match letter {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (character, after) = unicode(rest)?;
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
                next = memchr(b'\\', rest);
                continue;
            }
            other => *other,
        };
        plain.push(byte);
        next = memchr(b'\\', rest);
    }
    plain.extend_from_slice(rest);
    Some(Cow::Owned(plain))
}

/// The character whose code follows `\u`, in one or two parts, and what is behind it.
fn unicode(text: &[u8]) -> Option<(char, &[u8])> {
    let (first, rest) = four_digits(text)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, rest));
    }
    let (second, rest) = four_digits(rest.strip_prefix(b"\\u")?)?;
    let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
    Some((char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + low)?, rest))
}

fn four_digits(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let value = digits.iter().try_fold(0, |value, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(value << 4 | digit)
    })?;
    Some((value, rest))
}
