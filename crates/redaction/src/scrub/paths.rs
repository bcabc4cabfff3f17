//! Paths on disks.

use super::rule::{Hit, Kind, Rule, any};

/// Folders directly under the root of a disk.
const ROOTS: [&str; 26] = [
    "home",
    "usr",
    "var",
    "etc",
    "opt",
    "tmp",
    "root",
    "srv",
    "mnt",
    "proc",
    "sys",
    "dev",
    "run",
    "lib",
    "lib64",
    "bin",
    "sbin",
    "boot",
    "media",
    "Users",
    "Library",
    "private",
    "Volumes",
    "nix",
    "workspace",
    "rustc",
];
/// Endings of files of source code, programs and settings.
const ENDINGS: [&str; 34] = [
    "py", "pyc", "rs", "js", "mjs", "cjs", "ts", "tsx", "jsx", "java", "class", "jar", "kt", "go", "rb", "php", "cs",
    "dll", "so", "cpp", "cc", "hpp", "sh", "toml", "yaml", "yml", "ini", "conf", "cfg", "env", "log", "sock", "pem",
    "key",
];

pub(super) fn rules() -> Vec<Rule> {
    let path = |pattern, is_meant| Rule::new(Kind::Path, pattern, is_meant);
    vec![
        path(r#"(?P<x>\\\\[A-Za-z0-9_.-]+\\[^\s"'<>|]+)"#, any),
        path(r#"(?P<x>\b[A-Za-z]:\\{1,2}(?:[^\\/:*?"<>|\r\n]+\\{1,2})*[^\\/:*?"<>|\s,;]*)"#, any),
        path(r"(?P<x>(?:~|\.{1,2})?(?:/[A-Za-z0-9_.@+~=-]+)+/?(?::\d+){0,2})", is_file),
        path(r#"File "(?P<x>[^"\n]+)", line \d+"#, any),
        path(
            concat!(
                r"(?P<x>\b[A-Za-z0-9_./\\-]+\.(?:py|rs|js|mjs|cjs|ts|tsx|jsx|java|kt|go|rb|php|cs|cc|cpp|hpp|scala",
                r"|swift|exs?|lua|pl):\d+(?::\d+)?)",
            ),
            any,
        ),
    ]
}

/// True for a path on a disk: under a folder that every system has, or to a file of source code or settings. `/date`
/// and `/v1/cities` are none.
fn is_file(hit: &Hit<'_>) -> bool {
    let piece = hit.piece();
    let path = piece.split(':').next().unwrap_or_default();
    let is_whole =
        !hit.before().ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | ':' | ']' | '.' | '_' | '-'));
    let steps: Vec<&str> = path.trim_start_matches(['~', '.']).split('/').filter(|step| !step.is_empty()).collect();
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return false };
    let is_relative = !path.starts_with('/');
    let ending = last.rsplit_once('.').map_or("", |(_, ending)| ending);
    let has_ending = ENDINGS.contains(&ending.trim_end_matches('.'));
    is_whole
        && ((steps.len() >= 2 && ROOTS.contains(first))
            || path.starts_with('~')
            || (has_ending && (is_relative || steps.len() >= 2)))
}
