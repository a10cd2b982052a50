//! `cargo xtask quickstart [--serve | --streams | --picture FILE]`: the example data, loaded and
//! asked, served, as a stream of events, or shown as a picture.

use std::fmt::Write;
use std::path::Path;

use crate::program::{Program, root};
use crate::{Error, ErrorKind, Result};

/// What runs the commands of a page of the guide that serves the example data, but for the name of
/// the test; it shows them, and what they answer.
const SERVED: [&str; 6] =
    ["test", "--quiet", "--locked", "--package=esker-cli", "--test=suite", "--"];
/// Of `docs/guide/server.md`, and of `docs/guide/streams.md`.
const PAGES: [(&str, &str); 2] = [("--serve", "server_guide::"), ("--streams", "streams_guide::")];
/// The question up to which the picture shows what the program prints.
const SHOWN_UNTIL: &str = "(4)";
const LINE_HEIGHT: usize = 17;
const CHARACTER_WIDTH: usize = 8;
const MARGIN: usize = 16;

/// Runs `esker quickstart`; with `--serve` or `--streams` on free ports, with the commands of the
/// guide, until they are done; with `--picture` into a file as an SVG.
///
/// # Errors
/// When the arguments are others, it does not build, a command shows what the guide does not, or
/// the file cannot be written.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = ["run", "--release", "--locked", "--bin", "esker", "--", "quickstart"];
    match arguments {
        [] => Program::cargo(&program).run(),
        [page] if PAGES.iter().any(|(known, _)| known == page) => {
            let test = PAGES.iter().filter(|(known, _)| known == page).map(|(_, test)| *test);
            let shown = ["--nocapture", "--test-threads=1"];
            Program::cargo(&SERVED.into_iter().chain(test).chain(shown).collect::<Vec<_>>()).run()
        }
        [picture, file] if picture == "--picture" => {
            let output = in_empty_directory()?;
            let text = String::from_utf8_lossy(&output);
            let failed = |e: std::io::Error| {
                Error::new(ErrorKind::NotStarted, format!("cannot write {file}: {e}"))
            };
            std::fs::write(root().join(file), picture_of(&text)).map_err(failed)
        }
        _ => Err(Error::usage("expected nothing, --serve, --streams, or --picture FILE")),
    }
}

/// What the program prints in a directory without a database.
fn in_empty_directory() -> Result<Vec<u8>> {
    let directory = std::env::temp_dir().join(format!("esker-picture-{}", std::process::id()));
    let failed = |e: std::io::Error| {
        Error::new(ErrorKind::NotStarted, format!("cannot use {}: {e}", directory.display()))
    };
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let program = ["run", "--release", "--locked", "--bin", "esker", "--manifest-path"];
    let manifest = root().join("Cargo.toml");
    let output = Program::cargo(&program)
        .arguments(&[&*manifest.to_string_lossy(), "--", "quickstart"])
        .directory(Path::new(&directory))
        .output();
    std::fs::remove_dir_all(&directory).map_err(failed)?;
    output
}

/// The first lines of a text as a picture of a terminal.
fn picture_of(text: &str) -> String {
    let shown = text.lines().take_while(|line| !line.starts_with(SHOWN_UNTIL));
    let lines: Vec<&str> = std::iter::once("$ esker quickstart").chain(shown).collect();
    let columns = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let (width, height) =
        (columns * CHARACTER_WIDTH + 2 * MARGIN, lines.len() * LINE_HEIGHT + 2 * MARGIN);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#16191d\"/>\n\
         <g fill=\"#d7dae0\" xml:space=\"preserve\">\n"
    );
    for (number, line) in (1..).zip(&lines) {
        let y = MARGIN + number * LINE_HEIGHT - 4;
        let line = line.replace('&', "&amp;").replace('<', "&lt;");
        _ = writeln!(picture, "<text x=\"{MARGIN}\" y=\"{y}\">{line}</text>");
    }
    picture + "</g>\n</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::picture_of;

    #[test]
    fn a_picture_has_the_first_lines_as_they_are() {
        let picture = picture_of("a < b & c\n\n  (1) first\n(4) last\nmore\n");
        assert!(picture.contains(">a &lt; b &amp; c</text>"), "{picture}");
        assert!(picture.contains(">  (1) first</text>") && !picture.contains("last"), "{picture}");
        assert_eq!(picture.matches("<text").count(), 4);
    }
}
