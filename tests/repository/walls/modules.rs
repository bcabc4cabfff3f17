//! The modules of a crate, and which of them import which: read from the source with `syn`, tests left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Ident, Item, UseTree, Visibility, ext::IdentExt as _, spanned::Spanned as _};

/// A module by its names from the root of the crate, whose own list is empty.
pub(crate) type ModulePath = Vec<String>;

/// A crate's modules.
#[derive(Debug, Default)]
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

/// What stands in one module.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    /// Items that are defined here, modules left out.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// Paths of code, and single names: both may name what another module defines.
    paths: Vec<Mention>,
}

/// One name that a `use` brings in.
#[derive(Clone, Debug)]
struct Use {
    path: Vec<String>,
    /// `*` for all names of a module.
    name: String,
    /// With a visibility of its own: what it names belongs to this module's interface.
    is_reexport: bool,
    line: usize,
}

/// A path in code.
#[derive(Clone, Debug)]
struct Mention {
    path: Vec<String>,
    line: usize,
}

/// Code of one module names what another one defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
    /// `file:line`.
    pub(crate) at: String,
}

impl Modules {
    /// Reads a crate from its root file and the files that its `mod` lines name.
    pub(crate) fn read(root: &Path) -> Self {
        let mut modules = Self::default();
        let folder = root.parent().unwrap().to_owned();
        modules.read_file(Vec::new(), root, &folder);
        modules
    }

    fn read_file(&mut self, path: ModulePath, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(path, file, folder, &parsed.items);
    }

    fn add(&mut self, path: ModulePath, file: &Path, folder: &Path, items: &[Item]) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_for_tests(item)) {
            match item {
                Item::Use(item) => {
                    let is_reexport = !matches!(item.vis, Visibility::Inherited);
                    let start =
                        Use { path: Vec::new(), name: String::new(), is_reexport, line: item.span().start().line };
                    flatten(&item.tree, &start, &mut module.uses);
                }
                Item::Mod(item) => {
                    let name = item.ident.unraw().to_string();
                    let child: ModulePath = path.iter().cloned().chain([name.clone()]).collect();
                    match &item.content {
                        Some((_, items)) => self.add(child, file, &folder.join(&name), items),
                        None => self.read_file(child, &folder.join(format!("{name}.rs")), &folder.join(name)),
                    }
                }
                item => {
                    module.items.extend(name_and_attributes(item).0.map(|name| name.unraw().to_string()));
                    mentions(item.to_token_stream(), &mut module.paths);
                }
            }
        }
        self.0.insert(path, module);
    }

    /// Every import from one module into another one of the crate.
    ///
    /// A `use` with a visibility, such as `pub use self::child::Item`, is an import only if the module's own code names the
    /// item, too; otherwise it only passes the item on.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = BTreeSet::new();
        for (path, module) in &self.0 {
            let mut add = |to: Option<ModulePath>, line: usize| {
                if let Some(to) = to.filter(|to| to != path) {
                    let at = format!("{}:{line}", module.file.display());
                    imports.insert(Import { from: path.clone(), to, at });
                }
            };
            for found in &module.uses {
                let mention = module.paths.iter().find(|mention| mention.path[0] == found.name);
                match mention {
                    _ if !found.is_reexport => add(self.resolve(path, &found.path, 0), found.line),
                    Some(mention) => add(self.resolve(path, &found.path, 0), mention.line),
                    None => {}
                }
            }
            for mention in &module.paths {
                let starts_here = ["crate", "self", "super"].contains(&mention.path[0].as_str())
                    || (mention.path.len() > 1 && self.has_child(path, &mention.path[0]));
                if starts_here {
                    add(self.resolve(path, &mention.path, 0), mention.line);
                }
            }
        }
        imports.into_iter().collect()
    }

    fn has_child(&self, module: &[String], name: &str) -> bool {
        self.0.contains_key([module, &[name.to_owned()]].concat().as_slice())
    }

    /// The module that defines what a path means in a module; `None` if that is another crate.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        // Re-exports that name each other do not compile; this is for those that glob each other.
        if depth > 20 {
            return None;
        }
        let first = path.first()?;
        let (mut module, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from.split_last()?.1.to_vec(), &path[1..]),
            name if self.has_child(from, name) => (from.to_vec(), path),
            _ => return None,
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                module.pop();
            } else if self.has_child(&module, name) {
                module.push(name.clone());
            } else {
                return self.definer(&module, name, depth);
            }
            rest = after;
        }
        Some(module)
    }

    /// The module that defines a name that can be seen in a module.
    fn definer(&self, module: &[String], name: &str, depth: usize) -> Option<ModulePath> {
        let found = self.0.get(module)?;
        if found.items.contains(name) || name == "*" {
            return Some(module.to_vec());
        }
        if let Some(named) = found.uses.iter().find(|found| found.name == name) {
            return self.resolve(module, &named.path, depth + 1);
        }
        let globs = found.uses.iter().filter(|found| found.name == "*");
        let mut targets = globs.filter_map(|glob| self.resolve(module, &glob.path, depth + 1));
        targets.find_map(|target| self.definer(&target, name, depth + 1)).or_else(|| Some(module.to_vec()))
    }
}

