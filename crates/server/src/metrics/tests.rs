use super::*;

#[test]
fn durations_are_counted_up_to_each_bound() {
    let mut histogram = Histogram::default();
    for microseconds in [10, 50, 51, 999, 100_000_000] {
        histogram.add(microseconds * 1_000);
    }
    let counts: Vec<_> = histogram.cumulated().collect();
    assert_eq!(counts[0], (0.00005, 2));
    assert_eq!(counts[1], (0.0001, 3));
    assert_eq!(counts[4], (0.001, 4));
    assert_eq!((counts.last().unwrap().1, histogram.count), (4, 5), "the last is beyond all");
}
