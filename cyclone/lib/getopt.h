// Options of a command line, in C's way. The arguments must live on the heap, as main's do.

#ifndef _GETOPT_H_
#define _GETOPT_H_
__noinference__ {

#define no_argument 0
#define required_argument 1
#define optional_argument 2

struct option {
  const char ?name;
  int has_arg;
  int *flag;
  int val;
};

// The argument of the option found last; the index of the next argument; whether to report errors; the option at fault.
extern char ?optarg;
extern int optind;
extern int opterr;
extern int optopt;

// The next option's character, -1 at the end, '?' for an unknown one. Arguments that are no options are moved to the end,
// unless the short options begin with + or POSIXLY_CORRECT is set; - gives them as options of the value 1.
extern int getopt(int argc, char ?`H ?argv, const char ?shortopts);
extern int getopt_long(int argc, char ?`H ?argv, const char ?shortopts, const struct option ?longopts, int *longind);
extern int getopt_long_only(int argc, char ?`H ?argv, const char ?shortopts, const struct option ?longopts, int *longind);
extern int _getopt_internal(int argc, char ?`H ?argv, const char ?shortopts, const struct option ?longopts, int *longind,
                            int long_only);
}
#endif
