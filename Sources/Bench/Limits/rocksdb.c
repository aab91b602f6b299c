// The loops over RocksDB. A build without the library has none of them: nothing calls what is left then.
#include "internal.h"

#include <stdio.h>
#include <string.h>

#ifdef ROCKSDB

#include <errno.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdlib.h>

// A key of a file is the number of its keyspace, four bytes, big-endian, and then the entry's own.
enum { MAXIMUM_TABLES = 16, PREFIX_BYTES = 4, MAXIMUM_KEY_BYTES = 4096 };

struct limit_rocksdb {
  rocksdb_options_t *options;
  rocksdb_t *database;
  rocksdb_readoptions_t *reading;
  rocksdb_writeoptions_t *writing;
  char prefixes[MAXIMUM_TABLES][PREFIX_BYTES];
  // The first key behind the first table's.
  char end[PREFIX_BYTES];
};

typedef struct rocks_key {
  size_t count;
  char bytes[PREFIX_BYTES + MAXIMUM_KEY_BYTES];
} rocks_key;

static int fail(limit_outcome *outcome, char *error, const char *tried) {
  outcome->code = 1;
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", tried, error);
  rocksdb_free(error);
  return 1;
}

// Calls a function with `&error`.
#define TRY(call, tried)                                                                                     \
  do {                                                                                                       \
    char *error = NULL;                                                                                      \
    call;                                                                                                    \
    if (error) {                                                                                             \
      fail(outcome, error, tried);                                                                           \
      goto failed;                                                                                           \
    }                                                                                                        \
  } while (0)

static inline void make_key(rocks_key *key, const limit_rocksdb *database, size_t table, limit_bytes bytes) {
  size_t count = bytes.count < MAXIMUM_KEY_BYTES ? bytes.count : MAXIMUM_KEY_BYTES;
  memcpy(key->bytes, database->prefixes[table], PREFIX_BYTES);
  memcpy(key->bytes + PREFIX_BYTES, bytes.bytes, count);
  key->count = PREFIX_BYTES + count;
}

static void write_number(char *bytes, unsigned number) {
  for (int i = 0; i < PREFIX_BYTES; i++) bytes[i] = (char)(number >> (8 * (PREFIX_BYTES - 1 - i)));
}

limit_rocksdb *limit_rocksdb_open(
    const char *path, const limit_rocksdb_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  outcome->code = 0;
  limit_rocksdb *database = calloc(1, sizeof *database);
  rocksdb_options_t *base = rocksdb_options_create();
  if (!database || count > MAXIMUM_TABLES) {
    outcome->code = ENOMEM;
    snprintf(outcome->message, sizeof outcome->message, "opening: too many tables, or no memory");
    rocksdb_options_destroy(base);
    free(database);
    return NULL;
  }
  for (size_t i = 0; i < count; i++) write_number(database->prefixes[i], tables[i].number);
  if (count) write_number(database->end, tables[0].number + 1);
  database->options = rocksdb_options_create();
  database->reading = rocksdb_readoptions_create();
  database->writing = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(database->writing, options->sync);
  rocksdb_writeoptions_disable_WAL(database->writing, options->disable_log);
  // As in the engine: no reports of its own.
  rocksdb_options_set_info_log_level(base, 3);
  rocksdb_options_set_keep_log_file_num(base, 1);
  rocksdb_options_set_stats_dump_period_sec(base, 0);
  rocksdb_options_set_stats_persist_period_sec(base, 0);
  TRY(rocksdb_get_options_from_string(base, options->settings, database->options, &error), "settings");
  TRY(database->database = rocksdb_open(database->options, path, &error), "rocksdb_open");
  rocksdb_options_destroy(base);
  return database;
failed:
  rocksdb_options_destroy(base);
  limit_rocksdb_close(database);
  return NULL;
}

void limit_rocksdb_close(limit_rocksdb *database) {
  if (!database) return;
  if (database->database) rocksdb_close(database->database);
  rocksdb_readoptions_destroy(database->reading);
  rocksdb_writeoptions_destroy(database->writing);
  rocksdb_options_destroy(database->options);
  free(database);
}

static void write_records(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, bool deletes,
    limit_outcome *outcome) {
  rocks_key key;
  rocksdb_writebatch_t *changes = NULL;
  if (batch == 0) batch = count;
  limit_begin(outcome);
  changes = rocksdb_writebatch_create();
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    for (; next < end; next++) {
      make_key(&key, database, 0, records[next].key);
      if (deletes)
        rocksdb_writebatch_delete(changes, key.bytes, key.count);
      else
        rocksdb_writebatch_put(
            changes, key.bytes, key.count, records[next].value.bytes, records[next].value.count);
    }
    TRY(rocksdb_write(database->database, database->writing, changes, &error), "rocksdb_write");
    rocksdb_writebatch_clear(changes);
  }
  limit_end(outcome);
  outcome->count = count;
failed:
  rocksdb_writebatch_destroy(changes);
}

