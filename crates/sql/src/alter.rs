//! `ALTER TABLE`.

use std::ops::Range;

use esker_format::Schema;
use esker_format::schema::{Alteration, IdentityChange};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::change::refuse_lost;
use crate::dialect::{EskerDialect, is_word};
use crate::sequence::{self, RestartStatement};
use crate::statement::{Statement, syntax, unsupported};
use crate::{
    Error, Result, column, comment, identity_option, index, qualified_name, reference,
    table_option, type_name,
};

pub(crate) fn convert(alter: &ast::AlterTable) -> Result<Statement> {
    let name = qualified_name::written(&alter.name)?;
    let if_exists = if alter.if_exists { "IF EXISTS " } else { "" };
    let operations: Vec<String> = alter.operations.iter().map(ToString::to_string).collect();
    let understood = format!("ALTER TABLE {if_exists}{} {}", alter.name, operations.join(", "));
    refuse_lost(&alter.to_string(), &understood)?;
    if let [ast::AlterTableOperation::RenameTable { table_name }] = alter.operations.as_slice() {
        let ast::RenameTableNameKind::To(to) = table_name else {
            return Err(unsupported("this RENAME", table_name));
        };
        let (to, if_exists) = (qualified_name::new_name(&alter.name, to)?, alter.if_exists);
        return Ok(Statement::RenameTable { name, to, if_exists });
    }
    let (mut alterations, mut optional) = (Vec::new(), Vec::new());
    for operation in &alter.operations {
        let first = alterations.len();
        convert_operation(operation, &mut alterations)?;
        for unless in Unless::of(operation) {
            optional.push(OptionalStep { steps: first..alterations.len(), unless });
        }
    }
    let cascade = alter.operations.iter().any(is_cascade);
    Ok(Statement::AlterTable { name, alterations, cascade, if_exists: alter.if_exists, optional })
}

/// Changes of a table that are left out where there is nothing to do: `IF [NOT] EXISTS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionalStep {
    /// Which of the changes.
    steps: Range<usize>,
    unless: Unless,
}

/// When there is nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unless {
    /// The field is there.
    Field(String),
    /// The field is not there.
    NoField(String),
    /// The field is no identity.
    NoIdentity(String),
    /// There is no such constraint.
    NoConstraint(String),
}

impl Unless {
    fn of(operation: &ast::AlterTableOperation) -> Vec<Self> {
        use ast::AlterTableOperation as O;
        match operation {
            O::AddColumn { if_not_exists: true, column_def, .. } => {
                vec![Self::Field(column_def.name.value.clone())]
            }
            O::DropColumn { column_names, if_exists: true, .. } => {
                column_names.iter().map(|name| Self::NoField(name.value.clone())).collect()
            }
            O::DropConstraint { if_exists: true, name, .. } => {
                vec![Self::NoConstraint(name.value.clone())]
            }
            _ => Vec::new(),
        }
    }

    /// The field that a change is about, where another change of its kind is not.
    fn is_of(&self, alteration: &Alteration) -> bool {
        match (self, alteration) {
            (Self::NoField(name), Alteration::DropField(field)) => name == field,
            (Self::NoField(_), _) => false,
            _ => true,
        }
    }

    fn holds(&self, schema: &Schema) -> bool {
        match self {
            Self::Field(name) => schema.position(name).is_some(),
            Self::NoField(name) => schema.position(name).is_none(),
            Self::NoIdentity(name) => {
                let fields = schema.fields();
                fields.iter().any(|field| field.name == *name && field.identity.is_none())
            }
            Self::NoConstraint(name) => {
                let is_check = schema.checks().iter().any(|check| check.name == *name);
                let is_unique = schema.indexes().iter().any(|i| i.unique && i.name == *name);
                let is_reference = schema.references().iter().any(|r| r.name == *name);
                !(is_check || is_unique || is_reference)
            }
        }
    }
}

/// The changes of a table that there is something to do for.
pub(crate) fn needed(
    alterations: &[Alteration],
    optional: &[OptionalStep],
    schema: &Schema,
) -> Vec<Alteration> {
    let is_done = |(at, alteration): &(usize, &Alteration)| {
        let mut of = optional.iter().filter(|step| step.steps.contains(at));
        of.any(|step| step.unless.is_of(alteration) && step.unless.holds(schema))
    };
    let steps = alterations.iter().enumerate().filter(|step| !is_done(step));
    steps.map(|(_, alteration)| alteration.clone()).collect()
}

