// Forks FORKS children while threads of this process are at work in the library, and calls every function of touchstone.h in each:
// forks FORKS DIRECTORY. Each call has to be refused at once, with the documented error, whatever the threads were doing. A call that
// waits for a lock of a thread that isn't there waits for ever, and this program with it. Afterwards everything is freed, and a
// child has to be able to use each engine.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <touchstone.h>
#include <unistd.h>

static const char *directory;
static int over;

static void must(int32_t status, touchstone_error *error, const char *what) {
  if (status == TOUCHSTONE_OK) return;
  fprintf(stderr, "forks: %s: %s\n", what, error ? error->message : "-");
  exit(1);
}
#define MUST(call) do { touchstone_error *error = NULL; int32_t status = (int32_t)(call); must(status, error, #call); } while (0)

// One handle of each type.
static touchstone_database *database;
static touchstone_query *query;
static touchstone_rows *rows;
static touchstone_blob_writer *writer;
static touchstone_blob *blob;
static touchstone_observer *observer;
static touchstone_replicator *replicator;
static touchstone_listener *listener;

static size_t heard;
static void hear(void *context, const char *json, size_t length) {
  (void)context, (void)json;
  __atomic_add_fetch(&heard, length, __ATOMIC_RELAXED);
}
static void hear_rows(void *context, touchstone_rows *found, const touchstone_error *error) {
  (void)context, (void)error;
  touchstone_rows_free(found);
}
static int32_t map(void *context, touchstone_emitter *emitter, const char *json, size_t length) {
  (void)context;
  return touchstone_emit(emitter, json, length, NULL, 0);
}
static int32_t body(void *context) {
  return touchstone_save(context, "b", 1, "{}", 2, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, NULL);
}
static int is_over(void) { return __atomic_load_n(&over, __ATOMIC_RELAXED); }

// What threads do meanwhile: reads and writes, errors, and calls without a handle.
static void *write_and_read(void *argument) {
  char id[32];
  for (int number = 0; !is_over(); number++) {
    snprintf(id, sizeof id, "%d-%d", *(int *)argument, number % 50);
    MUST(touchstone_save(database, id, TOUCHSTONE_NUL, "{\"n\": 1}", TOUCHSTONE_NUL, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, &error));
    char *json;
    MUST(touchstone_get(database, id, TOUCHSTONE_NUL, 0, &json, NULL, NULL, &error));
    touchstone_free(json);
    MUST(touchstone_batch(database, body, database, 1, &error));
    touchstone_error *error = NULL;
    if (touchstone_purge(database, "none", 4, NULL, 0, &error) != TOUCHSTONE_NOT_FOUND) exit(1);
    touchstone_error_free(error);
  }
  return NULL;
}
static void *ask(void *argument) {
  (void)argument;
  while (!is_over()) {
    touchstone_query *asked;
    MUST(touchstone_query_new(database, "SELECT COUNT(*) FROM _ GROUP BY n", TOUCHSTONE_NUL, NULL, 0, &asked, &error));
    touchstone_rows *found;
    MUST(touchstone_query_stream(asked, NULL, 0, &found, &error));
    while (touchstone_rows_next(found, NULL) == 1) touchstone_row_text(found, 0, NULL);
    touchstone_rows_free(found);
    touchstone_query_free(asked);
  }
  return NULL;
}
static void *open_others(void *argument) {
  (void)argument;
  char path[4096];
  for (int number = 0; !is_over(); number++) {
    touchstone_database *other;
    snprintf(path, sizeof path, "%s/other%d", directory, number % 3);
    MUST(touchstone_open(path, TOUCHSTONE_NUL, "{\"durability\": \"none\"}", TOUCHSTONE_NUL, &other, &error));
    MUST(touchstone_delete_database(other, &error));
    touchstone_database_free(other);
  }
  return NULL;
}

// In a child: each call returns the line that was wrong.
#define REFUSED_AS(number, call)                                                                        \
  do {                                                                                                  \
    touchstone_error *error = NULL;                                                                     \
    if ((call) != (number) || !error || error->kind != TOUCHSTONE_MISUSE) return __LINE__;              \
    if (strcmp(error->code, "Misuse.forked") != 0 || !strstr(error->message, "fork")) return __LINE__;  \
    touchstone_error_free(error);                                                                       \
  } while (0)
