//! Requests about all places of a name: in the open files, in what they include, and in the other sources of the project.

use super::analysis::{Analysis, Depth};
use super::references::{self, Occurrence, Thing, canonical, line_and_byte, thing_at, word_in, written};
use super::{Document, Outcome, Server, places};
use crate::driver::preprocessing;
use lsp_types::{Location, Position, PrepareRenameResponse, TextDocumentPositionParams, TextEdit};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A project with more sources than this is not searched beyond them.
const MOST_FILES: usize = 2_000;

/// Directories below directories are searched this deep.
const MOST_LEVELS: usize = 8;

/// A name that the editor asks about.
struct Asked {
    file: PathBuf,
    word: String,
    line: u32,
    byte: usize,
    range: lsp_types::Range,
}

/// A file, a line and a byte of it.
type Place = (PathBuf, u32, usize);

/// A unit of the project.
struct Part {
    analysis: Analysis,
    occurrences: Vec<Occurrence>,
}

impl Server<'_> {
    /// All places of what the name at a position stands for.
    pub(super) fn references(&mut self, at: &TextDocumentPositionParams) -> Vec<Location> {
        let Some(asked) = self.asked(at) else { return Vec::new() };
        let parts = self.parts(&asked.word);
        let Some(thing) = thing_of(&parts, &asked) else { return Vec::new() };
        let places: BTreeMap<_, _> = places_of(&parts, &thing).into_iter().map(|found| (key(found), found)).collect();
        places.into_values().filter_map(Occurrence::location).collect()
    }

    /// The name at a position, if it can be renamed.
    pub(super) fn prepare_rename(&mut self, at: &TextDocumentPositionParams) -> Option<PrepareRenameResponse> {
        let asked = self.asked(at)?;
        let document = self.document_of(at)?;
        let analysis = Analysis::of(&asked.file, &document.text, &self.options, Depth::Types);
        let part = part_of(analysis, &asked.word);
        thing_of(&[part], &asked)?;
        Some(PrepareRenameResponse::RangeWithPlaceholder { range: asked.range, placeholder: asked.word })
    }

    /// The changes that give what is named at a position another name: a `WorkspaceEdit`.
    ///
    /// # Errors
    /// Why it cannot have that name.
    pub(super) fn rename(&mut self, at: &TextDocumentPositionParams, new_name: &str) -> Outcome<Value> {
        let asked = self.asked(at).ok_or("there is no name here")?;
        references::check_name(new_name)?;
        if asked.word == new_name {
            return Ok(Value::Null);
        }
        let mut parts = self.parts(&asked.word);
        let word = &asked.word;
        let unknown = || format!("it is not known what `{word}` stands for here");
        let thing = thing_of(&parts, &asked).ok_or_else(unknown)?;
        parts.retain(|part| part.analysis.sees(&thing));
        let mut lines = None;
        for part in &mut parts {
            lines = lines.or_else(|| part.analysis.lines_of_local(&thing));
            if let Some(why) = part.analysis.collision(&thing, new_name) {
                return Err(why.into());
            }
        }
        let library =
            preprocessing::library_directory(&self.options).map(|directory| canonical(&directory.to_string_lossy()));
        let is_ours = |file: &Path| library.as_ref().is_ok_and(|library| file.starts_with(library));
        let found: BTreeMap<_, Occurrence> =
            places_of(&parts, &thing).into_iter().map(|found| (key(found), found.clone())).collect();
        let known: BTreeSet<_> =
            parts.iter().flat_map(|part| &part.occurrences).filter(|o| o.thing.is_some()).map(key).collect();
        for file in parts.iter().flat_map(|part| part.analysis.files()).collect::<BTreeSet<_>>() {
            let has_places = found.keys().any(|(of, ..)| *of == file);
            if is_ours(&file) && has_places {
                return Err(format!("`{word}` is declared in {}, which belongs to the compiler", file.display()).into());
            }
            let Some(text) = self.text_of(&file) else { continue };
            if references::defines(&text, new_name) {
                return Err(format!("`{new_name}` is a macro in {}", file.display()).into());
            }
            if is_ours(&file) {
                continue;
            }
            let is_strange = |(line, byte): &(u32, usize)| {
                let within = lines.as_ref().is_none_or(|lines| lines.contains(line));
                within && !known.contains(&(file.clone(), *line, *byte))
            };
            if let Some((line, _)) = written(&text, word).iter().find(|at| is_strange(at)) {
                let file = file.display();
                return Err(format!("in line {line} of {file} it is not known what `{word}` stands for: it is in a macro, or not compiled").into());
            }
        }
        self.try_out(&parts, &found, new_name)?;
        let mut changes: BTreeMap<String, Vec<TextEdit>> = BTreeMap::new();
        for occurrence in found.values() {
            let uri = self.uri_of(&occurrence.file).ok_or("a file has no URI")?;
            changes.entry(uri).or_default().push(occurrence.edit(new_name));
        }
        Ok(serde_json::json!({ "changes": changes }))
    }

    /// Analyses the units as they would be.
    fn try_out(&self, parts: &[Part], found: &BTreeMap<Place, Occurrence>, new_name: &str) -> Outcome<()> {
        let mut options = self.options.clone();
        for file in found.keys().map(|(file, ..)| file).collect::<BTreeSet<_>>() {
            let text = self.text_of(file).ok_or_else(|| format!("{} cannot be read", file.display()))?;
            let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
            for occurrence in found.iter().rev().filter(|((of, ..), _)| of == file).map(|(_, occurrence)| occurrence) {
                let line = lines.get_mut(occurrence.line as usize - 1).ok_or("a line is not there any more")?;
                line.replace_range(occurrence.columns.clone(), new_name);
            }
            options.unsaved.insert(file.clone(), lines.concat().into());
        }
        for part in parts {
            let file = part.analysis.file();
            let text = options.unsaved.get(&file).map(|text| text.to_string()).or_else(|| self.text_of(&file));
            let text = text.ok_or_else(|| format!("{} cannot be read", file.display()))?;
            let errors = Analysis::of(&file, &text, &options, Depth::Types).errors();
            if let Some(first) = errors.first().filter(|_| errors.len() > part.analysis.errors().len()) {
                return Err(format!("{} would not be right any more: {first}", file.display()).into());
            }
        }
        Ok(())
    }

    /// The text of a file, as the editor has it if it is open.
    fn text_of(&self, file: &Path) -> Option<String> {
        let open = self.options.unsaved.get(file).map(|text| text.to_string());
        open.or_else(|| std::fs::read(file).ok().map(crate::source::text_of))
    }

    fn document_of(&self, at: &TextDocumentPositionParams) -> Option<&Document> {
        self.documents.get(at.text_document.uri.as_str())
    }

    fn asked(&self, at: &TextDocumentPositionParams) -> Option<Asked> {
        let document = self.document_of(at)?;
        let file = document_file(document)?;
        let Position { line, .. } = at.position;
        let (text, byte) = line_and_byte(&document.text, at.position)?;
        let columns = word_in(text, byte)?;
        let range = places::range(line + 1, text, columns.clone());
        Some(Asked { file, word: text[columns.clone()].to_owned(), line: line + 1, byte: columns.start, range })
    }

    /// The units in which a word may stand: those that are open, and the sources of the project that have it.
    fn parts(&self, word: &str) -> Vec<Part> {
        let mut texts: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
        for root in &self.roots {
            sources_below(root, MOST_LEVELS, &mut texts);
        }
        for document in self.documents.values() {
            texts.extend(document_file(document).map(|file| (file, Some(document.text.clone()))));
        }
        let open = |file: &Path| self.documents.values().any(|of| document_file(of).as_deref() == Some(file));
        let analyse = |(file, text): (PathBuf, Option<String>)| {
            let is_open = open(&file);
            let text = text.or_else(|| std::fs::read(&file).ok().map(crate::source::text_of))?;
            // A header that is open is seen by the units that include it, too.
            (is_open || text.contains(word))
                .then(|| part_of(Analysis::of(&file, &text, &self.options, Depth::Types), word))
        };
        texts.into_iter().filter_map(analyse).collect()
    }

    /// As the editor names it, if it is open.
    fn uri_of(&self, file: &Path) -> Option<String> {
        let open = self.documents.values().find(|document| document_file(document).as_deref() == Some(file));
        let uri = open.map(|document| document.uri.clone()).or_else(|| places::uri_of(file));
        uri.map(|uri| uri.as_str().to_owned())
    }
}

