//! The grammar that is read: sqlparser's generic one, with a rule of its own for what may follow an
//! expression.
//!
//! A plain name behind an expression, without `AS`, is the name of its column; a word that means
//! something is not. So `SELECT a NOTNULL` is a test, and `SELECT a AND` an error.

use std::any::TypeId;

use esker_vfs::sabotage::Bug;
use sqlparser::ast;
use sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use sqlparser::keywords::{Keyword as K, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError, Whitespace, Word};

use crate::identity_option;

macro_rules! keywords {
    ($($name:ident)*) => {
        &[$(K::$name),*]
    };
}

/// Words that are no name of a column or table unless `AS` or quotes say so: they go on with an
/// expression, end it, or begin a clause.
const RESERVED: &[K] = keywords! {
    ALL AND ANY ARRAY AS ASC BETWEEN CASE CAST CHECK COLLATE CONSTRAINT CREATE CROSS DEFAULT DESC
    DISTINCT DIV ELSE ESCAPE EXISTS FALSE FILTER FOR FOREIGN FULL GLOB GRANT ILIKE IN INNER IS JOIN
    LEFT LIKE MATCH MEMBER NATURAL NOT NOTNULL NULL ON ONLY OPERATOR OR OUTER OVER OVERLAPS PRIMARY
    QUALIFY REFERENCES REGEXP RIGHT RLIKE SIMILAR SOME TABLE THEN TO TRUE UNION UNIQUE USING WHEN
    WINDOW WITHIN XOR
};

/// Words that no expression begins with: the grammar would take them for names, so that
/// `SELECT a AND FROM t` were `SELECT a AND "from" AS t`.
const NO_OPERAND: &[K] = keywords! {
    AND AS BETWEEN ELSE FROM HAVING IN IS LIKE OR THEN UNION WHEN WHERE
};

/// Words that a name may follow.
const BEFORE_NAMES: &[K] = keywords! {
    AND BY DISTINCT HAVING NOT ON OR SELECT SET WHERE
};

/// Words that the grammar takes for functions, and that are names where no bracket follows.
const CALLS: &[K] = keywords! {
    CAST CEIL CONVERT EXISTS EXTRACT FLOOR OVERLAY POSITION SUBSTR SUBSTRING TRIM TRY_CAST USER
};

/// The grammar.
#[derive(Debug, Default)]
pub(crate) struct EskerDialect;

/// How tightly `^` binds: tighter than `*`, which is 40 for the grammar.
const POWER_BINDS: u8 = 41;

/// How tightly a sign binds: tighter than `^`, and less than `::`, which is 50.
const SIGN_BINDS: u8 = 45;

/// The operator before an operand that stands next, if there is one of those with a rule of their
/// own.
fn prefix_operator(parser: &Parser<'_>) -> Option<ast::UnaryOperator> {
    Some(match &parser.peek_token_ref().token {
        Token::Minus => ast::UnaryOperator::Minus,
        Token::Plus => ast::UnaryOperator::Plus,
        Token::PGSquareRoot => ast::UnaryOperator::PGSquareRoot,
        Token::PGCubeRoot => ast::UnaryOperator::PGCubeRoot,
        Token::Tilde => ast::UnaryOperator::BitwiseNot,
        Token::DoubleExclamationMark => ast::UnaryOperator::PGPrefixFactorial,
        Token::AtSign if !matches!(parser.peek_nth_token_ref(1).token, Token::Word(_)) => {
            ast::UnaryOperator::PGAbs
        }
        _ => return None,
    })
}

/// Whether `**` stands next, which the grammar reads as two operators.
fn is_power_of_stars(parser: &Parser<'_>) -> bool {
    let is_star = |number| parser.peek_nth_token_ref(number).token == Token::Mul;
    is_star(0) && is_star(1)
}

/// The sets behind GROUPING SETS within another list of sets.
fn nested_sets(parser: &mut Parser<'_>) -> Result<ast::Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let sets = parser.parse_comma_separated(|parser| {
        if !parser.consume_token(&Token::LParen) {
            return parser.parse_expr().map(|expr| vec![expr]);
        }
        if parser.consume_token(&Token::RParen) {
            return Ok(Vec::new());
        }
        let keys = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen).map(|_| keys)
    })?;
    parser.expect_token(&Token::RParen).map(|_| ast::Expr::GroupingSets(sets))
}

