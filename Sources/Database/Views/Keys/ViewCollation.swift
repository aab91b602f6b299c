/// The order of a view's keys (docs/views.md, "Order of keys").
public enum ViewCollation: UInt8, Sendable, CaseIterable {
  /// null < false < true < numbers < strings < arrays < objects. Strings in the order of ICU's root collation, with the
  /// ASCII characters in the order that the Couchbase Lite guide documents: the grave accent and `^` come before `_`.
  case unicode = 1
  /// The same types. Strings in the order of ICU's root collation: the order of CouchDB, and of design documents.
  case root = 2
  /// The same types. Strings by the bytes of their UTF-8.
  case ascii = 3
  /// numbers < false < null < true < objects < arrays < strings. Strings by the bytes of their UTF-8.
  case raw = 4
}
