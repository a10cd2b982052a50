//! Where values come from, and which one holds.

use std::collections::BTreeMap;

use esker_format::suggest::did_you_mean;

use super::Config;
use super::key::{KEYS, Key};

/// Variables of that form that are for other programs of the project.
const OTHERS: [&str; 3] = ["ESKER_DATABASE", "ESKER_SABOTAGE", "ESKER_TOKEN"];

/// Where a configuration comes from: what is later weighs more.
///
/// ```
/// use esker_server::config::Sources;
///
/// let file = "[http]\nlisten = \"127.0.0.1:8080\"\n";
/// let flags = [("slow_query", "250ms".to_owned())];
/// let sources = Sources { file: Some(("esker.toml", file)), flags: &flags, ..Sources::default() };
/// let config = sources.read()?;
/// assert_eq!(config.http_listen.map(|address| address.port()), Some(8080));
/// let sources = Sources { file: Some(("esker.toml", "slow_qery = '1s'")), ..Sources::default() };
/// let error = sources.read().unwrap_err();
/// assert_eq!(error, "esker.toml: unknown key \"slow_qery\"; did you mean \"slow_query\"?");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// The name and the text of a TOML file.
    pub file: Option<(&'a str, &'a str)>,
    /// Variables of the environment; those that do not begin with `ESKER_` are nothing to us.
    pub variables: &'a [(String, String)],
    /// Flags: the name of the key, and its value.
    pub flags: &'a [(&'a str, String)],
}

impl Sources<'_> {
    /// Puts all of it together and checks it.
    ///
    /// # Errors
    /// A message that names the source, the key, and what was expected.
    pub fn read(&self) -> Result<Config, String> {
        let mut config = Config::default();
        if let Some((name, text)) = self.file {
            let values = file_values(text).map_err(|e| format!("{name}: {e}"))?;
            for (key, value) in values {
                let known = known(&key).map_err(|e| format!("{name}: {e}"))?;
                (known.set)(&mut config, &value).map_err(|e| format!("{name}: {key}: {e}"))?;
            }
        }
        for (variable, value) in self.variables {
            if !variable.starts_with("ESKER_") || OTHERS.contains(&variable.as_str()) {
                continue;
            }
            let known = KEYS.iter().find(|key| key.variable() == *variable).ok_or_else(|| {
                let names: Vec<_> = KEYS.iter().map(Key::variable).collect();
                let near = did_you_mean(variable, names.iter().map(String::as_str));
                format!("unknown variable {variable}{near}")
            })?;
            (known.set)(&mut config, value).map_err(|e| format!("{variable}: {e}"))?;
        }
        for (key, value) in self.flags {
            let known = known(key)?;
            (known.set)(&mut config, value).map_err(|e| format!("--{}: {e}", known.flag()))?;
        }
        config.check()?;
        Ok(config)
    }
}

fn known(name: &str) -> Result<&'static Key, String> {
    let names = KEYS.iter().map(|key| key.name);
    KEYS.iter()
        .find(|key| key.name == name)
        .ok_or_else(|| format!("unknown key {name:?}{}", did_you_mean(name, names)))
}

/// The keys of a file, those in tables with their names in front, with values as text.
fn file_values(text: &str) -> Result<BTreeMap<String, String>, String> {
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.to_string())?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                for (key, value) in inner {
                    let key = format!("{name}.{key}");
                    let text = value_text(&key, &value)?;
                    values.insert(key, text);
                }
            }
            value => {
                let text = value_text(&name, &value)?;
                values.insert(name, text);
            }
        }
    }
    Ok(values)
}

fn value_text(key: &str, value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(switch) => Ok(switch.to_string()),
        other => {
            known(key)?;
            Err(format!(
                "{key}: expected a text, a number or true or false, found {}",
                other.type_str()
            ))
        }
    }
}
