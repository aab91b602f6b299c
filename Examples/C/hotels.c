// Keeps hotels: opens a database, saves documents in a batch, meets a conflict, asks a query, streams a blob, and hears of
// changes. It needs only touchstone.h and libtouchstone (docs/c.md):
//
//   cc -o hotels hotels.c $(pkg-config --cflags --libs touchstone)
//   ./hotels DIRECTORY [ENGINE]

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <touchstone.h>

// Ends the program with the message of an error, unless the status is TOUCHSTONE_OK.
static void check(int32_t status, touchstone_error *error, const char *what) {
  if (status == TOUCHSTONE_OK) return;
  fprintf(stderr, "hotels: %s: %s (%s, kind %d)\n", what, error ? error->message : "-", error ? error->code : "-", status);
  touchstone_error_free(error);
  exit(1);
}

static void expect(int is_true, const char *what) {
  if (is_true) return;
  fprintf(stderr, "hotels: not so: %s\n", what);
  exit(1);
}

// The body of a batch. It gets the database as its context.
static int32_t save_hotels(void *context) {
  touchstone_database *database = context;
  for (int number = 0; number < 100; number++) {
    char id[32], json[128];
    snprintf(id, sizeof id, "hotel_%d", number);
    snprintf(
      json, sizeof json, "{\"type\": \"hotel\", \"name\": \"Hotel %d\", \"country\": \"%s\", \"stars\": %d}", number,
      number % 4 ? "Norway" : "France", number % 5);
    int32_t status = touchstone_save(
      database, id, TOUCHSTONE_NUL, json, TOUCHSTONE_NUL, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, NULL);
    if (status) return status;
  }
  return 0;
}

// Hears of changes, on a thread of the library.
static void changed(void *context, const char *json, size_t length) {
  (void)json;
  __atomic_add_fetch((size_t *)context, length, __ATOMIC_RELAXED);
}

int main(int count, char **arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: hotels DIRECTORY [ENGINE]\n");
    return 2;
  }
  touchstone_error *error = NULL;
  touchstone_database *database;
  char path[4096], options[128];
  snprintf(path, sizeof path, "%s/hotels", arguments[1]);
  snprintf(options, sizeof options, "{\"engine\": \"%s\"}", count > 2 ? arguments[2] : "lmdb");
  check(touchstone_open(path, TOUCHSTONE_NUL, options, TOUCHSTONE_NUL, &database, &error), error, "open");

  size_t heard = 0;
  touchstone_observer *observer;
  check(touchstone_observe(database, NULL, 0, changed, &heard, &observer, &error), error, "observe");

  check(touchstone_batch(database, save_hotels, database, 1, &error), error, "batch");
  printf("%lld hotels\n", (long long)touchstone_count(database, &error));

  // Read, change, save: the revision says what the change is based on.
  char *json;
  touchstone_revision read, saved;
  check(touchstone_get(database, "hotel_1", TOUCHSTONE_NUL, 0, &json, NULL, &read, &error), error, "get");
  printf("hotel_1 is %s, revision %s\n", json, read.revision);
  touchstone_free(json);
  check(
    touchstone_save(
      database, "hotel_1", TOUCHSTONE_NUL, "{\"type\": \"hotel\", \"name\": \"Fjord View\"}", TOUCHSTONE_NUL, read.revision,
      read.revision_length, TOUCHSTONE_FAIL_ON_CONFLICT, &saved, &error),
    error, "save");
  int32_t status = touchstone_save(
    database, "hotel_1", TOUCHSTONE_NUL, "{}", TOUCHSTONE_NUL, read.revision, TOUCHSTONE_NUL,
    TOUCHSTONE_FAIL_ON_CONFLICT, NULL, &error);
  expect(status == TOUCHSTONE_CONFLICT, "an old revision is a conflict");
  printf("a late save: %s\n", error->message);
  touchstone_error_free(error);
  error = NULL;

  // A query, row by row.
  touchstone_query *query;
  check(
    touchstone_query_new(
      database, "SELECT name, stars FROM _ WHERE country = $country ORDER BY stars DESC, name LIMIT 3", TOUCHSTONE_NUL, NULL, 0,
      &query, &error),
    error, "query");
  touchstone_rows *rows;
  check(touchstone_query_run(query, "{\"country\": \"France\"}", TOUCHSTONE_NUL, &rows, &error), error, "run");
  int32_t next;
  while ((next = touchstone_rows_next(rows, &error)) == 1) {
    size_t length;
    const char *name = touchstone_row_text(rows, 0, &length);
    printf("%.*s has %lld stars\n", (int)length, name, (long long)touchstone_row_int64(rows, 1));
  }
  check(-next, error, "next");
  touchstone_rows_free(rows);
  touchstone_query_free(query);

  // A mistake in a query has a place.
  status = touchstone_query_new(database, "SELECT name FORM _", TOUCHSTONE_NUL, NULL, 0, &query, &error);
  expect(status == TOUCHSTONE_BAD_REQUEST && error->line == 1, "a mistake has a place");
  touchstone_error_free(error);
  error = NULL;

  // A blob, in pieces.
  touchstone_blob_writer *writer;
  check(touchstone_blob_writer_new(database, &writer, &error), error, "blob");
  for (int piece = 0; piece < 10; piece++) {
    check(touchstone_blob_write(writer, "0123456789", 10, &error), error, "write");
  }
  char *reference;
  check(touchstone_blob_finish(writer, "text/plain", TOUCHSTONE_NUL, &reference, NULL, &error), error, "finish");
  touchstone_blob_writer_free(writer);
  char document[512];
  snprintf(document, sizeof document, "{\"photo\": %s}", reference);
  check(
    touchstone_save(
      database, "photo", TOUCHSTONE_NUL, document, TOUCHSTONE_NUL, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, &error),
    error, "save");
  touchstone_blob *blob;
  check(touchstone_blob_open(database, reference, TOUCHSTONE_NUL, &blob, &error), error, "open blob");
  touchstone_free(reference);
  char buffer[64];
  int64_t total = 0, got;
  while ((got = touchstone_blob_read(blob, buffer, sizeof buffer, &error)) > 0) total += got;
  expect(got == 0 && total == 100, "the blob has its bytes");
  touchstone_blob_free(blob);

  // After the free, no callback comes.
  touchstone_observer_free(observer);
  char *faults;
  check(touchstone_check(database, 1, &faults, NULL, &error), error, "check");
  expect(strcmp(faults, "[]") == 0, "the database is sound");
  touchstone_free(faults);
  check(touchstone_close(database, &error), error, "close");
  touchstone_database_free(database);
  printf("closed\n");
  return 0;
}
