use super::*;

#[test]
fn options_are_read_in_any_order_and_others_refused() {
    let usual = Options { cycles: None, seed: 1, are_streams: false, plants: false };
    assert_eq!(Options::parse(&[]), Ok(usual));
    let all = Options { cycles: Some(20), seed: 7, are_streams: true, plants: true };
    assert_eq!(
        Options::parse(&["--planted", "--streams", "--seed", "7", "--cycles", "20"]),
        Ok(all)
    );
    let wrong: [&[&str]; 4] = [&["--cycles"], &["--cycles", "x"], &["--seed", "-1"], &["--what"]];
    for words in wrong {
        let error = Options::parse(words).unwrap_err();
        assert!(error.contains("usage: kill_server"), "{words:?}: {error}");
    }
}
