import CAvahi

/// Avahi's client library, opened when it is first needed.
struct AvahiLibrary: @unchecked Sendable {
  /// The functions. They stay where they are until the process ends.
  let functions: UnsafePointer<CAvahiFunctions>

  /// The library of the system; nil if there is none.
  static let system = try? AvahiLibrary()

  /// Opens a library. Throws `DiscoveryError` if it isn't there, or is another one.
  init(path: String? = nil) throws {
    var reason = [CChar](repeating: 0, count: 256)
    guard let functions = cavahi_load(path, &reason, reason.count) else {
      let text = reason.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      throw DiscoveryError("Avahi's client library can't be opened: \(String(decoding: text, as: UTF8.self))")
    }
    self.functions = functions
  }

  /// The text of an error.
  func message(_ error: Int32) -> String {
    functions.pointee.strerror(error).map { String(cString: $0) } ?? "error \(error)"
  }
}

/// Why services can't be announced or found.
package struct DiscoveryError: Error, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
