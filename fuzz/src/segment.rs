//! A footer that decodes has every extent inside the data, and encodes again to the same footer.

use esker_format::checksum::Place;
use esker_format::segment::{Footer, TRAILER_BYTES, Trailer};

/// The most bytes of data that a footer is checked against.
const DATA_BYTES_MAX: u64 = 1 << 24;

/// The target: the end of the data, then a footer; and the whole as a trailer.
pub fn run(data: &[u8]) {
    if let Some((end, bytes)) = data.split_first_chunk() {
        let data_end = u64::from_le_bytes(*end) % DATA_BYTES_MAX;
        if let Ok(footer) = Footer::decode(bytes, data_end) {
            assert_eq!(Footer::decode(&footer.encode(), data_end), Ok(footer));
        }
    }
    let place = Place { database: 7, file: 1, position: 0 };
    if let Ok(trailer) = Trailer::decode(data, place) {
        assert_eq!(Trailer::decode(&trailer.encode(place), place), Ok(trailer));
        assert_eq!(trailer.encode(place).len(), TRAILER_BYTES);
    }
}
