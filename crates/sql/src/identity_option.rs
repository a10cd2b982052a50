//! `GENERATED … AS IDENTITY (…)` as a property of a field, its options in any order: the grammar
//! knows them in one alone.

use sqlparser::ast::{ColumnOption, GeneratedAs, SequenceOptions};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Reads it where it stands next.
pub(crate) fn read(parser: &mut Parser<'_>) -> Result<Option<ColumnOption>, ParserError> {
    use Keyword::{ALWAYS, AS, BY, DEFAULT, GENERATED, IDENTITY};
    let generated_as = if parser.parse_keywords(&[GENERATED, ALWAYS, AS, IDENTITY]) {
        GeneratedAs::Always
    } else if parser.parse_keywords(&[GENERATED, BY, DEFAULT, AS, IDENTITY]) {
        GeneratedAs::ByDefault
    } else {
        return Ok(None);
    };
    let mut options = Vec::new();
    if parser.consume_token(&Token::LParen) {
        while !parser.consume_token(&Token::RParen) {
            options.push(option(parser)?);
        }
    }
    Ok(Some(ColumnOption::Generated {
        generated_as,
        sequence_options: Some(options),
        generation_expr: None,
        generation_expr_mode: None,
        generated_keyword: true,
    }))
}

fn option(parser: &mut Parser<'_>) -> Result<SequenceOptions, ParserError> {
    use Keyword::{BY, CACHE, CYCLE, INCREMENT, MAXVALUE, MINVALUE, NO, START, WITH};
    let words = [INCREMENT, START, CACHE, MINVALUE, MAXVALUE, CYCLE, NO];
    Ok(match parser.parse_one_of_keywords(&words) {
        Some(INCREMENT) => {
            let by = parser.parse_keyword(BY);
            SequenceOptions::IncrementBy(parser.parse_expr()?, by)
        }
        Some(START) => {
            let with = parser.parse_keyword(WITH);
            SequenceOptions::StartWith(parser.parse_expr()?, with)
        }
        Some(CACHE) => SequenceOptions::Cache(parser.parse_expr()?),
        Some(MINVALUE) => SequenceOptions::MinValue(Some(parser.parse_expr()?)),
        Some(MAXVALUE) => SequenceOptions::MaxValue(Some(parser.parse_expr()?)),
        Some(CYCLE) => SequenceOptions::Cycle(false),
        Some(NO) => match parser.expect_one_of_keywords(&[MINVALUE, MAXVALUE, CYCLE])? {
            MINVALUE => SequenceOptions::MinValue(None),
            MAXVALUE => SequenceOptions::MaxValue(None),
            _ => SequenceOptions::Cycle(true),
        },
        _ => return parser.expected("START n, INCREMENT n or `)`", parser.peek_token()),
    })
}