/// The statements that the grammar does not know begin so.
struct Start<'p> {
    parser: Parser<'p>,
    name: ast::ObjectName,
    if_exists: bool,
}

impl<'p> Start<'p> {
    /// `ALTER TABLE [IF EXISTS] name`; nothing when it is another statement.
    fn read(dialect: &'p EskerDialect, tokens: &[TokenWithSpan]) -> Option<Self> {
        let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens.to_vec());
        if !parser.parse_keywords(&[Keyword::ALTER, Keyword::TABLE]) {
            return None;
        }
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let name = parser.parse_object_name(false).ok()?;
        Some(Self { parser, name, if_exists })
    }

    /// The statement, which is to end here.
    fn finish(self, alteration: Alteration) -> Result<Option<Statement>> {
        self.finish_all(vec![alteration])
    }

    /// The same of several changes.
    fn finish_all(mut self, alterations: Vec<Alteration>) -> Result<Option<Statement>> {
        while self.parser.consume_token(&Token::SemiColon) {}
        if self.parser.peek_token().token != Token::EOF {
            return self.parser.expected("the end", self.parser.peek_token()).map_err(syntax);
        }
        let name = qualified_name::written(&self.name)?;
        let (cascade, if_exists, optional) = (false, self.if_exists, Vec::new());
        Ok(Some(Statement::AlterTable { name, alterations, cascade, if_exists, optional }))
    }
}

/// Reads `ALTER TABLE [IF EXISTS] name ALTER [COLUMN] field ADD VALUE 'label'`, which the grammar
/// does not know; nothing when it is another statement.
pub(crate) fn add_value(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let Some(mut start) = Start::read(&EskerDialect, tokens) else { return Ok(None) };
    let parser = &mut start.parser;
    if !parser.parse_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let Ok(field) = parser.parse_identifier() else { return Ok(None) };
    if !parser.parse_keywords(&[Keyword::ADD, Keyword::VALUE]) {
        return Ok(None);
    }
    let label = parser.parse_literal_string().map_err(syntax)?;
    start.finish(Alteration::AddLabel { field: field.value, label })
}

/// Reads `ALTER TABLE [IF EXISTS] name ALTER [COLUMN] field SET EXPRESSION AS (…)` and `… DROP
/// EXPRESSION`; nothing when it is another statement.
pub(crate) fn expression(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let Some(mut start) = Start::read(&EskerDialect, tokens) else { return Ok(None) };
    let parser = &mut start.parser;
    if !parser.parse_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let Ok(field) = parser.parse_identifier() else { return Ok(None) };
    let sets = parser.parse_keyword(Keyword::SET);
    let is_meant = sets || parser.parse_keyword(Keyword::DROP);
    if !is_meant || !is_word(&parser.peek_token_ref().token, "EXPRESSION") {
        return Ok(None);
    }
    parser.advance_token();
    let generated = if sets {
        parser.expect_keyword(Keyword::AS).map_err(syntax)?;
        parser.expect_token(&Token::LParen).map_err(syntax)?;
        let expr = parser.parse_expr().map_err(syntax)?;
        parser.expect_token(&Token::RParen).map_err(syntax)?;
        Some(column::generated(&expr)?)
    } else {
        None
    };
    start.finish(Alteration::SetGenerated { field: field.value, generated })
}

