// Documents as Couchbase Lite's C++ core stores them in SQLite (its release 3), in bare C: one row a document, found by a
// text key, and an entry of a unique index on sequences.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite.h"

struct litecore {
  const CSQLiteFunctions *f;
  sqlite3 *handle;
  sqlite3_stmt *begin, *commit, *get, *insert, *update, *last_sequence;
  sqlite3_int64 sequence;
};

// The settings of that core, for a new file and for each opening. (Its `synchronous` is NORMAL; the bench has one level for all.
// `auto_vacuum` writes, and so isn't set when a file is opened again.)
static const char *const new_file_settings = "PRAGMA page_size=4096; PRAGMA auto_vacuum=incremental;";
static const char *const settings =
    "PRAGMA busy_timeout=60000; PRAGMA journal_mode=WAL; PRAGMA journal_size_limit=5242880; PRAGMA case_sensitive_like=true;"
    "PRAGMA synchronous=";

static const char *const schema =
    "BEGIN;"
    "CREATE TABLE kvmeta (name TEXT PRIMARY KEY, lastSeq INTEGER DEFAULT 0, purgeCnt INTEGER DEFAULT 0)"
    " WITHOUT ROWID;"
    "CREATE TABLE kv_default (key TEXT PRIMARY KEY, sequence INTEGER, flags INTEGER DEFAULT 0, version BLOB,"
    " body BLOB, extra BLOB);"
    "CREATE UNIQUE INDEX kv_default_seqs ON kv_default (sequence);"
    "INSERT INTO kvmeta (name) VALUES ('default');"
    "PRAGMA user_version=400;"
    "COMMIT";

static litecore *open_database(
    const char *path, const litecore_options *options, int flags, limit_outcome *outcome) {
  outcome->code = 0;
  litecore *database = calloc(1, sizeof *database);
  if (!database) {
    outcome->code = SQLITE_NOMEM;
    return NULL;
  }
  database->f = options->functions;
  char pragmas[512];
  snprintf(
      pragmas, sizeof pragmas, "PRAGMA cache_size=-%zu; %s%s%s", options->cache_bytes >> 10,
      flags & SQLITE_OPEN_CREATE ? new_file_settings : "", settings, options->synchronous);
  TRY(csqlite_open_v2(
          database->f, path, &database->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | flags, NULL),
      path);
  TRY(csqlite_exec(database->f, database->handle, pragmas, NULL, NULL, NULL), pragmas);
  if (flags & SQLITE_OPEN_CREATE)
    TRY(csqlite_exec(database->f, database->handle, schema, NULL, NULL, NULL), "making the tables");
  if (limit_prepare(
          database->f, database->handle, "SELECT sequence, flags, version, body, extra FROM kv_default WHERE key=?1",
          &database->get, outcome))
    goto failed;
  return database;
failed:
  litecore_close(database);
  return NULL;
}

litecore *litecore_open(
    const char *path, const litecore_options *options, bool creates, limit_outcome *outcome) {
  litecore *database = open_database(path, options, creates ? SQLITE_OPEN_CREATE : 0, outcome);
  if (!database) return NULL;
  sqlite3_stmt *last = NULL;
  if (limit_prepare(database->f, database->handle, "BEGIN IMMEDIATE", &database->begin, outcome) ||
      limit_prepare(database->f, database->handle, "COMMIT", &database->commit, outcome) ||
      limit_prepare(
          database->f, database->handle,
          "INSERT INTO kv_default (version, body, extra, flags, sequence, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
          &database->insert, outcome) ||
      limit_prepare(
          database->f, database->handle, "UPDATE kv_default SET version=?1, body=?2, extra=?3, flags=?4, sequence=?5 WHERE key=?6",
          &database->update, outcome) ||
      limit_prepare(
          database->f, database->handle, "UPDATE kvmeta SET lastSeq=?1 WHERE name='default'", &database->last_sequence, outcome) ||
      limit_prepare(database->f, database->handle, "SELECT lastSeq FROM kvmeta WHERE name='default'", &last, outcome))
    goto failed;
  if (csqlite_step(database->f, last) != SQLITE_ROW) {
    limit_fail(outcome, database->f, database->handle, SQLITE_ERROR, "reading the last sequence");
    goto failed;
  }
  database->sequence = csqlite_column_int64(database->f, last, 0);
  csqlite_finalize(database->f, last);
  return database;
failed:
  csqlite_finalize(database->f, last);
  litecore_close(database);
  return NULL;
}

void litecore_close(litecore *database) {
  if (!database) return;
  sqlite3_stmt *statements[] = {database->begin,  database->commit, database->get,
                                database->insert, database->update, database->last_sequence};
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
    csqlite_finalize(database->f, statements[i]);
  csqlite_close_v2(database->f, database->handle);
  free(database);
}

