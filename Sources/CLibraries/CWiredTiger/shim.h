#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <wiredtiger.h>

// Of the system, which declares it only for programs that ask for all of GNU's functions.
int fallocate(int file, int mode, off_t offset, off_t bytes);

// What Swift can't call: functions with any number of arguments.

static inline void cwt_set_key(WT_CURSOR *cursor, const void *bytes, size_t count) {
  WT_ITEM item = {.data = bytes, .size = count};
  cursor->set_key(cursor, &item);
}

static inline void cwt_set_value(WT_CURSOR *cursor, const void *bytes, size_t count) {
  WT_ITEM item = {.data = bytes, .size = count};
  cursor->set_value(cursor, &item);
}

static inline int cwt_get_key(WT_CURSOR *cursor, WT_ITEM *item) { return cursor->get_key(cursor, item); }

static inline int cwt_get_value(WT_CURSOR *cursor, WT_ITEM *item) { return cursor->get_value(cursor, item); }

// The value of a statistic, at a cursor over statistics.
static inline int cwt_get_statistic(WT_CURSOR *cursor, int number, int64_t *value) {
  const char *description = NULL, *text = NULL;
  cursor->set_key(cursor, number);
  int result = cursor->search(cursor);
  return result == 0 ? cursor->get_value(cursor, &description, &text, value) : result;
}

// The library's messages. It prints them unless a handler takes them; the last error is kept. What the disk said is
// kept as well: after a failed write the library gives up, and its last error says only that.
typedef struct {
  WT_EVENT_HANDLER handler;
  pthread_mutex_t mutex;
  int disk_error;
  int has_panicked;
  // The session in whose call the library gave up first.
  WT_SESSION *panicked;
  // Whether a write to the log has failed, in any session.
  int log_failed;
  char last[512];
} cwt_messages;

// Whether the disk or the system's means are at fault, and not the files' content.
static inline int cwt_is_disk_error(int error) {
  switch (error) {
  case ENOSPC: case EFBIG: case EDQUOT: case EIO: case EINTR: case EAGAIN: case ENOMEM: case EMFILE: case ENFILE: case ENOLCK:
    return 1;
  default: return 0;
  }
}

static inline int cwt_note_error(WT_EVENT_HANDLER *handler, WT_SESSION *session, int error, const char *message) {
  cwt_messages *messages = (cwt_messages *)handler;
  pthread_mutex_lock(&messages->mutex);
  if (cwt_is_disk_error(error) && messages->disk_error == 0) messages->disk_error = error;
  if (strstr(message, "fatal log failure") != NULL) messages->log_failed = 1;
  if (error == WT_PANIC && !messages->has_panicked) {
    messages->has_panicked = 1;
    messages->panicked = session;
  }
  strncpy(messages->last, message, sizeof messages->last - 1);
  pthread_mutex_unlock(&messages->mutex);
  return 0;
}

static inline int cwt_drop_message(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *message) {
  (void)handler;
  (void)session;
  (void)message;
  return 0;
}

// They must live as long as the connection.
static inline cwt_messages *cwt_make_messages(void) {
  cwt_messages *messages = calloc(1, sizeof *messages);
  if (messages == NULL) return NULL;
  pthread_mutex_init(&messages->mutex, NULL);
  messages->handler.handle_error = cwt_note_error;
  messages->handler.handle_message = cwt_drop_message;
  return messages;
}

static inline void cwt_free_messages(cwt_messages *messages) {
  if (messages == NULL) return;
  pthread_mutex_destroy(&messages->mutex);
  free(messages);
}

// Copies the last error and forgets it. Returns what the disk said, or 0. After a panic that is kept.
static inline int cwt_take_error(cwt_messages *messages, char *text, size_t bytes) {
  pthread_mutex_lock(&messages->mutex);
  int disk_error = messages->disk_error;
  strncpy(text, messages->last, bytes - 1);
  text[bytes - 1] = 0;
  messages->last[0] = 0;
  if (!messages->has_panicked) messages->disk_error = 0;
  pthread_mutex_unlock(&messages->mutex);
  return disk_error;
}

// Whether the library has given up: every call fails until the database is opened anew.
static inline int cwt_has_panicked(cwt_messages *messages) {
  pthread_mutex_lock(&messages->mutex);
  int has_panicked = messages->has_panicked;
  pthread_mutex_unlock(&messages->mutex);
  return has_panicked;
}

// Whether a commit of this session, which has succeeded, may be missing in the log.
static inline int cwt_has_lost(cwt_messages *messages, WT_SESSION *session) {
  pthread_mutex_lock(&messages->mutex);
  int has_lost = messages->log_failed || (messages->has_panicked && messages->panicked == session);
  pthread_mutex_unlock(&messages->mutex);
  return has_lost;
}

// Whether the library has given up, but not in a call of this session.
static inline int cwt_panicked_elsewhere(cwt_messages *messages, WT_SESSION *session) {
  pthread_mutex_lock(&messages->mutex);
  int panicked_elsewhere = messages->has_panicked && messages->panicked != session;
  pthread_mutex_unlock(&messages->mutex);
  return panicked_elsewhere;
}

// Forgets everything, for a new opening.
static inline void cwt_clear_messages(cwt_messages *messages) {
  pthread_mutex_lock(&messages->mutex);
  messages->disk_error = 0;
  messages->has_panicked = 0;
  messages->panicked = NULL;
  messages->log_failed = 0;
  messages->last[0] = 0;
  pthread_mutex_unlock(&messages->mutex);
}
