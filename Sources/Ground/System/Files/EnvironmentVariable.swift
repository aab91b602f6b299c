#if canImport(Glibc)
  import Glibc
#endif

/// The environment variables that Touchstone reads. A variable that is empty counts as unset.
package enum EnvironmentVariable {
  /// Returns the text of a variable, or nil if it is unset or empty.
  package static func value(_ name: String) -> String? {
    meaning(of: getenv(name).map { String(cString: $0) })
  }

  /// Returns the text, or nil if it is nil or empty.
  package static func meaning(of text: String?) -> String? { text?.isEmpty ?? true ? nil : text }
}
