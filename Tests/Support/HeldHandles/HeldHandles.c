#define _GNU_SOURCE
#include "HeldHandles.h"

#include <dlfcn.h>
#include <errno.h>
#include <lmdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static atomic_int patience; // Milliseconds; 0: nothing is to be held.
static atomic_bool counts; // Whether begun writes are counted: not before a handle is to be held.
static sem_t held, begun;

void hold_next_handle(int milliseconds) {
  sem_init(&held, 0, 0);
  sem_init(&begun, 0, 0);
  counts = true;
  patience = milliseconds;
}

void wait_for_held_handle(void) {
  while (sem_wait(&held) != 0 && errno == EINTR) {}
}

static void hold(int milliseconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += milliseconds % 1000 * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  sem_post(&held);
  while (sem_timedwait(&begun, &until) != 0 && errno == EINTR) {}
}

int mdb_dbi_open(MDB_txn *transaction, const char *name, unsigned flags, MDB_dbi *handle) {
  int milliseconds = name ? atomic_exchange(&patience, 0) : 0;
  if (milliseconds) hold(milliseconds);
  int (*call)(MDB_txn *, const char *, unsigned, MDB_dbi *) =
      (int (*)(MDB_txn *, const char *, unsigned, MDB_dbi *))dlsym(RTLD_NEXT, "mdb_dbi_open");
  return call(transaction, name, flags, handle);
}

int mdb_txn_begin(MDB_env *environment, MDB_txn *parent, unsigned flags, MDB_txn **transaction) {
  int (*call)(MDB_env *, MDB_txn *, unsigned, MDB_txn **) =
      (int (*)(MDB_env *, MDB_txn *, unsigned, MDB_txn **))dlsym(RTLD_NEXT, "mdb_txn_begin");
  int result = call(environment, parent, flags, transaction);
  if (counts && !(flags & MDB_RDONLY)) sem_post(&begun);
  return result;
}
