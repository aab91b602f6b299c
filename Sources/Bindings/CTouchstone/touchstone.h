// Touchstone for C: a database of JSON documents (docs/c.md).
//
//   touchstone_error *error = NULL;
//   touchstone_database *travel;
//   if (touchstone_open("travel", TOUCHSTONE_NUL, "{\"engine\": \"lmdb\"}", TOUCHSTONE_NUL, &travel, &error)) {
//     fprintf(stderr, "%s\n", error->message);
//     touchstone_error_free(error);
//   }
//
// TEXT is UTF-8: a pointer and a length in bytes. The length TOUCHSTONE_NUL says that the text ends with a NUL. A NULL
// pointer is the empty text, or no text where that is allowed. The library keeps no pointer that it is given after a call
// has returned, unless the comment says so.
//
// OPTIONS are the text of a JSON object, with the names that each comment lists; NULL is {}. A name that isn't listed,
// or a value of another type, is an error.
//
// RESULTS through `char **text, size_t *length` are the caller's: free them with touchstone_free. They end with a NUL that
// the length doesn't count. `length` may be NULL.
//
// ERRORS. A function that can fail returns TOUCHSTONE_OK (0) or one of the kinds below. If `error` isn't NULL, *error then
// points at what happened, and is the caller's: free it with touchstone_error_free. Otherwise *error isn't touched, and
// neither are the other results. Functions that return a number return the kind as a negative one. A failed call has
// changed nothing.
//
// HANDLES are pointers that a function makes and a function named ..._free ends; NULL may be freed. A handle may be
// freed before or after the database that it came from. After the database was closed, its handles only give errors.
//
// THREADS. A touchstone_database may be used from any number of threads at a time. Any other handle may be used on any
// thread, by one call at a time. No handle may be freed while another call uses it. A comment that says "callback" names
// the thread that it comes on.
//
// FORK. A child that is forked while its parent has handles, or a call is at work there, can't use the library: each call fails
// at once with TOUCHSTONE_MISUSE (code "Misuse.forked"), frees of handles do nothing, and functions that can't fail give what
// they give for NULL. It is so whatever threads of the parent did at the fork. Programs that exec are free, and so are other
// children; but where the parent has used RocksDB, replicators or listeners, they are UNSUPPORTED in these.

#ifndef TOUCHSTONE_H
#define TOUCHSTONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this interface. Functions are added to a version, and never changed.
#define TOUCHSTONE_INTERFACE 1

// As the length of a text: it ends with a NUL.
#define TOUCHSTONE_NUL SIZE_MAX

typedef struct touchstone_database touchstone_database;
typedef struct touchstone_query touchstone_query;
typedef struct touchstone_rows touchstone_rows;
typedef struct touchstone_blob_writer touchstone_blob_writer;
typedef struct touchstone_blob touchstone_blob;
typedef struct touchstone_observer touchstone_observer;
typedef struct touchstone_emitter touchstone_emitter;
typedef struct touchstone_replicator touchstone_replicator;
typedef struct touchstone_listener touchstone_listener;

// ---------------------------------------------------------------------------------------------------------------- Errors

// The kinds of errors: the numbers of HTTP where there is one.
enum {
  TOUCHSTONE_OK = 0,
  TOUCHSTONE_BAD_REQUEST = 400,   // an argument, a body, a name or a query is wrong
  TOUCHSTONE_UNAUTHORIZED = 401,  // the key is wrong, or one is needed
  TOUCHSTONE_FORBIDDEN = 403,     // open for reading only, no access, or a validation function rejects it
  TOUCHSTONE_NOT_FOUND = 404,     // there is no such database, document, revision, blob or index
  TOUCHSTONE_TIMEOUT = 408,       // it took longer than its time limit
  TOUCHSTONE_CONFLICT = 409,      // another writer has changed the document
  TOUCHSTONE_DUPLICATE = 412,     // there is a file or database of that name
  TOUCHSTONE_TOO_LARGE = 413,     // a value, a result or a transaction is above a limit
  TOUCHSTONE_CANCELLED = 499,     // it was cancelled
  TOUCHSTONE_CORRUPT = 500,       // stored data can't be read
  TOUCHSTONE_UNSUPPORTED = 501,   // this release, engine or database can't do it
  TOUCHSTONE_BUSY = 503,          // another writer, reader or process is in the way
  TOUCHSTONE_DISK_FULL = 507,     // the disk or the file is full
  TOUCHSTONE_IO_ERROR = 590,      // the system or a library failed
  TOUCHSTONE_MISUSE = 591         // closed, freed, or called where it can't be: a mistake in the program
};

