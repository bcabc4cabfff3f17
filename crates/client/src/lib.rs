//! A client of the HTTP API: typed answers, problem documents as errors, lists page by page.
//!
//! Nothing is sent twice: whoever repeats a request gives it an idempotency key, or asks for something that may be asked for again.

use std::time::Duration;

use redial_api::{List, ProblemDocument};
use redial_http::Http;
use reqwest::{
    Method, Url,
    header::{AUTHORIZATION, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};

/// How long a connection may take; an answer may take longer, because a request can wait for the end of a call.
const CONNECT: Duration = Duration::from_secs(5);

/// A gateway, and the token with which it is asked.
#[derive(Clone, Debug)]
pub struct Client {
    http: Http,
    base: Url,
    authorization: Option<HeaderValue>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// This is no address of a gateway.
    #[error("{0:?} is no address of a gateway; allowed: http://HOST:PORT or https://HOST")]
    Address(String),
    /// The token has characters that no header can hold.
    #[error("the token cannot be sent; allowed: rdl_<id>_<secret>")]
    Token,
    /// The gateway said no.
    #[error("{} ({})", .0.detail, .0.code)]
    Problem(Box<ProblemDocument>),
    /// It could not be reached, or the connection broke off: whether a request was carried out is not known.
    #[error("the gateway did not answer: {0}")]
    Transport(#[from] reqwest::Error),
    /// What came back is no answer of this API.
    #[error("the answer to {path} (status {status}) cannot be read: {error}")]
    Unreadable {
        /// The path of the request.
        path: String,
        /// The HTTP status.
        status: u16,
        /// What is wrong with the body.
        error: serde_json::Error,
    },
}

impl Client {
    /// A client of the gateway at this address. A gateway on loopback may go without a token. `variable` gives the value of an
    /// environment variable, which may name a proxy.
    pub fn new(
        address: &str,
        token: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ClientError> {
        let base = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = base.ok_or_else(|| ClientError::Address(address.to_owned()))?;
        let authorization = token.map(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim())));
        let mut authorization = authorization.transpose().map_err(|_| ClientError::Token)?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Self { http: Http::new(CONNECT, variable)?, base, authorization })
    }

    /// Returns the answer to `GET path`; the path may have a query.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, &[], None::<&()>).await
    }

    /// Returns the answer to `POST path` with a JSON body.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ClientError> {
        self.ask(Method::POST, path, &[], Some(body)).await
    }

    /// Returns the answer to `DELETE path`.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::DELETE, path, &[], None::<&()>).await
    }

    /// Returns the first `most` entries of a list, as many pages as that takes; `query` narrows the list, and may have a `page_size`.
    pub async fn list<L: List>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        most: usize,
    ) -> Result<Vec<L::Entry>, ClientError> {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let query = [query, &[("page_token", token.as_str())]].concat();
            let list: L = self.ask(Method::GET, path, &query, None::<&()>).await?;
            let (entries, next) = list.into_parts();
            found.extend(entries);
            if next.is_empty() || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
            token = next;
        }
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        // The token is for this gateway, whatever a path says.
        let url = self.base.join(path).ok().filter(|url| url.origin() == self.base.origin());
        let url = url.ok_or_else(|| ClientError::Address(path.to_owned()))?;
        let route = self.http.route(&url, self.authorization.is_some());
        let mut request = route.client().request(method, url).query(query);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(reqwest::Error::without_url)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(reqwest::Error::without_url)?;
        let unreadable = |error| ClientError::Unreadable { path: path.to_owned(), status: status.as_u16(), error };
        if !status.is_success() {
            return Err(serde_json::from_slice(&bytes).map_or_else(unreadable, |it| ClientError::Problem(Box::new(it))));
        }
        // An answer without a body is `null`.
        serde_json::from_slice(if bytes.is_empty() { b"null" } else { &bytes }).map_err(unreadable)
    }
}