/// `#[cfg(test)]`, alone or with more conditions.
fn is_for_tests(item: &Item) -> bool {
    let (_, attributes) = name_and_attributes(item);
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let condition = attribute.meta.to_token_stream().to_string();
        !condition.contains("not") && condition.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
    })
}

fn name_and_attributes(item: &Item) -> (Option<&Ident>, &[Attribute]) {
    match item {
        Item::Const(item) => (Some(&item.ident), &item.attrs),
        Item::Enum(item) => (Some(&item.ident), &item.attrs),
        Item::Fn(item) => (Some(&item.sig.ident), &item.attrs),
        Item::Impl(item) => (None, &item.attrs),
        Item::Macro(item) => (item.ident.as_ref(), &item.attrs),
        Item::Mod(item) => (None, &item.attrs),
        Item::Static(item) => (Some(&item.ident), &item.attrs),
        Item::Struct(item) => (Some(&item.ident), &item.attrs),
        Item::Trait(item) => (Some(&item.ident), &item.attrs),
        Item::Type(item) => (Some(&item.ident), &item.attrs),
        Item::Union(item) => (Some(&item.ident), &item.attrs),
        Item::Use(item) => (None, &item.attrs),
        _ => (None, &[]),
    }
}

/// Every name that a `use` brings in.
fn flatten(tree: &UseTree, so_far: &Use, uses: &mut Vec<Use>) {
    let longer = |name: &Ident| {
        let path = so_far.path.iter().cloned().chain([name.unraw().to_string()]).collect();
        Use { path, line: name.span().start().line, ..so_far.clone() }
    };
    match tree {
        UseTree::Path(tree) => flatten(&tree.tree, &longer(&tree.ident), uses),
        UseTree::Name(tree) if tree.ident == "self" => {
            uses.push(Use { name: so_far.path.last().cloned().unwrap_or_default(), ..so_far.clone() });
        }
        UseTree::Name(tree) => uses.push(Use { name: tree.ident.unraw().to_string(), ..longer(&tree.ident) }),
        UseTree::Rename(tree) => uses.push(Use { name: tree.rename.unraw().to_string(), ..longer(&tree.ident) }),
        UseTree::Glob(_) => uses.push(Use { name: "*".to_owned(), ..so_far.clone() }),
        UseTree::Group(tree) => tree.items.iter().for_each(|tree| flatten(tree, so_far, uses)),
    }
}

/// Every path in code, those in the arguments of macros included. Methods, fields and the names of new functions are not paths.
fn mentions(tokens: TokenStream, paths: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |at: usize, sign: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let before = at.checked_sub(1);
        let is_name = before.is_none_or(|before| {
            // A range is not a method call: `..Default::default()`.
            let after_dot = is(before, '.') && !before.checked_sub(1).is_some_and(|dot| is(dot, '.'));
            let defines = matches!(&tokens[before], TokenTree::Ident(word) if word == "fn" || word == "mod");
            !after_dot && !defines
        });
        at += 1;
        match token {
            TokenTree::Group(group) => mentions(group.stream(), paths),
            TokenTree::Ident(ident) => {
                let mut path = vec![ident.unraw().to_string()];
                while is(at, ':')
                    && is(at + 1, ':')
                    && let Some(TokenTree::Ident(next)) = tokens.get(at + 2)
                {
                    path.push(next.unraw().to_string());
                    at += 3;
                }
                // A small first letter without a call is most likely a variable or a field.
                let is_call = matches!(tokens.get(at), Some(TokenTree::Group(_)));
                let is_type = path[0].starts_with(|c: char| c.is_uppercase());
                if is_name && (path.len() > 1 || is_type || is_call) {
                    paths.push(Mention { path, line: ident.span().start().line });
                }
            }
            _ => {}
        }
    }
}
