// The loops over libpq. A build without the library has none of them: nothing calls what is left then.
#include "internal.h"

#include <stdio.h>
#include <string.h>

#ifdef POSTGRES

#include <libpq-fe.h>
#include <stdatomic.h>
#include <stdlib.h>

// The loops work on the table of the engine: entries (keyspace integer, key bytea, value bytea).
struct limit_postgres {
  char *location;
  char *settings;
  PGconn *connection;
  uint8_t keyspace[4];
};

enum { PAGE_ENTRIES = 1000, PIPELINED = 1000 };

static int fail(limit_outcome *outcome, PGconn *connection, const char *tried) {
  outcome->code = 1;
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", tried, PQerrorMessage(connection));
  return 0;
}

// Whether a result is of this status. Frees it.
static int check(
    limit_outcome *outcome, PGconn *connection, PGresult *result, ExecStatusType status, const char *tried) {
  int found = result && PQresultStatus(result) == status;
  if (!found) fail(outcome, connection, tried);
  PQclear(result);
  return found;
}

static int run(limit_outcome *outcome, PGconn *connection, const char *text) {
  return check(outcome, connection, PQexec(connection, text), PGRES_COMMAND_OK, text);
}

static int prepare(limit_outcome *outcome, PGconn *connection, const char *name, const char *text) {
  return check(outcome, connection, PQprepare(connection, name, text, 0, NULL), PGRES_COMMAND_OK, text);
}

static PGconn *connect_to(const char *location, const char *settings, limit_outcome *outcome) {
  PGconn *connection = PQconnectdb(location);
  if (PQstatus(connection) != CONNECTION_OK) {
    fail(outcome, connection, "PQconnectdb");
  } else if (
      (!*settings || run(outcome, connection, settings)) &&
      prepare(outcome, connection, "get", "SELECT value FROM entries WHERE keyspace = $1 AND key = $2") &&
      prepare(
          outcome, connection, "put",
          "INSERT INTO entries (keyspace, key, value) VALUES ($1, $2, $3) "
          "ON CONFLICT (keyspace, key) DO UPDATE SET value = excluded.value") &&
      prepare(outcome, connection, "insert", "INSERT INTO entries (keyspace, key, value) VALUES ($1, $2, $3)") &&
      prepare(outcome, connection, "delete", "DELETE FROM entries WHERE keyspace = $1 AND key = $2") &&
      prepare(
          outcome, connection, "range",
          "SELECT key, value FROM entries WHERE keyspace = $1 AND key >= $2 ORDER BY keyspace, key LIMIT $3")) {
    return connection;
  }
  PQfinish(connection);
  return NULL;
}

limit_postgres *limit_postgres_open(
    const char *location, const char *settings, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  limit_begin(outcome);
  limit_postgres *database = calloc(1, sizeof *database);
  if (!database) {
    outcome->code = -1;
    return NULL;
  }
  unsigned number = count ? tables[0].number : 1;
  for (int i = 0; i < 4; i++) database->keyspace[i] = (uint8_t)(number >> (8 * (3 - i)));
  database->location = strdup(location);
  database->settings = strdup(settings);
  if (database->location && database->settings) database->connection = connect_to(location, settings, outcome);
  if (database->connection) return database;
  limit_postgres_close(database);
  return NULL;
}

void limit_postgres_close(limit_postgres *database) {
  if (!database) return;
  PQfinish(database->connection);
  free(database->location);
  free(database->settings);
  free(database);
}

// Sends a prepared statement with the keyspace, a key and a third parameter, in binary form.
static int send_prepared(
    PGconn *connection, const char *name, const limit_postgres *database, limit_bytes key, limit_bytes third,
    int parameters) {
  const char *values[] = {(const char *)database->keyspace, key.bytes, third.bytes};
  const int lengths[] = {4, (int)key.count, (int)third.count};
  const int formats[] = {1, 1, 1};
  return PQsendQueryPrepared(connection, name, parameters, values, lengths, formats, 1);
}

static PGresult *execute(
    PGconn *connection, const char *name, const limit_postgres *database, limit_bytes key, limit_bytes third,
    int parameters) {
  const char *values[] = {(const char *)database->keyspace, key.bytes, third.bytes};
  const int lengths[] = {4, (int)key.count, (int)third.count};
  const int formats[] = {1, 1, 1};
  return PQexecPrepared(connection, name, parameters, values, lengths, formats, 1);
}

