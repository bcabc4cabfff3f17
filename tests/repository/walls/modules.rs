//! The imports among the modules of a crate that lie on a cycle: read from the tokens of its source, tests left out.
//!
//! The children of one module and that module's own items form a graph: a vertex for each child with everything below
//! it, and one for the items of the parent itself. An import is an arrow in the graph of the deepest module that contains
//! both of its ends. A `mod` line is not an arrow, and neither is a re-export whose item the module's own code does not
//! name. What a path means is found through re-exports: `crate::Item` is an arrow to the module that defines the item.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A module by its names from the root of the crate, whose own list is empty.
type ModulePath = Vec<String>;

/// The words before the name of an item.
const KEYWORDS: [&str; 12] =
    ["const", "enum", "fn", "impl", "macro_rules", "mod", "static", "struct", "trait", "type", "union", "use"];

/// A crate's modules.
#[derive(Default)]
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

/// What stands in one module.
#[derive(Default)]
struct Module {
    file: PathBuf,
    /// Items that are defined here, modules left out.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of code, and single names, each with its line: both may name what another module defines.
    mentions: Vec<(Vec<String>, usize)>,
}

/// One name that a `use` brings in.
struct Use {
    path: Vec<String>,
    /// `*` for all names of a module.
    name: String,
    line: usize,
    /// With a visibility of its own: what it names belongs to this module's interface.
    is_reexport: bool,
}

impl Modules {
    /// Reads a crate from its root file and the files that its `mod` lines name.
    pub(crate) fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        modules.read_file(Vec::new(), root, root.parent().unwrap());
        modules
    }

    fn read_file(&mut self, path: ModulePath, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(path, file, folder, text.parse().unwrap());
    }

    fn add(&mut self, path: ModulePath, file: &Path, folder: &Path, tokens: TokenStream) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let ends = |token: &TokenTree| is(Some(token), ';') || group(token, Delimiter::Brace).is_some();
        for item in tokens.split_inclusive(ends).filter(|item| !is_for_tests(item)) {
            let words: Vec<String> = item.iter().filter_map(word).collect();
            let keyword = words.iter().find(|word| KEYWORDS.contains(&word.as_str()));
            let name =
                words.iter().skip_while(|word| Some(*word) != keyword).find(|word| !KEYWORDS.contains(&word.as_str()));
            match (keyword.map(String::as_str), name) {
                (Some("use"), _) => {
                    let tree = item.splitn(2, |token| word(token).as_deref() == Some("use")).last().unwrap();
                    flatten(tree, &[], words[0] == "pub", &mut module.uses);
                }
                (Some("mod"), Some(name)) => {
                    let child = [path.clone(), vec![name.clone()]].concat();
                    match item.last().and_then(|token| group(token, Delimiter::Brace)) {
                        Some(tokens) => self.add(child, file, &folder.join(name), tokens),
                        None => self.read_file(child, &folder.join(format!("{name}.rs")), &folder.join(name)),
                    }
                }
                (keyword, name) => {
                    module.items.extend(name.filter(|_| keyword.is_some_and(|word| word != "impl")).cloned());
                    mentions(item, &mut module.mentions);
                }
            }
        }
        self.0.insert(path, module);
    }

    /// Every import that lies on a cycle, as a line; those in files whose path has `except` in it do not count.
    pub(crate) fn cycles(&self, except: &str) -> Vec<String> {
        let mut arrows: BTreeMap<[ModulePath; 3], String> = BTreeMap::new();
        for (from, to, at) in self.imports().into_iter().filter(|(_, _, at)| !at.contains(except)) {
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            let vertex = |path: &ModulePath| path[..path.len().min(common + 1)].to_vec();
            arrows.entry([from[..common].to_vec(), vertex(&from), vertex(&to)]).or_insert(at);
        }
        loop {
            let all = arrows.clone();
            // An arrow from where none arrives, or to where none leaves, is on no cycle.
            arrows.retain(|[graph, from, to], _| {
                all.keys().any(|[other, _, end]| (other, end) == (graph, from))
                    && all.keys().any(|[other, start, _]| (other, start) == (graph, to))
            });
            if arrows.len() == all.len() {
                break;
            }
        }
        let name = |path: &ModulePath| if path.is_empty() { "crate".to_owned() } else { path.join("::") };
        arrows.iter().map(|([_, from, to], at)| format!("{} → {} ({at})", name(from), name(to))).collect()
    }

    /// Every import from one module into another one of the crate, with its `file:line`.
    fn imports(&self) -> BTreeSet<(ModulePath, ModulePath, String)> {
        let mut imports = BTreeSet::new();
        for (from, module) in &self.0 {
            let line_of = |name: &str| module.mentions.iter().find(|(path, _)| path[0] == name).map(|(_, line)| *line);
            let uses = module.uses.iter().filter_map(|found| {
                let line = if found.is_reexport { line_of(&found.name)? } else { found.line };
                Some((&found.path, line))
            });
            let paths = module.mentions.iter().filter(|(path, _)| path.len() > 1).map(|(path, line)| (path, *line));
            for (path, line) in uses.chain(paths) {
                let to = self.resolve(from, path, 0).filter(|to| to != from);
                imports.extend(to.map(|to| (from.clone(), to, format!("{}:{line}", module.file.display()))));
            }
        }
        imports
    }

    /// The module that defines what a path means in a module; `None` if that is another crate.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let mut module = from.to_vec();
        for (at, name) in path.iter().enumerate() {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            match name.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ if self.0.contains_key(&child) => module = child,
                // Re-exports that name each other do not compile; the depth is for those that glob each other.
                _ => return if at == 0 || depth > 20 { None } else { self.definer(&module, name, depth + 1) },
            }
        }
        Some(module)
    }

    /// The module that defines a name that can be seen in a module.
    fn definer(&self, module: &[String], name: &str, depth: usize) -> Option<ModulePath> {
        let found = self.0.get(module)?;
        if found.items.contains(name) {
            return Some(module.to_vec());
        }
        if let Some(named) = found.uses.iter().find(|found| found.name == name) {
            return self.resolve(module, &named.path, depth);
        }
        let globs = found.uses.iter().filter(|found| found.name == "*");
        let mut targets = globs.filter_map(|glob| self.resolve(module, &glob.path, depth));
        targets.find_map(|target| self.definer(&target, name, depth)).or_else(|| Some(module.to_vec()))
    }
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(word) = token { Some(word.to_string().trim_start_matches("r#").to_owned()) } else { None }
}

