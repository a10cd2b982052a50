//! Changes of rows and edits of the catalogue encode again to the same changes and edits.

use esker_format::codec::Writer;
use esker_format::edit::{Edit, RowChange};

/// The target: the kind of a frame, then its payload.
pub fn run(data: &[u8]) {
    if let Some((kind, payload)) = data.split_first_chunk() {
        let kind = u16::from_le_bytes(*kind);
        if let Ok(edit) = Edit::decode(kind, payload) {
            assert!(Edit::is_edit(kind) && edit.frame_kind() == kind);
            assert_eq!(Edit::decode(kind, &edit.encode()), Ok(edit));
        }
    }
    if let Ok(changes) = RowChange::decode_all(data) {
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
        assert_eq!(RowChange::decode_all(out.as_bytes()), Ok(changes));
    }
}