// Puts records by COPY, in binary form: a tuple has the number of its columns, and each column its length.
static int copy_records(
    limit_postgres *database, PGconn *connection, const limit_record *records, size_t count,
    limit_outcome *outcome) {
  static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0";
  enum { FIXED = 2 + 4 + 4 + 4 + 4, BUFFER = 1 << 16 };
  static const char *tried = "COPY";
  size_t used = 0, room = BUFFER;
  char *buffer = malloc(room);
  PGresult *result = PQexec(connection, "COPY entries (keyspace, key, value) FROM STDIN (FORMAT binary)");
  if (!buffer || !check(outcome, connection, result, PGRES_COPY_IN, tried)) goto failed;
  if (PQputCopyData(connection, header, sizeof header - 1) != 1) goto failed_copy;
  for (size_t i = 0; i < count; i++) {
    limit_bytes parts[] = {{database->keyspace, 4}, records[i].key, records[i].value};
    size_t needed = FIXED + parts[1].count + parts[2].count;
    if (used && used + needed > BUFFER) {
      if (PQputCopyData(connection, buffer, (int)used) != 1) goto failed_copy;
      used = 0;
    }
    if (needed > room) {
      char *larger = realloc(buffer, needed);
      if (!larger) goto failed_copy;
      buffer = larger;
      room = needed;
    }
    buffer[used++] = 0;
    buffer[used++] = 3;
    for (int part = 0; part < 3; part++) {
      for (int shift = 24; shift >= 0; shift -= 8) buffer[used++] = (char)(parts[part].count >> shift);
      memcpy(buffer + used, parts[part].bytes, parts[part].count);
      used += parts[part].count;
    }
  }
  if (PQputCopyData(connection, buffer, (int)used) != 1) goto failed_copy;
  if (PQputCopyData(connection, "\377\377", 2) != 1 || PQputCopyEnd(connection, NULL) != 1) goto failed_copy;
  free(buffer);
  if (!check(outcome, connection, PQgetResult(connection), PGRES_COMMAND_OK, tried)) return 0;
  while ((result = PQgetResult(connection))) PQclear(result);
  return 1;
failed_copy:
  fail(outcome, connection, tried);
failed:
  free(buffer);
  return 0;
}

// Sends a statement for each record in pipelines.
static int pipeline_records(
    limit_postgres *database, PGconn *connection, const char *name, int parameters, const limit_record *records,
    size_t count, limit_outcome *outcome) {
  int good = PQenterPipelineMode(connection);
  for (size_t next = 0; good && next < count;) {
    size_t end = count - next < PIPELINED ? count : next + PIPELINED;
    size_t sent = end - next;
    for (; good && next < end; next++)
      good = send_prepared(connection, name, database, records[next].key, records[next].value, parameters);
    good = good && PQpipelineSync(connection);
    for (size_t i = 0; good && i < sent; i++) {
      good = check(outcome, connection, PQgetResult(connection), PGRES_COMMAND_OK, name);
      // The end of the statement's results.
      if (good) PQclear(PQgetResult(connection));
    }
    good = good && check(outcome, connection, PQgetResult(connection), PGRES_PIPELINE_SYNC, "PQpipelineSync");
  }
  if (!good && !outcome->code) fail(outcome, connection, name);
  return PQexitPipelineMode(connection) && good;
}

// A transaction of `count` records.
static int put_batch(
    limit_postgres *database, PGconn *connection, const limit_record *records, size_t count, bool exist,
    limit_outcome *outcome) {
  if (!run(outcome, connection, "BEGIN")) return 0;
  if (!(exist ? pipeline_records(database, connection, "put", 3, records, count, outcome)
              : copy_records(database, connection, records, count, outcome)))
    return 0;
  return run(outcome, connection, "COMMIT");
}

void limit_postgres_put(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count; next += batch) {
    size_t size = count - next < batch ? count - next : batch;
    if (!put_batch(database, database->connection, records + next, size, exist, outcome)) return;
  }
  limit_end(outcome);
  outcome->count = count;
}

