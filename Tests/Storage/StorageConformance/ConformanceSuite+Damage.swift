import Foundation
import Storage

extension ConformanceSuite {
  static let damageBehaviours: [Behaviour] = [
    Behaviour("files that are no database are a typed error, and stay as they are", needs: [.files, .child]) {
      suite in
      var generator = SeededGenerator(seed: suite.seed)
      var files: [Variant] = [
        ("empty", []), ("one byte", [0]), ("text", Array("This is no database.\n".utf8)),
        ("long text", Array(String(repeating: "no database ", count: 5_000).utf8)),
        ("zeros", [UInt8](repeating: 0, count: 65_536)),
        ("ones", [UInt8](repeating: 0xFF, count: 65_536)),
        ("JSON", Array("{\"a\": 1}".utf8)),
        ("SQLite's first bytes", Array("SQLite format 3\0".utf8) + generator.bytes(8_000)),
        ("SQLite's first bytes alone", Array("SQLite format 3\0".utf8)),
      ]
      for size in [16, 100, 511, 512, 1_024, 4_096, 8_192, 100_000] {
        files.append(("\(size) random bytes", generator.bytes(size)))
      }
      for (variant, line) in try suite.probe(files, "rewritten") + suite.probe(files, "blind") {
        if variant.bytes.isEmpty, line.hasPrefix("content ") { continue }
        let codes: [StorageError.Code] = [
          .notADatabase, .damaged, .unsupportedVersion, .wrongKey, .notEncrypted,
        ]
        try expect(
          codes.contains { line.hasPrefix("error \($0.rawValue) open ") },
          "\(variant.name): “\(line)”, wanted \(codes) from open")
      }
    },

    Behaviour("another engine's file is a typed error, and stays as it is", needs: [.files]) { suite in
      // Engines with the same format have the same file extension.
      for other in suite.others where other.fileExtension != suite.subject.engine.fileExtension {
        let path = suite.path("of-\(other.name)")
        var options = EngineOptions()
        if other.encrypts { options.key = suite.key ?? [UInt8](repeating: 3, count: 32) }
        let opened = try other.open(path, options)
        let content = try suite.fill(opened)
        try opened.close()
        for creation in [FileCreation.openExisting, .openOrCreate] {
          try expectError(
            .notADatabase, .wrongKey, .keyRequired, .notEncrypted,
            // What may be said of a directory.
            .ioError, .invalidArgument, .permissionDenied, from: "opening a file of \(other.name)"
          ) { _ = try suite.open(path, suite.options(creation: creation)) }
        }
        let again = try other.open(path, options)
        try expectEqual(Content(again), content, "content of the other engine's file")
        try again.close()
      }
    },

    Behaviour("truncated files are an error, faults, or what they were", needs: [.files, .child]) { suite in
      let (bytes, content) = try suite.soundFile()
      var generator = SeededGenerator(seed: suite.seed)
      let page = try suite.withEngine { try $0.maintenance.statistics().pageBytes }
      var sizes = [1, 15, 16, 99, 100, 511, 512, 513, 1_000, bytes.count - 1]
      sizes += [page, 2 * page, bytes.count - page].flatMap { [$0 - 1, $0, $0 + 1] }
      sizes += [3 * page, bytes.count / 4, bytes.count / 2, bytes.count * 3 / 4]
      sizes += (0..<(suite.isLong ? 500 : 15)).map { _ in 1 + generator.below(bytes.count - 1) }
      let files = sizes.map { ("the first \($0) of \(bytes.count) bytes", Array(bytes[..<$0])) }
      var found = try suite.probe(files, "rewritten")
      if suite.subject.survivesAnyDamage { found += try suite.probe(files, "blind") }
      try suite.expectMostNoticed(found, content, "truncated files")
    },

    Behaviour("overwritten pages are found by the check", needs: [.files, .child]) { suite in
      let (bytes, content) = try suite.soundFile()
      var generator = SeededGenerator(seed: suite.seed)
      let page = try suite.withEngine { try $0.maintenance.statistics().pageBytes }
      var files: [Variant] = []
      for _ in 0..<(suite.isLong ? 300 : 10) {
        let number = generator.below(bytes.count / page)
        var damaged = bytes
        let (name, filling) = generator.pick([
          ("ones", [UInt8](repeating: 0xFF, count: page)), ("zeros", [UInt8](repeating: 0, count: page)),
          ("random bytes", generator.bytes(page)),
          ("another page", Array(bytes[..<(bytes.count / page * page)].suffix(page))),
        ])
        damaged.replaceSubrange(number * page..<(number + 1) * page, with: filling)
        files.append(("page \(number) overwritten with \(name)", damaged))
      }
      let found = try suite.probe(files, "rewritten")
      try suite.expectMostNoticed(found, content, "overwritten pages")
    },

    Behaviour(
      "flipped bytes never crash a check, nor what reads after a check found nothing",
      needs: [.files, .child]
    ) {
      suite in
      let (bytes, _) = try suite.soundFile()
      var generator = SeededGenerator(seed: suite.seed)
      let page = try suite.withEngine { try $0.maintenance.statistics().pageBytes }
      var files: [Variant] = []
      for round in 0..<suite.times(20, 50, long: 5_000) {
        var damaged = bytes
        var places: [Int] = []
        for _ in 0...generator.below(4) {
          // The heads of pages hold structure.
          let place =
            switch round % 4 {
            case 0: generator.below(bytes.count)
            case 1: generator.below(min(bytes.count, 3 * page))
            case 2: generator.below(bytes.count / page) * page + generator.below(100)
            default: generator.below(bytes.count / page) * page + generator.below(16)
            }
          damaged[place] ^= UInt8(1 << generator.below(8))
          places.append(place)
        }
        files.append(("flipped bits at \(places)", damaged))
      }
      var found = try suite.probe(files, "rewritten")
      if suite.subject.survivesAnyDamage { found += try suite.probe(files, "blind") }
      for (variant, line) in found {
        try expect(
          line.hasPrefix("content ") || line.hasPrefix("faults ") || line.hasPrefix("error "),
          "\(variant.name): “\(line)”")
      }
    },
  ]

