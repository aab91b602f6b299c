// Commands that make large ForestDB files, and measure how they are read.
//
//   make DIRECTORY NAME DOCUMENTS HISTORY BYTES VERSION LOG
//            makes NAME.cblite2, with documents of HISTORY revisions, whose bodies have about BYTES bytes; LOG is log
//            (all records are in the log) or trie
//   read PATH SCRATCH
//            reads all revisions and bodies, and prints "revisions N bodies N bytes N seconds N anonymous N": seconds of a
//            processor, and the highest anonymous memory in bytes

import ChildSupport
import Datasets
import ForestDBFile
import TestSupport

enum ForestDBCommands: ChildCommands {
  static let name = "forestdb"
  static let usage = "make DIRECTORY NAME DOCUMENTS HISTORY BYTES VERSION LOG | read PATH SCRATCH"

  static func run(_ words: [String]) throws {
    switch (words.first, words.count) {
    case ("make", 8):
      let numbers = words[3...6].compactMap { Int($0) }
      guard numbers.count == 4 else { throw WrongUsage() }
      try make(words[2], in: words[1], numbers, isLog: words[7] == "log")
    case ("read", 3): try read(words[1], scratch: words[2])
    default: throw WrongUsage()
    }
  }

  private static func make(_ name: String, in directory: String, _ numbers: [Int], isLog: Bool) throws {
    var settings = LegacyDatabase()
    (settings.documents, settings.history) = (numbers[0], numbers[1])
    settings.localDocuments = 10
    let words = (0..<1_000).map { "word\($0 * 7_919 % 1_000)" }
    let wanted = numbers[2]
    settings.body = { document, revision in
      var text = "{\"n\":\(document),\"revision\":\(revision),\"text\":\""
      var place = document &* 31 &+ revision
      while text.utf8.count < wanted - 2 {
        place = (place &* 1_103_515_245 &+ 12_345) & 0x7FFF_FFFF
        text += words[place % 1_000] + " "
      }
      return Array((text + "\"}").utf8)
    }
    settings.documentID = { "-\(String($0 &* 2_654_435_761 % 0x1_0000_0000, radix: 16))-\($0)" }
    var shape = LegacyForestDB()
    shape.version = numbers[3]
    shape.commit = 1_000
    shape.endsFlushed = !isLog
    shape.hasUnfinished = false
    say("made \(try LegacyForestDBMaker(settings, shape).make(name, in: directory))")
  }

  private static func read(_ path: String, scratch: String) throws {
    let begun = processorSeconds()
    let names = try FileManager.default.contentsOfDirectory(atPath: path)
    let directory = try ForestDBDirectory(path, names: names, keys: [], scratch: scratch)
    let documents = try directory.file.documents()
    var count = (documents: 0, revisions: 0, bodies: 0, bytes: 0)
    var id: [UInt8] = []
    var peak = 0
    while let item = try documents.next() {
      guard case .document = item else { throw WrongUsage() }
      count.documents += 1
      for index in documents.revisions.indices {
        id.removeAll(keepingCapacity: true)
        documents.appendID(index, to: &id)
        count.revisions += 1
        if let bytes = try documents.withBody(index, { $0.count }) {
          count.bodies += 1
          count.bytes += bytes
        }
      }
      if count.documents % 5_000 == 0 { peak = max(peak, memoryBytes("RssAnon:")) }
    }
    peak = max(peak, memoryBytes("RssAnon:"))
    let seconds = processorSeconds() - begun
    say(
      "revisions \(count.revisions) bodies \(count.bodies) bytes \(count.bytes) seconds \(seconds) anonymous \(peak)"
    )
  }

  private static func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
