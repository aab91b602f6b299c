// A VFS that writes the frames of a commit together.
//
// The library writes each frame of the write-ahead log by two calls, one for its header of 24 bytes and one for its page
// (https://sqlite.org/walformat.html). A commit of one document has three or four frames. This VFS puts the frames of a commit
// into a buffer and writes them by one call of the VFS below.
//
// The library believes that a frame is in the file as soon as the call to write it returns. So frames are held back only while
// a COMMIT runs (csqlite_step_commit), and only until the frame that ends the commit, whose header has the size of the file in
// pages and not 0. The call for the page of that frame writes everything, and its failure is the failure of the commit. The
// library shows the new frames to itself and to others after that call. All other calls on the log write first what is held
// back.

#include "CSQLite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  frameHeaderBytes = 24,
  // In the header of a frame: the size of the file after the commit, 4 bytes; 0 in frames that don't end one.
  commitAt = 4,
  bufferBytes = 64 << 10,
};

typedef struct LogLayer {
  sqlite3_vfs vfs;
  sqlite3_vfs *below;
  // The methods by the version that the VFS below has of them, less one.
  sqlite3_io_methods methods[3];
} LogLayer;

// The file of a log. The file of the VFS below follows it in memory.
typedef struct LogFile {
  sqlite3_file base;
  // NULL until the first commit.
  char *held;
  int count;
  // Whether a COMMIT runs.
  int joins;
  // Whether the last bytes held are a header, and whether it ends the commit.
  int hasHeader, isLast;
  // Where the next bytes come, if they continue what the commit has written; 0 before its first frame.
  sqlite3_int64 end;
} LogFile;

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((LogFile *)file + 1); }

static int writeHeld(LogFile *log) {
  int count = log->count;
  if (count == 0) return SQLITE_OK;
  log->count = 0;
  log->hasHeader = 0;
  sqlite3_file *file = below(&log->base);
  return file->pMethods->xWrite(file, log->held, count, log->end - count);
}

static void hold(LogFile *log, const void *bytes, int count, sqlite3_int64 offset) {
  memcpy(log->held + log->count, bytes, (size_t)count);
  log->count += count;
  log->end = offset + count;
}

static int writeLog(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
  LogFile *log = (LogFile *)file;
  if (log->joins) {
    if (log->count && offset != log->end) {
      int code = writeHeld(log);
      if (code != SQLITE_OK) return code;
    }
    // Frames before the end are written again, for their checksums. Nothing may follow that would write them.
    if (!log->hasHeader && count == frameHeaderBytes && offset >= log->end && log->held) {
      static const char none[4] = {0};
      hold(log, bytes, count, offset);
      log->hasHeader = 1;
      log->isLast = memcmp((const char *)bytes + commitAt, none, sizeof none) != 0;
      return SQLITE_OK;
    }
    if (log->hasHeader && log->count + count <= bufferBytes) {
      hold(log, bytes, count, offset);
      log->hasHeader = 0;
      // The next frame has a page of the same size.
      int isFull = log->count + frameHeaderBytes + count > bufferBytes;
      return log->isLast || isFull ? writeHeld(log) : SQLITE_OK;
    }
    int code = writeHeld(log);
    if (code != SQLITE_OK) return code;
  }
  return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
}

static int closeLog(sqlite3_file *file) {
  free(((LogFile *)file)->held);
  return below(file)->pMethods->xClose(below(file));
}

#define WRITE_HELD_FIRST                                                                                     \
  int code = writeHeld((LogFile *)file);                                                                     \
  if (code != SQLITE_OK) return code;

static int readLog(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}
static int truncateLog(sqlite3_file *file, sqlite3_int64 size) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xTruncate(below(file), size);
}
static int syncLog(sqlite3_file *file, int flags) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xSync(below(file), flags);
}
static int sizeOfLog(sqlite3_file *file, sqlite3_int64 *size) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xFileSize(below(file), size);
}
static int fetchLog(sqlite3_file *file, sqlite3_int64 offset, int count, void **bytes) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xFetch(below(file), offset, count, bytes);
}
static int controlLog(sqlite3_file *file, int what, void *argument) {
  WRITE_HELD_FIRST
  return below(file)->pMethods->xFileControl(below(file), what, argument);
}

