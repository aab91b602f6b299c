import Transport

#if canImport(Glibc)
  import Glibc
#endif

extension TransportClose {
  /// An error of the operating system. Those are transient that mean a lost or refused connection, as in Couchbase Lite;
  /// and EPIPE, which is what writing to a lost connection gives.
  package static func posix(_ code: CInt, _ doing: String) -> TransportClose {
    let transient = [ENETRESET, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED, EPIPE]
    let text = strerror(code).map { String(cString: $0) } ?? "error \(code)"
    return TransportClose(
      domain: .posix, code: Int(code), reason: "\(doing): \(text)", isTransient: transient.contains(code))
  }
}
