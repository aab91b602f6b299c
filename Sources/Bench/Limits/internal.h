// What the loops over both libraries share: the clock, threads that start together, and a document's parse
// and digest.
#ifndef TOUCHSTONE_LIMITS_INTERNAL_H
#define TOUCHSTONE_LIMITS_INTERNAL_H

#include <time.h>

#include "include/Limits.h"

static inline double limit_now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static inline void limit_begin(limit_outcome *outcome) {
  outcome->code = 0;
  outcome->sum = 0;
  outcome->count = 0;
  outcome->message[0] = 0;
  outcome->seconds = limit_now();
}

static inline void limit_end(limit_outcome *outcome) { outcome->seconds = limit_now() - outcome->seconds; }

static inline void limit_see(limit_outcome *outcome, const void *value, size_t count) {
  if (count) outcome->sum += *(const uint8_t *)value;
  outcome->count++;
}

// Runs `body` on `threads` threads that start together, each with its number. `seconds` is from the start to
// the end of the last one. The first outcome with a code is kept.
typedef void limit_body(void *context, unsigned thread, limit_outcome *outcome);
void limit_run_threads(unsigned threads, limit_body *body, void *context, limit_outcome *outcome);

// What is done to a document's text before it is stored.
typedef struct limit_text_work limit_text_work;
limit_text_work *limit_text_work_create(void);
void limit_text_work_destroy(limit_text_work *work);
// Parses, and digests when the step wants it. 0 when the text is not JSON or the digest failed.
int limit_text_work_run(limit_text_work *work, const limit_step *step, limit_outcome *outcome);

// The C++ part: simdjson's DOM parser.
#ifdef __cplusplus
extern "C" {
#endif
void *limit_json_create(void);
void limit_json_destroy(void *parser);
int limit_json_parse(void *parser, const void *text, size_t count);
#ifdef __cplusplus
}
#endif

#endif
