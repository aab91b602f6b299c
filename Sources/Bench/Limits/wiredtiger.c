// The loops over WiredTiger. A build without the library has none of them: nothing calls what is left then.
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <string.h>

#ifdef WIREDTIGER

#include <errno.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wiredtiger.h>

// A key of a file is the number of its keyspace, four bytes, big-endian, and then the entry's own.
enum { MAXIMUM_TABLES = 16, PREFIX_BYTES = 4, MAXIMUM_KEY_BYTES = 4096 };

static const char TABLE[] = "table:entries";

struct limit_wiredtiger {
  WT_CONNECTION *connection;
  // Sessions with their cursors, for writes and for reads, of the thread that has the handle. Others open their own.
  WT_SESSION *session;
  WT_CURSOR *cursor;
  WT_SESSION *reader;
  WT_CURSOR *reading;
  // Of sessions that write.
  char *session_settings;
  char *transaction_settings;
  char *table_settings;
  // Of the connection to a copy.
  char *copy_settings;
  char prefixes[MAXIMUM_TABLES][PREFIX_BYTES];
  // The first key behind the first table's.
  char end[PREFIX_BYTES];
};

typedef struct wired_key {
  WT_ITEM item;
  char bytes[PREFIX_BYTES + MAXIMUM_KEY_BYTES];
} wired_key;

static int fail(limit_outcome *outcome, int code, const char *tried) {
  outcome->code = code;
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", tried, wiredtiger_strerror(code));
  return code;
}

#define TRY(call, tried)                                                                                     \
  do {                                                                                                       \
    int tried_code = (call);                                                                                 \
    if (tried_code != 0) {                                                                                   \
      fail(outcome, tried_code, tried);                                                                      \
      goto failed;                                                                                           \
    }                                                                                                        \
  } while (0)

static inline void set_key(WT_CURSOR *cursor, wired_key *key, const char *prefix, limit_bytes bytes) {
  size_t count = bytes.count < MAXIMUM_KEY_BYTES ? bytes.count : MAXIMUM_KEY_BYTES;
  memcpy(key->bytes, prefix, PREFIX_BYTES);
  memcpy(key->bytes + PREFIX_BYTES, bytes.bytes, count);
  key->item.data = key->bytes;
  key->item.size = PREFIX_BYTES + count;
  cursor->set_key(cursor, &key->item);
}

static inline void set_value(WT_CURSOR *cursor, limit_bytes bytes) {
  WT_ITEM item = {.data = bytes.bytes, .size = bytes.count};
  cursor->set_value(cursor, &item);
}

static void write_number(char *bytes, unsigned number) {
  for (int i = 0; i < PREFIX_BYTES; i++) bytes[i] = (char)(number >> (8 * (PREFIX_BYTES - 1 - i)));
}

// The library prints its errors unless a handler takes them. The results of the calls say enough.
static int drop_error(WT_EVENT_HANDLER *handler, WT_SESSION *session, int error, const char *message) {
  (void)handler, (void)session, (void)error, (void)message;
  return 0;
}

static int drop_message(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *message) {
  (void)handler, (void)session, (void)message;
  return 0;
}

static WT_EVENT_HANDLER silence = {.handle_error = drop_error, .handle_message = drop_message};

limit_wiredtiger *limit_wiredtiger_open(
    const char *path, const limit_wiredtiger_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  outcome->code = 0;
  limit_wiredtiger *database = calloc(1, sizeof *database);
  if (!database || count > MAXIMUM_TABLES) {
    outcome->code = ENOMEM;
    snprintf(outcome->message, sizeof outcome->message, "opening: too many tables, or no memory");
    free(database);
    return NULL;
  }
  for (size_t i = 0; i < count; i++) write_number(database->prefixes[i], tables[i].number);
  if (count) write_number(database->end, tables[0].number + 1);
  // The caller's don't live as long.
  database->session_settings = strdup(options->session);
  database->transaction_settings = strdup(options->transaction);
  database->table_settings = strdup(options->table);
  if (asprintf(&database->copy_settings, "create,%s", options->connection) < 0) database->copy_settings = NULL;
  if (!database->session_settings || !database->transaction_settings || !database->table_settings ||
      !database->copy_settings) {
    fail(outcome, ENOMEM, "opening");
    goto failed;
  }
  TRY(wiredtiger_open(path, &silence, options->connection, &database->connection), "wiredtiger_open");
  WT_CONNECTION *connection = database->connection;
  TRY(connection->open_session(connection, NULL, options->session, &database->session), "open_session");
  WT_SESSION *session = database->session;
  TRY(session->open_cursor(session, TABLE, NULL, NULL, &database->cursor), "open_cursor");
  TRY(connection->open_session(connection, NULL, NULL, &database->reader), "open_session");
  session = database->reader;
  TRY(session->open_cursor(session, TABLE, NULL, NULL, &database->reading), "open_cursor");
  return database;
failed:
  limit_wiredtiger_close(database);
  return NULL;
}

