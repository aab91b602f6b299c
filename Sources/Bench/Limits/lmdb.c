// The loops over LMDB.
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { MAXIMUM_TABLES = 16 };

struct limit_lmdb {
  MDB_env *environment;
  MDB_dbi tables[MAXIMUM_TABLES];
};

static int fail(limit_outcome *outcome, int code, const char *tried) {
  outcome->code = code;
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", tried, mdb_strerror(code));
  return code;
}

#define TRY(call, tried)                                                                                     \
  do {                                                                                                       \
    int code_ = (call);                                                                                      \
    if (code_) {                                                                                             \
      fail(outcome, code_, tried);                                                                           \
      goto failed;                                                                                           \
    }                                                                                                        \
  } while (0)

static inline MDB_val val(limit_bytes bytes) {
  return (MDB_val){.mv_size = bytes.count, .mv_data = (void *)bytes.bytes};
}

limit_lmdb *limit_lmdb_open(
    const char *path, const limit_lmdb_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  outcome->code = 0;
  MDB_txn *transaction = NULL;
  limit_lmdb *database = calloc(1, sizeof *database);
  if (!database || count > MAXIMUM_TABLES) {
    fail(outcome, ENOMEM, "opening");
    free(database);
    return NULL;
  }
  TRY(mdb_env_create(&database->environment), "mdb_env_create");
  TRY(mdb_env_set_mapsize(database->environment, options->map_bytes), "mdb_env_set_mapsize");
  TRY(mdb_env_set_maxreaders(database->environment, options->readers), "mdb_env_set_maxreaders");
  TRY(mdb_env_set_maxdbs(database->environment, options->databases), "mdb_env_set_maxdbs");
  TRY(mdb_env_open(database->environment, path, options->flags, 0644), "mdb_env_open");
  TRY(mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &transaction), "mdb_txn_begin");
  for (size_t i = 0; i < count; i++)
    TRY(mdb_dbi_open(transaction, tables[i].name, 0, &database->tables[i]), tables[i].name);
  // Handles opened in a transaction are the environment's once it commits.
  TRY(mdb_txn_commit(transaction), "mdb_txn_commit");
  return database;
failed:
  if (database->environment) mdb_env_close(database->environment);
  free(database);
  return NULL;
}

void limit_lmdb_close(limit_lmdb *database) {
  if (!database) return;
  if (database->environment) mdb_env_close(database->environment);
  free(database);
}

static void write_records(
    limit_lmdb *database, const limit_record *records, size_t count, size_t batch, bool deletes,
    limit_outcome *outcome) {
  MDB_dbi table = database->tables[0];
  MDB_txn *transaction = NULL;
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(mdb_txn_begin(database->environment, NULL, 0, &transaction), "mdb_txn_begin");
    for (; next < end; next++) {
      MDB_val key = val(records[next].key);
      MDB_val value = val(records[next].value);
      if (deletes)
        TRY(mdb_del(transaction, table, &key, NULL), "mdb_del");
      else
        TRY(mdb_put(transaction, table, &key, &value, 0), "mdb_put");
    }
    MDB_txn *ending = transaction;
    transaction = NULL;
    TRY(mdb_txn_commit(ending), "mdb_txn_commit");
  }
  limit_end(outcome);
  outcome->count = count;
  return;
failed:
  if (transaction) mdb_txn_abort(transaction);
}

void limit_lmdb_put(
    limit_lmdb *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  (void)exist;
  write_records(database, records, count, batch, false, outcome);
}

void limit_lmdb_delete(
    limit_lmdb *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  write_records(database, records, count, batch, true, outcome);
}

static void get_records(
    limit_lmdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  MDB_dbi table = database->tables[0];
  MDB_txn *transaction = NULL;
  limit_begin(outcome);
  TRY(mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &transaction), "mdb_txn_begin");
  for (size_t i = 0; i < count; i++) {
    if (snapshot_each && i > 0) TRY(mdb_txn_renew(transaction), "mdb_txn_renew");
    MDB_val key = val(records[i].key);
    MDB_val value;
    int code = mdb_get(transaction, table, &key, &value);
    if (code == 0) {
      if (buffer) memcpy(buffer, value.mv_data, value.mv_size < buffer_bytes ? value.mv_size : buffer_bytes);
      limit_see(outcome, value.mv_data, value.mv_size);
    } else if (code != MDB_NOTFOUND) {
      fail(outcome, code, "mdb_get");
      goto failed;
    }
    if (snapshot_each) mdb_txn_reset(transaction);
  }
  mdb_txn_abort(transaction);
  limit_end(outcome);
  return;
