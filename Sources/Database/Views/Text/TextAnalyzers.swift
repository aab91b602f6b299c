import FullText
import Storage

/// Analyzers of text that aren't in use. To make one takes longer than a short query.
enum TextAnalyzers {
  private struct Pool: @unchecked Sendable {
    var analyzers: [TextAnalyzer] = []
  }

  /// An analyzer that one thread at a time has.
  private struct Borrowed: @unchecked Sendable {
    let analyzer: TextAnalyzer?
  }

  private static let pool = Lock(Pool())
  private static let maximumCount = 4

  /// Runs `body` with an analyzer that nobody else uses meanwhile. Throws what making one does.
  static func withAnalyzer<Result>(
    _ options: TextAnalysisOptions, _ body: (TextAnalyzer) throws -> Result
  ) throws -> Result {
    let known = pool.withLock { pool in
      let index = pool.analyzers.lastIndex { $0.options == options }
      return Borrowed(analyzer: index.map { pool.analyzers.remove(at: $0) })
    }
    let analyzer = try known.analyzer ?? TextAnalyzer(options)
    let returned = Borrowed(analyzer: analyzer)
    defer {
      pool.withLock { pool in
        guard let analyzer = returned.analyzer else { return }
        pool.analyzers.append(analyzer)
        if pool.analyzers.count > maximumCount { pool.analyzers.removeFirst() }
      }
    }
    return try body(analyzer)
  }
}
