//! Which types hold unique or counted pointers, and which places are the only way to what they hold.
//!
//! A value is *owned* if copying it would make a second owner: a pointer whose alias qualifier is not (only) `ALIASABLE`, a value of a
//! type variable that may be such a pointer, and structures that have one among their members. Copying an owned value consumes
//! the place it is copied from, which is only sound if no other path leads there: a *unique path* is a local variable, a member
//! of a unique path, or what a unique pointer in a unique path points to.

use crate::tree::{Coercion, Declarations, Expr, ExprKind, Local, StmtKind};
use crate::types::{Alias, Substitution, Ty, TyKind, Types};

/// Whether a value of this type must not be copied without consuming it.
pub fn is_owned(types: &mut Types, declarations: &Declarations, ty: Ty) -> bool {
    match types.get(ty) {
        TyKind::Pointer(pointer) => is_owned_qualifier(types, pointer.aqual),
        TyKind::Var(var) => types.var(*var).alias != Alias::Aliasable,
        TyKind::Subset(_, base) => {
            let base = *base;
            is_owned(types, declarations, base)
        }
        TyKind::Tuple(members) => {
            let members: Vec<Ty> = members.iter().map(|member| member.ty).collect();
            members.into_iter().any(|member| is_owned(types, declarations, member))
        }
        TyKind::Aggregate(id, args) => {
            let aggregate = declarations.aggregate(*id);
            let Some(body) = &aggregate.body else { return false };
            let map = Substitution::of(&aggregate.params, args);
            body.fields.iter().any(|field| is_owned_member(types, declarations, field.ty, &map))
        }
        TyKind::Constructor(id, index, args) => {
            let datatype = declarations.datatype(*id);
            let Some(constructor) = datatype.constructors.get(*index as usize) else { return false };
            let map = Substitution::of(&datatype.params, args);
            constructor.params.iter().any(|param| is_owned_member(types, declarations, param.ty, &map))
        }
        _ => false,
    }
}

/// What is not known yet will be aliasable unless a use says otherwise.
fn is_owned_qualifier(types: &Types, aqual: Ty) -> bool {
    match types.get(aqual) {
        TyKind::Evar(_) => false,
        TyKind::AqualsOf(of) if matches!(types.get(*of), TyKind::Evar(_)) => false,
        _ => types.alias_bound(aqual) != Alias::Aliasable,
    }
}

/// Numbers and the like need no substitution to be told apart from owned values.
fn is_owned_member(types: &mut Types, declarations: &Declarations, ty: Ty, map: &Substitution) -> bool {
    match types.get(ty) {
        TyKind::Pointer(pointer) => {
            let (aqual, region) = (pointer.aqual, pointer.region);
            let region = types.substitute(region, map);
            let aqual = match *types.get(region) {
                TyKind::Place(_, aqual) => aqual,
                _ => types.substitute(aqual, map),
            };
            is_owned_qualifier(types, aqual)
        }
        TyKind::Var(_) | TyKind::Subset(..) | TyKind::Tuple(_) | TyKind::Aggregate(..) | TyKind::Constructor(..) => {
            let ty = types.substitute(ty, map);
            is_owned(types, declarations, ty)
        }
        _ => false,
    }
}

/// Whether a pointer of this type is known to be the only one to its object.
pub fn is_unique_pointer(types: &Types, ty: Ty) -> bool {
    match types.get(ty) {
        TyKind::Pointer(pointer) => types.alias_bound(pointer.aqual) == Alias::Unique,
        TyKind::Var(var) => types.var(*var).alias == Alias::Unique,
        _ => false,
    }
}

