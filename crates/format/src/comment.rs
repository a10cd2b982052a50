//! What users say of what they define, in words.

use crate::codec::{Reader, Writer};
use crate::{Error, Result};

/// The longest comment, in bytes.
pub const COMMENT_BYTES_MAX: usize = 64 << 10;

/// Refuses a comment that is too long. `what` it is on is named as in "a comment on a table".
///
/// # Errors
/// `InvalidInput` with the most bytes.
pub fn expect_short(what: &str, comment: Option<&str>) -> Result<()> {
    if comment.is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        let message = format!("a comment on {what} has at most {COMMENT_BYTES_MAX} bytes");
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Appends the stored form: a flag, and the words where there are some.
pub(crate) fn encode(comment: Option<&str>, out: &mut Writer) {
    out.u8(u8::from(comment.is_some()));
    comment.iter().for_each(|comment| out.text(comment));
}

/// Reads the stored form.
pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Option<String>> {
    match input.u8()? {
        0 => Ok(None),
        1 => Ok(Some(input.text()?.to_owned())),
        other => Err(Error::corrupt(format!("flag {other} of a comment"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Checkpoint;
    use crate::edit::Edit;
    use crate::{Sequence, View};

    /// They end before it where a program wrote them that knew none.
    #[test]
    fn sequences_and_views_without_a_comment_behind_them_are_read() {
        let (sequence, view) = (Sequence::new(5, 2).unwrap(), View::default());
        let edits = [
            Edit::SetSequence { name: "s".into(), sequence: sequence.clone() },
            Edit::SetView { name: "v".into(), view },
        ];
        for edit in edits {
            let bytes = edit.encode();
            // Behind the comment of a view it is said whether it is a rollup.
            let flags = if matches!(edit, Edit::SetView { .. }) { 2 } else { 1 };
            let (before, flags) = bytes.split_at(bytes.len() - flags);
            assert!(flags.iter().all(|flag| *flag == 0));
            assert_eq!(Edit::decode(edit.frame_kind(), before).unwrap(), edit);
            assert!(Edit::decode(edit.frame_kind(), &[before, &[2]].concat()).is_err());
        }
        let mut body = Writer::new();
        [0, 1, 2].iter().for_each(|number| body.u64(*number));
        body.u32(1);
        body.u64(1);
        body.count(0);
        body.count(1);
        body.text("s");
        sequence.encode(&mut body);
        body.u8(0);
        body.count(0);
        body.count(0);
        let mut read = Checkpoint::default();
        read.decode_body(body.as_bytes(), 14).unwrap();
        assert_eq!(read.sequences, [("s".to_owned(), sequence)]);
        assert!(Checkpoint::default().decode_body(body.as_bytes(), 15).is_err());
    }
}
