//! A regular expression matched byte by byte: whatever the expression, between bytes it can be seen
//! whether the statement is to end.
//!
//! A lazy automaton takes one step for each byte and makes its states on the way. Where it cannot
//! go on, which is at a word boundary beside other characters than ASCII, the automaton that it is
//! made of is followed, all of whose states are looked at for each byte.

use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::Result;
use crate::meter::Meter;

/// So many states are looked at as fast as one byte is worked on elsewhere.
const STATES_PER_BYTE: usize = 8;

/// The automata of an expression.
#[derive(Debug)]
pub(super) struct Stepped {
    nfa: NFA,
    dfa: DFA,
    /// What searches that have ended leave to the next.
    caches: Mutex<Vec<Cache>>,
}

impl Stepped {
    /// # Errors
    /// Why the expression is none.
    pub(super) fn new(expression: &str, any_case: bool) -> std::result::Result<Self, String> {
        let syntax = syntax::Config::new().case_insensitive(any_case).utf8(false);
        let config = thompson::Config::new().utf8(false).which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new().syntax(syntax).configure(config).build(expression);
        let nfa = nfa.map_err(|e| e.to_string())?;
        let config = Config::new().unicode_word_boundary(true).skip_cache_capacity_check(true);
        let dfa = Builder::new().configure(config).build_from_nfa(nfa.clone());
        Ok(Self { nfa, dfa: dfa.map_err(|e| e.to_string())?, caches: Mutex::default() })
    }

    /// How many states may be looked at for a byte.
    pub(super) fn state_count(&self) -> usize {
        self.nfa.states().len()
    }

    /// Whether it is found in a text.
    ///
    /// # Errors
    /// When the statement is to end.
    pub(super) fn matches(&self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        let mut cache = self.cache();
        let found = self.matches_lazily(text, &mut cache, meter);
        self.give_back(cache);
        match found? {
            Some(found) => Ok(found),
            None => self.matches_anyhow(text, meter),
        }
    }

    /// A place for states, which [`Stepped::give_back`] takes again: for many short texts.
    pub(super) fn cache(&self) -> Cache {
        let cache = self.caches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        cache.unwrap_or_else(|| self.dfa.create_cache())
    }

    pub(super) fn give_back(&self, cache: Cache) {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
    }

    /// Whether it is found in a short text; `None` where the automaton cannot go on.
    pub(super) fn matches_short(&self, text: &[u8], cache: &mut Cache) -> Option<bool> {
        let input = Input::new(text).earliest(true);
        self.dfa.try_search_fwd(cache, &input).ok().map(|found| found.is_some())
    }

    /// The same by the lazy automaton; `None` where it cannot go on.
    fn matches_lazily(
        &self,
        text: &[u8],
        cache: &mut Cache,
        meter: &Meter<'_>,
    ) -> Result<Option<bool>> {
        // A byte that leads to a state that is not known yet costs as much as all states.
        let most = self.state_count() / STATES_PER_BYTE + 1;
        let input = Input::new(text).anchored(Anchored::No);
        let Ok(mut state) = self.dfa.start_state_forward(cache, &input) else { return Ok(None) };
        for byte in text {
            meter.work(most)?;
            let Ok(next) = self.dfa.next_state(cache, state, *byte) else { return Ok(None) };
            state = next;
            if state.is_tagged() {
                if state.is_match() {
                    return Ok(Some(true));
                }
                if state.is_dead() {
                    return Ok(Some(false));
                }
                if state.is_quit() {
                    return Ok(None);
                }
            }
        }
        Ok(self.dfa.next_eoi_state(cache, state).ok().map(|state| state.is_match()))
    }

    /// The same by all states that a byte may lead to.
    fn matches_anyhow(&self, text: &[u8], meter: &Meter<'_>) -> Result<bool> {
        let mut now = States::new(self.state_count());
        let mut next = States::new(self.state_count());
        for at in 0..=text.len() {
            // A match may begin at any byte.
            now.add(&self.nfa, self.nfa.start_anchored(), text, at);
            if now.has_match {
                return Ok(true);
            }
            meter.work(now.list.len() / STATES_PER_BYTE + 1)?;
            for state in &now.list {
                if let Some(to) = self.step(*state, text, at) {
                    next.add(&self.nfa, to, text, at + 1);
                }
            }
            now.clear();
            std::mem::swap(&mut now, &mut next);
        }
        Ok(now.has_match)
    }

    /// Where the byte at a place leads from a state.
    fn step(&self, state: StateID, text: &[u8], at: usize) -> Option<StateID> {
        match self.nfa.state(state) {
            State::ByteRange { trans } => trans.matches(text, at).then_some(trans.next),
            State::Sparse(sparse) => sparse.matches(text, at),
            State::Dense(dense) => dense.matches(text, at),
            _ => None,
        }
    }
}

/// States, each once.
struct States {
    list: Vec<StateID>,
    has: Vec<bool>,
    has_match: bool,
}

impl States {
    fn new(count: usize) -> Self {
        Self { list: Vec::new(), has: vec![false; count], has_match: false }
    }

    fn clear(&mut self) {
        let Self { list, has, has_match } = self;
        for state in list.drain(..) {
            if let Some(has) = has.get_mut(state.as_usize()) {
                *has = false;
            }
        }
        *has_match = false;
    }

    /// Adds a state, and those that it leads to without a byte.
    fn add(&mut self, nfa: &NFA, first: StateID, text: &[u8], at: usize) {
        let mut open = vec![first];
        while let Some(state) = open.pop() {
            match self.has.get_mut(state.as_usize()) {
                Some(has) if !*has => *has = true,
                _ => continue,
            }
            self.list.push(state);
            match nfa.state(state) {
                State::Look { look, next } if nfa.look_matcher().matches(*look, text, at) => {
                    open.push(*next);
                }
                State::Union { alternates } => open.extend(alternates.iter()),
                State::BinaryUnion { alt1, alt2 } => open.extend([*alt1, *alt2]),
                State::Capture { next, .. } => open.push(*next),
                State::Match { .. } => self.has_match = true,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
