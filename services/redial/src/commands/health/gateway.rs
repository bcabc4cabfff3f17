//! Asks a gateway whether it is ready: one request over HTTP/1.1, without a client that a command would not need otherwise.

use std::time::Duration;

use redial_proto::{ApiError, Code, limits::shorten};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// The most of an answer that is read, in bytes.
const MOST: u64 = 16 * 1024;
/// Bytes of the answer that are shown.
const SHOWN: usize = 300;
const PORT: u16 = 80;

/// `ok`, or why it is not ready. An error only if the address cannot be one.
pub(super) async fn verdict(address: &str, limit: Duration) -> Result<String, ApiError> {
    let host = host(address)?;
    Ok(match timeout(limit, ask(&host)).await {
        Ok(Ok(answer)) => read(&answer),
        Ok(Err(error)) => format!("cannot be reached at {host}: {error}"),
        Err(_) => format!("no answer within {limit:?}"),
    })
}

/// `HOST:PORT` of an address.
fn host(address: &str) -> Result<String, ApiError> {
    let wrong = || {
        let message = format!("--gateway is {:?}; allowed: http://HOST:PORT", shorten(address, 100));
        ApiError::new(Code::InvalidValue, message)
    };
    let host = address.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if host.is_empty() || !host.chars().all(fits) {
        return Err(wrong());
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { host.to_owned() } else { format!("{host}:{PORT}") })
}

async fn ask(host: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET /readyz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn read(answer: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") if status.starts_with("HTTP/1.1 ") => "ok".to_owned(),
        Some("503") => format!("not ready: {}", shorten(body.trim(), SHOWN)),
        _ => format!("this is no gateway: {}", shorten(status, SHOWN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (address, wanted) in [
            ("http://127.0.0.1:8700", "127.0.0.1:8700"),
            ("http://gateway/", "gateway:80"),
            ("http://[::1]:8700", "[::1]:8700"),
            ("http://[::1]", "[::1]:80"),
        ] {
            assert_eq!(host(address).unwrap(), wanted);
        }
        for wrong in ["", "gateway:8700", "https://gateway", "http://", "http://a/b", "http://a\r\nx: y"] {
            assert!(host(wrong).unwrap_err().message.contains("allowed: http://HOST:PORT"), "{wrong:?}");
        }
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(read("HTTP/1.1 200 OK\r\na: b\r\n\r\n{}"), "ok");
        assert_eq!(read("HTTP/1.1 503 Service Unavailable\r\n\r\n{\"ready\":false}"), "not ready: {\"ready\":false}");
        assert_eq!(read("SSH-2.0-x"), "this is no gateway: SSH-2.0-x");
        assert_eq!(read(""), "this is no gateway: ");
    }
}