// What happened. Its texts end with NULs and live as long as it.
typedef struct touchstone_error {
  int32_t kind;          // as above
  int32_t can_retry;     // 1 if the same call may succeed later although nothing is changed
  const char *code;      // the error's finer name: "DocumentError.conflict"
  const char *message;   // for people: what was tried, what was found, what to do
  const char *path;      // the file or directory concerned, or NULL
  const char *document;  // the ID of the document concerned, or NULL
  int64_t offset;        // the place in the query or JSON, in bytes from 0, or -1
  int32_t line, column;  // the same in a query, from 1; the column in characters; or 0
} touchstone_error;

// Frees an error. Any thread.
void touchstone_error_free(touchstone_error *error);

// Frees a text that a function has handed out. Any thread.
void touchstone_free(void *text);

// --------------------------------------------------------------------------------------------------------------- Library

// The version of the library, "0.3.0". It lives as long as the process.
const char *touchstone_version(void);

// Chooses what the library writes to standard error: "none", "error", "warning" (default), "info", "verbose", "debug", or
// levels of domains, "warning,sync=debug". Any thread.
int32_t touchstone_set_log(const char *levels, size_t length, touchstone_error **error);

// The names of the engines of this library, as a JSON array.
int32_t touchstone_engines(char **json, size_t *length, touchstone_error **error);

// What is done with handles that aren't any more.
enum {
  TOUCHSTONE_HANDLES_TRUSTED = 0,  // nothing: a freed handle is undefined behaviour. The default
  TOUCHSTONE_HANDLES_CHECKED = 1,  // each call looks whether its handle is one, of the right type and not freed: MISUSE
  TOUCHSTONE_HANDLES_FATAL = 2     // the same, and ends the process with a message and abort()
};

// Chooses one of them, before the first handle is made; afterwards it is MISUSE. The environment variable
// TOUCHSTONE_HANDLES ("checked", "fatal") does so too. Checking costs a lock each call, and the memory of a freed handle,
// 48 bytes, isn't used again.
int32_t touchstone_check_handles(int32_t mode, touchstone_error **error);

// ------------------------------------------------------------------------------------------------------------- Databases

// Opens the database in the directory PATH.touchstone (the suffix may be left out), or makes one. Any thread.
//
// Options:
//   engine              of a new database: "sqlite" (default), "lmdb", "sqlcipher", "lmdb-encrypted", "rocksdb", …
//   requireEngine       true converts an existing database to `engine` before it opens
//   create              "ifMissing" (default), "never", "always": must be new
//   makeParents         true makes missing parent directories
//   readOnly            true writes nothing, not even in the directory
//   inMemory            true keeps everything in memory until the close. The path is ignored
//   durability          "normal" (default: commits survive the process), "full" (a power loss too), "none"
//   passphrase          the key of an encrypted database: text
//   keyHex              or 32 bytes as 64 hexadecimal digits
//   keyFile             or the path of a file with one of them
//   cacheBytes          the most memory of the engine's page cache
//   treeDepth           the number of revisions that are kept per branch
//   verifyChecksums     true compares each entry that is read with its checksum
//   checkFile           true checks the engine's file before it is used
//   watchOthers         true tells observers of the changes of other processes by themselves
//   scripts             the path of touchstone-scripts, which runs the JavaScript of design documents
int32_t touchstone_open(
  const char *path, size_t path_length, const char *options, size_t options_length,
  touchstone_database **database, touchstone_error **error);

// Closes the database; BUSY while it is read elsewhere, or in a batch. Afterwards its calls fail with MISUSE. Any thread.
int32_t touchstone_close(touchstone_database *database, touchstone_error **error);

// Frees the handle, and closes the database if it is open. A batch that was begun with it is rolled back.
void touchstone_database_free(touchstone_database *database);

// Closes the database and removes its files. BUSY if it is open elsewhere.
int32_t touchstone_delete_database(touchstone_database *database, touchstone_error **error);

// Tells what the database is, as a JSON object: path, name, engine, library, encrypted, readOnly, documents, tombstones,
// lastSequence, publicUUID.
int32_t touchstone_describe(
  touchstone_database *database, char **json, size_t *length, touchstone_error **error);

// The number of live documents, in constant time; a negative kind if it fails.
int64_t touchstone_count(touchstone_database *database, touchstone_error **error);

// ------------------------------------------------------------------------------------------------------------- Documents