#define REFUSED(call) REFUSED_AS(TOUCHSTONE_MISUSE, call)
#define REFUSED_NUMBER(call) REFUSED_AS(-TOUCHSTONE_MISUSE, call)
#define GIVES(value, call) do { if ((call) != (value)) return __LINE__; } while (0)

static void free_all_but_database(void) {
  touchstone_listener_free(listener);
  touchstone_replicator_free(replicator);
  touchstone_observer_free(observer);
  touchstone_blob_free(blob);
  touchstone_blob_writer_free(writer);
  touchstone_rows_free(rows);
  touchstone_query_free(query);
}

static int in_child(void) {
  char *text = NULL, buffer[64];
  const char *lent = NULL;
  size_t length = 0;
  touchstone_revision revision;
  touchstone_column column;
  touchstone_database *other = NULL;
  touchstone_query *asked = NULL;
  touchstone_rows *found = NULL;
  touchstone_blob_writer *writing = NULL;
  touchstone_blob *reading = NULL;
  touchstone_observer *watching = NULL;
  touchstone_replicator *copying = NULL;
  touchstone_listener *serving = NULL;
  uint64_t lengths[] = {1, 2};

  GIVES(1, touchstone_version() != NULL);
  REFUSED(touchstone_set_log("none", TOUCHSTONE_NUL, &error));
  REFUSED(touchstone_engines(&text, NULL, &error));
  REFUSED(touchstone_check_handles(TOUCHSTONE_HANDLES_CHECKED, &error));
  REFUSED(touchstone_open("x", 1, "{\"inMemory\": true}", TOUCHSTONE_NUL, &other, &error));
  REFUSED(touchstone_close(database, &error));
  REFUSED(touchstone_delete_database(database, &error));
  REFUSED(touchstone_describe(database, &text, NULL, &error));
  REFUSED_NUMBER(touchstone_count(database, &error));
  REFUSED_NUMBER(touchstone_read(database, "a", 1, buffer, sizeof buffer, &revision, &error));
  REFUSED(touchstone_get(database, "a", 1, 0, &text, NULL, &revision, &error));
  REFUSED(touchstone_save(database, "a", 1, "{}", 2, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, &revision, &error));
  REFUSED(touchstone_save_many(database, "a{}", lengths, 1, TOUCHSTONE_LAST_WRITE_WINS, &revision, NULL, &error));
  REFUSED(touchstone_delete(database, "a", 1, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, &revision, &error));
  REFUSED(touchstone_purge(database, "a", 1, NULL, 0, &error));
  REFUSED(touchstone_set_expiration(database, "a", 1, INT64_MAX, &error));
  REFUSED_AS(INT64_MIN, touchstone_expiration(database, "a", 1, &error));
  REFUSED(touchstone_revisions(database, "a", 1, 1, &text, NULL, &error));
  REFUSED(touchstone_revision_body(database, "a", 1, "1-aa", 4, &text, NULL, &error));
  REFUSED(touchstone_resolve(database, "a", 1, "1-aa", 4, NULL, 0, &error));
  REFUSED_NUMBER(touchstone_apply(database, "a", 1, "{}", 2, "[\"1-aa\"]", 8, 0, &error));
  REFUSED(touchstone_batch(database, body, database, 1, &error));
  REFUSED(touchstone_begin(database, &error));
  REFUSED(touchstone_commit(database, &error));
  REFUSED(touchstone_rollback(database, &error));
  REFUSED(touchstone_query_new(database, "SELECT 1", 8, NULL, 0, &asked, &error));
  REFUSED(touchstone_query_describe(query, &text, NULL, &error));
  REFUSED(touchstone_query_run(query, NULL, 0, &found, &error));
  REFUSED(touchstone_query_stream(query, NULL, 0, &found, &error));
  touchstone_query_cancel(query);
  REFUSED(touchstone_documents(database, NULL, 0, &found, &error));
  REFUSED(touchstone_changes(database, 0, &found, &error));
  GIVES(0, touchstone_rows_width(rows));
  GIVES('\0', *touchstone_rows_name(rows, 0, &length));
  GIVES(-1, touchstone_rows_count(rows));
  REFUSED_NUMBER(touchstone_rows_json(rows, 100, &lent, &length, &error));
  REFUSED_NUMBER(touchstone_rows_next(rows, &error));
  GIVES(TOUCHSTONE_MISSING, touchstone_row_type(rows, 0));
  GIVES(0, touchstone_row_int64(rows, 0));
  GIVES(1, touchstone_row_double(rows, 0) == 0);
  GIVES(NULL, touchstone_row_text(rows, 0, &length));
  REFUSED(touchstone_rows_column(rows, 0, &column, &error));
  REFUSED_NUMBER(touchstone_create_index(database, "i", 1, "{\"on\": [\"n\"]}", TOUCHSTONE_NUL, &error));
  REFUSED(touchstone_delete_index(database, "i", 1, &error));
  REFUSED(touchstone_indexes(database, &text, NULL, &error));
  REFUSED(touchstone_blob_writer_new(database, &writing, &error));
  REFUSED(touchstone_blob_write(writer, "x", 1, &error));
  REFUSED(touchstone_blob_finish(writer, "", 0, &text, NULL, &error));
  REFUSED(touchstone_blob_open(database, "sha1-", 5, &reading, &error));
  GIVES(0, touchstone_blob_length(blob));
  REFUSED_NUMBER(touchstone_blob_read(blob, buffer, sizeof buffer, &error));
  REFUSED(touchstone_blob_seek(blob, 0, &error));
  REFUSED(touchstone_observe(database, NULL, 0, hear, NULL, &watching, &error));
  REFUSED(touchstone_observe_query(query, NULL, 0, hear_rows, NULL, &watching, &error));
  REFUSED(touchstone_notice_changes(database, &error));
  REFUSED(touchstone_view_define(database, "v", 1, "{\"version\": \"1\"}", TOUCHSTONE_NUL, map, NULL, &error));
  GIVES(TOUCHSTONE_MISUSE, touchstone_emit(NULL, "1", 1, NULL, 0));
  REFUSED(touchstone_view_query(database, "v", 1, NULL, 0, &text, NULL, &error));
  REFUSED(touchstone_compact(database, &error));
  REFUSED(touchstone_check(database, 0, &text, NULL, &error));
  REFUSED(touchstone_verify(database, database, 0, &text, NULL, &error));
  REFUSED(touchstone_convert("x", 1, "{\"engine\": \"lmdb\"}", TOUCHSTONE_NUL, NULL, NULL, &text, NULL, &error));
  REFUSED(touchstone_backup("x", 1, "y", 1, NULL, 0, NULL, NULL, &text, NULL, &error));
  REFUSED(touchstone_upgrade("x", 1, "y", 1, NULL, 0, NULL, NULL, &text, NULL, &error));
  REFUSED(touchstone_change_key(database, "{\"newPassphrase\": \"x\"}", TOUCHSTONE_NUL, &error));
  REFUSED(touchstone_replicator_new(database, NULL, "{\"url\": \"ws://127.0.0.1:9/x\"}", TOUCHSTONE_NUL, &copying, &error));
  REFUSED(touchstone_replicator_start(replicator, &error));
  REFUSED(touchstone_replicator_stop(replicator, &error));
  REFUSED_NUMBER(touchstone_replicator_wait(replicator, 0, &error));
  REFUSED(touchstone_replicator_status(replicator, &text, NULL, &error));
  REFUSED(touchstone_replicator_observe(replicator, hear, NULL, &watching, &error));
  REFUSED(touchstone_listener_new(NULL, 0, &serving, &error));
  REFUSED(touchstone_listener_add(listener, "x", 1, database, &error));
  REFUSED(touchstone_listener_start(listener, &error));
  REFUSED(touchstone_listener_stop(listener, &error));
  REFUSED(touchstone_listener_describe(listener, &text, NULL, &error));
  // Without a place for the error.
  GIVES(TOUCHSTONE_MISUSE, touchstone_compact(database, NULL));
  // Frees do nothing, also twice.
  for (int time = 0; time < 2; time++) {
    free_all_but_database();
    touchstone_database_free(database);
  }
  // No result was touched.
  if (text || lent || other || asked || found || writing || reading || watching || copying || serving) return __LINE__;
  return 0;
}

