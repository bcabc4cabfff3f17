//! All mistakes of one table of a file.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::toml::LIMIT;

/// The position of what stands in for something missing: behind every file. A place has 32 bits.
const NOWHERE: usize = u32::MAX as usize - 1;
/// The position of the first value that stands in for a wrong one; the next ones follow.
const BEHIND: usize = u32::MAX as usize / 2;

/// What the parts of a table have to do with one another. Fields are named by their paths, such as `http.url`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'r> {
    /// Other parts depend on these: if one is wrong, nothing more is said.
    pub needed: &'r [&'r str],
    /// Fields that others need to be there, each with a value (as TOML) that stands in for a wrong one.
    pub stand_ins: &'r [(&'r str, &'static str)],
}

/// Reads one table. If a part of it is wrong, the mistake is kept and the table is read again without that part or with a
/// value that stands in for it, so that the next mistake is found too. What is missing then is missing because it was taken
/// out, and not a mistake.
///
/// `at` says where an error is; `None` if it is about the whole table.
pub fn read_entry<'t, T, E>(
    mut table: Spanned<DeTable<'t>>,
    rules: &Rules<'_>,
    at: impl Fn(&E) -> Option<usize>,
    mut read: impl FnMut(Spanned<DeTable<'t>>) -> Result<T, E>,
) -> Result<T, Vec<E>> {
    let mut found: Vec<E> = Vec::new();
    let mut standing: Vec<&str> = Vec::new();
    loop {
        let error = match read(table.clone()) {
            Ok(value) if found.is_empty() => return Ok(value),
            Ok(_) => return Err(found),
            Err(error) => error,
        };
        let at = at(&error);
        if let Some(path) = at.and_then(|at| standing.get(at.checked_sub(BEHIND)?))
            && take(table.get_mut(), path).is_some()
        {
            // No such field is allowed here, which was told of the value that this one stood in for.
            continue;
        }
        let Some(removed) = at.filter(|at| *at < BEHIND).and_then(|at| remove(table.get_mut(), at)) else {
            if found.is_empty() {
                found.push(error);
            }
            return Err(found);
        };
        found.push(error);
        if rules.needed.contains(&removed.as_str()) || found.len() >= LIMIT {
            return Err(found);
        }
        if let Some((path, value)) = rules.stand_ins.iter().find(|(path, _)| *path == removed)
            && !standing.contains(path)
        {
            stand_in(table.get_mut(), path, value, BEHIND + standing.len());
            standing.push(path);
        }
    }
}

/// Lets values stand in for required fields that are missing; returns their paths. A field of a table is missing only if
/// the table is there.
pub fn fill_missing<'r>(table: &mut DeTable<'_>, required: &[(&'r str, &'static str)]) -> Vec<&'r str> {
    let missing: Vec<_> = required.iter().filter(|(path, _)| is_missing(table, path)).collect();
    for (path, value) in &missing {
        stand_in(table, path, value, NOWHERE);
    }
    missing.into_iter().map(|(path, _)| *path).collect()
}

/// True if one of these messages is about another name that was meant to be this field: then it is not missing as well.
pub fn is_misspelt<'m>(field: &str, mut messages: impl Iterator<Item = &'m str>) -> bool {
    let name = field.rsplit('.').next().unwrap_or(field);
    messages.any(|message| message.contains(&format!("did you mean {name:?}?")))
}

fn is_missing(table: &DeTable<'_>, path: &str) -> bool {
    match path.split_once('.') {
        Some((first, rest)) => {
            table.get(first).and_then(|inner| inner.get_ref().as_table()).is_some_and(|inner| is_missing(inner, rest))
        }
        None => table.get(path).is_none(),
    }
}