fn document_file(document: &Document) -> Option<PathBuf> {
    Some(canonical(&places::path_of(&document.uri)?.to_string_lossy()))
}

fn part_of(mut analysis: Analysis, word: &str) -> Part {
    let occurrences = analysis.occurrences(word);
    Part { analysis, occurrences }
}

fn thing_of(parts: &[Part], asked: &Asked) -> Option<Thing> {
    parts.iter().find_map(|part| thing_at(&part.occurrences, &asked.file, asked.line, asked.byte))
}

fn places_of<'p>(parts: &'p [Part], thing: &Thing) -> Vec<&'p Occurrence> {
    let all = parts.iter().flat_map(|part| &part.occurrences);
    all.filter(|occurrence| occurrence.thing.as_ref() == Some(thing)).collect()
}

fn key(occurrence: &Occurrence) -> Place {
    (occurrence.file.clone(), occurrence.line, occurrence.columns.start)
}

/// Adds the Cyclone files of a directory.
fn sources_below(directory: &Path, levels: usize, found: &mut BTreeMap<PathBuf, Option<String>>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "target";
        if is_hidden || found.len() >= MOST_FILES {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && levels > 0 => sources_below(&path, levels - 1, found),
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|extension| extension == "cyc") => {
                found.insert(canonical(&path.to_string_lossy()), None);
            }
            _ => {}
        }
    }
}
