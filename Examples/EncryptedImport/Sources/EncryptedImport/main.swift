// Makes an encrypted database from one of Couchbase Lite 1.x.
//
//   encrypted-import OLD.cblite2 NEW      The passphrase of the new database is in TOUCHSTONE_KEY.

import Foundation
import Touchstone

func run(_ arguments: [String]) throws {
  guard arguments.count == 2, let passphrase = ProcessInfo.processInfo.environment["TOUCHSTONE_KEY"] else {
    print("usage: TOUCHSTONE_KEY=PASSPHRASE encrypted-import OLD.cblite2 NEW")
    exit(2)
  }
  let key = try UserKey.passphrase(passphrase)
  // The old database is only read. The new one gets its name when all revisions have been compared.
  var options = UpgradeOptions()
  options.verifies = true
  let report = try Database.upgrade(
    arguments[0], to: arguments[1], engine: .lmdbEncrypted, key: key, options: options)
  print("carried \(report.documents.carried) documents, \(report.revisions.carried) revisions")
  for issue in report.issues { print(issue) }

  let database = try Database.open(arguments[1], options: DatabaseOptions(creation: .openExisting, key: key))
  print("\(try database.documentCount) documents, encrypted by \(database.engineLibrary)")
  try database.close()
}

do { try run(Array(CommandLine.arguments.dropFirst())) } catch {
  print("encrypted-import: \(error)")
  exit(1)
}
