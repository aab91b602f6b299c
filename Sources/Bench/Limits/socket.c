#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

// Two ends of a TCP connection. One thread sends at the first end and one receives there; a third one receives at the
// second end and answers.

enum { PIECE = 64 << 10 };

typedef struct exchange {
  int ends[2];
  uint64_t bytes, messages, reply_bytes, replies;
} exchange;

static void fail(exchange *exchange, const char *what, limit_outcome *outcome) {
  outcome->code = errno ? errno : -1;
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", what, strerror(errno));
  // The other threads must not wait for what won't come.
  shutdown(exchange->ends[0], SHUT_RDWR);
  shutdown(exchange->ends[1], SHUT_RDWR);
}

// Sends `count` bytes in pieces. 0 if that fails.
static int send_bytes(int socket, const char *piece, uint64_t count) {
  while (count) {
    ssize_t sent = send(socket, piece, count < PIECE ? count : PIECE, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return 0;
    count -= (uint64_t)sent;
  }
  return 1;
}

// Receives a piece. 0 at the end, less if it fails.
static ssize_t receive_piece(int socket, char *piece) {
  ssize_t got;
  do {
    got = recv(socket, piece, PIECE, 0);
  } while (got < 0 && errno == EINTR);
  return got;
}

static void receive_replies(exchange *exchange, char *piece, limit_outcome *outcome) {
  while (outcome->count < exchange->reply_bytes) {
    ssize_t got = receive_piece(exchange->ends[0], piece);
    if (got <= 0) return fail(exchange, "a reply didn't come", outcome);
    outcome->sum += (uint8_t)piece[0];
    outcome->count += (uint64_t)got;
  }
}

// Each message that has come whole is answered by its share of the replies.
static void answer(exchange *exchange, char *piece, limit_outcome *outcome) {
  static const char zeros[PIECE];
  uint64_t answered = 0;
  while (outcome->count < exchange->bytes) {
    ssize_t got = receive_piece(exchange->ends[1], piece);
    if (got <= 0) return fail(exchange, "a message didn't come", outcome);
    outcome->sum += (uint8_t)piece[0];
    outcome->count += (uint64_t)got;
    uint64_t whole = outcome->count * exchange->messages / exchange->bytes;
    uint64_t replies = whole * exchange->replies / exchange->messages;
    uint64_t due = exchange->replies ? replies * exchange->reply_bytes / exchange->replies : 0;
    if (!send_bytes(exchange->ends[1], zeros, due - answered)) {
      return fail(exchange, "a reply can't be sent", outcome);
    }
    answered = due;
  }
  if (!send_bytes(exchange->ends[1], zeros, exchange->reply_bytes - answered)) {
    fail(exchange, "a reply can't be sent", outcome);
  }
}

static void run(void *context, unsigned thread, limit_outcome *outcome) {
  exchange *exchange = context;
  char piece[PIECE] = {0};
  switch (thread) {
  case 0:
    if (!send_bytes(exchange->ends[0], piece, exchange->bytes)) {
      fail(exchange, "a message can't be sent", outcome);
    }
    break;
  case 1: receive_replies(exchange, piece, outcome); break;
  default: answer(exchange, piece, outcome);
  }
}

// Connects two sockets over loopback. 0 if that fails.
static int connect_ends(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  int one = 1;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ends[1] = -1;
  if (listener >= 0 && ends[0] >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof address)
      && !listen(listener, 1) && !getsockname(listener, (struct sockaddr *)&address, &length)
      && !connect(ends[0], (struct sockaddr *)&address, sizeof address)) {
    ends[1] = accept(listener, NULL, NULL);
  }
  int code = errno;
  if (listener >= 0) close(listener);
  errno = code;
  if (ends[1] < 0) return 0;
  setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return 1;
}

void limit_exchange(
    size_t bytes, size_t messages, size_t reply_bytes, size_t replies, limit_outcome *outcome) {
  limit_begin(outcome);
  exchange exchange = {
      .bytes = bytes, .messages = messages ? messages : 1, .reply_bytes = reply_bytes, .replies = replies};
  if (connect_ends(exchange.ends)) {
    limit_run_threads(3, run, &exchange, outcome);
  } else {
    outcome->code = errno ? errno : -1;
    snprintf(outcome->message, sizeof outcome->message, "no connection: %s", strerror(errno));
  }
  for (int i = 0; i < 2; i++) {
    if (exchange.ends[i] >= 0) close(exchange.ends[i]);
  }
}
