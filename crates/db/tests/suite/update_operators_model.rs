//! Random operators on random documents beside a model that knows nothing of stored forms, in
//! commits of their own and within transactions that are rolled back now and then.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use esker::operators::Operator;
use esker::{DataType, Modified, Options, Schema, Update, Value};
use esker_vfs::sim::Generator;
use serde_json::{Map, Value as Json, json};

const NAMES: [&str; 4] = ["a", "b", "long name", "ü"];

fn draw(generator: &mut Generator, depth: usize) -> Json {
    match generator.index(if depth > 2 { 4 } else { 7 }) {
        0 => Json::Null,
        1 => json!(generator.below(2) == 0),
        2 => json!(i64::try_from(generator.below(40)).unwrap() - 20),
        3 => json!("x".repeat(generator.index(300))),
        4 => Json::Array((0..generator.index(4)).map(|_| draw(generator, depth + 1)).collect()),
        _ => {
            let members = (0..generator.index(5))
                .map(|_| (NAMES[generator.index(4)].to_owned(), draw(generator, depth + 1)));
            Json::Object(members.collect())
        }
    }
}

fn path(generator: &mut Generator) -> Vec<String> {
    let step = |generator: &mut Generator| match generator.index(4) {
        0 => ["0", "1", "-1"][generator.index(3)].to_owned(),
        _ => NAMES[generator.index(4)].to_owned(),
    };
    (0..generator.index(4)).map(|_| step(generator)).collect()
}

/// Where an array has a place of this name.
fn place(items: &[Json], step: &str) -> Option<usize> {
    let place: i64 = step.parse().ok()?;
    let len = i64::try_from(items.len()).unwrap();
    usize::try_from(if place < 0 { len + place } else { place }).ok()
}

/// What is at a path, `Err` where the way is barred.
fn get(json: Option<&Json>, path: &[String]) -> Result<Option<Json>, ()> {
    let Some((step, rest)) = path.split_first() else { return Ok(json.cloned()) };
    match json {
        None => get(None, rest),
        Some(Json::Object(members)) => get(members.get(step), rest),
        Some(Json::Array(items)) => get(items.get(place(items, step).ok_or(())?), rest),
        Some(_) => Err(()),
    }
}

fn put(json: Option<Json>, path: &[String], value: Option<Json>) -> Result<Option<Json>, ()> {
    let Some((step, rest)) = path.split_first() else { return Ok(value) };
    match json {
        None => {
            Ok(put(None, rest, value)?.map(|v| Json::Object(Map::from_iter([(step.clone(), v)]))))
        }
        Some(Json::Object(mut members)) => {
            let below = put(members.remove(step), rest, value)?;
            members.extend(below.map(|below| (step.clone(), below)));
            Ok(Some(Json::Object(members)))
        }
        Some(Json::Array(mut items)) => {
            let at = place(&items, step).ok_or(())?;
            let below = put(items.get(at).cloned(), rest, value)?;
            match below {
                Some(below) if at < items.len() => items[at] = below,
                Some(below) if at == items.len() => items.push(below),
                Some(_) => return Err(()),
                None if at < items.len() => drop(items.remove(at)),
                None => {}
            }
            Ok(Some(Json::Array(items)))
        }
        Some(_) => Err(()),
    }
}

/// What comes of a value; `Err` where the operator does not take it.
fn model(operator: Operator, old: Option<Json>, operand: &Json) -> Result<Option<Json>, ()> {
    let array = |old: Option<Json>| match old {
        None => Ok(Vec::new()),
        Some(Json::Array(items)) => Ok(items),
        Some(_) => Err(()),
    };
    let number = |old: Option<Json>| old.map_or(Ok(0), |old| old.as_i64().ok_or(()));
    let is_missing = old.is_none();
    Ok(match operator {
        Operator::Set => Some(operand.clone()),
        Operator::Unset => None,
        Operator::Increment => Some(json!(number(old)? + operand.as_i64().ok_or(())?)),
        Operator::Multiply => Some(json!(number(old)?.checked_mul(operand.as_i64().ok_or(())?))),
        Operator::Min | Operator::Max => match (old, operand) {
            (None, _) => Some(operand.clone()),
            (Some(Json::Number(a)), Json::Number(b)) => {
                let (a, b) = (a.as_i64().unwrap(), b.as_i64().unwrap());
                Some(json!(if operator == Operator::Min { a.min(b) } else { a.max(b) }))
            }
            (Some(Json::String(a)), Json::String(b)) => Some(json!(if operator == Operator::Min {
                a.min(b.clone())
            } else {
                a.max(b.clone())
            })),
            _ => return Err(()),
        },
        _ => {
            let mut items = array(old)?;
            match operator {
                Operator::Push => items.push(operand.clone()),
                Operator::PushFront => items.insert(0, operand.clone()),
                Operator::AddToSet if items.contains(operand) => {}
                Operator::AddToSet => items.push(operand.clone()),
                _ if is_missing => return Ok(None),
                Operator::Pop => drop(items.pop()),
                Operator::PopFront if items.is_empty() => {}
                Operator::PopFront => drop(items.remove(0)),
                _ => items.retain(|item| item != operand),
            }
            Some(Json::Array(items))
        }
    })
}

