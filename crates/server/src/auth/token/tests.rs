use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use esker_vfs::Environment;
use esker_vfs::sim::{CrashChoice, Options as SimOptions, Simulation};

use super::*;
use crate::session::Level;
use crate::{Code, Result};

const DIRECTORY: &str = "server";

fn store(environment: &Environment) -> Result<TokenStore> {
    environment.files.create_dir_all(Path::new(DIRECTORY))?;
    TokenStore::open(environment, Some(PathBuf::from(DIRECTORY)))
}

fn new_token(scopes: &[&str]) -> NewToken {
    let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
    NewToken { name: "tests".to_owned(), scopes, lifetime: None }
}

#[test]
fn a_token_opens_what_its_scopes_say() -> Result<()> {
    let environment = Simulation::new(1, SimOptions::default()).environment();
    let tokens = store(&environment)?;
    let (info, text) = tokens.create(&new_token(&["read:shop", "write:shop/orders"]))?;
    assert!(text.starts_with("esk_") && text.len() == 4 + 16 + 1 + 64, "{text}");
    let principal = tokens.authenticate(&text)?;
    assert_eq!((&*principal.id, &*principal.name), (info.id.as_str(), "tests"));
    let (shop, other) = ("shop".parse().unwrap(), "other".parse().unwrap());
    assert!(principal.may(Level::Read, Some(&shop), Some("stock")));
    assert!(principal.may(Level::Write, Some(&shop), Some("orders")));
    assert!(principal.may(Level::Read, Some(&shop), None));
    assert!(!principal.may(Level::Write, Some(&shop), Some("stock")));
    assert!(!principal.may(Level::Write, Some(&shop), None));
    assert!(!principal.may(Level::Admin, Some(&shop), Some("orders")));
    assert!(!principal.may(Level::Read, Some(&other), Some("orders")));
    assert!(!principal.may(Level::Read, None, None));
    assert!(principal.may_enter(&shop) && !principal.may_enter(&other));
    Ok(())
}

#[test]
fn a_scope_may_be_of_all_tables_of_a_schema() -> Result<()> {
    let environment = Simulation::new(9, SimOptions::default()).environment();
    let tokens = store(&environment)?;
    let (_, text) = tokens.create(&new_token(&["write:shop/app.*"]))?;
    let principal = tokens.authenticate(&text)?;
    let shop = "shop".parse().unwrap();
    let may = |table| principal.may(Level::Write, Some(&shop), table);
    assert!(may(Some("app.users")) && may(Some("app.a.b")));
    assert!(!may(Some("apple.users")) && !may(Some("app")) && !may(Some("users")) && !may(None));
    Ok(())
}

#[test]
fn what_is_stored_opens_nothing_and_survives_a_crash() -> Result<()> {
    let simulation = Simulation::new(2, SimOptions::default());
    let (info, text) = store(&simulation.environment())?.create(&new_token(&["read"]))?;
    let image = simulation.crash_image(CrashChoice::KeepNone);
    let stored = image.read("server/tokens.json").expect("it was durable before it was answered");
    let stored = String::from_utf8(stored).unwrap();
    assert!(stored.contains(&info.id) && !stored.contains(&text[21..]));
    let again = Simulation::from_image(&image, 3, SimOptions::default());
    assert_eq!(&*store(&again.environment())?.authenticate(&text)?.id, info.id.as_str());
    Ok(())
}

#[test]
fn unknown_wrong_and_ended_tokens_get_the_same_answer() -> Result<()> {
    let environment = Simulation::new(4, SimOptions::default()).environment();
    let tokens = store(&environment)?;
    let (_, text) = tokens.create(&new_token(&["admin"]))?;
    let ended = NewToken { lifetime: Some(Duration::ZERO), ..new_token(&["admin"]) };
    let (_, ended) = tokens.create(&ended)?;
    let last = if text.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &text[..text.len() - 1]);
    let mut messages = Vec::new();
    for text in [wrong.as_str(), &ended, "", "esk_", "esk__", "letmein", &text[..20]] {
        let error = tokens.authenticate(text).unwrap_err();
        assert_eq!(error.code(), Code::Unauthenticated, "{text:?}");
        messages.push(error.to_string());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1);
    Ok(())
}

