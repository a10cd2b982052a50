//! `esker token create|list|rotate|remove DIR`.

use esker_server::auth::token::{NewToken, TokenStore};
use esker_vfs::Environment;

use crate::Console;
use crate::arguments::TokenCommand;
use crate::failure::{Failure, Result, Status};

fn store(directory: &std::path::Path) -> Result<TokenStore> {
    let environment = Environment::os();
    if !environment.files.exists(directory)? {
        let message = format!("no directory {}", directory.display());
        return Err(Failure::new(Status::NotFound, message));
    }
    Ok(TokenStore::open(&environment, Some(directory.to_owned()))?)
}

/// Makes a database of an empty directory: one that holds tokens alone would be taken for somebody
/// else's, and not be served.
fn become_database(directory: &std::path::Path) -> Result<()> {
    if Environment::os().files.list(directory)?.is_empty() {
        esker::Options::new().open(directory)?.close()?;
    }
    Ok(())
}

pub(crate) fn run(command: &TokenCommand, console: &mut Console<'_>) -> Result<()> {
    match command {
        TokenCommand::Create { dir, name, scopes, expires } => {
            let scopes = scopes.iter().map(|scope| scope.parse().map_err(Failure::usage));
            let scopes = scopes.collect::<Result<_>>()?;
            let new = NewToken { name: name.clone(), scopes, lifetime: *expires };
            let store = store(dir)?;
            become_database(dir)?;
            let (info, text) = store.create(&new)?;
            writeln!(console.err, "token {}: this is its text, which is kept nowhere:", info.id)?;
            writeln!(console.out, "{text}")?;
        }
        TokenCommand::Rotate { dir, id, grace } => {
            let (info, text) = store(dir)?.rotate(id, *grace)?;
            writeln!(console.err, "token {}: this is its text, which is kept nowhere:", info.id)?;
            writeln!(console.out, "{text}")?;
        }
        TokenCommand::Remove { dir, id } => {
            store(dir)?.remove(id)?;
            writeln!(console.err, "removed token {id}")?;
        }
        TokenCommand::List { dir } => {
            for token in store(dir)?.list() {
                let text = serde_json::to_string(&token);
                writeln!(console.out, "{}", text.map_err(|e| Failure::system(e.to_string()))?)?;
            }
        }
    }
    Ok(())
}