const DRAWN: [Operator; 12] = [
    Operator::Set,
    Operator::Unset,
    Operator::Increment,
    Operator::Multiply,
    Operator::Min,
    Operator::Max,
    Operator::Push,
    Operator::PushFront,
    Operator::Pop,
    Operator::PopFront,
    Operator::Pull,
    Operator::AddToSet,
];

/// What the document of the model becomes; `Err` where the update is refused.
fn expected(
    doc: Option<&Json>,
    operator: Operator,
    path: &[String],
    operand: &Json,
) -> Result<Option<Json>, ()> {
    let old = get(doc, path)?;
    let removes =
        matches!(operator, Operator::Unset | Operator::Pop | Operator::PopFront | Operator::Pull);
    let new = model(operator, old.clone(), operand)?;
    if old.is_none() && removes {
        return Ok(doc.cloned());
    }
    put(doc.cloned(), path, new)
}

#[test]
fn random_operators_do_what_the_model_does() {
    let mut refused = 0;
    for seed in 0..40 {
        let mut generator = Generator::new(seed, 1);
        let db = Options::new().memory().unwrap();
        let schema = Schema::builder().field("id", DataType::I64).nullable("doc", DataType::Json);
        let t = db.create_table("t", schema.primary_key(["id"]).build().unwrap()).unwrap();
        let mut doc = Some(draw(&mut generator, 0));
        let stored = |doc: &Option<Json>| {
            doc.as_ref().map_or(Value::Null, |doc| Value::json(&doc.to_string()).unwrap())
        };
        t.insert(&[1.into(), stored(&doc)]).unwrap();
        for _ in 0..100 {
            let operator = DRAWN[generator.index(DRAWN.len())];
            let (path, operand) = (path(&mut generator), draw(&mut generator, 2));
            let operand = match operator {
                Operator::Increment | Operator::Multiply => json!(generator.below(4)),
                Operator::Set if path.is_empty() && operand.is_null() => json!({}),
                _ => operand,
            };
            let text = std::iter::once("doc").chain(path.iter().map(String::as_str));
            let text = text.collect::<Vec<_>>().join(".");
            let update = Update::new().with(operator, &text, stored(&Some(operand.clone())));
            let update = match operator {
                Operator::Increment | Operator::Multiply => {
                    Update::new().with(operator, &text, operand.as_i64().unwrap())
                }
                _ => update,
            };
            let wanted = expected(doc.as_ref(), operator, &path, &operand);
            let place = format!("seed {seed}: {operator} {text} {operand} on {doc:?}");
            let applied = if generator.below(2) == 0 {
                t.apply(&[1.into()], &update)
            } else {
                let transaction = db.begin().unwrap();
                let applied = transaction.table("t").unwrap().apply(&[1.into()], &update);
                if generator.below(4) == 0 {
                    transaction.rollback();
                    let row = t.get(&[1.into()]).unwrap().unwrap();
                    assert_eq!(row.values()[1], stored(&doc), "rolled back: {place}");
                    continue;
                }
                transaction.commit().unwrap();
                applied
            };
            match (applied, wanted) {
                (Ok(Modified::Changed { old, new }), Ok(wanted)) => {
                    assert_eq!(old.values()[1], stored(&doc), "{place}");
                    doc = wanted;
                    assert_eq!(new.unwrap().values()[1], stored(&doc), "{place}");
                }
                (Err(_), Err(())) => refused += 1,
                other => unreachable!("{place}: {other:?}"),
            }
            assert_eq!(t.get(&[1.into()]).unwrap().unwrap().values()[1], stored(&doc), "{place}");
        }
    }
    assert!(refused > 100, "{refused}");
}
