//! Which parts answered when they were last asked.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// Nobody needs a token to ask whether a gateway is ready, so the parts are asked no more often than this, however many ask.
const FRESH: Duration = Duration::from_millis(500);

/// Whether each of `N` parts answered, and when that was asked.
pub(crate) struct LastLook<const N: usize>(Mutex<Option<(Instant, [bool; N])>>);

impl<const N: usize> Default for LastLook<N> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<const N: usize> LastLook<N> {
    /// What the parts answered a moment ago; else they are asked, once for all who wait for it.
    pub(crate) async fn parts(&self, ask: impl Future<Output = [bool; N]>) -> [bool; N] {
        let mut last = self.0.lock().await;
        if let Some((at, parts)) = *last
            && at.elapsed() < FRESH
        {
            return parts;
        }
        let parts = ask.await;
        *last = Some((Instant::now(), parts));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_ask_at_once_ask_the_parts_once() {
        let (look, asked) = (LastLook::default(), std::sync::atomic::AtomicU32::new(0));
        let ask = async || {
            let parts = async { [asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0] };
            look.parts(parts).await
        };
        assert_eq!(tokio::join!(ask(), ask(), ask()), ([true], [true], [true]));
    }
}
