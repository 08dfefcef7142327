// What feeds and drains the forwarder, as cheaply as it goes: it is the forwarder that is measured.

#ifndef PEERS_H
#define PEERS_H
#include "wire.h"

namespace Peers {

// Sends what the greeting says to a port. Packets that are sent at a rate have the time at which they were due behind the
// header, however late they are sent: what waits for a forwarder that pauses is late as well.
void transmit_packets(int port, struct Wire::Greeting greeting);

// Prints its port, takes the packets of one connection, and prints how long they took; where they were sent at a rate, also how
// late they were. Throws where one is not as it was sent.
void receive_packets();

}
#endif
