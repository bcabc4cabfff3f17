//! What is counted is at least what the validator does.

use std::cell::Cell;

use jsonschema::{Draft, Keyword, ValidationError};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Schema, expansion};

thread_local! {
    static APPLIED: Cell<u64> = const { Cell::new(0) };
}

/// A keyword that counts how often its schema was applied.
struct Counted;

impl<'i> Keyword<'i> for Counted {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.is_valid(instance);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        APPLIED.set(APPLIED.get() + 1);
        true
    }
}

/// Counts how many schemas with the keyword `count` the validator applies: to see whether the value fits, and to list
/// the errors.
fn applied(schema: &Value, value: &Value) -> (u64, u64) {
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_keyword("count", |_, _, _| Ok(Box::new(Counted)))
        .build(schema)
        .unwrap();
    APPLIED.set(0);
    let _ = validator.is_valid(value);
    let check = APPLIED.replace(0);
    validator.iter_errors(value).for_each(drop);
    (check, APPLIED.take())
}

fn cost(schema: &Value, value: &Value) -> Result<Cost, Costly> {
    let mut document = Document::read(schema).unwrap();
    let here = expansion::check(&mut document).unwrap();
    Count::new(&Costs::of(&mut document, here).unwrap().graph).pair(0, value)
}

/// Makes a schema that applies itself to a member twice.
fn doubling() -> Value {
    let one = json!({"properties": {"a": {"$ref": "#"}}});
    json!({"type": "object", "allOf": [one, one], "properties": {"n": {"type": "integer"}}})
}

/// Nests so deep; the innermost has a wrong value.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!({"n": "wrong"}), |inner, _| json!({"a": inner}))
}

#[test]
fn work_that_doubles_with_each_level_is_counted_without_doing_it() {
    let doubled = cost(&doubling(), &nested(60)).unwrap();
    assert!(doubled.all > 1 << 60, "{}", doubled.all);
    assert_eq!(cost(&json!({"not": {}}), &json!(1)).unwrap().all, 2);
}

#[test]
fn a_deep_wrong_value_is_refused_without_a_description_and_a_right_one_runs() {
    let schema = Schema::compile(&doubling()).unwrap();
    let refusal = schema.check(&nested(60).to_string()).unwrap_err();
    insta::assert_snapshot!(refusal);
    let right = nested(60).to_string().replace("\"wrong\"", "1");
    assert_eq!(schema.check(&right), Ok(()));
    let shallow = schema.check(&nested(4).to_string()).unwrap_err();
    assert_eq!(shallow.details[0].path, "/a/a/a/a/n");
}

#[test]
fn what_is_too_costly_says_so() {
    let lists =
        json!({"properties": {"l": {"items": {"enum": (0..9_000).map(|n| format!("a{n}")).collect::<Vec<_>>()}}}});
    let schema = Schema::compile(&lists).unwrap();
    assert_eq!(schema.check(&json!({"l": ["a1", "a8999"]}).to_string()), Ok(()));
    let refusal = schema.check(&json!({"l": vec!["a1"; 5_000]}).to_string()).unwrap_err();
    insta::assert_snapshot!(format!("{:?} {refusal}", refusal.class));
    assert_eq!(refusal.help.example, None);
    // The results of a `$dynamicRef` are not remembered.
    let one = json!({"properties": {"a": {"$dynamicRef": "#here"}}});
    let dynamic = Schema::compile(&json!({"$dynamicAnchor": "here", "allOf": [one, one]})).unwrap();
    assert_eq!(dynamic.check(&nested(60).to_string()).unwrap_err().class, redial_proto::ErrorClass::Configuration);
    assert_eq!(dynamic.check(&nested(9).to_string()), Ok(()));
}

#[test]
fn regular_expressions_and_formats_cost_by_length() {
    let schema = Schema::compile(&json!({"properties": {"a": {"pattern": "^(\\p{L}|x){1,60}$"}}})).unwrap();
    assert_eq!(schema.check(&json!({"a": "x".repeat(60)}).to_string()), Ok(()));
    let long = json!({"a": "x".repeat(200_000)}).to_string();
    assert_eq!(schema.check(&long).unwrap_err().class, redial_proto::ErrorClass::Configuration);
    let format = Schema::compile(&json!({"properties": {"a": {"format": "date"}}})).unwrap();
    assert_eq!(format.check(&long).unwrap_err().class, redial_proto::ErrorClass::InvalidArguments);
}