// Waits for a child. Its status is its line that was wrong, in two pieces: a status has only 8 bits.
static void expect_success(pid_t child, int number, const char *what) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child) exit(1);
  if (status == 0) return;
  fprintf(stderr, "forks: child %d %s: status %d, signal %d\n", number, what, WEXITSTATUS(status), WTERMSIG(status));
  exit(1);
}
static _Noreturn void leave(int line) {
  if (line) fprintf(stderr, "forks: line %d isn't so\n", line);
  _exit(line != 0);
}

// Lets another database pull from one, over the network. Returns whether this process can.
static int replicate(touchstone_database *source) {
  touchstone_database *target;
  touchstone_listener *serving;
  touchstone_replicator *copying;
  char *json, options[512];
  MUST(touchstone_open(NULL, 0, "{\"inMemory\": true}", TOUCHSTONE_NUL, &target, &error));
  MUST(touchstone_listener_new(NULL, 0, &serving, &error));
  MUST(touchstone_listener_add(serving, "db", 2, source, &error));
  touchstone_error *error = NULL;
  int32_t started = touchstone_listener_start(serving, &error);
  if (started == TOUCHSTONE_UNSUPPORTED && strstr(error->message, "fork")) {
    touchstone_error_free(error);
    touchstone_listener_free(serving);
    touchstone_database_free(target);
    return 0;
  }
  must(started, error, "start of the listener");
  MUST(touchstone_listener_describe(serving, &json, NULL, &error));
  const char *port = strstr(json, "\"port\":");
  snprintf(options, sizeof options, "{\"url\": \"ws://127.0.0.1:%d/db\", \"direction\": \"pull\"}", port ? atoi(port + 7) : 0);
  touchstone_free(json);
  MUST(touchstone_replicator_new(target, NULL, options, TOUCHSTONE_NUL, &copying, &error));
  MUST(touchstone_replicator_start(copying, &error));
  if (touchstone_replicator_wait(copying, -1, NULL) != 1 || touchstone_count(target, NULL) != touchstone_count(source, NULL)) exit(1);
  touchstone_replicator_free(copying);
  MUST(touchstone_listener_stop(serving, &error));
  touchstone_listener_free(serving);
  touchstone_database_free(target);
  return 1;
}

