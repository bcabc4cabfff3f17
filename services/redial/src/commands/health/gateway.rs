//! Asks a gateway whether it is ready.

use std::time::Duration;

use redial_proto::{ApiError, Code, limits::shorten};
use reqwest::{StatusCode, Url};

/// The most of an answer that is read, in bytes.
const MOST: usize = 16 * 1024;
const SHOWN: usize = 300;

/// Says why it is not ready; `None` if it is. Fails only if the address cannot be one.
pub(super) async fn trouble(address: &str, limit: Duration) -> Result<Option<String>, ApiError> {
    let url = readiness(address)?;
    Ok(match tokio::time::timeout(limit, ask(url)).await {
        Ok(Ok((status, body))) => read(status, &body),
        Ok(Err(error)) => {
            let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
            Some(format!("cannot be reached at {address}: {}{cause}", error.without_url()))
        }
        Err(_) => Some(format!("no answer within {limit:?}")),
    })
}

/// Makes the address with which a gateway says whether it is ready.
fn readiness(address: &str) -> Result<Url, ApiError> {
    let url = Url::parse(address).ok().filter(|url| url.scheme() == "http" && url.has_host());
    let url = url.filter(|url| url.path() == "/" && url.query().is_none() && url.username().is_empty());
    let mut url = url.ok_or_else(|| {
        let message = format!("--gateway is {:?}; allowed: http://HOST:PORT", shorten(address, 100));
        ApiError::new(Code::InvalidValue, message)
    })?;
    url.set_path("/readyz");
    Ok(url)
}

async fn ask(url: Url) -> reqwest::Result<(StatusCode, String)> {
    let client = redial_http::direct().build()?;
    let mut answer = client.get(url).send().await?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await?.filter(|_| body.len() < MOST) {
        body.extend_from_slice(&piece);
    }
    Ok((answer.status(), String::from_utf8_lossy(&body).into_owned()))
}

fn read(status: StatusCode, body: &str) -> Option<String> {
    match status {
        StatusCode::OK => None,
        StatusCode::SERVICE_UNAVAILABLE => Some(format!("not ready: {}", shorten(body.trim(), SHOWN))),
        _ => Some(format!("this is no gateway: it answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (address, wanted) in [
            ("http://127.0.0.1:8700", "http://127.0.0.1:8700/readyz"),
            ("http://gateway/", "http://gateway/readyz"),
            ("http://[::1]:8700", "http://[::1]:8700/readyz"),
        ] {
            assert_eq!(readiness(address).unwrap().as_str(), wanted);
        }
        for wrong in ["", "gateway:8700", "https://gateway", "http://", "http://a/b", "http://u@a", "http://a?b"] {
            assert!(readiness(wrong).unwrap_err().message.contains("allowed: http://HOST:PORT"), "{wrong:?}");
        }
    }
}
