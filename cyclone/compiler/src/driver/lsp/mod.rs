//! `cyc lsp`: the language server, which editors start and speak to over standard input and output.
//!
//! It reports errors while a file is edited, shows the type of what the pointer is on, goes to where a name is declared, offers names and
//! members ([`completion`]), shows what a call takes ([`mod@signature`]), and finds and renames what a name stands for ([`references`], `rename`). A file is analysed as a whole each time it changes ([`analysis`]); changes that have come meanwhile are taken together. The options of the command
//! line (`-I`, `-D`, `--compat=0.8`) hold for all files.

mod analysis;
mod completion;
mod declared;
mod meanings;
mod places;
mod references;
mod rename;
mod signature;
mod wire;

use super::options::Options;
use analysis::{Analysis, Depth};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Notification as _,
    PublishDiagnostics,
};
use lsp_types::request::{
    Completion, GotoDefinition, HoverRequest, PrepareRenameRequest, References, Rename, Request as _,
    SignatureHelpRequest,
};
use lsp_types::{
    CompletionOptions, CompletionParams, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DidSaveTextDocumentParams, GotoDefinitionParams, HoverParams, HoverProviderCapability,
    OneOf, PublishDiagnosticsParams, ReferenceParams, RenameOptions, RenameParams, ServerCapabilities,
    SignatureHelpOptions, SignatureHelpParams, TextDocumentPositionParams, TextDocumentSyncCapability,
    TextDocumentSyncKind, Uri, WorkDoneProgressOptions,
};
use serde_json::Value;
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::str::FromStr;

type Outcome<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Serves one editor until it says that this is enough.
///
/// # Errors
/// What went wrong with the connection.
pub fn serve(options: &Options) -> Result<u8, String> {
    run(options).map(|()| 0).map_err(|error| error.to_string())
}

fn run(options: &Options) -> Outcome<()> {
    let (connection, threads) = wire::connect();
    let capabilities = ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", ">", ":"].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        signature_help_provider: Some(SignatureHelpOptions {
            trigger_characters: Some(["(", ","].map(str::to_owned).to_vec()),
            ..SignatureHelpOptions::default()
        }),
        ..ServerCapabilities::default()
    };
    let params = connection.initialize(serde_json::to_value(capabilities)?)?;
    let roots = roots(&params);
    Server { options: options.clone(), connection: &connection, documents: HashMap::new(), roots }.answer_all()?;
    drop(connection);
    threads.join()?;
    Ok(())
}

/// The directories of the project, as far as the editor names them.
fn roots(params: &Value) -> Vec<PathBuf> {
    let folders = params["workspaceFolders"].as_array().into_iter().flatten().map(|folder| &folder["uri"]);
    let named: Vec<&Value> = folders.chain([&params["rootUri"]]).collect();
    let uris = named.into_iter().filter_map(|uri| Uri::from_str(uri.as_str()?).ok());
    let mut roots: Vec<PathBuf> = uris.filter_map(|uri| places::path_of(&uri)).collect();
    roots.sort();
    roots.dedup();
    roots
}

/// A file that is open in the editor.
struct Document {
    uri: Uri,
    text: String,
    /// None after a change.
    analysis: Option<Analysis>,
}

struct Server<'a> {
    options: Options,
    connection: &'a Connection,
    documents: HashMap<String, Document>,
    roots: Vec<PathBuf>,
}