#[test]
fn a_rotated_token_holds_until_its_grace_is_over() -> Result<()> {
    let environment = Simulation::new(5, SimOptions::default()).environment();
    let tokens = store(&environment)?;
    let (old, old_text) = tokens.create(&new_token(&["write:shop"]))?;
    let (new, new_text) = tokens.rotate(&old.id, Duration::from_secs(60))?;
    assert_eq!((&new.name, &new.scopes), (&old.name, &old.scopes));
    assert_eq!(&*tokens.authenticate(&old_text)?.id, old.id.as_str());
    assert_eq!(&*tokens.authenticate(&new_text)?.id, new.id.as_str());
    let (last, last_text) = tokens.rotate(&new.id, Duration::ZERO)?;
    assert!(tokens.authenticate(&new_text).is_err());
    assert_eq!(&*tokens.authenticate(&last_text)?.id, last.id.as_str());
    tokens.remove(&last.id)?;
    assert!(tokens.authenticate(&last_text).is_err());
    assert_eq!(tokens.remove(&last.id).unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[test]
fn bad_input_says_what_was_expected_and_damage_is_an_error() -> Result<()> {
    let simulation = Simulation::new(6, SimOptions::default());
    let tokens = store(&simulation.environment())?;
    let nameless = NewToken { name: String::new(), ..new_token(&["read"]) };
    assert_eq!(tokens.create(&nameless).unwrap_err().code(), Code::InvalidRequest);
    assert_eq!(tokens.create(&new_token(&[])).unwrap_err().code(), Code::InvalidRequest);
    for text in ["", "reed", "read:", "read:UPPER", "read:..", "read:a/", "read:/t"] {
        assert!(text.parse::<Scope>().is_err(), "{text:?}");
    }
    assert!(tokens.is_empty());
    tokens.create(&new_token(&["read"]))?;
    let mut image = simulation.crash_image(CrashChoice::KeepAll);
    assert!(image.truncate("server/tokens.json", 20));
    let again = Simulation::from_image(&image, 7, SimOptions::default());
    assert_eq!(store(&again.environment()).unwrap_err().code(), Code::Damaged);
    Ok(())
}

/// A connection that was idle while another program removed its token did one more request.
#[test]
fn a_token_that_was_removed_long_ago_opens_nothing_once_more() -> Result<()> {
    let simulation = Simulation::new(9, SimOptions::default());
    let tokens = Arc::new(store(&simulation.environment())?);
    let (info, _) = tokens.create(&new_token(&["read"]))?;
    let standing = Standing::new(&info.id);
    tokens.expect_valid(&standing)?;
    store(&simulation.environment())?.remove(&info.id)?;
    simulation.advance_clock(Duration::from_secs(2));
    assert_eq!(tokens.expect_valid(&standing).unwrap_err().code(), Code::Unauthenticated);
    Ok(())
}

#[test]
fn tokens_hold_while_their_file_cannot_be_read() -> Result<()> {
    let simulation = Simulation::new(8, SimOptions::default());
    let environment = simulation.environment();
    let tokens = store(&environment)?;
    let (info, text) = tokens.create(&new_token(&["read"]))?;
    let directory = Path::new(DIRECTORY);
    crate::file::replace_file(&environment, directory, "new", "tokens.json", b"{")?;
    for _ in 0..2 {
        simulation.advance_clock(Duration::from_secs(2));
        assert_eq!(&*tokens.authenticate(&text)?.id, info.id.as_str());
        simulation.advance_clock(Duration::from_secs(2));
        assert_eq!(tokens.authenticate("esk_1_2").unwrap_err().code(), Code::Unauthenticated);
    }
    Ok(())
}

/// Another program made it, and its user does not wait a second.
#[test]
fn a_token_that_was_just_made_is_known_at_once() -> Result<()> {
    let simulation = Simulation::new(10, SimOptions::default());
    let (tokens, others) = (store(&simulation.environment())?, store(&simulation.environment())?);
    let (info, text) = others.create(&new_token(&["read"]))?;
    assert_eq!(&*tokens.authenticate(&text)?.id, info.id.as_str());
    // Guesses do not keep the server reading.
    let (_, later) = others.create(&new_token(&["read"]))?;
    assert!(tokens.authenticate(&later).is_err());
    simulation.advance_clock(Duration::from_millis(30));
    assert!(tokens.authenticate(&later).is_ok());
    Ok(())
}