void limit_postgres_delete(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  PGconn *connection = database->connection;
  if (batch == 0) batch = count;
  limit_begin(outcome);
  for (size_t next = 0; next < count; next += batch) {
    size_t size = count - next < batch ? count - next : batch;
    if (!run(outcome, connection, "BEGIN")) return;
    if (!pipeline_records(database, connection, "delete", 2, records + next, size, outcome)) return;
    if (!run(outcome, connection, "COMMIT")) return;
  }
  limit_end(outcome);
  outcome->count = count;
}

static const char *const begin_snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

// A statement alone is a snapshot of its own.
void limit_postgres_get(
    limit_postgres *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  PGconn *connection = database->connection;
  limit_begin(outcome);
  if (!snapshot_each && !run(outcome, connection, begin_snapshot)) return;
  for (size_t i = 0; i < count; i++) {
    PGresult *result = execute(connection, "get", database, records[i].key, (limit_bytes){NULL, 0}, 2);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
      fail(outcome, connection, "SELECT");
      PQclear(result);
      return;
    }
    if (PQntuples(result)) {
      size_t bytes = (size_t)PQgetlength(result, 0, 0);
      const char *value = PQgetvalue(result, 0, 0);
      if (buffer) memcpy(buffer, value, bytes < buffer_bytes ? bytes : buffer_bytes);
      limit_see(outcome, value, bytes);
    }
    PQclear(result);
  }
  if (!snapshot_each && !run(outcome, connection, "COMMIT")) return;
  limit_end(outcome);
}

void limit_postgres_scan(limit_postgres *database, int order, limit_outcome *outcome) {
  PGconn *connection = database->connection;
  const char *direction = order == LIMIT_DESCENDING ? "DESC" : "ASC";
  const uint8_t *number = database->keyspace;
  unsigned keyspace = (unsigned)number[0] << 24 | (unsigned)number[1] << 16 | (unsigned)number[2] << 8 | number[3];
  char declare[256], fetch[64];
  snprintf(
      declare, sizeof declare,
      "DECLARE entry BINARY CURSOR FOR SELECT key, value FROM entries WHERE keyspace = %u ORDER BY keyspace %s, key %s",
      keyspace, direction, direction);
  snprintf(fetch, sizeof fetch, "FETCH %d FROM entry", PAGE_ENTRIES);
  limit_begin(outcome);
  if (!run(outcome, connection, begin_snapshot) || !run(outcome, connection, declare)) return;
  for (;;) {
    PGresult *result = PQexec(connection, fetch);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
      fail(outcome, connection, fetch);
      PQclear(result);
      return;
    }
    int rows = PQntuples(result);
    for (int i = 0; i < rows; i++)
      limit_see(outcome, PQgetvalue(result, i, 1), (size_t)PQgetlength(result, i, 1));
    PQclear(result);
    if (rows < PAGE_ENTRIES) break;
  }
  if (!run(outcome, connection, "COMMIT")) return;
  limit_end(outcome);
}

void limit_postgres_ranges(
    limit_postgres *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome) {
  PGconn *connection = database->connection;
  uint8_t rows[8];
  for (int i = 0; i < 8; i++) rows[i] = (uint8_t)((uint64_t)length >> (8 * (7 - i)));
  limit_begin(outcome);
  if (!run(outcome, connection, begin_snapshot)) return;
  for (size_t i = 0; i < count; i++) {
    PGresult *result = execute(connection, "range", database, records[i].key, (limit_bytes){rows, 8}, 3);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
      fail(outcome, connection, "SELECT");
      PQclear(result);
      return;
    }
    for (int row = 0; row < PQntuples(result); row++)
      limit_see(outcome, PQgetvalue(result, row, 1), (size_t)PQgetlength(result, row, 1));
    PQclear(result);
  }
  if (!run(outcome, connection, "COMMIT")) return;
  limit_end(outcome);
}

typedef struct commits {
  limit_postgres *database;
  PGconn **connections;
  const limit_record *records;
  size_t count;
  unsigned threads;
} commits;

