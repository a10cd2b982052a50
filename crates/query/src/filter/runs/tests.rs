use super::*;

/// Runs, of which the first starts at 0 and the last ends at the greatest code, too.
const RUNS: [&[(Key, Key)]; 8] = [
    &[],
    &[(0, 0)],
    &[(3, 7)],
    &[(0, 1), (255, 255)],
    &[(1, 2), (4, 4), (250, 255)],
    &[(1, 2), (4, 4), (6, 9), (11, 11)],
    &[(1, 1), (3, 3), (5, 5), (7, 7), (9, 200)],
    &[(0, 1), (3, 3), (5, 5), (7, 7), (9, 9), (11, 11), (13, 13), (250, 255)],
];

#[test]
fn codes_in_runs_are_kept_and_counted() {
    for len in [0, 1, 63, 64, 65, 8_192] {
        let bytes: Vec<u8> = (0..=u8::MAX).map(|i| i.wrapping_mul(7)).cycle().take(len).collect();
        let words: Vec<u16> = bytes.iter().map(|code| u16::from(*code)).collect();
        let long: Vec<u32> = bytes.iter().map(|code| u32::from(*code)).collect();
        for runs in RUNS {
            let passes = |code: &u8| {
                runs.iter().any(|(low, high)| (*low..=*high).contains(&Key::from(*code)))
            };
            let wanted = bytes.iter().filter(|code| passes(code)).count();
            assert_eq!(count(Data::U8(&bytes), runs), Some(wanted), "{len} {runs:?}");
            assert_eq!(count(Data::U16(&words), runs), Some(wanted), "{len} {runs:?}");
            assert_eq!(count(Data::U32(&long), runs), None);
            for data in [Data::U8(&bytes), Data::U16(&words), Data::U32(&long)] {
                for negated in [false, true] {
                    let mut mask = Mask::all(len);
                    assert!(keep(data, runs, negated, &mut mask));
                    let rows = bytes.iter().zip(0u32..);
                    let rows = rows.filter(|(code, _)| passes(code) != negated);
                    let rows: Vec<u32> = rows.map(|(_, row)| row).collect();
                    assert_eq!(mask.rows(), rows, "{len} {runs:?} {negated}");
                }
            }
        }
    }
    // Counters of bytes do not wrap around.
    let many = vec![1u8; 64 * 300 + 5];
    assert_eq!(count(Data::U8(&many), &[(1, 1)]), Some(many.len()));
    assert_eq!(count(Data::U8(&many), &[(0, 1)]), Some(many.len()));
}

#[test]
fn many_runs_are_left_to_a_table() {
    let runs: Vec<(Key, Key)> = (0..9).map(|i| (2 * i, 2 * i)).collect();
    let mut mask = Mask::all(3);
    assert!(!keep(Data::U8(&[0, 1, 2]), &runs, false, &mut mask) && mask.is_all());
    assert_eq!(count(Data::U8(&[0, 1, 2]), &runs), None);
}