static inline void see_row(const CSQLiteFunctions *f, sqlite3_stmt *statement, limit_outcome *outcome) {
  outcome->sum += (uint64_t)csqlite_column_int64(f, statement, 0) & 1;
  outcome->sum += (uint64_t)csqlite_column_int64(f, statement, 1) & 1;
  for (int column = 2; column < 5; column++) {
    const uint8_t *bytes = csqlite_column_blob(f, statement, column);
    if (bytes) outcome->sum += *bytes;
  }
  outcome->count++;
}

// Looks at the row of a key. `found` says whether there is one.
static inline int get_row(litecore *database, limit_bytes key, bool *found, limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  csqlite_bind_text(f, database->get, 1, key.bytes, (int)key.count, SQLITE_STATIC);
  int code = csqlite_step(f, database->get);
  *found = code == SQLITE_ROW;
  if (*found) see_row(f, database->get, outcome);
  csqlite_reset(f, database->get);
  return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : code;
}

static inline void bind_bytes(const CSQLiteFunctions *f, sqlite3_stmt *statement, int index, limit_bytes bytes) {
  csqlite_bind_blob(f, statement, index, bytes.count ? bytes.bytes : "", (int)bytes.count, SQLITE_STATIC);
}

void litecore_save(
    litecore *database, const litecore_document *documents, size_t count, size_t batch,
    limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  limit_text_work *text_work = limit_text_work_create();
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count;) {
    size_t end = count - next < batch ? count : next + batch;
    TRY(limit_run(f, database->begin), "BEGIN");
    for (; next < end; next++) {
      const litecore_document *document = &documents[next];
      limit_step step = {document->text, document->digests, 0, 0};
      if (document->text.count && !limit_text_work_run(text_work, &step, outcome))
        TRY(SQLITE_ERROR, "parsing a document");
      bool exists;
      TRY(get_row(database, document->key, &exists, outcome), "SELECT");
      sqlite3_stmt *statement = exists ? database->update : database->insert;
      bind_bytes(f, statement, 1, document->version);
      bind_bytes(f, statement, 2, document->body);
      bind_bytes(f, statement, 3, document->extra);
      csqlite_bind_int64(f, statement, 4, document->flags);
      csqlite_bind_int64(f, statement, 5, ++database->sequence);
      csqlite_bind_text(f, statement, 6, document->key.bytes, (int)document->key.count, SQLITE_STATIC);
      TRY(limit_run(f, statement), "writing");
    }
    csqlite_bind_int64(f, database->last_sequence, 1, database->sequence);
    TRY(limit_run(f, database->last_sequence), "writing the last sequence");
    TRY(limit_run(f, database->commit), "COMMIT");
  }
  limit_end(outcome);
  outcome->count = count;
  limit_text_work_destroy(text_work);
  return;
failed:
  limit_roll_back(f, database->handle);
  limit_text_work_destroy(text_work);
}

void litecore_get(litecore *database, const limit_bytes *keys, size_t count, limit_outcome *outcome) {
  limit_begin(outcome);
  for (size_t i = 0; i < count; i++) {
    bool found;
    TRY(get_row(database, keys[i], &found, outcome), "SELECT");
  }
  limit_end(outcome);
failed:
  return;
}

void litecore_scan(litecore *database, limit_outcome *outcome) {
  const CSQLiteFunctions *f = database->f;
  sqlite3_stmt *statement = NULL;
  if (limit_prepare(
          database->f, database->handle, "SELECT sequence, flags, version, body, extra FROM kv_default WHERE (flags & 1) = 0",
          &statement, outcome))
    return;
  limit_begin(outcome);
  int code;
  while ((code = csqlite_step(f, statement)) == SQLITE_ROW) see_row(f, statement, outcome);
  csqlite_reset(f, statement);
  limit_end(outcome);
  if (code != SQLITE_DONE) limit_fail(outcome, database->f, database->handle, code, "SELECT");
  csqlite_finalize(f, statement);
}

void litecore_reopen(
    const char *path, const litecore_options *options, limit_bytes key, size_t times,
    limit_outcome *outcome) {
  limit_outcome total;
  limit_begin(&total);
  for (size_t i = 0; i < times; i++) {
    litecore *database = open_database(path, options, 0, outcome);
    if (!database) return;
    litecore_get(database, &key, 1, outcome);
    litecore_close(database);
    if (outcome->code) return;
    total.count += outcome->count;
    total.sum += outcome->sum;
  }
  limit_end(&total);
  *outcome = total;
}
