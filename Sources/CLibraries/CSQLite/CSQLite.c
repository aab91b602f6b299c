#define _GNU_SOURCE
#include "CSQLite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const CSQLiteFunctions *load(const char *path, char *reason, size_t reasonBytes) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    snprintf(reason, reasonBytes, "%s", dlerror());
    return NULL;
  }
  CSQLiteFunctions *functions = calloc(1, sizeof *functions);
  if (!functions) {
    snprintf(reason, reasonBytes, "out of memory");
    return NULL;
  }
  const char *missing = NULL;
#define FIND(name)                                                                                           \
  *(void **)&functions->name = dlsym(library, "sqlite3_" #name);                                             \
  if (!functions->name) missing = "sqlite3_" #name;
#define X(result, name, arguments, ...) FIND(name)
  CSQLITE_REQUIRED(X)
#undef X
  FIND(libversion)
  FIND(initialize)
  FIND(threadsafe)
  FIND(config)
  FIND(db_config)
#define X(result, name, arguments, ...)                                                                      \
  *(void **)&functions->name = dlsym(library, "sqlite3_" #name);
  CSQLITE_OPTIONAL(X)
#undef X
  if (missing) {
    snprintf(reason, reasonBytes, "it has no function %s", missing);
    free(functions);
    return NULL;
  }
  // Refused when somebody has used the library before, which is as well.
  functions->config(SQLITE_CONFIG_MEMSTATUS, 0);
  // Pages that a connection allocates at once when it is opened: old libraries take 100, and there may be
  // thousands of connections.
  functions->config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 8);
  int code = functions->initialize();
  if (code != SQLITE_OK || !functions->threadsafe()) {
    snprintf(reason, reasonBytes, "%s", code ? functions->errstr(code) : "it is built for one thread only");
    free(functions);
    return NULL;
  }
  return functions;
}

// The libraries that are open, by path.
typedef struct Loaded {
  char *path;
  const CSQLiteFunctions *functions;
  struct Loaded *next;
} Loaded;

const CSQLiteFunctions *csqlite_load(const char *path, char *reason, size_t reasonBytes) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static Loaded *all = NULL;
  pthread_mutex_lock(&mutex);
  Loaded *found = all;
  while (found && strcmp(found->path, path) != 0) found = found->next;
  const CSQLiteFunctions *functions = found ? found->functions : load(path, reason, reasonBytes);
  if (functions && !found) {
    Loaded *entry = malloc(sizeof *entry);
    char *copy = strdup(path);
    if (entry && copy) {
      *entry = (Loaded){copy, functions, all};
      all = entry;
    } else {
      free(entry);
      free(copy);
    }
  }
  pthread_mutex_unlock(&mutex);
  return functions;
}

const void *csqlite_log_index(const CSQLiteFunctions *functions, sqlite3 *db) {
  sqlite3_file *file = NULL;
  int code = functions->file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK || !file || !file->pMethods) return NULL;
  if (file->pMethods->iVersion < 2 || !file->pMethods->xShmMap) return NULL;
  // The index is made of such regions. This one is there, because the connection is reading.
  enum { firstRegion = 0, regionBytes = 32 << 10, extends = 0 };
  void volatile *index = NULL;
  code = file->pMethods->xShmMap(file, firstRegion, regionBytes, extends, &index);
  return code == SQLITE_OK ? (const void *)index : NULL;
}

int csqlite_read_file(
    const CSQLiteFunctions *functions, sqlite3 *db, void *bytes, int count, sqlite3_int64 offset) {
  sqlite3_file *file = NULL;
  int code = functions->file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code != SQLITE_OK) return code;
  if (!file || !file->pMethods) return SQLITE_CANTOPEN;
  code = file->pMethods->xRead(file, bytes, count, offset);
  return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

// The visit that this thread's innermost step is of: functions of SQL aren't told.
typedef struct Visit {
  const CSQLiteFunctions *functions;
  CSQLiteReferrer referrer;
  CSQLiteVisitor visitor;
  CSQLiteFollower follower;
  void *context;
} Visit;
static __thread const Visit *currentVisit = NULL;

