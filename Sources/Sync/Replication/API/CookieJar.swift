// The cookies that servers set, for the connections that follow: load balancers know their clients by them (RFC 6265).

import Bytes
import Documents
import Fleece
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// A cookie of a server.
struct Cookie: Sendable, Hashable {
  var name: String
  var value: String
  /// The host in lower case, or the domain whose hosts get it.
  var domain: String
  var isHostOnly = true
  var path: String
  var isSecure = false
  /// Seconds since 1970; nil for one that ends with the process.
  var expires: Int64?

  /// Whether a request to this place carries it.
  func goes(to place: CookieJar.Place, at now: Int64) -> Bool {
    guard expires ?? .max > now, !isSecure || place.isSecure else { return false }
    guard isHostOnly ? place.host == domain : Self.host(place.host, isWithin: domain) else { return false }
    guard place.path.hasPrefix(path) else { return false }
    return path.hasSuffix("/") || place.path.count == path.count
      || place.path.dropFirst(path.count).first == "/"
  }

  /// Whether the other one takes its place.
  func isReplaced(by other: Cookie) -> Bool {
    name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
  }

  static func host(_ host: String, isWithin domain: String) -> Bool {
    host == domain || host.hasSuffix("." + domain) && host.last.map { !$0.isNumber && $0 != "]" } ?? false
  }
}

extension Cookie {
  /// The most bytes of a name with its value.
  static let maximumBytes = 4_096

  /// Reads the value of a header `Set-Cookie`. Nil if the place may not set that, or for what isn't a cookie.
  init?(_ header: String, from place: CookieJar.Place, at now: Int64) {
    let parts = header.split(separator: ";", omittingEmptySubsequences: false).map(Self.trimmed)
    let pair = parts[0].split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard pair.count == 2 else { return nil }
    name = Self.trimmed(pair[0])
    value = Self.trimmed(pair[1])
    guard !name.isEmpty, name.utf8.count + value.utf8.count <= Self.maximumBytes,
      name.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 61 && $0 != 44 }),
      value.utf8.allSatisfy({ $0 >= 32 && $0 < 127 })
    else { return nil }
    domain = place.host
    path = place.path.lastIndex(of: "/").map { String(place.path[..<$0]) } ?? ""
    if path.isEmpty { path = "/" }
    var maximumAge: Int64?
    for part in parts.dropFirst() {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let text = pair.count > 1 ? Self.trimmed(pair[1]) : ""
      switch Self.trimmed(pair.first ?? "").lowercased() {
      case "domain" where !text.isEmpty:
        let wanted = String(text.lowercased().drop { $0 == "." })
        // A domain without a dot would be all hosts of a country.
        guard wanted.contains("."), Self.host(place.host, isWithin: wanted) else {
          if wanted == place.host { continue }
          return nil
        }
        domain = wanted
        isHostOnly = false
      case "path" where text.hasPrefix("/"): path = text
      case "secure": isSecure = true
      case "max-age":
        if let seconds = Int64(text) { maximumAge = min(max(seconds, 0), 1 << 32) }
      case "expires": expires = Self.date(text) ?? expires
      default: break
      }
    }
    if let maximumAge { expires = now + maximumAge }
    guard !isSecure || place.isSecure else { return nil }
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    String(text.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
  }

  /// Reads a date of HTTP in any of its forms, as RFC 6265 says: seconds since 1970.
  static func date(_ text: String) -> Int64? {
    var time: [Int64]?
    var day, month, year: Int64?
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    for token in text.lowercased().split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == ":") }) {
      let parts = token.split(separator: ":").map { Int64($0) }
      if time == nil, parts.count == 3 {
        time = parts.compactMap { $0 }
      } else if day == nil, token.count <= 2, let number = Int64(token) {
        day = number
      } else if month == nil, let index = months.firstIndex(where: { token.hasPrefix($0) }) {
        month = Int64(index) + 1
      } else if year == nil, (2...4).contains(token.count), let number = Int64(token) {
        year = number < 70 ? number + 2_000 : number < 100 ? number + 1_900 : number
      }
    }
    guard let time, time.count == 3, let day, let month, let year, (1...31).contains(day), year >= 1_601,
      (0...23).contains(time[0]), (0...59).contains(time[1]), (0...59).contains(time[2])
    else { return nil }
    // The days since 1970, of years that begin in March.
    let shifted = month > 2 ? year : year - 1
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    return days * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]
  }
}

