use std::collections::BTreeSet;

use super::*;

fn of_file(text: &str) -> Result<Config, String> {
    Sources { file: Some(("f.toml", text)), ..Sources::default() }.read()
}

fn of_flags(flags: &[(&'static str, &str)]) -> Result<Config, String> {
    let flags: Vec<_> = flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
    Sources { flags: &flags, ..Sources::default() }.read()
}

#[allow(clippy::disallowed_methods, reason = "a document of the project, not of a database")]
#[test]
fn the_reference_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let expected = document();
    if written != expected && std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, &expected).unwrap();
        return;
    }
    assert!(written == expected, "run again with UPDATE_DOCUMENTS=1 to write {path}");
}

#[test]
fn what_a_key_writes_it_reads() {
    let default = Config::default();
    let mut config = default.clone();
    for key in KEYS {
        let text = (key.get)(&default);
        (key.set)(&mut config, &text).unwrap_or_else(|e| panic!("{}: {e}", key.name));
    }
    assert_eq!(config, default);
    let names: BTreeSet<_> = KEYS.iter().map(Key::flag).collect();
    let variables: BTreeSet<_> = KEYS.iter().map(Key::variable).collect();
    assert_eq!((names.len(), variables.len()), (KEYS.len(), KEYS.len()), "names are distinct");
    assert_eq!(of_file(&example()), Ok(default), "the example is the defaults");
}

#[test]
fn flags_weigh_more_than_variables_and_these_more_than_the_file() {
    let variables = [
        ("ESKER_SLOW_QUERY".to_owned(), "2s".to_owned()),
        ("ESKER_HTTP_LISTEN".to_owned(), "127.0.0.1:2".to_owned()),
        ("PATH".to_owned(), "x".to_owned()),
        ("ESKER_TOKEN".to_owned(), "esk_1_2".to_owned()),
        ("ESKER_DATABASE".to_owned(), "shop".to_owned()),
    ];
    let file = "slow_query = '1s'\nthreads = 3\nmemory = true\n[http]\nlisten = '127.0.0.1:1'";
    let flags = [("slow_query", "3s".to_owned())];
    let sources = Sources { file: Some(("f", file)), variables: &variables, flags: &flags };
    let config = sources.read().unwrap();
    assert_eq!((config.threads, config.slow_query.as_secs(), config.memory), (3, 3, true));
    assert_eq!(config.http_listen.map(|a| a.port()), Some(2));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        ("slow_qery = '1s'", "f.toml: unknown key \"slow_qery\"; did you mean \"slow_query\"?"),
        (
            "[http]\nlisen = 'x'",
            "f.toml: unknown key \"http.lisen\"; did you mean \"http.listen\"?",
        ),
        (
            "slow_query = 5",
            "f.toml: slow_query: expected a time such as 500ms, 30s, 5m or 1h, found \"5\"",
        ),
        ("memory = 'yes'", "f.toml: memory: expected true or false, found \"yes\""),
        ("threads = -1", "f.toml: threads: expected a number, found \"-1\""),
        (
            "durability = 'async'",
            "f.toml: durability: expected sync, or a time; expected a time such as 500ms, 30s, 5m \
             or 1h, found \"async\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(of_file(text).unwrap_err(), expected);
    }
    for key in ["connections_max", "request_bytes_max", "header_bytes_max"] {
        assert_eq!(of_flags(&[(key, "0")]).unwrap_err(), format!("{key}: expected at least 1"));
    }
    let cors = [
        ("https://app.example.com/", "--http-cors-origins: expected an origin without a path"),
        ("app.example.com", "--http-cors-origins: expected an origin such as https://app.example"),
    ];
    for (origins, expected) in cors {
        let error = of_flags(&[("http.cors_origins", origins)]).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let any = ("http.cors_origins", "*");
    assert!(of_flags(&[any]).is_ok());
    for flags in
        [&[("http.cors_credentials", "true")][..], &[any, ("http.cors_credentials", "true")]]
    {
        let error = of_flags(flags).unwrap_err();
        assert!(error.starts_with("http.cors_credentials: expected origins in"), "{error}");
    }
    let error = of_flags(&[any, ("trust_local", "true")]).unwrap_err();
    assert!(error.starts_with("http.cors_origins: expected a list of origins"), "{error}");
    assert!(of_flags(&[("threads", "1024")]).is_ok());
    assert_eq!(of_flags(&[("threads", "1025")]).unwrap_err(), "threads: expected 1024 at most");
    assert!(of_file("= 1").unwrap_err().starts_with("f.toml: "));
    let variables = [("ESKER_SLOW_QUREY".to_owned(), "1s".to_owned())];
    let error = Sources { variables: &variables, ..Sources::default() }.read().unwrap_err();
    assert_eq!(error, "unknown variable ESKER_SLOW_QUREY; did you mean \"ESKER_SLOW_QUERY\"?");
}

#[test]
fn other_machines_are_not_served_in_the_clear_unless_asked() {
    for address in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
        for key in ["wire.listen", "resp.listen", "http.listen"] {
            let error = of_flags(&[(key, address)]).unwrap_err();
            assert!(error.contains("without encryption"), "{error}");
            assert!(of_flags(&[(key, address), ("insecure_listen", "true")]).is_ok());
            let tls = [(key, address), ("tls.certificate", "c.pem"), ("tls.key", "k.pem")];
            assert!(of_flags(&tls).is_ok());
        }
    }
    assert!(of_flags(&[("http.listen", "[::1]:80")]).is_ok());
    assert!(of_flags(&[("tls.key", "k.pem")]).is_err());
    assert!(of_flags(&[("wire.listen", "off"), ("http.listen", "off")]).is_err());
}
