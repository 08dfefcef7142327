//! Findings in the two forms in which the compiler's own errors come: text with the source and carets, and JSON for cargo and editors.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};
use serde_json::{Value, json};

use crate::judgement::{Counts, Finding, Place, Sources};
use crate::source::Source;

/// The start of all our codes.
pub const CODE: &str = "ebb::";

/// The code of the message that says what was checked.
pub const CHECKED: &str = "ebb::checked";

/// Whether the text has escape codes for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// It has.
    Ansi,
    /// It is plain.
    None,
}

/// The finding as the compiler would print it.
pub fn text(finding: &Finding, sources: &Sources, colours: Colours) -> String {
    let code = format!("{CODE}{}", finding.rule.name());
    let title = Level::ERROR.primary_title(&finding.title).id(&code);
    let source = sources.get(&finding.span.file);
    let source = source.as_deref();
    let range = source.and_then(|source| source.range(&finding.span));
    // The function around the call of a macro may stand in another file than the call that the macro writes.
    let around = finding.around.as_ref().and_then(|around| Some((around, sources.get(&around.file)?)));
    let mut groups = Vec::new();
    let mut main = match source.zip(range) {
        Some((source, range)) => title.element(
            Snippet::source(&source.text)
                .path(&finding.span.file)
                .annotation(AnnotationKind::Primary.span(range).label(&finding.label))
                .annotations(
                    around
                        .iter()
                        .filter(|(around, _)| around.file == finding.span.file)
                        .map(|(around, _)| context(around)),
                ),
        ),
        None => {
            let (line, column) = finding.span.start;
            title.element(Origin::path(&finding.span.file).line(line).char_column(column))
        }
    };
    if let Some((around, source)) = &around
        && around.file != finding.span.file
    {
        main = main.element(Snippet::source(&source.text).path(&around.file).annotation(context(around)));
    }
    for help in finding.help.iter().filter(|help| help.change.is_none()) {
        main = main.element(Level::HELP.message(&help.text));
    }
    groups.push(main);
    let files: Vec<_> =
        finding.help.iter().filter_map(|help| help.change.as_ref()).map(|change| sources.get(&change.file)).collect();
    for ((text, change), file) in
        finding.help.iter().filter_map(|help| Some((&help.text, help.change.as_ref()?))).zip(&files)
    {
        if let Some(file) = file {
            let patch = Patch::new(change.range.clone(), &change.label);
            let snippet = Snippet::source(&file.text).path(&change.file).patch(patch);
            groups.push(Group::with_title(Level::HELP.secondary_title(text)).element(snippet));
        }
    }
    let renderer = match colours {
        Colours::Ansi => Renderer::styled(),
        Colours::None => Renderer::plain(),
    };
    format!("{}\n\n", renderer.render(&groups))
}

fn context(around: &Place) -> Annotation<'_> {
    AnnotationKind::Context.span(around.range.clone()).label(&around.label)
}

/// The finding as one object in the compiler's JSON format.
pub fn json(finding: &Finding, sources: &Sources, colours: Colours) -> Value {
    let rendered = text(finding, sources, colours);
    let mut spans = Vec::new();
    let (start, end) = (finding.span.start, finding.span.end);
    let source = sources.get(&finding.span.file);
    let range = source.as_ref().and_then(|source| source.range(&finding.span)).unwrap_or(0..0);
    let lines = source.as_deref().map_or_else(Vec::new, |source| lines(source, start, end));
    spans.push(json!({
        "file_name": finding.span.file,
        "byte_start": range.start, "byte_end": range.end,
        "line_start": start.0, "line_end": end.0,
        "column_start": start.1, "column_end": end.1,
        "is_primary": true, "text": lines, "label": finding.label,
        "suggested_replacement": null, "suggestion_applicability": null, "expansion": null,
    }));
    if let Some(around) = &finding.around {
        spans.extend(place(around, sources, false, &json!(around.label), &Value::Null));
    }
    let children: Vec<Value> = finding
        .help
        .iter()
        .map(|help| {
            let spans: Vec<Value> = help
                .change
                .iter()
                .filter_map(|change| place(change, sources, true, &Value::Null, &json!(change.label)))
                .collect();
            message(&help.text, &Value::Null, "help", &spans, &[], &Value::Null)
        })
        .collect();
    let code = json!({ "code": format!("{CODE}{}", finding.rule.name()), "explanation": finding.rule.explanation() });
    message(&finding.title, &code, "error", &spans, &children, &json!(rendered))
}

/// A message that says what was checked, for the summary.
pub fn checked(counts: Counts) -> Value {
    let text = format!(
        "checked {} functions that may suspend and {} calls of such",
        counts.suspending_functions, counts.suspending_calls
    );
    let mut value = message(&text, &json!({ "code": CHECKED, "explanation": null }), "note", &[], &[], &json!(""));
    value["ebb_lint"] = json!({ "functions": counts.suspending_functions, "calls": counts.suspending_calls });
    value
}

/// A message that says why nothing could be checked.
pub fn failed(text: &str) -> Value {
    let code = json!({ "code": format!("{CODE}failed"), "explanation": null });
    message(text, &code, "error", &[], &[], &json!(format!("error[{CODE}failed]: {text}\n\n")))
}

fn message(text: &str, code: &Value, level: &str, spans: &[Value], children: &[Value], rendered: &Value) -> Value {
    json!({
        "$message_type": "diagnostic",
        "message": text, "code": code, "level": level, "spans": spans, "children": children, "rendered": rendered,
    })
}

fn place(place: &Place, sources: &Sources, is_primary: bool, label: &Value, replacement: &Value) -> Option<Value> {
    let source = sources.get(&place.file)?;
    let start = source.position(place.range.start);
    let end = source.position(place.range.end);
    let applicability = if replacement.is_null() { Value::Null } else { json!("MaybeIncorrect") };
    Some(json!({
        "file_name": place.file,
        "byte_start": place.range.start, "byte_end": place.range.end,
        "line_start": start.0, "line_end": end.0,
        "column_start": start.1, "column_end": end.1,
        "is_primary": is_primary, "text": lines(&source, start, end), "label": label,
        "suggested_replacement": replacement, "suggestion_applicability": applicability, "expansion": null,
    }))
}

/// The lines of a place with what is marked in each.
fn lines(source: &Source, start: (usize, usize), end: (usize, usize)) -> Vec<Value> {
    (start.0..=end.0.max(start.0))
        .map(|number| {
            let text = source.line(number);
            let from = if number == start.0 { start.1 } else { 1 };
            let to = if number == end.0 { end.1 } else { text.chars().count() + 1 };
            json!({ "text": text, "highlight_start": from, "highlight_end": to })
        })
        .collect()
}
