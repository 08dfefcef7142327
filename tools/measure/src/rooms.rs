//! The order of the kernel's rooms: each uses itself and those below it.
//!
//! The order stands in one place, the first table of the section "Rooms" of `docs/src/architecture.md`, from the top down. A room is one or more module paths; a module belongs to the room with the longest path that is its own or
//! leads to it. What a file uses is read from its tokens: paths that start at `crate`, `super`, an imported name or a module of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources::rust_files;

const PAGE: &str = "docs/src/architecture.md";
const SECTION: &str = "## Rooms";
const SOURCES: &str = "kernel/src";

type ModulePath = Vec<String>;

/// The table.
struct Rules {
    /// The rooms' paths, from the top down.
    rooms: Vec<Vec<ModulePath>>,
}

/// A path that a file uses, and the line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    path: ModulePath,
    line: usize,
}

/// What breaks the order, a line for each.
pub fn violations(root: &Path) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let rules = Rules::parse(&page)?;
    let sources = root.join(SOURCES);
    let files: Vec<(PathBuf, ModulePath)> = rust_files(&sources, &[])
        .into_iter()
        .filter_map(|file| {
            let module = module_of(file.strip_prefix(&sources).ok()?)?;
            Some((file, module))
        })
        .collect();
    let modules: BTreeSet<ModulePath> = files.iter().map(|(_, module)| module.clone()).collect();
    let mut found = Vec::new();
    for (file, module) in &files {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let Some(own) = rules.room_of(module) else {
            found.push(format!("{name}:1: belongs to no room: enter it in the table of {PAGE}"));
            continue;
        };
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        let tokens = text.parse::<TokenStream>().map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
        for used in uses(tokens, module, &modules) {
            let Some(other) = rules.room_of(&used.path).filter(|&other| other < own) else { continue };
            let above = rules.name_of(other);
            let (line, path) = (used.line, used.path.join("::"));
            let own = rules.name_of(own);
            found.push(format!(
                "{name}:{line}: `{own}` uses `{path}`, but the room `{above}` is above it ({PAGE}, Rooms)"
            ));
        }
    }
    Ok(found)
}

/// The module path of a file below the sources' folder; `None` for the crate's root.
fn module_of(file: &Path) -> Option<ModulePath> {
    let mut path: ModulePath = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    (path != ["lib"]).then_some(path)
}

impl Rules {
    /// From the page: the first column of the section's first table has the rooms' paths in backquotes.
    fn parse(page: &str) -> Result<Self> {
        let section = page.split_once(SECTION).with_context(|| format!("{PAGE} has no section \"{SECTION}\""))?.1;
        let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
        let rooms: Vec<Vec<ModulePath>> = table
            .filter_map(|row| row.trim_matches('|').split('|').next())
            .map(|cell| cell.split('`').skip(1).step_by(2))
            .map(|paths| paths.map(|path| path.split("::").map(String::from).collect()).collect())
            .filter(|room: &Vec<ModulePath>| !room.is_empty())
            .collect();
        if rooms.is_empty() {
            bail!("{PAGE} names no rooms");
        }
        Ok(Rules { rooms })
    }

    fn room_of(&self, path: &[String]) -> Option<usize> {
        let matching = self.rooms.iter().enumerate().flat_map(|(index, room)| room.iter().map(move |own| (own, index)));
        matching.filter(|(own, _)| path.starts_with(own)).max_by_key(|(own, _)| own.len()).map(|(_, index)| index)
    }

    fn name_of(&self, room: usize) -> String {
        self.rooms[room][0].join("::")
    }
}

/// The paths that a module's file uses, apart from those in its tests.
fn uses(tokens: TokenStream, module: &[String], modules: &BTreeSet<ModulePath>) -> BTreeSet<Use> {
    let mut reader = Reader { module, aliases: BTreeMap::new(), found: BTreeSet::new() };
    for child in modules.iter().filter(|child| child.len() == module.len() + 1 && child.starts_with(module)) {
        reader.aliases.insert(child[module.len()].clone(), child.clone());
    }
    // Imports may stand behind their uses: first all of them.
    let all: Vec<TokenTree> = tokens.into_iter().collect();
    reader.read(&all, true);
    reader.read(&all, false);
    reader.found
}