// A revision of a document.
typedef struct touchstone_revision {
  uint64_t sequence;         // of the change that made it
  uint32_t flags;            // as below
  uint32_t revision_length;  // in bytes
  char revision[272];        // its ID, "2-448bebaeae6f31e1…", and a NUL
} touchstone_revision;

enum {
  TOUCHSTONE_DELETED = 1,    // it is a tombstone
  TOUCHSTONE_CONFLICTED = 2  // the document has more than one live leaf
};

// Copies the body of a live document, a JSON object, into `buffer`, which has room for `capacity` bytes, and returns its
// length: -404 if there is no such document, which makes no error, and another negative kind if it fails.
//
// If the length is greater than `capacity`, nothing was copied: call again with a larger buffer. No NUL follows. It tells
// the document's current revision if `revision` isn't NULL. This is the fastest way to read. Any thread.
int64_t touchstone_read(
  touchstone_database *database, const char *id, size_t id_length, void *buffer, size_t capacity,
  touchstone_revision *revision, touchstone_error **error);

// Hands out the body of a document in `json`. NOT_FOUND if there is none. `flags` may have TOUCHSTONE_DELETED: also a
// tombstone is found. `revision` may be NULL. Any thread.
int32_t touchstone_get(
  touchstone_database *database, const char *id, size_t id_length, uint32_t flags, char **json, size_t *length,
  touchstone_revision *revision, touchstone_error **error);

// What happens when the stored document isn't the revision that a change is based on.
enum {
  TOUCHSTONE_LAST_WRITE_WINS = 0,  // the change goes on top of it
  TOUCHSTONE_FAIL_ON_CONFLICT = 1, // the call fails with CONFLICT
  TOUCHSTONE_ALLOW_CONFLICT = 2    // the document becomes conflicted: both are leaves
};

// Saves a JSON object as the new current revision of a document. Any thread.
//
// `base` is the ID of the revision that it is based on; NULL for a new document. `saved`, which may be NULL, gets the new
// revision. A property "_deleted": true makes a tombstone with the other properties.
int32_t touchstone_save(
  touchstone_database *database, const char *id, size_t id_length, const char *json, size_t json_length,
  const char *base, size_t base_length, int32_t policy, touchstone_revision *saved, touchstone_error **error);

// Saves many documents in one transaction, all or nothing. `texts` has them one after another without anything between:
// the ID of the first, its body, the ID of the second. `lengths` has the 2 * count lengths, in bytes. `saved` is NULL or has
// room for `count` revisions. If it fails and `failed` isn't NULL, that gets the number of the document, from 0. Any thread.
int32_t touchstone_save_many(
  touchstone_database *database, const char *texts, const uint64_t *lengths, size_t count, int32_t policy,
  touchstone_revision *saved, size_t *failed, touchstone_error **error);

// Deletes a document: its new current revision is a tombstone. NOT_FOUND if there is none. `base` and `policy` are those of
// touchstone_save. Any thread.
int32_t touchstone_delete(
  touchstone_database *database, const char *id, size_t id_length, const char *base, size_t base_length,
  int32_t policy, touchstone_revision *saved, touchstone_error **error);

// Removes a document with all its revisions, without a tombstone. NOT_FOUND if there is none. With `branch`, the ID of a
// leaf, only that branch. Any thread.
int32_t touchstone_purge(
  touchstone_database *database, const char *id, size_t id_length, const char *branch, size_t branch_length,
  touchstone_error **error);

// Sets when the document expires, in milliseconds since 1970; INT64_MAX for never. It is purged soon after. Any thread.
int32_t touchstone_set_expiration(
  touchstone_database *database, const char *id, size_t id_length, int64_t milliseconds, touchstone_error **error);

// When the document expires, in milliseconds since 1970; INT64_MAX if it doesn't. INT64_MIN if the call fails. Any thread.
int64_t touchstone_expiration(
  touchstone_database *database, const char *id, size_t id_length, touchstone_error **error);

// ------------------------------------------------------------------------------------------------ Revisions and conflicts

// Hands out all known revisions of a document as a JSON array: the current one, the other leaves, then their ancestors.
// Each has id, parent (or null), sequence, deleted, leaf, current and hasBody, and with `bodies` not 0 its body (or null). A
// document is in conflict if more than one leaf isn't deleted. NOT_FOUND if there is no document. Any thread.
int32_t touchstone_revisions(
  touchstone_database *database, const char *id, size_t id_length, int32_t bodies, char **json, size_t *length,
  touchstone_error **error);

