// What differs between the two builds: how objects are owned.
//
//   OWNED, OWNED_QUAL    the qualifier of what has one owner, as a type and as a value
//   SHARED, SHARED_QUAL  the same of what has several
//   TAKES(n)             after a prototype: the function becomes the owner of its nth argument
//   ALSO(data)           another owner of shared data
//   DROP(data)           the data's owner needs it no more
//   FREE(object)         the object's owner needs it no more
//   LEND(name, data)     a name for data that has an owner elsewhere, for the rest of the block

#ifndef OWNED_H
#define OWNED_H
#include <core.h>
#include <sys/uio.h>

#ifdef COUNTED
#define OWNED UNIQUE
#define OWNED_QUAL Core::unique_qual
#define SHARED REFCNT
#define SHARED_QUAL Core::refcnt_qual
#define TAKES(n) __attribute__((consume(n)))
#define ALSO(data) Core::alias_refptr(data)
#define DROP(data) Core::drop_refptr(data)
#define FREE(object) Core::ufree(object)
#define LEND(name, data) let alias<`lent> char ? @nozeroterm `lent name = data
#else
#define OWNED ALIASABLE
#define OWNED_QUAL Core::aliasable_qual
#define SHARED ALIASABLE
#define SHARED_QUAL Core::aliasable_qual
#define TAKES(n)
#define ALSO(data) (data)
#define DROP(data) ((void)0)
#define FREE(object) ((void)0)
#define LEND(name, data) let name = data
#endif

typedef char ?@aqual(SHARED) @nozeroterm data_t;
typedef struct iovec<SHARED, `H> vector_t;

// Room for data. Its contents are not set.
#define ALLOCATE(length) qmalloc(Core::heap_region, SHARED_QUAL, (length) * sizeof(char))

#endif