void limit_wiredtiger_close(limit_wiredtiger *database) {
  if (!database) return;
  if (database->connection) database->connection->close(database->connection, NULL);
  free(database->session_settings);
  free(database->transaction_settings);
  free(database->table_settings);
  free(database->copy_settings);
  free(database);
}

static void write_records(
    limit_wiredtiger *database, WT_SESSION *session, WT_CURSOR *cursor, const limit_record *records,
    size_t count, size_t batch, bool deletes, limit_outcome *outcome) {
  wired_key key;
  bool is_open = false;
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(session->begin_transaction(session, database->transaction_settings), "begin_transaction");
    is_open = true;
    for (; next < end; next++) {
      set_key(cursor, &key, database->prefixes[0], records[next].key);
      if (deletes) {
        TRY(cursor->remove(cursor), "remove");
      } else {
        // A cursor overwrites by default.
        set_value(cursor, records[next].value);
        TRY(cursor->insert(cursor), "insert");
      }
    }
    is_open = false;
    TRY(session->commit_transaction(session, NULL), "commit_transaction");
  }
  limit_end(outcome);
  outcome->count = count;
  cursor->reset(cursor);
  return;
failed:
  if (is_open) session->rollback_transaction(session, NULL);
}

void limit_wiredtiger_put(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  (void)exist;
  write_records(database, database->session, database->cursor, records, count, batch, false, outcome);
}

void limit_wiredtiger_delete(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch,
    limit_outcome *outcome) {
  write_records(database, database->session, database->cursor, records, count, batch, true, outcome);
}

// A search alone sees the last commit.
static void get_records(
    limit_wiredtiger *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  WT_SESSION *session = database->reader;
  WT_CURSOR *cursor = database->reading;
  wired_key key;
  bool is_open = false;
  limit_begin(outcome);
  if (!snapshot_each) {
    TRY(session->begin_transaction(session, database->transaction_settings), "begin_transaction");
    is_open = true;
  }
  for (size_t i = 0; i < count; i++) {
    WT_ITEM value;
    set_key(cursor, &key, database->prefixes[0], records[i].key);
    int result = cursor->search(cursor);
    if (result == WT_NOTFOUND) continue;
    TRY(result, "search");
    TRY(cursor->get_value(cursor, &value), "get_value");
    if (buffer) memcpy(buffer, value.data, value.size < buffer_bytes ? value.size : buffer_bytes);
    limit_see(outcome, value.data, value.size);
  }
  TRY(cursor->reset(cursor), "reset");
  limit_end(outcome);
failed:
  if (is_open) session->rollback_transaction(session, NULL);
}

void limit_wiredtiger_get(
    limit_wiredtiger *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  get_records(database, records, count, snapshot_each, buffer, buffer_bytes, outcome);
}

// Whether a cursor stands on an entry of the first table.
static int is_inside(limit_wiredtiger *database, WT_CURSOR *cursor, bool *inside) {
  WT_ITEM key;
  int result = cursor->get_key(cursor, &key);
  *inside =
      result == 0 && key.size >= PREFIX_BYTES && memcmp(key.data, database->prefixes[0], PREFIX_BYTES) == 0;
  return result;
}

static int see_value(WT_CURSOR *cursor, limit_outcome *outcome) {
  WT_ITEM value;
  int result = cursor->get_value(cursor, &value);
  if (result == 0) limit_see(outcome, value.data, value.size);
  return result;
}

void limit_wiredtiger_scan(limit_wiredtiger *database, int order, limit_outcome *outcome) {
  WT_SESSION *session = database->reader;
  WT_CURSOR *cursor = database->reading;
  bool descends = order == LIMIT_DESCENDING, is_open = false, inside = false;
  WT_ITEM bound = {.data = descends ? database->end : database->prefixes[0], .size = PREFIX_BYTES};
  int side = 0;
  limit_begin(outcome);
  TRY(session->begin_transaction(session, database->transaction_settings), "begin_transaction");
  is_open = true;
  cursor->set_key(cursor, &bound);
  int result = cursor->search_near(cursor, &side);
  if (result == 0 && descends && side >= 0) result = cursor->prev(cursor);
  if (result == 0 && !descends && side < 0) result = cursor->next(cursor);
  while (result == 0) {
    TRY(is_inside(database, cursor, &inside), "get_key");
    if (!inside) break;
    TRY(see_value(cursor, outcome), "get_value");
    result = descends ? cursor->prev(cursor) : cursor->next(cursor);
  }
  if (result != WT_NOTFOUND) TRY(result, "next");
  TRY(cursor->reset(cursor), "reset");
  limit_end(outcome);
failed:
  if (is_open) session->rollback_transaction(session, NULL);
}

