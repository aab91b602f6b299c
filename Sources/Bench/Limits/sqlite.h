// What the loops over the SQLite family share. A database here is any struct with the library's functions `f` and its
// connection `handle`.
#ifndef TOUCHSTONE_LIMITS_SQLITE_H
#define TOUCHSTONE_LIMITS_SQLITE_H

#include <stdio.h>

#include "internal.h"

static inline int limit_fail(
    limit_outcome *outcome, const CSQLiteFunctions *f, sqlite3 *handle, int code, const char *tried) {
  outcome->code = code ? code : SQLITE_ERROR;
  const char *words = handle ? csqlite_errmsg(f, handle) : "";
  snprintf(outcome->message, sizeof outcome->message, "%s: %s", tried, words);
  return outcome->code;
}

static inline int limit_prepare(
    const CSQLiteFunctions *f, sqlite3 *handle, const char *sql, sqlite3_stmt **statement,
    limit_outcome *outcome) {
  int code = csqlite_prepare_v2(f, handle, sql, -1, statement, NULL);
  return code ? limit_fail(outcome, f, handle, code, sql) : 0;
}

// Steps a statement that gives no row, and resets it.
static inline int limit_run(const CSQLiteFunctions *f, sqlite3_stmt *statement) {
  int code = csqlite_step(f, statement);
  csqlite_reset(f, statement);
  return code == SQLITE_DONE ? 0 : code ? code : SQLITE_ERROR;
}

static inline void limit_roll_back(const CSQLiteFunctions *f, sqlite3 *handle) {
  if (!csqlite_get_autocommit(f, handle)) csqlite_exec(f, handle, "ROLLBACK", NULL, NULL, NULL);
}

// Goes to `failed` when a call on `database` gives a code.
#define TRY(call, tried)                                                                                     \
  do {                                                                                                       \
    int code_ = (call);                                                                                      \
    if (code_) {                                                                                             \
      limit_fail(outcome, database->f, database->handle, code_, tried);                                      \
      goto failed;                                                                                           \
    }                                                                                                        \
  } while (0)

#endif
