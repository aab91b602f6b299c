// Commands of the child process that the tests of conversions start, and kill.
//
//   conversion [limit BYTES] [map BYTES] COMMAND …
//
//   limit        no file can become larger: a full disk
//   map          the size of LMDB's map
//   hold PATH    opens, prints "open", and waits until it is killed
//   convert PATH ENGINE · rekey PATH · rotate PATH · encrypt PATH · decrypt PATH · copy SOURCE PATH
//                prints "begun", does it, prints "done"
//
// The old key is 32 bytes of 7, the new one 32 of 8.

import ChildSupport
import StorageConformance
import TestSupport

enum ConversionCommands: ChildCommands {
  static let name = "conversion"
  static let usage = "[limit BYTES] [map BYTES] hold|convert|rekey|rotate|encrypt|decrypt|copy PATH …"

  /// A failure is said with its code.
  static func run(_ arguments: [String]) throws {
    do { try convert(arguments) } catch {
      guard let code = (error as? StorageError)?.code.rawValue ?? (error as? DatabaseError)?.code.rawValue
      else { throw error }
      say("failed \(code): \(error)")
      exit(1)
    }
  }

  private static func convert(_ arguments: [String]) throws {
    let key = try UserKey.raw([UInt8](repeating: 7, count: 32))
    let newKey = try UserKey.raw([UInt8](repeating: 8, count: 32))
    var words = arguments[...]
    func next() throws -> String {
      guard let word = words.popFirst() else { throw WrongUsage() }
      return word
    }
    if words.first == "limit" {
      _ = try next()
      guard let bytes = Int(try next()) else { throw WrongUsage() }
      _ = limitFileSize(bytes)
    }
    if words.first == "map" {
      _ = try next()
      setenv("TOUCHSTONE_LMDB_MAP_BYTES", try next(), 1)
    }
    let (command, path) = (try next(), try next())
    if command == "hold" {
      var options = DatabaseOptions(creation: .openExisting)
      if try Database.isEncrypted(path) { options.key = key }
      let database = try Database.open(path, options: options)
      say("open")
      while true { pause() }
      _ = database
    }
    say("begun")
    switch command {
    case "convert":
      let engine = EngineName(rawValue: try next())
      try Database.convert(path, to: engine, key: key)
    case "rekey": try Database.rekey(path, key: key, newKey: newKey)
    case "rotate": try Database.rotateKey(path, key: key, newKey: newKey)
    case "encrypt": try Database.encrypt(path, key: newKey)
    case "decrypt": try Database.decrypt(path, key: key)
    case "copy": try Database.copy(path, to: try next(), key: key)
    default: throw WrongUsage()
    }
    say("done")
  }
}