// Hands out the body of one revision. NOT_FOUND if it isn't known, or its body isn't kept any more. Any thread.
int32_t touchstone_revision_body(
  touchstone_database *database, const char *id, size_t id_length, const char *revision, size_t revision_length,
  char **json, size_t *length, touchstone_error **error);

// Resolves a conflict: keeps the branch of the leaf `revision`, and ends every other live branch with a tombstone. `merged`,
// which may be NULL, is the body of a new revision on top. CONFLICT if it is no leaf any more. Any thread.
int32_t touchstone_resolve(
  touchstone_database *database, const char *id, size_t id_length, const char *revision, size_t revision_length,
  const char *merged, size_t merged_length, touchstone_error **error);

// Inserts a revision of another database. `history` is a JSON array of revision IDs, the newest first. Returns 1, or 0 if
// it was known already; a negative kind if it fails. Any thread.
int32_t touchstone_apply(
  touchstone_database *database, const char *id, size_t id_length, const char *json, size_t json_length,
  const char *history, size_t history_length, int32_t is_deleted, touchstone_error **error);

// --------------------------------------------------------------------------------------------------------------- Batches

// Runs `body` in one transaction, on the calling thread: all its writes are stored, or none. Calls of the database on this
// thread join it, and reads see its writes. Other writers wait.
//
// `body` returns 0 to commit. Another number rolls everything back, and is what touchstone_batch returns, without an
// error. It may be called again if a commit that it shared with others fails; `attempts` is the greatest number of calls,
// from 1. A batch in a batch joins it, and fails it if it fails.
int32_t touchstone_batch(
  touchstone_database *database, int32_t (*body)(void *context), void *context, int32_t attempts,
  touchstone_error **error);

// Begins a transaction that belongs to the calling thread, for languages that can't call back. Calls of this database on this
// thread, also with other handles, join it until touchstone_commit or touchstone_rollback. Other writers wait that long.
// MISUSE in a batch.
//
// The transaction runs on a thread of its own, so each call in it costs two switches of threads, 5 to 20 microseconds.
// touchstone_batch and touchstone_save_many have no such cost.
int32_t touchstone_begin(touchstone_database *database, touchstone_error **error);

// Commits what touchstone_begin began. If it fails, everything is rolled back, and the batch is over. MISUSE on a thread
// that has begun none.
int32_t touchstone_commit(touchstone_database *database, touchstone_error **error);

// Rolls back what touchstone_begin began. MISUSE on a thread that has begun none.
int32_t touchstone_rollback(touchstone_database *database, touchstone_error **error);

// ---------------------------------------------------------------------------------------------------- Queries and indexes

// Prepares a query of the language N1QL (docs/query.md). An error of the text has its place in offset, line and column.
// EXPLAIN before the query gives the plan as rows. Any thread.
//
// Options:
//   useIndexes    false reads all documents
//   memoryLimit   the most memory for rows that are sorted, grouped and joined, in bytes
//   temporaryFileLimit  the most bytes of temporary files for rows that the memory doesn't hold; more is TOO_LARGE
//   temporaryDirectory  where these files are
//   rowLimit      more rows are TOO_LARGE
//   timeLimit     a longer run is TIMEOUT, in seconds
int32_t touchstone_query_new(
  touchstone_database *database, const char *text, size_t text_length, const char *options, size_t options_length,
  touchstone_query **query, touchstone_error **error);

// Frees a query. Its rows stay.
void touchstone_query_free(touchstone_query *query);

// Tells the names of the query's columns and parameters: {"columns": [...], "parameters": [...]}.
int32_t touchstone_query_describe(
  touchstone_query *query, char **json, size_t *length, touchstone_error **error);

// Runs the query and collects its rows in memory. `parameters` are options: the values of $name by their names. In a batch
// of this thread, the rows are those of the batch. It may run on several threads at once.
int32_t touchstone_query_run(
  touchstone_query *query, const char *parameters, size_t parameters_length, touchstone_rows **rows,
  touchstone_error **error);

// Runs the query on a thread of its own that is a few pieces of rows ahead of the reader, for results larger than memory.
// All rows are of one snapshot, which stays open until the rows end or are freed; while it is, the database can't be
// closed, and the file of LMDB can't use freed space again. In a batch of this thread the rows are collected.
int32_t touchstone_query_stream(
  touchstone_query *query, const char *parameters, size_t parameters_length, touchstone_rows **rows,
  touchstone_error **error);

// Ends all runs of the query that are going on, with CANCELLED. Any thread, also while other calls use it.
void touchstone_query_cancel(touchstone_query *query);

