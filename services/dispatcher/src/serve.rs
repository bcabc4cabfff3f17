//! Answers requests on a subject.

use std::{fmt::Display, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use redial_proto::{
    ApiError, Code, Door, WorkerCaller, WorkerId,
    subjects::{self, ControlVerb, Verb},
    tolerant,
};
use redial_queue::{Queue, QueueError, Request};
use redial_shares::{FairQueue, Shares};
use redial_telemetry::set_aside;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    actions::{Action, Done, recorded},
    apart,
    asked::{Asked, caller},
    batcher::{self, BatchWork, Batching},
    context::Context,
    running::Running,
    wait::until,
};

/// After the shutdown, what waits is still answered for so long; the rest is told to try again.
const FINISH: Duration = Duration::from_secs(5);

/// Whose requests. Those of users, of gateways and of workers come on a connection each, because whoever may send to one can cut it
/// off, with more than it takes or with headers that the client does not survive.
#[derive(Clone, Copy)]
pub(crate) enum Senders {
    Users(Verb),
    Workers(ControlVerb),
}

impl Senders {
    const fn verb(self) -> &'static str {
        match self {
            Self::Users(verb) => verb.name(),
            Self::Workers(verb) => verb.name(),
        }
    }

    fn subjects(self, context: &Context) -> Vec<(&Queue, String)> {
        match self {
            Self::Users(verb) => vec![
                (&context.users, subjects::api_of_all(Door::Nats, verb)),
                (&context.queue, subjects::api_of_all(Door::Http, verb)),
            ],
            Self::Workers(verb) => vec![(&context.workers, subjects::control_of_all(verb))],
        }
    }
}

/// Makes a queue of requests, which closes after the shutdown, once no request is on its way here.
fn queue(running: &Running, name: &'static str) -> Arc<FairQueue<Request>> {
    let waiting = Arc::<FairQueue<Request>>::default();
    let (requests, feeds) = (waiting.clone(), running.feeds.clone());
    running.spawn(name, |_, shutdown| async move {
        shutdown.cancelled().await;
        feeds.wait().await;
        for request in requests.close(FINISH).await {
            refuse(&request).await;
        }
    });
    waiting
}

/// Starts a batcher of requests, which takes those of each sender in turn. It ends after the shutdown.
pub(crate) fn start_batcher<W: BatchWork<Request>>(
    running: &Running,
    batching: Batching,
    work: &W,
) -> Arc<FairQueue<Request>> {
    let requests = queue(running, batching.name);
    batcher::spawn(batching, &running.loops, work, &requests);
    requests
}

/// Lets the requests of these senders wait for their turns, until shutdown, and those that are on their way then. Dispatchers share them.
/// Never stands still, so that what waits is bounded here, and not by the client, which counts no bytes and knows no senders.
pub(crate) async fn feed(
    running: &Running,
    senders: Senders,
    waiting: Arc<FairQueue<Request>>,
) -> Result<(), QueueError> {
    for (queue, subject) in senders.subjects(&running.context) {
        let mut requests = queue.serve(&subject, Some(subjects::DISPATCHERS)).await?;
        let (feeding, waiting) = (running.feeds.token(), waiting.clone());
        running.spawn(senders.verb(), |context, shutdown| async move {
            while let Some(Some(request)) = until(&shutdown, requests.next()).await {
                let_wait(&context, request, &waiting);
            }
            requests.leave().await;
            while let Some(request) = requests.next().await {
                let_wait(&context, request, &waiting);
            }
            drop(feeding);
        });
    }
    Ok(())
}

fn let_wait(context: &Context, request: Request, waiting: &Arc<FairQueue<Request>>) {
    let added = match request.apart {
        Some(_) => context.bodies.add(&sender(&request), request, waiting.clone()),
        None => add(waiting, request),
    };
    if let Err(refused) = added {
        // Not waited for: if even this cannot be sent, the client tries again without it.
        let _ = refuse(&refused).now_or_never();
    }
}

