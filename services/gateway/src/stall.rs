//! A connection whose other side does not take what is written to it ends, and so does one that takes a large answer too slowly.
//!
//! Without this a client that sends a request and reads nothing would hold its answer, or its stream, indefinitely.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::pace::Pace;

pub(crate) struct Stall<S> {
    stream: S,
    limit: Duration,
    pace: Pace,
    /// Set while a write waits.
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S: AsyncWrite + Unpin> Stall<S> {
    /// Ends `stream` once it has taken nothing for `limit`, or too little for its pace.
    pub(crate) const fn new(stream: S, limit: Duration, pace: Pace) -> Self {
        Self { stream, limit, pace, deadline: None, timer: None }
    }

    fn poll<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), context);
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let limit = self.limit;
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + limit);
        loop {
            let until = self.pace.until().map_or(deadline, |until| until.min(deadline));
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if timer.deadline() != until {
                timer.as_mut().reset(until);
            }
            ready!(timer.as_mut().poll(context));
            if Instant::now() >= deadline || !self.pace.holds() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client reads nothing, or too slowly",
                )));
            }
        }
    }

    fn counted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.pace.add(bytes);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stall<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stall<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.poll(context, |stream, context| stream.poll_write(context, bytes));
        self.counted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll(context, |stream, context| stream.poll_write_vectored(context, slices));
        self.counted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_nothing_is_cut_off_and_who_reads_slowly_is_not() {
        let (mine, mut theirs) = duplex(4);
        let mut stall = Stall::new(mine, Duration::from_mins(1), Pace::default());
        let writing = tokio::spawn(async move {
            for _ in 0..10 {
                stall.write_all(b"data").await?;
            }
            stall.write_all(b"more than fits").await
        });
        let mut buffer = [0; 4];
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            theirs.read_exact(&mut buffer).await.unwrap();
        }
        let error = writing.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
    /// Reads so many KiB of a large answer a second; returns the seconds until it is cut off, or all of 4 MiB is read.
    async fn seconds_of(kib: usize) -> Result<u64, u64> {
        let (mine, mut theirs) = duplex(1024);
        let pace = Pace::default();
        let mut stall = Stall::new(mine, Duration::from_mins(1), pace.clone());
        let began = Instant::now();
        let writing = tokio::spawn(async move {
            let _paced = pace.begin();
            stall.write_all(&vec![0; 4 << 20]).await
        });
        tokio::spawn(async move {
            let mut buffer = vec![0; kib * 1024];
            while theirs.read_exact(&mut buffer).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let written = writing.await.unwrap();
        written.map(|()| began.elapsed().as_secs()).map_err(|_| began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_a_large_answer_too_slowly_is_cut_off() {
        assert_eq!(seconds_of(16).await, Err(20));
        assert_eq!(seconds_of(0).await, Err(20));
        assert_eq!(seconds_of(80).await, Ok(51));
    }
}