void limit_rocksdb_put(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  (void)exist;
  write_records(database, records, count, batch, false, outcome);
}

void limit_rocksdb_delete(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  write_records(database, records, count, batch, true, outcome);
}

// A get alone is a snapshot of its own.
static void get_records(
    limit_rocksdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  rocks_key key;
  const rocksdb_snapshot_t *snapshot = NULL;
  rocksdb_readoptions_t *reading = rocksdb_readoptions_create();
  limit_begin(outcome);
  if (!snapshot_each) {
    snapshot = rocksdb_create_snapshot(database->database);
    rocksdb_readoptions_set_snapshot(reading, snapshot);
  }
  for (size_t i = 0; i < count; i++) {
    rocksdb_pinnableslice_t *slice;
    make_key(&key, database, 0, records[i].key);
    TRY(slice = rocksdb_get_pinned(database->database, reading, key.bytes, key.count, &error), "rocksdb_get_pinned");
    if (!slice) continue;
    size_t bytes = 0;
    const char *value = rocksdb_pinnableslice_value(slice, &bytes);
    if (buffer) memcpy(buffer, value, bytes < buffer_bytes ? bytes : buffer_bytes);
    limit_see(outcome, value, bytes);
    rocksdb_pinnableslice_destroy(slice);
  }
  limit_end(outcome);
failed:
  if (snapshot) rocksdb_release_snapshot(database->database, snapshot);
  rocksdb_readoptions_destroy(reading);
}

void limit_rocksdb_get(
    limit_rocksdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  get_records(database, records, count, snapshot_each, buffer, buffer_bytes, outcome);
}

// An iterator over the first table. It sees the database as it is now.
static rocksdb_iterator_t *iterate(limit_rocksdb *database, rocksdb_readoptions_t *reading) {
  rocksdb_readoptions_set_iterate_lower_bound(reading, database->prefixes[0], PREFIX_BYTES);
  rocksdb_readoptions_set_iterate_upper_bound(reading, database->end, PREFIX_BYTES);
  return rocksdb_create_iterator(database->database, reading);
}

void limit_rocksdb_scan(limit_rocksdb *database, int order, limit_outcome *outcome) {
  rocksdb_readoptions_t *reading = rocksdb_readoptions_create();
  limit_begin(outcome);
  rocksdb_iterator_t *iterator = iterate(database, reading);
  if (order == LIMIT_DESCENDING)
    rocksdb_iter_seek_to_last(iterator);
  else
    rocksdb_iter_seek_to_first(iterator);
  while (rocksdb_iter_valid(iterator)) {
    size_t bytes = 0;
    const char *value = rocksdb_iter_value(iterator, &bytes);
    limit_see(outcome, value, bytes);
    if (order == LIMIT_DESCENDING)
      rocksdb_iter_prev(iterator);
    else
      rocksdb_iter_next(iterator);
  }
  TRY(rocksdb_iter_get_error(iterator, &error), "rocksdb_iter_next");
  limit_end(outcome);
failed:
  rocksdb_iter_destroy(iterator);
  rocksdb_readoptions_destroy(reading);
}

void limit_rocksdb_ranges(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome) {
  rocks_key key;
  rocksdb_readoptions_t *reading = rocksdb_readoptions_create();
  limit_begin(outcome);
  rocksdb_iterator_t *iterator = iterate(database, reading);
  for (size_t i = 0; i < count; i++) {
    make_key(&key, database, 0, records[i].key);
    rocksdb_iter_seek(iterator, key.bytes, key.count);
    for (size_t seen = 0; seen < length && rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
      size_t bytes = 0;
      const char *value = rocksdb_iter_value(iterator, &bytes);
      limit_see(outcome, value, bytes);
      if (++seen == length) break;
    }
    TRY(rocksdb_iter_get_error(iterator, &error), "rocksdb_iter_seek");
  }
  limit_end(outcome);
failed:
  rocksdb_iter_destroy(iterator);
  rocksdb_readoptions_destroy(reading);
}

typedef struct commits {
  limit_rocksdb *database;
  const limit_record *records;
  size_t count;
  unsigned threads;
} commits;

static void commit_share(void *context, unsigned thread, limit_outcome *outcome) {
  commits *work = context;
  rocks_key key;
  for (size_t i = thread; i < work->count; i += work->threads) {
    limit_bytes value = work->records[i].value;
    make_key(&key, work->database, 0, work->records[i].key);
    TRY(rocksdb_put(
            work->database->database, work->database->writing, key.bytes, key.count, value.bytes, value.count,
            &error),
        "rocksdb_put");
    outcome->count++;
  }
failed:
  return;
}

void limit_rocksdb_commits(
    limit_rocksdb *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  commits work = {database, records, count, threads};
  limit_run_threads(threads, commit_share, &work, outcome);
}

typedef struct mixed {
  limit_rocksdb *database;
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
    limit_rocksdb_put(work->database, work->writes + next, work->batch, 0, true, &written);
    next += work->batch;
  }
  if (written.code) *outcome = written;
}