// Uses an engine: writes, a stream, a query with a time limit, an observer, and a replication, which works or is refused.
static void use(const char *engine, const char *name, int replicates) {
  char path[4096], options[256];
  snprintf(path, sizeof path, "%s/%s-%s", directory, name, engine);
  int needs_key = strcmp(engine, "lmdb-encrypted") == 0 || strcmp(engine, "sqlcipher") == 0;
  snprintf(options, sizeof options, "{\"engine\": \"%s\"%s}", engine, needs_key ? ", \"passphrase\": \"x\"" : "");
  touchstone_database *used;
  MUST(touchstone_open(path, TOUCHSTONE_NUL, options, TOUCHSTONE_NUL, &used, &error));
  touchstone_observer *watching;
  heard = 0;
  MUST(touchstone_observe(used, NULL, 0, hear, NULL, &watching, &error));
  for (int number = 0; number < 1000; number++) {
    char id[32];
    snprintf(id, sizeof id, "%d", number % 500);
    MUST(touchstone_save(used, id, TOUCHSTONE_NUL, "{\"n\": 1}", TOUCHSTONE_NUL, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, &error));
    if (number == 100) MUST(touchstone_compact(used, &error));
  }
  touchstone_query *asked;
  touchstone_rows *found;
  MUST(touchstone_query_new(used, "SELECT n FROM _", TOUCHSTONE_NUL, "{\"timeLimit\": 600}", TOUCHSTONE_NUL, &asked, &error));
  MUST(touchstone_query_stream(asked, NULL, 0, &found, &error));
  int count = 0;
  while (touchstone_rows_next(found, NULL) == 1) count++;
  touchstone_rows_free(found);
  touchstone_query_free(asked);
  MUST(touchstone_begin(used, &error));
  MUST(touchstone_save(used, "batch", 5, "{}", 2, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, &error));
  MUST(touchstone_commit(used, &error));
  if (replicate(used) != replicates) exit(1);
  // Its thread tells of them sooner or later.
  while (__atomic_load_n(&heard, __ATOMIC_RELAXED) == 0) usleep(1000);
  touchstone_observer_free(watching);
  MUST(touchstone_close(used, &error));
  touchstone_database_free(used);
  if (count != 500) exit(1);
}

