//! The OpenAPI 3.1 document, from what the endpoints declare.

use std::{collections::BTreeMap, fmt::Write as _};

use axum::http::Method;
use redial_api::ProblemDocument;
use redial_proto::UserRole;
use schemars::{
    Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, ReplaceBoolSchemas},
};
use serde_json::{Map, Value, json};

use crate::{
    endpoint::{Endpoint, Header},
    openai_error::{self, OpenaiError},
    problem::PROBLEM_JSON,
};

pub(crate) fn document(endpoints: &[Endpoint]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    // Most generators of clients do not know that `true` is a schema, too.
    let mut replace_bools = ReplaceBoolSchemas::default();
    replace_bools.skip_additional_properties = true;
    let settings = settings.with_transform(replace_bools).with_transform(RecursiveTransform(list_texts));
    let mut schemas = SchemaGenerator::new(settings);
    let problem = schemas.subschema_for::<ProblemDocument>().to_value();
    let openai_problem = schemas.subschema_for::<OpenaiError>().to_value();
    let mut paths = BTreeMap::<&str, Map<String, Value>>::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut schemas);
        paths.entry(endpoint.path).or_default().insert(endpoint.method.as_str().to_ascii_lowercase(), operation);
    }
    let schemas = schemas.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redial",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Durable tool calls for LLM agents: submit, wait, follow and audit. Errors are problem documents (RFC 9457).",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token of `redial token create`: `rdl_<id>_<secret>`.",
            }},
            "responses": {
                "problem": {
                    "description": "The request failed; the code says why.",
                    "content": {PROBLEM_JSON: {"schema": problem}},
                },
                "openai_problem": {
                    "description": "The request failed; the code says why.",
                    "content": {"application/json": {"schema": openai_problem}},
                },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": parameters(endpoint, schemas),
        "responses": answers(endpoint, schemas),
    });
    let description = [endpoint.description.to_owned(), roles(endpoint.roles)].join(" ");
    operation["description"] = description.trim().into();
    if !endpoint.roles.is_empty() {
        // A gateway on loopback may go without.
        operation["security"] = json!([{"token": []}, {}]);
    }
    if !endpoint.bodies.is_empty() {
        let required = endpoint.bodies.iter().all(|body| body.required);
        let content: Map<String, Value> = endpoint
            .bodies
            .iter()
            .map(|body| (body.media.to_owned(), json!({"schema": object((body.schema)(schemas))})))
            .collect();
        operation["requestBody"] = json!({"required": required, "content": content});
    }
    operation
}

/// Writes a schema as an object, also the one that allows everything.
fn object(schema: Schema) -> Value {
    if schema.as_bool() == Some(true) { json!({}) } else { schema.to_value() }
}

/// Joins the schemas that an answer may have.
fn either(first: Value, second: Value) -> Value {
    match first {
        Value::Null => second,
        Value::Object(mut choices) if choices.contains_key("anyOf") => {
            if let Some(Value::Array(all)) = choices.get_mut("anyOf") {
                all.push(second);
            }
            choices.into()
        }
        first => json!({"anyOf": [first, second]}),
    }
}

/// Makes one list of the texts of an enum, with what each means in the description. As a choice of constants, which
/// schemars writes, generators of clients make a type for each text, and code that takes only the first.
fn list_texts(schema: &mut Schema) {
    let choices = schema.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let texts: Option<Vec<Vec<Value>>> = choices.iter().map(texts).collect();
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return };
    let mut description = schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    for choice in &choices {
        if let (Some(text), Some(means)) = (choice["const"].as_str(), choice["description"].as_str()) {
            let _ = write!(description, "\n- `{text}`: {means}");
        }
    }
    schema.remove("oneOf");
    schema.insert("description".to_owned(), description.trim().into());
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), texts.concat().into());
}

/// Returns the texts that a choice allows, if it allows only such.
fn texts(choice: &Value) -> Option<Vec<Value>> {
    match (choice.get("const"), choice.get("enum")) {
        (Some(text), None) if text.is_string() => Some(vec![text.clone()]),
        (None, Some(Value::Array(texts))) if choice["type"] == "string" => Some(texts.clone()),
        _ => None,
    }
}

fn roles(roles: &[UserRole]) -> String {
    if roles.is_empty() || roles.len() == UserRole::ALL.len() {
        return String::new();
    }
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    format!("Role: {}.", names.join(" or "))
}

/// Lists those of the path, the query and the headers.
fn parameters(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Vec<Value> {
    let names = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let path = |name: &str| {
        let name = name.trim_start_matches('*');
        json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
    };
    let mut parameters: Vec<Value> = names.map(path).collect();
    let query = endpoint.query.map(|query| query(schemas).to_value());
    if let Some(Value::Object(fields)) = query.as_ref().and_then(|query| query.get("properties")) {
        let required = query.as_ref().and_then(|query| query.get("required")?.as_array().cloned()).unwrap_or_default();
        for (name, schema) in fields {
            let required = required.iter().any(|one| one == name);
            let (mut schema, description) = (schema.clone(), schema.get("description").cloned());
            if let Value::Object(schema) = &mut schema {
                schema.remove("description");
            }
            let mut parameter = json!({"name": name, "in": "query", "required": required, "schema": schema});
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameters.push(parameter);
        }
    }
    let header = |Header { name, description }: &Header| {
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": {"type": "string"},
        })
    };
    parameters.extend(endpoint.headers.iter().map(header));
    parameters
}

fn answers(endpoint: &Endpoint, schemas: &mut SchemaGenerator) -> Value {
    let mut answers = Map::new();
    for answer in &endpoint.answers {
        let entry = answers.entry(answer.status.to_string()).or_insert_with(|| json!({}));
        entry["description"] = answer.description.into();
        if let Some(schema) = answer.schema {
            let content = &mut entry["content"][answer.media]["schema"];
            *content = either(content.take(), object(schema(schemas)));
        }
    }
    let problem = if openai_error::is_for(endpoint.path) { "openai_problem" } else { "problem" };
    for status in problems(endpoint) {
        let reference = || json!({"$ref": format!("#/components/responses/{problem}")});
        answers.entry(status.to_string()).or_insert_with(reference);
    }
    answers.into()
}

/// Lists the statuses of requests that fail.
fn problems(endpoint: &Endpoint) -> Vec<u16> {
    let changes = endpoint.method != Method::GET;
    let (has_roles, has_bodies) = (!endpoint.roles.is_empty(), !endpoint.bodies.is_empty());
    let names = endpoint.path.contains('{');
    let is_read = names || has_bodies || endpoint.query.is_some() || !endpoint.headers.is_empty();
    let groups: [(bool, &[u16]); 7] = [
        (true, &[421, 500, 503]),
        (has_roles, &[401, 403, 429]),
        (openai_error::is_for(endpoint.path), &[400]),
        (has_bodies, &[400, 413, 415]),
        (names || changes, &[404]),
        (changes, &[403, 409]),
        (is_read, &[422]),
    ];
    let mut statuses: Vec<u16> =
        groups.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, statuses)| statuses).copied().collect();
    statuses.sort_unstable();
    statuses
}

#[cfg(test)]
mod committed;
