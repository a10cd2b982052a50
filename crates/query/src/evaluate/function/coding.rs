//! Bytes as text and back: hexadecimal digits, base 64, escapes; and hashes.

use std::borrow::Cow;

use sha2::Digest;

use super::call::Call;
use super::letters::{owned, text};
use super::text::Bytes;
use crate::Result;
use crate::evaluate::Vector;
use crate::model::Function as F;

const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// `encode` breaks lines of base 64 after so many characters, as PostgreSQL does.
const LINE: usize = 76;

pub(super) fn call<'a>(call: &Call<'_, 'a>, len: usize) -> Result<Vector<'a>> {
    call.map_bytes(len, |row, _| {
        if call.function == F::ToHex {
            return Ok(Some(owned(format!("{:x}", call.int(0, row, 0)?))));
        }
        let bytes = call.operand(0)?.lanes.bytes(row);
        Ok(Some(match call.function {
            F::Hex => Cow::Owned(hex(bytes, UPPER)),
            F::Unhex => return Ok(from_hex(bytes).map(Cow::Owned)),
            F::Encode => encode(call, bytes, row)?,
            F::Decode => decode(call, bytes, row)?,
            F::Base64 => Cow::Owned(base64(bytes, usize::MAX)),
            F::FromBase64 => Cow::Owned(from_base64(call, bytes)?),
            F::Md5 => Cow::Owned(hex(&hash::<md5::Md5>(call, bytes)?, LOWER)),
            F::Sha256 => Cow::Owned(hash::<sha2::Sha256>(call, bytes)?),
            _ => return Err(call.undefined()),
        }))
    })
}

/// A hash, piece by piece.
fn hash<H: Digest>(call: &Call<'_, '_>, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut hash = H::new();
    for piece in call.meter.pieces(bytes) {
        hash.update(piece?);
    }
    Ok(hash.finalize().to_vec())
}

fn digit(of: &[u8], place: u8) -> u8 {
    of.get(usize::from(place)).copied().unwrap_or(b'0')
}

fn hex(bytes: &[u8], digits: &[u8; 16]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [digit(digits, byte >> 4), digit(digits, byte & 15)]).collect()
}

fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).and_then(|v| u8::try_from(v).ok());
    let (pairs, rest) = digits.as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(value(*high)? << 4 | value(*low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect())?
}

/// The form that the second operand names.
fn form<'c>(call: &'c Call<'_, '_>, row: usize) -> Result<&'c str> {
    text(call, 1, row)
}

fn unknown_form(call: &Call<'_, '_>, form: &str) -> crate::Error {
    let form: String = form.chars().take(40).collect();
    call.error(format!("unknown form '{form}'; known: hex, base64, escape"))
}

fn encode(call: &Call<'_, '_>, bytes: &[u8], row: usize) -> Result<Bytes<'static>> {
    Ok(Cow::Owned(match form(call, row)? {
        "hex" => hex(bytes, LOWER),
        "base64" => base64(bytes, LINE),
        "escape" => bytes.iter().flat_map(|byte| escaped(*byte)).collect(),
        other => return Err(unknown_form(call, other)),
    }))
}

fn decode(call: &Call<'_, '_>, bytes: &[u8], row: usize) -> Result<Bytes<'static>> {
    Ok(Cow::Owned(match form(call, row)? {
        "hex" => {
            let plain: Vec<u8> =
                bytes.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
            from_hex(&plain).ok_or_else(|| call.error("expected pairs of hexadecimal digits"))?
        }
        "base64" => from_base64(call, bytes)?,
        "escape" => unescaped(bytes).ok_or_else(|| {
            call.error("expected \\ to stand before another one, or three octal digits")
        })?,
        other => return Err(unknown_form(call, other)),
    }))
}

/// A byte as text: what is no ASCII as `\` and three octal digits.
fn escaped(byte: u8) -> Vec<u8> {
    match byte {
        b'\\' => b"\\\\".to_vec(),
        0 | 0x80.. => format!("\\{byte:03o}").into_bytes(),
        other => vec![other],
    }
}

fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'\\' {
            out.push(*first);
        } else if let Some(behind) = behind.strip_prefix(b"\\") {
            out.push(b'\\');
            rest = behind;
        } else {
            let (digits, behind) = behind.split_first_chunk::<3>()?;
            let is_octal = digits.iter().all(|d| (b'0'..=b'7').contains(d));
            let digits = std::str::from_utf8(digits).ok().filter(|_| is_octal)?;
            out.push(u8::from_str_radix(digits, 8).ok()?);
            rest = behind;
        }
    }
    Some(out)
}

fn base64(bytes: &[u8], line: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3) * 4 + bytes.len() / 57);
    let mut in_line = 0;
    for three in bytes.chunks(3) {
        if in_line >= line {
            out.push(b'\n');
            in_line = 0;
        }
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let six = u8::try_from(bits >> (18 - 6 * i) & 63).unwrap_or_default();
            out.push(if i <= three.len() { digit(BASE64, six) } else { b'=' });
        }
        in_line += 4;
    }
    out
}

fn from_base64(call: &Call<'_, '_>, text: &[u8]) -> Result<Vec<u8>> {
    let wrong = || call.error("expected a text in base 64");
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len()), 0u32, 0u32);
    let mut padding = 0u32;
    for byte in text.iter().filter(|b| !b.is_ascii_whitespace()) {
        if *byte == b'=' {
            padding += 1;
            continue;
        }
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return Err(wrong()),
        };
        if padding > 0 {
            return Err(wrong());
        }
        bits = bits << 6 | u32::from(six);
        count += 1;
        if count == 4 {
            let [low, middle, high, _] = bits.to_le_bytes();
            out.extend([high, middle, low]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.push(u8::try_from(bits >> 4).map_err(|_| wrong())?),
        (3, 1) => {
            out.push(u8::try_from(bits >> 10).map_err(|_| wrong())?);
            out.push(u8::try_from(bits >> 2 & 255).map_err(|_| wrong())?);
        }
        _ => return Err(wrong()),
    }
    Ok(out)
}
