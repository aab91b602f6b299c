import Storage
import System
import Touchstone

/// JSON that a user gives.
enum JSONInput {
  /// The object in `json`. `what` names it in errors: "the body".
  static func object(_ json: [UInt8], _ what: String) throws -> JSONValue {
    let value: JSONValue
    do { value = try json.withUnsafeBytes { try JSONValue(json: $0) } } catch {
      throw UsageError("\(what) isn't valid JSON: \(error)")
    }
    guard case .object = value else {
      throw UsageError("\(what) isn't a JSON object, such as {\"type\":\"hotel\"}")
    }
    return value
  }
}

/// A file that a user names.
enum InputFile {
  /// The bytes of the file at `path`, or of standard input if it is `-`.
  static func bytes(_ path: String) throws -> [UInt8] {
    guard path != "-" else { return try StandardInput.bytes() }
    do { return try AtomicFile.read(path, limit: 1 << 30, mayBePipe: true) } catch let error as StorageError {
      throw UsageError("\(error)")
    }
  }
}
