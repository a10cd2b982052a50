//! Reading lines, with history and completion.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode,
    KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, ValidationResult, Validator,
    default_emacs_keybindings,
};

use super::commands;
use super::session::trailing;
use super::words::Words;
use crate::failure::{Failure, Result};

/// Lines that are remembered.
const HISTORY_LINES: usize = 10_000;
const MENU: &str = "completion";

/// What was typed.
pub(super) enum Input {
    Line(String),
    /// Ctrl-C.
    Cancelled,
    /// Ctrl-D.
    End,
}

/// The terminal.
pub(super) struct Editor {
    lines: Reedline,
    /// What is open at the end of what has been typed, as a character; 0 for nothing.
    open: Arc<AtomicU32>,
}

impl Editor {
    pub(super) fn new(words: Arc<Mutex<Words>>, colors: bool) -> Result<Self> {
        let open = Arc::<AtomicU32>::default();
        let mut keys = default_emacs_keybindings();
        let complete = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
        let complete = ReedlineEvent::UntilFound(complete);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
        let menu = Box::new(ColumnarMenu::default().with_name(MENU));
        let mut editor = Reedline::create()
            .with_completer(Box::new(NameCompleter(words)))
            .with_menu(ReedlineMenu::EngineCompleter(menu))
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_validator(Box::new(Semicolon(Arc::clone(&open))))
            .with_ansi_colors(colors)
            .with_quick_completions(true);
        // Without a place for it, lines are forgotten at the end.
        if let Some(path) = history_path()
            && let Ok(history) = FileBackedHistory::with_file(HISTORY_LINES, path)
        {
            editor = editor.with_history(Box::new(history));
        }
        Ok(Self { lines: editor, open })
    }

    pub(super) fn read(&mut self, is_in_transaction: bool) -> Result<Input> {
        self.open.store(0, Ordering::Relaxed);
        let read = self.lines.read_line(&Sign { open: Arc::clone(&self.open), is_in_transaction });
        // Written now: a terminal that is closed loses no line. Without a file for it, the line is
        // remembered until the end.
        let _ = self.lines.sync_history();
        match read {
            Ok(Signal::Success(line)) => Ok(Input::Line(line)),
            Ok(Signal::CtrlD) => Ok(Input::End),
            Ok(_) => Ok(Input::Cancelled),
            Err(e) => Err(Failure::system(format!("read from the terminal: {e}"))),
        }
    }

    /// Puts a text into the next line.
    pub(super) fn insert(&mut self, text: &str) {
        self.lines.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
    }
}

/// Beside what other programs remember about their user.
fn history_path() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("esker/history"))
}

struct NameCompleter(Arc<Mutex<Words>>);

impl Completer for NameCompleter {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, found) = words.complete(line, position);
        let suggest = |value: String| Suggestion {
            append_whitespace: !value.ends_with('('),
            value,
            span: Span::new(start, position),
            ..Suggestion::default()
        };
        CompletionResult::fresh(found.into_iter().map(suggest).collect::<Vec<_>>())
    }
}

/// A statement is read until its semicolon; a command ends with its line. Notes what is open.
struct Semicolon(Arc<AtomicU32>);

impl Validator for Semicolon {
    fn validate(&self, line: &str) -> ValidationResult {
        let text = line.trim();
        let done = text.is_empty()
            || commands::is_command(text)
            || esker_sql::is_complete(text)
            || trailing(text).is_some();
        let open = if done { None } else { esker_sql::open_quote(line) };
        self.0.store(open.map_or(0, u32::from), Ordering::Relaxed);
        if done { ValidationResult::Complete } else { ValidationResult::Incomplete }
    }
}

struct Sign {
    open: Arc<AtomicU32>,
    is_in_transaction: bool,
}

impl Prompt for Sign {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "esker".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        if self.is_in_transaction { "*> ".into() } else { "> ".into() }
    }

    /// As wide as what the first line begins with.
    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        let open = char::from_u32(self.open.load(Ordering::Relaxed)).filter(|open| *open != '\0');
        let star = if self.is_in_transaction { " " } else { "" };
        format!("    {star}{}> ", open.unwrap_or(' ')).into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!(" ({}) ", search.term).into()
    }
}
