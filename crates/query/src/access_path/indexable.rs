//! Members of a conjunction that test one field, or one part of a document, as runs can answer.

use std::borrow::Cow;

use esker_format::json::name_step;
use esker_format::{DataType, Value};

use crate::bound::{Bound, Node};
use crate::model::Function;
use crate::predicate::{Condition, Predicate, Test, operand_test};
use crate::source::RunPath;

/// The text at the end of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPath<'p> {
    /// The position of the field.
    field: usize,
    /// Names, from the document on, as steps: see [`name_step`].
    steps: Vec<&'p str>,
}

/// What a condition is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Indexable<'p> {
    Field(usize),
    Path(DocumentPath<'p>),
}

impl Indexable<'_> {
    /// True when a field of a run, or the path in its place, is what is tested.
    pub(super) fn is(&self, field: usize, path: Option<&RunPath>) -> bool {
        match (self, path) {
            (Self::Field(tested), None) => *tested == field,
            (Self::Path(tested), Some(path)) => tested.is(path),
            _ => false,
        }
    }
}

/// A condition on one thing.
pub(super) struct Member<'p> {
    /// The places of the members that it stands for.
    pub(super) places: Vec<usize>,
    pub(super) tested: Indexable<'p>,
    pub(super) data_type: DataType,
    pub(super) condition: Cow<'p, Condition>,
}

impl<'p> DocumentPath<'p> {
    /// The path of `doc ->> 'a'`, `doc -> 'a' ->> 'b'` and `doc.a.b`; `None` for anything else.
    pub(crate) fn of(bound: &'p Bound) -> Option<Self> {
        let Node::Call(Function::JsonText, operands) = &bound.node else { return None };
        let mut steps = Vec::new();
        let field = Self::collect(operands, &mut steps)?;
        Some(Self { field, steps })
    }

    fn collect(operands: &'p [Bound], steps: &mut Vec<&'p str>) -> Option<usize> {
        let (document, names) = operands.split_first()?;
        let field = match &document.node {
            Node::Field(field) => *field,
            Node::Call(Function::JsonGet, operands) => Self::collect(operands, steps)?,
            _ => return None,
        };
        for name in names {
            let Some(Value::Text(name)) = name.as_literal() else { return None };
            steps.push(name.as_str());
        }
        Some(field)
    }

    /// True when a run has the texts at its end.
    pub(crate) fn is(&self, path: &RunPath) -> bool {
        self.field == path.field
            && path.steps.iter().map(|step| name_step(step)).eq(self.steps.iter().copied())
    }
}

/// The members that test one thing, those of one part of a document together where they can be.
pub(super) fn members_of(members: &[Predicate]) -> Vec<Member<'_>> {
    let mut found: Vec<Member<'_>> = Vec::new();
    for (place, member) in members.iter().enumerate() {
        match member {
            Predicate::Test(Test { field, data_type, condition }) => found.push(Member {
                places: vec![place],
                tested: Indexable::Field(*field),
                data_type: *data_type,
                condition: Cow::Borrowed(condition),
            }),
            Predicate::Value(bound, wanted) => {
                let Some((part, condition)) = operand_test(bound, *wanted) else { continue };
                let Some(path) = DocumentPath::of(part) else { continue };
                add(&mut found, place, Indexable::Path(path), condition);
            }
            _ => {}
        }
    }
    found
}

fn add<'p>(found: &mut Vec<Member<'p>>, place: usize, tested: Indexable<'p>, condition: Condition) {
    for known in found.iter_mut().filter(|known| known.tested == tested) {
        if let Some(both) = known.condition.intersect(&condition) {
            known.condition = Cow::Owned(both);
            known.places.push(place);
            return;
        }
    }
    let (places, condition) = (vec![place], Cow::Owned(condition));
    found.push(Member { places, tested, data_type: DataType::Text, condition });
}
