// Stream buffers: what a packet is while it passes through the forwarder.
//
// A stream buffer is a list of pieces, each a part of a data buffer. The buffer and its pieces have one owner. The data may be
// shared: a clone of a stream buffer has pieces of its own over the same data, so each of them can be stripped, extended and
// sent without the other noticing, and no byte is copied.
//
// With -DCOUNTED the owner frees stream buffers and pieces (they are unique), and data goes with its last user (it is reference
// counted): no collector is needed. Without it all of them are ordinary objects, left to the collector. The operations are the
// same; `owned.h` names what differs.

#ifndef STREAM_H
#define STREAM_H
#include "owned.h"
#include <sys/uio.h>

namespace Stream {

struct Piece {
  data_t data;
  unsigned int start;
  unsigned int length;
  struct Piece *@aqual(OWNED) next;
};

struct Stream {
  unsigned int length; // of all pieces
  struct Piece *@aqual(OWNED) first;
};
typedef struct Stream @@aqual(OWNED) stream_t;

// A stream buffer of all of `data`.
stream_t make(data_t data) TAKES(1);

// Another stream buffer over the same data.
stream_t clone(stream_t s);

// Puts `data` before what is there.
void prepend(stream_t s, data_t data) TAKES(2);

// Takes `n` bytes off the front. Data that has no user left is freed. Throws Core::Invalid_argument where there are fewer.
void strip(stream_t s, unsigned int n);

// Copies the first `n` bytes to `to`; throws as `strip` does.
void copy_front(stream_t s, char ? @nozeroterm to, unsigned int n);

void release(stream_t s) TAKES(1);

// What waits to be sent to a socket: it goes with one system call.
struct Queue {
  int socket;
  vector_t ? vectors; // behind those that wait there is no data
  unsigned int waiting;
};
typedef struct Queue @queue_t;

// A queue for `room` pieces.
queue_t queue_to(int socket, unsigned int room);

// Throws Core::Failure where there is no room.
void enqueue(queue_t queue, stream_t s) TAKES(2);

// Sends all that waits. False where the peer is gone.
bool flush(queue_t queue);

}
#endif
