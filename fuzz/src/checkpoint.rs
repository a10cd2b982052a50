//! A checkpoint that decodes encodes again to the same checkpoint.

use esker_format::checkpoint::Checkpoint;

/// The target: the number that the file's name has, then the file; and the whole as what the file's
/// checksums cover.
pub fn run(data: &[u8]) {
    let Some((number, bytes)) = data.split_first_chunk() else { return };
    let number = u64::from_le_bytes(*number);
    if let Ok(state) = Checkpoint::decode(bytes, number) {
        assert_eq!(Checkpoint::decode(&state.encode(), number), Ok(state));
    }
    let mut state = Checkpoint { number, ..Checkpoint::default() };
    if state.decode_body(data, esker_format::checkpoint::VERSION).is_ok() {
        assert_eq!(Checkpoint::decode(&state.encode(), number), Ok(state));
    }
}
