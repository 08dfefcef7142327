//! Statements. Inside a block parsing resumes at the next statement after an error.

use super::{Parsed, Parser, items::DeclarationOrFunction};
use crate::ast::{Block, Clause, Expr, ExprKind, For, Pattern, PatternKind, RegionDecl, Stmt, StmtKind, TypeKind};
use crate::lex::Tok;
use crate::source::Span;
use thin_vec::{ThinVec, thin_vec};

impl Parser<'_> {
    /// `{ .. }`
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let start = self.span();
        self.expect(Tok::LBrace)?;
        let statements = self.nested(|parser| parser.statements_until(&[Tok::RBrace]))?;
        self.expect(Tok::RBrace)?;
        Ok(Block { statements, span: self.since(start) })
    }

    /// Statements and declarations up to one of `ends`, which is left. Names declared here hide types only here.
    fn statements_until(&mut self, ends: &[Tok]) -> Parsed<ThinVec<Stmt>> {
        let scope = self.enter_scope();
        let depth = self.depth;
        let mut statements = ThinVec::new();
        while !ends.contains(&self.kind()) && !self.is(Tok::End) && !self.gave_up() {
            let before = self.at;
            match self.statement_or_declaration() {
                Ok(statement) => statements.push(statement),
                Err(_) => {
                    self.depth = depth;
                    self.recover();
                    if self.at == before && !ends.contains(&self.kind()) {
                        self.bump();
                    }
                }
            }
        }
        self.leave_scope(scope);
        Ok(statements)
    }

    fn made_statement(&self, start: Span, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.since(start) }
    }

    fn statement_or_declaration(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        if self.is(Tok::Name) && self.kind_at(1) == Tok::Colon {
            let label = self.ident()?;
            self.bump();
            // A label may stand before a declaration, and at the end of a block.
            let inner = if self.is(Tok::RBrace) {
                self.made_statement(start, StmtKind::Empty)
            } else {
                self.nested(|parser| parser.statement_or_declaration())?
            };
            return Ok(self.made_statement(start, StmtKind::Labelled(label, Box::new(inner))));
        }
        match self.kind() {
            Tok::Let => {
                self.bump();
                self.let_statement(start)
            }
            Tok::Region if matches!(self.kind_at(1), Tok::Name | Tok::Lt) => self.region_statement(),
            Tok::Name if self.text() == "alias" && self.kind_at(1) == Tok::Lt && self.kind_at(2) == Tok::TypeVar => {
                self.let_statement(start)
            }
            _ if self.begins_declaration() => Ok(match self.declaration_or_function()? {
                DeclarationOrFunction::Declaration(declaration) => {
                    self.made_statement(start, StmtKind::Declaration(declaration))
                }
                DeclarationOrFunction::Function(function) => self.made_statement(start, StmtKind::Function(function)),
            }),
            _ => self.statement(),
        }
    }

    fn let_statement(&mut self, start: Span) -> Parsed<Stmt> {
        if self.is(Tok::Name) && matches!(self.kind_at(1), Tok::Semi | Tok::Comma) {
            let mut names = thin_vec![self.ident()?];
            while self.eat(Tok::Comma) {
                names.push(self.ident()?);
            }
            self.expect(Tok::Semi)?;
            for name in &names {
                self.declare_variable(name.name);
            }
            return Ok(self.made_statement(start, StmtKind::LetNames(names)));
        }
        let mut pattern = self.pattern()?;
        self.expect(Tok::Assign)?;
        let mut value = self.initializer()?;
        self.expect(Tok::Semi)?;
        // A cast says the type of an alias that has none, and of which the value is what is cast.
        if let PatternKind::Alias(_, _, ty, _) = &mut pattern.kind
            && matches!(ty.kind, TypeKind::Infer(None))
            && let ExprKind::Cast(to, inner) = &mut value.kind
        {
            std::mem::swap(ty, to);
            let inner = std::mem::replace(&mut **inner, Expr { kind: ExprKind::Null, span: start });
            value = inner;
        }
        self.declare_pattern(&pattern);
        Ok(self.made_statement(start, StmtKind::Let(Box::new(pattern), value)))
    }

    /// The names that a pattern binds at its top hide types; deeper ones hardly ever have a type's name.
    fn declare_pattern(&mut self, pattern: &Pattern) {
        match &pattern.kind {
            PatternKind::Name(path) if path.qualifier.is_none() => self.declare_variable(path.name),
            PatternKind::As(name, _) | PatternKind::Reference(name, _) | PatternKind::Alias(.., name) => {
                self.declare_variable(name.name);
            }
            _ => {}
        }
    }

    fn region_statement(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        self.bump();
        let region = if self.eat(Tok::Lt) {
            let var = self.type_var()?;
            self.expect_right_angle()?;
            Some(var)
        } else {
            None
        };
        let handle = self.ident()?;
        let mut open = None;
        let mut body = None;
        if self.eat(Tok::Assign) {
            if !(self.is(Tok::Name) && self.text() == "open") {
                return self.unexpected("`open`");
            }
            self.bump();
            self.expect(Tok::LParen)?;
            open = Some(self.expression()?);
            self.expect(Tok::RParen)?;
            self.expect(Tok::Semi)?;
        } else if !self.eat(Tok::Semi) {
            body = Some(self.nested(|parser| parser.statement())?);
        }
        let region = Box::new(RegionDecl { region, handle, open, body });
        Ok(self.made_statement(start, StmtKind::Region(region)))
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        self.expect(Tok::LParen)?;
        let inner = self.expression()?;
        self.expect(Tok::RParen)?;
        Ok(inner)
    }

    fn boxed_statement(&mut self) -> Parsed<Box<Stmt>> {
        Ok(Box::new(self.nested(|parser| parser.statement())?))
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::Semi => {
                self.bump();
                StmtKind::Empty
            }
            Tok::LBrace => StmtKind::Block(self.block()?),
            Tok::Name if self.kind_at(1) == Tok::Colon => return self.statement_or_declaration(),
            Tok::If => {
                self.bump();
                let condition = self.parenthesised()?;
                let yes = self.boxed_statement()?;
                let no = if self.eat(Tok::Else) { Some(self.boxed_statement()?) } else { None };
                StmtKind::If(condition, yes, no)
            }
            Tok::Switch => {
                self.bump();
                let subject = self.switch_subject()?;
                StmtKind::Switch(subject, self.clauses()?)
            }
            Tok::Try => {
                self.bump();
                let body = self.boxed_statement()?;
                self.expect(Tok::Catch)?;
                StmtKind::Try(body, self.clauses()?)
            }
            Tok::While => {
                self.bump();
                let condition = self.parenthesised()?;
                StmtKind::While(condition, self.boxed_statement()?)
            }
            Tok::Do => {
                self.bump();
                let body = self.boxed_statement()?;
                self.expect(Tok::While)?;
                let condition = self.parenthesised()?;
                self.expect(Tok::Semi)?;
                StmtKind::DoWhile(body, condition)
            }
            Tok::For => self.for_statement()?,
            Tok::Goto => {
                self.bump();
                let label = self.ident()?;
                self.expect(Tok::Semi)?;
                StmtKind::Goto(label)
            }
            Tok::Continue => {
                self.bump();
                self.expect(Tok::Semi)?;
                StmtKind::Continue
            }
            Tok::Break => {
                self.bump();
                self.expect(Tok::Semi)?;
                StmtKind::Break
            }
            Tok::Return => {
                self.bump();
                let value = if self.is(Tok::Semi) { None } else { Some(self.expression()?) };
                self.expect(Tok::Semi)?;
                StmtKind::Return(value)
            }
            Tok::Fallthru => {
                self.bump();
                let arguments = if self.eat(Tok::LParen) {
                    self.list(Tok::RParen, |parser| parser.assignment())?
                } else {
                    ThinVec::new()
                };
                self.expect(Tok::Semi)?;
                StmtKind::Fallthru(arguments)
            }
            _ => {
                let expression = self.expression()?;
                self.expect(Tok::Semi)?;
                StmtKind::Expr(expression)
            }
        };
        Ok(self.made_statement(start, kind))
    }

    /// `(e)`, a name alone, or a tuple alone.
    fn switch_subject(&mut self) -> Parsed<Expr> {
        let start = self.span();
        match self.kind() {
            Tok::Name | Tok::QualifiedName => {
                let path = self.path()?;
                Ok(Expr { kind: ExprKind::Name(path), span: start })
            }
            Tok::Dollar => {
                self.bump();
                self.expect(Tok::LParen)?;
                let parts = self.list(Tok::RParen, |parser| parser.assignment())?;
                Ok(Expr { kind: ExprKind::Tuple(parts), span: self.since(start) })
            }
            _ => self.parenthesised(),
        }
    }

    fn clauses(&mut self) -> Parsed<ThinVec<Clause>> {
        self.expect(Tok::LBrace)?;
        if !matches!(self.kind(), Tok::Case | Tok::Default | Tok::RBrace) {
            let message = format!("expected {}, found {}", Tok::Case.text(), self.kind().text());
            let advice = "`default: ..` is for all that no `case` is for";
            self.report(self.span(), message, Some(advice));
            self.skip_block();
            return Ok(ThinVec::new());
        }
        let mut clauses = ThinVec::new();
        while !self.is(Tok::RBrace) {
            clauses.push(self.clause()?);
        }
        self.bump();
        Ok(clauses)
    }

    fn clause(&mut self) -> Parsed<Clause> {
        let start = self.span();
        let scope = self.enter_scope();
        let (pattern, guard) = if self.eat(Tok::Default) {
            (None, None)
        } else {
            self.expect(Tok::Case)?;
            let pattern = self.case_pattern()?;
            let guard = if self.eat(Tok::AndAnd) { Some(self.expression()?) } else { None };
            (Some(pattern), guard)
        };
        self.expect(Tok::Colon)?;
        let span = self.since(start);
        if let Some(pattern) = &pattern {
            self.declare_pattern(pattern);
        }
        let body = self.nested(|parser| parser.statements_until(&[Tok::RBrace, Tok::Case, Tok::Default]))?;
        self.leave_scope(scope);
        Ok(Clause { pattern, guard, body, span })
    }

    fn for_statement(&mut self) -> Parsed<StmtKind> {
        self.bump();
        self.expect(Tok::LParen)?;
        let scope = self.enter_scope();
        let start = self.span();
        let init = if self.eat(Tok::Semi) {
            None
        } else if self.is(Tok::Let) || self.begins_declaration() {
            Some(self.statement_or_declaration()?)
        } else {
            let first = self.expression()?;
            self.expect(Tok::Semi)?;
            Some(self.made_statement(start, StmtKind::Expr(first)))
        };
        let condition = if self.is(Tok::Semi) { None } else { Some(self.expression()?) };
        self.expect(Tok::Semi)?;
        let step = if self.is(Tok::RParen) { None } else { Some(self.expression()?) };
        self.expect(Tok::RParen)?;
        let body = self.nested(|parser| parser.statement())?;
        self.leave_scope(scope);
        Ok(StmtKind::For(Box::new(For { init, condition, step, body })))
    }
}
