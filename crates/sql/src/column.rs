//! A field as `CREATE TABLE` and `ALTER TABLE … ADD` declare it.

use std::sync::Arc;
use std::time::Duration;

use esker_format::schema::{
    Check, DefaultValue, FieldId, Generated, Identity, NewIndex, NewReference,
};
use esker_format::{DataType, Field, Value};
use esker_query::model::{Collation, Expr, Function, Operator};
use esker_query::{
    Budget, ComputedDefault, Constraint, Deadline, GeneratedValue, Inputs, Limits, Semantics,
};
use esker_vfs::Environment;
use sqlparser::ast;

use crate::expression::{Names, ParameterNames};
use crate::statement::unsupported;
use crate::{Error, Result, collation, reference, sequence, type_name};

/// Names under which others know a new UUID.
const UUID_FUNCTIONS: [&str; 5] = ["uuid", "uuidv7", "uuid7", "gen_random_uuid", "generate_uuid"];

/// What computing a constant of a definition may take.
const CONSTANT_BYTES_MAX: usize = 16 << 20;
const CONSTANT_TIME_MAX: Duration = Duration::from_millis(100);

/// A declared field.
pub(crate) struct Column {
    pub field: Field,
    pub is_key: bool,
    /// The index that makes its values unique.
    pub unique: Option<NewIndex>,
    pub checks: Vec<Check>,
    pub references: Vec<NewReference>,
}

pub(crate) fn convert(column: &ast::ColumnDef) -> Result<Column> {
    let name = column.name.value.clone();
    convert_options(&name, column).map_err(|e| e.at(format_args!("field {name:?}")))
}

fn convert_options(name: &str, column: &ast::ColumnDef) -> Result<Column> {
    let serial = sequence::serial(&column.data_type);
    let data_type = serial.map_or_else(|| type_name::convert(&column.data_type), Ok)?;
    let mut field = Field::new(FieldId(0), name.to_owned(), data_type, serial.is_none());
    field.identity = serial.map(|_| Identity::default());
    field.length_max = type_name::length(&column.data_type, data_type)?;
    field.labels = type_name::labels(&column.data_type)?.map(Arc::new);
    let (mut is_key, mut unique, mut checks) = (false, None, Vec::new());
    let mut references = Vec::new();
    for option in &column.options {
        match &option.option {
            ast::ColumnOption::Null if option.name.is_none() => {}
            ast::ColumnOption::NotNull if option.name.is_none() => field.nullable = false,
            ast::ColumnOption::PrimaryKey(_) if option.to_string() == "PRIMARY KEY" => {
                is_key = true;
            }
            ast::ColumnOption::Unique(_) if option.option.to_string() == "UNIQUE" => {
                unique = Some(unique_index(name, option.name.as_ref()));
            }
            ast::ColumnOption::Default(value) if option.name.is_none() => {
                field.default = default(value, data_type).map_err(|e| e.at("DEFAULT"))?;
            }
            ast::ColumnOption::Check(constraint) => {
                let named = option.name.as_ref().or(constraint.name.as_ref());
                let unnamed = || free_name(&format!("check_{name}"), &checks);
                let name = named.map_or_else(unnamed, |n| n.value.clone());
                checks.push(check(name, constraint)?);
            }
            ast::ColumnOption::ForeignKey(key) => {
                let fields = vec![name.to_owned()];
                references.push(reference::declared(key, fields, option.name.as_ref())?);
            }
            ast::ColumnOption::Generated {
                generation_expr: Some(expr),
                generation_expr_mode: mode,
                ..
            } if option.name.is_none() => {
                let is_virtual = *mode != Some(ast::GeneratedExpressionMode::Stored);
                field.generated = Some(Arc::new(Generated { is_virtual, ..generated(expr)? }));
            }
            ast::ColumnOption::Generated {
                generation_expr: None,
                generated_as,
                sequence_options,
                ..
            } if option.name.is_none() => {
                // default: without options it begins at 1
                let options = sequence_options.as_deref().unwrap_or_default();
                field.identity = Some(sequence::identity(generated_as, options)?);
                field.nullable = false;
            }
            ast::ColumnOption::DialectSpecific(words) if sequence::is_autoincrement(words) => {
                field.identity = Some(Identity::default());
                field.nullable = false;
            }
            // Texts compare so anyway.
            ast::ColumnOption::Collation(name) if collation::named(name)? == Collation::Binary => {}
            ast::ColumnOption::Collation(_) => {
                return Err(unsupported(
                    "COLLATE as a property of a field (write it in queries: `= 'x' COLLATE \
                     nocase`, `ORDER BY name COLLATE nocase`)",
                    column,
                ));
            }
            _ => return Err(unsupported("this property of a field", column)),
        }
    }
    Ok(Column { field, is_key, unique, checks, references })
}

/// The index that makes the values of a field unique.
fn unique_index(field: &str, named: Option<&ast::Ident>) -> NewIndex {
    let index = NewIndex::on(vec![(field.to_owned(), false)]).unique();
    match named {
        Some(name) => NewIndex { name: name.value.clone(), ..index },
        None => index,
    }
}

/// What computes the values of a field from the others of its row.
pub(crate) fn generated(expr: &ast::Expr) -> Result<Generated> {
    let expr = Names::new(Vec::new(), &ParameterNames::default()).convert(expr)?;
    let expression = GeneratedValue::encode(&expr)?;
    Ok(Generated { expression, is_virtual: false })
}

