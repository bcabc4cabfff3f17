//! Reads a program's output.

use redial_proto::{Failure, limits::MAX_PAYLOAD};
use redial_redaction::Secrets;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::classify;
use crate::{context::Context, output};

/// Bytes at the end of standard error that are kept.
const TAIL: usize = 2048;
const CHUNK: usize = 16 * 1024;

/// Reads all of standard output, up to the limit.
pub(super) async fn read(pipe: Option<impl AsyncRead + Unpin>, context: &Context) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let Some(mut pipe) = pipe else { return Ok(all) };
    loop {
        let read = pipe.read_buf(&mut all).await.map_err(|error| classify::wait_error(&error))?;
        context.memory.grown_to(all.len()).await;
        if all.len() > MAX_PAYLOAD {
            return Err(output::too_large(&context.secrets.redact(&String::from_utf8_lossy(&all))));
        }
        if read == 0 {
            return Ok(all);
        }
    }
}

/// Reads the end of standard error, without secrets. All of it is read, so that a full pipe never blocks the program.
pub(super) async fn read_tail(pipe: Option<impl AsyncRead + Unpin>, secrets: &Secrets) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let keep = TAIL + secrets.longest();
    let mut cut = false;
    let mut tail = Vec::new();
    while let Ok(1..) = pipe.read_buf(&mut tail).await {
        if tail.len() > keep + CHUNK {
            tail.drain(..tail.len() - keep);
            cut = true;
        }
    }
    redacted_tail(tail, cut, secrets)
}

/// Drops the start, which may contain half of a secret. Masks keep offsets, so no part of a secret remains.
fn redacted_tail(mut tail: Vec<u8>, cut: bool, secrets: &Secrets) -> String {
    secrets.mask(&mut tail);
    if cut {
        tail.drain(..secrets.longest().min(tail.len()));
    }
    let start = tail.len().saturating_sub(TAIL);
    let text = String::from_utf8_lossy(&tail[start..]);
    text.trim_start_matches('\u{fffd}').trim().replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[tokio::test]
    async fn the_tail_holds_no_part_of_a_secret() {
        let secret = "abcdefgh".repeat(10);
        let secrets = Secrets::new(&[SecretString::from(secret.clone())]);
        for shift in 0..200 {
            let text = format!("{}{}{}", ".".repeat(60_000 + shift), secret.repeat(400), "end");
            let tail = read_tail(Some(text.as_bytes()), &secrets).await;
            assert!(tail.ends_with("*end") && !tail.contains(['a', 'c', 'h']), "{tail}");
            assert!(tail.len() <= TAIL);
        }
    }

    #[tokio::test]
    async fn short_errors_are_whole() {
        let tail = read_tail(Some(&b"\xff\xffno\0 city\n"[..]), &Secrets::default()).await;
        assert_eq!(tail, "no\u{fffd} city");
        assert_eq!(read_tail(None::<&[u8]>, &Secrets::default()).await, "");
    }

    #[tokio::test]
    async fn output_has_a_cap() {
        assert_eq!(read(Some(&vec![b'1'; MAX_PAYLOAD][..]), &Context::new("a")).await.unwrap().len(), MAX_PAYLOAD);
        assert!(read(Some(&vec![b'1'; MAX_PAYLOAD + 1][..]), &Context::new("a")).await.is_err());
    }
}