// In a child: an engine that can't be used there says so.
static int refused(const char *engine) {
  char path[4096], options[64];
  touchstone_database *other;
  touchstone_error *error = NULL;
  snprintf(path, sizeof path, "%s/refused", directory);
  snprintf(options, sizeof options, "{\"engine\": \"%s\"}", engine);
  GIVES(TOUCHSTONE_UNSUPPORTED, touchstone_open(path, TOUCHSTONE_NUL, options, TOUCHSTONE_NUL, &other, &error));
  GIVES(1, error && strstr(error->message, "fork"));
  touchstone_error_free(error);
  return 0;
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: forks FORKS DIRECTORY\n");
    return 2;
  }
  int forks = atoi(arguments[1]);
  directory = arguments[2];
  char path[4096], *reference;
  snprintf(path, sizeof path, "%s/forks", directory);
  MUST(touchstone_set_log("none", TOUCHSTONE_NUL, &error));
  MUST(touchstone_open(path, TOUCHSTONE_NUL, "{\"engine\": \"lmdb\", \"durability\": \"none\"}", TOUCHSTONE_NUL, &database, &error));
  MUST(touchstone_save(database, "a", 1, "{\"n\": 1}", TOUCHSTONE_NUL, NULL, 0, TOUCHSTONE_LAST_WRITE_WINS, NULL, &error));
  MUST(touchstone_query_new(database, "SELECT n FROM _", TOUCHSTONE_NUL, NULL, 0, &query, &error));
  MUST(touchstone_query_run(query, NULL, 0, &rows, &error));
  MUST(touchstone_blob_writer_new(database, &writer, &error));
  MUST(touchstone_blob_write(writer, "0123456789", 10, &error));
  MUST(touchstone_blob_finish(writer, NULL, 0, &reference, NULL, &error));
  MUST(touchstone_blob_open(database, reference, TOUCHSTONE_NUL, &blob, &error));
  touchstone_free(reference);
  MUST(touchstone_observe(database, NULL, 0, hear, NULL, &observer, &error));
  MUST(touchstone_replicator_new(database, NULL, "{\"url\": \"ws://127.0.0.1:9/x\"}", TOUCHSTONE_NUL, &replicator, &error));
  MUST(touchstone_listener_new(NULL, 0, &listener, &error));

  pthread_t threads[4];
  int numbers[] = {0, 1};
  for (int number = 0; number < 2; number++) {
    if (pthread_create(&threads[number], NULL, write_and_read, &numbers[number])) return 1;
  }
  if (pthread_create(&threads[2], NULL, ask, NULL) || pthread_create(&threads[3], NULL, open_others, NULL)) return 1;
  for (int number = 0; number < forks; number++) {
    // At different moments of what the threads do.
    usleep((useconds_t)(number * 37 % 1000));
    pid_t child = fork();
    if (child == 0) leave(in_child());
    expect_success(child, number, "of a process at work");
  }
  __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
  for (int number = 0; number < 4; number++) pthread_join(threads[number], NULL);

  // Nothing that was freed in a child is gone here.
  if (touchstone_blob_length(blob) != 10 || touchstone_rows_next(rows, NULL) != 1) return 1;
  char *engines;
  MUST(touchstone_engines(&engines, NULL, &error));
  free_all_but_database();
  MUST(touchstone_close(database, &error));
  touchstone_database_free(database);
  int used = 0;
  for (char *name = strtok(engines, "[]\", "); name; name = strtok(NULL, "[]\", ")) {
    if (strcmp(name, "memory") == 0) continue;
    if (used == 0) {
      // Nothing has replicated in this process.
      pid_t first = fork();
      if (first == 0) {
        use("sqlite", "first", 1);
        leave(0);
      }
      expect_success(first, used, "of a process that hasn't replicated");
    }
    use(name, "parent", 1);
    pid_t child = fork();
    if (child == 0) {
      // Its threads are those of the process.
      if (strcmp(name, "rocksdb") == 0) leave(refused("rocksdb"));
      use(name, "child", 0);
      leave(0);
    }
    expect_success(child, ++used, name);
  }
  touchstone_free(engines);
  printf("%d children were refused, %d used an engine\n", forks, used);
  return 0;
}