impl Server<'_> {
    fn answer_all(&mut self) -> Outcome<()> {
        while let Ok(message) = self.connection.receiver.recv() {
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let response = self.answer(request);
                    self.connection.sender.send(Message::Response(response))?;
                }
                Message::Notification(notification) => {
                    // Nothing can be answered. One that is wrong must not end what goes on with other files.
                    let method = notification.method.clone();
                    if let Err(error) = self.note(notification) {
                        eprintln!("cyc: {method}: {error}");
                    }
                }
                Message::Response(_) => {}
            }
            if self.connection.receiver.is_empty() {
                self.analyse_changed()?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Response {
        let result = match request.method.as_str() {
            HoverRequest::METHOD => self.hover(request.params),
            GotoDefinition::METHOD => self.definition(request.params),
            Completion::METHOD => self.completion(request.params),
            SignatureHelpRequest::METHOD => self.signature(request.params),
            References::METHOD => self.find_references(request.params),
            PrepareRenameRequest::METHOD => self.find_renamed(request.params),
            Rename::METHOD => self.rename_all(request.params),
            other => {
                let message = format!("`{other}` is not served");
                return Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message);
            }
        };
        match result {
            Ok(value) => Response::new_ok(request.id, value),
            Err(error) => Response::new_err(request.id, ErrorCode::InvalidParams as i32, error.to_string()),
        }
    }

    fn hover(&mut self, params: Value) -> Outcome<Value> {
        let params: HoverParams = serde_json::from_value(params)?;
        let at = params.text_document_position_params;
        let hover = self.analysis(&at).and_then(|analysis| analysis.hover(at.position));
        Ok(serde_json::to_value(hover)?)
    }

    fn definition(&mut self, params: Value) -> Outcome<Value> {
        let params: GotoDefinitionParams = serde_json::from_value(params)?;
        let at = params.text_document_position_params;
        let place = self.analysis(&at).and_then(|analysis| analysis.definition(at.position));
        Ok(serde_json::to_value(place)?)
    }

    fn completion(&mut self, params: Value) -> Outcome<Value> {
        let params: CompletionParams = serde_json::from_value(params)?;
        let at = params.text_document_position;
        let document = self.documents.get(at.text_document.uri.as_str());
        let items = document.and_then(|document| {
            let path = places::path_of(&document.uri)?;
            Some(completion::complete(&path, &document.text, at.position, &self.options))
        });
        Ok(serde_json::to_value(items.unwrap_or_default())?)
    }

    fn signature(&mut self, params: Value) -> Outcome<Value> {
        let params: SignatureHelpParams = serde_json::from_value(params)?;
        let at = params.text_document_position_params;
        let document = self.documents.get(at.text_document.uri.as_str());
        let help = document.and_then(|document| {
            let path = places::path_of(&document.uri)?;
            signature::signature(&path, &document.text, at.position, &self.options)
        });
        Ok(serde_json::to_value(help)?)
    }

    fn find_references(&mut self, params: Value) -> Outcome<Value> {
        let params: ReferenceParams = serde_json::from_value(params)?;
        Ok(serde_json::to_value(self.references(&params.text_document_position))?)
    }

    fn find_renamed(&mut self, params: Value) -> Outcome<Value> {
        let params: TextDocumentPositionParams = serde_json::from_value(params)?;
        Ok(serde_json::to_value(self.prepare_rename(&params))?)
    }

    fn rename_all(&mut self, params: Value) -> Outcome<Value> {
        let params: RenameParams = serde_json::from_value(params)?;
        self.rename(&params.text_document_position, &params.new_name)
    }

    /// What is known of the file that a request is about.
    fn analysis(&mut self, at: &TextDocumentPositionParams) -> Option<&mut Analysis> {
        let options = &self.options;
        let document = self.documents.get_mut(at.text_document.uri.as_str())?;
        let path = places::path_of(&document.uri)?;
        Some(document.analysis.get_or_insert_with(|| Analysis::of(&path, &document.text, options, Depth::Errors)))
    }

    fn note(&mut self, notification: Notification) -> Outcome<()> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                let params: DidOpenTextDocumentParams = serde_json::from_value(notification.params)?;
                self.changed(params.text_document.uri, params.text_document.text);
            }
            DidChangeTextDocument::METHOD => {
                let params: DidChangeTextDocumentParams = serde_json::from_value(notification.params)?;
                if let Some(change) = params.content_changes.into_iter().last() {
                    self.changed(params.text_document.uri, change.text);
                }
            }
            // What the others include may have been saved.
            DidSaveTextDocument::METHOD => {
                let _: DidSaveTextDocumentParams = serde_json::from_value(notification.params)?;
                self.documents.values_mut().for_each(|document| document.analysis = None);
            }
            DidCloseTextDocument::METHOD => {
                let params: DidCloseTextDocumentParams = serde_json::from_value(notification.params)?;
                if let Some(document) = self.documents.remove(params.text_document.uri.as_str()) {
                    self.changed_file(&document.uri, None);
                }
                self.publish(params.text_document.uri, Vec::new())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn changed(&mut self, uri: Uri, text: String) {
        self.changed_file(&uri, Some(&text));
        self.documents.insert(uri.as_str().to_owned(), Document { uri, text, analysis: None });
    }

    /// What includes the file sees its text from now on, or what is saved.
    fn changed_file(&mut self, uri: &Uri, text: Option<&str>) {
        let Some(path) = places::path_of(uri) else { return };
        let file = references::canonical(&path.to_string_lossy());
        for document in self.documents.values_mut() {
            if document.analysis.as_ref().is_some_and(|analysis| analysis.files().contains(&file)) {
                document.analysis = None;
            }
        }
        match text {
            Some(text) => self.options.unsaved.insert(file, text.into()),
            None => self.options.unsaved.remove(&file),
        };
    }

    fn analyse_changed(&mut self) -> Outcome<()> {
        let mut found = Vec::new();
        for document in self.documents.values_mut().filter(|document| document.analysis.is_none()) {
            let Some(path) = places::path_of(&document.uri) else { continue };
            let analysis = document.analysis.insert(Analysis::of(&path, &document.text, &self.options, Depth::Errors));
            found.push((document.uri.clone(), analysis.diagnostics()));
        }
        for (uri, diagnostics) in found {
            self.publish(uri, diagnostics)?;
        }
        Ok(())
    }

    fn publish(&self, uri: Uri, diagnostics: Vec<lsp_types::Diagnostic>) -> Outcome<()> {
        let params = PublishDiagnosticsParams { uri, diagnostics, version: None };
        let notification = Notification::new(PublishDiagnostics::METHOD.to_owned(), params);
        self.connection.sender.send(Message::Notification(notification))?;
        Ok(())
    }
}
