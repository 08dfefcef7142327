// What goes over the sockets: connections on the loopback interface, and on each of them
//   a greeting   the packets' size, their number, and how many are sent each second (0: as many as go); 4 bytes each, most
//                significant first
//   the packets  each of that size, beginning with a header: its number and how often it was forwarded, 4 bytes each

#ifndef WIRE_H
#define WIRE_H
#include <core.h>

namespace Wire {

#define HEADER_BYTES 8
#define LARGEST_PACKET 65536

// What the system refused, or a peer did wrong.
extern datatype exn { extern Failed(string_t) };

struct Greeting {
  unsigned int size;
  unsigned int count;
  unsigned int rate;
};

struct Header {
  unsigned int number;
  unsigned int forwarded;
};
void put_header(char ? @nozeroterm to, struct Header header);
struct Header get_header(const char ? @nozeroterm from);

void put_number(char @{4} @nozeroterm to, unsigned int number);
unsigned int get_number(const char @{4} @nozeroterm from);

// A listening socket on a port of the system's choice, which is printed.
int listen_somewhere();
int accept_one(int listening);
int connect_to(int port);

// Fills `buffer`. False where the stream ended before.
bool receive(int socket, char ? @nozeroterm buffer);
// Sends the first `length` bytes of `buffer`. False where the peer is gone.
bool transmit(int socket, const char ? @nozeroterm buffer, unsigned int length);

// Receives a greeting; throws where its packets are smaller than their header or larger than LARGEST_PACKET.
struct Greeting receive_greeting(int socket);
void transmit_greeting(int socket, struct Greeting greeting);

// What a monotonic clock shows, the same in all processes.
unsigned long clock_micros();

}
#endif
