import Bytes
import HTTP
import Storage
import System
import Views

// `/_utils/`: the page for people. It holds no data. Whatever it shows, it asks for with the login of who looks at it.

extension ServerCall {
  /// The answer to a path below `_utils`.
  func page() throws -> HTTPAnswer {
    let names = path.dropFirst()
    // The names in the page are relative to its folder.
    if names.isEmpty, request.target.rawPath.last != UInt8(ascii: "/") {
      return HTTPAnswer(status: 301, headers: [.init("Location", "_utils/")])
    }
    guard names.count <= 1, let file = PageFile.all[names.first ?? PageFile.index] else {
      throw CouchDBError.missing
    }
    let headers = [HTTPHeader("ETag", file.tag), HTTPHeader("Cache-Control", "no-cache")] + Self.protection
    if request.matches(file.tag) { return HTTPAnswer(status: 304, headers: headers) }
    return HTTPAnswer(
      status: 200, headers: headers + [HTTPHeader("Content-Type", file.type)], body: .bytes(file.bytes))
  }

  /// Scripts, styles and answers come from this server alone. No script is in the markup, and no text becomes markup: the browser refuses a
  /// script that tries that. No page of others shows this one in a frame.
  private static let protection: [HTTPHeader] = [
    .init(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        + "require-trusted-types-for 'script'; trusted-types 'none'"),
    .init("X-Content-Type-Options", "nosniff"), .init("X-Frame-Options", "DENY"),
    .init("Referrer-Policy", "no-referrer"), .init("Cross-Origin-Opener-Policy", "same-origin"),
    .init("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// The largest report of a bench that is sent, in bytes.
  private static let maximumReportBytes = 32 << 20

  /// The answer to `_bench_report`: the results file that the server was told, as it is now.
  func benchReport() throws -> HTTPAnswer {
    guard let path = service.configuration.benchReport else {
      throw CouchDBError(404, "not_found", "the server wasn't started with --bench-report")
    }
    do { return .json(text: try AtomicFile.read(path, limit: Self.maximumReportBytes)) } catch let error
      as StorageError where error.code == .notFound
    {
      throw CouchDBError(404, "not_found", "the file of the report doesn't exist")
    }
  }
}