// Enumerates documents as a stream. Rows have the columns id, revision, sequence, deleted, conflicted, and body, which is
// missing unless `bodies` is true. Any thread.
//
// Options:
//   bodies             true reads the bodies
//   mode               "live" (default), "includingDeleted", "onlyConflicts"
//   order              "id" (default, by bytes), "sequence"
//   from, to           the first and the last ID, included
//   prefix             what IDs begin with
//   ids                only these, in this order
//   descending         true reverses the order
//   skip, limit        the number to leave out, and the greatest number after these
int32_t touchstone_documents(
  touchstone_database *database, const char *options, size_t options_length, touchstone_rows **rows,
  touchstone_error **error);

// Enumerates the changes after `sequence`, the oldest first, each document once: columns sequence, id, deleted, conflicted,
// fromSync. A stream. Any thread.
int32_t touchstone_changes(
  touchstone_database *database, uint64_t sequence, touchstone_rows **rows, touchstone_error **error);

// Frees rows. Of a stream, its run ends before this returns.
void touchstone_rows_free(touchstone_rows *rows);

// The number of columns, and the name of one: "" if there is none. It lives as long as the rows.
int32_t touchstone_rows_width(touchstone_rows *rows);
const char *touchstone_rows_name(touchstone_rows *rows, int32_t column, size_t *length);

// The number of all rows that were collected; -1 for a stream.
int64_t touchstone_rows_count(touchstone_rows *rows);

// Reads the next rows as a JSON array of objects, about `bytes` long and at least one row, and returns their number: 0 at
// the end, a negative kind if it fails. *json belongs to the rows, and is valid until their next call.
int64_t touchstone_rows_json(
  touchstone_rows *rows, size_t bytes, const char **json, size_t *length, touchstone_error **error);

// Moves to the next row: 1 if there is one, 0 at the end, a negative kind if it fails.
int32_t touchstone_rows_next(touchstone_rows *rows, touchstone_error **error);

// The types of values.
enum {
  TOUCHSTONE_MISSING = 0,  // there is no value
  TOUCHSTONE_NULL = 1,
  TOUCHSTONE_BOOL = 2,
  TOUCHSTONE_INT64 = 3,
  TOUCHSTONE_DOUBLE = 4,   // also an integer beyond 64 bits
  TOUCHSTONE_TEXT = 5,
  TOUCHSTONE_JSON = 6      // an array or an object
};

// The values of the row that touchstone_rows_next has moved to. A column that isn't there is missing.
//
// A text belongs to the rows, and is valid until their next touchstone_rows_next or touchstone_rows_json. It is the
// string of a value of type TEXT, and the JSON of any other; it ends with a NUL. NULL if the value is missing.
int32_t touchstone_row_type(touchstone_rows *rows, int32_t column);
int64_t touchstone_row_int64(touchstone_rows *rows, int32_t column);  // 0 if it is no number; a double is cut
double touchstone_row_double(touchstone_rows *rows, int32_t column);  // 0 if it is no number
const char *touchstone_row_text(touchstone_rows *rows, int32_t column, size_t *length);

// A column of all collected rows, laid out as in Apache Arrow: bitmaps have their lowest bit first.
typedef struct touchstone_column {
  int32_t type;             // of all values: NULL if there are none; otherwise BOOL, INT64, DOUBLE, TEXT, or JSON for mixed ones
  int64_t count;            // of rows
  int64_t null_count;       // of those, null or missing
  const uint8_t *validity;  // a bit for each row, 1 if it has a value; NULL if all have one
  const void *values;       // int64_t or double for each row; a bit for each of BOOL; the UTF-8 of TEXT and JSON
  const int64_t *offsets;   // of TEXT and JSON: count + 1 offsets into `values`, otherwise NULL
} touchstone_column;

// Lays out a column of collected rows. Its memory belongs to the rows. MISUSE for a stream.
int32_t touchstone_rows_column(
  touchstone_rows *rows, int32_t column, touchstone_column *result, touchstone_error **error);

// Makes an index, or replaces one of this name with another definition. Returns 1 if it was made, 0 if it was there; a
// negative kind if it fails. Any thread.
//
// Options:
//   on                expressions: ["type", "LOWER(name)"]
//   where             a condition; only documents that meet it are in the index
//   unnest            an array, "reviews AS r": an entry for each of its items
//   fullText          true makes a full-text index of the words in `on`, for MATCH. With it:
//   language          "english", "en", …; none stems no words
//   ignoreAccents     true
//   stopWords         false for none, or an array of words; by default those of the language
//   weights           a number for each expression, for RANK
int32_t touchstone_create_index(
  touchstone_database *database, const char *name, size_t name_length, const char *options, size_t options_length,
  touchstone_error **error);