failed:
  if (transaction) mdb_txn_abort(transaction);
}

void limit_lmdb_get(
    limit_lmdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  get_records(database, records, count, snapshot_each, buffer, buffer_bytes, outcome);
}

void limit_lmdb_scan(limit_lmdb *database, int order, limit_outcome *outcome) {
  MDB_txn *transaction = NULL;
  MDB_cursor *cursor = NULL;
  MDB_cursor_op first = order == LIMIT_DESCENDING ? MDB_LAST : MDB_FIRST;
  MDB_cursor_op next = order == LIMIT_DESCENDING ? MDB_PREV : MDB_NEXT;
  limit_begin(outcome);
  TRY(mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &transaction), "mdb_txn_begin");
  TRY(mdb_cursor_open(transaction, database->tables[0], &cursor), "mdb_cursor_open");
  MDB_val key, value;
  int code = mdb_cursor_get(cursor, &key, &value, first);
  while (code == 0) {
    limit_see(outcome, value.mv_data, value.mv_size);
    code = mdb_cursor_get(cursor, &key, &value, next);
  }
  if (code != MDB_NOTFOUND) TRY(code, "mdb_cursor_get");
  mdb_cursor_close(cursor);
  mdb_txn_abort(transaction);
  limit_end(outcome);
  return;
failed:
  if (cursor) mdb_cursor_close(cursor);
  if (transaction) mdb_txn_abort(transaction);
}

void limit_lmdb_ranges(
    limit_lmdb *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome) {
  MDB_txn *transaction = NULL;
  MDB_cursor *cursor = NULL;
  limit_begin(outcome);
  TRY(mdb_txn_begin(database->environment, NULL, MDB_RDONLY, &transaction), "mdb_txn_begin");
  TRY(mdb_cursor_open(transaction, database->tables[0], &cursor), "mdb_cursor_open");
  for (size_t i = 0; i < count; i++) {
    MDB_val key = val(records[i].key);
    MDB_val value;
    int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (size_t seen = 0; code == 0; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
      limit_see(outcome, value.mv_data, value.mv_size);
      if (++seen == length) break;
    }
    if (code && code != MDB_NOTFOUND) TRY(code, "mdb_cursor_get");
  }
  mdb_cursor_close(cursor);
  mdb_txn_abort(transaction);
  limit_end(outcome);
  return;
failed:
  if (cursor) mdb_cursor_close(cursor);
  if (transaction) mdb_txn_abort(transaction);
}

typedef struct commits {
  limit_lmdb *database;
  const limit_record *records;
  size_t count;
  unsigned threads;
} commits;

static void commit_share(void *context, unsigned thread, limit_outcome *outcome) {
  commits *work = context;
  MDB_txn *transaction = NULL;
  for (size_t i = thread; i < work->count; i += work->threads) {
    MDB_val key = val(work->records[i].key);
    MDB_val value = val(work->records[i].value);
    // Waits for the other threads.
    TRY(mdb_txn_begin(work->database->environment, NULL, 0, &transaction), "mdb_txn_begin");
    TRY(mdb_put(transaction, work->database->tables[0], &key, &value, 0), "mdb_put");
    MDB_txn *ending = transaction;
    transaction = NULL;
    TRY(mdb_txn_commit(ending), "mdb_txn_commit");
    outcome->count++;
  }
  return;
failed:
  if (transaction) mdb_txn_abort(transaction);
}

void limit_lmdb_commits(
    limit_lmdb *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  commits work = {database, records, count, threads};
  limit_run_threads(threads, commit_share, &work, outcome);
}

typedef struct mixed {
  limit_lmdb *database;
  const limit_record *records;
  size_t count;
  const limit_record *writes;
  size_t write_count;
  size_t batch;
  atomic_bool done;
  double seconds;
} mixed;