/// Whether nothing but `expr` leads to its value: a unique path, or a value that was just made. `locals` are the function's variables: what
/// is `static` is there for every call, as a global is.
pub fn is_unique_path(types: &Types, locals: &[Local], expr: &Expr) -> bool {
    let is_unique = |expr| is_unique_path(types, locals, expr);
    match &expr.kind {
        ExprKind::Local(id) => locals.get(id.0 as usize).is_none_or(|local| !local.is_static),
        ExprKind::Global(_) | ExprKind::Index(..) => false,
        ExprKind::Deref(pointer, _) => is_unique_pointer(types, pointer.ty) && is_unique(pointer),
        ExprKind::Member(inner, _) | ExprKind::TaggedMember(inner, ..) => is_unique(inner),
        ExprKind::Coerce(coercion, inner) => *coercion != Coercion::Decay && is_unique(inner),
        ExprKind::Comma(_, last) => is_unique(last),
        ExprKind::Conditional(_, then, other) => is_unique(then) && is_unique(other),
        ExprKind::Statements(block) => match block.statements.last().map(|last| &last.kind) {
            Some(StmtKind::Expr(last)) => is_unique(last),
            _ => true,
        },
        _ => true,
    }
}

/// What the address of a place or pointer is computed from.
fn base(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Member(inner, _)
        | ExprKind::TaggedMember(inner, ..)
        | ExprKind::Coerce(_, inner)
        | ExprKind::Deref(inner, _)
        | ExprKind::Index(inner, ..) => Some(inner),
        _ => None,
    }
}

/// The same, to be changed.
///
/// # Panics
/// Where there is nothing: only steps that [`owner_of_place`] has found are gone.
pub fn base_mut(expr: &mut Expr) -> &mut Expr {
    match &mut expr.kind {
        ExprKind::Member(inner, _)
        | ExprKind::TaggedMember(inner, ..)
        | ExprKind::Coerce(_, inner)
        | ExprKind::Deref(inner, _)
        | ExprKind::Index(inner, ..) => inner,
        _ => panic!("an address is computed from members, elements and what pointers lead to"),
    }
}

/// The owned pointer to the object that a place is inside of, and how many steps ([`base_mut`]) lead from the place to it. An address in
/// there is worth nothing once that object is freed.
pub fn owner_of_place<'e>(
    types: &mut Types,
    declarations: &Declarations,
    place: &'e Expr,
) -> Option<(usize, &'e Expr)> {
    let (mut at, mut steps) = (place, 0);
    // Whether `at` is a pointer, which leads to the place; otherwise it is a place around that.
    let mut is_pointer = false;
    loop {
        if is_pointer && (is_owned(types, declarations, at.ty) || may_be_owner(types, declarations, at)) {
            return Some((steps, at));
        }
        is_pointer = match (&at.kind, is_pointer) {
            (ExprKind::Member(..) | ExprKind::TaggedMember(..) | ExprKind::Coerce(Coercion::Same, _), false) => false,
            (ExprKind::Deref(..) | ExprKind::Index(..), false) => true,
            (ExprKind::Coerce(Coercion::Decay, _), true) => false,
            (ExprKind::Coerce(..), true) => true,
            _ => return None,
        };
        at = base(at)?;
        steps += 1;
    }
}

/// Whether a pointer that can be copied is one of several, among which is an owned one.
fn may_be_owner(types: &mut Types, declarations: &Declarations, pointer: &Expr) -> bool {
    let mut is_owner = |expr: &Expr| {
        is_owned(types, declarations, below_coercions(expr).ty)
            || may_be_owner(types, declarations, below_coercions(expr))
    };
    match &pointer.kind {
        ExprKind::Conditional(_, then, other) => is_owner(then) || is_owner(other),
        ExprKind::Comma(_, last) => is_owner(last),
        ExprKind::Statements(block) => match block.statements.last().map(|last| &last.kind) {
            Some(StmtKind::Expr(last)) => is_owner(last),
            _ => false,
        },
        _ => false,
    }
}

fn below_coercions(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Coerce(_, inner) => below_coercions(inner),
        _ => expr,
    }
}

/// The owned pointer to the object that an address is inside of: that of an element (`pointer` is what is indexed), or of an array that has become
/// a pointer.
pub fn owner_around<'e>(types: &mut Types, declarations: &Declarations, pointer: &'e Expr) -> Option<&'e Expr> {
    if is_owned(types, declarations, pointer.ty) || may_be_owner(types, declarations, pointer) {
        return Some(pointer);
    }
    match &pointer.kind {
        ExprKind::Coerce(Coercion::Decay, place) => owner_of_place(types, declarations, place).map(|(_, owner)| owner),
        ExprKind::Coerce(_, inner) => owner_around(types, declarations, inner),
        _ => None,
    }
}
