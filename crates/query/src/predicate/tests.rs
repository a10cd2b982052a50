//! Patterns, conditions, and what zone maps say of them.

use std::sync::Arc;

use esker_format::decimal::limit;
use esker_format::{DataType, Decimal, Value};
use proptest::prelude::*;

use super::Verdict;
use super::condition::Condition;
use crate::Zone;
use crate::bound::Comparison;
use crate::pattern::Pattern;

fn matches(pattern: &str, text: &str) -> bool {
    Pattern::like(pattern, Some('!'), false).unwrap().matches(text.as_bytes())
}

#[test]
fn patterns_match_whole_texts() {
    let yes = [
        ("", ""),
        ("%", ""),
        ("%", "anything"),
        ("a%", "a"),
        ("%a", "ba"),
        ("%b%", "abc"),
        ("_", "é"),
        ("a_c", "aéc"),
        ("%a_%", "xxaé"),
        ("a%b%c", "a-b-b-c"),
        ("%ab%ab", "abab"),
        ("100!%", "100%"),
        ("!!_", "!x"),
    ];
    for (pattern, text) in yes {
        assert!(matches(pattern, text), "{pattern} {text}");
    }
    let no = [("", "a"), ("_", ""), ("_", "ab"), ("a", "A"), ("%ab%ab", "ab"), ("100!%", "100x")];
    for (pattern, text) in no {
        assert!(!matches(pattern, text), "{pattern} {text}");
    }
    let any_case = Pattern::like("É%", None, true).unwrap();
    assert!(any_case.matches("éa".as_bytes()) && any_case.matches("Éa".as_bytes()));
    let error = Pattern::like("a!", Some('!'), false).unwrap_err().to_string();
    assert_eq!(error, "pattern 'a!': the escape '!' goes before %, _ or itself");
}

/// The lower case of a capital sigma depends on where it stands: a pattern and a text could differ.
#[test]
fn any_case_is_one_case_whatever_stands_beside_a_letter() {
    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::like(pattern, None, true).unwrap().matches(text.as_bytes())
    }
    for sigma in ["σ", "ς", "Σ"] {
        for other in ["σ", "ς", "Σ"] {
            assert!(
                matches(sigma, other) && matches(&format!("%Ο{sigma}"), &format!("λόγο{other}"))
            );
            assert!(matches(&format!("%{sigma}_%"), &format!("α{other}β")));
            assert!(matches(&format!("ΟΔΥ{sigma}%"), &format!("οδυ{other}{other}ευς")));
        }
    }
    let equal = [("ǆ", "ǅ"), ("ſ", "S"), ("\u{212a}", "k"), ("µ", "Μ"), ("ẞ", "ß"), ("ᾳ", "ᾼ")];
    for (one, other) in equal {
        assert!(matches(one, other) && matches(other, one), "{one} {other}");
    }
    // A letter stays one character: its length is that of the text.
    assert!(matches("_", "İ") && matches("i_", "Iß"));
    for (one, other) in [("ı", "i"), ("İ", "i"), ("ß", "ss"), ("ο", "o")] {
        assert!(!matches(one, other), "{one} {other}");
    }
}

#[test]
fn an_escape_in_upper_case_escapes_in_any_case() {
    let matches = |pattern, escape, text: &str| {
        Pattern::like(pattern, Some(escape), true).unwrap().matches(text.as_bytes())
    };
    assert!(matches("50X%", 'X', "50%"));
    assert!(!matches("50X%", 'X', "50xabc"));
    assert!(matches("aXXb%", 'X', "Axb and more"));
    assert!(matches("X_É", 'X', "_é"));
    // The other case of the escape is a letter like any other.
    assert!(matches("50X%", 'x', "50x and more"));
    assert!(!matches("50X%", 'x', "50%"));
}

/// The plainest matcher.
fn plain(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|i| plain(&text[i..], rest)),
        ['_', rest @ ..] => !text.is_empty() && plain(&text[1..], rest),
        [c, rest @ ..] => text.first() == Some(c) && plain(&text[1..], rest),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-3i64..4).prop_map(Value::Int),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(Value::Uint),
        (-8i32..8).prop_map(|v| Value::Float(f64::from(v) / 4.0)),
        any::<f64>().prop_map(Value::Float),
        Just(Value::Float(f64::NAN)),
        Just(Value::Float(-0.0)),
        any::<f32>().prop_map(Value::Float32),
        (-8i32..8).prop_map(|v| Value::Decimal(Decimal::new((v * 25).into(), 2).unwrap())),
        (any::<i128>(), 0u8..=38)
            .prop_map(|(v, s)| Value::Decimal(Decimal::new(v % limit(38), s).unwrap())),
        Just(Value::Decimal(Decimal::new(1, 38).unwrap())),
    ]
}

const COMPARISONS: [Comparison; 6] = [
    Comparison::Eq,
    Comparison::Neq,
    Comparison::Lt,
    Comparison::Lte,
    Comparison::Gt,
    Comparison::Gte,
];

fn condition(operator: usize, data_type: DataType, constant: &Value) -> Option<Condition> {
    Condition::compare(COMPARISONS[operator % 6], data_type, constant.as_ref())
}