// The rest is passed on.
static int lockLog(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }
static int unlockLog(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }
static int isLogReserved(sqlite3_file *file, int *is) {
  return below(file)->pMethods->xCheckReservedLock(below(file), is);
}
static int sectorOfLog(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }
static int deviceOfLog(sqlite3_file *file) { return below(file)->pMethods->xDeviceCharacteristics(below(file)); }
static int mapShared(sqlite3_file *file, int region, int size, int extends, void volatile **memory) {
  return below(file)->pMethods->xShmMap(below(file), region, size, extends, memory);
}
static int lockShared(sqlite3_file *file, int offset, int count, int flags) {
  return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
static void orderShared(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }
static int unmapShared(sqlite3_file *file, int deletes) {
  return below(file)->pMethods->xShmUnmap(below(file), deletes);
}
static int giveBack(sqlite3_file *file, sqlite3_int64 offset, void *bytes) {
  return below(file)->pMethods->xUnfetch(below(file), offset, bytes);
}

static int openFile(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *opened) {
  LogLayer *layer = (LogLayer *)vfs;
  // Other files have nothing of this VFS.
  if (!(flags & SQLITE_OPEN_WAL)) return layer->below->xOpen(layer->below, name, file, flags, opened);
  memset(file, 0, sizeof(LogFile));
  int code = layer->below->xOpen(layer->below, name, below(file), flags, opened);
  const sqlite3_io_methods *methods = below(file)->pMethods;
  // The library closes a file that has methods, also one that couldn't be opened.
  if (methods) file->pMethods = &layer->methods[methods->iVersion < 3 ? methods->iVersion - 1 : 2];
  return code;
}

static int deleteFile(sqlite3_vfs *vfs, const char *name, int syncs) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xDelete(below, name, syncs);
}
static int accessFile(sqlite3_vfs *vfs, const char *name, int flags, int *is) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xAccess(below, name, flags, is);
}
static int fullName(sqlite3_vfs *vfs, const char *name, int size, char *full) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xFullPathname(below, name, size, full);
}
static int fillRandom(sqlite3_vfs *vfs, int count, char *bytes) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xRandomness(below, count, bytes);
}
static int waitFor(sqlite3_vfs *vfs, int microseconds) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xSleep(below, microseconds);
}
static int lastError(sqlite3_vfs *vfs, int size, char *text) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xGetLastError(below, size, text);
}
static int currentTime(sqlite3_vfs *vfs, double *time) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xCurrentTime(below, time);
}
static int currentMilliseconds(sqlite3_vfs *vfs, sqlite3_int64 *time) {
  sqlite3_vfs *below = ((LogLayer *)vfs)->below;
  return below->xCurrentTimeInt64(below, time);
}

static LogLayer *makeLayer(const CSQLiteFunctions *functions) {
  sqlite3_vfs *below = functions->vfs_find(NULL);
  if (!below || below->iVersion < 2 || !below->xCurrentTimeInt64) return NULL;
  LogLayer *layer = calloc(1, sizeof *layer);
  if (!layer) return NULL;
  layer->below = below;
  layer->vfs = (sqlite3_vfs){
      .iVersion = 2,
      .szOsFile = (int)sizeof(LogFile) + below->szOsFile,
      .mxPathname = below->mxPathname,
      .zName = "touchstone-log",
      .xOpen = openFile,
      .xDelete = deleteFile,
      .xAccess = accessFile,
      .xFullPathname = fullName,
      // The library loads no extensions.
      .xRandomness = fillRandom,
      .xSleep = waitFor,
      .xCurrentTime = currentTime,
      .xGetLastError = lastError,
      .xCurrentTimeInt64 = currentMilliseconds,
  };
  for (int version = 1; version <= 3; version++) {
    layer->methods[version - 1] = (sqlite3_io_methods){
        .iVersion = version,
        .xClose = closeLog,
        .xRead = readLog,
        .xWrite = writeLog,
        .xTruncate = truncateLog,
        .xSync = syncLog,
        .xFileSize = sizeOfLog,
        .xLock = lockLog,
        .xUnlock = unlockLog,
        .xCheckReservedLock = isLogReserved,
        .xFileControl = controlLog,
        .xSectorSize = sectorOfLog,
        .xDeviceCharacteristics = deviceOfLog,
        .xShmMap = mapShared,
        .xShmLock = lockShared,
        .xShmBarrier = orderShared,
        .xShmUnmap = unmapShared,
        .xFetch = fetchLog,
        .xUnfetch = giveBack,
    };
  }
  if (functions->vfs_register(&layer->vfs, 0) == SQLITE_OK) return layer;
  free(layer);
  return NULL;
}

const char *csqlite_log_layer(const CSQLiteFunctions *functions) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  sqlite3_vfs *vfs = functions->vfs_find("touchstone-log");
  if (!vfs) {
    LogLayer *layer = makeLayer(functions);
    if (layer) vfs = &layer->vfs;
  }
  pthread_mutex_unlock(&mutex);
  return vfs ? vfs->zName : NULL;
}

static LogFile *logOf(const CSQLiteFunctions *functions, sqlite3 *db) {
  sqlite3_file *file = NULL;
  int code = functions->file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (code != SQLITE_OK || !file || !file->pMethods || file->pMethods->xWrite != writeLog) return NULL;
  return (LogFile *)file;
}

int csqlite_step_commit(const CSQLiteFunctions *functions, sqlite3 *db, sqlite3_stmt *statement) {
  LogFile *log = logOf(functions, db);
  if (!log) return functions->step(statement);
  if (!log->held) log->held = malloc(bufferBytes);
  log->joins = 1;
  log->end = 0;
  int code = functions->step(statement);
  log->joins = 0;
  // Only a commit that has failed leaves frames. Nobody will look for them, and others may write in their place.
  log->count = 0;
  log->hasHeader = 0;
  return code;
}
