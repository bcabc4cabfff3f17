//! The parts of a Markdown document that name something.

use regex::Regex;

/// A document, taken apart.
pub(crate) struct Document {
    /// From the root of the repository.
    pub(crate) path: String,
    /// Everything outside of fenced code.
    pub(crate) prose: String,
    blocks: Vec<Block>,
}

/// Fenced code.
struct Block {
    language: String,
    lines: Vec<String>,
}

impl Document {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut document = Self { path: path.to_owned(), prose: String::new(), blocks: Vec::new() };
        let mut open = false;
        for line in text.lines() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                open = !open;
                if open {
                    document.blocks.push(Block { language: language.trim().to_owned(), lines: Vec::new() });
                }
            } else if let Some(block) = document.blocks.last_mut().filter(|_| open) {
                block.lines.push(line.to_owned());
            } else {
                document.prose.push_str(line);
                document.prose.push('\n');
            }
        }
        assert!(!open, "{path}: a code fence without an end");
        document
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

    /// Commands in fenced code: every line of a shell script, and what stands behind a prompt.
    pub(crate) fn shell_lines(&self) -> Vec<&str> {
        let mut lines = Vec::new();
        for block in &self.blocks {
            if block.language == "sh" {
                lines.extend(block.lines.iter().map(String::as_str));
            } else {
                lines.extend(block.lines.iter().filter_map(|line| line.strip_prefix("$ ")));
            }
        }
        lines
    }

    /// All code and all sentences.
    pub(crate) fn text(&self) -> String {
        let code = self.blocks.iter().flat_map(|block| &block.lines).map(|line| format!("{line}\n"));
        self.prose.clone() + &code.collect::<String>()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}