/// Reads `ALTER TABLE [IF EXISTS] name ALTER [COLUMN] field` and what becomes of its identity:
/// `ADD GENERATED … AS IDENTITY (…)`, `SET GENERATED …`, `DROP IDENTITY [IF EXISTS]`, `RESTART
/// [WITH n]`; nothing when it is another statement.
pub(crate) fn identity(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let Some(mut start) = Start::read(&EskerDialect, tokens) else { return Ok(None) };
    let parser = &mut start.parser;
    if !parser.parse_keyword(Keyword::ALTER) {
        return Ok(None);
    }
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let Ok(field) = parser.parse_identifier() else { return Ok(None) };
    let (field, mut optional) = (field.value, Vec::new());
    let is_generated = |parser: &Parser<'_>| is_word(&parser.peek_nth_token(1).token, "GENERATED");
    let change = match &parser.peek_token_ref().token {
        word if is_word(word, "ADD") && is_generated(parser) => {
            parser.advance_token();
            let Some(option) = identity_option::read(parser).map_err(syntax)? else {
                let expected = "GENERATED ALWAYS or BY DEFAULT AS IDENTITY";
                return parser.expected(expected, parser.peek_token()).map_err(syntax);
            };
            IdentityChange::Add(sequence::identity_of(&option)?)
        }
        word if is_word(word, "SET") && is_generated(parser) => {
            parser.advance_token();
            parser.advance_token();
            let is_always = parser.parse_keyword(Keyword::ALWAYS);
            if !is_always && !parser.parse_keywords(&[Keyword::BY, Keyword::DEFAULT]) {
                return parser
                    .expected("ALWAYS or BY DEFAULT", parser.peek_token())
                    .map_err(syntax);
            }
            IdentityChange::SetAlways(is_always)
        }
        word if is_word(word, "DROP") && is_word(&parser.peek_nth_token(1).token, "IDENTITY") => {
            parser.advance_token();
            parser.advance_token();
            if parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]) {
                let unless = Unless::NoIdentity(field.clone());
                optional.push(OptionalStep { steps: 0..1, unless });
            }
            IdentityChange::Drop
        }
        word if is_word(word, "RESTART") => {
            parser.advance_token();
            let first = sequence::restarted_with(parser)?;
            crate::show::end(parser)?;
            let (table, if_exists) = (qualified_name::written(&start.name)?, start.if_exists);
            return Ok(Some(Statement::Restart(RestartStatement {
                table,
                field,
                start: first,
                if_exists,
            })));
        }
        _ => return Ok(None),
    };
    let Some(mut statement) = start.finish(Alteration::SetIdentity { field, change })? else {
        return Ok(None);
    };
    if let Statement::AlterTable { optional: steps, .. } = &mut statement {
        *steps = optional;
    }
    Ok(Some(statement))
}

/// Reads `ALTER TABLE [IF EXISTS] name SET SCHEMA name`, which the grammar does not know; nothing
/// when it is another statement.
pub(crate) fn set_schema(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let Some(mut start) = Start::read(&EskerDialect, tokens) else { return Ok(None) };
    let parser = &mut start.parser;
    if !parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        return Ok(None);
    }
    let schema = qualified_name::of_schema(&parser.parse_object_name(false).map_err(syntax)?)?;
    crate::show::end(parser)?;
    let (name, if_exists) = (qualified_name::written(&start.name)?, start.if_exists);
    Ok(Some(Statement::SetSchema { name, schema, if_exists }))
}

/// `COMMENT ON TABLE name IS '…'` or `IS NULL`, `COMMENT ON COLUMN table.field IS '…'`, and those
/// that are no change of a table.
pub(crate) fn comment(
    about: &ast::CommentObject,
    object: &ast::ObjectName,
    words: Option<&String>,
    if_exists: bool,
) -> Result<Statement> {
    let (name, field) = match about {
        ast::CommentObject::Table => (object.clone(), None),
        ast::CommentObject::Column => {
            let expected = || Error::invalid(format!("{object}: expected table.field"));
            let (last, table) = object.0.split_last().ok_or_else(expected)?;
            let field = last.as_ident().filter(|_| !table.is_empty()).ok_or_else(expected)?;
            (ast::ObjectName(table.to_vec()), Some(field.value.clone()))
        }
        other => return comment::convert(other, object, words, if_exists),
    };
    let alterations = vec![Alteration::SetComment { field, comment: words.cloned() }];
    let name = qualified_name::written(&name)?;
    let (cascade, optional) = (false, Vec::new());
    Ok(Statement::AlterTable { name, alterations, cascade, if_exists, optional })
}

/// Reads `ALTER TABLE [IF EXISTS] name SET (option = 'value', …)` and `… RESET (option, …)`;
/// nothing when it is another statement.
pub(crate) fn options(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let Some(mut start) = Start::read(&EskerDialect, tokens) else { return Ok(None) };
    let parser = &mut start.parser;
    let sets = parser.parse_keyword(Keyword::SET);
    if !(sets || parser.parse_keyword(Keyword::RESET)) || parser.peek_token() != Token::LParen {
        return Ok(None);
    }
    parser.expect_token(&Token::LParen).map_err(syntax)?;
    let alterations = if sets {
        let options = parser.parse_comma_separated(Parser::parse_sql_option).map_err(syntax)?;
        table_option::set(&options)?
    } else {
        let names = parser.parse_comma_separated(Parser::parse_identifier).map_err(syntax)?;
        table_option::reset(&names)?
    };
    parser.expect_token(&Token::RParen).map_err(syntax)?;
    start.finish_all(alterations)
}