/// The tokens of a text, blanks and comments among them.
pub(crate) fn tokenize(text: &str) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    Tokenizer::new(&EskerDialect, text).tokenize_with_location()
}

/// Says that a column by the name of a reserved word is written in double quotes, where the word
/// that is not expected stands as a name does: before a comma, `FROM`, a comparison or the end.
pub(crate) fn quoting_helps(error: ParserError, tokens: &[TokenWithSpan]) -> ParserError {
    let ParserError::ParserError(message) = error else { return error };
    let Some(word) = reserved_name(&message, tokens) else {
        return ParserError::ParserError(message);
    };
    let (found, name) = (format!("found: {word} "), word.to_lowercase());
    let hint = format!("found: {word} (a column of this name is written \"{name}\") ");
    ParserError::ParserError(message.replacen(&found, &hint, 1))
}

/// The word that a message says was found, if it is a reserved one and stands as a name does.
fn reserved_name(message: &str, tokens: &[TokenWithSpan]) -> Option<String> {
    let (_, place) = message.rsplit_once(" at Line: ")?;
    let (line, column) = place.split_once(", Column: ")?;
    let (line, column): (u64, u64) = (line.parse().ok()?, column.parse().ok()?);
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<_> = tokens.iter().filter(|token| !is_blank(token)).collect();
    let place = (line, column);
    let is_there = |t: &&TokenWithSpan| (t.span.start.line, t.span.start.column) == place;
    let at = tokens.iter().position(is_there)?;
    let (found, next) = (tokens.get(at)?, tokens.get(at + 1));
    let before = at.checked_sub(1).and_then(|at| tokens.get(at))?;
    let Token::Word(Word { value, quote_style: None, keyword }) = &found.token else { return None };
    let is_reserved = !matches!(keyword, K::NoKeyword | K::FROM | K::SELECT);
    let ends_name = match next.map(|token| &token.token) {
        None | Some(Token::EOF | Token::Comma | Token::SemiColon | Token::RParen) => true,
        Some(Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq) => true,
        Some(Token::Word(next)) => matches!(next.keyword, K::FROM | K::AS | K::ASC | K::DESC),
        Some(_) => false,
    };
    let begins_name = match &before.token {
        Token::Comma | Token::LParen | Token::Period => true,
        Token::Word(before) => BEFORE_NAMES.contains(&before.keyword),
        _ => false,
    };
    (is_reserved && begins_name && ends_name).then(|| value.clone())
}

/// Makes names of the texts behind `AS`: `AS 'total'` is `AS "total"`. A text that is still the
/// name of a column once the statement is read has no `AS` before it.
pub(crate) fn quote_names(tokens: &mut [TokenWithSpan]) {
    let mut is_behind_as = false;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::SingleQuotedString(name) if is_behind_as => {
                let (value, quote_style) = (name.clone(), Some('"'));
                token.token = Token::Word(Word { value, quote_style, keyword: K::NoKeyword });
                is_behind_as = false;
            }
            other => is_behind_as = matches!(other, Token::Word(word) if word.keyword == K::AS),
        }
    }
}

/// What quotes a name that has words in it which the grammar does not know: no name is written so.
pub(crate) const MADE_NAME: char = '[';

