/// The time that a request over HTTP has until its answer begins, and a N1QL query until its last row.
package enum RequestTimeLimit {
  /// What a server gives a request if nobody sets another time, in seconds.
  package static let defaultSeconds = 300.0
}