/// Puts a value where a path leads, if its table is there.
fn stand_in(table: &mut DeTable<'_>, path: &str, value: &'static str, at: usize) {
    if let Some((first, rest)) = path.split_once('.') {
        if let Some(DeValue::Table(inner)) = table.get_mut(first).map(Spanned::get_mut) {
            stand_in(inner, rest, value, at);
        }
        return;
    }
    if let Ok(value) = DeValue::parse(value) {
        let value = moved(value.into_inner(), at);
        table.insert(Spanned::new(at..at + 1, path.to_owned().into()), Spanned::new(at..at + 1, value));
    }
}

/// Moves every part of a table in the value to one position.
fn moved(value: DeValue<'_>, at: usize) -> DeValue<'_> {
    let DeValue::Table(parts) = value else { return value };
    let mut table = DeTable::new();
    for (key, value) in parts {
        let value = moved(value.into_inner(), at);
        table.insert(Spanned::new(at..at + 1, key.into_inner()), Spanned::new(at..at + 1, value));
    }
    DeValue::Table(table)
}

/// Takes out what is where a path leads.
fn take<'t>(table: &mut DeTable<'t>, path: &str) -> Option<Spanned<DeValue<'t>>> {
    match path.split_once('.') {
        Some((first, rest)) => match table.get_mut(first)?.get_mut() {
            DeValue::Table(inner) => take(inner, rest),
            _ => None,
        },
        None => table.remove(path),
    }
}

/// Removes the innermost entry at a byte; returns its path.
fn remove(table: &mut DeTable<'_>, at: usize) -> Option<String> {
    for (key, value) in table.iter_mut() {
        if let DeValue::Table(inner) = value.get_mut()
            && let Some(removed) = remove(inner, at)
        {
            return Some(format!("{}.{removed}", key.get_ref()));
        }
    }
    let is_here = |key: &Spanned<_>, value: &Spanned<DeValue<'_>>| {
        key.span().contains(&at) || (value.span().contains(&at) && !matches!(value.get_ref(), DeValue::Table(_)))
    };
    let key = table.iter().find(|(key, value)| is_here(key, value))?.0.clone();
    table.remove(&key);
    Some(key.into_inner().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "name = 1\n[http]\nurl = 2\nmethod = 3\n[other]\nx = 4\n";

    fn read(rules: &Rules<'_>, wanted: &[&str]) -> Vec<usize> {
        let table = Spanned::new(0..FILE.len(), DeTable::parse(FILE).unwrap().into_inner());
        let found = read_entry(
            table,
            rules,
            |at: &usize| Some(*at),
            |table| {
                // The first field that is wanted and a number.
                let wrong = wanted.iter().find_map(|path| {
                    let at = crate::field_at(table.get_ref(), path)?;
                    (at < FILE.len() && FILE[at..].starts_with(char::is_numeric)).then_some(at)
                });
                wrong.map_or(Ok(()), Err)
            },
        );
        found.unwrap_err()
    }

    #[test]
    fn fields_that_others_need_stop_the_reading() {
        let all = ["name", "http.url", "http.method", "other.x"];
        assert_eq!(read(&Rules::default(), &all).len(), 4);
        assert_eq!(read(&Rules { needed: &["http.url"], stand_ins: &[] }, &all).len(), 2);
        assert_eq!(read(&Rules { needed: &["url"], stand_ins: &[] }, &all).len(), 4, "a path is not its last part");
        let stand_ins = [("http.url", "\"http://a\"")];
        assert_eq!(read(&Rules { needed: &[], stand_ins: &stand_ins }, &all).len(), 4);
    }

    #[test]
    fn what_is_missing_is_filled_where_its_table_is() {
        let mut table = DeTable::parse("[http]\nurl = \"a\"").unwrap().into_inner();
        let required = [("name", "\"x\""), ("http.url", "\"b\""), ("http.method", "\"GET\""), ("command.argv", "[]")];
        assert_eq!(fill_missing(&mut table, &required), ["name", "http.method"]);
        assert_eq!(table.get("name").and_then(|name| name.get_ref().as_str()), Some("x"));
        assert_eq!(fill_missing(&mut table, &required), Vec::<&str>::new());
    }
}
