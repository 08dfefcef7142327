// What a forwarder knows: a route for each destination, in a hash table. The chains of the table have one owner; with -DCOUNTED
// they are unique, otherwise ordinary objects of the collector's heap.

#ifndef ROUTES_H
#define ROUTES_H
#include "owned.h"

namespace Routes {

struct Route {
  unsigned int destination;
  unsigned int hops;    // what the header of a packet is to count for it
  unsigned long passed; // packets so far
  struct Route *@aqual(OWNED) next;
};
typedef struct Route *@aqual(OWNED) route_t;
typedef route_t ? table_t;

// Routes to the destinations 0 to count - 1, each of one hop.
table_t make(unsigned int count);

// Counts a packet for this destination and gives the hops to it; 0 where there is no route.
unsigned int pass(table_t table, unsigned int destination);

// The packets that passed, of all routes.
unsigned long passed(table_t table);

}
#endif