static void commit_share(void *context, unsigned thread, limit_outcome *outcome) {
  commits *work = context;
  PGconn *connection = work->connections[thread];
  for (size_t i = thread; i < work->count; i += work->threads) {
    PGresult *result =
        execute(connection, "insert", work->database, work->records[i].key, work->records[i].value, 3);
    if (!check(outcome, connection, result, PGRES_COMMAND_OK, "INSERT")) return;
    outcome->count++;
  }
}

// Each thread has a connection, and each INSERT is a transaction.
void limit_postgres_commits(
    limit_postgres *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  commits work = {database, calloc(threads, sizeof(PGconn *)), records, count, threads};
  limit_begin(outcome);
  unsigned made = 0;
  while (work.connections && made < threads &&
         (work.connections[made] = connect_to(database->location, database->settings, outcome)))
    made++;
  if (made == threads) limit_run_threads(threads, commit_share, &work, outcome);
  for (unsigned i = 0; i < made; i++) PQfinish(work.connections[i]);
  free(work.connections);
}

typedef struct mixed {
  limit_postgres *database;
  PGconn *writer;
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
    limit_postgres_get(work->database, work->records, work->count, true, NULL, 0, outcome);
    work->seconds = outcome->seconds;
    atomic_store(&work->done, true);
    return;
  }
  size_t next = 0;
  limit_outcome written;
  limit_begin(&written);
  while (!atomic_load(&work->done) && !written.code) {
    if (next + work->batch > work->write_count) next = 0;
    put_batch(work->database, work->writer, work->writes + next, work->batch, true, &written);
    next += work->batch;
  }
  if (written.code) *outcome = written;
}

void limit_postgres_read_while_writing(
    limit_postgres *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  limit_begin(outcome);
  PGconn *writer = connect_to(database->location, database->settings, outcome);
  if (!writer) return;
  mixed work = {database, writer, records, count, writes, write_count, batch, false, 0};
  limit_run_threads(2, read_or_write, &work, outcome);
  outcome->seconds = work.seconds;
  PQfinish(writer);
}

void limit_postgres_reopen(
    const char *location, const char *settings, const limit_table *table, const limit_record *record, size_t times,
    limit_outcome *outcome) {
  double begin = limit_now();
  uint64_t sum = 0, count = 0;
  for (size_t i = 0; i < times; i++) {
    limit_postgres *database = limit_postgres_open(location, settings, table, 1, outcome);
    if (!database) return;
    limit_postgres_get(database, record, 1, true, NULL, 0, outcome);
    sum += outcome->sum;
    count += outcome->count;
    limit_postgres_close(database);
    if (outcome->code) return;
  }
  outcome->seconds = limit_now() - begin;
  outcome->sum = sum;
  outcome->count = count;
}

void limit_postgres_execute(const char *location, const char *settings, const char *text, limit_outcome *outcome) {
  limit_begin(outcome);
  PGconn *connection = PQconnectdb(location);
  if (PQstatus(connection) != CONNECTION_OK) {
    fail(outcome, connection, "PQconnectdb");
  } else if (run(outcome, connection, settings)) {
    PGresult *result = PQexec(connection, text);
    if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result))
      outcome->count = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    else if (PQresultStatus(result) != PGRES_COMMAND_OK)
      fail(outcome, connection, text);
    PQclear(result);
  }
  PQfinish(connection);
  limit_end(outcome);
}

#else

static void refuse(limit_outcome *outcome) {
  outcome->code = 1;
  snprintf(outcome->message, sizeof outcome->message, "this program was built without libpq");
}

limit_postgres *limit_postgres_open(
    const char *location, const char *settings, const limit_table *tables, size_t count,
    limit_outcome *outcome) {
  refuse(outcome);
  return NULL;
}
void limit_postgres_close(limit_postgres *database) {}
void limit_postgres_put(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_delete(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_get(
    limit_postgres *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_scan(limit_postgres *database, int order, limit_outcome *outcome) { refuse(outcome); }
void limit_postgres_ranges(
    limit_postgres *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_commits(
    limit_postgres *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_read_while_writing(
    limit_postgres *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_reopen(
    const char *location, const char *settings, const limit_table *table, const limit_record *record, size_t times,
    limit_outcome *outcome) {
  refuse(outcome);
}
void limit_postgres_execute(const char *location, const char *settings, const char *text, limit_outcome *outcome) {
  refuse(outcome);
}

#endif
