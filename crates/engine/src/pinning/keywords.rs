//! The keywords of JSON Schema, by how they are compared.

/// Any change of these counts: whether it is a weakening cannot be seen from the keyword alone.
pub(super) const OPAQUE: [&str; 24] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "$ref",
    "const",
    "pattern",
    "format",
    "multipleOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "dependentRequired",
    "unevaluatedItems",
    "dependencies",
    "contentEncoding",
    "contentMediaType",
];
/// Of those, the ones that only refuse more when they are added. Beside `$ref` older drafts ignore all other keywords.
pub(super) const MAY_BE_ADDED: [&str; 9] =
    ["const", "pattern", "format", "multipleOf", "oneOf", "not", "contains", "dependentRequired", "unevaluatedItems"];
/// More of these is stricter.
pub(super) const LEAST: [&str; 6] =
    ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"];
/// Less of these is stricter.
pub(super) const MOST: [&str; 6] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"];

/// These take properties or items out of what is left for `unevaluatedProperties` and `unevaluatedItems`, as others do that count
/// anyway. Named properties may be added: more of them are meant to be let through.
pub(super) const EVALUATING: [&str; 7] =
    ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "dependentSchemas", "additionalItems"];
/// What is compared keyword by keyword, besides those above.
const COMPARED: [&str; 18] = [
    "uniqueItems",
    "type",
    "enum",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "dependentSchemas",
    "$defs",
    "definitions",
    "prefixItems",
    "items",
    "additionalItems",
    "allOf",
    "anyOf",
    "contentSchema",
];
/// These refuse nothing.
const ANNOTATIONS: [&str; 9] =
    ["title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$comment"];

/// Whether a draft knows the keyword, or it refuses nothing.
pub(super) fn is_known(keyword: &str) -> bool {
    let known = [&OPAQUE[..], &LEAST, &MOST, &COMPARED, &ANNOTATIONS];
    known.iter().any(|keywords| keywords.contains(&keyword))
}
