//! Members of a conjunction that test one field, or one part of a document, as runs can answer.

use std::borrow::Cow;

use esker_format::json::name_step;
use esker_format::{DataType, Value};

use crate::bound::{Bound, Node};
use crate::model::Function;
use crate::predicate::{Condition, Predicate, Test, expression_test, operand_test};
use crate::source::{RunPath, SortedRun};

/// The text at the end of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentPath<'p> {
    /// The position of the field.
    field: usize,
    /// Names, from the document on, as steps: see [`name_step`].
    steps: Vec<&'p str>,
}

/// What a condition is on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Indexable<'p> {
    Field(usize),
    Path(DocumentPath<'p>),
    Expression(&'p Bound),
    /// How long the values of a field are, in characters or in bytes.
    Length {
        field: usize,
        in_characters: bool,
    },
}

impl Indexable<'_> {
    /// True when part number `number` of a run is what is tested.
    pub(super) fn is(&self, run: &dyn SortedRun, number: usize) -> bool {
        let field = run.fields().get(number).map(|(field, _)| *field);
        match (self, run.path(number), run.expression(number)) {
            (Self::Field(tested), None, None) => Some(*tested) == field,
            (Self::Path(tested), Some(path), _) => tested.is(path),
            (Self::Expression(tested), _, Some(of)) => **tested == of.bound,
            (Self::Length { field, in_characters }, _, Some(of)) => {
                is_length(&of.bound, *field, *in_characters)
            }
            _ => false,
        }
    }
}

/// True for the length of the values of a field, in characters or in bytes.
fn is_length(bound: &Bound, field: usize, in_characters: bool) -> bool {
    let Node::Call(function @ (Function::Length | Function::OctetLength), of) = &bound.node else {
        return false;
    };
    let [of] = of.as_slice() else { return false };
    let counts = *function == Function::Length && of.data_type == Some(DataType::Text);
    of.node == Node::Field(field) && counts == in_characters
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
    // What an index has the values of fails for no row that is seen, but others that may fail would
    // see rows that do not pass it.
    let failing = members.iter().filter(|member| member.may_fail()).count();
    for (place, member) in members.iter().enumerate() {
        match member {
            Predicate::Test(Test { field, data_type, condition }) => {
                if let Condition::Length { least, greatest, negated, in_characters } = condition {
                    let of = Condition::range(DataType::I64, *least, *greatest, *negated);
                    let in_characters = *in_characters;
                    let tested = Indexable::Length { field: *field, in_characters };
                    add(&mut found, place, (tested, DataType::I64), of);
                }
                found.push(Member {
                    places: vec![place],
                    tested: Indexable::Field(*field),
                    data_type: *data_type,
                    condition: Cow::Borrowed(condition),
                });
            }
            Predicate::Value(bound, wanted) => {
                let path = operand_test(bound, *wanted)
                    .and_then(|(part, condition)| Some((DocumentPath::of(part)?, condition)));
                if let Some((path, condition)) = path {
                    add(&mut found, place, (Indexable::Path(path), DataType::Text), condition);
                    continue;
                }
                let is_sure = failing < 2 || !member.may_fail();
                let test = expression_test(bound, *wanted).filter(|_| is_sure);
                if let Some((part, condition)) = test {
                    let tested = (Indexable::Expression(part), part.data_type());
                    add(&mut found, place, tested, condition);
                }
            }
            _ => {}
        }
    }
    found
}

fn add<'p>(
    found: &mut Vec<Member<'p>>,
    place: usize,
    (tested, data_type): (Indexable<'p>, DataType),
    condition: Condition,
) {
    for known in found.iter_mut().filter(|known| known.tested == tested) {
        if let Some(both) = known.condition.intersect(&condition) {
            known.condition = Cow::Owned(both);
            known.places.push(place);
            return;
        }
    }
    let (places, condition) = (vec![place], Cow::Owned(condition));
    found.push(Member { places, tested, data_type, condition });
}
