//! Expressions and initialisers.

use super::{CHAIN_LIMIT, Parsed, Parser};
use crate::ast::{
    Alloc, AllocWord, Asm, BinOp, Designator, Expr, ExprKind, Ident, InitList, Place, StructValue, Tested, UnOp,
};
use crate::lex::Tok;
use crate::source::Span;
use crate::symbol::Symbol;
use thin_vec::{ThinVec, thin_vec};

/// How tightly a binary operator binds; `||` is 1.
fn binary(kind: Tok) -> Option<(u8, BinOp)> {
    Some(match kind {
        Tok::OrOr => (1, BinOp::LogOr),
        Tok::AndAnd => (2, BinOp::LogAnd),
        Tok::Or => (3, BinOp::Or),
        Tok::Xor => (4, BinOp::Xor),
        Tok::And => (5, BinOp::And),
        Tok::EqEq => (6, BinOp::Eq),
        Tok::NotEq => (6, BinOp::Ne),
        Tok::Lt => (7, BinOp::Lt),
        Tok::Gt => (7, BinOp::Gt),
        Tok::Le => (7, BinOp::Le),
        Tok::Ge => (7, BinOp::Ge),
        Tok::Shl => (8, BinOp::Shl),
        Tok::Shr => (8, BinOp::Shr),
        Tok::Plus => (9, BinOp::Add),
        Tok::Minus => (9, BinOp::Sub),
        Tok::Star => (10, BinOp::Mul),
        Tok::Slash => (10, BinOp::Div),
        Tok::Percent => (10, BinOp::Rem),
        _ => return None,
    })
}

fn assignment_operator(kind: Tok) -> Option<Option<BinOp>> {
    Some(match kind {
        Tok::Assign => None,
        Tok::StarAssign => Some(BinOp::Mul),
        Tok::SlashAssign => Some(BinOp::Div),
        Tok::PercentAssign => Some(BinOp::Rem),
        Tok::PlusAssign => Some(BinOp::Add),
        Tok::MinusAssign => Some(BinOp::Sub),
        Tok::ShlAssign => Some(BinOp::Shl),
        Tok::ShrAssign => Some(BinOp::Shr),
        Tok::AndAssign => Some(BinOp::And),
        Tok::XorAssign => Some(BinOp::Xor),
        Tok::OrAssign => Some(BinOp::Or),
        _ => return None,
    })
}

/// Operators that bind at least as tightly as `|`: what may follow a constant in a `case` without parentheses.
pub(super) const ABOVE_LOGICAL: u8 = 3;