// Removes an index. NOT_FOUND if there is none. Any thread.
int32_t touchstone_delete_index(
  touchstone_database *database, const char *name, size_t name_length, touchstone_error **error);

// Tells all indexes, as an array of {"name", "kind": "value" or "fulltext", "definition": text}. Any thread.
int32_t touchstone_indexes(
  touchstone_database *database, char **json, size_t *length, touchstone_error **error);

// ----------------------------------------------------------------------------------------------------------------- Blobs

// Begins a blob, whose bytes come in pieces, in constant memory.
int32_t touchstone_blob_writer_new(
  touchstone_database *database, touchstone_blob_writer **writer, touchstone_error **error);

// Adds bytes. After an error the writer can only be freed.
int32_t touchstone_blob_write(
  touchstone_blob_writer *writer, const void *bytes, size_t count, touchstone_error **error);

// Ends the blob, and hands out the object that refers to it: {"@type": "blob", "digest": "sha1-…", "length": 12,
// "content_type": "…"}. Put that into a document and save it: what no saved document has is removed after the close.
int32_t touchstone_blob_finish(
  touchstone_blob_writer *writer, const char *content_type, size_t content_type_length, char **json, size_t *length,
  touchstone_error **error);

// Frees a writer. A blob that wasn't ended is gone.
void touchstone_blob_writer_free(touchstone_blob_writer *writer);

// Opens a blob for reading: by its object in a document, or by its digest alone. NOT_FOUND if it isn't stored.
int32_t touchstone_blob_open(
  touchstone_database *database, const char *reference, size_t reference_length, touchstone_blob **blob,
  touchstone_error **error);

// The length of the blob in bytes.
uint64_t touchstone_blob_length(touchstone_blob *blob);

// Reads the next bytes into `buffer`, at most `capacity`, and returns their number: 0 at the end, a negative kind if it fails.
// CORRUPT if the stored bytes were changed.
int64_t touchstone_blob_read(touchstone_blob *blob, void *buffer, size_t capacity, touchstone_error **error);

// Moves to an offset from the beginning.
int32_t touchstone_blob_seek(touchstone_blob *blob, uint64_t offset, touchstone_error **error);

// Frees the reader of a blob.
void touchstone_blob_free(touchstone_blob *blob);

// ------------------------------------------------------------------------------------------- Observers and live queries

// Callbacks come on threads of the library, one at a time for each observer. They may use the library, and may free their
// own observer. touchstone_observer_free on another thread waits for a callback that runs; after it, none comes. So it must
// not be called while the caller holds a lock that the callback waits for.

// Tells of each commit that changed documents: of all, or of the one with the ID `id`. `json` lives until the callback
// returns: {"changes": [{"kind": "saved", "purged" or "expired", "id", "revision" (or null), "sequence", "deleted",
// "conflicted", "fromSync"}], "missedSince": a sequence, or null}. Of a document that changed more than once, only the last
// change. Observers don't slow down writers.
int32_t touchstone_observe(
  touchstone_database *database, const char *id, size_t id_length,
  void (*callback)(void *context, const char *json, size_t length), void *context, touchstone_observer **observer,
  touchstone_error **error);

// Runs the query now and after each commit that may change its rows, and hands over the rows when they have changed. `rows`
// belongs to the callback, which frees it; it is NULL if the run failed, and then `error`, which lives until the
// callback returns, says why.
int32_t touchstone_observe_query(
  touchstone_query *query, const char *parameters, size_t parameters_length,
  void (*callback)(void *context, touchstone_rows *rows, const touchstone_error *error), void *context,
  touchstone_observer **observer, touchstone_error **error);

// Looks for commits of other processes, and tells observers of them.
int32_t touchstone_notice_changes(touchstone_database *database, touchstone_error **error);

// Ends an observer.
void touchstone_observer_free(touchstone_observer *observer);

// ----------------------------------------------------------------------------------------------------------------- Views