struct Reader<'a> {
    module: &'a [String],
    /// Names that stand for paths: imports, modules of this one.
    aliases: BTreeMap<String, ModulePath>,
    found: BTreeSet<Use>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: &[TokenTree], imports: bool) {
        let (mut at, mut is_test) = (0, false);
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    if group.delimiter() == Delimiter::Bracket && is_cfg_test(&inner) {
                        is_test = true;
                    } else if !(is_test && group.delimiter() == Delimiter::Brace) {
                        self.read(&inner, imports);
                    } else {
                        is_test = false;
                    }
                    at += 1;
                }
                TokenTree::Ident(ident) if *ident == "use" => {
                    let end = tokens[at..].iter().position(is_semicolon).map_or(tokens.len(), |len| at + len);
                    if imports && !is_test {
                        self.import(&tokens[at + 1..end]);
                    }
                    is_test = false;
                    at = end;
                }
                TokenTree::Ident(_) if !imports => at = self.inline_path(tokens, at),
                _ => at += 1,
            }
        }
    }

    /// Enters what a `use` declaration imports.
    fn import(&mut self, tree: &[TokenTree]) {
        let mut found = Vec::new();
        import_tree(tree, &[], &mut found);
        for (segments, name, line) in found {
            let Some(path) = self.resolve(&segments) else { continue };
            self.found.insert(Use { path: path.clone(), line });
            self.aliases.insert(name, path);
        }
    }

    /// Enters a path that starts here, if one does; where to go on.
    fn inline_path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut segments = Vec::new();
        let mut end = at;
        while let Some(TokenTree::Ident(ident)) = tokens.get(end) {
            segments.push(ident.to_string());
            if !is_path_separator(tokens, end + 1) {
                break;
            }
            end += 3;
        }
        let starts_here = at < 2 || !is_path_separator(tokens, at - 2);
        // One name alone was entered where it was imported.
        if starts_here
            && segments.len() > 1
            && let Some(path) = self.resolve(&segments)
        {
            let line = tokens[at].span().start().line;
            self.found.insert(Use { path, line });
        }
        end.max(at) + 1
    }

    /// The path from the crate's root; `None` for what is not this crate's.
    fn resolve(&self, segments: &[String]) -> Option<ModulePath> {
        let (first, rest) = segments.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.module, rest].concat()),
            "super" => {
                let ups = segments.iter().take_while(|segment| *segment == "super").count();
                let base = self.module.get(..self.module.len().checked_sub(ups)?)?;
                Some([base, &segments[ups..]].concat())
            }
            name => Some([self.aliases.get(name)?.as_slice(), rest].concat()),
        }
    }
}

/// The leaves of a `use` tree: their segments, the name that each has here, the line.
fn import_tree(tree: &[TokenTree], prefix: &[String], found: &mut Vec<(ModulePath, String, usize)>) {
    for branch in tree.split(is_comma) {
        let (mut path, mut at) = (prefix.to_vec(), 0);
        let mut name = None;
        let mut line = 0;
        loop {
            match branch.get(at) {
                Some(TokenTree::Ident(ident)) if *ident == "as" => {
                    name = branch.get(at + 1).map(ToString::to_string);
                    at += 2;
                    continue;
                }
                Some(TokenTree::Ident(ident)) => {
                    line = ident.span().start().line;
                    let segment = ident.to_string();
                    if segment != "self" || path.is_empty() {
                        path.push(segment);
                    }
                }
                Some(TokenTree::Group(group)) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    import_tree(&inner, &path, found);
                    line = 0;
                }
                Some(TokenTree::Punct(punct)) if punct.as_char() == '*' => line = punct.span().start().line,
                Some(_) => {}
                None => break,
            }
            at += 1;
        }
        if line > 0 {
            let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
            found.push((path, name, line));
        }
    }
}

fn is_cfg_test(inner: &[TokenTree]) -> bool {
    inner.iter().map(ToString::to_string).collect::<String>().replace(' ', "") == "cfg(test)"
}

fn is_punct(token: Option<&TokenTree>, expected: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == expected)
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

fn is_semicolon(token: &TokenTree) -> bool {
    is_punct(Some(token), ';')
}

fn is_comma(token: &TokenTree) -> bool {
    is_punct(Some(token), ',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> ModulePath {
        text.split("::").map(String::from).collect()
    }

    fn used(source: &str, module: &str) -> Vec<String> {
        let modules = ["fs", "fs::walk", "fs::proc", "memory"].map(path).into();
        let tokens = source.parse().expect("the test's source is Rust");
        uses(tokens, &path(module), &modules).into_iter().map(|used| used.path.join("::")).collect()
    }

    #[test]
    fn imports_trees_and_inline_paths_are_seen() {
        let source = "use crate::memory::{self, Pages as P, vma::*}; fn f() { crate::log!(x); crate::sched::now() }";
        assert_eq!(used(source, "fs"), ["log", "memory", "memory::Pages", "memory::vma", "sched::now"]);
    }

    #[test]
    fn super_and_modules_of_its_own_are_resolved() {
        assert_eq!(used("use super::super::memory; use super::walk;", "fs::proc"), ["fs::walk", "memory"]);
        assert_eq!(used("pub use proc::Root;", "fs"), ["fs::proc::Root"]);
        assert_eq!(used("use crate::fs; fn f() { fs::proc::start() }", "memory"), ["fs", "fs::proc::start"]);
    }

    #[test]
    fn tests_and_other_crates_do_not_count() {
        assert_eq!(used("use frame::Cx; #[cfg(test)] mod tests { use crate::fs; }", "memory"), [""; 0]);
        assert_eq!(used("#[cfg(test)] use crate::fs; use crate::log;", "memory"), ["log"]);
    }

    #[test]
    fn the_longest_path_says_the_room() {
        let page = "## Rooms\n| room | |\n| --- | --- |\n| `fs::proc` | top |\n| `fs`, `pipe` | low |\n";
        let rules = Rules::parse(page).expect("the page has its tables");
        assert_eq!(rules.room_of(&path("fs::proc::node")), Some(0));
        assert_eq!(rules.room_of(&path("pipe")), rules.room_of(&path("fs::walk")));
        assert_eq!(rules.room_of(&path("memory")), None);
    }
}
