import Bytes
import HTTP
import Touchstone

/// What clients may do, and how much of it.
package struct DatabaseServiceConfiguration: Sendable {
  /// Whether clients only read.
  package var isReadOnly = false
  /// The largest body of a request that is held in memory, in bytes: all but attachments of their own and multipart bodies.
  package var maximumRequestBytes = 256 << 20
  /// The memory that the bodies of all requests may take together, and what is made of them, in bytes. A body takes twice its length,
  /// decompressed, and more for the values in it.
  package var bodyMemoryBytes = 512 << 20
  /// How long a request waits for such memory, in seconds.
  package var bodyMemorySeconds = 5.0
  /// How long a request may take until its answer begins, and a query until its last row, in seconds.
  package var requestSeconds = RequestTimeLimit.defaultSeconds
  /// The memory that all queries may take together, in bytes. One has at most half of it, and at most 256 MiB.
  package var queryMemoryBytes = 512 << 20
  /// The temporary files that all queries may have together for rows that memory doesn't hold, in bytes.
  package var queryFileBytes = 4 << 30
  /// The largest document, in bytes of its JSON without attachments and other members with an underscore.
  package var maximumDocumentBytes = 8_000_000
  /// The largest attachment, in bytes.
  package var maximumAttachmentBytes = 4 << 30
  /// Whether `_temp_view` runs functions that a client sends.
  package var allowsTemporaryViews = false
  /// Web pages of which origins may ask, and read the answers.
  package var crossOrigin = CrossOriginRules.none
  /// Whether answers are compressed for clients that take gzip.
  package var compressesAnswers = true
  /// Checks names and passwords, and keeps sessions; nil if everybody is let in, as an administrator.
  package var logins: (any LoginSessions)?
  /// Logins by headers of each request; nil: none.
  package var headerLogins: HeaderLogins?
  /// The users of `_users`, if the logins need them too; nil: the service makes its own.
  package var users: UsersDatabase?
  /// Watches the rights of what lasts, if others need that too; nil: the service makes its own.
  package var rights: StandingRights?
  /// The iterations of the hashes of passwords of new users.
  package var passwordIterations = UserPassword.standardIterations
  /// Whether administrators may change who reads and writes `_users`. By default only they do.
  package var usersSecurityIsEditable = false
  /// The header of an answer to who has to log in; nil: none.
  package var loginChallenge: HTTPHeader?
  /// Whether requests have users, who don't all see the same: also those that show certificates.
  package var hasUsers = false
  /// Finds the databases of replications that have URLs; nil if they can only name databases of this server.
  package var replicationTargets: (any ReplicationTargets)?
  /// The most replications that run at a time. Others wait for their turn.
  package var maximumReplications = 100
  /// How often a process asks whether it may run the replications of `_replicator`, and whether it still may, in seconds.
  package var turnSeconds = 2.0
  /// The path of the results file of a bench, for the page; nil: none.
  package var benchReport: String?
  /// The release of this software.
  package var version = touchstoneVersion

  /// Makes a configuration with the defaults.
  package init() {}
}

/// Why a login isn't let in.
package struct LoginRefusal: Error, Sendable {
  /// 401 for a wrong name or password; 429 or 503 if the client has to wait.
  package var status: Int
  /// What is wrong, for people.
  package var reason: String
  /// How long to wait, in seconds; nil if that doesn't help.
  package var retryAfter: String?

  /// Makes one. See the properties.
  package init(_ status: Int, _ reason: String, retryAfter: String? = nil) {
    self.status = status
    self.reason = reason
    self.retryAfter = retryAfter
  }
}

/// A login that is right.
package struct AcceptedLogin: Sendable {
  /// Who has logged in.
  package var context: UserContext
  /// The cookie of a new session.
  package var cookie: String

  /// Makes one. See the properties.
  package init(_ context: UserContext, cookie: String) {
    self.context = context
    self.cookie = cookie
  }
}

/// What comes of a login.
package typealias LoginResult = Result<AcceptedLogin, LoginRefusal>

/// Checks names and passwords, and makes the cookies of sessions. Whoever accepts connections checks cookies and headers before a
/// request comes here.
package protocol LoginSessions: Sendable {
  /// How long a cookie is good for, in seconds.
  var cookieSeconds: Int { get }
  /// Whether the password is the user's. `completion` is called once, from any thread: with the login if it is, or with why not. `network`
  /// is the one that they come from; empty if they don't come from outside.
  func check(
    _ user: String, _ password: String, from network: ByteString,
    _ completion: @escaping @Sendable (LoginResult) -> Void)
  /// Who a user is now; nil if there is no such user any more. It may wait.
  func context(of user: String) -> UserContext?
  /// A cookie that takes the place of one that is good, if more than a tenth of its time is over; nil otherwise.
  func renewal(of cookie: String) -> String?
  /// Ends the session of a cookie. Neither this cookie nor those before it are good any more.
  func end(_ cookie: String)
}
