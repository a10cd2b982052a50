//! Tokens and configurations of servers, looked after from the shell.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test outside the engine, on real files"
)]

use crate::sandbox::Sandbox;

#[test]
fn tokens_are_made_listed_rotated_and_removed() {
    let sandbox = Sandbox::new("tokens");
    let (code, error) = sandbox.fails(&["token", "list", "db"]);
    assert!(code == 3 && error.contains("no directory db"), "{code} {error}");
    sandbox.ok(&["sql", "db", "CREATE TABLE t (id i64 PRIMARY KEY)"]);
    let create = ["token", "create", "db", "--name", "loader", "--scope", "write:shop/orders"];
    let text = sandbox.ok(&create);
    let id = text[4..20].to_owned();
    assert!(text.starts_with("esk_") && text.len() == 86, "{text}");
    let listed = sandbox.ok(&["token", "list", "db"]);
    assert!(listed.contains(&id) && listed.contains("write:shop/orders"), "{listed}");
    assert!(
        !listed.contains(&text[21..85]) && !sandbox.read("db/tokens.json").contains(&text[21..])
    );
    let new = sandbox.ok(&["token", "rotate", "db", &id]);
    assert_ne!(new, text);
    let listed = sandbox.ok(&["token", "list", "db"]);
    assert!(!listed.contains(&id) && listed.contains(&new[4..20]), "{listed}");
    sandbox.ok(&["token", "remove", "db", &new[4..20]]);
    assert_eq!(sandbox.ok(&["token", "list", "db"]), "");
    let (code, error) = sandbox.fails(&["token", "remove", "db", &id]);
    assert!(code == 3 && error.contains(&id), "{code} {error}");
    let (code, error) = sandbox.fails(&["token", "create", "db", "--name", "x", "--scope", "reed"]);
    assert!(code == 2 && error.contains("expected a scope such as read"), "{code} {error}");
}

#[test]
fn a_directory_with_a_token_can_be_made_a_database() {
    let sandbox = Sandbox::new("tokens-first");
    std::fs::create_dir(sandbox.0.join("new")).unwrap();
    let text = sandbox.ok(&["token", "create", "new", "--name", "me", "--scope", "admin"]);
    assert!(text.starts_with("esk_"), "{text}");
    sandbox.ok(&["sql", "new", "CREATE TABLE t (id i64 PRIMARY KEY)"]);
}

#[test]
fn a_configuration_is_checked() {
    let sandbox = Sandbox::new("config");
    sandbox.write("defaults.toml", sandbox.ok(&["config", "show"]));
    let checked = sandbox.ok(&["config", "check", "defaults.toml"]);
    assert_eq!(checked, "defaults.toml: no problem found\n");
    sandbox.write("wrong.toml", "[http]\nlistn = '127.0.0.1:80'\n");
    let (code, error) = sandbox.fails(&["config", "check", "wrong.toml"]);
    let expected = "error: wrong.toml: unknown key \"http.listn\"; did you mean \"http.listen\"?\n";
    assert_eq!((code, error.as_str()), (2, expected));
}
