//! Replaces parts of Redial's SQL statements on their way to Postgres.
//!
//! In Postgres's protocol a message is a type (one byte), its length with these four bytes, and a body; but the first
//! messages of a client have no type. A statement comes in a message `P`: a name, the text, and the parameters' types.

use std::{io, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::wire::{Hits, Wire};

/// A part of a statement, and what is sent instead.
pub(crate) type Replacement = (&'static str, &'static str);

/// Requests for encryption; the real first message follows the answer.
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Listens before the Postgres of a URL; returns the URL through itself.
pub(crate) async fn before(url: &str, replacements: &[(Replacement, Hits)]) -> (Wire, String) {
    let replacements: Arc<[(Replacement, Hits)]> = replacements.into();
    Wire::before(url, move |client, server| forward(client, server, Arc::clone(&replacements))).await
}

async fn forward(client: TcpStream, server: TcpStream, replacements: Arc<[(Replacement, Hits)]>) -> io::Result<()> {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        done = replace_in(from_client, to_server, &replacements) => done,
        done = copy(&mut from_server, &mut to_client) => done.map(|_| ()),
    }
}

async fn replace_in(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    replacements: &[(Replacement, Hits)],
) -> io::Result<()> {
    loop {
        let body = read_body(&mut from).await?;
        write(&mut to, &[], &body).await?;
        if !body.starts_with(&SSL.to_be_bytes()) && !body.starts_with(&GSS.to_be_bytes()) {
            break;
        }
    }
    loop {
        let kind = from.read_u8().await?;
        let mut body = read_body(&mut from).await?;
        if kind == b'P' {
            body = replaced(body, replacements);
        }
        write(&mut to, &[kind], &body).await?;
    }
}

async fn read_body(from: &mut OwnedReadHalf) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let mut body = vec![0; usize::try_from(length).unwrap() - 4];
    from.read_exact(&mut body).await?;
    Ok(body)
}

async fn write(to: &mut OwnedWriteHalf, kind: &[u8], body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len() + 4).unwrap();
    to.write_all(&[kind, &length.to_be_bytes(), body].concat()).await
}

fn replaced(body: Vec<u8>, replacements: &[(Replacement, Hits)]) -> Vec<u8> {
    let mut parts = body.splitn(3, |byte| *byte == 0);
    let (Some(name), Some(statement), Some(types)) = (parts.next(), parts.next(), parts.next()) else { return body };
    let mut statement = String::from_utf8(statement.to_vec()).unwrap();
    for ((part, instead), hits) in replacements {
        if statement.contains(part) {
            hits.add();
            statement = statement.replace(part, instead);
        }
    }
    [name, statement.as_bytes(), types].join(&0)
}
