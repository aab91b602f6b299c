// The loops over the SQLite family.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite.h"

enum { MAXIMUM_TABLES = 16 };

typedef struct table {
  char name[72];
  int shape;
  // By LIMIT_GET, LIMIT_INSERT, LIMIT_UPDATE, LIMIT_DELETE. Compiled at first use, outside of loops.
  sqlite3_stmt *statements[4];
} table;

struct limit_sqlite {
  const CSQLiteFunctions *f;
  sqlite3 *handle;
  sqlite3_stmt *begin, *begin_write, *commit;
  table tables[MAXIMUM_TABLES];
  size_t table_count;
};

static int prepare_tables(limit_sqlite *database, limit_outcome *outcome) {
  static const char *const forms[] = {
      "SELECT value FROM %s WHERE key = ?1", "INSERT INTO %s (key, value) VALUES (?1, ?2)",
      "UPDATE %s SET value = ?2 WHERE key = ?1", "DELETE FROM %s WHERE key = ?1"};
  for (size_t i = 0; i < database->table_count; i++) {
    for (int kind = 0; kind < 4; kind++) {
      char sql[160];
      snprintf(sql, sizeof sql, forms[kind], database->tables[i].name);
      int code = limit_prepare(database->f, database->handle, sql, &database->tables[i].statements[kind], outcome);
      if (code) return code;
    }
  }
  return 0;
}

static limit_sqlite *open_database(
    const char *path, const limit_sqlite_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  outcome->code = 0;
  limit_sqlite *database = calloc(1, sizeof *database);
  if (!database || count > MAXIMUM_TABLES) {
    outcome->code = SQLITE_NOMEM;
    free(database);
    return NULL;
  }
  database->f = options->functions;
  database->table_count = count;
  for (size_t i = 0; i < count; i++) {
    snprintf(database->tables[i].name, sizeof database->tables[i].name, "%s", tables[i].name);
    database->tables[i].shape = tables[i].shape;
  }
  int code = csqlite_open_v2(
      database->f, path, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
  if (!code && options->key.count)
    code = csqlite_key(database->f, database->handle, options->key.bytes, (int)options->key.count);
  if (!code) code = csqlite_exec(database->f, database->handle, options->pragmas, NULL, NULL, NULL);
  if (!code) return database;
  limit_fail(outcome, database->f, database->handle, code, path);
  limit_sqlite_close(database);
  return NULL;
}

limit_sqlite *limit_sqlite_open(
    const char *path, const limit_sqlite_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  limit_sqlite *database = open_database(path, options, tables, count, outcome);
  if (!database) return NULL;
  if (limit_prepare(database->f, database->handle, "BEGIN", &database->begin, outcome) ||
      limit_prepare(database->f, database->handle, "BEGIN IMMEDIATE", &database->begin_write, outcome) ||
      limit_prepare(database->f, database->handle, "COMMIT", &database->commit, outcome) || prepare_tables(database, outcome)) {
    limit_sqlite_close(database);
    return NULL;
  }
  return database;
}

void limit_sqlite_close(limit_sqlite *database) {
  if (!database) return;
  csqlite_finalize(database->f, database->begin);
  csqlite_finalize(database->f, database->begin_write);
  csqlite_finalize(database->f, database->commit);
  for (size_t i = 0; i < database->table_count; i++)
    for (int kind = 0; kind < 4; kind++) csqlite_finalize(database->f, database->tables[i].statements[kind]);
  csqlite_close_v2(database->f, database->handle);
  free(database);
}

static inline void bind_key(const CSQLiteFunctions *f, sqlite3_stmt *statement, int shape, limit_bytes key) {
  if (shape != LIMIT_SEQUENCES) {
    csqlite_bind_blob(f, statement, 1, key.bytes, (int)key.count, SQLITE_STATIC);
    return;
  }
  uint64_t number;
  memcpy(&number, key.bytes, sizeof number);
  csqlite_bind_int64(f, statement, 1, (sqlite3_int64)__builtin_bswap64(number));
}

static inline int write_record(
    const CSQLiteFunctions *f, sqlite3_stmt *statement, int shape, const limit_record *record,
    bool has_value) {
  bind_key(f, statement, shape, record->key);
  if (has_value)
    csqlite_bind_blob(
        f, statement, 2, record->value.count ? record->value.bytes : "", (int)record->value.count,
        SQLITE_STATIC);
  return limit_run(f, statement);
}

static void write_records(
    limit_sqlite *database, const limit_record *records, size_t count, size_t batch, int kind,
    limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *statement = database->tables[0].statements[kind];
  int shape = database->tables[0].shape;
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(limit_run(f, database->begin_write), "BEGIN");
    for (; next < end; next++)
      TRY(write_record(f, statement, shape, &records[next], kind != LIMIT_DELETE), "writing");
    TRY(limit_run(f, database->commit), "COMMIT");
  }
  limit_end(outcome);
  outcome->count = count;
  return;
failed:
  limit_roll_back(database->f, database->handle);
}

