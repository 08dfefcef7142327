// What goes over the sockets: connections on the loopback interface, and on each of them
//   a greeting   the packets' size and their number, 4 bytes each, most significant first
//   the packets  each of that size, beginning with a header: its number and how often it was forwarded, 4 bytes each

#ifndef WIRE_H
#define WIRE_H
#include <core.h>

namespace Wire {

#define HEADER_BYTES 8
#define LARGEST_PACKET 65536

// What the system refused, or a peer did wrong.
extern datatype exn { extern Failed(string_t) };

// Two numbers: a greeting or the header of a packet.
struct Pair {
  unsigned int first;
  unsigned int second;
};
void put(char ? @nozeroterm to, struct Pair pair);
struct Pair get(const char ? @nozeroterm from);

// A listening socket on a port of the system's choice, which is printed.
int listen_somewhere();
int accept_one(int listening);
int connect_to(int port);

// Fills `buffer`. False where the stream ended before.
bool receive(int socket, char ? @nozeroterm buffer);
// Sends the first `length` bytes of `buffer`. False where the peer is gone.
bool transmit(int socket, const char ? @nozeroterm buffer, unsigned int length);

// Receives a greeting; throws where its packets are smaller than their header or larger than LARGEST_PACKET.
struct Pair receive_greeting(int socket);
void transmit_greeting(int socket, struct Pair greeting);

}
#endif