/// A name that no other check of a list has: the name itself, or with a number from 2 on.
pub(crate) fn free_name(name: &str, checks: &[Check]) -> String {
    let is_free = |name: &String| checks.iter().all(|check| check.name != *name);
    let numbered = (2..checks.len() + 2).map(|number| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| name.to_owned())
}

/// A default of a field of a type.
fn default(expr: &ast::Expr, data_type: DataType) -> Result<Option<DefaultValue>> {
    let is_time = matches!(data_type, DataType::Timestamp | DataType::Date | DataType::Time);
    match default_of_any(expr)? {
        Some(DefaultValue::Literal(value)) => {
            Ok(Some(DefaultValue::Literal(esker_query::assign(value, data_type)?)))
        }
        Some(DefaultValue::Now) if !is_time => computed_as(expr, data_type),
        Some(DefaultValue::Uuid) if data_type != DataType::Uuid => computed_as(expr, data_type),
        Some(DefaultValue::After(_)) if data_type != DataType::Timestamp => {
            computed_as(expr, data_type)
        }
        Some(DefaultValue::Computed(_)) => computed_as(expr, data_type),
        other => Ok(other),
    }
}

/// A default that is evaluated for each row, of which the field takes the value.
fn computed_as(expr: &ast::Expr, data_type: DataType) -> Result<Option<DefaultValue>> {
    let expr = Names::new(Vec::new(), &ParameterNames::default()).convert(expr)?;
    let computed = computed(&expr)?;
    // What its type may not be is refused here, where it is written.
    esker_query::assign(esker_query::constant(&expr, &constant_inputs(true))?, data_type)?;
    Ok(Some(computed))
}

fn computed(expr: &Expr) -> Result<DefaultValue> {
    Ok(DefaultValue::Computed(ComputedDefault::encode(expr)?))
}

/// A default: a constant, the time, a new UUID, the next value of a sequence, or an expression that
/// is evaluated for each row. NULL is none.
pub(crate) fn default_of_any(expr: &ast::Expr) -> Result<Option<DefaultValue>> {
    if let ast::Expr::Function(function) = expr {
        let text = function.to_string().to_lowercase();
        if UUID_FUNCTIONS.iter().any(|name| text.strip_suffix("()") == Some(name)) {
            return Ok(Some(DefaultValue::Uuid));
        }
    }
    let expr = Names::new(Vec::new(), &ParameterNames::default()).convert(expr)?;
    if matches!(&expr, Expr::Call(Function::Now | Function::CurrentDate, _)) {
        return Ok(Some(DefaultValue::Now));
    }
    if let Some(after) = after_now(&expr) {
        return Ok(Some(after));
    }
    if let Expr::Call(Function::Nextval, operands) = &expr {
        return match operands.as_slice() {
            [Expr::Literal(Value::Text(name))] => {
                // default: it is in a schema that users have made, or says none
                let name = name.strip_prefix("main.").unwrap_or(name);
                Ok(Some(DefaultValue::NextValue(name.to_owned())))
            }
            _ => Err(Error::invalid("nextval takes the name of a sequence, like 'orders'")),
        };
    }
    if changes(&expr) {
        return computed(&expr).map(Some);
    }
    let value = constant(&expr)?;
    if value.is_null() {
        return Ok(None);
    }
    Ok(Some(DefaultValue::Literal(value)))
}

/// Whether an expression gives another value at another time, or each time.
fn changes(expr: &Expr) -> bool {
    expr.varies() || expr.operands().into_iter().any(changes)
}

/// `now() + INTERVAL '5 minutes'`: so long after the row is written.
fn after_now(expr: &Expr) -> Option<DefaultValue> {
    let Expr::Apply(Operator::Add, operands) = expr else { return None };
    let [Expr::Call(Function::Now, _), Expr::Literal(Value::Interval(after))] = operands.as_slice()
    else {
        return None;
    };
    // A month has no length of its own.
    let us = (after.months() == 0).then(|| after.length_us())?;
    u64::try_from(us).ok().map(DefaultValue::After)
}

/// The value of an expression in a definition. It is computed while the text is read, within limits
/// of its own, as no statement runs yet.
pub(crate) fn constant(expr: &Expr) -> Result<Value> {
    esker_query::constant(expr, &constant_inputs(false))
}

/// What an expression in a definition is given; of one that may change from row to row also the
/// time, and chance.
fn constant_inputs(may_change: bool) -> Inputs {
    let Environment { clock, random, .. } = Environment::os();
    let limits = Limits {
        memory: Arc::new(Budget::new(CONSTANT_BYTES_MAX)),
        deadline: Some(Deadline::new(&clock, CONSTANT_TIME_MAX)),
        random: may_change.then_some(random),
        clock: may_change.then(|| Arc::clone(&clock)),
        ..Limits::default()
    };
    // What is kept of a definition does not depend on who reads it: by zero nothing is divided.
    let semantics = Semantics::postgres();
    let now_us = if may_change { clock.wall_us() } else { 0 };
    Inputs { now_us, limits, semantics, ..Inputs::default() }
}

/// A check constraint.
pub(crate) fn check(name: String, constraint: &ast::CheckConstraint) -> Result<Check> {
    if constraint.no_inherit || constraint.enforced == Some(false) {
        return Err(unsupported("this property of a check", constraint));
    }
    let condition = Names::new(Vec::new(), &ParameterNames::default()).convert(&constraint.expr);
    let condition = condition.map_err(|e| e.at(format_args!("check {name:?}")))?;
    Ok(Check { name, condition: Constraint::encode(&condition)? })
}
