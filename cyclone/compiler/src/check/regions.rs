//! Declarations of regions: lexical ones, and dynamic ones that are opened.

use super::Checker;
use crate::ast::{self, Quals};
use crate::diagnostics::Code;
use crate::source::Span;
use crate::symbol::Symbol;
use crate::tree::{Expr, Region, RegionKind, Stmt, StmtKind};
use crate::types::{Alias, Kind, Pointer, Ty, TyKind, TyVar, TyVarInfo};
use thin_vec::{ThinVec, thin_vec};

impl Checker<'_> {
    /// ``region<`r> h;`` and ``region h = open(k);``: `rest` are the statements of the block after it, in which the region lives. In
    /// the older form it lives in the one statement that it has, and `rest` goes after that.
    pub fn region_statement(&mut self, region: &ast::RegionDecl, rest: &[ast::Stmt], span: Span) -> ThinVec<Stmt> {
        let (inside, after) = match &region.body {
            Some(body) => (std::slice::from_ref(body), rest),
            None => (rest, &[][..]),
        };
        let opened = region.open.as_ref().map(|key| {
            let key = self.value(key, None);
            self.key_and_region(key)
        });
        let before = self.capability();
        self.push_scope();
        if let Some(body) = &mut self.body {
            body.level += 1;
        }
        let var = self.region_variable(region);
        let end = match &region.body {
            Some(body) => body.span,
            None => self.current_block(),
        };
        self.begins(var, Some(region.handle.span), end);
        let (kind, region_ty) = match opened {
            Some((key, region)) => {
                self.open_region(region);
                (RegionKind::Open(key), region)
            }
            None => {
                self.enter_region(var);
                (RegionKind::Lexical, self.make(TyKind::Var(var)))
            }
        };
        let handle_ty = self.make(TyKind::RegionHandle(region_ty));
        let quals = Quals { is_const: true, ..Quals::default() };
        let handle = self.new_local(region.handle.name, handle_ty, quals, region.handle.span);
        self.bind_local(region.handle.name, handle);
        if let (RegionKind::Lexical, Some(body)) = (&kind, &mut self.body) {
            body.lexical.push(region_ty);
        }
        let body = self.statements(inside);
        if let (RegionKind::Lexical, Some(body)) = (&kind, &mut self.body) {
            body.lexical.pop();
        }
        self.pop_scope();
        if let Some(state) = &mut self.body {
            state.level -= 1;
            state.capability = before;
        }
        let mut out = thin_vec![Stmt { kind: StmtKind::Region(Region { region: var, handle, kind, body }), span }];
        out.extend(self.statements(after));
        out
    }

    /// The name of the region in types: as written, or the handle's with a backquote. One that a key opens has its name already.
    fn region_variable(&mut self, region: &ast::RegionDecl) -> TyVar {
        let (name, span) = match &region.region {
            Some(var) => (var.name, var.span),
            None => (Symbol::new(&format!("`{}", region.handle.name)), region.handle.span),
        };
        let level = self.level();
        let info = TyVarInfo { name, kind: Kind::Effect, alias: Alias::Aliasable, level, span };
        let var = self.types.new_var(info);
        if region.open.is_none() || region.region.is_some() {
            self.bind_tyvar(name, var);
        }
        var
    }

    /// A key as a thin pointer, and the region that it opens: it is a unique or counted pointer to `Core::DynamicRegion`.
    fn key_and_region(&mut self, key: Expr) -> (Expr, Ty) {
        let span = key.span;
        let path = ast::Path { qualifier: Some(Symbol::new("Core")), name: Symbol::new("DynamicRegion"), span };
        let dynamic = self.lookup_aggregate(&path);
        if let TyKind::Pointer(pointer) = self.types.get(key.ty).clone()
            && let TyKind::Aggregate(id, args) = self.types.get(pointer.target)
            && Some(*id) == dynamic
            && let [region] = args[..]
        {
            if matches!(self.types.get(pointer.aqual), TyKind::Aqual(Alias::Aliasable)) {
                self.error(Code::WrongType, span, "only a unique or counted key opens a region");
            }
            let one = self.make(TyKind::Nat(1));
            let bound = self.make(TyKind::Thin(one));
            let nullable = self.truth_type(false);
            let thin = self.make(TyKind::Pointer(Pointer { bound, nullable, ..pointer }));
            return (self.coerce(key, thin, span), region);
        }
        if !matches!(self.types.get(key.ty), TyKind::Error) {
            let shown = self.show(key.ty);
            self.error(Code::WrongType, span, format!("`{shown}` is no key of a dynamic region"));
        }
        (key, self.make(TyKind::Error))
    }
}
