//! Typed keys of buckets: whatever decodes encodes to the same bytes or to bytes of the same key,
//! and bytes sort as keys do, at the end of a key and before other parts.

use esker::{KeyCodec, ValueCodec};
use std::fmt::Debug;

/// The target: a kind of key, a length, and the bytes of two keys.
pub fn run(data: &[u8]) {
    let [kind, len, rest @ ..] = data else { return };
    let (first, second) = rest.split_at(rest.len().min(usize::from(*len)));
    match kind % 16 {
        0 => keys::<u16>(first, second),
        1 => keys::<i64>(first, second),
        2 => keys::<String>(first, second),
        3 => keys::<Vec<u8>>(first, second),
        4 => keys::<(String, i32)>(first, second),
        5 => keys::<(u8, Vec<u8>, String)>(first, second),
        6 => keys::<((Vec<u8>, i8), u64, Vec<u8>)>(first, second),
        7 => keys::<u128>(first, second),
        8 => keys::<i128>(first, second),
        9 => keys::<(String, u8, i128, Vec<u8>, i16)>(first, second),
        10 => keys::<(u8, Vec<u8>, u16, String, u128, Vec<u8>)>(first, second),
        _ => values(first),
    }
}

fn decoded<K: KeyCodec + Ord + Debug>(bytes: &[u8], is_last: bool) -> Option<K> {
    let mut input = bytes;
    let key = K::decode_key(&mut input, is_last).ok()?;
    // What was taken says the same as what the key encodes to.
    let taken = &bytes[..bytes.len() - input.len()];
    let own = encoded(&key, is_last);
    assert_eq!(own, taken, "{key:?}");
    let mut again = own.as_slice();
    assert_eq!(K::decode_key(&mut again, is_last).ok().as_ref(), Some(&key));
    assert!(again.is_empty());
    Some(key)
}

fn encoded<K: KeyCodec>(key: &K, is_last: bool) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode_key(&mut out, is_last);
    out
}

fn keys<K: KeyCodec + Ord + Debug>(first: &[u8], second: &[u8]) {
    for is_last in [true, false] {
        let both = (decoded::<K>(first, is_last), decoded::<K>(second, is_last));
        let (Some(a), Some(b)) = both else { continue };
        for is_last in [true, false] {
            let order = encoded(&a, is_last).cmp(&encoded(&b, is_last));
            assert_eq!(order, a.cmp(&b), "{a:?} and {b:?}");
        }
    }
}

fn values(bytes: &[u8]) {
    fn value<V: ValueCodec + PartialEq + Debug>(bytes: &[u8]) {
        let Ok(value) = V::decode_value(bytes) else { return };
        let mut out = Vec::new();
        assert!(value.encode_value(&mut out).is_ok());
        assert_eq!(V::decode_value(&out).ok(), Some(value));
    }
    value::<u32>(bytes);
    value::<i64>(bytes);
    value::<i128>(bytes);
    value::<String>(bytes);
    value::<Vec<u8>>(bytes);
    value::<esker::Serde<Vec<(u8, String)>>>(bytes);
}
