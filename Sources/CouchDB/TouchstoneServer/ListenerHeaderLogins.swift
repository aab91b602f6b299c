import HTTP
import HTTPAPI
import Server
import Views

/// Signed tokens and proxies, as the server asks for them.
struct ListenerHeaderLogins: HeaderLoginChecker {
  let logins: HeaderLogins

  func verdict(authorization: String) -> LoginVerdict? {
    do { return try logins.user(authorization: authorization).map { .allowed($0) } } catch let error
      as CouchDBError
    {
      return .refused(error.status, headers: [], error.reason)
    } catch { return .refused(400, headers: [], "the token can't be read") }
  }

  func user(_ header: (String) -> String?) -> UserContext? { logins.user(header) }
}
