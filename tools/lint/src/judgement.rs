//! The judgement of a crate's bodies by the [rules](crate::rule).
//!
//! Each body is judged by itself: a function's suffix says whether what it calls may suspend, so no body has to be known to judge
//! another one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use crate::mir::{Body, Kind, Role, Span, Use};
use crate::rule::Rule;
use crate::settings::Settings;
use crate::signature::{Signature, is_future, last_segment, plain_path, takes_context};
use crate::source::{Function, Mark, Source};

/// A piece of a file that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as the compiler names it.
    pub file: String,
    /// The bytes.
    pub range: Range<usize>,
    /// What is to be said about it.
    pub label: String,
}

/// What could be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// In words.
    pub text: String,
    /// Or as a change: what stands at the place is replaced by its label.
    pub change: Option<Place>,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which rule.
    pub rule: Rule,
    /// In one sentence.
    pub title: String,
    /// Where.
    pub span: Span,
    /// What is there.
    pub label: String,
    /// The function around it.
    pub around: Option<Place>,
    /// What could be done.
    pub help: Vec<Help>,
}

/// Files that were read, by the compiler's names. Those that cannot be read are kept as `None`.
#[derive(Default)]
pub struct Sources(RefCell<BTreeMap<String, Option<Rc<Source>>>>);

impl Sources {
    /// The file, if it can be read.
    pub fn get(&self, file: &str) -> Option<Rc<Source>> {
        let mut files = self.0.borrow_mut();
        let source = files.entry(file.to_owned()).or_insert_with(|| {
            let text = std::fs::read_to_string(file).ok()?;
            Some(Rc::new(Source::new(text)))
        });
        source.clone()
    }

    #[cfg(test)]
    fn add(&self, file: &str, text: &str) {
        self.0.borrow_mut().insert(file.to_owned(), Some(Rc::new(Source::new(text.to_owned()))));
    }
}

/// What was judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Functions that may suspend.
    pub suspending_functions: usize,
    /// Calls that may suspend.
    pub suspending_calls: usize,
}

/// Judges all bodies of a crate, and what stands without a body in its `files`. The findings are in the order of their places.
pub fn judge(bodies: &[Body], files: &[String], settings: &Settings, sources: &Sources) -> (Vec<Finding>, Counts) {
    let mut judge = Judge { settings, sources, unrelated: Vec::new(), findings: Vec::new(), counts: Counts::default() };
    for body in bodies {
        judge.find_unrelated(body);
    }
    for body in bodies {
        judge.body(body);
    }
    for file in files {
        judge.unknown_marks(file);
        judge.declarations(file);
    }
    let mut findings = judge.findings;
    findings.sort_by(|a, b| (&a.span, a.rule).cmp(&(&b.span, b.rule)));
    findings.dedup_by(|a, b| (&a.span, a.rule) == (&b.span, b.rule));
    (findings, judge.counts)
}

struct Judge<'a> {
    settings: &'a Settings,
    sources: &'a Sources,
    /// Functions of this crate that are marked as unrelated.
    unrelated: Vec<Vec<String>>,
    findings: Vec<Finding>,
    counts: Counts,
}

/// A body's own function, as written.
struct Owner {
    function: Option<Function>,
    name: String,
}

