// The process that the tests of .cblite2 databases start beside their own, and kill.
//
//   cblite2-child export DATABASE TARGET ENGINE      prints "begun", exports, prints "done"
//   cblite2-child import DATABASE SOURCE ENGINE      the same; the database is made when it isn't there

import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

do {
  let words = Array(CommandLine.arguments.dropFirst())
  guard words.count == 4 else { throw DatabaseError(.notFound, "export|import DATABASE PATH ENGINE") }
  let (database, path, engine) = (words[1], words[2], EngineName(rawValue: words[3]))
  let key = try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
  say("begun")
  switch words[0] {
  case "export":
    let opened = try Database.open(database, options: DatabaseOptions(isReadOnly: true, key: key))
    try opened.exportCBLite2(to: path)
    try opened.close()
  default:
    let opened = try Database.open(database, options: DatabaseOptions(engine: engine, key: key))
    // Short transactions: a kill falls between them as well as into one.
    try opened.importCBLite2(path, batchCount: 50)
    try opened.close()
  }
  say("done")
} catch {
  say("failed: \(error)")
  exit(1)
}