/// Returns the sender: a tenant, or a worker identity.
fn sender(request: &Request) -> String {
    let tenant = subjects::caller(request.subject()).map(|caller| format!("tenant {}", caller.tenant));
    let identity = || subjects::worker_caller(request.subject()).map(|caller| apart::of_worker(&caller.identity));
    tenant.or_else(identity).unwrap_or_default()
}

/// Lets a request wait. The memory of a body that was put together is accounted for already.
pub(crate) fn add(waiting: &FairQueue<Request>, request: Request) -> Result<(), Box<Request>> {
    let bytes = if request.held.is_some() { 0 } else { request.payload.len() };
    waiting.add(&sender(&request), request, bytes).map_err(Box::new)
}

pub(crate) async fn refuse(refused: &Request) {
    let message = "the dispatcher stops, or too many requests of this sender or of all senders wait; try again";
    refused.reply_error(&ApiError::new(Code::Unavailable, message)).await;
}

/// Hands over the requests that have to wait for something (the database, the check of costly arguments); returns the others,
/// which must not wait with them.
pub(crate) async fn hand_over<T>(
    batch: Vec<(Request, T)>,
    waiting: &FairQueue<Request>,
    must_wait: impl Fn(&T) -> bool,
) -> Vec<(Request, T)> {
    let (later, now): (Vec<_>, Vec<_>) = batch.into_iter().partition(|(_, content)| must_wait(content));
    for (request, _) in later {
        if let Err(refused) = add(waiting, request) {
            refuse(&refused).await;
        }
    }
    now
}

/// Requests of one verb that are answered at the same time, in shares of their senders; more of them wait, so that a flood takes
/// neither the memory nor the connections of all others.
const AT_ONCE: usize = 64;

/// Answers the requests of users, of up to `most` bytes, each in a task of its own: for verbs that are too rare to need batches.
pub(crate) async fn users<Q, R, F>(
    running: &Running,
    verb: Verb,
    most: usize,
    answer: fn(Asked, Q) -> F,
) -> Result<(), QueueError>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + Sync + Send + 'static,
    F: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    each(running, Senders::Users(verb), move |context, request| {
        let asked =
            caller(request, verb).and_then(|caller| Ok((Asked::new(context, caller), decode(small(request, most)?)?)));
        async move {
            let (asked, question) = asked?;
            asked.check_user().await?;
            answer(asked, question).await
        }
    })
    .await
}

/// The most bytes of a request that names what it is about, and submits nothing.
pub(crate) const SMALL: usize = 64 * 1024;

fn small(request: &Request, most: usize) -> Result<&[u8], ApiError> {
    let bytes = request.payload.len();
    if bytes <= most {
        return Ok(&request.payload);
    }
    let message = format!("the message has {bytes} bytes; allowed here: {most}");
    Err(ApiError::new(Code::InvalidMessage, message))
}

/// Does the same for verbs that change something: who asked for what is on record.
pub(crate) async fn actions<Q, F>(running: &Running, verb: Verb, answer: fn(Asked, Q) -> F) -> Result<(), QueueError>
where
    Q: Action + DeserializeOwned + Send + Sync + 'static,
    Q::Reply: Serialize + Send + Sync + 'static,
    F: Future<Output = Result<Done<Q::Reply>, ApiError>> + Send + 'static,
{
    each(running, Senders::Users(verb), move |context, request| {
        let asked = caller(request, verb).and_then(|caller| Ok((caller, decode::<Q>(small(request, Q::MOST_BYTES)?)?)));
        async move {
            let (caller, question) = asked?;
            let (targets, asked) = (question.targets(), Asked::new(context.clone(), caller.clone()));
            asked.check_user().await?;
            question.check(&asked).await?;
            recorded(&context, &caller, verb, &targets, answer(asked, question)).await
        }
    })
    .await
}