void limit_wiredtiger_ranges(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t length,
    limit_outcome *outcome) {
  WT_SESSION *session = database->reader;
  WT_CURSOR *cursor = database->reading;
  wired_key key;
  bool is_open = false, inside = false;
  limit_begin(outcome);
  TRY(session->begin_transaction(session, database->transaction_settings), "begin_transaction");
  is_open = true;
  for (size_t i = 0; i < count; i++) {
    int side = 0;
    set_key(cursor, &key, database->prefixes[0], records[i].key);
    int result = cursor->search_near(cursor, &side);
    if (result == 0 && side < 0) result = cursor->next(cursor);
    for (size_t seen = 0; result == 0;) {
      TRY(is_inside(database, cursor, &inside), "get_key");
      if (!inside) break;
      TRY(see_value(cursor, outcome), "get_value");
      if (++seen == length) break;
      result = cursor->next(cursor);
    }
    if (result != WT_NOTFOUND) TRY(result, "next");
  }
  TRY(cursor->reset(cursor), "reset");
  limit_end(outcome);
failed:
  if (is_open) session->rollback_transaction(session, NULL);
}

typedef struct commits {
  limit_wiredtiger *database;
  const limit_record *records;
  size_t count;
  unsigned threads;
} commits;

static void commit_share(void *context, unsigned thread, limit_outcome *outcome) {
  commits *work = context;
  WT_CONNECTION *connection = work->database->connection;
  WT_SESSION *session = NULL;
  WT_CURSOR *cursor = NULL;
  wired_key key;
  TRY(connection->open_session(connection, NULL, work->database->session_settings, &session), "open_session");
  TRY(session->open_cursor(session, TABLE, NULL, NULL, &cursor), "open_cursor");
  for (size_t i = thread; i < work->count; i += work->threads) {
    int result;
    // A write alone is a transaction. One that conflicts with another thread's begins again.
    do {
      set_key(cursor, &key, work->database->prefixes[0], work->records[i].key);
      set_value(cursor, work->records[i].value);
      result = cursor->insert(cursor);
    } while (result == WT_ROLLBACK);
    TRY(result, "insert");
    outcome->count++;
  }
failed:
  if (session) session->close(session, NULL);
}

void limit_wiredtiger_commits(
    limit_wiredtiger *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  commits work = {database, records, count, threads};
  limit_run_threads(threads, commit_share, &work, outcome);
}

typedef struct mixed {
  limit_wiredtiger *database;
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
  WT_CONNECTION *connection = work->database->connection;
  WT_SESSION *session = NULL;
  WT_CURSOR *cursor = NULL;
  size_t next = 0;
  limit_outcome written;
  written.code = 0;
  TRY(connection->open_session(connection, NULL, work->database->session_settings, &session), "open_session");
  TRY(session->open_cursor(session, TABLE, NULL, NULL, &cursor), "open_cursor");
  while (!atomic_load(&work->done) && !written.code) {
    if (next + work->batch > work->write_count) next = 0;
    write_records(
        work->database, session, cursor, work->writes + next, work->batch, 0, false, &written);
    next += work->batch;
  }
  if (written.code) *outcome = written;
failed:
  if (session) session->close(session, NULL);
}

void limit_wiredtiger_read_while_writing(
    limit_wiredtiger *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  mixed work = {database, records, count, writes, write_count, batch, false, 0};
  limit_run_threads(2, read_or_write, &work, outcome);
  outcome->seconds = work.seconds;
}

void limit_wiredtiger_replay(
    limit_wiredtiger *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  WT_SESSION *session = database->session;
  WT_CURSOR *cursor = database->cursor;
  wired_key key;
  bool is_open = false;
  limit_text_work *text_work = limit_text_work_create();
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(session->begin_transaction(session, database->transaction_settings), "begin_transaction");
    is_open = true;
    for (; next < end; next++) {
      const limit_step *step = &steps[next];
      if (step->text.count && !limit_text_work_run(text_work, step, outcome)) {
        outcome->code = EINVAL;
        snprintf(outcome->message, sizeof outcome->message, "a document can't be parsed");
        goto failed;
      }
      for (size_t i = step->first; i < step->end; i++) {
        const limit_operation *operation = &operations[i];
        set_key(cursor, &key, database->prefixes[operation->table], operation->record.key);
        if (operation->kind == LIMIT_GET) {
          int result = cursor->search(cursor);
          if (result == WT_NOTFOUND) continue;
          TRY(result, "search");
          TRY(see_value(cursor, outcome), "get_value");
        } else if (operation->kind == LIMIT_DELETE) {
          TRY(cursor->remove(cursor), "remove");
        } else {
          set_value(cursor, operation->record.value);
          TRY(cursor->insert(cursor), "insert");
        }
      }
    }
    is_open = false;
    TRY(session->commit_transaction(session, NULL), "commit_transaction");
  }
  TRY(cursor->reset(cursor), "reset");
  limit_end(outcome);