void limit_sqlite_put(
    limit_sqlite *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  write_records(database, records, count, batch, exist ? LIMIT_UPDATE : LIMIT_INSERT, outcome);
}

void limit_sqlite_delete(
    limit_sqlite *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  write_records(database, records, count, batch, LIMIT_DELETE, outcome);
}

static inline int get_record(
    const CSQLiteFunctions *f, sqlite3_stmt *statement, int shape, limit_bytes key, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  bind_key(f, statement, shape, key);
  int code = csqlite_step(f, statement);
  if (code == SQLITE_ROW) {
    const void *value = csqlite_column_blob(f, statement, 0);
    size_t length = (size_t)csqlite_column_bytes(f, statement, 0);
    if (buffer) memcpy(buffer, value, length < buffer_bytes ? length : buffer_bytes);
    limit_see(outcome, value, length);
    code = SQLITE_DONE;
  }
  csqlite_reset(f, statement);
  return code == SQLITE_DONE ? 0 : code;
}

void limit_sqlite_get(
    limit_sqlite *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *statement = database->tables[0].statements[LIMIT_GET];
  int shape = database->tables[0].shape;
  limit_begin(outcome);
  // Without BEGIN, a statement is a snapshot of its own.
  if (!snapshot_each) TRY(limit_run(f, database->begin), "BEGIN");
  for (size_t i = 0; i < count; i++)
    TRY(get_record(f, statement, shape, records[i].key, buffer, buffer_bytes, outcome), "SELECT");
  if (!snapshot_each) TRY(limit_run(f, database->commit), "COMMIT");
  limit_end(outcome);
  return;
failed:
  limit_roll_back(database->f, database->handle);
}

void limit_sqlite_scan(limit_sqlite *database, int order, limit_outcome *outcome) {
  static const char *const orders[] = {" ORDER BY key", " ORDER BY key DESC", ""};
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *statement = NULL;
  char sql[160];
  snprintf(sql, sizeof sql, "SELECT key, value FROM %s%s", database->tables[0].name, orders[order]);
  if (limit_prepare(database->f, database->handle, sql, &statement, outcome)) return;
  limit_begin(outcome);
  int code;
  while ((code = csqlite_step(f, statement)) == SQLITE_ROW) {
    const void *key = csqlite_column_blob(f, statement, 0);
    const void *value = csqlite_column_blob(f, statement, 1);
    outcome->sum += key == NULL;
    limit_see(outcome, value, (size_t)csqlite_column_bytes(f, statement, 1));
  }
  if (code != SQLITE_DONE) limit_fail(outcome, database->f, database->handle, code, sql);
  csqlite_reset(f, statement);
  limit_end(outcome);
  csqlite_finalize(f, statement);
}

void limit_sqlite_ranges(
    limit_sqlite *database, const limit_record *records, size_t count, size_t length,
    limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *statement = NULL;
  char sql[160];
  snprintf(
      sql, sizeof sql, "SELECT key, value FROM %s WHERE key >= ?1 ORDER BY key", database->tables[0].name);
  if (limit_prepare(database->f, database->handle, sql, &statement, outcome)) return;
  limit_begin(outcome);
  TRY(limit_run(f, database->begin), "BEGIN");
  for (size_t i = 0; i < count; i++) {
    bind_key(f, statement, database->tables[0].shape, records[i].key);
    size_t seen = 0;
    int code = SQLITE_DONE;
    while (seen < length && (code = csqlite_step(f, statement)) == SQLITE_ROW) {
      const void *key = csqlite_column_blob(f, statement, 0);
      const void *value = csqlite_column_blob(f, statement, 1);
      outcome->sum += key == NULL;
      limit_see(outcome, value, (size_t)csqlite_column_bytes(f, statement, 1));
      seen++;
    }
    csqlite_reset(f, statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) TRY(code, "SELECT");
  }
  TRY(limit_run(f, database->commit), "COMMIT");
  limit_end(outcome);
  csqlite_finalize(f, statement);
  return;
failed:
  csqlite_finalize(f, statement);
  limit_roll_back(database->f, database->handle);
}

typedef struct commits {
  limit_sqlite *database;
  const limit_record *records;
  size_t count;
  unsigned threads;
  pthread_mutex_t mutex;
} commits;

