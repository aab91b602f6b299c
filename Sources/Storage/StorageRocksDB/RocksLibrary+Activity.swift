import CRocksDB
import StorageFlat

/// What RocksDB counts of its flushes, merges and stalls.
extension RocksLibrary: ActiveLibrary {
  func activity() throws -> [LibraryActivity] {
    let totals = RocksTotals(try property("cfstats-no-file-histogram"))
    return [
      LibraryActivity("flushes", totals.flushes, isTotal: true),
      LibraryActivity("compactions", totals.compactions, isTotal: true),
      LibraryActivity("write_stalls", totals.stalls, isTotal: true),
      LibraryActivity("level0_files", try number("num-files-at-level0")),
      LibraryActivity("pending_compaction_bytes", try number("estimate-pending-compaction-bytes")),
    ]
  }

  /// The number of values in the tables and in memory, of keys that have one and of others.
  func valueCount() throws -> Int {
    let tables = try property("aggregated-table-properties").split(separator: ";")
    /// A number of the text, which is written `NAME=NUMBER` or `# NAME=NUMBER`.
    func count(_ name: String) -> Int {
      let field = tables.first { $0.drop { "# ".contains($0) }.hasPrefix("\(name)=") }
      return field.flatMap { Int($0.drop { $0 != "=" }.dropFirst()) } ?? 0
    }
    var values = count("entries") - count("deletions")
    for memory in ["active-mem-table", "imm-mem-tables"] {
      values += try number("num-entries-\(memory)") - number("num-deletes-\(memory)")
    }
    return max(0, values)
  }

  /// One of RocksDB's properties. Empty if RocksDB doesn't know it.
  private func property(_ name: String) throws -> String {
    guard let text = rocksdb_property_value(try opened(), "rocksdb.\(name)") else { return "" }
    defer { rocksdb_free(text) }
    return String(cString: text)
  }

  private func number(_ name: String) throws -> Int { Int(try property(name)) ?? 0 }
}

/// The totals in the text `rocksdb.cfstats-no-file-histogram`. Whatever isn't in the text is 0.
///
/// The rows `Low` and `High` are the work of the two pools of threads: compactions and flushes. The column `Comp(cnt)`
/// has their number. A row has one word more than the heads before that column, since a size has its unit apart.
struct RocksTotals: Equatable {
  var flushes = 0
  var compactions = 0
  /// How often writes were slowed down or stopped, for all reasons.
  var stalls = 0

  init(_ text: String) {
    var column: Int?
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      switch words.first {
      case "Level", "Priority": column = words.firstIndex(of: "Comp(cnt)").map { $0 + 1 }
      case "Low": compactions = Self.number(words, column)
      case "High": flushes = Self.number(words, column)
      case "Stalls(count):":
        // "3 level0_slowdown, 1 level0_slowdown_with_compaction, …, interval 3 total count". The reasons "with
        // compaction" are counted in the one before too.
        let reasons = line.dropFirst("Stalls(count):".count).split(separator: ",")
        stalls = reasons.filter { !$0.hasSuffix("_with_compaction") }.reduce(0) {
          $0 + (Int($1.split(separator: " ").first ?? "") ?? 0)
        }
      default: break
      }
    }
  }

  private static func number(_ words: [Substring], _ column: Int?) -> Int {
    guard let column, column < words.count else { return 0 }
    return Int(words[column]) ?? 0
  }
}