// Gives a view its map function (docs/views.md). `map` is called for each document, with its body and _id and _rev among it,
// on any thread, by several threads at once for several views; it calls touchstone_emit and must depend on the document
// alone. A status that isn't 0 is a failure for this document only. The functions stay until the database is closed or
// the view is defined again; `context` has to live as long.
//
// Options:
//   version        names the function: another version builds the rows again. Required
//   reduce         "count", "sum", "min", "max", "average", "median", "stddev", "stats"
//   documentType   only documents with this text in "type"
//   collation      "unicode" (default), "root", "ascii", "raw"
int32_t touchstone_view_define(
  touchstone_database *database, const char *name, size_t name_length, const char *options, size_t options_length,
  int32_t (*map)(void *context, touchstone_emitter *emitter, const char *json, size_t length), void *context,
  touchstone_error **error);

// Emits a row from a map function, with JSON as the key and the value; NULL is no value. Returns BAD_REQUEST if one isn't JSON.
int32_t touchstone_emit(
  touchstone_emitter *emitter, const char *key, size_t key_length, const char *value, size_t value_length);

// Brings the view up to date and hands out rows: {"rows": [{"id", "key", "value", "document"}], "total": rows of the view,
// "sequence": of the database}. Reduced rows have no id. Views of design documents have the name "design/name". Any thread.
//
// Options:
//   startKey, endKey, keys          as in CouchDB: JSON
//   startID, endID                  of documents, among the rows with those keys
//   includeStart, includeEnd        false leaves them out
//   prefixMatch                     the level at which the upper bound is a prefix
//   descending, skip, limit
//   reduce                          false gives the rows as they were emitted
//   group, groupLevel               one row of those with equal keys, or with equal first items
//   update                          "before" (default), "never", "after"
//   documents                       true adds the bodies
int32_t touchstone_view_query(
  touchstone_database *database, const char *name, size_t name_length, const char *options, size_t options_length,
  char **json, size_t *length, touchstone_error **error);

// ----------------------------------------------------------------------------------------------------------- Maintenance

// Tells how far an operation is, several times a second, on the calling thread. A status that isn't 0 ends it: it changes
// nothing, and returns that status without an error.
typedef int32_t (*touchstone_progress)(void *context, const char *phase, int64_t done, int64_t total);

// Drops the bodies of replaced revisions and blobs that no revision has, and returns space to the file system. Any thread.
int32_t touchstone_compact(touchstone_database *database, touchstone_error **error);

// Looks for faults, and hands out an array of them as texts: [] if the database is sound. `deep` not 0 reads every body and
// blob. Any thread.
int32_t touchstone_check(
  touchstone_database *database, int32_t deep, char **json, size_t *length, touchstone_error **error);

// Compares two databases on any engines: {"compared": number of documents, "differences": [{"id", "kind", "text"}]}, at most
// 1,000 of them. `flags`: 1 compares sequences too, 2 only current revisions. Any thread.
int32_t touchstone_verify(
  touchstone_database *database, touchstone_database *other, uint32_t flags, char **json, size_t *length,
  touchstone_error **error);

// Converts a database that isn't open to another engine: everything is kept, and verified before it replaces the old one.
//
// `json`, which may be NULL, gets what the result lacks because the database lacked it already: {"missingBlobs": number of
// blobs, "documents": number of documents that name them, "places": [{"document", "digest", "path"}], at most 1,000}.
//
// Options:
//   engine                                   the new engine. Required
//   target                                   the path of the new database; without it, in place
//   passphrase, keyHex, keyFile              the key of an encrypted database
//   newPassphrase, newKeyHex, newKeyFile     the key of the result
int32_t touchstone_convert(
  const char *path, size_t path_length, const char *options, size_t options_length, touchstone_progress progress,
  void *context, char **json, size_t *length, touchstone_error **error);

// Makes a backup of the database at `path`: a database at `target` that is the same at one moment, with its UUIDs, sequences,
// engine and key. The database may be open, and others may write meanwhile. The backup appears when it is complete, compared
// with what was read, and synced to disk. Only one of the two should sync: they are the same peer to others.
//
// `json`, which may be NULL, gets what the backup lacks, as touchstone_convert says it. DUPLICATE if there is something at
// `target`; BUSY if another process has the database open and its engine is for one process at a time. Any thread.
//
// Options: passphrase, keyHex or keyFile, the key of an encrypted database, which is also that of the backup.
int32_t touchstone_backup(
  const char *path, size_t path_length, const char *target, size_t target_length, const char *options,
  size_t options_length, touchstone_progress progress, void *context, char **json, size_t *length,
  touchstone_error **error);

