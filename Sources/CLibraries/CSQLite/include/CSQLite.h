// A SQLite-family library opened at run time, as a table of its functions.
//
// SQLite and SQLCipher export the same symbols, so a process that links both silently gets one of them.
// Here neither is linked: csqlite_load() opens one with dlopen(RTLD_NOW | RTLD_LOCAL) and fills a table,
// and everything is called through a table. From C:
//
//     char reason[256];
//     const CSQLiteFunctions *f = csqlite_load("libsqlite3.so.0", reason, sizeof reason);
//     sqlite3 *db;
//     csqlite_open_v2(f, path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
//
// Each sqlite3_NAME is reached as csqlite_NAME with the table as its first argument. The functions are
// those of SQLite 3.15, which is what SQLCipher 3.4 is made of; the types and constants are SQLite's own.

#ifndef CSQLITE_H
#define CSQLITE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

// X(result, name, arguments, parameters...): the functions that every library of the family has.
#define CSQLITE_REQUIRED(X)                                                                                  \
  X(int, open_v2, (path, db, flags, vfs), const char *path, sqlite3 **db, int flags, const char *vfs)        \
  X(int, close_v2, (db), sqlite3 *db)                                                                        \
  X(int, extended_result_codes, (db, on), sqlite3 *db, int on)                                               \
  X(int, errcode, (db), sqlite3 *db)                                                                         \
  X(int, extended_errcode, (db), sqlite3 *db)                                                                \
  X(const char *, errmsg, (db), sqlite3 *db)                                                                 \
  X(const char *, errstr, (code), int code)                                                                  \
  X(int, system_errno, (db), sqlite3 *db)                                                                    \
  X(int, get_autocommit, (db), sqlite3 *db)                                                                  \
  X(int, changes, (db), sqlite3 *db)                                                                         \
  X(int, total_changes, (db), sqlite3 *db)                                                                   \
  X(sqlite3_int64, last_insert_rowid, (db), sqlite3 *db)                                                     \
  X(void, interrupt, (db), sqlite3 *db)                                                                      \
  X(int, limit, (db, id, value), sqlite3 *db, int id, int value)                                             \
  X(int, db_release_memory, (db), sqlite3 *db)                                                               \
  X(int, db_status, (db, op, current, highest, reset), sqlite3 *db, int op, int *current, int *highest,      \
    int reset)                                                                                               \
  X(int, exec, (db, sql, callback, context, message), sqlite3 *db, const char *sql,                          \
    int (*callback)(void *, int, char **, char **), void *context, char **message)                           \
  X(void, free, (memory), void *memory)                                                                      \
  X(int, busy_handler, (db, handler, context), sqlite3 *db, int (*handler)(void *, int), void *context)      \
  X(void, progress_handler, (db, instructions, handler, context), sqlite3 *db, int instructions,             \
    int (*handler)(void *), void *context)                                                                   \
  X(void *, wal_hook, (db, hook, context), sqlite3 *db, int (*hook)(void *, sqlite3 *, const char *, int),   \
    void *context)                                                                                           \
  X(int, wal_autocheckpoint, (db, pages), sqlite3 *db, int pages)                                            \
  X(int, wal_checkpoint_v2, (db, schema, mode, log, done), sqlite3 *db, const char *schema, int mode,        \
    int *log, int *done)                                                                                     \
  X(sqlite3_vfs *, vfs_find, (name), const char *name)                                                       \
  X(int, vfs_register, (vfs, isDefault), sqlite3_vfs *vfs, int isDefault)                                    \
  X(int, file_control, (db, schema, op, argument), sqlite3 *db, const char *schema, int op, void *argument)  \
  X(int, prepare_v2, (db, sql, bytes, statement, tail), sqlite3 *db, const char *sql, int bytes,             \
    sqlite3_stmt **statement, const char **tail)                                                             \
  X(int, finalize, (statement), sqlite3_stmt *statement)                                                     \
  X(int, step, (statement), sqlite3_stmt *statement)                                                         \
  X(int, reset, (statement), sqlite3_stmt *statement)                                                        \
  X(int, clear_bindings, (statement), sqlite3_stmt *statement)                                               \
  X(int, stmt_busy, (statement), sqlite3_stmt *statement)                                                    \
  X(const char *, sql, (statement), sqlite3_stmt *statement)                                                 \
  X(int, bind_parameter_index, (statement, name), sqlite3_stmt *statement, const char *name)                 \
  X(int, bind_blob, (statement, index, bytes, count, destructor), sqlite3_stmt *statement, int index,        \
    const void *bytes, int count, void (*destructor)(void *))                                                \
  X(int, bind_text, (statement, index, text, count, destructor), sqlite3_stmt *statement, int index,         \
    const char *text, int count, void (*destructor)(void *))                                                 \
  X(int, bind_int64, (statement, index, value), sqlite3_stmt *statement, int index, sqlite3_int64 value)     \
  X(int, bind_double, (statement, index, value), sqlite3_stmt *statement, int index, double value)           \
  X(int, bind_null, (statement, index), sqlite3_stmt *statement, int index)                                  \
  X(int, bind_zeroblob, (statement, index, count), sqlite3_stmt *statement, int index, int count)            \
  X(int, column_count, (statement), sqlite3_stmt *statement)                                                 \
  X(int, column_type, (statement, index), sqlite3_stmt *statement, int index)                                \
  X(const void *, column_blob, (statement, index), sqlite3_stmt *statement, int index)                       \
  X(const unsigned char *, column_text, (statement, index), sqlite3_stmt *statement, int index)              \
  X(int, column_bytes, (statement, index), sqlite3_stmt *statement, int index)                               \
  X(sqlite3_int64, column_int64, (statement, index), sqlite3_stmt *statement, int index)                     \
  X(double, column_double, (statement, index), sqlite3_stmt *statement, int index)                           \
  X(sqlite3_backup *, backup_init, (target, targetName, source, sourceName), sqlite3 *target,                \
    const char *targetName, sqlite3 *source, const char *sourceName)                                         \
  X(int, backup_step, (backup, pages), sqlite3_backup *backup, int pages)                                    \
  X(int, backup_finish, (backup), sqlite3_backup *backup)                                                    \
  X(int, create_collation_v2, (db, name, encoding, context, compare, destroy), sqlite3 *db,                  \
    const char *name, int encoding, void *context,                                                           \
    int (*compare)(void *, int, const void *, int, const void *), void (*destroy)(void *))                   \
  X(int, create_function_v2, (db, name, count, flags, context, function, step, final, destroy), sqlite3 *db, \
    const char *name, int count, int flags, void *context,                                                   \
    void (*function)(sqlite3_context *, int, sqlite3_value **),                                              \
    void (*step)(sqlite3_context *, int, sqlite3_value **), void (*final)(sqlite3_context *),                \
    void (*destroy)(void *))                                                                                 \
  X(void *, user_data, (context), sqlite3_context *context)                                                  \
  X(int, value_type, (value), sqlite3_value *value)                                                          \
  X(const void *, value_blob, (value), sqlite3_value *value)                                                 \
  X(int, value_bytes, (value), sqlite3_value *value)                                                         \
  X(sqlite3_int64, value_int64, (value), sqlite3_value *value)                                               \
  X(double, value_double, (value), sqlite3_value *value)                                                     \
  X(void, result_null, (context), sqlite3_context *context)                                                  \
  X(void, result_int64, (context, value), sqlite3_context *context, sqlite3_int64 value)                     \
  X(void, result_double, (context, value), sqlite3_context *context, double value)                           \
  X(void, result_error, (context, text, count), sqlite3_context *context, const char *text, int count)       \
  X(void, result_blob, (context, bytes, count, destructor), sqlite3_context *context, const void *bytes,     \
    int count, void (*destructor)(void *))                                                                   \
  X(void, result_text, (context, text, count, destructor), sqlite3_context *context, const char *text,       \
    int count, void (*destructor)(void *))

