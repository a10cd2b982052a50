//! Window functions: `OVER`, the clause `WINDOW`, and frames.

use esker_query::model::{
    Aggregate, Expr, Frame, FrameBound, FrameExclusion, FrameOffset, FrameUnits, Window,
    WindowCall, WindowFunction,
};
use sqlparser::ast;
use sqlparser::keywords::Keyword as K;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use crate::dialect::{MADE_NAME, is_word};
use crate::expression::Names;
use crate::select::order_keys;
use crate::statement::unsupported;
use crate::{Error, Result, interval};

/// What is left out of frames, by the words that the grammar does not know.
const EXCLUSIONS: [(&[&str], FrameExclusion); 4] = [
    (&["CURRENT", "ROW"], FrameExclusion::CurrentRow),
    (&["NO", "OTHERS"], FrameExclusion::NoOthers),
    (&["GROUP"], FrameExclusion::Group),
    (&["TIES"], FrameExclusion::Ties),
];

/// Takes `EXCLUDE …` out of frames, and notes it in the name of the window, or in an empty one.
pub(crate) fn take_exclusions(tokens: &mut Vec<TokenWithSpan>) {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    for at in (0..tokens.len()).rev() {
        if !tokens.get(at).is_some_and(|token| is_word(&token.token, "EXCLUDE")) {
            continue;
        }
        let rest = tokens.iter().enumerate().skip(at + 1).filter(|(_, token)| !is_blank(token));
        let next: Vec<(usize, &Token)> = rest.take(3).map(|(i, t)| (i, &t.token)).collect();
        let found = EXCLUSIONS.iter().find(|(words, _)| {
            let are_there = words.iter().zip(&next).all(|(word, (_, t))| is_word(t, word));
            are_there && next.get(words.len()).is_some_and(|(_, t)| **t == Token::RParen)
        });
        let Some((words, _)) = found else { continue };
        let end = next.get(words.len()).map_or(at + 1, |(end, _)| *end);
        let Some(open) = opening(tokens, at) else { continue };
        tokens.drain(at..end);
        let text = format!("EXCLUDE {} ", words.join(" "));
        let first = tokens.iter().skip(open + 1).position(|token| !is_blank(token));
        let first = first.and_then(|first| tokens.get_mut(open + 1 + first));
        match first.map(|first| &mut first.token) {
            Some(Token::Word(word)) if word.keyword == K::NoKeyword => {
                word.value = text + &word.value;
                word.quote_style = Some(MADE_NAME);
            }
            _ => {
                let (quote_style, keyword) = (Some(MADE_NAME), K::NoKeyword);
                let name = Token::Word(Word { value: text, quote_style, keyword });
                let span = tokens.get(open).map(|token| token.span);
                let span = span.unwrap_or(sqlparser::tokenizer::Span::empty());
                tokens.insert(open + 1, TokenWithSpan { token: name, span });
            }
        }
    }
}

/// The parenthesis in which a token stands.
fn opening(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    let mut closed = 0usize;
    for (i, token) in tokens.iter().enumerate().take(at).rev() {
        match token.token {
            Token::RParen => closed += 1,
            Token::LParen if closed == 0 => return Some(i),
            Token::LParen => closed -= 1,
            _ => {}
        }
    }
    None
}

/// The name of a window, and what its frame leaves out.
fn parted(name: &ast::Ident) -> (&str, Option<FrameExclusion>) {
    if name.quote_style != Some(MADE_NAME) {
        return (&name.value, None);
    }
    let parted = EXCLUSIONS.iter().find_map(|(words, exclusion)| {
        let words = format!("EXCLUDE {} ", words.join(" "));
        name.value.strip_prefix(&words).map(|rest| (rest, Some(*exclusion)))
    });
    parted.unwrap_or((&name.value, None))
}

impl Names {
    /// The same with the windows of a clause, each of which may begin with one before it.
    pub(crate) fn with_windows(mut self, named: &[ast::NamedWindowDefinition]) -> Result<Self> {
        for ast::NamedWindowDefinition(name, definition) in named {
            if self.window_named(&name.value).is_some() {
                let name = &name.value;
                return Err(Error::invalid(format!("WINDOW: two windows are called {name:?}")));
            }
            let window = match definition {
                ast::NamedWindowExpr::NamedWindow(other) => self.known_window(&other.value)?,
                ast::NamedWindowExpr::WindowSpec(spec) => self.window_of(spec)?,
            };
            self.windows.push((name.value.clone(), window));
        }
        Ok(self)
    }

