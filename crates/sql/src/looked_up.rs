//! `lookup(table, key, …).field`: a field of the row of another table that has a key.

use std::sync::Arc;

use esker::{Alteration, Schema};
use esker_format::schema::Generated;
use esker_query::GeneratedValue;
use esker_query::model::{Expr, Lookup};
use sqlparser::ast;

use crate::expression::Names;
use crate::{Error, Result, qualified_name};

/// What a name of a table becomes.
type Rename<'r> = dyn FnMut(&mut String) -> esker::Result<()> + 'r;

/// Whether a function is this one.
pub(crate) fn is_lookup(function: &ast::Function) -> bool {
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return false };
    name.value.eq_ignore_ascii_case("lookup")
}

/// The error for one without the field that is wanted.
pub(crate) fn without_field(function: &ast::Function) -> Error {
    let expected = "lookup(table, key, …).field, with the field that is wanted behind it";
    Error::invalid(format!("{function}: expected {expected}"))
}

impl Names {
    /// `lookup(…)` with what stands behind it.
    pub(crate) fn looked_up(
        &self,
        function: &ast::Function,
        behind: &[ast::AccessExpr],
    ) -> Result<Expr> {
        let [ast::AccessExpr::Dot(ast::Expr::Identifier(field))] = behind else {
            return Err(without_field(function));
        };
        let ast::FunctionArguments::List(list) = &function.args else {
            return Err(without_field(function));
        };
        let is_plain = function.over.is_none()
            && function.filter.is_none()
            && function.within_group.is_empty()
            && list.clauses.is_empty()
            && list.duplicate_treatment.is_none();
        let mut operands = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                return Err(without_field(function));
            };
            operands.push(expr);
        }
        let parts = match operands.first() {
            Some(ast::Expr::Identifier(name)) => vec![name.clone()],
            Some(ast::Expr::CompoundIdentifier(parts)) => parts.clone(),
            _ => Vec::new(),
        };
        if parts.is_empty() || operands.len() < 2 || !is_plain {
            let expected = "the name of a table, and a value for each field of its key";
            return Err(Error::invalid(format!("{function}: expected {expected}")));
        }
        let table = qualified_name::written(&ast::ObjectName::from(parts))?;
        let keys = operands.iter().skip(1).map(|key| self.convert(key)).collect::<Result<_>>()?;
        let field = field.value.clone();
        Ok(Expr::Lookup(Box::new(Lookup { table, field, keys, data_type: None })))
    }
}

/// Gives the tables in which rows are looked up for a field other names; `None` where they stay.
fn renamed(generated: &Generated, rename: &mut Rename<'_>) -> esker::Result<Option<Generated>> {
    let before = GeneratedValue::decode(&generated.expression)?;
    if before.lookups().is_empty() {
        return Ok(None);
    }
    let mut expr = before.clone();
    expr.change_lookups(&mut |lookup| rename(&mut lookup.table))?;
    let expression = GeneratedValue::encode(&expr)?;
    Ok((expr != before).then(|| Generated { expression, ..generated.clone() }))
}

/// Gives the tables in which rows are looked up for those of a new table other names.
pub(crate) fn rename_in(schema: &mut Schema, rename: &mut Rename<'_>) -> esker::Result<()> {
    let mut steps = Vec::new();
    for field in schema.fields() {
        let Some(generated) = &field.generated else { continue };
        if let Some(generated) = renamed(generated, rename)? {
            let (field, generated) = (field.name.clone(), Some(generated));
            steps.push(Alteration::SetGenerated { field, generated });
        }
    }
    if !steps.is_empty() {
        *schema = schema.alter(&steps)?.with_version(schema.version());
    }
    Ok(())
}

/// The same of a change of a table.
pub(crate) fn rename_in_change(
    alteration: &mut Alteration,
    rename: &mut Rename<'_>,
) -> esker::Result<()> {
    match alteration {
        Alteration::SetGenerated { generated: Some(generated), .. } => {
            renamed(generated, rename)?.into_iter().for_each(|new| *generated = new);
        }
        Alteration::AddField(field) => {
            let Some(generated) = &field.generated else { return Ok(()) };
            if let Some(new) = renamed(generated, rename)? {
                field.generated = Some(Arc::new(new));
            }
        }
        _ => {}
    }
    Ok(())
}
