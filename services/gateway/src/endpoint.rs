//! How an address of the API is declared: once, for the router, for what is allowed, and for the OpenAPI document.

use axum::{
    handler::Handler,
    http::Method,
    routing::{MethodFilter, MethodRouter, on},
};
use redial_proto::UserRole;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::gateway::Shared;

pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) handler: MethodRouter<Shared>,
    /// What the roles of a token must include one of; empty: no token is needed.
    pub(crate) roles: &'static [UserRole],
    /// `operationId` of the document.
    pub(crate) name: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// A struct whose fields are the parameters of the query.
    pub(crate) query: Option<SchemaOf>,
    pub(crate) headers: Vec<Header>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) answers: Vec<Answer>,
}

#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

pub(crate) struct Body {
    pub(crate) media: &'static str,
    pub(crate) schema: SchemaOf,
    pub(crate) required: bool,
}

/// An answer that is no problem.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) media: &'static str,
    pub(crate) schema: Option<SchemaOf>,
}

/// RFC 7240.
pub(crate) const PREFER: Header = Header {
    name: "Prefer",
    description: "`wait=20` waits so many seconds for the end, at most 60 (RFC 7240). Default: no wait.",
};
pub(crate) const LAST_EVENT_ID: Header =
    Header { name: "Last-Event-ID", description: "The id of the last event that you have; it comes before `after`." };
pub(crate) const IDEMPOTENCY_KEY: Header = Header {
    name: "Idempotency-Key",
    description: "The same as `key` in the body: the same key with the same content gets the first answer again.",
};

const JSON: &str = "application/json";

impl Endpoint {
    pub(crate) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        Self::new(Method::GET, MethodFilter::GET, path, handler)
    }

    pub(crate) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        Self::new(Method::POST, MethodFilter::POST, path, handler)
    }

    pub(crate) fn patch<T: 'static>(path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        Self::new(Method::PATCH, MethodFilter::PATCH, path, handler)
    }

    pub(crate) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, Shared>) -> Self {
        Self::new(Method::DELETE, MethodFilter::DELETE, path, handler)
    }

    fn new<T: 'static>(
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        handler: impl Handler<T, Shared>,
    ) -> Self {
        Self {
            method,
            path,
            handler: on(filter, handler),
            roles: &[],
            name: "",
            tag: "",
            summary: "",
            description: "",
            query: None,
            headers: Vec::new(),
            bodies: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Sets its group, its name for generated clients (lower snake case), and what it does in a few words.
    pub(crate) fn about(mut self, tag: &'static str, name: &'static str, summary: &'static str) -> Self {
        (self.tag, self.name, self.summary) = (tag, name, summary);
        self
    }

    pub(crate) fn description(mut self, text: &'static str) -> Self {
        self.description = text;
        self
    }

    pub(crate) fn roles(mut self, roles: &'static [UserRole]) -> Self {
        self.roles = roles;
        self
    }

    /// Makes the fields of `T` the parameters of the query.
    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(root::<T>);
        self
    }

    pub(crate) fn header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        self.body_as::<T>(JSON)
    }

    pub(crate) fn body_as<T: JsonSchema>(mut self, media: &'static str) -> Self {
        self.bodies.push(Body { media, schema: subschema::<T>, required: true });
        self
    }

    /// Adds a JSON body that may be left out.
    pub(crate) fn optional_body<T: JsonSchema>(mut self) -> Self {
        self.bodies.push(Body { media: JSON, schema: subschema::<T>, required: false });
        self
    }

    pub(crate) fn answer<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.answer_as::<T>(status, description, JSON)
    }

    pub(crate) fn answer_as<T: JsonSchema>(
        mut self,
        status: u16,
        description: &'static str,
        media: &'static str,
    ) -> Self {
        self.answers.push(Answer { status, description, media, schema: Some(subschema::<T>) });
        self
    }

    pub(crate) fn empty_answer(mut self, status: u16, description: &'static str) -> Self {
        self.answers.push(Answer { status, description, media: "", schema: None });
        self
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}