static void visitRow(sqlite3_context *result, int count, sqlite3_value **arguments) {
  const Visit *visit = currentVisit;
  if (!visit || !visit->visitor) return;
  const CSQLiteFunctions *functions = visit->functions;
  const void *key = functions->value_blob(arguments[0]);
  int keyBytes = functions->value_bytes(arguments[0]);
  const void *value = count > 1 ? functions->value_blob(arguments[1]) : NULL;
  int valueBytes = count > 1 ? functions->value_bytes(arguments[1]) : 0;
  // No result is NULL, with which the row isn't wanted.
  if (!visit->visitor(visit->context, key, keyBytes, value, valueBytes)) functions->result_int64(result, 1);
}

static void referRow(sqlite3_context *result, int count, sqlite3_value **arguments) {
  const Visit *visit = currentVisit;
  if (!visit || !visit->referrer || count != 2) return;
  const CSQLiteFunctions *functions = visit->functions;
  const void *key = functions->value_blob(arguments[0]);
  int keyBytes = functions->value_bytes(arguments[0]);
  const void *value = functions->value_blob(arguments[1]);
  int valueBytes = functions->value_bytes(arguments[1]);
  sqlite3_int64 row = visit->referrer(visit->context, key, keyBytes, value, valueBytes);
  if (row > 0) functions->result_int64(result, row);
}

static void followRow(sqlite3_context *result, int count, sqlite3_value **arguments) {
  const Visit *visit = currentVisit;
  if (!visit || !visit->follower || count != 4) return;
  const CSQLiteFunctions *functions = visit->functions;
  // Each pointer before its count, as the library asks for. None of the calls converts a blob.
  const void *key = functions->value_blob(arguments[0]);
  int keyBytes = functions->value_bytes(arguments[0]);
  const void *value = functions->value_blob(arguments[1]);
  int valueBytes = functions->value_bytes(arguments[1]);
  const void *foundKey = functions->value_blob(arguments[2]);
  int foundKeyBytes = functions->value_bytes(arguments[2]);
  const void *found = functions->value_blob(arguments[3]);
  int foundBytes = functions->value_bytes(arguments[3]);
  // No result is NULL, with which the row isn't wanted.
  if (!visit->follower(visit->context, key, keyBytes, value, valueBytes, foundKey, foundKeyBytes, found, foundBytes))
    functions->result_int64(result, 1);
}

int csqlite_register_visit(const CSQLiteFunctions *functions, sqlite3 *db) {
  // Not from views and triggers of a file. Libraries that don't know the flag take no notice of it.
  const int flags = SQLITE_UTF8 | 0x000080000;
  int code = functions->create_function_v2(db, "csqlite_visit", 1, flags, NULL, visitRow, NULL, NULL, NULL);
  if (code != SQLITE_OK) return code;
  code = functions->create_function_v2(db, "csqlite_visit", 2, flags, NULL, visitRow, NULL, NULL, NULL);
  if (code != SQLITE_OK) return code;
  code = functions->create_function_v2(db, "csqlite_follow", 4, flags, NULL, followRow, NULL, NULL, NULL);
  if (code != SQLITE_OK) return code;
  return functions->create_function_v2(db, "csqlite_refer", 2, flags, NULL, referRow, NULL, NULL, NULL);
}

static int step(const Visit *visit, sqlite3_stmt *statement) {
  const Visit *outer = currentVisit;
  currentVisit = visit;
  int code = visit->functions->step(statement);
  currentVisit = outer;
  return code;
}

int csqlite_visit(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, CSQLiteVisitor visitor, void *context) {
  Visit visit = {functions, NULL, visitor, NULL, context};
  return step(&visit, statement);
}

int csqlite_follow(
    const CSQLiteFunctions *functions, sqlite3_stmt *statement, CSQLiteReferrer referrer, CSQLiteFollower follower,
    void *context) {
  Visit visit = {functions, referrer, NULL, follower, context};
  return step(&visit, statement);
}

void csqlite_wipe(void *memory, size_t count) { explicit_bzero(memory, count); }

static uint64_t forks = 0;
static void countFork(void) { forks++; }
static void watchForks(void) { pthread_atfork(NULL, NULL, countFork); }

uint64_t csqlite_forks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watchForks);
  return __atomic_load_n(&forks, __ATOMIC_RELAXED);
}
