// Pretty printing: documents whose line breaks are chosen when they are laid out in a given width, after Wadler ("A prettier
// printer") and Kamin.

#ifndef _PP_H_
#define _PP_H_
__noinference__ {
#include <core.h>
#include <stdio.h>
#include <list.h>

namespace PP {
using Core;
using List;

// Nonzero: lines end as TeX's tables want them, and are indented by ~.
extern int tex_output;

extern struct Ppstate;
typedef struct Ppstate @ppstate_t;
extern struct Out;
typedef struct Out @out_t;
extern struct Doc;
typedef struct Doc @doc_t;

// Lays a document out in lines of w characters. A link is its line, from 1, its column, from 0, its length and its target.
extern void file_of_doc(doc_t d, int w, FILE @f);
extern string_t string_of_doc(doc_t d, int w);
extern $(string_t,list_t<$(int,int,int,string_t)@>)@string_and_links(doc_t d, int w);

// Nothing (always the same pointer), a space, a line break, a line break where what follows does not fit.
extern doc_t nil_doc();
extern doc_t blank_doc();
extern doc_t line_doc();
extern doc_t oline_doc();

// Text; text that counts as w characters; text that is a link.
extern doc_t text(string_t<`H> s);
extern doc_t textptr(stringptr_t<`H> p);
extern doc_t text_width(string_t<`H> s, int w);
extern doc_t hyperlink(string_t<`H> shrt, string_t<`H> full);

// Lines indented by k more; indented to the column where the document begins.
extern doc_t nest(int k, doc_t d);
extern doc_t tab(doc_t d);

// One after the other; d1 if it fits, else d2.
extern doc_t cat(... doc_t);
extern doc_t cats(list_t<doc_t,`H> doclist);
extern doc_t cats_arr(doc_t ?`H docs);
extern doc_t doc_union(doc_t d1, doc_t d2);

// With a separator between; after which a line may break, or with `l` at the end of the name always does. `pp`: of a list of
// values. A group has text around; an egroup of nothing is nothing.
extern doc_t seq(string_t<`H> sep, list_t<doc_t,`H> l);
extern doc_t seql(string_t<`H> sep, list_t<doc_t,`H> l0);
extern doc_t ppseq(doc_t pp(`a), string_t<`H> sep, list_t<`a> l);
extern doc_t ppseql(doc_t pp(`a), string_t<`H> sep, list_t<`a> l);
extern doc_t group(string_t<`H> start, string_t<`H> stop, string_t<`H> sep, list_t<doc_t,`H> l);
extern doc_t groupl(string_t<`H> start, string_t<`H> stop, string_t<`H> sep, list_t<doc_t,`H> l);
extern doc_t egroup(string_t<`H> start, string_t<`H> stop, string_t<`H> sep, list_t<doc_t,`H> l);

}
}
#endif
