//! How a file spells NULL.

/// The spellings that stand for NULL when they make up a whole field without quotes.
#[derive(Clone, Debug)]
pub(crate) struct Nulls {
    /// The spellings, the empty one apart.
    spellings: Vec<Vec<u8>>,
    has_empty: bool,
    longest: usize,
    /// Which bytes a spelling starts with: rules out most fields by one look.
    starts: [bool; 256],
}

impl Nulls {
    pub(crate) fn new(spellings: &[String]) -> Self {
        let mut nulls =
            Self { spellings: Vec::new(), has_empty: false, longest: 0, starts: [false; 256] };
        for spelling in spellings.iter().map(String::as_bytes) {
            match spelling.first() {
                None => nulls.has_empty = true,
                Some(first) => {
                    if let Some(start) = nulls.starts.get_mut(usize::from(*first)) {
                        *start = true;
                    }
                    nulls.longest = nulls.longest.max(spelling.len());
                    nulls.spellings.push(spelling.to_vec());
                }
            }
        }
        nulls
    }

    /// True when an empty field is NULL.
    pub(crate) fn has_empty(&self) -> bool {
        self.has_empty
    }

    /// True when a field (as it stands in the file) is NULL.
    #[inline]
    pub(crate) fn contains(&self, field: &[u8]) -> bool {
        match field.first() {
            None => self.has_empty,
            Some(first) => {
                field.len() <= self.longest
                    && self.starts.get(usize::from(*first)) == Some(&true)
                    && self.spellings.iter().any(|s| s.as_slice() == field)
            }
        }
    }
}