impl Parser<'_> {
    /// With commas.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let mut left = self.assignment()?;
        let mut links = 0;
        while self.eat(Tok::Comma) {
            links += 1;
            self.check_chain(links)?;
            let right = self.assignment()?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Comma(Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn check_chain(&mut self, links: u32) -> Parsed<()> {
        if links > CHAIN_LIMIT {
            return self.fail(self.span(), format!("more than {CHAIN_LIMIT} operators in one chain"));
        }
        Ok(())
    }

    /// Without commas.
    pub(super) fn assignment(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let left = parser.conditional()?;
            let swap = parser.is(Tok::Swap);
            let Some(operator) = (if swap { Some(None) } else { assignment_operator(parser.kind()) }) else {
                return Ok(left);
            };
            parser.bump();
            let right = if operator.is_none() && !swap { parser.initializer()? } else { parser.assignment()? };
            let span = left.span.to(right.span);
            let (left, right) = (Box::new(left), Box::new(right));
            let kind = if swap { ExprKind::Swap(left, right) } else { ExprKind::Assign(operator, left, right) };
            Ok(Expr { kind, span })
        })
    }

    /// An expression without assignment: also what the grammar calls a constant expression.
    pub(super) fn conditional(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if self.eat(Tok::Throw) {
            let thrown = self.nested(|parser| parser.conditional())?;
            return Ok(self.done(start, ExprKind::Throw(Box::new(thrown))));
        }
        if self.allocates_value() {
            return self.new_expression();
        }
        let condition = self.binary_expression(1)?;
        self.conditional_after(condition)
    }

    fn conditional_after(&mut self, condition: Expr) -> Parsed<Expr> {
        if !self.is(Tok::Question) {
            return Ok(condition);
        }
        self.bump();
        let yes = self.expression()?;
        self.expect(Tok::Colon)?;
        let no = self.nested(|parser| parser.conditional())?;
        let span = condition.span.to(no.span);
        Ok(Expr { kind: ExprKind::Conditional(Box::new([condition, yes, no])), span })
    }

    /// What follows a constant that begins a `case`: operators, and perhaps `? :`.
    pub(super) fn continue_constant(&mut self, first: Expr) -> Parsed<Expr> {
        let whole = self.binary_after(first, ABOVE_LOGICAL)?;
        self.conditional_after(whole)
    }

    fn allocates_value(&self) -> bool {
        matches!(self.kind(), Tok::New | Tok::Rnew | Tok::Qnew)
            || (self.is(Tok::Name)
                && matches!(self.text(), "unew" | "rcnew")
                && !matches!(self.kind_at(1), Tok::LParen | Tok::Assign | Tok::Semi | Tok::Comma | Tok::RParen))
    }

    fn new_expression(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let word = self.kind();
        let named = self.text() == "unew" || self.text() == "rcnew";
        let qualifier = if self.text() == "unew" { "unique_qual" } else { "refcnt_qual" };
        self.bump();
        let place = if named {
            let path =
                crate::ast::Path { qualifier: Some(Symbol::new("Core")), name: Symbol::new(qualifier), span: start };
            Place::Qualified(Box::new(Expr { kind: ExprKind::Name(path), span: start }), None)
        } else if word == Tok::New {
            Place::Heap
        } else {
            self.expect(Tok::LParen)?;
            let first = Box::new(self.assignment()?);
            let second = if self.eat(Tok::Comma) { Some(Box::new(self.assignment()?)) } else { None };
            self.expect(Tok::RParen)?;
            match (word, second) {
                (Tok::Rnew, None) => Place::Region(first),
                (Tok::Rnew, Some(qualifier)) => Place::Qualified(qualifier, Some(first)),
                (_, second) => Place::Qualified(first, second),
            }
        };
        let value = self.nested(|parser| {
            if parser.is(Tok::LBrace) {
                parser.braced()
            } else if parser.allocates_value() {
                parser.new_expression()
            } else {
                parser.binary_expression(1)
            }
        })?;
        Ok(self.done(start, ExprKind::New(Box::new((place, value)))))
    }

    /// Operators that bind at least as tightly as `least`.
    pub(super) fn binary_expression(&mut self, least: u8) -> Parsed<Expr> {
        let first = self.cast()?;
        self.binary_after(first, least)
    }

    fn binary_after(&mut self, mut left: Expr, least: u8) -> Parsed<Expr> {
        let mut links = 0;
        while let Some((tightness, operator)) = binary(self.kind()) {
            if tightness < least {
                break;
            }
            links += 1;
            self.check_chain(links)?;
            self.bump();
            let right = self.nested(|parser| parser.binary_expression(tightness + 1))?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn done(&self, start: Span, kind: ExprKind) -> Expr {
        Expr { kind, span: self.since(start) }
    }

    fn cast(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            if !(parser.is(Tok::LParen) && parser.paren_opens_type()) {
                return parser.unary();
            }
            let start = parser.span();
            parser.bump();
            let ty = Box::new(parser.type_name()?);
            parser.expect(Tok::RParen)?;
            if parser.is(Tok::LBrace) {
                let list = parser.init_list()?;
                let literal = parser.done(start, ExprKind::Compound(ty, list));
                return parser.postfix_after(literal);
            }
            let operand = Box::new(parser.cast()?);
            Ok(parser.done(start, ExprKind::Cast(ty, operand)))
        })
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let operator = match self.kind() {
            Tok::PlusPlus => UnOp::PreInc,
            Tok::MinusMinus => UnOp::PreDec,
            Tok::And => UnOp::Address,
            Tok::Star => UnOp::Deref,
            Tok::Plus => UnOp::Plus,
            Tok::Minus => UnOp::Minus,
            Tok::Not => UnOp::Not,
            Tok::Tilde => UnOp::Complement,
            _ => return self.word_or_postfix(start),
        };
        self.bump();
        let operand = Box::new(self.cast()?);
        Ok(self.done(start, ExprKind::Unary(operator, operand)))
    }

    fn word_or_postfix(&mut self, start: Span) -> Parsed<Expr> {
        let word = self.kind();
        let kind = match word {
            Tok::Extension => {
                self.bump();
                return self.cast();
            }
            Tok::SizeOf => {
                self.bump();
                if self.is(Tok::LParen) && self.paren_opens_type() {
                    self.bump();
                    let ty = Box::new(self.type_name()?);
                    self.expect(Tok::RParen)?;
                    ExprKind::SizeOfType(ty)
                } else {
                    ExprKind::SizeOfExpr(Box::new(self.nested(|parser| parser.unary())?))
                }
            }
            Tok::OffsetOf => {
                self.bump();
                self.expect(Tok::LParen)?;
                let ty = Box::new(self.type_name()?);
                self.expect(Tok::Comma)?;
                let mut members = thin_vec![self.member_or_number()?];
                while self.eat(Tok::Dot) {
                    members.push(self.member_or_number()?);
                }
                self.expect(Tok::RParen)?;
                ExprKind::OffsetOf(ty, members)
            }
            Tok::Malloc
            | Tok::Calloc
            | Tok::Rmalloc
            | Tok::RmallocInline
            | Tok::Rvmalloc
            | Tok::Rcalloc
            | Tok::Qmalloc
            | Tok::Qcalloc => self.allocation(word)?,
            Tok::Numelts | Tok::TagOf | Tok::TagCheck | Tok::Assert | Tok::QAssert | Tok::QAssertFalse => {
                self.bump();
                self.expect(Tok::LParen)?;
                let operand = Box::new(self.assignment()?);
                self.expect(Tok::RParen)?;
                match word {
                    Tok::Numelts => ExprKind::Numelts(operand),
                    Tok::TagOf => ExprKind::TagOf(operand),
                    Tok::TagCheck => ExprKind::TagCheck(operand),
                    Tok::Assert => ExprKind::Assert(Tested::Run, operand),
                    Tok::QAssert => ExprKind::Assert(Tested::Proved, operand),
                    _ => ExprKind::Assert(Tested::False, operand),
                }
            }
            Tok::ValueOf => {
                self.bump();
                self.expect(Tok::LParen)?;
                let ty = Box::new(self.type_name()?);
                self.expect(Tok::RParen)?;
                ExprKind::ValueOf(ty)
            }
            Tok::Asm => {
                self.bump();
                return self.asm();
            }
            _ => {
                let primary = self.primary()?;
                return self.postfix_after(primary);
            }
        };
        let whole = self.done(start, kind);
        self.postfix_after(whole)
    }

    /// A member's name, or a number for a tuple's.
    fn member_or_number(&mut self) -> Parsed<Ident> {
        if self.is(Tok::Number) {
            let ident = Ident { name: self.symbol(), span: self.span() };
            self.bump();
            return Ok(ident);
        }
        self.member()
    }

    /// `malloc(size)`, `calloc(n, size)`, `rmalloc(h, size)`, `rcalloc(h, n, size)`, `qmalloc(h, q, size)`, `qcalloc(h, q, n, size)`.
    fn allocation(&mut self, word: Tok) -> Parsed<ExprKind> {
        let start = self.span();
        self.bump();
        self.expect(Tok::LParen)?;
        let mut arguments = self.list(Tok::RParen, |parser| parser.assignment())?;
        let (expected, what) = match word {
            Tok::Malloc => (1, AllocWord::Malloc),
            Tok::Calloc => (2, AllocWord::Calloc),
            Tok::Rmalloc => (2, AllocWord::Malloc),
            Tok::RmallocInline => (2, AllocWord::Inline),
            Tok::Rvmalloc => (2, AllocWord::Bytes),
            Tok::Rcalloc => (3, AllocWord::Calloc),
            Tok::Qmalloc => (3, AllocWord::Malloc),
            _ => (4, AllocWord::Calloc),
        };
        if arguments.len() != expected {
            return self.fail(self.since(start), format!("expected {expected} arguments, found {}", arguments.len()));
        }
        let mut next = || arguments.remove(0);
        let place = match word {
            Tok::Malloc | Tok::Calloc => Place::Heap,
            Tok::Qmalloc | Tok::Qcalloc => {
                let region = Box::new(next());
                Place::Qualified(Box::new(next()), Some(region))
            }
            _ => Place::Region(Box::new(next())),
        };
        let count = if what == AllocWord::Calloc { Some(next()) } else { None };
        let size = next();
        Ok(ExprKind::Alloc(Box::new(Alloc { word: what, place, count, size })))
    }

    fn postfix_after(&mut self, mut left: Expr) -> Parsed<Expr> {
        let start = left.span;
        let mut links = 0;
        loop {
            links += 1;
            self.check_chain(links)?;
            let kind = match self.kind() {
                Tok::LBracket => {
                    self.bump();
                    let index = self.expression()?;
                    self.expect(Tok::RBracket)?;
                    ExprKind::Index(Box::new(left), Box::new(index))
                }
                Tok::LParen => {
                    self.bump();
                    let arguments = self.list(Tok::RParen, |parser| parser.initializer())?;
                    ExprKind::Call(Box::new(left), arguments)
                }
                Tok::Dot => {
                    self.bump();
                    ExprKind::Member(Box::new(left), self.member()?)
                }
                Tok::Arrow => {
                    self.bump();
                    ExprKind::Arrow(Box::new(left), self.member()?)
                }
                Tok::PlusPlus => {
                    self.bump();
                    ExprKind::Unary(UnOp::PostInc, Box::new(left))
                }
                Tok::MinusMinus => {
                    self.bump();
                    ExprKind::Unary(UnOp::PostDec, Box::new(left))
                }
                Tok::LtGt => {
                    self.bump();
                    ExprKind::NoInstantiation(Box::new(left))
                }
                Tok::At if self.kind_at(1) == Tok::Lt => {
                    self.bump();
                    self.bump();
                    ExprKind::Instantiate(Box::new(left), self.type_list()?)
                }
                _ => return Ok(left),
            };
            left = self.done(start, kind);
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::Name | Tok::QualifiedName => {
                let path = self.path()?;
                if !self.is(Tok::LBrace) {
                    return Ok(self.done(start, ExprKind::Name(path)));
                }
                self.bump();
                let types = self.type_arguments()?;
                let list = self.init_list_after_brace()?;
                ExprKind::Struct(Box::new(StructValue { path, types, list }))
            }
            Tok::Number => {
                let text = self.symbol();
                self.bump();
                ExprKind::Int(text)
            }
            Tok::FloatNumber => {
                let text = self.symbol();
                self.bump();
                ExprKind::Float(text)
            }
            word @ (Tok::Character | Tok::WideCharacter) => {
                let text = self.symbol();
                self.bump();
                ExprKind::Char(text, word == Tok::WideCharacter)
            }
            word @ (Tok::Str | Tok::WideStr) => ExprKind::Str(self.strings(), word == Tok::WideStr),
            Tok::Null => {
                self.bump();
                ExprKind::Null
            }
            Tok::Pragma => {
                self.bump();
                self.expect(Tok::LParen)?;
                let word = self.ident()?;
                self.expect(Tok::RParen)?;
                ExprKind::Pragma(word)
            }
            Tok::Dollar => {
                self.bump();
                self.expect(Tok::LParen)?;
                ExprKind::Tuple(self.list(Tok::RParen, |parser| parser.initializer())?)
            }
            Tok::LParen if self.kind_at(1) == Tok::LBrace => {
                self.bump();
                let block = self.block()?;
                self.expect(Tok::RParen)?;
                ExprKind::Statements(block)
            }
            Tok::LParen => {
                self.bump();
                let inner = self.expression()?;
                self.expect(Tok::RParen)?;
                return Ok(Expr { kind: inner.kind, span: self.since(start) });
            }
            Tok::Struct | Tok::Union if self.kind_at(1) == Tok::Name && self.kind_at(2) == Tok::LBrace => {
                let name = self.text_at(1).to_owned();
                let message = format!("expected an expression, found {}", self.kind().text());
                return self.fail_with(start, message, &format!("a value of it is written `{name}{{..}}`"));
            }
            word @ (Tok::Int | Tok::Char | Tok::Long | Tok::Short | Tok::Unsigned | Tok::Float | Tok::Double) => {
                let message = format!("expected an expression, found {}", word.text());
                let before = self.at.checked_sub(1).map(|at| self.tokens[at].kind);
                let advice = match before {
                    Some(Tok::New) => "`new 0` allocates a number, `new {for i < n : 0}` as many as `n` says",
                    _ => {
                        "a type stands only in a declaration, a cast or `sizeof`; further arguments (`...int rest`) are a fat pointer"
                    }
                };
                return self.fail_with(start, message, advice);
            }
            _ => return self.unexpected("an expression"),
        };
        Ok(self.done(start, kind))
    }

    /// Adjacent string literals.
    pub(super) fn strings(&mut self) -> ThinVec<Symbol> {
        let mut parts = ThinVec::new();
        while matches!(self.kind(), Tok::Str | Tok::WideStr) {
            parts.push(self.symbol());
            self.bump();
        }
        parts
    }

    /// An expression, or braces.
    pub(super) fn initializer(&mut self) -> Parsed<Expr> {
        if self.is(Tok::LBrace) { self.nested(|parser| parser.braced()) } else { self.assignment() }
    }

    fn braced(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if self.kind_at(1) != Tok::For {
            let list = self.init_list()?;
            return Ok(self.done(start, ExprKind::Init(list)));
        }
        self.bump();
        self.bump();
        let name = self.ident()?;
        self.expect(Tok::Lt)?;
        let count = self.expression()?;
        self.expect(Tok::Colon)?;
        let kind = if self.begins_type(0) {
            ExprKind::ForType(name, Box::new((count, self.type_name()?)))
        } else {
            ExprKind::For(name, Box::new((count, self.initializer_or_expression()?)))
        };
        self.expect(Tok::RBrace)?;
        Ok(self.done(start, kind))
    }

    fn initializer_or_expression(&mut self) -> Parsed<Expr> {
        if self.is(Tok::LBrace) { self.initializer() } else { self.expression() }
    }

    fn init_list(&mut self) -> Parsed<InitList> {
        self.expect(Tok::LBrace)?;
        self.init_list_after_brace()
    }

    fn init_list_after_brace(&mut self) -> Parsed<InitList> {
        self.list(Tok::RBrace, |parser| {
            let designators = parser.designators()?;
            Ok((designators, parser.initializer()?))
        })
    }

    /// `.f[3] =`, `f:`, or nothing.
    pub(super) fn designators(&mut self) -> Parsed<ThinVec<Designator>> {
        if (self.is(Tok::Name) || self.is_nameable_keyword()) && self.kind_at(1) == Tok::Colon {
            let field = self.member()?;
            self.bump();
            return Ok(thin_vec![Designator::Field(field)]);
        }
        let mut designators = ThinVec::new();
        loop {
            match self.kind() {
                Tok::Dot => {
                    self.bump();
                    designators.push(Designator::Field(self.member()?));
                }
                Tok::LBracket => {
                    self.bump();
                    let index = self.conditional()?;
                    self.expect(Tok::RBracket)?;
                    designators.push(Designator::Index(index));
                }
                _ => break,
            }
        }
        if !designators.is_empty() {
            self.expect(Tok::Assign)?;
        }
        Ok(designators)
    }

    /// After `asm`.
    pub(super) fn asm(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let is_volatile = self.eat(Tok::Volatile);
        self.expect(Tok::LParen)?;
        if !self.is(Tok::Str) {
            return self.unexpected("a string");
        }
        let mut asm = Asm {
            is_volatile,
            template: self.strings(),
            outputs: ThinVec::new(),
            inputs: ThinVec::new(),
            clobbers: ThinVec::new(),
        };
        // `::` is one token.
        let mut section = 0;
        loop {
            section += match self.kind() {
                Tok::Colon => 1,
                Tok::ColonColon => 2,
                _ => break,
            };
            self.bump();
            while self.is(Tok::Str) {
                let constraint = self.strings();
                if section >= 3 {
                    asm.clobbers.extend(constraint);
                } else {
                    self.expect(Tok::LParen)?;
                    let operand = self.expression()?;
                    self.expect(Tok::RParen)?;
                    let list = if section == 1 { &mut asm.outputs } else { &mut asm.inputs };
                    list.push((constraint, operand));
                }
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
        }
        self.expect(Tok::RParen)?;
        Ok(self.done(start, ExprKind::Asm(Box::new(asm))))
    }
}