void limit_rocksdb_read_while_writing(
    limit_rocksdb *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  mixed work = {database, records, count, writes, write_count, batch, false, 0};
  limit_run_threads(2, read_or_write, &work, outcome);
  outcome->seconds = work.seconds;
}

// The batch has an index, since a transaction's reads see its own writes.
void limit_rocksdb_replay(
    limit_rocksdb *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  rocks_key key;
  rocksdb_writebatch_wi_t *changes = NULL;
  limit_text_work *text_work = limit_text_work_create();
  if (batch == 0) batch = count;
  limit_begin(outcome);
  changes = rocksdb_writebatch_wi_create(0, 1);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    for (; next < end; next++) {
      const limit_step *step = &steps[next];
      if (step->text.count && !limit_text_work_run(text_work, step, outcome)) {
        outcome->code = EINVAL;
        snprintf(outcome->message, sizeof outcome->message, "a document can't be parsed");
        goto failed;
      }
      for (size_t i = step->first; i < step->end; i++) {
        const limit_operation *operation = &operations[i];
        limit_bytes value = operation->record.value;
        make_key(&key, database, operation->table, operation->record.key);
        if (operation->kind == LIMIT_GET) {
          size_t bytes = 0;
          char *found;
          TRY(found = rocksdb_writebatch_wi_get_from_batch_and_db(
                  changes, database->database, database->reading, key.bytes, key.count, &bytes, &error),
              "rocksdb_writebatch_wi_get_from_batch_and_db");
          if (!found) continue;
          limit_see(outcome, found, bytes);
          rocksdb_free(found);
        } else if (operation->kind == LIMIT_DELETE) {
          rocksdb_writebatch_wi_delete(changes, key.bytes, key.count);
        } else {
          rocksdb_writebatch_wi_put(changes, key.bytes, key.count, value.bytes, value.count);
        }
      }
    }
    TRY(rocksdb_write_writebatch_wi(database->database, database->writing, changes, &error), "rocksdb_write");
    rocksdb_writebatch_wi_clear(changes);
  }
  limit_end(outcome);
failed:
  rocksdb_writebatch_wi_destroy(changes);
  limit_text_work_destroy(text_work);
}

void limit_rocksdb_compact(limit_rocksdb *database, limit_outcome *outcome) {
  rocksdb_writebatch_t *changes = rocksdb_writebatch_create();
  rocksdb_flushoptions_t *flushing = rocksdb_flushoptions_create();
  rocksdb_compactoptions_t *compacting = rocksdb_compactoptions_create();
  // The lowest level too (kForce), where deleted entries may be left.
  rocksdb_compactoptions_set_bottommost_level_compaction(compacting, 2);
  limit_begin(outcome);
  rocksdb_writebatch_delete_range(changes, database->prefixes[0], PREFIX_BYTES, database->end, PREFIX_BYTES);
  TRY(rocksdb_write(database->database, database->writing, changes, &error), "rocksdb_write");
  TRY(rocksdb_flush(database->database, flushing, &error), "rocksdb_flush");
  rocksdb_compact_range_opt(database->database, compacting, NULL, 0, NULL, 0);
  limit_end(outcome);
failed:
  rocksdb_compactoptions_destroy(compacting);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writebatch_destroy(changes);
}

void limit_rocksdb_reopen(
    const char *path, const limit_rocksdb_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome) {
  limit_begin(outcome);
  double begin = outcome->seconds;
  uint64_t sum = 0, count = 0;
  for (size_t i = 0; i < times; i++) {
    limit_rocksdb *database = limit_rocksdb_open(path, options, table, 1, outcome);
    if (!database) return;
    get_records(database, record, 1, true, NULL, 0, outcome);
    sum += outcome->sum;
    count += outcome->count;
    limit_rocksdb_close(database);
    if (outcome->code) return;
  }
  outcome->seconds = limit_now() - begin;
  outcome->sum = sum;
  outcome->count = count;
}

#else

static void refuse(limit_outcome *outcome) {
  outcome->code = 1;
  snprintf(outcome->message, sizeof outcome->message, "this program was built without RocksDB");
}

limit_rocksdb *limit_rocksdb_open(
    const char *path, const limit_rocksdb_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  refuse(outcome);
  return NULL;
}
void limit_rocksdb_close(limit_rocksdb *database) {}
void limit_rocksdb_put(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_delete(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_get(
    limit_rocksdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_scan(limit_rocksdb *database, int order, limit_outcome *outcome) { refuse(outcome); }
void limit_rocksdb_ranges(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_commits(
    limit_rocksdb *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_read_while_writing(
    limit_rocksdb *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_replay(
    limit_rocksdb *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_rocksdb_compact(limit_rocksdb *database, limit_outcome *outcome) { refuse(outcome); }
void limit_rocksdb_reopen(
    const char *path, const limit_rocksdb_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome) {
  refuse(outcome);
}

#endif
