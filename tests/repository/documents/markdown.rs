//! The parts of a Markdown document that name something.

use regex::Regex;

/// A document, taken apart.
pub(crate) struct Document {
    /// From the root of the repository.
    pub(crate) path: String,
    /// Everything outside of fenced code.
    prose: String,
    code: String,
    /// Commands in fenced code: every line of a shell script, and what stands behind a prompt.
    pub(crate) shell: Vec<String>,
}

impl Document {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let (mut prose, mut code, mut shell) = (String::new(), String::new(), Vec::new());
        let mut language = None;
        for line in text.lines() {
            if let Some(fence) = line.trim_start().strip_prefix("```") {
                language = if language.is_none() { Some(fence.trim()) } else { None };
                continue;
            }
            let part = if language.is_some() { &mut code } else { &mut prose };
            part.push_str(line);
            part.push('\n');
            let command =
                language.and_then(|language| if language == "sh" { Some(line) } else { line.strip_prefix("$ ") });
            shell.extend(command.map(str::to_owned));
        }
        assert!(language.is_none(), "{path}: a code fence without an end");
        Self { path: path.to_owned(), prose, code, shell }
    }

    /// Targets of links.
    pub(crate) fn links(&self) -> Vec<&str> {
        let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
        link.captures_iter(&self.prose).map(|found| found.get(1).unwrap().as_str()).collect()
    }

    /// The anchors of its headings, as GitHub and GitLab make them.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self.prose.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }

    /// Code within sentences, each on one line.
    pub(crate) fn spans(&self) -> Vec<String> {
        let span = Regex::new(r"`([^`]+)`").unwrap();
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        span.captures_iter(&self.prose).map(|found| one_line(&found[1])).collect()
    }

    /// All code and all sentences.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.prose, self.code)
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}
