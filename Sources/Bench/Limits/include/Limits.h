// The loops of the suites in bare C: how fast an engine's library is when nothing stands between it and the
// loop. Each is what a C programmer who knows the library would write; none does anything that the engines'
// contract forbids, and none checks more than result codes.
//
// A loop works on a file that an engine has made, opened with that engine's settings. Every loop measures
// itself: `seconds` in its outcome is from before its first operation to after its last one, transactions
// included. Loops that read add up `sum`, the first byte of every value, and `count`, the entries they saw,
// so that nothing can be left out by the compiler and both sides can be compared.
//
// All memory that is handed in stays the caller's and must live until the call returns. A database handle is
// used by one thread at a time.
#ifndef TOUCHSTONE_LIMITS_H
#define TOUCHSTONE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "CSQLite.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct limit_bytes {
  const void *bytes;
  size_t count;
} limit_bytes;

typedef struct limit_record {
  limit_bytes key;
  limit_bytes value;
} limit_record;

// What came of a call. `code` is 0, or the library's result code with its words in `message`.
typedef struct limit_outcome {
  int code;
  double seconds;
  uint64_t sum;
  uint64_t count;
  char message[256];
} limit_outcome;

// How a keyspace is laid out: KeyspaceShape's raw values.
enum { LIMIT_DOCUMENTS = 1, LIMIT_ENTRIES = 2, LIMIT_SEQUENCES = 3 };

// A keyspace as the file knows it: its table in SQLite, its named database in LMDB, its number in RocksDB and WiredTiger.
typedef struct limit_table {
  const char *name;
  int shape;
  unsigned number;
} limit_table;

enum { LIMIT_ASCENDING = 0, LIMIT_DESCENDING = 1, LIMIT_STORED = 2 };

enum { LIMIT_GET = 0, LIMIT_INSERT = 1, LIMIT_UPDATE = 2, LIMIT_DELETE = 3 };

// One operation of a replay, on the table of that index.
typedef struct limit_operation {
  uint8_t kind;
  uint8_t table;
  limit_record record;
} limit_operation;

// What is done for one document: parse its JSON with simdjson (when there is a `text`) and take the SHA-1 of
// it (when it `digests`, as a local save does and a revision from elsewhere doesn't), then
// operations[first ..< end]. simdjson reads up to 64 bytes past a text: they must be readable.
typedef struct limit_step {
  limit_bytes text;
  bool digests;
  size_t first;
  size_t end;
} limit_step;

typedef struct limit_lmdb_options {
  size_t map_bytes;
  unsigned flags;
  unsigned readers;
  unsigned databases;
} limit_lmdb_options;

typedef struct limit_sqlite_options {
  const CSQLiteFunctions *functions;
  // SQLCipher's raw key, `x'…'`, or no bytes.
  limit_bytes key;
  // Run at once after the key: page size, cache, synchronous, …
  const char *pragmas;
} limit_sqlite_options;

typedef struct limit_rocksdb_options {
  // As rocksdb_get_options_from_string takes them: NAME=VALUE;…
  const char *settings;
  bool sync;
  bool disable_log;
} limit_rocksdb_options;

// Configuration strings: NAME=VALUE,…
typedef struct limit_wiredtiger_options {
  const char *connection;
  const char *session;
  const char *transaction;
  // Of the table in a copy that a compaction makes.
  const char *table;
} limit_wiredtiger_options;

// LMDB.

typedef struct limit_lmdb limit_lmdb;

limit_lmdb *limit_lmdb_open(
    const char *path, const limit_lmdb_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome);
void limit_lmdb_close(limit_lmdb *database);

// Puts all records into the first table, `batch` a transaction (0: all in one).
void limit_lmdb_put(
    limit_lmdb *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome);
void limit_lmdb_delete(
    limit_lmdb *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome);
// Gets the records' keys: all in one snapshot, or a snapshot each. With a `buffer` copies each value into it,
// up to its size.
void limit_lmdb_get(
    limit_lmdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome);
void limit_lmdb_scan(limit_lmdb *database, int order, limit_outcome *outcome);
// From each record's key on, `length` entries.
void limit_lmdb_ranges(
    limit_lmdb *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome);
// A transaction a record, by `threads` that take turns as the library lets them.
void limit_lmdb_commits(
    limit_lmdb *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome);