/// Whether an operation takes with it what depends on a column.
fn is_cascade(operation: &ast::AlterTableOperation) -> bool {
    use ast::{AlterTableOperation as O, DropBehavior};
    matches!(operation, O::DropColumn { drop_behavior: Some(DropBehavior::Cascade), .. })
}

fn convert_operation(
    operation: &ast::AlterTableOperation,
    out: &mut Vec<Alteration>,
) -> Result<()> {
    use ast::AlterTableOperation as O;
    match operation {
        O::AddColumn { column_def, column_position: None, .. } => {
            let column = column::convert(column_def)?;
            if column.is_key {
                let message = format!("field {:?}: the key of a table stays", column.field.name);
                return Err(Error::invalid(message));
            }
            out.push(Alteration::AddField(column.field));
            out.extend(column.checks.into_iter().map(Alteration::AddCheck));
            out.extend(column.unique.map(Alteration::AddIndex));
            out.extend(column.references.into_iter().map(Alteration::AddReference));
        }
        O::DropColumn { column_names, .. } => {
            let names = column_names.iter().map(|name| name.value.clone());
            out.extend(names.map(Alteration::DropField));
        }
        O::RenameColumn { old_column_name, new_column_name } => {
            let (from, to) = (old_column_name.value.clone(), new_column_name.value.clone());
            out.push(Alteration::RenameField { from, to });
        }
        O::AlterColumn { column_name, op } => {
            out.push(convert_column(&column_name.value, operation, op)?);
        }
        O::AddConstraint { constraint: ast::TableConstraint::Check(check), not_valid: false } => {
            let Some(name) = &check.name else {
                return Err(Error::invalid(format!(
                    "{operation}: expected a name: ADD CONSTRAINT name CHECK (…)"
                )));
            };
            out.push(Alteration::AddCheck(column::check(name.value.clone(), check)?));
        }
        O::AddConstraint { constraint: ast::TableConstraint::Index(new), not_valid: false } => {
            out.push(Alteration::AddIndex(index::declared(new)?));
        }
        O::AddConstraint { constraint: ast::TableConstraint::Unique(new), not_valid: false } => {
            out.push(Alteration::AddIndex(index::unique(new)?));
        }
        O::AddConstraint {
            constraint: ast::TableConstraint::ForeignKey(key),
            not_valid: false,
        } => {
            out.push(Alteration::AddReference(reference::constraint(key)?));
        }
        O::DropForeignKey { name, drop_behavior: None } => {
            out.push(Alteration::DropReference(name.value.clone()));
        }
        O::DropIndex { name } => out.push(Alteration::DropIndex(name.value.clone())),
        O::DropConstraint { name, drop_behavior: None, .. } => {
            out.push(Alteration::DropCheck(name.value.clone()));
        }
        _ => return Err(unsupported("this change of a table", operation)),
    }
    Ok(())
}

fn convert_column(
    field: &str,
    operation: &ast::AlterTableOperation,
    change: &ast::AlterColumnOperation,
) -> Result<Alteration> {
    use ast::AlterColumnOperation as C;
    let field = field.to_owned();
    match change {
        C::DropNotNull => Ok(Alteration::DropNotNull(field)),
        C::SetNotNull => Ok(Alteration::SetNotNull(field)),
        C::DropDefault => Ok(Alteration::SetDefault { field, default: None }),
        C::SetDefault { value } => {
            let default = column::default_of_any(value).map_err(|e| e.at("DEFAULT"))?;
            Ok(Alteration::SetDefault { field, default })
        }
        C::SetDataType { data_type, using: None, .. } => {
            let data_type_of = type_name::convert(data_type)?;
            if data_type_of == esker_format::DataType::Enum {
                let message = format!(
                    "{operation}: a label is added by ALTER COLUMN {field} ADD VALUE 'label'"
                );
                return Err(Error::invalid(message));
            }
            let length_max = type_name::length(data_type, data_type_of)?;
            Ok(Alteration::Widen { field, data_type: data_type_of, length_max })
        }
        _ => Err(unsupported("this change of a field", operation)),
    }
}
