import CRocksDB
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Errors of RocksDB. Its C interface gives them as texts, which begin with the kind.
enum RocksError {
  typealias Text = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

  /// Calls a function and throws its error. `unknown` is the code of what no other code describes.
  @discardableResult
  static func checked<Result>(
    _ what: String, _ path: String, _ unknown: StorageError.Code = .engineFailure,
    _ call: (Text) -> Result
  ) throws -> Result {
    var text: UnsafeMutablePointer<CChar>?
    let result = call(&text)
    guard let text else { return result }
    defer { rocksdb_free(text) }
    throw error(what, path, String(cString: text), unknown)
  }

  static func error(
    _ what: String, _ path: String, _ text: String, _ unknown: StorageError.Code = .engineFailure
  ) -> StorageError {
    let code: StorageError.Code =
      if text.hasPrefix("IO error") {
        if ["No space left", "File too large", "Disk quota"].contains(where: { text.contains($0) }) {
          .diskFull
        } else if text.contains("Permission denied") || text.contains("Read-only file system") {
          .permissionDenied
        } else if text.contains("lock") {
          .inUse
        } else if text.contains("No such file or directory") {
          // A file that the database's own list names.
          .damaged
        } else {
          .ioError
        }
      } else if text.hasPrefix("Corruption") {
        .damaged
      } else if text.contains("read only mode") {
        .readOnly
      } else {
        unknown
      }
    return StorageError(code, what, path: path, engineMessage: text)
  }
}