// The functions that only a library with encryption has. <sqlite3.h> doesn't declare them.
#define CSQLITE_OPTIONAL(X)                                                                                  \
  X(int, key, (db, key, bytes), sqlite3 *db, const void *key, int bytes)                                     \
  X(int, rekey, (db, key, bytes), sqlite3 *db, const void *key, int bytes)

// One library's functions. `key` and `rekey` are NULL in a library without encryption.
typedef struct CSQLiteFunctions {
#define X(result, name, arguments, ...) result (*name)(__VA_ARGS__);
  CSQLITE_REQUIRED(X)
  CSQLITE_OPTIONAL(X)
#undef X
  const char *(*libversion)(void);
  int (*initialize)(void);
  int (*threadsafe)(void);
  int (*config)(int, ...);
  int (*db_config)(sqlite3 *, int, ...);
} CSQLiteFunctions;

// The callers. In a library without encryption csqlite_key and csqlite_rekey must not be called.
#define X(result, name, arguments, ...)                                                                      \
  static inline result csqlite_##name(const CSQLiteFunctions *functions, __VA_ARGS__) {                      \
    return functions->name arguments;                                                                        \
  }
CSQLITE_REQUIRED(X)
CSQLITE_OPTIONAL(X)
#undef X

static inline const char *csqlite_libversion(const CSQLiteFunctions *functions) {
  return functions->libversion();
}