// Gets, a snapshot each, while another thread puts `writes` over and over, `batch` a transaction. `seconds`
// is of the gets.
void limit_lmdb_read_while_writing(
    limit_lmdb *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome);
// All steps, `batch` a transaction (0: all in one).
void limit_lmdb_replay(
    limit_lmdb *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome);
// Empties the first table, copies what is in use into a new file `copy`, which is synced, closes the database and
// puts the copy in the place of its file `path`.
void limit_lmdb_compact(limit_lmdb *database, const char *path, const char *copy, limit_outcome *outcome);
// Opens, gets one record, closes, `times` over.
void limit_lmdb_reopen(
    const char *path, const limit_lmdb_options *options, const limit_table *table, const limit_record *record,
    size_t times, limit_outcome *outcome);

// SQLite and SQLCipher, through a library's table of functions. The same loops.

typedef struct limit_sqlite limit_sqlite;

limit_sqlite *limit_sqlite_open(
    const char *path, const limit_sqlite_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome);
void limit_sqlite_close(limit_sqlite *database);

// `exist` says whether the keys are there: an UPDATE or an INSERT, as there is no upsert in SQL of 3.15.
void limit_sqlite_put(
    limit_sqlite *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome);
void limit_sqlite_delete(
    limit_sqlite *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome);
void limit_sqlite_get(
    limit_sqlite *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome);
void limit_sqlite_scan(limit_sqlite *database, int order, limit_outcome *outcome);
void limit_sqlite_ranges(
    limit_sqlite *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome);
// The threads share the connection under a mutex, which is held for a transaction.
void limit_sqlite_commits(
    limit_sqlite *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome);
// The writer has a connection of its own.
void limit_sqlite_read_while_writing(
    limit_sqlite *database, limit_sqlite *writer, const limit_record *records, size_t count,
    const limit_record *writes, size_t write_count, size_t batch, limit_outcome *outcome);
void limit_sqlite_replay(
    limit_sqlite *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome);
// Empties the first table and rebuilds the file in place (VACUUM); the log is cut.
void limit_sqlite_compact(limit_sqlite *database, limit_outcome *outcome);
void limit_sqlite_reopen(
    const char *path, const limit_sqlite_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome);

// RocksDB, where the build has it.

typedef struct limit_rocksdb limit_rocksdb;

limit_rocksdb *limit_rocksdb_open(
    const char *path, const limit_rocksdb_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome);
void limit_rocksdb_close(limit_rocksdb *database);
void limit_rocksdb_put(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome);
void limit_rocksdb_delete(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome);
// A get alone sees the last commit: with `snapshot_each` no snapshot is made.
void limit_rocksdb_get(
    limit_rocksdb *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome);
void limit_rocksdb_scan(limit_rocksdb *database, int order, limit_outcome *outcome);
void limit_rocksdb_ranges(
    limit_rocksdb *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome);
// The threads put into one database, which joins their commits.
void limit_rocksdb_commits(
    limit_rocksdb *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome);
void limit_rocksdb_read_while_writing(
    limit_rocksdb *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome);
void limit_rocksdb_replay(
    limit_rocksdb *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome);
// Empties the first table and merges all files.
void limit_rocksdb_compact(limit_rocksdb *database, limit_outcome *outcome);
void limit_rocksdb_reopen(
    const char *path, const limit_rocksdb_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome);

// WiredTiger, where the build has it.

typedef struct limit_wiredtiger limit_wiredtiger;

limit_wiredtiger *limit_wiredtiger_open(
    const char *path, const limit_wiredtiger_options *options, const limit_table *tables, size_t count,
    limit_outcome *outcome);
void limit_wiredtiger_close(limit_wiredtiger *database);
void limit_wiredtiger_put(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome);
void limit_wiredtiger_delete(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t batch,
    limit_outcome *outcome);
// A search alone sees the last commit: with `snapshot_each` no transaction is begun.
void limit_wiredtiger_get(
    limit_wiredtiger *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome);
void limit_wiredtiger_scan(limit_wiredtiger *database, int order, limit_outcome *outcome);
void limit_wiredtiger_ranges(
    limit_wiredtiger *database, const limit_record *records, size_t count, size_t length,
    limit_outcome *outcome);
// Each thread has a session. The library joins their writes to the log.
void limit_wiredtiger_commits(
    limit_wiredtiger *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome);
void limit_wiredtiger_read_while_writing(
    limit_wiredtiger *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome);
