#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

struct limit_text_work {
  void *parser;
  EVP_MD *algorithm;
  EVP_MD_CTX *context;
};

limit_text_work *limit_text_work_create(void) {
  limit_text_work *work = calloc(1, sizeof *work);
  if (!work) return NULL;
  work->parser = limit_json_create();
  work->algorithm = EVP_MD_fetch(NULL, "SHA1", NULL);
  work->context = EVP_MD_CTX_new();
  return work;
}

void limit_text_work_destroy(limit_text_work *work) {
  if (!work) return;
  limit_json_destroy(work->parser);
  EVP_MD_CTX_free(work->context);
  EVP_MD_free(work->algorithm);
  free(work);
}

int limit_text_work_run(limit_text_work *work, const limit_step *step, limit_outcome *outcome) {
  limit_bytes text = step->text;
  if (!limit_json_parse(work->parser, text.bytes, text.count)) return 0;
  if (!step->digests) return 1;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (!EVP_DigestInit_ex2(work->context, work->algorithm, NULL)) return 0;
  if (!EVP_DigestUpdate(work->context, text.bytes, text.count)) return 0;
  if (!EVP_DigestFinal_ex(work->context, digest, &length)) return 0;
  outcome->sum += digest[0];
  return 1;
}

typedef struct thread_start {
  pthread_t thread;
  pthread_barrier_t *barrier;
  limit_body *body;
  void *context;
  unsigned number;
  limit_outcome outcome;
} thread_start;

static void *run_thread(void *argument) {
  thread_start *start = argument;
  pthread_barrier_wait(start->barrier);
  start->body(start->context, start->number, &start->outcome);
  return NULL;
}

void limit_run_threads(unsigned threads, limit_body *body, void *context, limit_outcome *outcome) {
  limit_begin(outcome);
  thread_start *starts = calloc(threads, sizeof *starts);
  pthread_barrier_t barrier;
  if (!starts || pthread_barrier_init(&barrier, NULL, threads + 1)) {
    outcome->code = -1;
    snprintf(outcome->message, sizeof outcome->message, "no threads could be made");
    free(starts);
    return;
  }
  // A thread that can't be made would leave the others waiting, so this ends the process, as abort() says.
  for (unsigned i = 0; i < threads; i++) {
    starts[i].barrier = &barrier;
    starts[i].body = body;
    starts[i].context = context;
    starts[i].number = i;
    if (pthread_create(&starts[i].thread, NULL, run_thread, &starts[i])) abort();
  }
  double begin = limit_now();
  pthread_barrier_wait(&barrier);
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(starts[i].thread, NULL);
    outcome->count += starts[i].outcome.count;
    outcome->sum += starts[i].outcome.sum;
    if (starts[i].outcome.code && !outcome->code) {
      *outcome = starts[i].outcome;
    }
  }
  outcome->seconds = limit_now() - begin;
  pthread_barrier_destroy(&barrier);
  free(starts);
}