/// Answers the requests of workers, each in a task of its own.
pub(crate) async fn workers<Q, R, F>(
    running: &Running,
    verb: ControlVerb,
    answer: fn(Arc<Context>, WorkerCaller, Q) -> F,
) -> Result<(), QueueError>
where
    Q: DeserializeOwned + Send + 'static,
    R: Serialize + Sync + Send + 'static,
    F: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    each(running, Senders::Workers(verb), move |context, request| {
        let asked = worker_caller(request).and_then(|caller| Ok((caller, of_worker(request)?)));
        async move {
            let (caller, question) = asked?;
            answer(context, caller, question).await
        }
    })
    .await
}

pub(crate) fn worker_caller(request: &Request) -> Result<WorkerCaller, ApiError> {
    subjects::worker_caller(request.subject()).ok_or_else(|| {
        let message = "the subject names no worker identity and pools; redial.ctl.<identity>.<pools>.<verb> is needed";
        ApiError::new(Code::InvalidMessage, message)
    })
}

/// Checks that a worker acts under ids of its own identity only.
pub(crate) fn check_own(caller: &WorkerCaller, worker: &WorkerId) -> Result<(), ApiError> {
    if worker.identity() == caller.identity {
        return Ok(());
    }
    let identity = caller.identity.as_str();
    let message = format!(
        "worker {worker} is not of identity {identity:?}; its id must begin with \"{identity}-\": \
         set REDIAL_WORKER_NAME={identity}"
    );
    Err(ApiError::new(Code::Forbidden, message))
}

/// Answers the requests of these senders, each in a task of its own.
pub(crate) async fn each<R, F>(
    running: &Running,
    senders: Senders,
    answer: impl Fn(Arc<Context>, &Request) -> F + Copy + Send + 'static,
) -> Result<(), QueueError>
where
    R: Serialize + Sync + Send + 'static,
    F: Future<Output = Result<R, ApiError>> + Send + 'static,
{
    let waiting = queue(running, senders.verb());
    feed(running, senders, waiting.clone()).await?;
    let tracker = running.loops.tracker().clone();
    let shares = Shares::new(AT_ONCE);
    running.spawn(senders.verb(), move |context, _| async move {
        while let Some((request, share)) = waiting.take_with(&shares).await {
            let (answered, context) = (answer(context.clone(), &request), context.clone());
            tracker.spawn(async move {
                let _share = share;
                match answered.await {
                    Ok(reply) => apart::reply(&context, &request, &reply).await,
                    Err(error) => request.reply_error(&error).await,
                }
            });
        }
    });
    Ok(())
}

/// Reads a worker's request. Fields of a newer version are ignored; a newer dispatcher reads what this one cannot.
pub(crate) fn of_worker<T: DeserializeOwned>(request: &Request) -> Result<T, ApiError> {
    check_object(&request.payload)?;
    tolerant::from_slice(&request.payload).map_err(|error| {
        if !request.is_newer {
            return cannot_be_read(&error);
        }
        set_aside("requests of workers", 1, &request.subject(), &error);
        let message =
            format!("this version of the dispatcher cannot read the request, a newer one can; try again: {error}");
        ApiError::new(Code::Unavailable, message)
    })
}

/// Reads a message of the wire contract; the error says what is wrong with it and where.
pub(crate) fn decode<'a, T: serde::Deserialize<'a>>(payload: &'a [u8]) -> Result<T, ApiError> {
    check_object(payload)?;
    serde_json::from_slice(payload).map_err(|error| cannot_be_read(&error))
}

/// Checks that a message is an object; otherwise an array would be taken for its fields in order.
fn check_object(payload: &[u8]) -> Result<(), ApiError> {
    if payload.trim_ascii_start().first() == Some(&b'{') {
        Ok(())
    } else {
        Err(cannot_be_read(&"a JSON object is needed"))
    }
}

fn cannot_be_read(what: &dyn Display) -> ApiError {
    ApiError::new(Code::InvalidMessage, format!("the message cannot be read: {what}"))
}
