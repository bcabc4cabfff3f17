//! Reads one HTTP/1.1 request, as much of the protocol as our own clients use.

use std::{io, time::Instant};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// A request to the server.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The query after `?`, undecoded; empty if there is none.
    pub query: String,
    /// In order; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
    /// When its last byte arrived.
    pub at: Instant,
}

impl Request {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let name = name.to_ascii_lowercase();
        self.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Reads a request; `None` if the client closed the connection instead.
pub(super) async fn request(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Request>> {
    let Some(first) = line(stream).await? else { return Ok(None) };
    let mut words = first.split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers: headers(stream).await?,
        body: Vec::new(),
        at: Instant::now(),
    };
    request.body = body(stream, &request).await?;
    request.at = Instant::now();
    Ok(Some(request))
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = stream.read_line(&mut text).await?;
    Ok((read > 0).then(|| text.trim_end_matches(['\r', '\n']).to_owned()))
}

async fn headers(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    while let Some(text) = line(stream).await?.filter(|text| !text.is_empty()) {
        let (name, value) = text.split_once(':').ok_or_else(|| io::Error::other(format!("not a header: {text}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(headers)
}

async fn body(stream: &mut (impl AsyncBufRead + Unpin), request: &Request) -> io::Result<Vec<u8>> {
    if request.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return chunks(stream).await;
    }
    let length = request.header("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

async fn chunks(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let length = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        let start = body.len();
        body.resize(start + length, 0);
        stream.read_exact(&mut body[start..]).await?;
        line(stream).await?;
        if length == 0 {
            return Ok(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> io::Result<Option<Request>> {
        request(&mut text.as_bytes()).await
    }

    #[tokio::test]
    async fn a_body_has_a_length_or_comes_in_chunks() {
        let plain =
            read("POST /a?b=c HTTP/1.1\r\nContent-Length: 2\r\nX: y\r\n\r\nhi and more").await.unwrap().unwrap();
        assert_eq!((plain.method.as_str(), plain.path.as_str(), plain.query.as_str()), ("POST", "/a", "b=c"));
        assert_eq!((plain.text().as_str(), plain.header("x")), ("hi", Some("y")));
        let text = "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n3\r\n yo\r\n0\r\n\r\n";
        assert_eq!(read(text).await.unwrap().unwrap().text(), "hi yo");
    }

    #[tokio::test]
    async fn a_closed_connection_is_not_a_request() {
        assert!(read("").await.unwrap().is_none());
        assert!(read("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab").await.is_err());
        assert!(read("GET / HTTP/1.1\r\nnonsense\r\n\r\n").await.is_err());
    }
}