    fn window_named(&self, name: &str) -> Option<&Window> {
        let mut windows = self.windows.iter();
        windows.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, window)| window)
    }

    fn known_window(&self, name: &str) -> Result<Window> {
        self.window_named(name).cloned().ok_or_else(|| {
            let known = self.windows.iter().map(|(known, _)| known.as_str());
            let near = esker_format::suggest::did_you_mean(name, known);
            Error::invalid(format!("OVER: no window {name:?} in the clause WINDOW{near}"))
        })
    }

    fn window_of(&self, spec: &ast::WindowSpec) -> Result<Window> {
        let (name, exclude) = spec.window_name.as_ref().map_or(("", None), parted);
        let mut window = match name {
            "" => Window::default(),
            name => self.known_window(name)?,
        };
        let refuse = |clause: &str| {
            Err(Error::invalid(format!("a window that begins with {name:?} has its {clause}")))
        };
        if !spec.partition_by.is_empty() {
            if !name.is_empty() {
                return refuse("PARTITION BY");
            }
            let keys = spec.partition_by.iter().map(|key| self.key(key));
            window.partition_by = keys.collect::<Result<_>>()?;
        }
        if !spec.order_by.is_empty() {
            if !window.order_by.is_empty() {
                return refuse("ORDER BY");
            }
            window.order_by = order_keys(&spec.order_by, None, self)?;
        }
        if window.frame.is_some() {
            return Err(Error::invalid(format!(
                "window {name:?} has a frame: write OVER {name} without parentheses, or leave the \
                 frame out of WINDOW"
            )));
        }
        let frame = spec.window_frame.as_ref();
        window.frame = frame.map(|frame| self.frame(frame, exclude)).transpose()?;
        if let (Some(_), None) = (exclude, &window.frame) {
            return Err(Error::invalid("EXCLUDE: expected ROWS, RANGE or GROUPS before it"));
        }
        Ok(window)
    }

    fn frame(&self, frame: &ast::WindowFrame, exclude: Option<FrameExclusion>) -> Result<Frame> {
        let units = match frame.units {
            ast::WindowFrameUnits::Rows => FrameUnits::Rows,
            ast::WindowFrameUnits::Range => FrameUnits::Range,
            ast::WindowFrameUnits::Groups => FrameUnits::Groups,
        };
        let start = self.bound(&frame.start_bound)?;
        let end = match &frame.end_bound {
            Some(bound) => self.bound(bound)?,
            None => FrameBound::CurrentRow,
        };
        Ok(Frame { units, start, end, exclude: exclude.unwrap_or_default() })
    }

    fn bound(&self, bound: &ast::WindowFrameBound) -> Result<FrameBound> {
        let offset = |expr: &ast::Expr| match expr {
            ast::Expr::Interval(interval) => Ok(match interval::whole_days_of(interval)? {
                Some((months, microseconds)) => FrameOffset::Interval { months, microseconds },
                None => FrameOffset::Value(self.interval(interval)?),
            }),
            expr => self.convert(expr).map(FrameOffset::Value),
        };
        Ok(match bound {
            ast::WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            ast::WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
            ast::WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
            ast::WindowFrameBound::Preceding(Some(expr)) => FrameBound::Preceding(offset(expr)?),
            ast::WindowFrameBound::Following(Some(expr)) => FrameBound::Following(offset(expr)?),
        })
    }

    /// A call over a window.
    pub(crate) fn windowed(&self, call: &ast::Function, over: &ast::WindowType) -> Result<Expr> {
        let over = match over {
            ast::WindowType::NamedWindow(name) => self.known_window(&name.value)?,
            ast::WindowType::WindowSpec(spec) => self.window_of(spec)?,
        };
        let ast::FunctionArguments::List(list) = &call.args else {
            return Err(unsupported("this call", call));
        };
        let name = call.name.to_string();
        let (mut nulls, mut others) = (call.null_treatment, 0);
        for clause in &list.clauses {
            match clause {
                ast::FunctionArgumentClause::IgnoreOrRespectNulls(given) => nulls = Some(*given),
                _ => others += 1,
            }
        }
        let ignores_nulls = nulls == Some(ast::NullTreatment::IgnoreNulls);
        let Some(function) = WindowFunction::from_name(&name) else {
            let Some(aggregate) = Aggregate::from_name(&name) else {
                return Err(no_window_function(&name));
            };
            let aggregate = self.aggregate(call, aggregate, list)?;
            let aggregate = match &call.filter {
                Some(filter) => aggregate.filtered(self.convert(filter)?),
                None => aggregate,
            };
            let (function, operands) = (WindowFunction::Aggregate, vec![aggregate]);
            let call = WindowCall { function, operands, ignores_nulls, over };
            return Ok(Expr::Window(Box::new(call)));
        };
        let extras = [
            ("FILTER", call.filter.is_some()),
            ("WITHIN GROUP", !call.within_group.is_empty()),
            ("DISTINCT", list.duplicate_treatment.is_some()),
            ("a clause inside the call", others > 0),
        ];
        if let Some((what, _)) = extras.iter().find(|(_, found)| *found) {
            return Err(Error::invalid(format!("{what} works with aggregates only: `{call}`")));
        }
        let operand = |argument: &ast::FunctionArg| match argument {
            ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => self.convert(expr),
            other => Err(unsupported("this argument", other)),
        };
        let operands = list.args.iter().map(operand).collect::<Result<_>>()?;
        Ok(Expr::Window(Box::new(WindowCall { function, operands, ignores_nulls, over })))
    }
}

/// The error for a call with OVER of what is no window function.
fn no_window_function(name: &str) -> Error {
    let aggregates = Aggregate::ALL.into_iter().map(Aggregate::name);
    let known = aggregates.chain(WindowFunction::names());
    let near = esker_format::suggest::did_you_mean(name, known);
    Error::invalid(format!("OVER: {name} is no window function and no aggregate{near}"))
}

/// The error for a window function without OVER.
pub(crate) fn expect_over(name: &str) -> Result<()> {
    match WindowFunction::from_name(name) {
        None => Ok(()),
        Some(function) => {
            let name = function.name();
            Err(Error::invalid(format!("{name} is a window function: write {name}(…) OVER (…)")))
        }
    }
}

/// Whether the grammar has read something in a window that was not written so.
pub(crate) fn is_as_written(call: &ast::Function) -> bool {
    match &call.over {
        Some(ast::WindowType::WindowSpec(spec)) => {
            spec.window_name.as_ref().is_none_or(|name| name.quote_style != Some(MADE_NAME))
        }
        _ => true,
    }
}
