//! Files: where headers are looked for, and how far one has been read.

use super::lines::Joined;
use super::{Dependency, Failure, MOST_FILES, Preprocessor, Result};
use crate::source::text_of;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A file that is being read.
pub struct File {
    joined: Rc<Joined>,
    /// The byte that is read next.
    pub at: usize,
    /// The line there, counted from 1.
    line: u32,
    /// How many of the joins are before `at`.
    joins: usize,
    /// What `#line` added to lines.
    shift: i64,
    /// As `#line` and line markers name it.
    pub name: Rc<str>,
    /// Where headers in quotes are looked for first.
    directory: PathBuf,
    /// The directory of the search path that it was found in, for `#include_next`.
    found_in: Option<usize>,
    /// It is from a directory of `-isystem`.
    pub is_system: bool,
    /// How many conditionals were open where it begins.
    pub conditionals: usize,
    /// No lines are written for it.
    is_inner: bool,
}

/// A place in a file to which reading can return.
#[derive(Clone, Copy)]
pub struct Place {
    at: usize,
    line: u32,
    joins: usize,
}

impl File {
    fn new(name: Rc<str>, joined: Rc<Joined>, directory: PathBuf) -> File {
        File {
            joined,
            at: 0,
            line: 1,
            joins: 0,
            shift: 0,
            name,
            directory,
            found_in: None,
            is_system: false,
            conditionals: 0,
            is_inner: false,
        }
    }

    pub fn main(path: &Path, name: Rc<str>, text: &str) -> File {
        File::new(name, Rc::new(Joined::of(text)), directory_of(path))
    }

    /// A text that is no file.
    pub fn inner(name: &str, text: &str) -> File {
        let file = File::new(name.into(), Rc::new(Joined::of(text)), PathBuf::new());
        File { is_inner: true, ..file }
    }

    pub fn text(&self) -> &str {
        &self.joined.text
    }

    /// The text, which stays when the file is gone.
    pub fn shared_text(&self) -> Rc<Joined> {
        self.joined.clone()
    }

    /// Takes the newline that is here.
    pub fn newline(&mut self) {
        self.at += 1;
        self.count_joins();
        self.line += 1;
    }

    /// Counts the lines that were joined before this place; false if there are no more than before.
    pub fn count_joins(&mut self) -> bool {
        let before = self.joins;
        while self.joined.joins.get(self.joins).is_some_and(|&join| join <= self.at) {
            self.joins += 1;
            self.line += 1;
        }
        self.joins > before
    }

    /// Where it is being read.
    pub fn place(&self) -> Place {
        Place { at: self.at, line: self.line, joins: self.joins }
    }

    pub fn return_to(&mut self, place: Place) {
        (self.at, self.line, self.joins) = (place.at, place.line, place.joins);
    }

    /// The number of this line, as `#line` has it.
    pub fn presumed_line(&self) -> u32 {
        u32::try_from(i64::from(self.line) + self.shift).unwrap_or(u32::MAX)
    }

    /// The next line has this number.
    pub fn number_next_line(&mut self, number: u32) {
        self.shift = i64::from(number) - i64::from(self.line) - 1;
    }

    pub fn failure(&self, message: impl Into<String>) -> Failure {
        Failure { file: self.name.to_string(), line: self.presumed_line().max(1), message: message.into() }
    }
}

/// How a header is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// `"name"`
    Quoted(String),
    /// `<name>`
    Angled(String),
}

impl Header {
    fn name(&self) -> &str {
        match self {
            Header::Quoted(name) | Header::Angled(name) => name,
        }
    }
}

/// Where a header was found.
struct Found {
    path: PathBuf,
    /// The number of its directory in the search path.
    directory: Option<usize>,
}

/// The part of a path before the file's name: empty for a file of the current directory.
fn directory_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