fn group(token: &TokenTree, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

fn is(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// `#[cfg(test)]`, alone or with more conditions.
fn is_for_tests(item: &[TokenTree]) -> bool {
    let attributes = item.iter().filter_map(|token| Some(group(token, Delimiter::Bracket)?.to_string()));
    attributes.filter(|text| !text.contains("not")).any(|text| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.next() == Some("cfg") && words.any(|word| word == "test")
    })
}

/// Every name that a tree of a `use` brings in below a path.
fn flatten(tree: &[TokenTree], above: &[String], is_reexport: bool, uses: &mut Vec<Use>) {
    for branch in tree.split(|token| is(Some(token), ',') || is(Some(token), ';')) {
        let mut path = above.to_vec();
        path.extend(branch.iter().filter_map(word));
        let Some(last) = branch.last() else { continue };
        if let Some(below) = group(last, Delimiter::Brace) {
            flatten(&Vec::from_iter(below), &path, is_reexport, uses);
            continue;
        }
        let renamed = path.iter().position(|word| word == "as").map(|at| path.split_off(at).pop().unwrap());
        path.truncate(path.len() - usize::from(path.len() > 1 && path.last().is_some_and(|word| word == "self")));
        let glob = is(Some(last), '*').then(|| "*".to_owned());
        let name = renamed.or(glob).unwrap_or_else(|| path.last().unwrap().clone());
        uses.push(Use { path, name, line: last.span().start().line, is_reexport });
    }
}

/// Every path in code, those in the arguments of macros included. Methods, fields and the names of new functions are not paths.
fn mentions(tokens: &[TokenTree], found: &mut Vec<(Vec<String>, usize)>) {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let (before, start) = (&tokens[..at], at);
        at += 1;
        if let TokenTree::Group(group) = token {
            mentions(&Vec::from_iter(group.stream()), found);
        }
        let Some(first) = word(token) else { continue };
        let mut path = vec![first];
        while is(tokens.get(at), ':')
            && is(tokens.get(at + 1), ':')
            && let Some(next) = tokens.get(at + 2).and_then(word)
        {
            path.push(next);
            at += 3;
        }
        // A range is not a method call: `..Default::default()`.
        let after_dot = is(before.last(), '.') && !is(start.checked_sub(2).map(|at| &tokens[at]), '.');
        let defines = before.last().and_then(word).is_some_and(|word| word == "fn" || word == "mod");
        // A small first letter without a call is most likely a variable or a field.
        let is_call = matches!(tokens.get(at), Some(TokenTree::Group(_)));
        if !after_dot && !defines && (path.len() > 1 || path[0].starts_with(char::is_uppercase) || is_call) {
            found.push((path, token.span().start().line));
        }
    }
}
