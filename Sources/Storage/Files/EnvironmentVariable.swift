#if canImport(Glibc)
  import Glibc
#endif

/// The variables of the environment that Touchstone reads. One that is set but empty counts as unset, everywhere.
package enum EnvironmentVariable {
  /// The text of the variable of that name; nil when it is unset or empty.
  package static func value(_ name: String) -> String? {
    meaning(of: getenv(name).map { String(cString: $0) })
  }

  /// What a variable's text means: nothing when it is empty.
  package static func meaning(of text: String?) -> String? { text?.isEmpty ?? true ? nil : text }
}
