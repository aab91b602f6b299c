import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// What helps those who name a database of Couchbase Lite where one of Touchstone is expected.
enum LegacyHint {
  /// The end of the message of an error; empty if the error is another one.
  static func of(_ error: any Error) -> String {
    guard let error = error as? DatabaseError, [.notFound, .notADatabase].contains(error.code),
      let path = error.path, path.hasSuffix(".touchstone")
    else { return "" }
    let old = String(path.dropLast(".touchstone".count))
    guard old.hasSuffix(".cblite2") || old.hasSuffix(".cblite"), access(old, F_OK) == 0 else { return "" }
    return
      " (there is one of Couchbase Lite: 'touchstone upgrade' makes a database from one of 1.x, and 'touchstone import' takes "
      + "the documents of one of 2.x or 3.x)"
  }
}