static void commit_share(void *context, unsigned thread, limit_outcome *outcome) {
  commits *work = context;
  limit_sqlite *database = work->database;
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *insert = database->tables[0].statements[LIMIT_INSERT];
  int shape = database->tables[0].shape;
  for (size_t i = thread; i < work->count; i += work->threads) {
    pthread_mutex_lock(&work->mutex);
    TRY(limit_run(f, database->begin_write), "BEGIN");
    TRY(write_record(f, insert, shape, &work->records[i], true), "INSERT");
    TRY(limit_run(f, database->commit), "COMMIT");
    pthread_mutex_unlock(&work->mutex);
    outcome->count++;
  }
  return;
failed:
  limit_roll_back(database->f, database->handle);
  pthread_mutex_unlock(&work->mutex);
}

void limit_sqlite_commits(
    limit_sqlite *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  commits work = {database, records, count, threads, PTHREAD_MUTEX_INITIALIZER};
  limit_run_threads(threads, commit_share, &work, outcome);
}

typedef struct mixed {
  limit_sqlite *database;
  limit_sqlite *writer;
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
    limit_sqlite_get(work->database, work->records, work->count, true, NULL, 0, outcome);
    work->seconds = outcome->seconds;
    atomic_store(&work->done, true);
    return;
  }
  size_t next = 0;
  limit_outcome written;
  written.code = 0;
  while (!atomic_load(&work->done) && !written.code) {
    if (next + work->batch > work->write_count) next = 0;
    limit_sqlite_put(work->writer, work->writes + next, work->batch, 0, true, &written);
    next += work->batch;
  }
  if (written.code) *outcome = written;
}

void limit_sqlite_read_while_writing(
    limit_sqlite *database, limit_sqlite *writer, const limit_record *records, size_t count,
    const limit_record *writes, size_t write_count, size_t batch, limit_outcome *outcome) {
  mixed work = {database, writer, records, count, writes, write_count, batch, false, 0};
  limit_run_threads(2, read_or_write, &work, outcome);
  outcome->seconds = work.seconds;
}

void limit_sqlite_replay(
    limit_sqlite *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  limit_text_work *text_work = limit_text_work_create();
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(limit_run(f, database->begin_write), "BEGIN");
    for (; next < end; next++) {
      const limit_step *step = &steps[next];
      if (step->text.count && !limit_text_work_run(text_work, step, outcome))
        TRY(SQLITE_ERROR, "parsing a document");
      for (size_t i = step->first; i < step->end; i++) {
        const limit_operation *operation = &operations[i];
        table *table = &database->tables[operation->table];
        sqlite3_stmt *statement = table->statements[operation->kind];
        if (operation->kind == LIMIT_GET) {
          TRY(get_record(f, statement, table->shape, operation->record.key, NULL, 0, outcome), "SELECT");
        } else {
          bool has_value = operation->kind != LIMIT_DELETE;
          TRY(write_record(f, statement, table->shape, &operation->record, has_value), "writing");
        }
      }
    }
    TRY(limit_run(f, database->commit), "COMMIT");
  }
  limit_end(outcome);
  limit_text_work_destroy(text_work);
  return;
failed:
  limit_roll_back(database->f, database->handle);
  limit_text_work_destroy(text_work);
}

void limit_sqlite_compact(limit_sqlite *database, limit_outcome *outcome) {
  char sql[160];
  snprintf(
      sql, sizeof sql,
      "DELETE FROM %s; PRAGMA temp_store = FILE; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
      database->tables[0].name);
  limit_begin(outcome);
  int code = csqlite_exec(database->f, database->handle, sql, NULL, NULL, NULL);
  limit_end(outcome);
  if (code) limit_fail(outcome, database->f, database->handle, code, sql);
}

void limit_sqlite_reopen(
    const char *path, const limit_sqlite_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome) {
  limit_begin(outcome);
  double begin = outcome->seconds;
  uint64_t sum = 0, count = 0;
  for (size_t i = 0; i < times; i++) {
    limit_sqlite *database = open_database(path, options, table, 1, outcome);
    if (!database) return;
    char sql[160];
    snprintf(sql, sizeof sql, "SELECT value FROM %s WHERE key = ?1", table->name);
    if (!limit_prepare(database->f, database->handle, sql, &database->tables[0].statements[LIMIT_GET], outcome))
      limit_sqlite_get(database, record, 1, true, NULL, 0, outcome);
    sum += outcome->sum;
    count += outcome->count;
    limit_sqlite_close(database);
    if (outcome->code) return;
  }
  outcome->seconds = limit_now() - begin;
  outcome->sum = sum;
  outcome->count = count;
}