#[test]
fn a_union_that_contains_itself_is_checked_at_any_depth() {
    let block = |n: usize| {
        json!({"properties": {"type": {"const": format!("t{n}")}, "children": {"type": "array", "items": {"$ref": "#/$defs/B"}}},
            "required": ["type"], "additionalProperties": false})
    };
    let blocks: Vec<Value> = (0..30).map(block).collect();
    let schema = json!({"properties": {"b": {"$ref": "#/$defs/B"}}, "$defs": {"B": {"oneOf": blocks}}});
    let schema = Schema::compile(&schema).unwrap();
    let deep = |last: &str| {
        (0..25).fold(json!({"type": last}), |inner, n| json!({"type": format!("t{n}"), "children": [inner]}))
    };
    assert_eq!(schema.check(&json!({"b": deep("t1")}).to_string()), Ok(()));
    assert!(schema.check(&json!({"b": deep("none")}).to_string()).is_err());
}

#[test]
fn ordinary_arguments_are_cheap() {
    let line = json!({"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": ["string", "null"]}}, "required": ["id"]});
    let order = json!({"properties": {"date": {"format": "date"}, "code": {"pattern": "^[A-Z]{3}$"},
        "lines": {"type": "array", "items": line}, "unit": {"enum": ["a", "b"]},
        "to": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"city": {"type": "string"}}}]}}});
    let order = Schema::compile(&order).unwrap();
    assert!(order.is_cheap(2_000) && !order.is_cheap(200_000));
    assert!(!Schema::compile(&doubling()).unwrap().is_cheap(10));
}

/// Generates a schema of a few definitions that apply one another in all ways.
fn schemas() -> impl Strategy<Value = Value> {
    let reference = (0..3_usize).prop_map(|n| json!({"$ref": format!("#/$defs/d{n}"), "count": true}));
    let leaf = prop_oneof![
        Just(json!({"type": "integer", "count": true})),
        Just(json!({"type": "object", "required": ["a"], "count": true})),
        Just(json!({"enum": [1, "x", {"a": 1}], "count": true})),
        Just(json!({"uniqueItems": true, "maxProperties": 2, "count": true})),
    ];
    let below = prop_oneof![3 => reference, 1 => leaf.clone()];
    let one = prop_oneof![
        4 => (below.clone(), below.clone()).prop_map(|(a, b)| json!({"properties": {"a": a, "b": b}, "count": true})),
        1 => (below.clone(), below.clone()).prop_map(|(a, b)| json!({"items": a, "additionalProperties": b, "count": true})),
        1 => (below.clone(), leaf.clone()).prop_map(|(a, b)| json!({"patternProperties": {"a": a}, "propertyNames": b, "count": true})),
        1 => (below.clone(), below.clone()).prop_map(|(a, b)| json!({"prefixItems": [a], "contains": b, "count": true})),
        1 => (below.clone(), below).prop_map(|(a, b)| json!({"unevaluatedProperties": a, "unevaluatedItems": b, "count": true})),
        2 => leaf,
    ];
    let both = (one.clone(), one.clone(), 0..6).prop_map(|(a, b, way)| match way {
        0 => json!({"allOf": [a, b], "count": true}),
        1 => json!({"anyOf": [a, b], "count": true}),
        2 => json!({"oneOf": [a, b, {"const": 7, "count": true}], "count": true}),
        3 => json!({"if": a, "then": b, "else": a, "count": true}),
        4 => json!({"not": a, "dependentSchemas": {"a": b}, "count": true}),
        _ => a,
    });
    proptest::collection::vec(both, 3).prop_map(|d| {
        let [d0, d1, d2] = <[Value; 3]>::try_from(d).unwrap();
        json!({"$ref": "#/$defs/d0", "count": true, "$defs": {"d0": d0, "d1": d1, "d2": d2}})
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(1)), Just(json!("x")), Just(json!([]))];
    let inner = leaf.prop_recursive(7, 40, 3, |inner| {
        prop_oneof![
            3 => inner.clone().prop_map(|a| json!({"a": a})),
            3 => (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"a": a, "b": b})),
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    });
    inner.prop_map(|a| json!({"a": a}))
}

proptest! {
    #[test]
    fn the_validator_never_applies_more_schemas_than_are_counted(schema in schemas(), value in values()) {
        prop_assume!(Schema::compile(&schema).is_ok());
        let cost = cost(&schema, &value).unwrap();
        // The reference solution must end as well.
        prop_assume!(cost.described < 3_000_000);
        let (check, described) = applied(&schema, &value);
        prop_assert!(check <= cost.all, "{} applied, {} counted: {} {}", check, cost.all, schema, value);
        prop_assert!(described <= cost.described, "{} applied, {} counted: {} {}", described, cost.described, schema, value);
    }

    #[test]
    fn any_arguments_are_decided_in_bounded_steps(schema in schemas(), value in values(), levels in 0..50_usize) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let deep = (0..levels).fold(value, |inner, n| if n % 2 == 0 { json!({"a": inner}) } else { json!({"a": inner, "b": [1]}) });
        let steps = Steps::default();
        let _ = compiled.resolve_within(&deep.to_string(), crate::Repairs::On, redial_proto::Language::En, &steps);
        prop_assert!(steps.0.get() <= MAX_STEPS);
    }
}
