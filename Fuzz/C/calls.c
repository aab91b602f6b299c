// Makes random calls of touchstone.h until CALLS are done, with freed handles, handles of other types, texts that aren't UTF-8,
// and wrong lengths of options among them: calls SEED CALLS DIRECTORY [THREADS]. Handles are checked, so every mistake has to
// come back as an error. Each thread has handles of its own, and all share some databases. Run it under the address sanitizer
// (docs/c.md).

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <touchstone.h>

static _Thread_local uint64_t state;

// SplitMix64.
static uint64_t next_random(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static size_t below(size_t bound) { return (size_t)(next_random() % bound); }
static int once_in(size_t count) { return below(count) == 0; }

enum { DATABASE, QUERY, ROWS, WRITER, BLOB, OBSERVER, REPLICATOR, LISTENER, TYPES };
enum { SLOTS = 4, SHARED = 2 };
// Handles, also some that were freed.
static _Thread_local void *handles[TYPES][SLOTS];
// Which of them are alive. A freed one may be used: that is an error, and nothing else.
static _Thread_local int alive[TYPES][SLOTS];
// The database of a batch that this thread has begun.
static _Thread_local touchstone_database *begun;
// The databases that all threads use, if there are several. They stay open.
static touchstone_database *shared[SHARED];
static int threads = 1;

static void *pick(int type) {
  if (type == DATABASE && threads > 1) {
    // Who waits for one writer while it holds another may wait for ever.
    if (begun) return begun;
    if (once_in(2)) return shared[below(SHARED)];
  }
  // Sometimes one of another type, or none.
  if (once_in(50)) type = (int)below(TYPES);
  if (once_in(100)) return NULL;
  return handles[type][below(SLOTS)];
}

static void keep(int type, void *handle);

static const char *ids[] = {"a", "b", "c", "hotel_1", "", "_x", "\xff\xfe", "d\xc3\xa9"};
static const char *bodies[] = {
  "{}", "{\"n\":1}", "{\"n\":2,\"s\":\"text\"}", "{\"list\":[1,2,{\"x\":null}]}", "[1]", "{", "", "{\"_deleted\":true}", "\xff", "{\"n\":1e400}"};
static const char *queries[] = {
  "SELECT n, s FROM _", "SELECT * FROM _ WHERE n > $n", "SELECT", "SELECT COUNT(*) FROM _ GROUP BY n", "EXPLAIN SELECT n FROM _",
  "SELECT META().id, n FROM _ ORDER BY n DESC LIMIT 2", "\xff"};
static const char *options[] = {"", "{}", "{\"n\":1}", "{\"limit\":1}", "{\"bodies\":true}", "{\"wrong\":1}", "[", "{\"rowLimit\":1}", "null"};
#define ANY(texts) texts[below(sizeof texts / sizeof *texts)]

static const char *views[] = {"v", "w", "", "\xff", "design/name"};
static const char *view_options[] = {
  "{}", "{\"reduce\":false}", "{\"startKey\":1,\"endKey\":[2]}", "{\"keys\":[1,\"a\",null]}", "{\"group\":true}", "{\"groupLevel\":1,\"limit\":2}",
  "{\"descending\":true,\"skip\":1,\"documents\":true,\"reduce\":false}", "{\"update\":\"never\"}", "{\"keys\":1}", "[", ""};
static const char *view_definitions[] = {
  "{\"version\":\"1\"}", "{\"version\":\"2\",\"reduce\":\"sum\"}", "{\"version\":\"1\",\"reduce\":\"count\"}",
  "{\"version\":\"3\",\"collation\":\"raw\",\"reduce\":\"stats\"}", "{\"version\":\"1\",\"documentType\":\"x\"}", "{}", "{\"version\":1}"};
static const char *index_options[] = {
  "{\"on\":[\"n\"]}", "{\"on\":[\"s\"],\"fullText\":true,\"language\":\"en\"}", "{\"unnest\":\"list AS i\",\"on\":[\"i\"]}",
  "{\"on\":[\"n\"],\"where\":\"n > 1\"}", "{\"on\":[]}", "{\"on\":[\"(\"]}", "{\"fullText\":true,\"on\":[\"s\"],\"stopWords\":[1]}"};
static const char *histories[] = {
  "[\"1-aa\"]", "[\"2-bb\",\"1-aa\"]", "[\"3-cc\",\"2-bb\",\"1-aa\"]", "[\"3-cd\",\"1-aa\"]", "[]", "[1]", "[\"1-aa\",\"2-bb\"]", "{", "[\"x\"]"};
static const char *conversions[] = {
  "{\"engine\":\"lmdb\"}", "{\"engine\":\"sqlite\"}", "{\"engine\":\"lmdb-encrypted\"}", "{\"engine\":\"none\"}", "{}", "{\"engine\":1}"};
static const char *listeners[] = {
  "{}", "{\"http\":true}", "{\"users\":{\"a\":\"b\"}}", "{\"address\":\"nowhere\"}", "{\"port\":1000000}", "{\"users\":1}", "{\"userFile\":\"/none\"}"};
static const char *replications[] = {
  "{}", "{\"direction\":\"push\"}", "{\"continuous\":true,\"direction\":\"pull\"}", "{\"documentIDs\":[\"a\"]}", "{\"direction\":\"up\"}",
  "{\"url\":\"ws://127.0.0.1:9/x\",\"maximumRetries\":0}", "{\"url\":\"ftp://x\"}"};
static const char *keys[] = {
  "{\"newKeyHex\":\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"}", "{\"newKeyHex\":\"00\"}", "{\"newKeyFile\":\"/none\"}", "{}"};

static _Thread_local touchstone_revision revisions[8];

static void freed(void *handle, int type) {
  switch (type) {
  case DATABASE: touchstone_database_free(handle); break;
  case QUERY: touchstone_query_free(handle); break;
  case ROWS: touchstone_rows_free(handle); break;
  case WRITER: touchstone_blob_writer_free(handle); break;
  case BLOB: touchstone_blob_free(handle); break;
  case OBSERVER: touchstone_observer_free(handle); break;
  case REPLICATOR: touchstone_replicator_free(handle); break;
  case LISTENER: touchstone_listener_free(handle); break;
  }
}

static void keep(int type, void *handle) {
  size_t slot = below(SLOTS);
  if (alive[type][slot]) freed(handles[type][slot], type);
  handles[type][slot] = handle;
  alive[type][slot] = 1;
}

static size_t heard;
static void hear(void *context, const char *json, size_t length) {
  (void)context;
  __atomic_add_fetch(&heard, length && json[0] == '{', __ATOMIC_RELAXED);
}
static void hear_rows(void *context, touchstone_rows *rows, const touchstone_error *error) {
  (void)context;
  size_t length = 0;
  while (rows && touchstone_rows_next(rows, NULL) > 0) touchstone_row_text(rows, 0, &length);
  __atomic_add_fetch(&heard, error ? strlen(error->message) : length, __ATOMIC_RELAXED);
  touchstone_rows_free(rows);
}

// An observer that ends itself when it is called.
struct once {
  touchstone_observer *observer;
};
static void hear_once(void *context, const char *json, size_t length) {
  struct once *once = context;
  touchstone_observer *observer = __atomic_exchange_n(&once->observer, NULL, __ATOMIC_ACQ_REL);
  // It may be called before it is known.
  if (!observer) return;
  hear(NULL, json, length);
  touchstone_observer_free(observer);
}
static int32_t in_batch(void *context) {
  touchstone_save(context, "a", 1, "{\"batch\":1}", TOUCHSTONE_NUL, NULL, 0, 0, NULL, NULL);
  return (int32_t)below(2);
}

static int32_t map(void *context, touchstone_emitter *emitter, const char *json, size_t length) {
  (void)context;
  // Depends on the document alone.
  if (length % 13 == 0) return 1;
  touchstone_emit(emitter, json, length, NULL, 0);
  touchstone_emit(emitter, "[1,2]", TOUCHSTONE_NUL, length % 2 ? "3" : "{", TOUCHSTONE_NUL);
  return 0;
}
static int32_t progress(void *context, const char *phase, int64_t done, int64_t total) {
  return phase[0] == 0 || done < 0 || total < 0 || context ? 7 : 0;
}

// The path of one of a few databases, for opening, conversions and upgrades.
static const char *any_path(const char *directory, char path[4096]) {
  snprintf(path, 4096, "%s/%d", directory, (int)below(3));
  return path;
}

static void open_database(const char *directory, touchstone_error **error) {
  static const char *kinds[] = {
    "{\"inMemory\":true}", "{\"engine\":\"lmdb\",\"durability\":\"none\"}", "{\"engine\":\"sqlite\",\"durability\":\"none\"}", "{\"engine\":\"none\"}",
    ("{\"engine\":\"lmdb-encrypted\",\"durability\":\"none\",\"keyHex\":"
     "\"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"}"),
    "{\"create\":\"never\",\"readOnly\":true}", "{\"create\":\"always\",\"treeDepth\":2}"};
  char path[4096];
  touchstone_database *database = NULL;
  if (touchstone_open(any_path(directory, path), TOUCHSTONE_NUL, ANY(kinds), TOUCHSTONE_NUL, &database, error) == 0) keep(DATABASE, database);
}

// Calls of what takes long: whole databases, sync, and observers that end themselves.
static void call_slow(const char *directory, touchstone_error **place) {
  char *text = NULL, path[4096], other[4096];
  switch (below(16)) {
  case 0: touchstone_compact(pick(DATABASE), place); break;
  case 1: if (touchstone_check(pick(DATABASE), (int32_t)below(2), &text, NULL, place) == 0) touchstone_free(text); break;
  case 2:
    if (touchstone_verify(pick(DATABASE), pick(DATABASE), (uint32_t)below(5), &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 3:
    if (touchstone_convert(
          any_path(directory, path), TOUCHSTONE_NUL, ANY(conversions), TOUCHSTONE_NUL, once_in(3) ? NULL : progress, once_in(4) ? path : NULL,
          once_in(3) ? NULL : &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 4:
    if (touchstone_upgrade(
          any_path(directory, path), TOUCHSTONE_NUL, any_path(directory, other), TOUCHSTONE_NUL, ANY(options), TOUCHSTONE_NUL, progress, NULL,
          &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 5: touchstone_change_key(pick(DATABASE), ANY(keys), TOUCHSTONE_NUL, place); break;
  case 6: if (threads == 1 && once_in(4)) touchstone_delete_database(pick(DATABASE), place); break;
  case 7: {
    touchstone_replicator *replicator;
    void *target = once_in(4) ? NULL : pick(DATABASE);
    if (touchstone_replicator_new(pick(DATABASE), target, ANY(replications), TOUCHSTONE_NUL, &replicator, place) == 0) keep(REPLICATOR, replicator);
    break;
  }
  case 8: touchstone_replicator_start(pick(REPLICATOR), place); break;
  case 9:
    if (once_in(3)) touchstone_replicator_stop(pick(REPLICATOR), place);
    else touchstone_replicator_wait(pick(REPLICATOR), (double)below(3) / 100, place);
    break;
  case 10: {
    touchstone_observer *observer;
    if (once_in(2)) {
      if (touchstone_replicator_observe(pick(REPLICATOR), hear, NULL, &observer, place) == 0) keep(OBSERVER, observer);
    } else if (touchstone_replicator_status(pick(REPLICATOR), &text, NULL, place) == 0) touchstone_free(text);
    break;
  }
  case 11: {
    touchstone_listener *listener;
    if (touchstone_listener_new(ANY(listeners), TOUCHSTONE_NUL, &listener, place) == 0) keep(LISTENER, listener);
    break;
  }
  case 12: touchstone_listener_add(pick(LISTENER), ANY(ids), TOUCHSTONE_NUL, pick(DATABASE), place); break;
  case 13:
    if (once_in(3)) touchstone_listener_start(pick(LISTENER), place);
    else if (once_in(2)) touchstone_listener_stop(pick(LISTENER), place);
    else if (touchstone_listener_describe(pick(LISTENER), &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 14: {
    // Its memory stays: a callback may still be on its way.
    struct once *once = calloc(1, sizeof *once);
    touchstone_observer *observer = NULL;
    if (once && touchstone_observe(pick(DATABASE), NULL, 0, hear_once, once, &observer, place) == 0) {
      __atomic_store_n(&once->observer, observer, __ATOMIC_RELEASE);
    }
    break;
  }
  case 15: {
    snprintf(other, sizeof other, "%s/backup%d", directory, (int)below(2));
    touchstone_database *backup;
    if (touchstone_backup(
          any_path(directory, path), TOUCHSTONE_NUL, other, TOUCHSTONE_NUL, once_in(4) ? ANY(options) : NULL, TOUCHSTONE_NUL,
          once_in(3) ? NULL : progress, once_in(4) ? path : NULL, once_in(3) ? NULL : &text, NULL, place) == 0) touchstone_free(text);
    // Makes room for another one.
    if (once_in(2) && touchstone_open(other, TOUCHSTONE_NUL, "{\"create\":\"never\"}", TOUCHSTONE_NUL, &backup, NULL) == 0) {
      touchstone_delete_database(backup, NULL);
      touchstone_database_free(backup);
    }
    break;
  }
  }
}

static void call(const char *directory) {
  touchstone_error *error = NULL, **place = once_in(5) ? NULL : &error;
  char *text = NULL;
  size_t length = 0;
  const char *id = ANY(ids);
  touchstone_revision *revision = &revisions[below(8)];
  // A batch of this thread makes others wait, so it is short.
  if (begun && once_in(6)) {
    if (once_in(2)) touchstone_commit(begun, place); else touchstone_rollback(begun, place);
    begun = NULL;
    touchstone_error_free(error);
    return;
  }
  size_t chosen = begun ? 8 + below(32) : below(40);
  switch (chosen) {
  case 0: open_database(directory, place); break;
  case 1:
    // Of its own: the others go on with the shared ones.
    if (once_in(20)) touchstone_close(handles[DATABASE][below(SLOTS)], place);
    break;
  case 2: {
    int type = (int)below(TYPES);
    size_t slot = below(SLOTS);
    // Also again.
    freed(handles[type][slot], type);
    alive[type][slot] = 0;
    break;
  }
  case 3: {
    touchstone_observer *observer;
    if (touchstone_observe(pick(DATABASE), once_in(2) ? NULL : id, TOUCHSTONE_NUL, hear, NULL, &observer, place) == 0) {
      keep(OBSERVER, observer);
    }
    break;
  }
  case 4: {
    touchstone_observer *observer;
    if (touchstone_observe_query(pick(QUERY), ANY(options), TOUCHSTONE_NUL, hear_rows, NULL, &observer, place) == 0) {
      keep(OBSERVER, observer);
    }
    break;
  }
  case 5: {
    touchstone_database *database = pick(DATABASE);
    if (touchstone_begin(database, place) == 0) begun = database;
    break;
  }
  case 6: {
    touchstone_database *database = pick(DATABASE);
    touchstone_batch(database, once_in(20) ? NULL : in_batch, database, (int32_t)below(3), place);
    break;
  }
  case 7:
    if (once_in(20)) call_slow(directory, place);
    break;
  case 8: {
    touchstone_query *query;
    if (touchstone_query_new(pick(DATABASE), ANY(queries), TOUCHSTONE_NUL, ANY(options), TOUCHSTONE_NUL, &query, place) == 0) {
      keep(QUERY, query);
    }
    break;
  }
  case 9: case 10: {
    touchstone_rows *rows;
    void *query = pick(QUERY);
    int32_t status = once_in(2) ? touchstone_query_run(query, ANY(options), TOUCHSTONE_NUL, &rows, place)
                                : touchstone_query_stream(query, ANY(options), TOUCHSTONE_NUL, &rows, place);
    if (status == 0) keep(ROWS, rows);
    break;
  }
  case 11: {
    touchstone_rows *rows;
    if (touchstone_documents(pick(DATABASE), ANY(options), TOUCHSTONE_NUL, &rows, place) == 0) keep(ROWS, rows);
    break;
  }
  case 12: {
    touchstone_rows *rows;
    if (touchstone_changes(pick(DATABASE), below(10), &rows, place) == 0) keep(ROWS, rows);
    break;
  }
  case 13: case 14: {
    void *rows = pick(ROWS);
    touchstone_rows_next(rows, place);
    int32_t column = (int32_t)below(4) - 1;
    touchstone_row_type(rows, column);
    touchstone_row_int64(rows, column);
    touchstone_row_double(rows, column);
    const char *value = touchstone_row_text(rows, column, &length);
    // Reads all of it, and the NUL.
    if (value && strlen(value) > length) abort();
    const char *name = touchstone_rows_name(rows, column, &length);
    if (name && strlen(name) != length) abort();
    break;
  }
  case 15: {
    const char *json;
    if (touchstone_rows_json(pick(ROWS), below(3000), &json, &length, place) > 0 && strlen(json) != length) abort();
    break;
  }
  case 16: {
    touchstone_column column;
    if (touchstone_rows_column(pick(ROWS), (int32_t)below(3), &column, place) == 0 && column.offsets) {
      int64_t sum = 0;
      for (int64_t row = 0; row < column.offsets[column.count]; row++) sum += ((const char *)column.values)[row];
      if (sum == 42) heard++;
    }
    break;
  }
  case 17: case 18: case 19:
    touchstone_save(
      pick(DATABASE), id, TOUCHSTONE_NUL, ANY(bodies), TOUCHSTONE_NUL, once_in(2) ? NULL : revision->revision, TOUCHSTONE_NUL,
      (int32_t)below(4), once_in(4) ? NULL : revision, place);
    break;
  case 20: {
    const char texts[] = "a{\"n\":1}b{\"n\":2}";
    uint64_t lengths[] = {1, 7, 1, once_in(4) ? 3 : 7};
    touchstone_save_many(pick(DATABASE), texts, lengths, below(3), (int32_t)below(3), NULL, NULL, place);
    break;
  }
  case 21: touchstone_delete(pick(DATABASE), id, TOUCHSTONE_NUL, NULL, 0, (int32_t)below(3), revision, place); break;
  case 22: touchstone_purge(pick(DATABASE), id, TOUCHSTONE_NUL, NULL, 0, place); break;
  case 23: {
    char buffer[16];
    touchstone_read(pick(DATABASE), id, TOUCHSTONE_NUL, buffer, below(17), revision, place);
    break;
  }
  case 24:
    if (touchstone_get(pick(DATABASE), id, TOUCHSTONE_NUL, (uint32_t)below(3), &text, &length, revision, place) == 0) {
      if (strlen(text) != length) abort();
      touchstone_free(text);
    }
    break;
  case 25:
    if (touchstone_revisions(pick(DATABASE), id, TOUCHSTONE_NUL, (int32_t)below(2), &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 26: touchstone_resolve(pick(DATABASE), id, TOUCHSTONE_NUL, revision->revision, TOUCHSTONE_NUL, ANY(bodies), TOUCHSTONE_NUL, place); break;
  case 27: {
    touchstone_blob_writer *writer;
    if (once_in(2)) {
      if (touchstone_blob_writer_new(pick(DATABASE), &writer, place) == 0) keep(WRITER, writer);
    } else if (once_in(2)) {
      touchstone_blob_write(pick(WRITER), "0123456789", below(11), place);
    } else if (touchstone_blob_finish(pick(WRITER), id, TOUCHSTONE_NUL, &text, NULL, place) == 0) {
      touchstone_blob *blob;
      if (touchstone_blob_open(pick(DATABASE), text, TOUCHSTONE_NUL, &blob, NULL) == 0) keep(BLOB, blob);
      touchstone_free(text);
    }
    break;
  }
  case 28: {
    char buffer[8];
    void *blob = pick(BLOB);
    if (once_in(3)) touchstone_blob_seek(blob, below(12), place); else touchstone_blob_read(blob, buffer, below(9), place);
    break;
  }
  case 29:
    if (once_in(2)) touchstone_create_index(pick(DATABASE), once_in(2) ? "n" : "m", TOUCHSTONE_NUL, ANY(index_options), TOUCHSTONE_NUL, place);
    else if (once_in(2)) touchstone_delete_index(pick(DATABASE), once_in(2) ? "n" : "m", TOUCHSTONE_NUL, place);
    else if (touchstone_indexes(pick(DATABASE), &text, NULL, place) == 0) touchstone_free(text);
    break;
  case 30: if (touchstone_describe(pick(DATABASE), &text, NULL, place) == 0) touchstone_free(text); break;
  case 31: touchstone_count(pick(DATABASE), place); break;
  case 32: {
    // In the past, in an hour, never, and what no date can be.
    static const int64_t times[] = {0, 4102444800000, INT64_MAX, INT64_MIN, -1};
    if (once_in(2)) touchstone_set_expiration(pick(DATABASE), id, TOUCHSTONE_NUL, ANY(times), place);
    else touchstone_expiration(pick(DATABASE), id, TOUCHSTONE_NUL, place);
    break;
  }
  case 33:
    if (touchstone_revision_body(pick(DATABASE), id, TOUCHSTONE_NUL, revision->revision, TOUCHSTONE_NUL, &text, &length, place) == 0) {
      if (strlen(text) != length) abort();
      touchstone_free(text);
    }
    break;
  case 34:
    touchstone_apply(
      pick(DATABASE), id, TOUCHSTONE_NUL, once_in(4) ? NULL : ANY(bodies), TOUCHSTONE_NUL, ANY(histories), TOUCHSTONE_NUL, once_in(4), place);
    break;
  case 35: {
    void *query = pick(QUERY);
    if (once_in(4)) touchstone_query_cancel(query);
    else if (touchstone_query_describe(query, &text, NULL, place) == 0) touchstone_free(text);
    break;
  }
  case 36: {
    void *rows = pick(ROWS);
    if (touchstone_rows_width(rows) < 0 || touchstone_rows_count(rows) < -1) abort();
    touchstone_blob_length(pick(BLOB));
    break;
  }
  case 37: touchstone_view_define(pick(DATABASE), ANY(views), TOUCHSTONE_NUL, ANY(view_definitions), TOUCHSTONE_NUL, once_in(20) ? NULL : map, NULL, place); break;
  case 38:
    if (touchstone_view_query(pick(DATABASE), ANY(views), TOUCHSTONE_NUL, ANY(view_options), TOUCHSTONE_NUL, &text, &length, place) == 0) {
      if (strlen(text) != length) abort();
      touchstone_free(text);
    }
    break;
  case 39:
    if (once_in(3)) touchstone_notice_changes(pick(DATABASE), place);
    else if (once_in(2)) touchstone_set_log(once_in(2) ? "none" : "none=\xff", TOUCHSTONE_NUL, place);
    else if (once_in(2)) touchstone_check_handles(once_in(2) ? TOUCHSTONE_HANDLES_CHECKED : once_in(2) ? TOUCHSTONE_HANDLES_TRUSTED : -1, place);
    else if (touchstone_engines(&text, NULL, place) == 0) touchstone_free(text);
    break;
  }
  if (error && (!error->message || !error->code || error->kind < 400)) abort();
  touchstone_error_free(error);
}

struct work {
  pthread_t thread;
  unsigned long long seed, calls;
  char directory[3000];
};

static void *run(void *argument) {
  struct work *work = argument;
  state = work->seed;
  for (unsigned long long number = 0; number < work->calls; number++) {
    if (number % 10000 == 0) fprintf(stderr, "calls: seed %llu: %llu\n", work->seed, number);
    call(work->directory);
  }
  if (begun) touchstone_rollback(begun, NULL);
  for (int type = TYPES - 1; type >= 0; type--) {
    for (int slot = 0; slot < SLOTS; slot++) freed(handles[type][slot], type);
  }
  return NULL;
}

int main(int count, char **arguments) {
  enum { MOST_THREADS = 64 };
  if (count == 5) threads = atoi(arguments[4]);
  if (count < 4 || count > 5 || threads < 1 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: calls SEED CALLS DIRECTORY [THREADS]\n");
    return 2;
  }
  unsigned long long seed = strtoull(arguments[1], NULL, 10), calls = strtoull(arguments[2], NULL, 10);
  if (!touchstone_version()) return 1;
  touchstone_set_log("none", TOUCHSTONE_NUL, NULL);
  if (touchstone_check_handles(TOUCHSTONE_HANDLES_CHECKED, NULL) != 0) return 1;
  static struct work works[MOST_THREADS];
  for (int number = 0; threads > 1 && number < SHARED; number++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/shared%d", arguments[3], number);
    const char *kind = number ? "{\"engine\":\"sqlite\",\"durability\":\"none\"}" : "{\"engine\":\"lmdb\",\"durability\":\"none\"}";
    if (touchstone_open(path, TOUCHSTONE_NUL, kind, TOUCHSTONE_NUL, &shared[number], NULL) != 0) return 1;
  }
  for (int number = 0; number < threads; number++) {
    struct work *work = &works[number];
    work->seed = seed + (unsigned long long)number * 1000003;
    work->calls = calls / (unsigned long long)threads;
    if (snprintf(work->directory, sizeof work->directory, "%s/%d", arguments[3], number) >= (int)sizeof work->directory) return 1;
    mkdir(work->directory, 0700);
    if (pthread_create(&work->thread, NULL, run, work) != 0) return 1;
  }
  for (int number = 0; number < threads; number++) pthread_join(works[number].thread, NULL);
  for (int number = 0; number < SHARED; number++) touchstone_database_free(shared[number]);
  printf("%llu calls, seed %s, %d threads: no fault\n", calls, arguments[1], threads);
  return 0;
}