// Makes a database at `target` from one of Couchbase Lite 1.x, and hands out a report (docs/upgrade.md).
//
// Options:
//   engine                                        the new engine
//   passphrase, keyHex, keyFile                   the key of the new database
//   sourcePassphrase, sourceKeyHex, sourceKeyFile the key of the old one
//   winners                                       true carries only current revisions
//   strict                                        true fails if anything can't be carried over
//   verify                                        true reads the old one again and compares
int32_t touchstone_upgrade(
  const char *source, size_t source_length, const char *target, size_t target_length, const char *options,
  size_t options_length, touchstone_progress progress, void *context, char **json, size_t *length,
  touchstone_error **error);

// Changes the key of an open encrypted database. Options: newPassphrase, newKeyHex or newKeyFile.
int32_t touchstone_change_key(
  touchstone_database *database, const char *options, size_t options_length, touchstone_error **error);

// ------------------------------------------------------------------------------------------------------------------ Sync

// Makes a replicator of the database with another one (docs/sync.md), which begins at touchstone_replicator_start. `target`
// is another open database, or NULL if the options have a URL. Both must stay open while it runs.
//
// Options:
//   url                  ws://…, wss://…, http://… or https://host:port/name
//   direction            "pushAndPull" (default), "push", "pull"
//   continuous           true goes on until it is stopped
//   documentIDs          only these
//   channels, filter, filterParameters   what the other side chooses by
//   user, password       or token
//   headers              an object of texts
//   pinnedCertificate    the path of the server's certificate, in DER or PEM
//   acceptSelfSigned     true
//   createTarget         true makes the other database, over HTTP
//   keepConflicts        true pushes conflicts as branches
//   reset                true forgets how far earlier replications came
//   maximumRetries, heartbeat (seconds)
int32_t touchstone_replicator_new(
  touchstone_database *database, touchstone_database *target, const char *options, size_t options_length,
  touchstone_replicator **replicator, touchstone_error **error);

// Starts it, or stops it. Both return at once, on any thread.
int32_t touchstone_replicator_start(touchstone_replicator *replicator, touchstone_error **error);
int32_t touchstone_replicator_stop(touchstone_replicator *replicator, touchstone_error **error);

// Waits until it has stopped, at most so many seconds; negative: without limit. Returns 1 if it has, 0 if the time is over.
int32_t touchstone_replicator_wait(
  touchstone_replicator *replicator, double seconds, touchstone_error **error);

// Tells {"activity": "stopped", "offline", "connecting", "idle" or "busy", "completed", "total", "sent", "received" (bytes),
// "error": {"domain", "code", "message"} or null}. Any thread.
int32_t touchstone_replicator_status(
  touchstone_replicator *replicator, char **json, size_t *length, touchstone_error **error);

// Tells of each new status, as above, and of documents: {"documents": [{"id", "revision", "deleted", "push", "conflict",
// "error"}]}. The rules of observers hold.
int32_t touchstone_replicator_observe(
  touchstone_replicator *replicator, void (*callback)(void *context, const char *json, size_t length), void *context,
  touchstone_observer **observer, touchstone_error **error);

// Frees a replicator, and stops it.
void touchstone_replicator_free(touchstone_replicator *replicator);

// Makes a listener, with which other devices replicate (docs/server.md). It begins at touchstone_listener_start.
//
// Options:
//   address              "127.0.0.1" by default
//   port                 any by default
//   http                 true answers clients of CouchDB too
//   readOnly             true
//   users                an object of names and passwords; or
//   userFile             the path of a file of users
//   certificate, key     paths of PEM files; or
//   selfSigned           the path of a directory for a certificate of its own
//   refuseConflicts      true
//   openToAll            true lets everybody in from other machines
int32_t touchstone_listener_new(
  const char *options, size_t options_length, touchstone_listener **listener, touchstone_error **error);

// Serves a database under a name, from the next start on. It must stay open while the listener runs.
int32_t touchstone_listener_add(
  touchstone_listener *listener, const char *name, size_t name_length, touchstone_database *database,
  touchstone_error **error);

// Starts it.
int32_t touchstone_listener_start(touchstone_listener *listener, touchstone_error **error);

// Stops it, and returns when its connections have ended, after at most ten seconds.
int32_t touchstone_listener_stop(touchstone_listener *listener, touchstone_error **error);

// Tells {"port", "url", "httpURL", "urls", "fingerprint"}; null if it doesn't run.
int32_t touchstone_listener_describe(
  touchstone_listener *listener, char **json, size_t *length, touchstone_error **error);

// Frees a listener, and stops it.
void touchstone_listener_free(touchstone_listener *listener);

#ifdef __cplusplus
}
#endif

#endif
