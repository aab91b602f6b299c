import Glibc

/// Times as CouchDB writes them, in UTC.
enum ReplicationTime {
  /// Seconds since 1970.
  static var now: Int { Glibc.time(nil) }

  /// As in states: `2026-11-22T09:47:14Z`.
  static func iso(_ seconds: Int) -> String { text(seconds, "%Y-%m-%dT%H:%M:%SZ") }

  /// As in the history of a replication: `Sun, 22 Nov 2026 09:47:14 GMT`.
  static func http(_ seconds: Int) -> String { text(seconds, "%a, %d %b %Y %H:%M:%S GMT") }

  private static func text(_ seconds: Int, _ format: String) -> String {
    var seconds = time_t(seconds)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 64)
    let count = strftime(&buffer, buffer.count, format, &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
