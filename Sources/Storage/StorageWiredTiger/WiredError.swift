import CWiredTiger
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Error numbers of WiredTiger: those of the system, and its own, which are below -31,000.
struct WiredMessages: @unchecked Sendable {
  let path: String
  let messages: UnsafeMutablePointer<cwt_messages>?

  /// Throws unless a function has returned 0.
  @inline(__always)
  func check(_ result: Int32, _ what: @autoclosure () -> String) throws {
    if result != 0 { throw error(result, what()) }
  }

  /// `isOpening`: what no other code describes is damage.
  func error(_ result: Int32, _ what: String, isOpening: Bool = false) -> StorageError {
    let (said, diskError) = takeLast()
    let code: StorageError.Code =
      switch result {
      // The call has waited too long for room in the cache.
      case WT_ROLLBACK, WT_CACHE_FULL: .busy
      case WT_RUN_RECOVERY: .readOnly
      case WT_TRY_SALVAGE, WT_ERROR, WT_PANIC, ENOENT, EILSEQ: .damaged
      case EBUSY: .inUse
      case EINVAL, WT_NOTFOUND, WT_DUPLICATE_KEY: isOpening ? .damaged : .engineFailure
      case ENOSPC, EFBIG, EDQUOT: .diskFull
      case EACCES, EPERM, EROFS: .permissionDenied
      default: result > 0 ? .ioError : .engineFailure
      }
    return StorageError(
      diskError != 0 && (code == .damaged || code == .busy)
        ? ([ENOSPC, EFBIG, EDQUOT].contains(diskError) ? .diskFull : .ioError) : code,
      what, path: path, engineCode: Int(result),
      engineMessage: String(cString: wiredtiger_strerror(result)) + (said.isEmpty ? "" : ": " + said))
  }

  private func takeLast() -> (said: String, diskError: Int32) {
    guard let messages else { return ("", 0) }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { text in
      guard let start = text.baseAddress else { return ("", 0) }
      let diskError = cwt_take_error(messages, start, text.count)
      return (String(cString: start), diskError)
    }
  }
}