proptest! {
    #[test]
    fn patterns_agree_with_the_plain_matcher(text in "[abé]{0,8}", pattern in "[abé%_]{0,6}") {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        prop_assert_eq!(matches(&pattern, &text), plain(&chars(&text), &chars(&pattern)));
    }

    #[test]
    fn comparisons_with_constants_are_exact(
        value in any_value(), constant in any_value(), operator in 0usize..6,
    ) {
        prop_assume!(!constant.is_null());
        for data_type in DataType::ALL.into_iter().filter(|t| t.is_numeric()) {
            let Ok(stored) = value.as_ref().coerce(data_type) else { continue };
            let condition = condition(operator, data_type, &constant).unwrap();
            let holds = COMPARISONS[operator].holds(stored.compare(constant.as_ref()));
            let expected = !stored.is_null() && holds;
            prop_assert_eq!(condition.matches(stored), expected, "{} {:?}", stored, condition);
        }
    }

    #[test]
    fn zone_maps_never_lie(
        values in prop::collection::vec(any_value(), 1..6),
        constants in prop::collection::vec(any_value(), 1..4),
        operator in 0usize..6,
        negated in any::<bool>(),
        knows_greatest in any::<bool>(),
    ) {
        for data_type in [DataType::I64, DataType::U64, DataType::F64, DataType::U8] {
            let stored = values.iter().filter_map(|v| v.as_ref().coerce(data_type).ok());
            let stored: Vec<_> = stored.collect();
            let known: Vec<_> = constants.iter().filter(|c| !c.is_null()).cloned().collect();
            let present = || stored.iter().copied().filter(|v| !v.is_null());
            let zone = Zone {
                least: present().min().unwrap_or_default(),
                greatest: present().max().filter(|_| knows_greatest),
                null_count: stored.len() - present().count(),
            };
            let mut conditions = vec![
                Condition::Null { negated },
                Condition::one_of(data_type, &known, negated),
            ];
            conditions.extend(known.first().and_then(|c| condition(operator, data_type, c)));
            for condition in conditions {
                let passed = stored.iter().filter(|v| condition.matches(**v)).count();
                match condition.verdict(data_type, &zone, None, stored.len()) {
                    Verdict::Never => prop_assert_eq!(passed, 0, "{:?} {:?}", condition, zone),
                    Verdict::Always => {
                        prop_assert_eq!(passed, stored.len(), "{:?} {:?}", condition, zone);
                    }
                    Verdict::Sometimes => {}
                }
            }
        }
    }

    #[test]
    fn lengths_of_zones_never_lie(
        texts in prop::collection::vec("[aß𝄞]{0,4}", 1..5),
        (least, greatest) in (0i128..6, 0i128..18),
        (negated, in_characters, is_bounded) in any::<(bool, bool, bool)>(),
    ) {
        let stored: Vec<Value> = texts.iter().map(|t| Value::from(t.as_str())).collect();
        let lengths = || texts.iter().map(|t| u32::try_from(t.chars().count()).unwrap());
        let longest = lengths().max().filter(|_| is_bounded).unwrap_or(u32::MAX);
        let known = lengths().min().unwrap()..=longest;
        let condition = Condition::Length { least, greatest, negated, in_characters };
        let passed = stored.iter().filter(|v| condition.matches(v.as_ref())).count();
        match condition.verdict_of_lengths(DataType::Text, &known) {
            Verdict::Never => prop_assert_eq!(passed, 0, "{:?}", condition),
            Verdict::Always => prop_assert_eq!(passed, stored.len(), "{:?}", condition),
            Verdict::Sometimes => {}
        }
    }

    #[test]
    fn zone_maps_of_text_never_lie(
        texts in prop::collection::vec("[ab]{0,3}", 1..5),
        constant in "[ab]{0,3}",
        pattern in "[ab]{0,2}%?",
        operator in 0usize..6,
        negated in any::<bool>(),
        knows_greatest in any::<bool>(),
    ) {
        let stored: Vec<Value> = texts.iter().map(|t| Value::from(t.as_str())).collect();
        let zone = Zone {
            least: stored.iter().min().unwrap().as_ref(),
            greatest: stored.iter().max().map(Value::as_ref).filter(|_| knows_greatest),
            null_count: 0,
        };
        let pattern = Arc::new(Pattern::like(&pattern, None, false).unwrap());
        let conditions = [
            condition(operator, DataType::Text, &Value::from(constant.as_str())).unwrap(),
            Condition::one_of(DataType::Text, &[Value::from(constant.as_str())], negated),
            Condition::pattern(&pattern, negated),
        ];
        for condition in conditions {
            let passed = stored.iter().filter(|v| condition.matches(v.as_ref())).count();
            match condition.verdict(DataType::Text, &zone, None, stored.len()) {
                Verdict::Never => prop_assert_eq!(passed, 0, "{:?}", condition),
                Verdict::Always => prop_assert_eq!(passed, stored.len(), "{:?}", condition),
                Verdict::Sometimes => {}
            }
            if let Condition::TextRange { negated: false, .. } = &condition {
                let both = condition.intersect(&condition);
                prop_assert_eq!(both, Some(condition.clone()));
            }
        }
    }
}

/// The folding is Unicode's simple one, which regular expressions go by as well.
#[test]
fn letters_fold_as_unicode_says() {
    use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

    // What letters there are differs between versions of Unicode: those that both know.
    let known = regex::Regex::new(r"^\P{Cn}$").unwrap();
    for c in
        ('\u{0}'..=char::MAX).filter(|c| c.is_alphabetic() || esker_format::case::fold(*c) != *c)
    {
        if !known.is_match(c.encode_utf8(&mut [0; 4])) {
            continue;
        }
        let mut same = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
        same.try_case_fold_simple().unwrap();
        let folded = esker_format::case::fold(c);
        let all = same.iter().flat_map(|range| range.start()..=range.end());
        let all: Vec<char> = all.collect();
        assert!(all.contains(&folded), "{c:?} folds to {folded:?}, not among {all:?}");
        assert!(
            all.iter().all(|other| esker_format::case::fold(*other) == folded),
            "{c:?}: {all:?}"
        );
    }
}
