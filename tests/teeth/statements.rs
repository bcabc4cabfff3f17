//! Exchanges pieces of Redial's SQL statements on their way to Postgres: a guard that is left out there is a bug of the
//! store, and the programs under test are the shipped ones.
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

use crate::wire::{Met, Wire};

/// What stands in a statement, and what is sent instead.
pub(crate) type Exchange = (&'static str, &'static str);

/// Requests for encryption; the real first message follows the answer.
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Listens before the Postgres of a URL; returns the URL through itself.
pub(crate) async fn before(url: &str, exchanges: &[(Exchange, Met)]) -> (Wire, String) {
    let exchanges: Arc<[(Exchange, Met)]> = exchanges.into();
    Wire::before(url, move |client, server| forward(client, server, Arc::clone(&exchanges))).await
}

async fn forward(client: TcpStream, server: TcpStream, exchanges: Arc<[(Exchange, Met)]>) -> io::Result<()> {
    let (from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    tokio::select! {
        done = exchange(from_client, to_server, &exchanges) => done,
        done = copy(&mut from_server, &mut to_client) => done.map(|_| ()),
    }
}

async fn exchange(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, exchanges: &[(Exchange, Met)]) -> io::Result<()> {
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
            body = exchanged(body, exchanges);
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

fn exchanged(body: Vec<u8>, exchanges: &[(Exchange, Met)]) -> Vec<u8> {
    let mut parts = body.splitn(3, |byte| *byte == 0);
    let (Some(name), Some(statement), Some(types)) = (parts.next(), parts.next(), parts.next()) else { return body };
    let mut statement = String::from_utf8(statement.to_vec()).unwrap();
    for ((stands, instead), met) in exchanges {
        if statement.contains(stands) {
            met.note();
            statement = statement.replace(stands, instead);
        }
    }
    [name, statement.as_bytes(), types].join(&0)
}
