//! Patterns of keys: `*`, `?`, `[abc]`, `[^a-z]`, and `\` in front of what is meant as it is.

/// True when a text is as a pattern says. Takes time of the product of both lengths at most.
pub(super) fn is_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Where to go on when what follows the last star does not fit: one byte further.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            retry = Some((rest, text));
            pattern = rest;
            continue;
        }
        if let ([_, after @ ..], Some(rest)) = (text, one(pattern, text)) {
            (pattern, text) = (rest, after);
            continue;
        }
        if pattern.is_empty() && text.is_empty() {
            return true;
        }
        let Some((rest, [_, after @ ..])) = retry else { return false };
        retry = Some((rest, after));
        (pattern, text) = (rest, after);
    }
}

/// What follows the first of a pattern, where it is as the first byte of a text.
fn one<'p>(pattern: &'p [u8], text: &[u8]) -> Option<&'p [u8]> {
    let byte = *text.first()?;
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', rest @ ..] => class(rest, byte),
        [b'\\', wanted, rest @ ..] | [wanted, rest @ ..] => (*wanted == byte).then_some(rest),
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (is_not, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', after @ ..] => {
                rest = after;
                break;
            }
            [b'\\', wanted, after @ ..] => {
                found |= *wanted == byte;
                after
            }
            [from, b'-', to, after @ ..] => {
                found |= ((*from.min(to))..=(*from.max(to))).contains(&byte);
                after
            }
            [wanted, after @ ..] => {
                found |= *wanted == byte;
                after
            }
        };
    }
    (found != is_not).then_some(rest)
}

/// What every text begins with that is as a pattern says.
pub(super) fn prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| matches!(byte, b'*' | b'?' | b'[' | b'\\'));
    pattern.get(..end.unwrap_or(pattern.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        let yes = [
            ("*", ""),
            ("a*c", "abbc"),
            ("h?llo", "hello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("\\*", "*"),
            ("*a*b*", "xaxbx"),
            ("[\\]]", "]"),
            ("a\\", "a\\"),
            ("[a", "a"),
        ];
        let no = [
            ("", "a"),
            ("a*c", "abb"),
            ("h?llo", "hllo"),
            ("h[^e]llo", "hello"),
            ("\\*", "a"),
            ("a", "ab"),
            ("[]", "a"),
            ("*x", ""),
        ];
        for (pattern, text) in yes {
            assert!(is_match(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        for (pattern, text) in no {
            assert!(!is_match(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        assert_eq!(prefix(b"user:*"), b"user:");
        let stars = "*a".repeat(30);
        assert!(!is_match(stars.as_bytes(), "b".repeat(2_000).as_bytes()));
    }
}
