// Makes random calls of touchstone.h until CALLS are done, with freed handles, handles of other types, texts that aren't UTF-8,
// and wrong lengths of options among them: calls SEED CALLS DIRECTORY. Handles are checked, so every mistake has to come
// back as an error. Run it under the address sanitizer (docs/c.md).

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <touchstone.h>

static uint64_t state;

// SplitMix64.
static uint64_t next_random(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static size_t below(size_t bound) { return (size_t)(next_random() % bound); }
static int once_in(size_t count) { return below(count) == 0; }

enum { DATABASE, QUERY, ROWS, WRITER, BLOB, OBSERVER, TYPES };
enum { SLOTS = 4 };
// Handles, also some that were freed.
static void *handles[TYPES][SLOTS];
// Which of them are alive. A freed one may be used: that is an error, and nothing else.
static int alive[TYPES][SLOTS];

static void *pick(int type) {
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

static touchstone_revision revisions[8];

static void freed(void *handle, int type) {
  switch (type) {
  case DATABASE: touchstone_database_free(handle); break;
  case QUERY: touchstone_query_free(handle); break;
  case ROWS: touchstone_rows_free(handle); break;
  case WRITER: touchstone_blob_writer_free(handle); break;
  case BLOB: touchstone_blob_free(handle); break;
  case OBSERVER: touchstone_observer_free(handle); break;
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
  __atomic_add_fetch(&heard, error ? strlen(error->message) : 1, __ATOMIC_RELAXED);
  touchstone_rows_free(rows);
}
static int32_t in_batch(void *context) {
  touchstone_save(context, "a", 1, "{\"batch\":1}", TOUCHSTONE_NUL, NULL, 0, 0, NULL, NULL);
  return (int32_t)below(2);
}

static touchstone_database *begun;

static void open_database(const char *directory, touchstone_error **error) {
  static const char *kinds[] = {
    "{\"inMemory\":true}", "{\"engine\":\"lmdb\",\"durability\":\"none\"}", "{\"engine\":\"sqlite\",\"durability\":\"none\"}", "{\"engine\":\"none\"}"};
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", directory, (int)below(2));
  touchstone_database *database = NULL;
  if (touchstone_open(path, TOUCHSTONE_NUL, ANY(kinds), TOUCHSTONE_NUL, &database, error) == 0) keep(DATABASE, database);
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
  size_t chosen = begun ? 8 + below(22) : below(30);
  switch (chosen) {
  case 0: open_database(directory, place); break;
  case 1:
    if (once_in(20)) touchstone_close(pick(DATABASE), place);
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
    if (once_in(50)) touchstone_compact(pick(DATABASE), place);
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
    if (once_in(2)) touchstone_create_index(pick(DATABASE), "n", TOUCHSTONE_NUL, once_in(2) ? "{\"on\":[\"n\"]}" : ANY(options), TOUCHSTONE_NUL, place);
    else if (touchstone_describe(pick(DATABASE), &text, NULL, place) == 0) touchstone_free(text);
    break;
  }
  if (error && (!error->message || !error->code || error->kind < 400)) abort();
  touchstone_error_free(error);
}

int main(int count, char **arguments) {
  if (count != 4) {
    fprintf(stderr, "usage: calls SEED CALLS DIRECTORY\n");
    return 2;
  }
  state = strtoull(arguments[1], NULL, 10);
  unsigned long long calls = strtoull(arguments[2], NULL, 10);
  touchstone_set_log("none", TOUCHSTONE_NUL, NULL);
  if (touchstone_check_handles(TOUCHSTONE_HANDLES_CHECKED, NULL) != 0) return 1;
  for (unsigned long long number = 0; number < calls; number++) {
    if (number % 10000 == 0) fprintf(stderr, "calls: %llu\n", number);
    call(arguments[3]);
  }
  if (begun) touchstone_rollback(begun, NULL);
  for (int type = TYPES - 1; type >= 0; type--) {
    for (int slot = 0; slot < SLOTS; slot++) freed(handles[type][slot], type);
  }
  printf("%llu calls, seed %s: no fault\n", calls, arguments[1]);
  return 0;
}