impl Preprocessor<'_> {
    /// Begins to read a file.
    pub(super) fn begin(&mut self, mut file: File) -> Result<()> {
        if self.files.len() >= MOST_FILES {
            return self.fail(format!("files are nested more than {MOST_FILES} levels deep"));
        }
        file.conditionals = self.conditionals.len();
        if !self.is_silent && !file.is_inner {
            let path = PathBuf::from(&*file.name);
            let is_system = file.is_system;
            let flag = if self.files.is_empty() { "" } else { " 1" };
            self.output.marker(1, &file.name, flag, is_system);
            if self.known.insert(path.clone()) {
                self.dependencies.push(Dependency { path, is_system });
            }
        }
        self.files.push(file);
        Ok(())
    }

    /// The file has been read.
    pub(super) fn end_file(&mut self) -> Result<()> {
        let Some(file) = self.files.last() else { return Ok(()) };
        if self.conditionals.len() > file.conditionals {
            let line = self.conditionals.last().map_or(1, |open| open.line);
            let name = file.name.to_string();
            return Err(Failure {
                file: name,
                line,
                message: "a condition does not end: there is no `#endif`".to_owned(),
            });
        }
        self.files.pop();
        if let Some(file) = self.files.last()
            && !self.is_silent
        {
            self.output.marker(file.presumed_line(), &file.name, " 2", file.is_system);
        }
        Ok(())
    }

    fn search_path(&self) -> impl Iterator<Item = &PathBuf> {
        self.settings.directories.iter().chain(&self.settings.system_directories)
    }

    fn is_there(&self, path: &Path) -> bool {
        self.unsaved(path).is_some() || path.is_file()
    }

    fn unsaved(&self, path: &Path) -> Option<&str> {
        if self.settings.unsaved.is_empty() {
            return None;
        }
        let canonical = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        self.settings.unsaved.get(&canonical).map(|text| &**text)
    }

    /// Looks for a header; beginning after the directory of the file that asks, for `#include_next`.
    fn find(&self, header: &Header, is_next: bool) -> Option<Found> {
        let name = header.name();
        let file = self.files.last()?;
        if Path::new(name).is_absolute() {
            let path = PathBuf::from(name);
            return self.is_there(&path).then_some(Found { path, directory: None });
        }
        if let (Header::Quoted(_), false) = (header, is_next) {
            let path = file.directory.join(name);
            if self.is_there(&path) {
                return Some(Found { path, directory: file.found_in });
            }
        }
        let from = match (is_next, file.found_in) {
            (true, Some(directory)) => directory + 1,
            _ => 0,
        };
        let mut places = self.search_path().enumerate().skip(from).map(|(at, directory)| (at, directory.join(name)));
        let (directory, path) = places.find(|(_, path)| self.is_there(path))?;
        Some(Found { path, directory: Some(directory) })
    }

    /// For `__has_include`.
    pub(super) fn has_header(&self, header: &Header, is_next: bool) -> bool {
        self.find(header, is_next).is_some()
    }

    /// `#include` and its like.
    pub(super) fn include(&mut self, header: &Header, is_next: bool, is_once: bool) -> Result<()> {
        let Some(found) = self.find(header, is_next) else {
            return self.fail(format!("{}: No such file or directory", header.name()));
        };
        self.open(found, is_once)
    }

    /// `-include`: also looked for in the current directory.
    pub(super) fn include_first(&mut self, name: &str) -> Result<()> {
        let path = PathBuf::from(name);
        match self.is_there(&path) {
            true => self.open(Found { path, directory: None }, false),
            false => self.include(&Header::Quoted(name.to_owned()), false, false),
        }
    }

    fn open(&mut self, found: Found, is_once: bool) -> Result<()> {
        let Found { path, directory } = found;
        if !self.once.is_empty() || is_once {
            let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
            let is_known = self.once.contains(&canonical) || is_once && self.known.contains(&path);
            if is_once {
                self.once.insert(canonical);
            }
            if is_known {
                return Ok(());
            }
        }
        let joined = match self.texts.get(&path) {
            Some(joined) => joined.clone(),
            None => {
                let text = match self.unsaved(&path) {
                    Some(text) => text.to_owned(),
                    None => match std::fs::read(&path) {
                        Ok(bytes) => text_of(bytes),
                        Err(error) => return self.fail(format!("{}: {error}", path.display())),
                    },
                };
                let joined = Rc::new(Joined::of(&text));
                self.texts.insert(path.clone(), joined.clone());
                joined
            }
        };
        let name: Rc<str> = path.to_string_lossy().into();
        let mut file = File::new(name, joined, directory_of(&path));
        file.found_in = directory;
        file.is_system = directory.is_some_and(|at| at >= self.settings.directories.len());
        self.begin(file)
    }

    /// `#pragma once`
    pub(super) fn read_once(&mut self) {
        if let Some(file) = self.files.last() {
            let path = PathBuf::from(&*file.name);
            self.once.insert(path.canonicalize().unwrap_or(path));
        }
    }
}