impl Judge<'_> {
    fn find_unrelated(&mut self, body: &Body) {
        if has_suffix(&body.path) && self.is_marked(Mark::Unrelated, body.at.as_ref(), &body.path) {
            self.unrelated.push(plain_path(&body.path));
        }
    }

    fn body(&mut self, body: &Body) {
        let own_name = last_segment(&body.path);
        let is_closure = own_name.starts_with('{');
        let is_named = body.kind == Kind::Function && !is_closure;
        let says_so = is_named && self.may_suspend(&body.path, &body.returns);
        let own_params = if is_closure { body.params.get(1..).unwrap_or(&[]) } else { &body.params[..] };
        let takes_cx = own_params.iter().any(|ty| takes_context(ty, &self.settings.contexts));
        let is_async_block = body.params.first().is_some_and(|ty| ty.contains("{async ") || ty.contains("{coroutine"));
        let may_suspend = says_so || (is_closure && takes_cx && !is_async_block);

        self.counts.suspending_functions += usize::from(says_so);
        let mut suspends = false;
        for used in &body.uses {
            let Some(what) = self.suspending(used) else { continue };
            match used.role {
                Role::Value => self.value(body, used, &what),
                Role::Called => {
                    suspends = true;
                    self.counts.suspending_calls += 1;
                    if !may_suspend {
                        self.call_outside(body, used, &what, is_closure, is_async_block);
                    }
                }
            }
        }
        // The function that a tuple struct is has no name to choose.
        let is_constructor = own_name.starts_with(char::is_uppercase);
        if !is_named || is_constructor {
            return;
        }
        if says_so && !suspends {
            self.never_suspends(body);
        }
        if self.settings.contexts.is_empty() || is_future(&body.returns) {
            return;
        }
        if says_so && !takes_cx {
            self.suffix_without_cx(body);
        }
        let besides_self = own_params.get(usize::from(body.has_self)..).unwrap_or(&[]);
        if !has_suffix(&body.path) && besides_self.iter().any(|ty| takes_context(ty, &self.settings.contexts)) {
            self.cx_without_suffix(body);
        }
    }

    /// Whether a function of this path and return type is one of those that the rules are about.
    fn may_suspend(&self, path: &str, returns: &str) -> bool {
        has_suffix(path)
            && !is_future(returns)
            && !self.is_unrelated_here(path)
            && !self.settings.lists(Mark::Unrelated, path)
    }

    /// A method's body is named by its module (`a::f_async`), its use by its type (`a::S::f_async`).
    fn is_unrelated_here(&self, path: &str) -> bool {
        if self.unrelated.is_empty() {
            return false;
        }
        let names = plain_path(path);
        self.unrelated.iter().any(|unrelated| match unrelated.split_last() {
            Some((name, module)) => names.last() == Some(name) && names.starts_with(module),
            None => false,
        })
    }

    /// What is used, in words, if it may suspend.
    fn suspending(&self, used: &Use) -> Option<String> {
        let Signature { params, returns, path } = &used.signature;
        let is_given_context = |params: &[String]| params.iter().any(|ty| takes_context(ty, &self.settings.contexts));
        match path {
            None => is_given_context(params).then(|| "a function pointer that takes `&mut Cx`".to_owned()),
            Some(path) if self.may_suspend(path, returns) => Some(format!("`{}`", last_segment(path))),
            Some(path) => {
                let is_call = path.starts_with('<') && matches!(last_segment(path), "call" | "call_mut" | "call_once");
                (is_call && used.role == Role::Called && is_given_context(params.get(1..).unwrap_or(&[])))
                    .then(|| "a closure that takes `&mut Cx`".to_owned())
            }
        }
    }

    fn call_outside(&mut self, body: &Body, used: &Use, what: &str, is_closure: bool, is_async_block: bool) {
        if self.is_exempt(Mark::Root, body, &used.span) {
            return;
        }
        let owner = self.owner(body);
        let (where_, mut help) = match (body.kind, is_async_block, is_closure) {
            (Kind::Value, ..) => ("in a value that is computed when the program is compiled".to_owned(), Vec::new()),
            (_, true, _) => (
                "in a future".to_owned(),
                vec![words("a future suspends by `.await`: await something, or do this in a task of its own")],
            ),
            (_, _, true) => (
                "in a closure that does not take the context".to_owned(),
                vec![words(
                    "let the closure take `cx: &mut Cx`, or do without the closure, so that whoever calls it knows",
                )],
            ),
            _ => (
                format!("in `{}`, whose name says that it does not suspend", owner.name),
                self.rename(body, &owner, true),
            ),
        };
        help.push(words("code that starts tasks is marked `#[cfg_attr(false, ebb_lint::root)]`"));
        self.findings.push(Finding {
            rule: Rule::CallOutsideAsync,
            title: format!("{what} may suspend and is called {where_}"),
            span: used.span.clone(),
            label: "this call may suspend".to_owned(),
            around: if is_closure { None } else { around(body, &owner) },
            help,
        });
    }

    fn value(&mut self, body: &Body, used: &Use, what: &str) {
        if self.is_exempt(Mark::Table, body, &used.span) {
            return;
        }
        self.findings.push(Finding {
            rule: Rule::AsyncAsValue,
            title: format!("{what} may suspend and is used as a value"),
            span: used.span.clone(),
            label: "not called here".to_owned(),
            around: None,
            help: vec![
                words(&format!("call it in a closure that takes the context: `|cx| {}(cx)`", what.trim_matches('`'))),
                words("a table of such functions is marked `#[cfg_attr(false, ebb_lint::table)]`"),
            ],
        });
    }

    fn never_suspends(&mut self, body: &Body) {
        let owner = self.owner(body);
        let Some(span) = self.name_span(body, &owner) else { return };
        if owner.function.as_ref().is_some_and(|function| function.implements_trait)
            || self.is_exempt(Mark::Leaf, body, &span)
        {
            return;
        }
        let mut help = self.rename(body, &owner, false);
        help.push(words("what suspends by itself is marked `#[cfg_attr(false, ebb_lint::leaf)]`"));
        self.findings.push(Finding {
            rule: Rule::AsyncNeverSuspends,
            title: format!("`{}` says that it may suspend, but calls nothing that does", owner.name),
            span,
            label: "no call in this function may suspend".to_owned(),
            around: None,
            help,
        });
    }

    fn cx_without_suffix(&mut self, body: &Body) {
        let owner = self.owner(body);
        let Some(span) = self.name_span(body, &owner) else { return };
        if self.is_exempt(Mark::NeverSuspends, body, &span) {
            return;
        }
        let mut help = self.rename(body, &owner, true);
        help.push(words("what needs no right to suspend takes `&Cx`"));
        help.push(words(
            "a mere proof that nothing is borrowed is marked `#[cfg_attr(false, ebb_lint::never_suspends)]`",
        ));
        self.findings.push(Finding {
            rule: Rule::CxWithoutSuffix,
            title: format!(
                "`{}` takes `&mut Cx`, the right to suspend, but its name lacks the suffix `_async`",
                owner.name
            ),
            span,
            label: "takes the right to suspend".to_owned(),
            around: None,
            help,
        });
    }

    fn suffix_without_cx(&mut self, body: &Body) {
        let owner = self.owner(body);
        let Some(span) = self.name_span(body, &owner) else { return };
        let mut help = vec![words("let it take `cx: &mut Cx`")];
        help.extend(self.rename(body, &owner, false));
        help.push(words("a name that ends so for another reason is marked `#[cfg_attr(false, ebb_lint::unrelated)]`"));
        self.findings.push(Finding {
            rule: Rule::SuffixWithoutCx,
            title: format!("`{}` says that it may suspend, but takes no `&mut Cx`", owner.name),
            span,
            label: "has no right to suspend".to_owned(),
            around: None,
            help,
        });
    }

    fn unknown_marks(&mut self, file: &str) {
        let Some(source) = self.sources.get(file) else { return };
        for (word, range) in &source.unknown_marks {
            self.findings.push(Finding {
                rule: Rule::UnknownMark,
                title: format!("there is no mark `{word}`"),
                span: Span {
                    file: file.to_owned(),
                    start: source.position(range.start),
                    end: source.position(range.end),
                },
                label: "unknown".to_owned(),
                around: None,
                help: vec![words(&format!("the marks are {}", Mark::NAMES))],
            });
        }
    }

    /// A declaration has names and types, but no calls.
    fn declarations(&mut self, file: &str) {
        let Some(source) = self.sources.get(file).filter(|_| !self.settings.contexts.is_empty()) else { return };
        for declaration in source.declarations().filter(|declaration| !declaration.is_future) {
            let start = source.position(declaration.end);
            let body = Body {
                kind: Kind::Function,
                path: declaration.name.clone(),
                params: declaration.params.clone(),
                has_self: declaration.has_self,
                returns: "()".to_owned(),
                at: Some(Span { file: file.to_owned(), start, end: start }),
                uses: Vec::new(),
            };
            let takes_cx = body.params.iter().any(|ty| takes_context(ty, &self.settings.contexts));
            // What else there is may be the context under another name.
            let takes_nothing =
                body.params.iter().all(|ty| ty == "_") && body.params.len() == usize::from(body.has_self);
            let is_marked = |mark| self.is_marked(mark, body.at.as_ref(), &body.path);
            if !has_suffix(&body.path) && takes_cx {
                self.cx_without_suffix(&body);
            } else if has_suffix(&body.path) && takes_nothing && !is_marked(Mark::Unrelated) {
                self.suffix_without_cx(&body);
            }
        }
    }

    fn owner(&self, body: &Body) -> Owner {
        let function = body.at.as_ref().and_then(|at| {
            let source = self.sources.get(&at.file)?;
            let offset = source.range(at)?.start;
            source.function_at(offset).cloned()
        });
        let path = body.path.split("::{").next().unwrap_or("");
        Owner { function, name: last_segment(path).to_owned() }
    }

    /// Where the owner's name stands; if its source cannot be found, where its return type is.
    fn name_span(&self, body: &Body, owner: &Owner) -> Option<Span> {
        let at = body.at.as_ref()?;
        let Some(function) = &owner.function else { return Some(at.clone()) };
        let source = self.sources.get(&at.file)?;
        Some(Span {
            file: at.file.clone(),
            start: source.position(function.name.start),
            end: source.position(function.name.end),
        })
    }

    /// How the function could be called instead, with the suffix or without it.
    fn rename(&self, body: &Body, owner: &Owner, with_suffix: bool) -> Vec<Help> {
        let Some(function) = &owner.function else { return Vec::new() };
        if function.implements_trait {
            return vec![words("the name is the trait's: rename it there, or do this elsewhere")];
        }
        let Some(at) = &body.at else { return Vec::new() };
        let source = self.sources.get(&at.file);
        let written = source.as_ref().and_then(|source| source.text.get(function.name.clone())).unwrap_or("");
        // A name that a macro puts together cannot be changed here, and `main` is the system's.
        if written.trim_start_matches("r#") != owner.name || owner.name == "main" {
            return Vec::new();
        }
        let new = match with_suffix {
            true => format!("{}_async", owner.name),
            false => owner.name.trim_end_matches("_async").to_owned(),
        };
        if new.is_empty() {
            return Vec::new();
        }
        vec![Help {
            text: format!("rename it to `{new}`"),
            change: Some(Place { file: at.file.clone(), range: function.name.clone(), label: new }),
        }]
    }

    fn is_exempt(&self, mark: Mark, body: &Body, span: &Span) -> bool {
        self.is_marked(mark, body.at.as_ref(), &body.path) || self.is_marked(mark, Some(span), &body.path)
    }

    fn is_marked(&self, mark: Mark, at: Option<&Span>, path: &str) -> bool {
        let function = path.split("::{").next().unwrap_or("").split("::promoted[").next().unwrap_or("");
        if self.settings.lists(mark, function) {
            return true;
        }
        let Some(at) = at else { return false };
        let Some(source) = self.sources.get(&at.file) else { return false };
        source.range(at).is_some_and(|range| source.is_marked(mark, range.start))
    }
}

