//! The bytes of a file, in pages that copies share until one of them writes.

use std::sync::Arc;

use super::trace::fold;

const PAGE: usize = 4_096;

/// No file grows beyond this: an offset gone wild is refused, not allocated.
pub(crate) const MAX_LEN: u64 = 16 << 30;

type Page = [u8; PAGE];

/// The bytes of a file. Pages never written are absent and read as zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    len: u64,
    pages: Vec<Option<Arc<Page>>>,
}

/// The page that holds an offset, and the place in it.
fn locate(offset: u64) -> (usize, usize) {
    let page = usize::try_from(offset / PAGE as u64).unwrap_or(usize::MAX);
    (page, usize::try_from(offset % PAGE as u64).unwrap_or_default())
}

impl Contents {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Copies bytes out; the number copied is short only at the end of the file.
    pub(crate) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = left.min(buf.len());
        let mut done = 0;
        while done < wanted {
            let (page, start) = locate(offset + done as u64);
            let count = (PAGE - start).min(wanted - done);
            let Some(to) = buf.get_mut(done..done + count) else { break };
            let page = self.pages.get(page).and_then(Option::as_ref);
            match page.and_then(|page| page.get(start..start + count)) {
                Some(from) => to.copy_from_slice(from),
                None => to.fill(0),
            }
            done += count;
        }
        wanted
    }

    /// Writes bytes, extending the file with zeros up to them.
    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        let end = offset + bytes.len() as u64;
        if bytes.is_empty() || end > MAX_LEN {
            return;
        }
        if end > self.len {
            self.extend(end);
        }
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let (page, start) = locate(at);
            let (now, later) = rest.split_at((PAGE - start).min(rest.len()));
            if let Some(slot) = self.pages.get_mut(page) {
                let page = Arc::make_mut(slot.get_or_insert_with(|| Arc::new([0; PAGE])));
                if let Some(to) = page.get_mut(start..start + now.len()) {
                    to.copy_from_slice(now);
                }
            }
            at += now.len() as u64;
            rest = later;
        }
    }

    /// Cuts, or extends with zeros.
    pub(crate) fn set_len(&mut self, len: u64) {
        if len >= self.len {
            return self.extend(len.min(MAX_LEN));
        }
        self.len = len;
        let (page, start) = locate(len);
        self.pages.truncate(if start == 0 { page } else { page + 1 });
        // Should the file grow again, the part that was cut off must read as zeros.
        if start > 0
            && let Some(Some(page)) = self.pages.get_mut(page)
        {
            Arc::make_mut(page).get_mut(start..).unwrap_or_default().fill(0);
        }
    }

    fn extend(&mut self, len: u64) {
        self.len = len;
        let (pages, rest) = locate(len);
        self.pages.resize(pages + usize::from(rest > 0), None);
    }

    /// Inverts one bit; false when it is past the end.
    pub(crate) fn flip(&mut self, byte: u64, bit: u8) -> bool {
        let mut buf = [0];
        if self.read(&mut buf, byte) == 0 {
            return false;
        }
        self.write(&buf.map(|b| b ^ (1 << (bit % 8))), byte);
        true
    }

    /// All bytes in one piece.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.len).unwrap_or_default()];
        self.read(&mut bytes, 0);
        bytes
    }

    /// Folds length and bytes into a hash. Absent pages count as pages of zeros.
    pub(crate) fn fold_into(&self, hash: u64) -> u64 {
        const ZEROS: &Page = &[0; PAGE];
        let start = fold(hash, &self.len.to_le_bytes());
        self.pages.iter().fold(start, |hash, page| {
            fold(hash, page.as_ref().map_or(ZEROS.as_slice(), |page| page.as_slice()))
        })
    }
}
