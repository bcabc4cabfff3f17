//! Starting programs so that they die with the worker.
//!
//! `setpriv --pdeathsig KILL` asks the kernel to kill the program when its parent dies. To the kernel, the parent is a
//! *thread*, so one thread that lives as long as the process starts all programs. Where setpriv is missing or lacks the
//! option, programs run without it: then one may outlive a worker that was killed with SIGKILL. Its own children may do
//! so in any case, because they do not inherit the setting.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        OnceLock,
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use redial_proto::{ErrorClass, Failure};
use tokio::{process::Command, runtime::Handle, sync::oneshot};

use super::{
    classify, confine, killer,
    setpriv::{self, Setpriv},
    tree::Tree,
    user::Account,
};

/// The program to start. Its environment is complete: it inherits no other variables.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) folder: PathBuf,
    /// The user to run as; the worker's own if `None`.
    pub(super) account: Option<Account>,
}

struct Request {
    program: Program,
    path: PathBuf,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Tree>>,
}

/// Starts a program in a process group of its own. If this future is dropped, the program is killed or never starts.
pub(super) async fn launch(program: Program) -> Result<Tree, Failure> {
    let path = find(&program.name, &program.folder, &program.environment)?;
    let (reply, started) = oneshot::channel();
    let request = Request { program, path, runtime: Handle::current(), reply };
    let ended = || io::Error::other("the thread that starts programs has ended");
    let sent = launcher().and_then(|launcher| launcher.send(request).map_err(|_| ended()));
    sent.map_err(|error| classify::spawn_error(&error))?;
    started.await.map_err(|_| ended()).flatten().map_err(|error| classify::spawn_error(&error))
}

/// Finds the program's file as a shell would, so that "not found" is distinguished from a failure of the tool.
pub(super) fn find(name: &str, folder: &Path, environment: &BTreeMap<String, String>) -> Result<PathBuf, Failure> {
    let wrong = |message: String| Failure::new(ErrorClass::Configuration, message).without_effect();
    if !folder.is_dir() {
        return Err(wrong(format!("the tool's folder {} does not exist", folder.display())));
    }
    let runs =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let found = if name.contains('/') {
        Some(folder.join(name)).filter(runs)
    } else {
        let folders = environment.get("PATH").map(String::as_str).unwrap_or_default();
        std::env::split_paths(folders).map(|folder| folder.join(name)).find(runs)
    };
    found.ok_or_else(|| {
        let searched = environment.get("PATH").filter(|_| !name.contains('/'));
        let searched = searched.map(|path| format!(" in {path}")).unwrap_or_default();
        wrong(format!("the program {name:?} does not exist{searched} or is not executable"))
    })
}

fn launcher() -> io::Result<&'static Sender<Request>> {
    static LAUNCHER: OnceLock<Sender<Request>> = OnceLock::new();
    if let Some(launcher) = LAUNCHER.get() {
        return Ok(launcher);
    }
    killer::start()?;
    let (sender, requests) = mpsc::channel();
    thread::Builder::new().name("redial-launch".to_owned()).spawn(move || work(&requests))?;
    // If two threads were started at once, the one whose sender is dropped here ends.
    Ok(LAUNCHER.get_or_init(|| sender))
}

fn work(requests: &Receiver<Request>) {
    let found = requests.iter().next().map(|first| {
        if let Err(error) = confine::confine_thread() {
            tracing::warn!(%error, "Found no seccomp in this kernel: command tools run without a filter of system calls");
        }
        let found = setpriv::find();
        start(first, found.as_ref());
        found
    });
    let Some(found) = found else { return };
    for request in requests {
        start(request, found.as_ref());
    }
}

fn start(request: Request, setpriv: Option<&Setpriv>) {
    let Request { program, path, runtime, reply } = request;
    if reply.is_closed() {
        return;
    }
    let marker = program.environment.get(killer::MARKER).cloned().unwrap_or_default();
    let mut command = command(program, &path, setpriv);
    // A runtime that is shutting down makes this panic; the thread must outlive that.
    let child = catch_unwind(AssertUnwindSafe(|| {
        let _runtime = runtime.enter();
        command.spawn()
    }));
    let child = child.unwrap_or_else(|_| Err(io::Error::other("the runtime is shutting down")));
    // If the attempt was dropped, the tree comes back with the error, is dropped, and is killed.
    let _ = reply.send(child.map(|child| Tree::new(child, marker)));
}

fn command(program: Program, path: &Path, setpriv: Option<&Setpriv>) -> Command {
    let mut command = match setpriv {
        Some(setpriv) => through(setpriv, path, &program),
        None => directly(path, &program),
    };
    command
        .args(program.arguments)
        .env_clear()
        .envs(program.environment)
        .current_dir(program.folder)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Starts the program by setpriv, so that it dies with the worker.
fn through(setpriv: &Setpriv, path: &Path, program: &Program) -> Command {
    let mut command = Command::new(&setpriv.path);
    command.args(program.account.iter().flat_map(|account| account.setpriv_arguments(setpriv)));
    // From the folder on, where the program starts: another user may not be able to enter the folders above.
    let path = if program.name.contains('/') { Path::new(&program.name) } else { path };
    command.args(["--pdeathsig", "KILL", "--"]).arg(path);
    command
}

/// Starts the program without setpriv: it outlives a worker that is killed.
fn directly(path: &Path, program: &Program) -> Command {
    let mut command = Command::new(path);
    if let Some(account) = &program.account {
        // Root leaves its other groups, too.
        command.uid(account.uid).gid(account.gid);
    }
    command
}