static inline int csqlite_threadsafe(const CSQLiteFunctions *functions) { return functions->threadsafe(); }

static inline int csqlite_has_key(const CSQLiteFunctions *functions) {
  return functions->key != NULL && functions->rekey != NULL;
}

// Variadic calls, which Swift can't make.
static inline int csqlite_config_int(const CSQLiteFunctions *functions, int option, int value) {
  return functions->config(option, value);
}

static inline int csqlite_db_config_int(
    const CSQLiteFunctions *functions, sqlite3 *db, int option, int value, int *now) {
  return functions->db_config(db, option, value, now);
}

// The bytes are bound as they lie: they must stay until the statement is reset or bound anew.
static inline int csqlite_bind_static_blob(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return functions->bind_blob(statement, index, bytes, count, SQLITE_STATIC);
}

static inline int csqlite_bind_static_text(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, int index, const char *text, int count) {
  return functions->bind_text(statement, index, text, count, SQLITE_STATIC);
}

// The library makes a copy of the bytes.
static inline int csqlite_bind_transient_blob(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return functions->bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

static inline int csqlite_bind_transient_text(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, int index, const char *text, int count) {
  return functions->bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}

static inline void csqlite_result_transient_text(
    const CSQLiteFunctions *functions, sqlite3_context *context, const char *text, int count) {
  functions->result_text(context, text, count, SQLITE_TRANSIENT);
}

static inline void csqlite_result_transient_blob(
    const CSQLiteFunctions *functions, sqlite3_context *context, const void *bytes, int count) {
  functions->result_blob(context, bytes, count, SQLITE_TRANSIENT);
}

// Opens the library at `path` (a file name is looked for as dlopen does) and fills a table, which lives as
// long as the process: a library is opened once a path and never closed. NULL, and why in `reason`, when the
// library or one of its functions is missing. Statistics of memory are turned off in it, which saves a global
// lock an allocation, and a connection begins with 8 pages of cache. Any thread may call this.
const CSQLiteFunctions *csqlite_load(const char *path, char *reason, size_t reasonBytes);

// Reads the first bytes of the file of `db` through the library's own descriptor. (Opening and closing the
// file in any other way would drop the locks that this process holds on it.) What lies past the file's end
// reads as zeros. Returns a result code.
int csqlite_read_file(
    const CSQLiteFunctions *functions, sqlite3 *db, void *bytes, int count, sqlite3_int64 offset);

// The first page of the index of the write-ahead log, in the memory that all processes with the file share. The connection
// must be reading. NULL if the file has no such memory. It stays until the connection is closed.
const void *csqlite_log_index(const CSQLiteFunctions *functions, sqlite3 *db);

// The header of that index: 48 bytes, which every commit of any process changes (https://sqlite.org/walformat.html).
typedef struct CSQLiteLogHeader {
  uint64_t words[6];
} CSQLiteLogHeader;

static inline CSQLiteLogHeader csqlite_log_header(const void *index) {
  CSQLiteLogHeader header;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (int word = 0; word < 6; word++)
    header.words[word] = __atomic_load_n((const uint64_t *)index + word, __ATOMIC_RELAXED);
  return header;
}

static inline int csqlite_is_log_header(const void *index, const CSQLiteLogHeader *header) {
  uint64_t difference = 0;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (int word = 0; word < 6; word++)
    difference |= __atomic_load_n((const uint64_t *)index + word, __ATOMIC_RELAXED) ^ header->words[word];
  return difference == 0;
}

// Whether checkpoints have copied the whole log into the file. Readers that begin then use the file alone, and the next
// writer may begin the log again.
static inline int csqlite_is_log_copied(const void *index) {
  enum { framesAt = 16, copiedAt = 96 };
  uint32_t frames = __atomic_load_n((const uint32_t *)((const char *)index + framesAt), __ATOMIC_RELAXED);
  return frames == __atomic_load_n((const uint32_t *)((const char *)index + copiedAt), __ATOMIC_RELAXED);
}

// The name of a VFS of the library that a connection which commits is opened with; NULL if there is none. It differs from
// the default one in the file of the write-ahead log alone: the frames of a commit are written together (LogLayer.c). Any
// thread may call this.
const char *csqlite_log_layer(const CSQLiteFunctions *functions);

// Steps a COMMIT. If `db` was opened with that VFS, the frames that the commit adds to the log are written together. They
// are in the file, or the commit has failed, before any process can see them.
int csqlite_step_commit(const CSQLiteFunctions *functions, sqlite3 *db, sqlite3_stmt *statement);

// What csqlite_visit calls with each row. It returns 0 when it wants no more.
typedef int (*CSQLiteVisitor)(
    void *context, const void *key, int keyBytes, const void *value, int valueBytes);

// What csqlite_follow calls with each row of the first table of a join. It returns the number of the row of the second
// table that may be the one referred to, or 0 for none.
typedef sqlite3_int64 (*CSQLiteReferrer)(
    void *context, const void *key, int keyBytes, const void *value, int valueBytes);

// What csqlite_follow calls with each row of the join: the first table's key and value, and the second one's, which are
// null pointers when there is no such row. It returns 0 when it wants no more.
typedef int (*CSQLiteFollower)(
    void *context, const void *key, int keyBytes, const void *value, int valueBytes, const void *foundKey,
    int foundKeyBytes, const void *found, int foundBytes);

// Makes four SQL functions known to a connection. In the WHERE of a SELECT, csqlite_visit(key), csqlite_visit(key, value)
// and csqlite_follow(key, value, key, value) hand over the bytes of each row. In the ON of a left join,
// csqlite_refer(key, value) gives the number of a row, or NULL. Returns a result code.
int csqlite_register_visit(const CSQLiteFunctions *functions, sqlite3 *db);

// Steps a SELECT that has csqlite_visit in its WHERE, which calls `visitor` with each row from inside of that one step. The
// bytes stay valid until the visitor returns: the library leaves a row only after that. Returns SQLITE_ROW when the
// visitor wanted no more, SQLITE_DONE after the last row.
int csqlite_visit(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, CSQLiteVisitor visitor, void *context);

// The same for a SELECT over a left join that has csqlite_refer in its ON and csqlite_follow in its WHERE.
int csqlite_follow(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, CSQLiteReferrer referrer, CSQLiteFollower follower,
    void *context);

// Words that threads read and write beside each other, each for itself.
static inline uint64_t csqlite_load_relaxed(const uint64_t *word) {
  return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static inline void csqlite_store_relaxed(uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

// Overwrites memory that held a secret, in a way that no optimiser leaves out.
void csqlite_wipe(void *memory, size_t count);

// How many forks lie between this process and the one that first called this function.
uint64_t csqlite_forks(void);

#endif