static void read_or_write(void *context, unsigned thread, limit_outcome *outcome) {
  mixed *work = context;
  if (thread == 0) {
    get_records(work->database, work->records, work->count, true, NULL, 0, outcome);
    work->seconds = outcome->seconds;
    atomic_store(&work->done, true);
    return;
  }
  size_t next = 0;
  limit_outcome written;
  written.code = 0;
  while (!atomic_load(&work->done) && !written.code) {
    if (next + work->batch > work->write_count) next = 0;
    limit_lmdb_put(work->database, work->writes + next, work->batch, 0, true, &written);
    next += work->batch;
  }
  if (written.code) *outcome = written;
}

void limit_lmdb_read_while_writing(
    limit_lmdb *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  mixed work = {database, records, count, writes, write_count, batch, false, 0};
  limit_run_threads(2, read_or_write, &work, outcome);
  outcome->seconds = work.seconds;
}

void limit_lmdb_replay(
    limit_lmdb *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  MDB_txn *transaction = NULL;
  limit_text_work *text_work = limit_text_work_create();
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(mdb_txn_begin(database->environment, NULL, 0, &transaction), "mdb_txn_begin");
    for (; next < end; next++) {
      const limit_step *step = &steps[next];
      if (step->text.count && !limit_text_work_run(text_work, step, outcome))
        TRY(EINVAL, "parsing a document");
      for (size_t i = step->first; i < step->end; i++) {
        const limit_operation *operation = &operations[i];
        MDB_dbi table = database->tables[operation->table];
        MDB_val key = val(operation->record.key);
        MDB_val value = val(operation->record.value);
        int code;
        switch (operation->kind) {
          case LIMIT_GET:
            code = mdb_get(transaction, table, &key, &value);
            if (code == 0) limit_see(outcome, value.mv_data, value.mv_size);
            if (code != MDB_NOTFOUND) TRY(code, "mdb_get");
            break;
          case LIMIT_DELETE:
            code = mdb_del(transaction, table, &key, NULL);
            if (code != MDB_NOTFOUND) TRY(code, "mdb_del");
            break;
          default: TRY(mdb_put(transaction, table, &key, &value, 0), "mdb_put");
        }
      }
    }
    MDB_txn *ending = transaction;
    transaction = NULL;
    TRY(mdb_txn_commit(ending), "mdb_txn_commit");
  }
  limit_end(outcome);
  limit_text_work_destroy(text_work);
  return;
failed:
  if (transaction) mdb_txn_abort(transaction);
  limit_text_work_destroy(text_work);
}

void limit_lmdb_compact(limit_lmdb *database, const char *path, const char *copy, limit_outcome *outcome) {
  MDB_txn *transaction = NULL;
  int file = -1;
  limit_begin(outcome);
  TRY(mdb_txn_begin(database->environment, NULL, 0, &transaction), "mdb_txn_begin");
  TRY(mdb_drop(transaction, database->tables[0], 0), "mdb_drop");
  MDB_txn *ending = transaction;
  transaction = NULL;
  TRY(mdb_txn_commit(ending), "mdb_txn_commit");
  TRY(mdb_env_copy2(database->environment, copy, MDB_CP_COMPACT), "mdb_env_copy2");
  file = open(copy, O_RDONLY | O_CLOEXEC);
  TRY(file < 0 || fsync(file) ? errno : 0, copy);
  mdb_env_close(database->environment);
  database->environment = NULL;
  TRY(rename(copy, path) ? errno : 0, path);
  limit_end(outcome);
failed:
  if (file >= 0) close(file);
  if (transaction) mdb_txn_abort(transaction);
}

void limit_lmdb_reopen(
    const char *path, const limit_lmdb_options *options, const limit_table *table, const limit_record *record,
    size_t times, limit_outcome *outcome) {
  limit_begin(outcome);
  double begin = outcome->seconds;
  uint64_t sum = 0, count = 0;
  for (size_t i = 0; i < times; i++) {
    limit_lmdb *database = limit_lmdb_open(path, options, table, 1, outcome);
    if (!database) return;
    get_records(database, record, 1, false, NULL, 0, outcome);
    sum += outcome->sum;
    count += outcome->count;
    limit_lmdb_close(database);
    if (outcome->code) return;
  }
  outcome->seconds = limit_now() - begin;
  outcome->sum = sum;
  outcome->count = count;
}
