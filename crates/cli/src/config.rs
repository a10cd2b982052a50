//! `esker config check FILE` and `esker config show`.

use esker_server::config::{Sources, example};
use esker_vfs::{Environment, OpenMode};

use crate::Console;
use crate::arguments::ConfigCommand;
use crate::failure::{Failure, Result};

pub(crate) fn run(command: &ConfigCommand, console: &mut Console<'_>) -> Result<()> {
    match command {
        ConfigCommand::Check { file } => {
            let text = read_text(file)?;
            let name = file.display().to_string();
            let sources = Sources { file: Some((&name, &text)), ..Sources::default() };
            sources.read().map_err(Failure::usage)?;
            writeln!(console.out, "{name}: no problem found")?;
        }
        ConfigCommand::Show => write!(console.out, "{}", example())?,
    }
    Ok(())
}

/// A file of text as a whole.
pub(crate) fn read_text(path: &std::path::Path) -> Result<String> {
    let file = Environment::os().files.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or_default()];
    file.read_exact_at(&mut bytes, 0)?;
    let wrong = |_| Failure::usage(format!("{}: expected text in UTF-8", path.display()));
    String::from_utf8(bytes).map_err(wrong)
}
