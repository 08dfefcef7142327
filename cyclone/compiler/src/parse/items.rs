//! What stands outside of functions, and declarations wherever they stand.

use super::{Parsed, Parser, declarators::Declared};
use crate::ast::{
    Block, Declaration, Exports, ExternC, FunctionDef, Ident, InitDeclarator, Item, Param, Path, PortSwitch, Storage,
    Type, TypeKind,
};
use crate::lex::Tok;
use crate::source::Span;
use thin_vec::ThinVec;

/// A declaration, or a function with its body.
pub(super) enum DeclarationOrFunction {
    Declaration(Box<Declaration>),
    Function(Box<FunctionDef>),
}

impl Parser<'_> {
    pub(super) fn items_to_end(&mut self) -> ThinVec<Item> {
        let mut items = ThinVec::new();
        loop {
            self.items_until_brace(&mut items);
            if self.is(Tok::End) || self.gave_up() {
                return items;
            }
            let _ = self.fail::<()>(self.span(), "this `}` closes nothing");
            self.bump();
        }
    }

    /// Items up to a `}`, which is left, or the end.
    fn items_until_brace(&mut self, items: &mut ThinVec<Item>) {
        while !matches!(self.kind(), Tok::End | Tok::RBrace) && !self.gave_up() {
            if self.eat(Tok::Semi) {
                continue;
            }
            let before = self.at;
            self.depth = 0;
            match self.item() {
                Ok(item) => items.push(item),
                Err(_) => {
                    self.recover();
                    if self.at == before {
                        self.bump();
                    }
                }
            }
        }
    }

    fn braced_items(&mut self) -> Parsed<ThinVec<Item>> {
        self.expect(Tok::LBrace)?;
        let mut items = ThinVec::new();
        self.items_until_brace(&mut items);
        self.expect(Tok::RBrace)?;
        Ok(items)
    }

    /// `;` and all that follows up to the end of what is around, or braces.
    fn rest_or_braced(&mut self) -> Parsed<ThinVec<Item>> {
        if !self.eat(Tok::Semi) {
            return self.nested_items();
        }
        if self.item_depth >= super::DEPTH_LIMIT {
            return self.fail(self.span(), "nested too deeply");
        }
        self.item_depth += 1;
        let mut items = ThinVec::new();
        self.items_until_brace(&mut items);
        self.item_depth -= 1;
        Ok(items)
    }

    fn nested_items(&mut self) -> Parsed<ThinVec<Item>> {
        if self.item_depth >= super::DEPTH_LIMIT {
            return self.fail(self.span(), "nested too deeply");
        }
        self.item_depth += 1;
        let items = self.braced_items();
        self.item_depth -= 1;
        items
    }

    fn item(&mut self) -> Parsed<Item> {
        match self.kind() {
            Tok::Namespace => {
                self.bump();
                let name = self.ident()?;
                Ok(Item::Namespace(name, self.rest_or_braced()?))
            }
            Tok::Using => {
                self.bump();
                let name = self.path()?;
                Ok(Item::Using(name, self.rest_or_braced()?))
            }
            Tok::NoInference => {
                self.bump();
                Ok(Item::NoInference(self.nested_items()?))
            }
            Tok::PortOn => self.port_switch(PortSwitch::PortOn),
            Tok::PortOff => self.port_switch(PortSwitch::PortOff),
            Tok::TempestOn => self.port_switch(PortSwitch::TempestOn),
            Tok::TempestOff => self.port_switch(PortSwitch::TempestOff),
            Tok::Extern if self.kind_at(1) == Tok::Str && self.kind_at(2) == Tok::LBrace => self.extern_c(),
            Tok::Let => {
                self.bump();
                let pattern = self.pattern()?;
                self.expect(Tok::Assign)?;
                let value = self.initializer()?;
                self.expect(Tok::Semi)?;
                Ok(Item::Let(Box::new(pattern), Box::new(value)))
            }
            _ => Ok(match self.declaration_or_function()? {
                DeclarationOrFunction::Declaration(declaration) => Item::Declaration(declaration),
                DeclarationOrFunction::Function(function) => {
                    self.eat(Tok::Semi);
                    Item::Function(function)
                }
            }),
        }
    }

    fn port_switch(&mut self, which: PortSwitch) -> Parsed<Item> {
        self.bump();
        self.expect(Tok::Semi)?;
        Ok(Item::Switch(which))
    }

    fn extern_c(&mut self) -> Parsed<Item> {
        self.bump();
        let include = match self.text() {
            "\"C\"" => false,
            "\"C include\"" => true,
            _ => return self.fail(self.span(), "expected \"C\" or \"C include\""),
        };
        self.bump();
        self.in_c += 1;
        self.look();
        let items = self.nested_items();
        self.in_c -= 1;
        self.look();
        let mut block =
            ExternC { include, items: items?, overrides: ThinVec::new(), exports: None, hidden: ThinVec::new() };
        if self.eat(Tok::Override) {
            block.overrides = self.nested_items()?;
        }
        if self.eat(Tok::Export) {
            self.expect(Tok::LBrace)?;
            block.exports = Some(if self.eat(Tok::Star) {
                self.expect(Tok::RBrace)?;
                Exports::All
            } else {
                Exports::Names(self.names_in_braces()?)
            });
        }
        if self.eat(Tok::Hide) {
            self.expect(Tok::LBrace)?;
            block.hidden = self.names_in_braces()?;
        }
        Ok(Item::ExternC(Box::new(block)))
    }

    fn names_in_braces(&mut self) -> Parsed<ThinVec<Path>> {
        let mut names = ThinVec::new();
        while self.is_name() {
            names.push(self.path()?);
            if !self.eat(Tok::Comma) && !self.eat(Tok::Semi) {
                break;
            }
        }
        self.expect(Tok::RBrace)?;
        Ok(names)
    }

    /// Anything that begins with specifiers or a declarator.
    pub(super) fn declaration_or_function(&mut self) -> Parsed<DeclarationOrFunction> {
        let start = self.span();
        let specifiers = self.specifiers(true)?;
        let is_typedef = specifiers.storage.contains(&Storage::Typedef);
        let mut declarators = ThinVec::new();
        if !self.is(Tok::Semi) {
            loop {
                let (declarator, kr_names) = self.declarator_of(specifiers.ty.clone())?;
                let Declared { name, ty, type_params, mut attributes } = declarator;
                let Some(name) = name else { return self.unexpected("a name to declare") };
                if is_typedef {
                    self.typedefs.insert(name.name);
                    self.hidden.retain(|hidden| *hidden != name.name);
                    self.declare_keyword(name.name);
                } else {
                    self.declare_variable(name.name);
                }
                let begins_body = self.is(Tok::LBrace) || (!kr_names.is_empty() && self.begins_declaration());
                if declarators.is_empty() && !is_typedef && begins_body {
                    attributes.extend(specifiers.attributes.clone());
                    let head = Head { start, storage: specifiers.storage, is_inline: specifiers.is_inline };
                    return self.function(
                        head,
                        Declared { name: Some(name), ty, type_params, attributes },
                        name,
                        kr_names,
                    );
                }
                let asm = if self.eat(Tok::Asm) { Some(self.asm()?) } else { None };
                attributes.extend(self.attributes()?);
                let init = if self.eat(Tok::Assign) { Some(self.initializer()?) } else { None };
                attributes.extend(specifiers.attributes.iter().cloned());
                declarators.reserve_exact(1);
                declarators.push(InitDeclarator { name, ty, type_params, init, asm, attributes });
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        self.expect(Tok::Semi)?;
        Ok(DeclarationOrFunction::Declaration(Box::new(Declaration {
            storage: specifiers.storage,
            is_inline: specifiers.is_inline,
            base: specifiers.ty,
            declarators,
            span: self.since(start),
        })))
    }

    fn function(
        &mut self,
        head: Head,
        declared: Declared,
        name: Path,
        kr_names: ThinVec<Ident>,
    ) -> Parsed<DeclarationOrFunction> {
        let scope = self.enter_scope();
        let mut ty = declared.ty;
        let mut kr_params = ThinVec::new();
        while !self.is(Tok::LBrace) {
            let DeclarationOrFunction::Declaration(declaration) = self.declaration_or_function()? else {
                return self.unexpected("a parameter's declaration");
            };
            for declarator in declaration.declarators {
                let ident = Ident { name: declarator.name.name, span: declarator.name.span };
                kr_params.push(Param { name: Some(ident), ty: declarator.ty, attributes: declarator.attributes });
            }
        }
        if let TypeKind::Function(function) = &mut ty.kind {
            if !kr_names.is_empty() {
                function.params = kr_names.iter().map(|name| old_style_param(*name, &kr_params)).collect();
            }
            let names: ThinVec<_> = function.params.iter().filter_map(|param| param.name).collect();
            for name in names {
                self.declare_variable(name.name);
            }
        }
        let body: Block = self.block()?;
        self.leave_scope(scope);
        Ok(DeclarationOrFunction::Function(Box::new(FunctionDef {
            storage: head.storage,
            is_inline: head.is_inline,
            name,
            ty,
            attributes: declared.attributes,
            body,
            span: self.since(head.start),
        })))
    }
}

struct Head {
    start: Span,
    storage: ThinVec<Storage>,
    is_inline: bool,
}

/// A parameter of an old-style definition: declared after the parentheses, or else an `int`.
fn old_style_param(name: Ident, declared: &[Param]) -> Param {
    let found = declared.iter().find(|param| param.name.is_some_and(|declared| declared.name == name.name));
    found.cloned().unwrap_or_else(|| Param { name: Some(name), ty: Type::int(name.span), attributes: ThinVec::new() })
}
