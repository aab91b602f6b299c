// Commands of the child process that the tests of blobs start, and kill.
//
//   blobs save ENGINE DIRECTORY START      saves documents with new blobs, numbered from START, until it is
//                                          killed; prints each number once it is committed
//   blobs compact ENGINE DIRECTORY START   the same with a compaction after every few, which prints "compact"
//   blobs churn ENGINE DIRECTORY SECONDS   saves, purges and compacts contents that come again and again
//   blobs full ENGINE DIRECTORY BYTES      files may have so many bytes: a larger blob is refused, a smaller
//                                          one isn't
//   blobs unsynced ENGINE DIRECTORY 0      syncs fail while the blob of a purged document is to be removed: it stays
//                                          until they succeed
//   blobs stream ENGINE DIRECTORY MIB      stores and reads a blob of so many MiB, and prints how many KiB of
//                                          memory it took at most

import ChildSupport
import StorageConformance
import SystemCalls
import TestSupport

@testable import Touchstone

enum BlobsCommands: ChildCommands {
  static let name = "blobs"
  static let usage = "save|compact|churn|full|unsynced|stream ENGINE DIRECTORY NUMBER"

  /// The bytes of blob `number`: a few, or several chunks.
  static func contents(_ number: Int) -> [UInt8] {
    let count = number % 3 == 0 ? 100_000 + number % 7 * 20_000 : 10 + number % 90
    return (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ number &* 7 ^ ($0 >> 8)) }
  }

  static func save(_ number: Int, in database: Database) throws {
    let blob = try database.makeBlob(contents(number), contentType: "application/x-\(number)")
    var document = MutableDocument(id: "doc\(number % 40)", ["n": .int(Int64(number)), "b": blob.jsonValue])
    document.setAttachment("shared", try database.makeBlob(Array("in all of them".utf8)))
    try database.inBatch {
      try database.save(&document)
      try database.save("counter", ["n": .int(Int64(number))])
      if number % 5 == 4 { try database.purge("doc\(number % 40)") }
    }
  }

  static func churn(_ database: Database, seconds: Int) throws {
    let end = time(nil) + seconds
    var number = 0
    while time(nil) < end {
      let bytes = Array("content \(number % 5)".utf8)
      let blob = try database.makeBlob(bytes)
      let id = "churn-\(getpid())"
      try database.save(id, ["b": blob.jsonValue])
      guard try database.contents(of: blob) == bytes else {
        throw DocumentError(.damaged, "other contents came back", documentID: id)
      }
      if number % 3 == 2 { try database.purge(id) }
      if number % 7 == 6 {
        do { try database.compact() } catch let error as DatabaseError where error.code == .inUse {}
      }
      number += 1
    }
  }

  static func fill(_ database: Database, limit: Int) throws {
    let unlimit = limitFileSize(limit)
    for _ in 0..<3 {
      do {
        let writer = try database.makeBlobWriter()
        for _ in 0..<200 { try writer.write([UInt8](repeating: 7, count: limit / 100)) }
        _ = try writer.finish()
        say("a blob of twice the limit was stored")
      } catch let error as StorageError where error.code == .diskFull {}
    }
    let blob = try database.makeBlob([UInt8](repeating: 8, count: limit / 2))
    try database.save("small", ["b": blob.jsonValue])
    unlimit()
    let large = try database.makeBlob([UInt8](repeating: 9, count: limit * 2))
    try database.save("large", ["b": large.jsonValue])
  }

  /// Writes and reads a blob, and says by how many KiB the process has grown meanwhile.
  static func stream(_ database: Database, mebibytes: Int) throws {
    let before = memoryBytes("VmHWM:")
    var piece = [UInt8](repeating: 0, count: 1 << 20)
    func fill(_ number: Int) {
      piece.withUnsafeMutableBytes { buffer in
        for index in stride(from: 0, to: buffer.count, by: 8) {
          buffer.storeBytes(of: UInt64(number &* 1_000_003 &+ index), toByteOffset: index, as: UInt64.self)
        }
      }
    }
    let writer = try database.makeBlobWriter()
    for number in 0..<mebibytes {
      fill(number)
      try writer.write(piece)
    }
    let blob = Blob(try writer.finish())
    try database.save("large", ["b": blob.jsonValue])
    guard blob.length == UInt64(mebibytes) << 20 else { exit(11) }
    let reader = try database.open(blob)
    var read = [UInt8](repeating: 0, count: 1 << 20)
    for number in 0..<mebibytes {
      let count = try read.withUnsafeMutableBytes { try reader.read(into: $0) }
      fill(number)
      guard count == read.count, read == piece else { exit(12) }
    }
    guard try database.check(deep: true).isEmpty else { exit(13) }
    say("\((memoryBytes("VmHWM:") - before) >> 10)")
  }

  static func collectUnsynced(_ database: Database) throws {
    let blob = try database.makeBlob(contents(3))
    try database.save("doc", ["b": blob.jsonValue])
    try database.purge("doc")
    fail_syncs(EIO)
    let failure = try storageCode { try database.open.collectBlobs() }
    fail_syncs(0)
    guard failure == .ioError else {
      throw DocumentError(.damaged, "the collection ended with \(String(describing: failure))")
    }
    // A power loss now may bring the document back.
    guard try database.contents(of: blob) == contents(3) else {
      throw DocumentError(.damaged, "the blob is gone")
    }
    try database.open.collectBlobs()
    guard (try? database.contents(of: blob)) == nil else {
      throw DocumentError(.damaged, "the blob is there")
    }
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 4, var number = Int(arguments[3]) else { throw WrongUsage() }
    let database = try openTestDatabase(arguments[1], in: arguments[2]) { options in
      if arguments[0] == "unsynced" { options.compaction = .off }
    }
    switch arguments[0] {
    case "save", "compact":
      say("open")
      while true {
        try save(number, in: database)
        say("\(number)")
        number += 1
        if arguments[0] == "compact", number % 3 == 0 {
          try database.compact()
          say("compact")
        }
      }
    case "churn": try churn(database, seconds: number)
    case "full": try fill(database, limit: number)
    case "unsynced": try collectUnsynced(database)
    case "stream": try stream(database, mebibytes: number)
    default: throw WrongUsage()
    }
    try database.close()
    say("done")
  }
}