/// The name of the function around a call.
fn around(body: &Body, owner: &Owner) -> Option<Place> {
    let file = body.at.as_ref()?.file.clone();
    let range = owner.function.as_ref()?.name.clone();
    Some(Place { file, range, label: "this function's name lacks the suffix `_async`".to_owned() })
}

fn has_suffix(path: &str) -> bool {
    last_segment(path).ends_with("_async")
}

fn words(text: &str) -> Help {
    Help { text: text.to_owned(), change: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Body> {
        crate::mir::read(text.as_bytes()).unwrap().bodies
    }

    #[test]
    fn what_is_written_in_a_macro_is_reported_once_and_without_a_new_name() {
        let source = "macro_rules! m { ($n:ident) => { fn $n(cx: &mut Cx) { } } }\nm!(a_async); m!(b_async);";
        let body = "(_1: &mut Cx) -> () {\n    let mut _0: (); // return place in scope 0 at m.rs:1:52: 1:52\n}\n";
        let sources = Sources::default();
        sources.add("m.rs", source);
        let bodies = read(&format!("fn a_async{body}fn b_async{body}"));
        let (findings, counts) = judge(&bodies, &[], &Settings::default(), &sources);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!((findings[0].rule, findings[0].span.start), (Rule::AsyncNeverSuspends, (1, 37)));
        assert!(findings[0].help.iter().all(|help| help.change.is_none()));
        assert_eq!(counts.suspending_functions, 2);
    }

    #[test]
    fn what_is_left_of_damaged_text_is_judged_without_a_panic() {
        let sources = Sources::default();
        sources.add("a.rs", "// é\nfn f_async() {}\n");
        let settings = Settings::parse("[package.metadata.ebb-lint]\nleaf = [\"a::b\"]").unwrap();
        let mut found = 0;
        for bodies in crate::mir::tests::read_from_damaged_texts() {
            found += judge(&bodies, &["a.rs".to_owned()], &settings, &sources).0.len();
        }
        assert!(found > 1000, "something is left to judge: {found}");
    }

    #[test]
    fn a_place_whose_source_is_gone_is_still_reported() {
        let bodies = read(
            "fn f(_1: &mut a::Cx) -> () {\n    let mut _0: (); // return place in scope 0 at gone.rs:1:52: 1:52\n}\n",
        );
        let (findings, _) = judge(&bodies, &[], &Settings::default(), &Sources::default());
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].span.start, (1, 52));
    }
}
