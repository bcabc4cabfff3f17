//! The contents of the baseline's messages: ids of 16 bytes; with each result its length in 4 bytes, and itself.

use anyhow::Context as _;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use uuid::Uuid;

const ID: usize = 16;
const LENGTH: usize = 4;

/// Packs jobs of calls, so many in a message.
pub(super) fn jobs(ids: &[Uuid], size: usize) -> Vec<Bytes> {
    ids.chunks(size).map(|pack| pack.iter().flat_map(|id| id.into_bytes()).collect()).collect()
}

/// Reads the calls of messages with jobs.
pub(super) fn ids(messages: &[Bytes]) -> anyhow::Result<Vec<Uuid>> {
    messages.iter().flat_map(|pack| pack.chunks(ID)).map(|id| Ok(Uuid::from_slice(id)?)).collect()
}

/// Packs results of calls, so many in a message.
pub(super) fn results(results: &[(Uuid, String)], size: usize) -> anyhow::Result<Vec<Bytes>> {
    let message = |pack: &[(Uuid, String)]| {
        let mut message = BytesMut::new();
        for (id, output) in pack {
            message.put_slice(id.as_bytes());
            message.put_u32(u32::try_from(output.len())?);
            message.put_slice(output.as_bytes());
        }
        Ok(message.freeze())
    };
    results.chunks(size).map(message).collect()
}

/// Reads the calls of messages with results, and these.
pub(super) fn ids_and_outputs(messages: &[Bytes]) -> anyhow::Result<(Vec<Uuid>, Vec<String>)> {
    let (mut ids, mut outputs) = (Vec::new(), Vec::new());
    for message in messages {
        let mut rest = message.clone();
        while !rest.is_empty() {
            anyhow::ensure!(rest.len() >= ID + LENGTH, "a message of the baseline is cut");
            ids.push(Uuid::from_slice(&rest.split_to(ID))?);
            let length = usize::try_from(rest.get_u32())?;
            let output = (rest.len() >= length).then(|| rest.split_to(length)).context("a result is cut")?;
            outputs.push(String::from_utf8(output.into())?);
        }
    }
    Ok((ids, outputs))
}
