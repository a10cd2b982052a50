//! Changes of rows and edits of the catalogue encode again to the same changes and edits.

use esker_format::Result;
use esker_format::codec::Writer;
use esker_format::edit::{Edit, RowChange};

/// The kind of the frames that held a time before version 9 of the log.
const OLD_TIME: u16 = 26;

/// The target: the kind of a frame, then its payload.
pub fn run(data: &[u8]) {
    if let Some((kind, payload)) = data.split_first_chunk() {
        let kind = u16::from_le_bytes(*kind);
        if let Ok(edit) = Edit::decode(kind, payload) {
            assert!(Edit::is_edit(kind));
            // A time of before version 9 is a record of the clock today.
            assert!(edit.frame_kind() == kind || kind == OLD_TIME, "{kind}");
            assert_eq!(Edit::decode(edit.frame_kind(), &edit.encode()), Ok(edit));
        }
    }
    if let Ok(changes) = RowChange::decode(data).collect::<Result<Vec<_>>>() {
        let mut out = Writer::new();
        for change in &changes {
            match change {
                RowChange::Put { table, row_id, row } => {
                    RowChange::encode_put(&mut out, *table, *row_id, |out| out.raw(row));
                }
                RowChange::Delete { table, row_id } => {
                    RowChange::encode_delete(&mut out, *table, *row_id);
                }
            }
        }
        let again = RowChange::decode(out.as_bytes()).collect::<Result<Vec<_>>>();
        assert_eq!(again, Ok(changes));
    }
}