failed:
  if (is_open) session->rollback_transaction(session, NULL);
  limit_text_work_destroy(text_work);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
  (void)status, (void)type, (void)place;
  return remove(path);
}

// Copies all entries into a new directory, as WiredTiger's own compaction doesn't give back all unused space.
static void copy_entries(limit_wiredtiger *database, const char *copy, limit_outcome *outcome) {
  WT_CURSOR *cursor = database->reading, *target = NULL;
  WT_CONNECTION *connection = NULL;
  WT_SESSION *session = NULL;
  int result;
  if (mkdir(copy, 0755)) {
    fail(outcome, errno, copy);
    return;
  }
  TRY(wiredtiger_open(copy, &silence, database->copy_settings, &connection), "wiredtiger_open");
  TRY(connection->open_session(connection, NULL, NULL, &session), "open_session");
  TRY(session->create(session, TABLE, database->table_settings), "create");
  TRY(session->open_cursor(session, TABLE, NULL, "bulk", &target), "open_cursor");
  TRY(cursor->reset(cursor), "reset");
  while ((result = cursor->next(cursor)) == 0) {
    WT_ITEM key, value;
    TRY(cursor->get_key(cursor, &key), "get_key");
    TRY(cursor->get_value(cursor, &value), "get_value");
    target->set_key(target, &key);
    target->set_value(target, &value);
    TRY(target->insert(target), "insert");
  }
  if (result != WT_NOTFOUND) TRY(result, "next");
  TRY(cursor->reset(cursor), "reset");
  // Closing writes what was loaded, and syncs it.
  WT_CONNECTION *closing = connection;
  connection = NULL;
  TRY(closing->close(closing, NULL), "close");
failed:
  if (connection) connection->close(connection, NULL);
}

void limit_wiredtiger_compact(
    limit_wiredtiger *database, const char *path, const char *copy, limit_outcome *outcome) {
  WT_SESSION *session = database->session;
  WT_CURSOR *stop = NULL;
  WT_ITEM lower = {.data = database->prefixes[0], .size = PREFIX_BYTES};
  WT_ITEM upper = {.data = database->end, .size = PREFIX_BYTES};
  limit_begin(outcome);
  TRY(session->open_cursor(session, TABLE, NULL, NULL, &stop), "open_cursor");
  database->cursor->set_key(database->cursor, &lower);
  stop->set_key(stop, &upper);
  // No entry has the upper key.
  TRY(session->truncate(session, NULL, database->cursor, stop, NULL), "truncate");
  copy_entries(database, copy, outcome);
  if (outcome->code) return;
  WT_CONNECTION *closing = database->connection;
  database->connection = NULL;
  TRY(closing->close(closing, NULL), "close");
  nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  TRY(rename(copy, path) ? errno : 0, path);
  limit_end(outcome);
failed:
  return;
}

void limit_wiredtiger_reopen(
    const char *path, const limit_wiredtiger_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome) {
  limit_begin(outcome);
  double begin = outcome->seconds;
  uint64_t sum = 0, count = 0;
  for (size_t i = 0; i < times; i++) {
    limit_wiredtiger *database = limit_wiredtiger_open(path, options, table, 1, outcome);
    if (!database) return;
    get_records(database, record, 1, true, NULL, 0, outcome);
    sum += outcome->sum;
    count += outcome->count;
    limit_wiredtiger_close(database);
    if (outcome->code) return;
  }
  outcome->seconds = limit_now() - begin;
  outcome->sum = sum;
  outcome->count = count;
}

#else

static void refuse(limit_outcome *outcome) {
  outcome->code = 1;
  snprintf(outcome->message, sizeof outcome->message, "this program was built without WiredTiger");
}

limit_wiredtiger *limit_wiredtiger_open(
    const char *path, const limit_wiredtiger_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  refuse(outcome);
  return NULL;
}
void limit_wiredtiger_close(limit_wiredtiger *database) {}
void limit_wiredtiger_put(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_delete(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_get(
    limit_wiredtiger *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_scan(limit_wiredtiger *database, int order, limit_outcome *outcome) { refuse(outcome); }
void limit_wiredtiger_ranges(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t length,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_commits(
    limit_wiredtiger *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_read_while_writing(
    limit_wiredtiger *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_replay(
    limit_wiredtiger *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_compact(
    limit_wiredtiger *database, const char *path, const char *copy, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_wiredtiger_reopen(
    const char *path, const limit_wiredtiger_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome) {
  refuse(outcome);
}

#endif