  /// A damaged file.
  private typealias Variant = (name: String, bytes: [UInt8])

  /// The path of the file whose bytes are damaged: the engine's file, or the largest file if it is a directory.
  private func damagedFile(_ path: String) throws -> String {
    guard isDirectory(path) else { return path }
    let files = try FileManager.default.contentsOfDirectory(atPath: path).map { path + "/" + $0 }
    func size(_ file: String) -> Int {
      ((try? FileManager.default.attributesOfItem(atPath: file)[.size]) as? NSNumber)?.intValue ?? 0
    }
    guard let largest = files.max(by: { (size($0), $1) < (size($1), $0) }) else {
      throw ConformanceFailure("the directory \(path) is empty")
    }
    return largest
  }

  private func isDirectory(_ path: String) -> Bool {
    var isDirectory = ObjCBool(false)
    return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && isDirectory.boolValue
  }

  /// The bytes of a closed file and its content. It has a few hundred pages, and each holds entries.
  private func soundFile() throws -> (bytes: [UInt8], content: String) {
    let content = try withEngine { engine in
      try engine.write { transaction in
        var generator = SeededGenerator(seed: seed)
        for shape in KeyspaceShape.allCases {
          let keyspace = try transaction.createKeyspace("k\(shape.rawValue)", shape: shape)
          for number in 0..<500 {
            try transaction.put(sequenceKey(UInt64(number * 7)), generator.bytes(150), in: keyspace)
          }
        }
      }
      return try Content(engine).description
    }
    let file = try Data(contentsOf: URL(fileURLWithPath: damagedFile(path("main"))))
    return ([UInt8](file), content)
  }

  /// Writes a damaged file. A directory is a copy of the sound one with one other file.
  private func write(_ bytes: [UInt8], at path: String) throws {
    var file = path
    if isDirectory(self.path("main")) {
      try FileManager.default.copyItem(atPath: self.path("main"), toPath: path)
      file = path + "/" + ((try damagedFile(self.path("main"))) as NSString).lastPathComponent
    }
    try Data(bytes).write(to: URL(fileURLWithPath: file))
  }

  /// Lets child processes open, check, read and write each file. A crash of a child fails the suite, with the
  /// file's name.
  private func probe(_ variants: [Variant], _ mode: String) throws -> [(Variant, String)] {
    var result: [(Variant, String)] = []
    for start in stride(from: 0, to: variants.count, by: 25) {
      let batch = Array(variants[start..<min(start + 25, variants.count)])
      var paths: [String] = []
      for (index, variant) in batch.enumerated() {
        let path = path("\(mode)\(start + index)")
        try write(variant.bytes, at: path)
        paths.append(path)
      }
      let child = try startChild("probe", [mode] + paths)
      let ending = try child.wait()
      let lines = child.outputText.split(separator: "\n").map(String.init)
      if ending != .exited(0) || lines.count != batch.count {
        let culprit = lines.count < batch.count ? batch[lines.count].name : "?"
        throw ConformanceFailure(
          "the child \(ending) at “\(culprit)” (\(mode)): \(lines.last ?? "") \(child.errorText)")
      }
      result += zip(batch, lines)
      for name in try FileManager.default.contentsOfDirectory(atPath: directory)
      where name.hasPrefix(mode) {
        try? FileManager.default.removeItem(atPath: "\(directory)/\(name)")
      }
    }
    return result
  }

  /// Checks that most of the damage was noticed, and that what wasn't changed no content.
  private func expectMostNoticed(_ found: [(Variant, String)], _ content: String, _ what: String) throws {
    for (variant, line) in found { try expectNoticed(variant, line, content) }
    let noticed = found.count { !$0.1.hasPrefix("content ") }
    try expect(noticed * 2 > found.count, "only \(noticed) of \(found.count) \(what) were noticed")
  }

  /// Checks that damage to entries was noticed, or changed no content.
  private func expectNoticed(_ variant: Variant, _ line: String, _ content: String) throws {
    if line.hasPrefix("content ") {
      return try expectEqual(line, "content \(content)", "\(variant.name): content of a damaged file")
    }
    guard line.hasPrefix("error ") else { return }
    let codes: [StorageError.Code] = [
      .notADatabase, .damaged, .unsupportedVersion, .wrongKey, .notEncrypted, .ioError,
    ]
    try expect(
      codes.contains { line.hasPrefix("error \($0.rawValue) ") },
      "\(variant.name): “\(line)”, wanted \(codes)")
  }
}