/// Takes MATERIALIZED and NOT MATERIALIZED out, which the grammar does not know behind the name of
/// a query: of the first, the name tells.
pub(crate) fn take_hints(tokens: &mut [TokenWithSpan]) {
    if !tokens.iter().any(|token| is_keyword(&token.token, K::MATERIALIZED)) {
        return;
    }
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let words: Vec<usize> =
        (0..tokens.len()).filter(|at| tokens.get(*at).is_some_and(|t| !is_blank(t))).collect();
    let mut hints: Vec<(usize, Option<usize>, Option<usize>)> = Vec::new();
    for (i, at) in words.iter().enumerate() {
        let token = |i: Option<usize>| {
            let at = i.and_then(|i| words.get(i))?;
            tokens.get(*at).map(|token| &token.token)
        };
        let is = |i: Option<usize>, word: &str| token(i).is_some_and(|token| is_word(token, word));
        let is_open = token(Some(i + 1)) == Some(&Token::LParen);
        if !is(Some(i), "MATERIALIZED") || !is_open {
            continue;
        }
        let not = i.checked_sub(1).filter(|before| is(Some(*before), "NOT"));
        let behind = not.unwrap_or(i).checked_sub(1);
        if !is(behind, "AS") {
            continue;
        }
        // Names of columns may stand between.
        let mut name = behind.and_then(|behind| behind.checked_sub(1));
        if token(name) == Some(&Token::RParen) {
            while let Some(before) = name.filter(|_| token(name) != Some(&Token::LParen)) {
                name = before.checked_sub(1);
            }
            name = name.and_then(|open| open.checked_sub(1));
        }
        let place = |i: Option<usize>| i.and_then(|i| words.get(i)).copied();
        hints.push((*at, place(not), place(name)));
    }
    for (hint, not, name) in hints {
        let named = match (not, name) {
            (None, Some(name)) => tokens.get_mut(name),
            _ => None,
        };
        if let Some(TokenWithSpan { token: Token::Word(word), .. }) = named {
            word.quote_style = Some(MADE_NAME);
        }
        for at in [Some(hint), not].into_iter().flatten() {
            if let Some(token) = tokens.get_mut(at) {
                token.token = Token::Whitespace(Whitespace::Space);
            }
        }
    }
}

pub(crate) fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

fn is_keyword(token: &Token, wanted: K) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.keyword == wanted)
}

/// Whether a word that the grammar takes for something else is the name of a column.
fn is_name(parser: &Parser<'_>) -> bool {
    let Token::Word(word) = &parser.peek_token_ref().token else { return false };
    let next = &parser.peek_nth_token_ref(1).token;
    if word.quote_style.is_some() || matches!(next, Token::LParen | Token::Period) {
        return false;
    }
    match word.keyword {
        K::INTERVAL => match next {
            Token::Word(word) => word.quote_style.is_none() && word.keyword != K::NoKeyword,
            Token::SingleQuotedString(_) | Token::Number(..) | Token::Placeholder(_) => false,
            Token::Minus | Token::Plus => false,
            _ => true,
        },
        keyword => CALLS.contains(&keyword),
    }
}

/// The clauses of the generic grammar: what the model does not know is refused by its name.
macro_rules! supports {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            true
        })*
    };
}