void limit_wiredtiger_replay(
    limit_wiredtiger *database, const limit_step *steps, size_t count, const limit_operation *operations,
    size_t batch, limit_outcome *outcome);
// Empties the first table, loads what is left into a new directory `copy`, closes the database and puts the copy in the place of its
// directory `path`.
void limit_wiredtiger_compact(
    limit_wiredtiger *database, const char *path, const char *copy, limit_outcome *outcome);
void limit_wiredtiger_reopen(
    const char *path, const limit_wiredtiger_options *options, const limit_table *table,
    const limit_record *record, size_t times, limit_outcome *outcome);

// PostgreSQL, where the build has libpq. A location is a connection string, `settings` is SQL that each connection runs first.

typedef struct limit_postgres limit_postgres;

limit_postgres *limit_postgres_open(
    const char *location, const char *settings, const limit_table *tables, size_t count,
    limit_outcome *outcome);
void limit_postgres_close(limit_postgres *database);
// New records by COPY, others in pipelines of 1,000 statements.
void limit_postgres_put(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, bool exist,
    limit_outcome *outcome);
void limit_postgres_delete(
    limit_postgres *database, const limit_record *records, size_t count, size_t batch, limit_outcome *outcome);
// A prepared SELECT for each record.
void limit_postgres_get(
    limit_postgres *database, const limit_record *records, size_t count, bool snapshot_each, void *buffer,
    size_t buffer_bytes, limit_outcome *outcome);
// A cursor, 1,000 rows a FETCH. No entry is stored in another order than that of keys.
void limit_postgres_scan(limit_postgres *database, int order, limit_outcome *outcome);
void limit_postgres_ranges(
    limit_postgres *database, const limit_record *records, size_t count, size_t length, limit_outcome *outcome);
// Each thread has a connection. It sends an INSERT alone, which is a transaction.
void limit_postgres_commits(
    limit_postgres *database, const limit_record *records, size_t count, unsigned threads,
    limit_outcome *outcome);
void limit_postgres_read_while_writing(
    limit_postgres *database, const limit_record *records, size_t count, const limit_record *writes,
    size_t write_count, size_t batch, limit_outcome *outcome);
void limit_postgres_reopen(
    const char *location, const char *settings, const limit_table *table, const limit_record *record, size_t times,
    limit_outcome *outcome);
// Not a limit: runs SQL over a connection of its own. `count` is the number that it answers, if it answers.
void limit_postgres_execute(const char *location, const char *settings, const char *text, limit_outcome *outcome);

// Sockets.

// Sends `bytes` in `messages` over a TCP connection of this process with itself, over loopback. The other end answers
// with `reply_bytes` in `replies` while they come. `count` is of the bytes received at both ends.
void limit_exchange(
    size_t bytes, size_t messages, size_t reply_bytes, size_t replies, limit_outcome *outcome);

// Not a limit: documents in SQLite in the layout of LiteCore, Couchbase Lite's C++ core, with its settings. Results call it `peer`.

typedef struct litecore litecore;

typedef struct litecore_options {
  const CSQLiteFunctions *functions;
  // The value of `PRAGMA synchronous`.
  const char *synchronous;
  // What the cache of pages may hold.
  size_t cache_bytes;
} litecore_options;

// A document to be saved: `text` is parsed and digested as that of a `limit_step`, the others are the row's columns.
typedef struct litecore_document {
  limit_bytes text;
  bool digests;
  int64_t flags;
  limit_bytes key;
  limit_bytes version;
  limit_bytes body;
  limit_bytes extra;
} litecore_document;

// Makes the file and its tables when it `creates`; else they have to be there.
litecore *litecore_open(
    const char *path, const litecore_options *options, bool creates, limit_outcome *outcome);
void litecore_close(litecore *database);
// Saves all, `batch` a transaction (0: all in one): reads the row of the key, then makes or replaces it.
void litecore_save(
    litecore *database, const litecore_document *documents, size_t count, size_t batch,
    limit_outcome *outcome);
// Reads the rows of the keys, in a snapshot each.
void litecore_get(litecore *database, const limit_bytes *keys, size_t count, limit_outcome *outcome);
// Reads all rows that aren't deleted, in the table's order.
void litecore_scan(litecore *database, limit_outcome *outcome);
// Opens, gets one row, closes, `times` over.
void litecore_reopen(
    const char *path, const litecore_options *options, limit_bytes key, size_t times,
    limit_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