/// The cookies of a database's replicators. Those that last are kept in the database, the others until the replicator goes.
package final class CookieJar: Sendable {
  /// What a request goes to.
  package struct Place: Sendable, Hashable {
    let host: String
    let path: String
    let isSecure: Bool

    /// `path` is that of the request, without a query.
    package init(host: String, path: String, isSecure: Bool) {
      self.host = host.lowercased()
      self.path = path.hasPrefix("/") ? path : "/" + path
      self.isSecure = isSecure
    }
  }

  /// The most cookies.
  static let maximumCount = 50

  private let database: Database
  private let passing = Lock<[Cookie]>([])
  private let now: @Sendable () -> Int64

  init(_ database: Database, now: @escaping @Sendable () -> Int64 = { Int64(time(nil)) }) {
    self.database = database
    self.now = now
  }

  /// The value of the header `Cookie` of a request; nil if none goes along. `name` is left out: another one has that name.
  package func header(to place: Place, without name: String? = nil) -> String? {
    let stored = (try? database.replicating { try Self.read($0) }) ?? []
    let now = now()
    let all = (stored + passing.withLock { $0 }).filter { $0.goes(to: place, at: now) && $0.name != name }
    guard !all.isEmpty else { return nil }
    // Those of longer paths come first.
    return all.sorted { $0.path.utf8.count > $1.path.utf8.count }.map { "\($0.name)=\($0.value)" }
      .joined(separator: "; ")
  }

  /// Keeps what an answer sets: the values of its headers `Set-Cookie`.
  package func take(_ headers: [String], from place: Place) {
    let now = now()
    let new = headers.prefix(Self.maximumCount).compactMap { Cookie($0, from: place, at: now) }
    guard !new.isEmpty else { return }
    func change(_ cookies: inout [Cookie], adding: (Cookie) -> Bool) {
      cookies.removeAll { old in new.contains { old.isReplaced(by: $0) } || old.expires ?? .max <= now }
      cookies = (cookies + new.filter { adding($0) && $0.expires ?? .max > now }).suffix(Self.maximumCount)
    }
    passing.withLock { change(&$0) { $0.expires == nil } }
    // A replication goes on without what can't be kept.
    try? database.replicatingChanges { store in
      let old = try Self.read(store)
      var cookies = old
      change(&cookies) { $0.expires != nil }
      guard cookies != old else { return }
      let json = JSONValue.object(["cookies": .array(cookies.map(\.json))])
      try store.setSyncCookies(try json.jsonText())
    }
  }

  private static func read(_ store: DocumentStore) throws -> [Cookie] {
    guard let json = try store.syncCookies(),
      case .array(let items)? = (try? json.withUnsafeBytes { try JSONValue(json: $0) })?["cookies"]
    else { return [] }
    return items.compactMap { Cookie($0) }
  }
}

extension Cookie {
  fileprivate var json: JSONValue {
    var members: JSONObject = [
      "name": .string(name), "value": .string(value), "domain": .string(domain), "path": .string(path),
      "hostOnly": .bool(isHostOnly), "secure": .bool(isSecure),
    ]
    if let expires { members["expires"] = .int(expires) }
    return .object(members)
  }

  fileprivate init?(_ json: JSONValue) {
    guard let name = json["name"].string, let value = json["value"].string,
      let domain = json["domain"].string,
      let path = json["path"].string
    else { return nil }
    self.init(
      name: name, value: value, domain: domain, isHostOnly: json["hostOnly"] == true, path: path,
      isSecure: json["secure"] == true, expires: json["expires"].int)
  }
}
