//! The OpenAPI 3.1 document, from what the endpoints declare.

use std::collections::BTreeMap;

use redial_proto::UserRole;
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::{
    endpoint::{Endpoint, Header},
    problem::{PROBLEM_JSON, ProblemDocument},
};

/// The document, as JSON.
pub(crate) fn document(endpoints: &[Endpoint]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = SchemaGenerator::new(settings);
    let problem = schemas.subschema_for::<ProblemDocument>().to_value();
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
            "responses": {"problem": {
                "description": "The request failed; the code says why.",
                "content": {PROBLEM_JSON: {"schema": problem}},
            }},
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
            .map(|body| (body.media.to_owned(), json!({"schema": (body.schema)(schemas)})))
            .collect();
        operation["requestBody"] = json!({"required": required, "content": content});
    }
    operation
}

fn roles(roles: &[UserRole]) -> String {
    if roles.is_empty() || roles.len() == UserRole::ALL.len() {
        return String::new();
    }
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    format!("Role: {}.", names.join(" or "))
}

/// Those of the path, the query and the headers.
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
            entry["content"][answer.media] = json!({"schema": schema(schemas)});
        }
    }
    answers.insert("default".to_owned(), json!({"$ref": "#/components/responses/problem"}));
    answers.into()
}