impl Dialect for EskerDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        matches!(c, '"' | '`')
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_' || c == '#' && Bug::SharpBeginsAName.is_planted()
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphabetic() || c.is_ascii_digit() || matches!(c, '@' | '$' | '#' | '_')
    }

    fn is_select_item_alias(&self, explicit: bool, word: &K, _: &mut Parser<'_>) -> bool {
        if explicit || *word == K::NOTNULL && Bug::NotnullNamesAColumn.is_planted() {
            return true;
        }
        ![RESERVED, RESERVED_FOR_COLUMN_ALIAS].iter().any(|words| words.contains(word))
    }

    fn is_table_alias(&self, word: &K, _: &mut Parser<'_>) -> bool {
        ![RESERVED, RESERVED_FOR_TABLE_ALIAS].iter().any(|words| words.contains(word))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<ast::Expr, ParserError>> {
        if is_name(parser) {
            return Some(parser.parse_identifier().map(ast::Expr::Identifier));
        }
        let is_open = parser.peek_token_ref().token == Token::LParen;
        if is_open && is_keyword(&parser.peek_nth_token_ref(1).token, K::VALUES) {
            // The grammar takes it for a function.
            parser.advance_token();
            let rows = parser.parse_query().map(ast::Expr::Subquery);
            return Some(rows.and_then(|rows| parser.expect_token(&Token::RParen).map(|_| rows)));
        }
        if let Some(operator) = prefix_operator(parser) {
            parser.advance_token();
            // As in PostgreSQL: a sign binds tighter than `^`, and the others as `||` does.
            let is_sign = matches!(operator, ast::UnaryOperator::Minus | ast::UnaryOperator::Plus);
            let binds = if is_sign { SIGN_BINDS } else { self.prec_value(Precedence::PgOther) };
            let operand = parser.parse_subexpr(binds).map(Box::new);
            return Some(operand.map(|expr| ast::Expr::UnaryOp { op: operator, expr }));
        }
        if parser.parse_keywords(&[K::GROUPING, K::SETS]) {
            return Some(nested_sets(parser));
        }
        let token = parser.peek_token_ref();
        let is_operand = !matches!(&token.token, Token::Word(word)
            if word.quote_style.is_none() && NO_OPERAND.contains(&word.keyword));
        (!is_operand).then(|| parser.expected_ref("an expression", token))
    }

    /// `a ISNULL`, `a ^ b` and `a ** b`, `a # b`, and `a !`, which is refused by its name.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &ast::Expr,
        precedence: u8,
    ) -> Option<Result<ast::Expr, ParserError>> {
        let operand = || Box::new(expr.clone());
        let token = parser.peek_token_ref();
        if is_word(&token.token, "ISNULL") {
            parser.advance_token();
            return Some(Ok(ast::Expr::IsNull(operand())));
        }
        let op = match token.token {
            Token::Sharp => ast::BinaryOperator::PGBitwiseXor,
            Token::Caret => ast::BinaryOperator::PGExp,
            _ if is_power_of_stars(parser) => {
                parser.advance_token();
                ast::BinaryOperator::PGExp
            }
            Token::ExclamationMark => {
                parser.advance_token();
                let op = ast::UnaryOperator::PGPostfixFactorial;
                return Some(Ok(ast::Expr::UnaryOp { op, expr: operand() }));
            }
            _ => return None,
        };
        parser.advance_token();
        let right = parser.parse_subexpr(precedence).map(Box::new);
        Some(right.map(|right| ast::Expr::BinaryOp { left: operand(), op, right }))
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            token if is_word(token, "ISNULL") => Some(Ok(self.prec_value(Precedence::Is))),
            Token::Caret => Some(Ok(POWER_BINDS)),
            Token::Mul if is_power_of_stars(parser) => Some(Ok(POWER_BINDS)),
            // As in PostgreSQL all of them bind alike.
            Token::Ampersand
            | Token::Pipe
            | Token::Sharp
            | Token::ShiftLeft
            | Token::ShiftRight => Some(Ok(self.prec_value(Precedence::PgOther))),
            _ => None,
        }
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ast::ColumnOption>, ParserError>>, ParserError> {
        Ok(identity_option::read(parser)?.map(|option| Ok(Some(option))))
    }

    fn supports_listen_notify(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        !Bug::NotnullNamesAColumn.is_planted()
    }

    supports! {
        supports_unicode_string_literal supports_partition_by_after_order_by
        supports_array_join_syntax supports_group_by_expr supports_order_by_all
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens supports_connect_by
        supports_match_recognize supports_pipe_operator supports_start_transaction_modifier
        supports_window_function_null_treatment_arg supports_dictionary_syntax
        supports_window_clause_named_window_reference supports_parenthesized_set_variables
        supports_select_wildcard_except support_map_literal_syntax allow_extract_custom
        allow_extract_single_quotes supports_extract_comma_syntax
        supports_create_view_comment_syntax supports_parens_around_table_factor
        supports_values_as_table_factor supports_create_index_with_clause
        supports_explain_with_utility_options supports_exclude_constraint supports_limit_comma
        supports_update_order_by supports_from_first_select supports_projection_trailing_commas
        supports_asc_desc_in_column_definition supports_try_convert
        supports_bitwise_shift_operators supports_comment_on supports_load_extension
        supports_named_fn_args_with_assignment_operator supports_struct_literal
        supports_empty_projections supports_nested_comments supports_multiline_comment_hints
        supports_user_host_grantee supports_string_escape_constant
        supports_array_typedef_with_brackets supports_match_against supports_set_names
        supports_comma_separated_set_assignments supports_filter_during_aggregation
        supports_select_wildcard_exclude supports_data_type_signed_suffix
        supports_interval_options supports_quote_delimited_string
        supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_optimize_table supports_install supports_detach
        supports_prewhere supports_with_fill supports_limit_by supports_interpolate
        supports_settings supports_select_format supports_comment_optimizer_hint
        supports_constraint_keyword_without_name supports_key_column_option
        supports_comma_separated_trim supports_cte_without_as
        supports_select_item_multi_column_alias supports_xml_expressions
        supports_aliased_function_args
    }
}
