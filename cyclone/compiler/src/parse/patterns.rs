//! Patterns, and the constants that may stand in their place after `case`.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprKind, FieldPattern, Pattern, PatternKind, Type, TypeKind};
use crate::lex::Tok;
use crate::source::Span;
use thin_vec::ThinVec;

impl Parser<'_> {
    /// After `case`: a pattern, or a constant expression without `&&` and `||` at its top.
    pub(super) fn case_pattern(&mut self) -> Parsed<Pattern> {
        let pattern = self.pattern()?;
        let span = pattern.span;
        let first = match pattern.kind {
            PatternKind::Const(constant) => *constant,
            PatternKind::Name(path) if self.continues_constant() => Expr { kind: ExprKind::Name(path), span },
            kind => return Ok(Pattern { kind, span }),
        };
        let whole = self.continue_constant(first)?;
        let span = span.to(whole.span);
        Ok(Pattern { kind: PatternKind::Const(Box::new(whole)), span })
    }

    fn continues_constant(&self) -> bool {
        !matches!(self.kind(), Tok::Colon | Tok::AndAnd)
    }

    pub(super) fn pattern(&mut self) -> Parsed<Pattern> {
        self.nested(|parser| parser.pattern_here())
    }

    fn made(&self, start: Span, kind: PatternKind) -> Pattern {
        Pattern { kind, span: self.since(start) }
    }

    fn pattern_here(&mut self) -> Parsed<Pattern> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::Underscore => {
                self.bump();
                PatternKind::Wild
            }
            Tok::And => {
                self.bump();
                PatternKind::Deref(Box::new(self.pattern()?))
            }
            Tok::AndAnd => {
                self.bump();
                let inner = self.pattern()?;
                let span = inner.span;
                PatternKind::Deref(Box::new(Pattern { kind: PatternKind::Deref(Box::new(inner)), span }))
            }
            Tok::Star => {
                self.bump();
                let name = self.ident()?;
                let inner = if self.eat_as() { Some(Box::new(self.pattern()?)) } else { None };
                PatternKind::Reference(name, inner)
            }
            Tok::Dollar => {
                self.bump();
                self.expect(Tok::LParen)?;
                let (fields, open) = self.field_patterns(Tok::RParen)?;
                PatternKind::Tuple(fields, open)
            }
            Tok::LBrace => {
                self.bump();
                let types = self.type_arguments()?;
                let (fields, open) = self.field_patterns(Tok::RBrace)?;
                PatternKind::Struct(None, types, fields, open)
            }
            Tok::Name if self.kind_at(1) == Tok::Lt && matches!(self.kind_at(2), Tok::TypeVar | Tok::Underscore) => {
                self.tag_or_alias()?
            }
            Tok::Name | Tok::QualifiedName => self.named_pattern()?,
            _ => PatternKind::Const(Box::new(self.binary_expression(super::expressions::ABOVE_LOGICAL)?)),
        };
        Ok(self.made(start, kind))
    }

    fn eat_as(&mut self) -> bool {
        let found = self.is(Tok::Name) && self.text() == "as";
        if found {
            self.bump();
        }
        found
    }

    fn named_pattern(&mut self) -> Parsed<PatternKind> {
        if self.is(Tok::Name) && self.kind_at(1) == Tok::Name && self.text_at(1) == "as" {
            let name = self.ident()?;
            self.bump();
            return Ok(PatternKind::As(name, Box::new(self.pattern()?)));
        }
        let path = self.path()?;
        if self.eat(Tok::LParen) {
            let mut patterns = ThinVec::new();
            let mut open = false;
            while !self.is(Tok::RParen) {
                if self.eat(Tok::Ellipsis) {
                    open = true;
                    break;
                }
                patterns.push(self.pattern()?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
            self.expect(Tok::RParen)?;
            return Ok(PatternKind::Constructor(path, patterns, open));
        }
        if self.eat(Tok::LBrace) {
            let types = self.type_arguments()?;
            let (fields, open) = self.field_patterns(Tok::RBrace)?;
            return Ok(PatternKind::Struct(Some(path), types, fields, open));
        }
        Ok(PatternKind::Name(path))
    }

    /// ``x<`n>``, `x<_>`, ``alias<`r> T x``, ``alias<`r> x``.
    fn tag_or_alias(&mut self) -> Parsed<PatternKind> {
        let name = self.ident()?;
        self.bump();
        if self.eat(Tok::Underscore) {
            self.expect_right_angle()?;
            return Ok(PatternKind::Tag(name, None));
        }
        let var = self.type_var()?;
        self.expect_right_angle()?;
        if !self.begins_type(0) && !self.is_name() {
            return Ok(PatternKind::Tag(name, Some(Box::new(var))));
        }
        let ty = match self.kind_at(1) {
            // Without a type: it is that of the value.
            Tok::Assign => Box::new(Type::new(TypeKind::Infer(None), self.span())),
            _ => Box::new(self.type_name()?),
        };
        let bound = self.ident()?;
        Ok(PatternKind::Alias(name, Box::new(var), ty, bound))
    }

    fn field_patterns(&mut self, end: Tok) -> Parsed<(ThinVec<FieldPattern>, bool)> {
        let mut fields = ThinVec::new();
        let mut open = false;
        while !self.is(end) {
            if self.eat(Tok::Ellipsis) {
                open = true;
                break;
            }
            let designators = self.designators()?;
            fields.push(FieldPattern { designators, pattern: self.pattern()? });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(end)?;
        Ok((fields, open))
    }
}
